"""A shard as the data of one block."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np
from scipy import sparse

from .._typing import Array
from ..data.series import Matrix, Series, dense
from ..likelihoods.base import Likelihood
from ..observations.base import Observations
from ..observations.sparse import SparseObservations
from ..runtime.threads import Threads
from ..shards.folder import Shards
from .block_data import BlockSource, Steps


@dataclass(frozen=True, eq=False)
class ShardSource(BlockSource):
    """One shard, read when and where it is needed, with weights (N, 1) or (N, F).

    Entries that the shard marks as missing are missing whatever their weight.
    """

    shards: Shards
    number: int
    weights: Matrix
    exposure: Array

    def series(self) -> Series:
        return Series(self._by_step(), self._weights(), self.exposure)

    def fingerprint(self) -> int:
        """A checksum of row pointers and a sample of values: reading all would take long."""
        indptr, indices, values = self.shards.by_feature(self.number)
        parts = (indptr, indices[::_EVERY], values[::_EVERY], self.exposure)
        found = crc32(repr((self.shards.n_times, len(values))).encode())
        for part in parts:
            found = crc32(np.ascontiguousarray(part).view(np.uint8).data, found) if part.size else 0
        weights = np.ascontiguousarray(dense(self.weights), dtype=float)
        return crc32(weights.view(np.uint8).data, found)

    def survey(self) -> tuple[Array, Array]:
        self.shards.check(self.number)  # before compiled code uses its indices
        if self.weights.shape[1] > 1 or self.shards.missing(self.number) is not None:
            return super().survey()
        seen = self.weights[:, 0] > 0.0
        totals = np.asarray(self._by_step().sum(axis=1)).ravel()
        return seen.astype(float), np.where(seen, totals, 0.0)

    def observations(
        self,
        steps: Steps,
        likelihood: Likelihood,
        threads: Threads,
        known: Observations | None = None,
    ) -> Observations:
        series = self.series()
        used = steps.of(series)
        by_feature = None
        if used is series:
            by_feature = _rows(self.shards.by_feature(self.number), series.X.shape[::-1])
        found = SparseObservations(
            used.X, used.weights, used.exposure, likelihood, by_feature=by_feature, known=known
        )
        found.threads = threads
        return found

    def _by_step(self) -> sparse.csr_array:
        first, last = self.shards.bounds[self.number : self.number + 2].tolist()
        return _rows(self.shards.by_step(self.number), (self.shards.n_times, last - first))

    def _weights(self) -> Matrix:
        missing = self.shards.missing(self.number)
        if missing is None:
            return self.weights
        indptr, steps = missing
        features = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        shape = self.shards.n_times, len(indptr) - 1
        weights = np.array(np.broadcast_to(dense(self.weights), shape), dtype=float)
        weights[steps, features] = 0.0
        return weights


# A fingerprint reads every _EVERY-th value.
_EVERY = 1009


def _rows(parts: tuple[Array, Array, Array], shape: tuple[int, int]) -> sparse.csr_array:
    indptr, indices, values = parts
    rows = sparse.csr_array((values, indices, indptr), shape=shape)
    rows.has_canonical_format = True  # rows are written in order: SciPy need not check it
    return rows
