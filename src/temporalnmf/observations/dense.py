"""Dense data."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from .._typing import Array
from ..kernels.dense import dense_pass
from ..kernels.simplex import column_sums
from ..likelihoods.base import Likelihood
from .base import Sums, cut
from .memory import InMemory

# Minimum number of entries in a range.
_RANGE = 2**15
# Entries prepared at a time.
_CHUNK = 2**17


class DenseObservations(InMemory):
    """Dense X (N, F), whose transpose is V in the order of the kernels.

    V is X itself, not a copy, if only whole steps are missing. Under the Poisson likelihood,
    single-precision data stay so, and so does the arithmetic of the sums, but not of the value.
    """

    order: Literal["C", "F"] = "F"

    def __init__(self, X: Array, weights: Array, exposure: Array, likelihood: Likelihood) -> None:
        super().__init__(exposure)
        N, F = X.shape
        self.likelihood = likelihood
        self.shape = (F, N)
        single = likelihood.takes_single and X.dtype == np.float32
        dtype = np.float32 if single else np.float64
        self._entries = weights.shape[1] > 1
        plain = not self._entries and likelihood.leaves_values(weights)
        values = np.ascontiguousarray(X, dtype=dtype) if plain else np.empty((N, F), dtype=dtype)
        kept = np.empty((N, weights.shape[1]), dtype=dtype if self._entries else np.float64)
        totals, exposed, self.saturated, self.dropped = np.zeros(F), np.zeros(F), 0.0, 0.0
        # A few steps at a time, to allocate nothing else of the size of X.
        size = max(_CHUNK // F, 1)
        for start in range(0, N, size):
            rows = slice(start, start + size)
            weight, size_of = np.asarray(weights[rows], dtype=float), exposure[rows, None]
            x = np.where(weight > 0.0, X[rows], 0.0).astype(float)
            totals += (weight * x).sum(axis=0)
            exposed += (weight * size_of).sum(axis=0)
            self.saturated += likelihood.saturated(x, weight)
            self.dropped += likelihood.dropped(x, weight, size_of)
            kept[rows] = weight
            if not plain:
                values[rows] = likelihood.weigh(x, weight)
        self.saturated -= self.dropped
        self._describe(totals, exposed)
        self._V, self._M = values.T, kept.T
        self._steps = np.flatnonzero(self._M.any(axis=0))
        self.shared = likelihood.formulas.linear and not self._entries
        self.exposed = self._M[0] * exposure

    def _sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        (F, N), K = self.shape, len(H)
        n_ranges = len(self._bounds(K)) - 1
        shared, cost = self.shared, self.likelihood.cost
        WA, HA = self._keep("WA", (K, F)), self._keep("HA", (n_ranges, K, N))
        WB, HB = WA, HA
        if not shared:
            WB, HB = self._keep("WB", (K, F)), self._keep("HB", (n_ranges, K, N))
        given = self._pass(wants, W, H, self._V.dtype)
        self.threads.run(*given, WA, WB, HA, HB, np.empty(0))
        result = []
        if "w" in wants:
            result.append(Sums(WA.T, cost * (H @ self._M[0])[None] if shared else WB.T))
        if "h" in wants:
            B = np.multiply.outer(cost * column_sums(W), self._M[0]) if shared else HB.sum(axis=0)
            result.append(Sums(HA.sum(axis=0), B))
        return tuple(result)

    def _value(self, W: Array, H: Array) -> float:
        values = np.zeros(len(self._bounds(len(H))) - 1)
        nothing = np.empty((0, 0))
        none = np.empty((0, 0, 0))
        given = self._pass("v", W, H, np.float64)
        self.threads.run(*given, nothing, nothing, none, none, values)
        return float(values.sum())

    def _bounds(self, K: int) -> Array:
        # The sums (K, N) of a range take at most an eighth of the size of its data.
        return cut(self.shape[0], max(_RANGE // max(len(self._steps), 1), 8 * K))

    def _pass(self, wants: str, W: Array, H: Array, dtype: DTypeLike) -> tuple[Any, ...]:
        """A pass, its number of ranges, and its arguments up to the results."""
        law, bounds = self.likelihood, self._bounds(len(H))
        kernel = dense_pass(len(H), law.formulas, self._entries, wants, law.in_blocks)
        V, M, W = self._V.T, self._M.T, np.ascontiguousarray(W.T, dtype=dtype)
        H = np.ascontiguousarray(H, dtype=dtype)
        return kernel, len(bounds) - 1, V, M, W, H, law.theta, self._steps, bounds
