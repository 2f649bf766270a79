"""Data larger than memory: folders of shards, each with some of the features over all steps."""

from .folder import Shards, is_shards
from .sorting import shard_long
from .writing import ShardWriter, write_shards

__all__ = ["ShardWriter", "Shards", "is_shards", "shard_long", "write_shards"]
