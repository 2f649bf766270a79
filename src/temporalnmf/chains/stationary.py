"""Chains with a stationary Gamma distribution."""

from __future__ import annotations

import numpy as np
from scipy import stats

from .._typing import Array, Law
from .parameters import Parameter, scalar_or_array
from .process import Process
from .regime import Paths


class Stationary(Process):
    """Every h_n ~ Gamma(α, β) if h_1 is; from any other start, h_n converges to it."""

    own_first = True

    alpha: Parameter
    beta: Parameter

    def _fill_auto(self, level: float) -> None:
        """The mean α/β is the level of the data."""
        if isinstance(self.beta, str):
            self.beta = scalar_or_array(np.divide(self.alpha, level))

    def _stationary(self) -> Law:
        alpha, beta = self._values("alpha", "beta")
        return stats.gamma(alpha, scale=1.0 / beta)

    def _independent(self, h: Array) -> Law:
        """The stationary distribution for the next step, in the shape of h."""
        alpha, beta = self._values("alpha", "beta")
        shape = np.broadcast_shapes(h.shape, alpha.shape, beta.shape)
        return stats.gamma(np.broadcast_to(alpha, shape), scale=1.0 / beta)

    def _paths(self) -> tuple[Paths, str]:
        return Paths.STATIONARY, ""
