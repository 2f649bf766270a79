"""Chaining on the rate of a Gamma law."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from ..likelihoods.base import Array, Majorizer
from .base import Chain, Parameter, Scale, lost_power


class Rate(Chain):
    """Multiplicative noise: each step is the last one times a Gamma variable.

    Density: h_n | h_{n−1} ~ Gamma(α, β/h_{n−1}), mean (α/β) h_{n−1}, relative spread 1/√α; flat
    prior on h_1. Domain: α, β > 0; ``map_scale="linear"`` needs α ≥ 1. The law is
    scale-free: it does not know the level of h.

    Terms (R1)–(R3). Constants dropped: none.

    Parameters
    ----------
    alpha : float or array, default=100.0
        Shape. Larger is smoother: the step-to-step spread is about 1/√α.
    beta : float, array, "auto" or "learn", default="auto"
        Rate. "auto" is β = α, which preserves the mean.

    Examples
    --------
    >>> import numpy as np
    >>> chain = Rate(alpha=4.0, beta=2.0)
    >>> chain.forecast(np.array([3.0]), steps=2, point="mean", scale="log")
    array([[ 6., 12.]])
    """

    name = "rate"
    sweeps = 5  # cheap, and news travel one step per sweep
    coupled = True
    _auto = _learn = ("beta",)

    def __init__(self, alpha: Parameter = 100.0, beta: Parameter = "auto") -> None:
        self.alpha = alpha
        self.beta = beta

    def _fill_auto(self, level: float) -> None:
        if isinstance(self.beta, str):
            self.beta = self.alpha

    def check(self, scale: Scale) -> None:
        if scale == "linear" and np.any(np.asarray(self.alpha) < 1.0):
            raise ValueError(
                f"Rate(alpha={self.alpha}) has no mode on the linear scale, which needs "
                f"alpha >= 1. Use map_scale='log', or a larger alpha."
            )

    def value(self, H: Array, aux: Array, scale: Scale) -> float:
        alpha, beta = self._columns("alpha", "beta")
        before, after = H[:, :-1], H[:, 1:]
        return float(
            np.sum(
                gammaln(alpha)
                + alpha * np.log(before / beta)
                - (alpha - lost_power(scale)) * np.log(after)
                + beta * after / before
            )
        )

    def terms(self, H: Array, aux: Array, scale: Scale) -> Majorizer:
        alpha, beta = self._columns("alpha", "beta")
        p, q, r = np.zeros((3, *H.shape))
        p[:, 1:] += alpha - lost_power(scale)  # arriving at n
        q[:, 1:] += beta / H[:, :-1]
        p[:, :-1] -= alpha  # leaving n
        r[:, :-1] += beta * H[:, 1:]
        return Majorizer(p, q, r)

    def _estimate(self, name: str, H: Array, aux: Array) -> Array:
        (alpha,) = self._columns("alpha")
        return alpha[:, 0] / np.mean(H[:, 1:] / H[:, :-1], axis=1)

    def conditional_mean(self, h: Array) -> Array:
        alpha, beta = self._columns("alpha", "beta")
        return (alpha / beta)[:, 0] * h
