"""Powers that the compiler can vectorize, by the logarithm of `logarithm.py` and an exponential.

With x = k log 2 + r, |r| ≤ ½ log 2, exp x = 2^k exp r. The Taylor polynomial of exp r of degree 13
is exact to rounding.
"""

import math

import numpy as np
from numba import njit

from .logarithm import _BITS, _LOG2_HIGH, _LOG2_LOW, _from_bits, _to_bits, log

# A number below 2^51 plus this one is rounded to a whole number, in the last bits of the sum.
_ROUNDING = 1.5 * 2.0**52
# log 2 beyond its first part, with the digits that a double of log 2 does not hold.
_LOG2_REST = _LOG2_LOW + 2.3190468138462996e-17
_BIAS = np.uint64(1023)
_LOWEST, _HIGHEST = -708.0, 709.0
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
    1.0 / math.factorial(k) for k in range(2, 14)
)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exp(x):
    """exp x; the result is a normal float64, for any x."""
    x = min(max(x, _LOWEST), _HIGHEST)
    whole = x * (1.0 / math.log(2.0)) + _ROUNDING
    k = whole - _ROUNDING
    r = (x - k * _LOG2_HIGH) - k * _LOG2_REST
    r2 = r * r
    r4 = r2 * r2
    low = (_C2 + r * _C3) + r2 * (_C4 + r * _C5)
    middle = (_C6 + r * _C7) + r2 * (_C8 + r * _C9)
    high = (_C10 + r * _C11) + r2 * (_C12 + r * _C13)
    tail = low + r4 * (middle + r4 * high)
    return (1.0 + (r + r2 * tail)) * _from_bits((_to_bits(whole) + _BIAS) << _BITS)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def power(x, exponent):
    """x^exponent of a positive x."""
    return exp(exponent * log(x))
