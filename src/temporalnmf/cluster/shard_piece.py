"""A shard as the data of one block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from scipy import sparse

from .._typing import Array
from ..data.series import Series
from ..likelihoods.base import Likelihood
from ..observations.base import Observations
from ..observations.sparse import SparseObservations
from ..runtime.threads import Workers
from ..shards.folder import Shards
from .pieces import Piece, Steps


@dataclass(frozen=True, eq=False)
class ShardPiece(Piece):
    """One shard, read where it is wanted.

    Parameters
    ----------
    shards : Shards
    number : int
    weights : array, (N, 1) or (N, F), or sparse array (N, F)
        Of its features; what the shard says is missing is missing in any case.
    exposure : array, (N,)
    """

    shards: Shards
    number: int
    weights: Any
    exposure: Array

    def series(self) -> Series:
        return Series(self._by_step(), self._weights(), self.exposure)

    def fingerprint(self) -> int:
        """Of its row ends and a sample of its values: reading all of them would take long."""
        indptr, indices, values = self.shards.by_feature(self.number)
        parts = (indptr, indices[::_EVERY], values[::_EVERY], self.exposure)
        found = crc32(repr((self.shards.n_times, len(values))).encode())
        for part in parts:
            found = crc32(np.ascontiguousarray(part).view(np.uint8).data, found) if part.size else 0
        weights = self.weights.toarray() if sparse.issparse(self.weights) else self.weights
        return crc32(np.ascontiguousarray(weights, dtype=float).view(np.uint8).data, found)

    def survey(self) -> tuple[Array, Array]:
        self.shards.check(self.number)  # before compiled code trusts its indices
        if self.weights.shape[1] > 1 or self.shards.missing(self.number) is not None:
            return super().survey()
        seen = self.weights[:, 0] > 0.0
        totals = np.asarray(self._by_step().sum(axis=1)).ravel()
        return seen.astype(float), np.where(seen, totals, 0.0)

    def observations(
        self,
        steps: Steps,
        likelihood: Likelihood,
        workers: Workers,
        known: Observations | None = None,
    ) -> Observations:
        series = self.series()
        used = steps.of(series)
        by_feature = None
        if used is series:
            indptr, indices, values = self.shards.by_feature(self.number)
            shape = series.X.shape[::-1]
            by_feature = _sorted(sparse.csr_array((values, indices, indptr), shape=shape))
        found = SparseObservations(
            used.X, used.weights, used.exposure, likelihood, by_feature=by_feature, known=known
        )
        found.workers = workers
        return found

    def _by_step(self) -> sparse.csr_array:
        indptr, indices, values = self.shards.by_step(self.number)
        bounds = self.shards.bounds
        shape = self.shards.n_times, int(bounds[self.number + 1] - bounds[self.number])
        return _sorted(sparse.csr_array((values, indices, indptr), shape=shape))

    def _weights(self) -> Any:
        missing = self.shards.missing(self.number)
        if missing is None:
            return self.weights
        indptr, steps = missing
        features = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        weights = self.weights
        weights = weights.toarray() if sparse.issparse(weights) else np.asarray(weights, float)
        shape = self.shards.n_times, len(indptr) - 1
        weights = np.array(np.broadcast_to(weights, shape), dtype=float)
        weights[steps, features] = 0.0
        return weights


# Values from one to the next that a fingerprint looks at.
_EVERY = 1009


def _sorted(rows: sparse.csr_array) -> sparse.csr_array:
    """As it was written: nobody has to look."""
    rows.has_canonical_format = True
    return rows
