"""Counts that clump: v ~ negative binomial with mean e λ and variance (1 + d) e λ."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from .._typing import Array
from ..kernels.clumps import (
    fill_curvature,
    fill_inverse_sum,
    fill_log_rising,
    inlined,
    inverse_sum,
    log_rising,
)
from ..kernels.dense import Formulas
from ..kernels.floor import FLOOR
from ..kernels.variates.gammas import gamma_shares
from .base import Likelihood
from .negative_binomial_2 import NegativeBinomial2
from .parametric import OneParameter, each
from .poisson import Poisson
from .underdispersed import Underdispersed

# Below the first d counts are Poisson to rounding; above the last nothing is left of their sizes.
_LEAST, _MOST = 1e-8, 1e8


@inlined
def _ratios(v: float, m: float, lam: float, theta: Array) -> tuple[float, float]:
    return m * theta[1] * inverse_sum(v, lam * theta[1]), m * theta[2]


@inlined
def _gain(v: float, m: float, lam: float, theta: Array) -> float:
    return m * (log_rising(v, lam, theta[0]) - v * theta[3])


@inlined
def _value(v: float, m: float, lam: float, theta: Array) -> float:
    return m * (theta[2] * lam - log_rising(v, lam, theta[0]) + v * theta[3])


class NegativeBinomial(OneParameter, Poisson):
    """Negative binomial counts with variance (1 + d) times the mean (NB1).

    A Poisson number of clumps, each with a logarithmic number of counts. The sum of entries has
    the same law and the same d. As d → 0 it is `Poisson`.

    Density: Γ(v+x)/(Γ(x) v!) d^v/(1+d)^(v+x), x = e λ/d, v = 0, 1, 2, …
    In the objective: m (e λ log(1+d)/d − Σ_{j<v} log(e λ + jd) + v log(1+d) + v log e); dropped is
    log v!.

    Majorizer (M): that of Poisson for the expected numbers of clumps v* = Σ_{j<v} x/(x+j) with
    exposure e log(1+d)/d: p = h Σ_f m w v*/λ, q = Σ_f m e w log(1+d)/d, r = 0.

    Parameters
    ----------
    dispersion : float or "learn", default="learn"
        d > 0, how much larger the variance is than that of Poisson counts, relative to it. It is
        learned from 1e-8 to 1e8; counts that vary less than Poisson ones have the least. In
        samples of a posterior it is an array, with one d per row of λ.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(NegativeBinomial(1.0).log_density(np.array(0.0), np.array(2.0))), 4)
    -1.3863
    """

    name = "negative_binomial"
    formulas = Formulas("negative_binomial", _ratios, _value, _gain, costly=True)
    takes_single = weighs = False
    whole = True
    parameter = "dispersion"
    bounds = _LEAST, _MOST
    limit = "Counts without dispersion are Poisson()."

    def __init__(self, dispersion: float | str | Array = "learn") -> None:
        self.dispersion = dispersion

    @property
    def theta(self) -> Array:  # type: ignore[override]
        d = self.number
        return np.array([d, 1.0 / d, self.cost, np.log1p(d)])

    @property
    def excess(self) -> float:  # type: ignore[override]
        return self.number

    @property
    def cost(self) -> float:  # type: ignore[override]
        return float(np.log1p(self.number) / self.number)

    def log_density(self, v: Array, lam: Array) -> Array:
        lam = np.maximum(lam, FLOOR)
        if isinstance(self.dispersion, np.ndarray):
            return np.stack(
                [self.at(d).log_density(v, r) for d, r in zip(self.dispersion, lam, strict=False)]
            )
        rising = each(fill_log_rising, v, lam, self.number)
        return rising - v * np.log1p(self.number) - self.cost * lam - gammaln(v + 1.0)

    def saturated(self, v: Array, weight: Array | float) -> float:
        # The best rate of a count solves Σ 1/(λ+jd) = log(1+d)/d. The left-hand side is convex
        # and falls, so Newton's method from its left, where the first term alone is as large,
        # rises to the root.
        counts, which = np.unique(v, return_inverse=True)
        weights = np.bincount(which.ravel(), np.broadcast_to(weight, v.shape).ravel())
        weights, counts = weights[counts > 0.0], counts[counts > 0.0]
        lam = np.full(len(counts), 1.0 / self.cost)
        for _ in range(100):
            excess = each(fill_inverse_sum, counts, lam / self.number) / self.number - self.cost
            step = excess / each(fill_curvature, counts, lam, self.number)
            lam += step
            if np.all(np.abs(step) <= 1e-9 * lam):
                break
        rising = each(fill_log_rising, counts, lam, self.number)
        return float(weights @ (self.cost * lam - rising + counts * np.log1p(self.number)))

    def slope(self, v: Array, weight: Array, lam: Array) -> Array:
        return weight * (self.cost - each(fill_inverse_sum, v, lam / self.number) / self.number)

    def curvature(self, v: Array, weight: Array, lam: Array, *, expected: bool = False) -> Array:
        if expected:  # a lower bound, by Cramér and Rao
            return weight / ((1.0 + self.number) * lam)
        return weight * each(fill_curvature, v, lam, self.number)

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        d = self._by_row(lam)
        return super().sample(d * rng.standard_gamma(lam / d), rng)

    def split(self, counts: Array, rates: Array, rng: np.random.Generator) -> Array:
        return super().split(counts, gamma_shares(rates / self._by_row(rates), rng), rng)

    @property
    def each(self) -> Array | float:
        """d, or the d of each row."""
        return self.dispersion if isinstance(self.dispersion, np.ndarray) else self.number

    def _by_row(self, lam: Array) -> Array | float:
        """d to multiply with rates, of which there may be the first rows only."""
        d = self.each
        return d[: len(lam)].reshape(-1, *[1] * (lam.ndim - 1)) if isinstance(d, np.ndarray) else d


def dispersed(likelihood: Likelihood, dispersion: float) -> Likelihood:
    """A law of counts with more variance, `dispersion` times the mean; less if it is negative."""
    if dispersion == 0.0:
        return likelihood
    if dispersion < 0.0:
        return Underdispersed(-dispersion)
    if isinstance(likelihood, NegativeBinomial2):
        return likelihood.with_counts(NegativeBinomial(dispersion))
    own = likelihood.each if isinstance(likelihood, NegativeBinomial) else 0.0
    return NegativeBinomial(own + dispersion)
