"""Folders of shards, for tests."""

import numpy as np

from temporalnmf.shards import write_shards
from temporalnmf.timeline import timeline_of


def sharded(path, X, n_shards=4, **options):
    """The path, where a matrix has been written as shards with numbered steps and features."""
    names, timeline = [f"w{i}" for i in range(X.shape[1])], timeline_of(np.arange(X.shape[0]))
    write_shards(path, X, names=names, timeline=timeline, n_shards=n_shards, **options)
    return path


def names_of(shards):
    return [name for i in range(shards.n_shards) for name in shards.names(i)]
