"""Counts: v ~ Poisson(e λ)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy

from .._typing import Array
from ..kernels.dense import Formulas, compiled
from ..kernels.floor import FLOOR
from ..kernels.logarithm import log
from ..metrics import kl_error
from .base import Likelihood, Majorizer


@compiled
def _ratios(v: float, m: float, lam: float, theta: Array) -> tuple[float, float]:
    return v / lam, m


@compiled
def _gain(v: float, m: float, lam: float, theta: Array) -> float:
    return v * log(lam)


@compiled
def _value(v: float, m: float, lam: float, theta: Array) -> float:
    return m * lam - _gain(v, m, lam, theta)


class Poisson(Likelihood):
    """Poisson counts, the likelihood of Kullback–Leibler NMF.

    Density: v ~ Poisson(e λ) with exposure e, v ≥ 0 (real numbers are accepted as pseudo-counts).
    In the objective: m (e λ − v log λ); dropped there are log v! and v log e.

    Majorizer (M): p = h Σ_f m w v/λ, q = Σ_f m e w, r = 0.

    Examples
    --------
    >>> import numpy as np
    >>> float(Poisson().log_density(np.array(0.0), np.array(2.0)))
    -2.0
    """

    name = "poisson"
    formulas = Formulas("poisson", _ratios, _value, _gain)
    takes_zeros = takes_single = additive = counts = own_unit = has_draws = True

    def majorizer(self, A: Array, B: Array, x: Array) -> Majorizer:
        return Majorizer(p=np.multiply(x, A, out=A), q=B, r=np.zeros_like(B))

    def error(self, observed: ArrayLike, predicted: ArrayLike) -> float:
        return kl_error(observed, predicted)

    def log_density(self, v: Array, lam: Array) -> Array:
        lam = np.maximum(lam, FLOOR)
        return xlogy(v, lam) - lam - gammaln(v + 1.0)

    def saturated(self, v: Array, weight: Array | float) -> float:
        return float(np.sum(weight * (v - xlogy(v, v))))

    def dropped(self, v: Array, weight: Array | float, exposure: Array | float) -> float:
        return -float(np.sum(weight * v * np.log(exposure)))

    def slope(self, v: Array, weight: Array, lam: Array) -> Array:
        return weight * (1.0 - v / lam)

    def curvature(self, v: Array, weight: Array, lam: Array, *, expected: bool = False) -> Array:
        return weight * (1.0 / lam if expected else v / lam**2)

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        counts = rng.poisson(np.minimum(lam, _EXACT)).astype(float)
        large = lam > _EXACT
        if np.any(large):
            mean = lam[large]
            counts[large] = np.rint(mean + np.sqrt(mean) * rng.standard_normal(mean.shape))
        return counts

    def split(self, counts: Array, rates: Array, rng: np.random.Generator) -> Array:
        # Multinomial. Shares of a row without any rate do not matter: its count is zero.
        sums = rates.sum(axis=1, keepdims=True)
        shares = np.divide(rates, sums, out=np.zeros_like(rates), where=sums > 0.0)
        large = counts > _EXACT
        found = rng.multinomial(np.where(large, 0.0, counts).astype(np.int64), shares).astype(float)
        for s in np.flatnonzero(large):
            # Normal approximation of Poisson counts x with means n p, given their sum n:
            # x + p (n − Σx). Counts that are not so large hardly change.
            expected = counts[s] * shares[s]
            x = self.sample(expected, rng)
            x = np.maximum(np.rint(x + shares[s] * (counts[s] - x.sum())), 0.0)
            x[np.argmax(expected)] += counts[s] - x.sum()
            found[s] = x
        return found


# Doubles represent all whole numbers up to this. Larger counts are drawn as rounded normals.
_EXACT = 2.0**53
