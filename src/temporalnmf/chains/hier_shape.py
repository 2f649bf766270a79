"""Chaining on the shape of a Gamma law through an auxiliary count."""

from __future__ import annotations

import numpy as np

from ..kernels.special import bessel_ratio, log_bessel_scaled
from ..likelihoods.base import Array, Majorizer
from .base import Chain, Parameter, Scale, lost_power


class HierShape(Chain):
    """A random walk with count-like noise and a slow upward drift.

    Density: z_n | h_{n−1} ~ Poisson(β h_{n−1}), h_n | z_n ~ Gamma(α + z_n, β); mean h_{n−1} + α/β,
    variance (2/β) h_{n−1} + α/β²; flat prior on h_1. Domain: α, β > 0; with ``map_scale="linear"``
    and α < 1 the density is unbounded at zero. The paper leaves this chain out of its
    algorithms; here the counts z are integrated out, and EM needs only their means, which are
    ratios of Bessel functions.

    Terms (HS0), (HS1); the value is the marginal −log p(h_n | h_{n−1}). Constants dropped: none.

    Parameters
    ----------
    alpha : float or array, default=1.0
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
    _auto = _learn = ("beta",)

    def __init__(self, alpha: Parameter = 1.0, beta: Parameter = "auto") -> None:
        self.alpha = alpha
        self.beta = beta

    def _fill_auto(self, level: float) -> None:
        if isinstance(self.beta, str):
            self.beta = 200.0 / level

    def auxiliary(self, H: Array, scale: Scale) -> Array:
        alpha, beta = self._columns("alpha", "beta")
        x = 2.0 * beta * np.sqrt(H[:, :-1] * H[:, 1:])
        return 0.5 * x * bessel_ratio(alpha - 1.0, x)  # (HS0)

    def bottomless(self) -> bool:
        return bool(np.any(np.asarray(self.alpha) < 1.0))

    def value(self, H: Array, aux: Array, scale: Scale) -> float:
        alpha, beta = self._columns("alpha", "beta")
        before, after = H[:, :-1], H[:, 1:]
        x = 2.0 * beta * np.sqrt(before * after)
        jacobian = 0.0 if scale == "linear" else np.log(after)
        return float(
            np.sum(
                -np.log(beta)
                - 0.5 * (alpha - 1.0) * np.log(after / before)
                + beta * (np.sqrt(after) - np.sqrt(before)) ** 2  # β(h + h′) − x
                - log_bessel_scaled(alpha - 1.0, x)
                - jacobian
            )
        )

    def terms(self, H: Array, aux: Array, scale: Scale) -> Majorizer:
        alpha, beta = self._columns("alpha", "beta")
        p, q, r = np.zeros((3, *H.shape))
        p[:, 1:] += alpha - lost_power(scale) + aux  # arriving at n
        q[:, 1:] += beta
        p[:, :-1] += aux  # leaving n
        q[:, :-1] += beta
        return Majorizer(p, q, r)

    def _estimate(self, name: str, H: Array, aux: Array) -> Array:
        (alpha,) = self._columns("alpha")
        return (alpha + 2.0 * aux).sum(axis=1) / (H[:, :-1] + H[:, 1:]).sum(axis=1)

    def conditional_mean(self, h: Array) -> Array:
        alpha, beta = self._columns("alpha", "beta")
        return h + (alpha / beta)[:, 0]
