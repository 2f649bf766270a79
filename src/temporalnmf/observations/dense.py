"""Dense data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import dense as kernels
from ..likelihoods.base import Array, Likelihood
from .base import Observations


class DenseObservations(Observations):
    """Dense X (N, F), whose transpose is V in the order the kernels want: no copy if complete."""

    order = "F"

    def __init__(self, X: Array, weights: Array, exposure: Array, likelihood: Likelihood) -> None:
        complete = bool(np.all(weights == 1.0)) and bool(np.all(exposure == 1.0))
        if not complete:
            X = np.where(weights > 0.0, X, 0.0)
        self.likelihood = likelihood
        self.shape = (X.shape[1], X.shape[0])
        exposed = (weights * exposure[:, None]).sum(axis=0)
        self._describe(
            (X if complete else weights * X).sum(axis=0), np.broadcast_to(exposed, X.shape[1])
        )
        self.saturated = likelihood.saturated(X, weights, exposure[:, None])
        values, totals = (
            likelihood.weigh(X, weights, exposure[:, None]) if not complete else (X, weights * 1.0)
        )
        self._V = np.asfortranarray(values.T)
        self._M = np.asfortranarray(totals.T)

    def _sums(self, kernel: str, W: Array, H: Array) -> Any:
        run = getattr(kernels, kernel)
        return run(
            self.likelihood.power, self._V, self._M, np.asfortranarray(W), np.asfortranarray(H)
        )
