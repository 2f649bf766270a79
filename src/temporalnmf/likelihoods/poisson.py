"""Counts: v ~ Poisson(e λ)."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

from ..kernels.floor import FLOOR
from .base import Array, Likelihood, Majorizer


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
    power = 1
    takes_zeros = True
    additive = True

    def weigh(
        self, v: Array, weight: Array | float, exposure: Array | float
    ) -> tuple[Array, Array]:
        return np.multiply(weight, v), np.multiply(weight, exposure)

    def majorizer(self, A: Array, B: Array, x: Array) -> Majorizer:
        return Majorizer(p=np.multiply(x, A, out=A), q=B, r=np.zeros_like(B))

    def log_density(self, v: Array, lam: Array) -> Array:
        lam = np.maximum(lam, FLOOR)
        return xlogy(v, lam) - lam - gammaln(v + 1.0)

    def saturated(self, v: Array, weight: Array | float, exposure: Array | float) -> float:
        return float(np.sum(weight * (v - xlogy(v, v / exposure))))

    def slope(self, v: Array, weight: Array, exposure: float, lam: Array) -> Array:
        return weight * (exposure - v / lam)

    def curvature(
        self, v: Array, weight: Array, exposure: float, lam: Array, *, expected: bool = False
    ) -> Array:
        return weight * (exposure / lam if expected else v / lam**2)

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        return rng.poisson(np.minimum(lam, _LARGEST)).astype(float)


# NumPy draws no counts beyond 2^63.
_LARGEST = 1e18
