"""Special functions of the chains, accurate to rounding and callable from compiled code.

`_polygamma` ψ, ψ′ and ψ″: derivatives of the log Γ(αh) in the Shape chain's equation (S).

`_bessel_ratio` I_{ν+1}(x) / I_ν(x) and `_log_bessel_scaled` log(I_ν(x) exp(−x)): the update
(HS0), (A0) of the chains HierShape and ARG, and their objective; `log_bessel_scaled` is the ufunc.
"""

import math

import numpy as np
from numba import njit, vectorize

from .variates.shared import log1p_minus, stirling_error

# ψ(y)  ~ log y − 1/(2y) − Σ_k B_2k / (2k y^2k)
# ψ′(y) ~ 1/y + 1/(2y²) + Σ_k B_2k / y^(2k+1)
# ψ″(y) ~ −1/y² − 1/y³ − Σ_k (2k+1) B_2k / y^(2k+2)
#
# At y ≥ 10 the terms from k = 9 on are below rounding, at y ≥ 30 those from k = 5 on. Smaller
# arguments are shifted by ψ(x) = ψ(x+1) − 1/x; reciprocals are added from the smallest on.

_SHIFT = 10.0
_TRIGAMMA = np.array([1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510])
_DIGAMMA = _TRIGAMMA / (2.0 * np.arange(1.0, 9.0))
_TETRAGAMMA = _TRIGAMMA * (2.0 * np.arange(1.0, 9.0) + 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _polygamma(x: float) -> tuple[float, float, float]:
    """ψ(x), ψ′(x) and ψ″(x), which share most of the work."""
    if x < 0.0:
        return math.nan, math.nan, math.nan
    steps = math.ceil(max(0.0, _SHIFT - x))
    y = x + steps
    inv = 1.0 / y
    inv2 = inv * inv
    first, second, third = 0.0, 0.0, 0.0
    for k in range(8 if y < 30.0 else 4, 0, -1):
        first = (first + _DIGAMMA[k - 1]) * inv2
        second = (second + _TRIGAMMA[k - 1]) * inv2
        third = (third + _TETRAGAMMA[k - 1]) * inv2
    second = inv + (0.5 * inv + second) * inv
    third = -(1.0 + inv + third) * inv2
    shifted = 0.0
    for j in range(steps - 1, -1, -1):
        part = 1.0 / (x + j)
        shifted += part
        second += part * part
        third -= 2.0 * part * part * part
    return math.log(y) - (0.5 * inv + first + shifted), second, third


# log Γ(s) − s log x + x, the cost of x under a Gamma distribution of shape s, in two parts, the
# first of which does not depend on x. From this shape on, terms of order s log s are cancelled.
_LARGE_SHAPE = 16.0


@njit(cache=True, nogil=True, error_model="numpy")
def gamma_constant(shape: float) -> float:
    if shape < _LARGE_SHAPE:
        return math.lgamma(shape)
    return stirling_error(shape) + 0.5 * math.log(2.0 * math.pi / shape)


@njit(cache=True, nogil=True, error_model="numpy")
def gamma_excess(shape: float, x: float) -> float:
    if shape < _LARGE_SHAPE:
        return x - shape * math.log(x)
    off = (x - shape) / shape
    if abs(off) < 0.5:
        return -shape * log1p_minus(off)
    return shape * (off - math.log(x / shape))  # 1 + off would be rounded


# With r = √(μ² + x²) and p = μ/r, the logarithm of Debye's uniform expansion is
#
#   log I_μ(x) ~ r − μ asinh(μ/x) − ½ log(2πr) + Σ_k D_k(p) / μ^k.
#
# Its derivative in x gives the ratio R_μ = I_{μ+1}/I_μ = I_μ′/I_μ − μ/x,
#
#   R_μ ~ x [ 1/(μ + r) − (½ + Σ_k p D_k′(p) / μ^k) / r² ],
#
# where nothing cancels, however small x is. Bessel's equation determines E_k = D_k′ by
#
#   E_1 = (1 − 5p²)/8,   2 E_{k+1} = (w E_k)′ + w Σ_{0<i<k} E_i E_{k−i},   w = p² − p⁴.
#
# E_k is p^(k−1) times a polynomial in p², so D_k(p)/μ^k and p E_k(p)/μ^k are polynomials in p²
# divided by r^k: only r has to be large, not μ, so at large x any order will do. Term k is at most
# of the size (k−1)!/(2r)^k: with r ≥ 40, the terms from k = 13 on are below rounding, with r ≥ 100
# those from k = 9 on, with r ≥ 400 those from k = 6 on.

_R_MIN = 40.0
_TERMS = 12


def _debye_tables(terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of (r/μ)^k D_k and (r/μ)^k p E_k by powers of p²; row k − 1 is term k."""
    poly = np.polynomial.Polynomial
    w = poly([0.0, 0.0, 1.0, 0.0, -1.0])
    e = [poly([0.125, 0.0, -0.625])]
    for k in range(1, terms):
        products = sum((e[i] * e[k - 2 - i] for i in range(k - 1)), poly([0.0]))
        e.append(((w * e[-1]).deriv() + w * products) / 2.0)
    log_terms, ratio_terms = np.zeros((2, terms, terms + 1))
    for k in range(1, terms + 1):
        log_terms[k - 1, : k + 1] = e[k - 1].integ().coef[k : 3 * k + 1 : 2]
        ratio_terms[k - 1, : k + 1] = e[k - 1].coef[k - 1 : 3 * k : 2]
    return log_terms, ratio_terms


_LOG_TERMS, _RATIO_TERMS = _debye_tables(_TERMS)


@njit(cache=True, nogil=True, error_model="numpy")
def _debye_sum(table: np.ndarray, mu: float, r: float) -> float:
    """Sum of the terms of a table at p = μ/r."""
    inv = 1.0 / r
    t = (mu * inv) ** 2
    total = 0.0
    terms = _TERMS if r < 100.0 else 8 if r < 400.0 else 5
    for k in range(terms, 0, -1):
        row = 0.0
        for i in range(k, -1, -1):
            row = row * t + table[k - 1, i]
        total = (total + row) * inv
    return total


# From the first order μ = ν + m at which r ≥ 40, I_{j−1} = (2j/x) I_j + I_{j+1} leads down to ν,
# all terms positive. Scaled with c = μ + r, g_j = (c/x)^(j−μ) I_j / I_μ follows
#
#   g_{j−1} = (2j/c) g_j + (x/c)² g_{j+1},   g_μ = 1,   g_{μ+1} = R_μ c/x,
#
# and whatever x is, g_ν stays between about (1 + ν) e^−40 and 1. As log(c/x) = asinh(μ/x),
#
#   log I_ν = log I_μ + m asinh(μ/x) + log g_ν:
#
# of μ asinh(μ/x), large when x is small, ν asinh(μ/x) is left and nothing has to cancel.


@njit(cache=True, nogil=True, error_model="numpy")
def _bessel_descent(nu: float, x: float) -> tuple[float, float, float, float]:
    """μ, r, g_ν and g_{ν+1}."""
    part = min(x, _R_MIN)
    steps = math.ceil(max(0.0, math.sqrt((_R_MIN - part) * (_R_MIN + part)) - nu))
    mu = nu + steps
    r = math.hypot(mu, x)
    c = mu + r
    low = 1.0
    high = 1.0 - c / r * (0.5 + _debye_sum(_RATIO_TERMS, mu, r)) / r
    first = 2.0 / c
    second = (x / c) ** 2
    for j in range(steps, 0, -1):
        low, high = first * (nu + j) * low + second * high, low
    return mu, r, low, high


@njit(cache=True, nogil=True, error_model="numpy")
def _ratio_from(x: float, mu: float, r: float, low: float, high: float) -> float:
    """I_{ν+1}(x) / I_ν(x) from the descent."""
    return high / low * (x / (mu + r))


@njit(cache=True, nogil=True, error_model="numpy")
def _log_from(nu: float, x: float, mu: float, r: float, low: float) -> float:
    """log(I_ν(x) exp(−x)) from the descent."""
    # r − x = μ² / (r + x).
    exponent = mu * (mu / (r + x)) - nu * math.asinh(mu / x)
    debye = _debye_sum(_LOG_TERMS, mu, r)
    return exponent - 0.5 * math.log(2.0 * math.pi * r) + debye + math.log(low)


@njit(cache=True, nogil=True, error_model="numpy")
def _bessel(nu: float, x: float) -> tuple[float, float]:
    """I_{ν+1}(x) / I_ν(x) and log(I_ν(x) exp(−x)) for ν > −1, x > 0."""
    mu, r, low, high = _bessel_descent(nu, x)
    return _ratio_from(x, mu, r, low, high), _log_from(nu, x, mu, r, low)


@njit(cache=True, nogil=True, error_model="numpy")
def _bessel_ratio(nu: float, x: float) -> float:
    if not (nu > -1.0 and x >= 0.0):
        return math.nan
    mu, r, low, high = _bessel_descent(nu, x)
    return _ratio_from(x, mu, r, low, high)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_bessel_scaled(nu: float, x: float) -> float:
    if not (nu > -1.0 and x >= 0.0):
        return math.nan
    if x == 0.0:
        return 0.0 if nu == 0.0 else -math.copysign(math.inf, nu)
    mu, r, low, _ = _bessel_descent(nu, x)
    return _log_from(nu, x, mu, r, low)


@vectorize(cache=True)
def log_bessel_scaled(nu, x):
    """log(I_ν(x) exp(−x)), ν > −1, x ≥ 0."""
    return _log_bessel_scaled(nu, x)
