"""Sums over the j < v of a negative binomial count v with variance λ(1+d), x = λ/d.

    inverse_sum(v, x)     = Σ 1/(x+j)          = ψ(x+v) − ψ(x)
    log_rising(v, λ, d)   = Σ log(λ+jd)        = v log d + log Γ(x+v) − log Γ(x)
    curvature(v, λ, d)    = Σ 1/(λ+jd)²        = [ψ′(x) − ψ′(x+v)] / d²

The expected number of clumps (NB1) is x inverse_sum(v, x).

The first two use a = x + 8 and b = a + v. The eight terms from x to a, and from x + v to b, are
ratios of polynomials; beyond them the asymptotic series of ψ and log Γ are exact to rounding. The
series are subtracted from each other term by term, which cancels nothing, so that the sums stay
exact as d → 0, where the right-hand sides lose all digits. There are no branches, so loops over
dense data are vectorised. `few_inverse_sum` is faster for small counts, one by one.
"""

import math

import numpy as np
from numba import njit

from .dense import compiled
from .logarithm import log, log_ratio

_SHIFT = 8.0
# Π (x+i) = x (x⁷ + …) over the i < 8, and its derivative; coefficients from high powers on.
_, _A1, _A2, _A3, _A4, _A5, _A6, _A7, _ = map(float, np.poly(-np.arange(_SHIFT)))
_B0, _B1, _B2, _B3, _B4, _B5, _B6, _B7 = map(float, np.polyder(np.poly(-np.arange(_SHIFT))))
# Counts up to this one are summed term by term.
_FEW = 8.0
# Powers of rates up to this one, and of floored ones, are finite and positive.
_LARGE = 1e30

# Loops are vectorised only if they contain the whole formula.
inlined = njit(error_model="numpy", fastmath={"reassoc", "contract"}, forceinline=True, cache=True)


@inlined
def _product(x):
    """Π (x+i) / x over i < 8."""
    return ((((((x + _A1) * x + _A2) * x + _A3) * x + _A4) * x + _A5) * x + _A6) * x + _A7


@inlined
def _inverses(x):
    """Σ 1/(x+i) over i < 8."""
    top = ((((((_B0 * x + _B1) * x + _B2) * x + _B3) * x + _B4) * x + _B5) * x + _B6) * x + _B7
    return top / (x * _product(x))


@inlined
def _digamma_tail(y):
    """log z − 1/(2z) − ψ(z) for y = 1/z²."""
    p = 1.0 / 240.0 - y * (1.0 / 132.0 - y * (691.0 / 32760.0))
    return y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y * p)))


@inlined
def inverse_sum(v, x):
    """Σ 1/(x+j) over j < v."""
    a = x + _SHIFT
    b = a + v
    r = 1.0 / (a * b)
    p, q = b * r, a * r
    series = 0.5 * (p - q) + (_digamma_tail(p * p) - _digamma_tail(q * q))
    found = _inverses(x) - _inverses(x + v) + log_ratio(a, v) + series
    return found if v > 0.0 else 0.0  # exactly


@compiled
def _many_inverse_sum(v, x):
    return inverse_sum(v, x)


@inlined
def few_inverse_sum(v, x):
    """`inverse_sum`, faster for single entries with small counts."""
    if v > _FEW:
        return _many_inverse_sum(v, x)  # a call, to keep the rest short
    product, slope, j = x, 1.0, 1.0
    while j < v:
        slope = slope * (x + j) + product
        product *= x + j
        j += 1.0
    return slope / product if v > 0.0 else 0.0


@inlined
def log_rising(v, lam, d):
    """Σ log(λ+jd) over j < v."""
    x = lam / d
    a = x + _SHIFT
    b = a + v
    total = v * log(lam + (_SHIFT + v) * d) + (a - 0.5) * log_ratio(a, v) - v
    total += _log_gamma_tail(1.0 / b) - _log_gamma_tail(1.0 / a)
    y = x + v
    total -= log((y * _product(y)) / (x * _product(x)))
    return total if v > 0.0 else 0.0  # exactly


@compiled
def _many_log_rising(v, lam, d):
    return log_rising(v, lam, d)


@inlined
def few_log_rising(v, lam, d):
    """`log_rising`, faster for single entries with small counts."""
    if v > _FEW or lam > _LARGE:
        return _many_log_rising(v, lam, d)
    product, j = 1.0, 0.0
    while j < v:
        product *= lam + j * d
        j += 1.0
    return log(product)


@inlined
def _log_gamma_tail(z):
    """log Γ(1/z) without its first terms, Stirling's."""
    y = z * z
    p = 1.0 / 1260.0 - y * (1.0 / 1680.0 - y * (1.0 / 1188.0 - y * (691.0 / 360360.0)))
    return z * (1.0 / 12.0 - y * (1.0 / 360.0 - y * p))


@compiled
def curvature(v, lam, d):
    """Σ 1/(λ+jd)² over j < v."""
    n = v if v <= _FEW else max(math.ceil(14.0 - lam / d), 0.0)
    total, j = 0.0, 0.0
    while j < min(n, v):
        total += 1.0 / (lam + j * d) ** 2
        j += 1.0
    if j < v:
        # ψ′(z) = 1/z + 1/(2z²) + 1/(6z³) − …
        low, high = lam + j * d, lam + v * d
        a, b = d / low, d / high
        total += (v - j) / (low * high)
        total += (0.5 * (a * a - b * b) + _trigamma_tail(a) - _trigamma_tail(b)) / d**2
    return total


@compiled
def _trigamma_tail(z):
    """ψ′(1/z) without its first two terms."""
    y = z * z
    p = 1.0 / 42.0 - y * (1.0 / 30.0 - y * (5.0 / 66.0 - y * (691.0 / 2730.0)))
    return z * y * (1.0 / 6.0 - y * (1.0 / 30.0 - y * p))


@compiled
def fill_inverse_sum(v, x, out):
    """`inverse_sum` of vectors."""
    for i in range(v.size):
        out[i] = inverse_sum(v[i], x[i])


@compiled
def fill_log_rising(v, lam, d, out):
    """`log_rising` of vectors and a number d."""
    for i in range(v.size):
        out[i] = log_rising(v[i], lam[i], d)


@compiled
def fill_curvature(v, lam, d, out):
    """`curvature` of vectors and a number d."""
    for i in range(v.size):
        out[i] = curvature(v[i], lam[i], d)
