"""Values with a constant absolute error: v ~ Normal with mean e λ and variance σ²."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array
from ..kernels.dense import Formulas, compiled
from .base import Likelihood, Majorizer
from .local import LocalBound
from .parametric import OneParameter

# Least learned variance, relative to the mean square of the data. Rounding of an exact fit is far
# below it.
_LEAST = 1e-12
# Forecasts of a chain that explodes are farther from the data than a square can be.
_FARTHEST = 1e150


@compiled
def _ratios(v: float, m: float, lam: float, theta: Array) -> tuple[float, float]:
    weight = 2.0 * theta[0] * m
    return weight * v, weight * lam


@compiled
def _value(v: float, m: float, lam: float, theta: Array) -> float:
    return m * (theta[0] * (v - lam) * (v - lam) + theta[1] + theta[2] * v * v)


def _square(x: Array) -> Array:
    found: Array = np.clip(x, -_FARTHEST, _FARTHEST) ** 2
    return found


class Gaussian(OneParameter):
    """Normal distribution with mean e λ and variance σ², the likelihood of Frobenius NMF.

    All entries have the same absolute error. Data are not negative, but the distribution is not
    confined to them: samples, and lower ends of intervals, may be below zero where the mean is
    within a few σ of it.

    Density: (2πσ²)^−½ exp(−(v − e λ)²/2σ²). Zeros are not linear in λ, so data are dense.
    In the objective: m ((v − e λ)²/2σ² + ½ log 2πσ²); nothing is dropped.

    Majorizer (LB1), with A = Σ_f m w e v/σ² and B = Σ_f m w e² λ/σ².

    Parameters
    ----------
    variance : float or "learn", default="learn"
        σ² > 0, in the unit of the data squared. Learned by maximum likelihood, hence a little too
        small if there are few entries per activation; at least 1e-12 of the mean square of the
        data, where an exact fit would lead to zero.

    Examples
    --------
    >>> Gaussian(variance=4.0).error([1.0, 5.0], [3.0, 5.0])
    2.0
    """

    name = "gaussian"
    formulas = in_blocks = Formulas("gaussian", _ratios, _value)
    weighs = False
    takes_zeros = own_unit = local = True
    parameter = "variance"
    bounds = 1e-40, 1e40
    levels = 1e-12, 1e12  # their squares are sums of the kernels

    def __init__(self, variance: float | str = "learn") -> None:
        self.variance = variance

    # What the formulas multiply (v − λ)², 1 and v² by; None: as the variance requires.
    _factors: Array | None = None

    @property
    def theta(self) -> Array:  # type: ignore[override]
        if self._factors is not None:
            return self._factors
        return np.array([0.5 / self.number, self._constant, 0.0])

    @property
    def _constant(self) -> float:
        return float(0.5 * np.log(2.0 * np.pi * self.number))

    def learn(
        self, value: Callable[[Likelihood], float], present: float | None = None
    ) -> tuple[Likelihood, float]:
        """The maximum-likelihood variance: the mean of m (v − e λ)²."""
        squares, n, of_data = (value(self._summing(factors)) for factors in np.eye(3))
        found = self.at(max(squares, _LEAST * of_data) / n)
        return found, 0.5 * squares / found.number + found._constant * n

    def _summing(self, factors: Array) -> Gaussian:
        """A copy whose value is a sum of m (v − e λ)², m and m v² with these factors."""
        found = copy.copy(self)
        found._factors = factors
        return found

    def majorizer(self, A: Array, B: Array, x: Array) -> Majorizer:
        return LocalBound(A, B, x).majorizer

    def error(self, observed: ArrayLike, predicted: ArrayLike) -> float:
        """Half the squared error."""
        difference = np.asarray(observed, dtype=float) - np.asarray(predicted, dtype=float)
        return float(0.5 * np.sum(_square(difference)))

    def log_density(self, v: Array, lam: Array) -> Array:
        return -0.5 * _square((v - lam) / np.sqrt(self.number)) - self._constant

    def saturated(self, v: Array, weight: Array | float) -> float:
        return float(np.sum(weight * np.ones_like(v)) * self._constant)

    def slope(self, v: Array, weight: Array, lam: Array) -> Array:
        return weight * (lam - v) / self.number

    def curvature(self, v: Array, weight: Array, lam: Array, *, expected: bool = False) -> Array:
        return weight * np.ones_like(lam) / self.number

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        return lam + np.sqrt(self.number) * rng.standard_normal(lam.shape)
