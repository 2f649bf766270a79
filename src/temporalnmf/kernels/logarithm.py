"""A natural logarithm that the compiler can vectorize.

A call of the library's `log` per number would cost more than everything else in a pass over the
data. This one is arithmetic only. With x = m 2^k, m in [√½, √2) and s = (m−1)/(m+1),

    log x = k log 2 + 2 atanh s = k log 2 + 2s + s z P(z),   z = s² < 0.0295,

where P interpolates 2/3 + 2z/5 + 2z²/7 + … at Chebyshev points; its error is below rounding.

`log_ratio` is log(b/a) with one division, in s = (b − 2^k a)/(b + 2^k a) with z ≤ 0.04.
"""

import math

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

_TERMS = 7
_LARGEST = (math.sqrt(2.0) - 1.0) ** 2 / (math.sqrt(2.0) + 1.0) ** 2


def _atanh_tail(z: np.ndarray) -> np.ndarray:
    """(2 atanh(√z) − 2√z) / z^(3/2)."""
    return np.sum([2.0 / (2 * k + 3) * z**k for k in range(30)], axis=0)


def _tail_up_to(largest: float) -> np.ndarray:
    """Coefficients of P for z up to the given one."""
    found = np.polynomial.Chebyshev.interpolate(_atanh_tail, _TERMS - 1, domain=[0.0, largest])
    return np.asarray(found.convert(kind=np.polynomial.Polynomial).coef)


_P0, _P1, _P2, _P3, _P4, _P5, _P6 = _tail_up_to(_LARGEST)
# For `log_ratio`.
_Q0, _Q1, _Q2, _Q3, _Q4, _Q5, _Q6 = _tail_up_to(0.04)

# log 2 in two parts: k times the first is exact.
_LOG2 = math.log(2.0)
_LOG2_HIGH = np.float64(np.float32(math.log(2.0)))
_LOG2_LOW = 0.693147180559945309417232 - _LOG2_HIGH

# A float is sign, 11 bits of exponent plus 1023, 52 bits of mantissa.
_ROOT_HALF = np.uint64(np.float64(math.sqrt(0.5)).view(np.uint64))
_ONE = np.uint64(np.float64(1.0).view(np.uint64))
_SHIFT = _ONE - _ROOT_HALF
_MANTISSA = np.uint64(2**52 - 1)
_BITS = np.uint64(52)
# An integer below 2^52 in the mantissa of this float is that integer plus 2^52.
_TWO52 = np.uint64(np.float64(2.0**52).view(np.uint64))
_OFFSET = 2.0**52 + 1023.0
_HALF = np.uint64(2**51)
_ZERO = np.uint64(0)


@intrinsic
def _to_bits(context, x):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), codegen


@intrinsic
def _from_bits(context, bits):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.uint64), codegen


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log(x):
    """log x of a positive, finite, normal float64."""
    shifted = _to_bits(x) + _SHIFT
    k = _from_bits((shifted >> _BITS) | _TWO52) - _OFFSET
    f = _from_bits((shifted & _MANTISSA) + _ROOT_HALF) - 1.0
    s = f / (2.0 + f)
    z = s * s
    z2 = z * z
    tail = z * (_P0 + z * _P1 + z2 * (_P2 + z * _P3 + z2 * (_P4 + z * _P5 + z2 * _P6)))
    # 2s = f − s f
    return k * _LOG2_HIGH + (f - (s * (f - tail) - k * _LOG2_LOW))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log_ratio(a, v):
    """log((a + v)/a) for a > 0 and v ≥ 0, to rounding where v is small beside a."""
    b = a + v
    # The bits of a float are a piecewise linear function of its logarithm. 2^k is the power of
    # two for which those of b/2^k and a differ by at most half an octave: a ratio of ⅔ to 1½.
    octaves = (_to_bits(b) - _to_bits(a) + _HALF) & ~_MANTISSA
    b = _from_bits(_to_bits(b) - octaves)
    s = (v if octaves == _ZERO else b - a) / (a + b)
    k = _from_bits((octaves >> _BITS) | _TWO52) - 2.0**52
    z = s * s
    z2 = z * z
    tail = z * (_Q0 + z * _Q1 + z2 * (_Q2 + z * _Q3 + z2 * (_Q4 + z * _Q5 + z2 * _Q6)))
    return k * _LOG2 + (2.0 * s + s * tail)
