"""Power spectra and waiting times: v ~ Exponential with mean e λ."""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..kernels.dense import Formulas, compiled
from ..kernels.floor import FLOOR
from ..kernels.logarithm import log
from .base import Likelihood, Majorizer


@compiled
def _ratios(v: float, m: float, lam: float, theta: Array) -> tuple[float, float]:
    inverse = 1.0 / lam
    return v * inverse * inverse, m * inverse


@compiled
def _value(v: float, m: float, lam: float, theta: Array) -> float:
    return v * (1.0 / lam) + m * log(lam)


# In blocks divisions are vectorised.


@compiled
def _ratios_in_blocks(v: float, m: float, lam: float, theta: Array) -> tuple[float, float]:
    return v / (lam * lam), m / lam


@compiled
def _value_in_blocks(v: float, m: float, lam: float, theta: Array) -> float:
    return v / lam + m * log(lam)


class Exponential(Likelihood):
    """Exponential distribution with mean e λ, the likelihood of Itakura–Saito NMF.

    Density: (1/eλ) exp(−v/eλ), v > 0; zeros are outside its domain, so data are dense.
    In the objective: m (v/eλ + log λ); dropped there is log e.

    Majorizer (M): p = 0, q = Σ_f m w/λ, r = h² Σ_f m w v/(e λ²).

    Examples
    --------
    >>> import numpy as np
    >>> float(Exponential().log_density(np.array(3.0), np.array(1.0)))
    -3.0
    """

    name = "exponential"
    formulas = Formulas("exponential", _ratios, _value)
    in_blocks = Formulas("exponential", _ratios_in_blocks, _value_in_blocks)

    def majorizer(self, A: Array, B: Array, x: Array) -> Majorizer:
        A *= x  # x² may overflow where nothing is observed and A is zero
        A *= x
        return Majorizer(p=np.zeros_like(A), q=B, r=A)

    def log_density(self, v: Array, lam: Array) -> Array:
        lam = np.maximum(lam, FLOOR * np.minimum(v, 1.0))  # far below v in any unit
        return -v / lam - np.log(lam)

    def saturated(self, v: Array, weight: Array | float) -> float:
        # Hidden entries hold zero, which has no logarithm; their weight is zero too.
        return float(np.sum(weight * (1.0 + np.log(np.where(v > 0.0, v, 1.0)))))

    def dropped(self, v: Array, weight: Array | float, exposure: Array | float) -> float:
        return float(np.sum(weight * np.log(exposure) * np.ones_like(v)))

    def slope(self, v: Array, weight: Array, lam: Array) -> Array:
        return weight * (1.0 - v / lam) / lam

    def curvature(self, v: Array, weight: Array, lam: Array, *, expected: bool = False) -> Array:
        return weight * (1.0 if expected else 2.0 * v / lam - 1.0) / lam**2

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        return lam * rng.standard_exponential(lam.shape)
