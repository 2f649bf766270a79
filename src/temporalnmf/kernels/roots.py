"""The one-dimensional minimisers behind every update.

Each solves f′(x) = 0 for a function with exactly one stationary point on its interval, so a
bracket always exists. The unknown is positive (h itself, the distance to an end of the interval,
or the odds of where in the interval it lies) and the search runs in its logarithm: Newton's step
where it stays inside the bracket and shrinks, a bisection elsewhere.

`_name` is the compiled scalar formula for other compiled code, `name` the ufunc.
"""

import math

import numpy as np
from numba import njit

from .elementwise import elementwise
from .special import _polygamma

# The equations are sums of positive terms that change by a factor when the unknown does, so near
# the root they are smooth on the scale of one in its logarithm: after a Newton step of this size
# the error is about its square, and a step so small cannot occur far from the root.
_LAST_STEP = 1e-7
_MAX_STEPS = 300
_SMALLEST, _LARGEST = 1e-304, 1e304
_ROUNDING = 2.3e-16


@njit(cache=True, nogil=True, error_model="numpy")
def _grown(x, step):
    """x e^step, for small steps by a quotient that agrees to second order: all Newton needs."""
    if abs(step) <= 1.0:
        return x * ((2.0 + step) / (2.0 - step))
    return x * math.exp(step)


@njit(cache=True, nogil=True, error_model="numpy")
def _advance(x, value, slope, low, high, previous):
    """From x towards the root of an equation with this value, and slope in log x.

    Returns the new x, the bracket, the step in log x, and whether it was the last one needed.
    """
    if value > 0.0:
        high = x
    else:
        low = x
    newton = -value / slope if slope > 0.0 else math.copysign(1e3, -value)
    if abs(newton) <= _LAST_STEP or value == 0.0:
        return x + x * newton * (1.0 + 0.5 * newton), low, high, newton, True
    if low > 0.0 and high < np.inf:
        moved = _grown(x, newton)
        if low < moved < high and abs(newton) <= 0.5 * abs(previous):
            return moved, low, high, newton, False
        moved = math.sqrt(low) * math.sqrt(high)
        return moved, low, high, math.log(moved / x), high - low <= 4.0 * _ROUNDING * low
    # One end of the bracket is still open: go Newton's way, at most four times the last step.
    step = min(max(newton, -4.0 * abs(previous)), 4.0 * abs(previous))
    moved = min(max(_grown(x, step), _SMALLEST), _LARGEST)
    return moved, low, high, step, moved == x


@njit(cache=True, nogil=True, error_model="numpy")
def _quadratic_root(p, q, r, current):
    discriminant = math.sqrt(p * p + 4.0 * q * r)
    if p < 0.0:
        return 2.0 * r / (discriminant - p)
    if q > 0.0:
        return (p + discriminant) / (2.0 * q)
    return current


@elementwise
def quadratic_root(p, q, r, current):
    """(ROOT): the positive root of q h² − p h − r = 0; `current` where p ≥ 0 = q leaves h free."""
    return _quadratic_root(p, q, r, current)


@njit(cache=True, nogil=True, error_model="numpy")
def _shape_equation(h, p, q, r, alpha):
    """h f′(h) of (S) and its derivative in log h."""
    x = alpha * h
    first, second = _polygamma(1.0 + x)
    linear = h * (q + alpha * first)
    inverse = r / h
    return linear - p - inverse, linear + x * x * second + inverse


@njit(cache=True, nogil=True, error_model="numpy")
def _shape_root(p, q, r, alpha, current):
    """(S): minimiser of −p log h + q h + r/h + log Γ(1 + αh), p > 0.

    log Γ(αh) = log Γ(1 + αh) − log(αh), so p is the P of (S) plus one.
    """
    h, low, high, step = current, 0.0, np.inf, 0.5
    for _ in range(_MAX_STEPS):
        value, slope = _shape_equation(h, p, q, r, alpha)
        h, low, high, step, last = _advance(h, value, slope, low, high, step)
        if last:
            break
    return h


@njit(cache=True, nogil=True, error_model="numpy")
def _place(odds, width):
    """Distance t from the lower end, and the share of the interval on either side of it."""
    if width == np.inf:
        return odds, 0.0, 1.0
    rest = 1.0 / (1.0 + odds)
    share = odds * rest
    return width * share, share, rest


@njit(cache=True, nogil=True, error_model="numpy")
def _barrier_equation(odds, p, q, r, lower, width, g_lower, g_upper):
    """f′(h) · dh/dv and its derivative in v = log odds, or log t on a half-line."""
    t, share, rest = _place(odds, width)
    factor = t * rest
    h = lower + t
    pull = q - p / h - r / (h * h)
    bend = p / (h * h) + 2.0 * r / (h * h * h)
    value = g_upper * share - g_lower * rest + factor * pull
    slope = (
        (g_lower + g_upper) * share * rest + factor * (rest - share) * pull + factor * factor * bend
    )
    return value, slope


@njit(cache=True, nogil=True, error_model="numpy")
def _barrier_root(p, q, r, lower, width, g_lower, g_upper, current):
    """(B1)–(B3): the root, on (lower, lower + width), of

    −p/h − r/h² + q − g_lower/(h−lower) + g_upper/(upper−h).

    `width` may be infinite; the last term is then absent. The result is strictly inside.
    """
    t = current - lower
    odds, low, high, step = 1.0, 0.0, np.inf, 0.5
    if 0.0 < t < width:
        odds = t / (width - t) if width < np.inf else t
    for _ in range(_MAX_STEPS):
        value, slope = _barrier_equation(odds, p, q, r, lower, width, g_lower, g_upper)
        odds, low, high, step, last = _advance(odds, value, slope, low, high, step)
        if last:
            break
    # Rounding can put a root that is close to an end on it, where the density is zero. The upper
    # end is a quotient: a few units less, and its product is below the dividend.
    h = min(lower + _place(odds, width)[0], (lower + width) * (1.0 - 4.0 * _ROUNDING))
    return max(h, np.nextafter(lower, np.inf))


# (B4) in the retained part a = b h_{n−1} of h = h_{n−1}, which is in h_n = o as well:
#
#   −κ/a + λ/(h−a) + λ/(o−a) − β = 0,   0 < a < w = min(h, o),   κ = η − s, λ = γ − s.
#
# It is solved for the odds a/(w−a), from which a and both distances follow without cancellation;
# scaled by w, it depends on βw and on the gap |h−o|/w.


@njit(cache=True, nogil=True, error_model="numpy")
def _retained_guess(rate, gap, kappa, lam):
    """Odds at the root if the farther barrier stood still: a quadratic equation."""
    near = lam / (rate + kappa + lam)
    both = lam * (1.0 + near / (near + gap))
    lead = rate - kappa - both
    root = math.sqrt(lead * lead + 4.0 * rate * kappa)
    share = (lead + root) / (2.0 * rate) if lead > 0.0 else 2.0 * kappa / (root - lead)
    return share * (rate + kappa + both + root) / (2.0 * both)


@njit(cache=True, nogil=True, error_model="numpy")
def _retained_odds(rate, gap, kappa, lam, odds):
    """(B4): odds a/(w−a) of the retained part, searched from the given ones."""
    low, high, step = 0.0, np.inf, 0.5
    for _ in range(_MAX_STEPS):
        rest = 1.0 / (1.0 + odds)
        share = odds * rest
        far = 1.0 / (rest + gap)
        pull = lam * far - rate
        value = lam * share - kappa * rest + share * rest * pull
        slope = (
            share * rest * (kappa + lam + (rest - share) * pull + lam * share * rest * far * far)
        )
        odds, low, high, step, last = _advance(odds, value, slope, low, high, step)
        if last:
            break
    return odds
