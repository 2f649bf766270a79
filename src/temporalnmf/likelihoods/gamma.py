"""Positive values with relative errors: v ~ Gamma with mean e λ and shape a."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from .._typing import Array
from ..kernels.dense import Formulas, compiled
from ..kernels.floor import FLOOR
from ..kernels.logarithm import log
from .base import Likelihood
from .exponential import Exponential
from .parametric import OneParameter

# Hidden entries hold zero, which has no logarithm; their weight is zero, too.
_LEAST = 1e-300


@compiled
def _ratios(v: float, m: float, lam: float, theta: Array) -> tuple[float, float]:
    b = m * theta[0] / lam
    return b * v / lam, b


@compiled
def _value(v: float, m: float, lam: float, theta: Array) -> float:
    t = max(v / lam, _LEAST)
    return m * (theta[0] * (t - log(t)) + theta[1])


class Gamma(OneParameter, Exponential):
    """Gamma distribution with mean e λ and shape a: standard deviation e λ/√a.

    With a = 1 it is `Exponential`. The mode and the reconstruction are those of Itakura–Saito NMF
    with a weight of a on the data.

    Density: a^a/(Γ(a) (eλ)^a) v^(a−1) exp(−a v/eλ), v > 0, so data are dense.
    In the objective: m (a (t − log t) + log Γ(a) − a log a), t = v/eλ; dropped is log v.

    Majorizer (M): a times that of `Exponential`.

    Parameters
    ----------
    shape : float or "learn", default="learn"
        a > 0. Larger is less noise: the relative standard deviation is 1/√a.

    Examples
    --------
    >>> import numpy as np
    >>> float(Gamma(1.0).log_density(np.array(3.0), np.array(1.0)))
    -3.0
    """

    name = "gamma"
    formulas = in_blocks = Formulas("gamma", _ratios, _value)
    weighs = False
    parameter = "shape"
    bounds = 1e-4, 1e8

    def __init__(self, shape: float | str = "learn") -> None:
        self.shape = shape

    # What the formulas multiply t − log t and 1 by; None: as the shape requires.
    _factors: Array | None = None

    @property
    def theta(self) -> Array:  # type: ignore[override]
        if self._factors is not None:
            return self._factors
        return np.array([self.number, self._constant])

    @property
    def _constant(self) -> float:
        return float(gammaln(self.number) - self.number * np.log(self.number))

    def learn(
        self, value: Callable[[Likelihood], float], present: float | None = None
    ) -> tuple[Likelihood, float]:
        """The maximum-likelihood shape: log a − ψ(a) = s − 1, s the mean of t − log t."""
        n, ns = (value(self._summing(*factors)) for factors in ((0.0, 1.0), (1.0, 0.0)))
        excess, (low, high) = ns / n - 1.0, self.bounds
        if excess <= np.log(high) - digamma(high):
            found = self.at(high)
        elif excess >= np.log(low) - digamma(low):
            found = self.at(low)
        else:
            found = self.at(brentq(lambda a: np.log(a) - digamma(a) - excess, low, high))
        return found, found.number * ns + found._constant * n

    def _summing(self, of_ratios: float, of_weights: float) -> Gamma:
        """A copy whose value is a sum of m (t − log t) and m with these factors."""
        found = copy.copy(self)
        found._factors = np.array([of_ratios, of_weights])
        return found

    def log_density(self, v: Array, lam: Array) -> Array:
        lam = np.maximum(lam, FLOOR * np.minimum(v, 1.0))  # far below v in any unit
        t = v / lam
        return self.number * (np.log(t) - t) - self._constant - np.log(v)

    def saturated(self, v: Array, weight: Array | float) -> float:
        return float(np.sum(weight * np.ones_like(v)) * (self.number + self._constant))

    def dropped(self, v: Array, weight: Array | float, exposure: Array | float) -> float:
        return 0.0

    def slope(self, v: Array, weight: Array, lam: Array) -> Array:
        return self.number * super().slope(v, weight, lam)

    def curvature(self, v: Array, weight: Array, lam: Array, *, expected: bool = False) -> Array:
        return self.number * super().curvature(v, weight, lam, expected=expected)

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        return lam * rng.standard_gamma(self.number, lam.shape) / self.number
