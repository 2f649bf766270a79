"""Dense data."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..kernels.dense import dense_pass
from ..likelihoods.base import Array, Likelihood
from .base import Observations, Sums, cut

# Entries that make a shard worth handing to a thread.
_SHARD = 2**15


class DenseObservations(Observations):
    """Dense X (N, F), whose transpose is V in the order the kernels want: no copy if complete.

    Single-precision data stay so (and so does the arithmetic of the sums, but not of the value)
    where the likelihood allows it.
    """

    order = "F"

    def __init__(self, X: Array, weights: Array, exposure: Array, likelihood: Likelihood) -> None:
        super().__init__()
        dtype = X.dtype if likelihood.power == 1 and X.dtype == np.float32 else np.float64
        complete = bool(np.all(weights == 1.0)) and bool(np.all(exposure == 1.0))
        if not complete:
            X = np.where(weights > 0.0, X, 0.0)
        self.likelihood = likelihood
        self.shape = (X.shape[1], X.shape[0])
        exposed = (weights * exposure[:, None]).sum(axis=0)
        self._describe(
            (X if complete else weights * X).sum(axis=0, dtype=float),
            np.broadcast_to(exposed, X.shape[1]),
        )
        self.saturated = likelihood.saturated(X, weights, exposure[:, None])
        values, totals = (
            likelihood.weigh(X, weights, exposure[:, None]) if not complete else (X, weights * 1.0)
        )
        self._V = np.asfortranarray(values.T, dtype=dtype)
        self._M = np.asfortranarray(totals.T, dtype=dtype)
        self._entries = len(self._M) > 1
        self._steps = np.flatnonzero(self._M.any(axis=0))

    def sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        (F, N), K = self.shape, len(H)
        n_shards = len(self._bounds(K)) - 1
        WA, WB = self._keep("WA", (K, F)).T, self._keep("WB", (K, F)).T
        HA, HB = self._keep("HA", (n_shards, K, N)), self._keep("HB", (n_shards, K, N))
        # Poisson with weights per step: B needs no pass.
        shared = self.likelihood.power == 1 and not self._entries
        for name, arrays in (("w", (WA, WB)), ("h", (HA, HB))):
            if name in wants:
                arrays[0].fill(0.0)
                if not shared:
                    arrays[1].fill(0.0)
        self._run(wants, W, H, self._V.dtype, WA, WB, HA, HB, np.empty(0))
        result = []
        if "w" in wants:
            result.append(Sums(WA, (H @ self._M[0])[None] if shared else WB))
        if "h" in wants:
            B = np.multiply.outer(W.sum(axis=0), self._M[0]) if shared else HB.sum(axis=0)
            result.append(Sums(HA.sum(axis=0), B))
        return tuple(result)

    def value(self, W: Array, H: Array) -> float:
        values = np.zeros(len(self._bounds(len(H))) - 1)
        nothing = np.empty((0, 0), order="F")
        none = np.empty((0, 0, 0))
        self._run("v", W, H, np.float64, nothing, nothing, none, none, values)
        return float(values.sum())

    def _bounds(self, K: int) -> Array:
        # A shard keeps sums (K, N) of its own: at most an eighth of its data.
        return cut(self.shape[0], max(_SHARD // max(len(self._steps), 1), 8 * K))

    def _run(self, wants: str, W: Array, H: Array, dtype: Any, *results: Array) -> None:
        kernel = dense_pass(len(H), self.likelihood.power, self._entries, wants)
        bounds = self._bounds(len(H))
        self.workers.run(
            kernel, len(bounds) - 1,
            self._V, self._M,
            np.asfortranarray(W, dtype=dtype), np.ascontiguousarray(H, dtype=dtype),
            self._steps, bounds, *results,
        )  # fmt: skip
