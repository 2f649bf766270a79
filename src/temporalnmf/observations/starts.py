"""Random weights of features, independent of their division into blocks."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from .._typing import Array

# Features that share a random stream.
_CHUNK = 2**16


def random_rows(rng: np.random.Generator, first: int, last: int, n_components: int) -> Array:
    """Rows from `first` to `last` of random weights, Gamma(2, 1/2) as in the paper.

    The first features use a copy of the stream of `rng`, the others children of it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> whole = random_rows(rng, 0, 70_000, 2)
    >>> bool(np.all(whole[65_000:] == random_rows(rng, 65_000, 70_000, 2)))
    True
    """
    parts = [np.empty((0, n_components))]
    for chunk in range(first // _CHUNK, -(-last // _CHUNK)):
        start, end = chunk * _CHUNK, min((chunk + 1) * _CHUNK, last)
        rows = _stream(rng, chunk).gamma(2.0, 0.5, size=(end - start, n_components))
        parts.append(rows[max(first - start, 0) :])
    return np.concatenate(parts)


def skip_rows(rng: np.random.Generator, n_features: int, n_components: int) -> None:
    """Advance a stream past the weights drawn from a copy of it."""
    rng.gamma(2.0, 0.5, size=(min(n_features, _CHUNK), n_components))


def _stream(rng: np.random.Generator, chunk: int) -> np.random.Generator:
    if chunk == 0:
        return copy.deepcopy(rng)
    seed: Any = rng.bit_generator.seed_seq
    key = (*seed.spawn_key, chunk)
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=key))
