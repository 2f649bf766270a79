"""Sums over the j < v of a negative binomial count v with variance λ(1+d), x = λ/d.

    inverse_sum(v, x)     = Σ 1/(x+j)          = ψ(x+v) − ψ(x)
    log_rising(v, λ, d)   = Σ log(λ+jd)        = v log d + log Γ(x+v) − log Γ(x)
    curvature(v, λ, d)    = Σ 1/(λ+jd)²        = [ψ′(x) − ψ′(x+v)] / d²

The expected number of clumps (NB1) is x inverse_sum(v, x).

The first two are computed by (NB3) and (NB4): after one term, or two, a logarithm of b/a and a
difference of rational functions, at w and y = w + n with a whole number n. The difference is below
n/w, like the sum itself, so it cancels nothing that matters, and the logarithm is exact to rounding
where b is close to a: the sums stay exact as d → 0, where the right-hand sides above lose all
digits. There are no branches, so loops are vectorised.
"""

import math

from numba import njit

from .dense import compiled
from .logarithm import log, log_ratio

# R = A/(w B) of (NB3) and U = C/D of (NB4), with 1 as the coefficient of w⁶ in B and D: for these
# shifts and degrees, the largest errors of w R and of U are the smallest possible, found with 50
# digits by linear least squares with weights that follow the errors (Lawson).
_DIGAMMA_SHIFT = 2.25
_A0, _A1, _A2, _A3, _A4, _A5, _A6 = (
    70.78074966403929, 310.59433330574706, 467.28470447365237, 345.5450930898836,
    139.31327799343194, 29.94012231172239, 2.75,
)  # fmt: skip
_B0, _B1, _B2, _B3, _B4, _B5 = (
    70.78074974394711, 212.34032641968273, 257.49691321761117, 164.92236700688446,
    59.76242362284441, 11.777468719414227,
)  # fmt: skip
_GAMMA_SHIFT = 2.0
_C0, _C1, _C2, _C3, _C4, _C5 = (
    0.13426567569725967, 2.745398165407379, 12.705501643202323, 20.975771104641158,
    13.77026907713302, 3.08333333333338,
)  # fmt: skip
_D0, _D1, _D2, _D3, _D4, _D5 = (
    0.021899706328127943, 0.6952089719242982, 4.600211512321547, 11.099660515448267,
    11.799253306230993, 5.655222403397559,
)  # fmt: skip
# From here on w and y are replaced by this number, whose powers are finite: the rational functions
# do not matter.
_FAR = 1e15
# Counts up to this one are summed term by term for the curvature.
_FEW = 8.0
# Loops are vectorised only if they contain the whole formula.
inlined = njit(error_model="numpy", fastmath={"reassoc", "contract"}, forceinline=True, cache=True)


@inlined
def _digamma_top(w):
    return (((((_A6 * w + _A5) * w + _A4) * w + _A3) * w + _A2) * w + _A1) * w + _A0


@inlined
def _digamma_bottom(w):
    return w * ((((((w + _B5) * w + _B4) * w + _B3) * w + _B2) * w + _B1) * w + _B0)


@inlined
def inverse_sum(v, x):
    """Σ 1/(x+j) over j < v: 1/x + ψ(x+v) − ψ(x+1)."""
    w, y = min(x + 1.0, _FAR), min(x + v, _FAR)
    low, high = _digamma_bottom(w), _digamma_bottom(y)
    both = low * high
    # 1/x and both rational functions from one division; rounding may make w = y differ
    difference = _digamma_top(w) * high - _digamma_top(y) * low if y > w else 0.0
    rational = (both + x * difference) / (x * both)
    found = rational + log_ratio(x + (1.0 + _DIGAMMA_SHIFT), v - 1.0)
    return found if v > 0.0 else 0.0  # exactly


@inlined
def _gamma_top(w):
    return ((((_C5 * w + _C4) * w + _C3) * w + _C2) * w + _C1) * w + _C0


@inlined
def _gamma_bottom(w):
    return (((((w + _D5) * w + _D4) * w + _D3) * w + _D2) * w + _D1) * w + _D0


@inlined
def log_rising(v, lam, d):
    """Σ log(λ+jd) over j < v: log λ(λ+d) + (v−2) log d + log Γ(x+v) − log Γ(x+2)."""
    x, n = lam / d, v - 2.0
    w, y = min(x + 2.0, _FAR), min(x + v, _FAR)
    low, high = _gamma_bottom(w), _gamma_bottom(y)
    rational = (_gamma_top(y) * low - _gamma_top(w) * high) / (low * high)
    several = v > 1.0
    first = log(lam * (lam + d if several else 1.0))
    total = n * log(lam + (2.0 + _GAMMA_SHIFT) * d) - n + rational
    total += (x + (v - 0.5)) * log_ratio(x + (2.0 + _GAMMA_SHIFT), n)
    total = first + total if several else first
    return total if v > 0.0 else 0.0  # exactly


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
