"""Counts with a relative spread: v ~ negative binomial with mean e λ and size r."""

from __future__ import annotations

import copy

import numpy as np
from scipy.special import gammaln, xlogy

from .._typing import Array
from ..kernels.clumps import fill_log_rising, inlined, log_rising
from ..kernels.dense import Formulas
from ..kernels.floor import FLOOR
from ..kernels.logarithm import log, log_ratio
from .base import Likelihood
from .parametric import OneParameter, each
from .poisson import Poisson


@inlined
def _ratios(v: float, m: float, lam: float, theta: Array) -> tuple[float, float]:
    return m * v / lam, m * (v + theta[0]) / (lam + theta[0])


@inlined
def _value(v: float, m: float, lam: float, theta: Array) -> float:
    found = (v + theta[0]) * log_ratio(theta[0], lam) - v * log(lam)
    return m * (found - log_rising(v, 1.0, theta[1]))


class NegativeBinomial2(OneParameter, Poisson):
    """Negative binomial counts with size r: variance e λ + (e λ)²/r.

    A Poisson count whose rate varies by a relative spread of 1/√r, which counts with a large mean
    show and small ones hide. As r → ∞ it is `Poisson`. In contrast to `NegativeBinomial`, zeros
    are not linear in λ, so data are dense, and sums of entries have another law.

    Density: Γ(v+r)/(Γ(r) v!) r^r (e λ)^v/(r + e λ)^(v+r), v = 0, 1, 2, …
    In the objective: m ((v+r) log(1 + e λ/r) − v log λ − Σ_{j<v} log(1 + j/r)); dropped there are
    log v! and v log e.

    Majorizer (M), with (NB2): p = h Σ_f m w v/λ, q = Σ_f m e w (v+r)/(e λ+r), r = 0.

    Parameters
    ----------
    size : float or "learn", default="learn"
        r > 0. Larger is less noise. It is learned up to 1e8, where counts that vary no more than
        Poisson ones end.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(NegativeBinomial2(1.0).log_density(np.array(0.0), np.array(1.0))), 4)
    -0.6931
    """

    name = "negative_binomial_2"
    formulas = Formulas("negative_binomial_2", _ratios, _value)
    takes_single = weighs = additive = has_draws = False
    whole = True
    parameter = "size"
    bounds = 1e-4, 1e8
    limit = "Counts of infinite size are Poisson()."
    # The law of counts given their rates.
    _counts: Likelihood = Poisson()

    def __init__(self, size: float | str = "learn") -> None:
        self.size = size

    @property
    def theta(self) -> Array:  # type: ignore[override]
        return np.array([self.number, 1.0 / self.number])

    def with_counts(self, law: Likelihood) -> NegativeBinomial2:
        """A copy for samples, whose counts have this law given their rates."""
        found = copy.copy(self)
        found._counts = law
        return found

    def log_density(self, v: Array, lam: Array) -> Array:
        if self._counts.excess:
            raise ValueError(
                "The density of 'negative_binomial_2' with widened intervals has no closed form. "
                "Use intervals='model'."
            )
        lam = np.maximum(lam, FLOOR)
        return xlogy(v, lam) - self._cost(v, lam) - gammaln(v + 1.0)

    def saturated(self, v: Array, weight: Array | float) -> float:
        return float(np.sum(weight * (self._cost(v, v) - xlogy(v, v))))

    def _cost(self, v: Array, lam: Array) -> Array:
        """(v+r) log(1 + λ/r) − Σ_{j<v} log(1 + j/r)"""
        r = self.number
        return (v + r) * np.log1p(lam / r) - each(fill_log_rising, v, np.ones(()), 1.0 / r)

    def slope(self, v: Array, weight: Array, lam: Array) -> Array:
        return weight * (lam - v) / (lam * (1.0 + lam / self.number))

    def curvature(self, v: Array, weight: Array, lam: Array, *, expected: bool = False) -> Array:
        r = self.number
        if expected:
            return weight / (lam * (1.0 + lam / r))
        return weight * (v / lam**2 - (v + r) / (lam + r) ** 2)

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        r = self.number
        return self._counts.sample(lam * rng.standard_gamma(r, lam.shape) / r, rng)
