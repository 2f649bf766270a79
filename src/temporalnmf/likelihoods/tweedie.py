"""Amounts with exact zeros: v ~ Tweedie with mean e λ and variance φ (e λ)^(2−β).

Above β = 1 no distribution has the β-divergence; there is the divergence only.
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from .._typing import Array
from ..kernels.dense import Formulas, compiled
from ..kernels.floor import FLOOR
from ..kernels.powers import power
from ..kernels.variates.shared import log1p_minus, stirling_error
from .base import Majorizer
from .exponential import Exponential
from .local import LocalBound
from .parametric import OneParameter, each
from .poisson import Poisson

# The sum over the number of Gamma variables is sampled, 1.3 times per standard deviation, if this
# is the curvature at its maximum, or more: by Poisson's summation formula it is exact to rounding.
_SMOOTH, _PER_DEVIATION = 100.0, 1.3
_NEGLIGIBLE = -40.0
# Terms of the series with coefficients in advance, where they are in `theta`, and the logarithm of
# the largest numbers in their sum.
_TERMS, _FIRST, _LARGEST = 48, 3, 600.0


@compiled
def _ratios(v: float, m: float, lam: float, theta: Array) -> tuple[float, float]:
    b = m * theta[1] * power(lam, theta[0] - 1.0)
    return b * v / lam, b


@compiled
def _value(v: float, m: float, lam: float, theta: Array) -> float:
    found = theta[1] * divergence(v, lam, theta[0])
    return m * (found - log_scale(v, theta))


@compiled
def divergence(v: float, lam: float, beta: float) -> float:
    """The β-divergence λ^β/β + v λ^(β−1)/(1−β) − v^β/(β(1−β)), also where β is near 0 or 1."""
    level, rest = math.exp(beta * math.log(lam)), 1.0 - beta
    if v == 0.0:
        return level / beta
    t = v / lam
    u = math.log(t) if t > 0.0 else math.log(v) - math.log(lam)
    if beta < 0.5:
        return level / rest * (t - 1.0 - math.expm1(beta * u) / beta)
    return level / beta * (1.0 - t - t * math.expm1(-rest * u) / rest)


@compiled
def log_scale(v: float, theta: Array) -> float:
    """log(v p(v | v)), 0 for v = 0, and where there is no p.

    Given their number j, v is the sum of j Gamma variables of shape α = β/(1−β), so that

        v p(v | v) = e^−c Σ_j x^j / (j! Γ(jα)),   log x = log j₀/(1−β) + α log α,

    j₀ = v^β/(φβ), c = j₀/(1−β) (Dunn and Smyth 2005). Many terms are summed in `_log_sum`.
    """
    if v == 0.0 or theta[0] > 1.0:
        return 0.0
    rest, alpha, last = 1.0 - theta[0], theta[2], theta.size - 1
    center = math.exp(theta[0] * math.log(v)) * theta[1] / theta[0]
    curvature = center / rest
    log_x = math.log(center) / rest + alpha * math.log(alpha)
    terms = last - _FIRST + 1
    highest = terms * log_x
    few = center < terms and curvature < _LARGEST and highest < _LARGEST
    if not few or highest + math.log(theta[last]) - curvature > _NEGLIGIBLE:
        return _log_sum(center, curvature, rest, alpha)
    x, total = math.exp(log_x), 0.0
    for i in range(last, _FIRST - 1, -1):
        total = total * x + theta[i]
    return math.log(total) + log_x - curvature


@compiled
def _log_sum(center: float, curvature: float, rest: float, alpha: float) -> float:
    """`log_scale` around the largest terms.

    With Stirling's formula for log j! and log Γ(jα), whose errors are s(j) and s(jα), the sum is

        √α/(2π) Σ_j exp(−c (t log t − t + 1) − s(j) − s(jα)),   t = j/j₀,

    with an exponent that is concave in j.
    """
    step = 1.0
    if curvature > _SMOOTH:
        step = max(math.floor(math.sqrt(center * rest) / _PER_DEVIATION), 1.0)
    j = max(math.floor(center + 0.5), 1.0)
    top = _log_term(j, alpha, center, curvature)
    for way in (step, -step):  # to the largest term
        following = top
        while j + way >= 1.0 and following >= top:
            following = _log_term(j + way, alpha, center, curvature)
            if following >= top:
                j, top = j + way, following
    total = 1.0
    for way in (step, -step):
        i, term = j + way, 0.0
        while i >= 1.0 and term > _NEGLIGIBLE:
            term = _log_term(i, alpha, center, curvature) - top
            total += math.exp(term)
            i += way
    return 0.5 * math.log(alpha) - math.log(2.0 * math.pi) + top + math.log(step * total)


@compiled
def _log_term(j: float, alpha: float, center: float, curvature: float) -> float:
    u = (j - center) / center
    return (
        -curvature * ((1.0 + u) * log1p_minus(u) + u * u)
        - stirling_error(j)
        - stirling_error(j * alpha)
    )


@compiled
def _fill_divergence(v: Array, lam: Array, beta: float, out: Array) -> None:
    for i in range(v.size):
        out[i] = divergence(v[i], lam[i], beta)


@compiled
def _fill_log_scale(v: Array, lam: Array, theta: Array, out: Array) -> None:
    for i in range(v.size):
        out[i] = log_scale(v[i], theta)


class Tweedie(OneParameter, Exponential):
    """Tweedie distribution with variance φ (e λ)^(2−β), 0 < β < 1, for amounts with exact zeros.

    With 1 < β < 2 the β-divergence alone, between Poisson and `Gaussian`: no distribution has it,
    so there are point estimates, but no intervals and no `score`.

    A Poisson number of Gamma variables: rain of a day, claims of a month, purchases. The likelihood
    of NMF with the β-divergence. As β → 1 it becomes Poisson (times φ), as β → 0 `Gamma` with shape
    1/φ. φ has the unit of the data to the power of β.

    Density: exp(−d/φ) v^−1 a(v^β/φ) for v > 0, exp(−(e λ)^β/(φβ)) for v = 0, with the β-divergence
    d = (e λ)^β/β + v (e λ)^(β−1)/(1−β) − v^β/(β(1−β)); a is a series.
    In the objective: m (d/φ − log a); dropped is log v of positive values.

    Majorizer (M): p = 0, q = Σ_f m w e^β λ^(β−1)/φ, r = h² Σ_f m w v e^(β−1) λ^(β−2)/φ. Above
    β = 1 (LB1), with A = r/h² and B = q.

    Parameters
    ----------
    beta : float, default=0.5
        0 < β < 1, or 1 < β < 2. The power of the variance is 2 − β.
    dispersion : float or "learn", default="learn"
        φ > 0. It is learned from 1e-12 to 1e12. Above β = 1 a number: the data count 1/φ times
        against the chain, and nothing says how often they should.

    Examples
    --------
    >>> import numpy as np
    >>> float(Tweedie(0.5, 1.0).log_density(np.array(0.0), np.array(4.0)))
    -4.0
    """

    name = "tweedie"
    formulas = in_blocks = Formulas("tweedie", _ratios, _value)
    weighs = False
    takes_zeros = own_unit = True
    parameter = "dispersion"
    bounds = 1e-12, 1e12
    levels = 1e-12, 1e12  # beyond, the dispersion is too far from where learning starts

    def __init__(self, beta: float = 0.5, dispersion: float | str = "learn") -> None:
        self.beta = beta
        self.dispersion = dispersion

    @property
    def has_law(self) -> bool:  # type: ignore[override]
        return self.beta < 1.0

    @property
    def local(self) -> bool:  # type: ignore[override]
        return self.beta > 1.0

    @property
    def theta(self) -> Array:  # type: ignore[override]
        if not self.has_law:
            return np.array([self.beta, 1.0 / self.number])
        alpha, j = self.beta / (1.0 - self.beta), np.arange(1.0, _TERMS + 1.0)
        logs = -gammaln(j + 1.0) - gammaln(j * alpha)
        terms = np.exp(logs[: max(int(np.sum(logs > -_LARGEST)), 1)])
        return np.concatenate([[self.beta, 1.0 / self.number, alpha], terms])

    def check(self) -> None:
        super().check()
        number = isinstance(self.beta, Real) and not isinstance(self.beta, bool)
        if not (number and 0.0 < self.beta < 2.0 and self.beta != 1.0):
            raise ValueError(
                f"Tweedie(beta={self.beta!r}): give a number between 0 and 1, or between 1 and 2, "
                f"ends excluded. Use Gamma or Exponential for 0, Poisson for 1, and Gaussian for 2."
            )
        if not self.has_law and isinstance(self.dispersion, str):
            raise ValueError(
                f"Tweedie(beta={self.beta!r}, dispersion={self.dispersion!r}): no distribution has "
                f"this beta, so there is no dispersion to learn. Give a number, which divides the "
                f"divergence and so weighs the data against the chain; 1.0 is plain NMF."
            )

    def majorizer(self, A: Array, B: Array, x: Array) -> Majorizer:
        return LocalBound(A, B, x).majorizer if self.local else super().majorizer(A, B, x)

    def log_density(self, v: Array, lam: Array) -> Array:
        self.check_law("A density")
        v, lam = np.broadcast_arrays(v, np.maximum(lam, FLOOR))
        found = self._log_scales(v) - each(_fill_divergence, v, lam, self.beta) / self.number
        return found - np.log(np.where(v > 0.0, v, 1.0))

    def _log_scales(self, v: Array) -> Array:
        return each(_fill_log_scale, v, v, self.theta)

    def error(self, observed: ArrayLike, predicted: ArrayLike) -> float:
        lam = np.maximum(np.asarray(predicted, dtype=float), np.finfo(float).eps)
        return float(np.sum(each(_fill_divergence, np.asarray(observed), lam, self.beta)))

    def saturated(self, v: Array, weight: Array | float) -> float:
        return -float(np.sum(weight * self._log_scales(v)))

    def dropped(self, v: Array, weight: Array | float, exposure: Array | float) -> float:
        return 0.0

    def slope(self, v: Array, weight: Array, lam: Array) -> Array:
        return weight * lam ** (self.beta - 1.0) * (1.0 - v / lam) / self.number

    def curvature(self, v: Array, weight: Array, lam: Array, *, expected: bool = False) -> Array:
        beta = self.beta
        factor = 1.0 if expected else (2.0 - beta) * v / lam - (1.0 - beta)
        return weight * lam ** (beta - 2.0) * factor / self.number

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        self.check_law("A sample")
        beta, phi = self.beta, self.number
        number = Poisson().sample(lam**beta / (phi * beta), rng)
        mean = phi * beta * lam ** (1.0 - beta)  # of a Gamma variable
        return mean * rng.standard_gamma(number * beta / (1.0 - beta)) * (1.0 - beta) / beta
