"""Chaining on the shape of a Gamma distribution through an auxiliary count."""

from __future__ import annotations

import numpy as np

from .._typing import Array, Law
from .base import Parameter
from .poisson_gamma import PoissonGamma
from .regime import Paths


class HierShape(PoissonGamma):
    """A random walk with count-like noise and a slow upward drift.

    Density: z_n | h_{n−1} ~ Poisson(β h_{n−1}), h_n | z_n ~ Gamma(α + z_n, β); mean h_{n−1} + α/β,
    variance (2/β) h_{n−1} + α/β²; flat prior on h_1. Domain: α, β > 0 (α = 0, where the chain is
    absorbed at zero, for simulation only); with ``map_scale="linear"`` and α < 1 the density is
    unbounded at zero. After s steps the distribution is the same with β/s: h is a squared Bessel
    process of dimension 2α, observed at unit times. The paper has no algorithm for this chain; here
    the counts z are integrated out, and EM needs only their means, ratios of Bessel functions.

    Terms (HS0), (HS1); the value is the marginal −log p(h_n | h_{n−1}). Constants dropped: none.

    Parameters
    ----------
    alpha : float, array or "learn", default=1.0
        Drift per step in units of 1/β.
    beta : float, array, "auto" or "learn", default="auto"
        Larger is smoother: the relative step-to-step spread is √(2/(β h)). "auto" makes
        it one tenth at the level of the data; the drift is then α/200 of that level per step.

    Examples
    --------
    >>> HierShape(alpha=1.0).resolve(level=4.0, n_components=2).beta
    100.0
    """

    name = "hier_shape"
    grid = tuple({"alpha": 1.0, "beta": f"{b}/level"} for b in (20, 200, 2000))
    draws_grid = (
        {"alpha": 1.0, "beta": "200/level"},
        {"alpha": 1.0, "beta": "10000/level"},
        {"alpha": 1.0, "beta": "learn"},
    )
    _auto = ("beta",)
    _zero = ("alpha",)

    def __init__(self, alpha: Parameter = 1.0, beta: Parameter = "auto") -> None:
        self.alpha = alpha
        self.beta = beta

    def _fill_auto(self, level: float) -> None:
        if isinstance(self.beta, str):
            self.beta = 200.0 / level

    def _numbers(self, time: float = 1.0) -> tuple[Array, Array, Array]:
        alpha, beta = self._values("alpha", "beta")
        return alpha, beta / time, np.ones_like(beta)

    def _transition(self, h: Array, steps: float) -> Law | None:
        if np.any(np.asarray(self.alpha) == 0.0):  # an atom at zero, which SciPy does not support
            return None
        return super()._transition(h, steps)

    def _log_density(self, h: Array, before: Array) -> Array:
        """For α = 0 the value at h = 0 is the log probability of absorption there, −βh_{n−1}."""
        alpha, beta = self._values("alpha", "beta")
        absorbed = (h == 0.0) & (alpha == 0.0)
        return np.where(absorbed, -beta * before, super()._log_density(h, before))

    def _paths(self) -> tuple[Paths, str]:
        """A Bessel process is recurrent in up to two dimensions."""
        (alpha,) = self._values("alpha")
        if alpha == 0.0:
            return Paths.ABSORBED, ""
        return (Paths.EXPLODE if alpha > 1.0 else Paths.WANDER), ""
