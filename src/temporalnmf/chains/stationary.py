"""Chains with a stationary Gamma distribution."""

from __future__ import annotations

import numpy as np
from scipy import stats

from .._typing import Array, Law
from .base import Chain
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


class Reverting(Stationary, Chain):
    """A stationary chain that returns to its mean by a factor ρ per step: corr(h_n, h_{n+r}) = ρ^r.

    0 < ρ < 1; ρ = 0, independent steps, for simulation only.
    """

    _per_unit = ("beta",)
    _auto = ("beta",)
    _zero = _fraction = ("rho",)

    rho: Parameter

    def between(self, H: Array, seen: Array, steps: Array) -> Array:
        """(I1): the best linear prediction from the observed neighbours."""
        alpha, beta, rho = (np.reshape(v, (-1, 1)) for v in self._values("alpha", "beta", "rho"))
        mean, decay = alpha / beta, np.log(rho)
        left = np.clip(np.searchsorted(seen, steps, side="right") - 1, 0, max(len(seen) - 2, 0))
        right = np.minimum(left + 1, len(seen) - 1)
        since, until = steps - seen[left], seen[right] - steps
        whole = np.expm1(2.0 * np.maximum(since + until, 1) * decay)
        before = np.exp(since * decay) * np.expm1(2.0 * until * decay) / whole
        after = np.exp(until * decay) * np.expm1(2.0 * since * decay) / whole
        if len(seen) == 1:
            before = np.ones_like(before)
        found: Array = mean + before * (H[:, left] - mean) + after * (H[:, right] - mean)
        return found

    def backcast(self, h_first: Array, steps: int) -> Array:
        """The chain is reversible in its mean: E[h_{n−s} | h_n] = ρ^s h_n + (1−ρ^s) α/β."""
        return self.point_forecast(h_first, steps)[:, ::-1]
