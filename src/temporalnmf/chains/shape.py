"""Chaining on the shape of a Gamma law."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from ..kernels.roots import quadratic_root, shape_root
from ..likelihoods.base import Array, Majorizer
from .base import Chain, Parameter, Scale, lost_power


class Shape(Chain):
    """Noise like that of a count: large activations are smooth, small ones jump or die.

    Density: h_n | h_{n−1} ~ Gamma(α h_{n−1}, β), mean (α/β) h_{n−1}, variance (α/β²) h_{n−1}; flat
    prior on h_1. Domain: α, β > 0. With ``map_scale="linear"`` the density of a small last step
    is unbounded at zero and the step is clamped there. Not scale-free: α counts in units of 1/h.

    Terms (S), (S3), with log Γ(1 + αh) besides at every step that is left again.
    Constants dropped: none.

    Parameters
    ----------
    alpha : float, array or "auto", default="auto"
        Larger is smoother: the relative step-to-step spread is 1/√(α h) for β = α. "auto" makes
        it one tenth at the level of the data.
    beta : float, array, "auto" or "learn", default="auto"
        Rate. "auto" is β = α, which preserves the mean.

    Examples
    --------
    >>> Shape(alpha=2.0).resolve(level=1.0, n_components=1).beta
    2.0
    """

    name = "shape"
    coupled = True
    _auto = ("alpha", "beta")
    _learn = ("beta",)

    def __init__(self, alpha: Parameter = "auto", beta: Parameter = "auto") -> None:
        self.alpha = alpha
        self.beta = beta

    def _fill_auto(self, level: float) -> None:
        if isinstance(self.alpha, str):
            self.alpha = 100.0 / level
        if isinstance(self.beta, str):
            self.beta = self.alpha

    def value(self, H: Array, aux: Array, scale: Scale) -> float:
        alpha, beta = self._columns("alpha", "beta")
        shape, after = alpha * H[:, :-1], H[:, 1:]
        return float(
            np.sum(
                gammaln(shape)
                - shape * np.log(beta)
                - (shape - lost_power(scale)) * np.log(after)
                + beta * after
            )
        )

    def terms(self, H: Array, aux: Array, scale: Scale) -> Majorizer:
        alpha, beta = self._columns("alpha", "beta")
        p, q, r = np.zeros((3, *H.shape))
        p[:, 1:] -= lost_power(scale)  # arriving at n
        p[:, :-1] += 1.0  # leaving n, log Γ(αh) = log Γ(1 + αh) − log(αh)
        p[:, 1:] += alpha * H[:, :-1]  # after the units, which cancel inside: αh may be tiny
        q[:, 1:] += beta
        q[:, :-1] -= alpha * np.log(beta * H[:, 1:])
        return Majorizer(p, q, r)

    def minimise(self, H: Array, aux: Array, total: Majorizer, steps: slice, scale: Scale) -> Array:
        (alpha,) = self._columns("alpha")
        p, q, r, h = total.p[:, steps], total.q[:, steps], total.r[:, steps], H[:, steps]
        left = np.arange(H.shape[1])[steps] < H.shape[1] - 1  # steps that are left again
        updated = np.empty_like(h)
        updated[:, left] = shape_root(p[:, left], q[:, left], r[:, left], alpha, h[:, left])
        updated[:, ~left] = quadratic_root(p[:, ~left], q[:, ~left], r[:, ~left], h[:, ~left])
        return updated

    def _estimate(self, name: str, H: Array, aux: Array) -> Array:
        (alpha,) = self._columns("alpha")
        return alpha[:, 0] * H[:, :-1].sum(axis=1) / H[:, 1:].sum(axis=1)

    def conditional_mean(self, h: Array) -> Array:
        alpha, beta = self._columns("alpha", "beta")
        return (alpha / beta)[:, 0] * h
