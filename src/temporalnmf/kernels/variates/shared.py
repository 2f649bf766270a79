"""Shared by several samplers: an envelope of log-concave densities, ratios of factorials."""

import math

import numpy as np
from numba import njit

# No re-association: the formulas are arranged so that nothing cancels.
compiled = njit(cache=True, nogil=True, error_model="numpy")

# Let ψ be concave with its maximum ψ(0) = 0. Its tangents at −s and t, where it is −θ and −η with
# slopes ξ and −ζ, and the line 0 lie above it. exp of their minimum consists of a uniform part
# between the points where the tangents reach 0, and an exponential on each side. On the side of t,
#
#   area of the envelope  t − (η − 1)/ζ ≤ t,      area under exp ψ ≥ t (1 − e^−η)/η:
#
# with η and θ at least 1, fewer than max(η, θ) / (1 − e^−max(η, θ)) rounds are needed on average.


@compiled
def envelope_draw(rng, s, theta, xi, t, eta, zeta):
    """A point under the envelope: x and its log height. Accept it if that is below ψ(x)."""
    left, right = s - theta / xi, t - eta / zeta
    u = rng.random() * (left + right + 1.0 / xi + 1.0 / zeta)
    height = -rng.standard_exponential()
    if u < left + right:
        return u - left, height
    beyond = rng.standard_exponential()
    if u < left + right + 1.0 / zeta:
        return right + beyond / zeta, height - beyond
    return -left - beyond / xi, height - beyond


@compiled
def log1p_minus(u):
    """log(1 + u) − u, u > −1, to relative rounding."""
    if abs(u) > 0.1:
        return math.log1p(u) - u
    # With s = u/(2 + u): log(1 + u) = 2 atanh s, and 2s − u = −s u. |s| < 0.053.
    s = u / (2.0 + u)
    z = s * s
    tail = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z / 13))))
    return s * (2.0 * z * tail - u)


_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@compiled
def _stirling_difference(z):
    return math.lgamma(z) - ((z - 0.5) * math.log(z) - z + _HALF_LOG_2PI)


_SERIES_FROM = 16
_AT_WHOLE = np.array([0.0] + [_stirling_difference.py_func(z) for z in range(1, _SERIES_FROM)])


@compiled
def stirling_error(z):
    """log Γ(z) − ((z − ½) log z − z + ½ log 2π), z > 0."""
    if z < _SERIES_FROM:
        whole = int(z)
        return _AT_WHOLE[whole] if z == whole else _stirling_difference(z)
    inv = 1.0 / z
    inv2 = inv * inv
    return inv * (1 / 12 - inv2 * (1 / 360 - inv2 * (1 / 1260 - inv2 * (1 / 1680 - inv2 / 1188))))


@compiled
def log_rising(z, k):
    """log(Γ(z + k) / (Γ(z) z^k)), z > 0, z + k > 0."""
    # (z + k − ½) log(1 + u) − k = z ((1 + u)(log(1 + u) − u) + u²) − ½ log(1 + u), u = k/z: of the
    # order k²/z, whereas the logarithms of Γ are of the order z log z.
    u = k / z
    bent = log1p_minus(u)
    main = z * ((1.0 + u) * bent + u * u) - 0.5 * (bent + u)
    return main + stirling_error(z + k) - stirling_error(z)
