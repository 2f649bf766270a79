"""Data larger than memory: folders of shards, each with some of the features over all steps."""

from .folder import Shards, ShardWriter, is_shards, write_shards
from .sorting import shard_long

__all__ = ["ShardWriter", "Shards", "is_shards", "shard_long", "write_shards"]
