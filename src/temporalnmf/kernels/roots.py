"""The one-dimensional minimisers behind every update.

Each solves f′(x) = 0 for a function with exactly one stationary point on its interval, so a
bracket always exists. The unknown is positive (h itself, the distance to an end of the interval,
or the odds of its position in the interval) and the search runs in its logarithm: a Halley step
if it stays inside the bracket and shrinks, otherwise a bisection.
"""

import math

import numpy as np
from numba import njit

from .special import _polygamma

# The equations are sums of powers of the unknown or the like, hence smooth on a scale of 1 in its
# logarithm: after a Halley step of this size the error is about its cube, and such a small step
# does not occur far from the root.
LAST_STEP = 1e-5
_MAX_STEPS = 300
_SMALLEST, _LARGEST = 1e-304, 1e304
_ROUNDING = 2.3e-16


@njit(cache=True, nogil=True, error_model="numpy")
def _grown(x, step):
    """x e^step; for small steps with an error of step³/6, no worse than that of Halley's method."""
    if abs(step) <= 1.0:
        return x + x * step * (1.0 + 0.5 * step)
    return x * math.exp(step)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _advance(x, value, slope, second, low, high, previous, last_step):
    """A step from x towards the root of an equation, given its two derivatives in log x.

    Returns the new x, the bracket, the step in log x, and whether it was the last one needed.
    """
    if value > 0.0:
        high = x
    else:
        low = x
    if value == 0.0:
        halley = 0.0
    elif slope > 0.0:
        square = slope * slope
        halley = -value * slope / max(square - 0.5 * value * second, 0.5 * square)
    else:
        halley = math.copysign(1e3, -value)
    if abs(halley) <= last_step:
        return _grown(x, halley), low, high, halley, True
    if low > 0.0 and high < np.inf:
        moved = _grown(x, halley)
        if low < moved < high and abs(halley) <= 0.5 * abs(previous):
            return moved, low, high, halley, False
        moved = math.sqrt(low) * math.sqrt(high)
        return moved, low, high, math.log(moved / x), high - low <= 4.0 * _ROUNDING * low
    # One end of the bracket is still open: a Halley step, at most four times the last step.
    step = min(max(halley, -4.0 * abs(previous)), 4.0 * abs(previous))
    moved = min(max(_grown(x, step), _SMALLEST), _LARGEST)
    return moved, low, high, step, moved == x


@njit(cache=True, nogil=True, error_model="numpy")
def _quadratic_root(p, q, r, current):
    """(ROOT): the positive root of q h² − p h − r = 0; `current` where p ≥ 0 = q leaves h free."""
    discriminant = math.sqrt(p * p + 4.0 * q * r)
    if p < 0.0:
        return 2.0 * r / (discriminant - p)
    if q > 0.0:
        return (p + discriminant) / (2.0 * q)
    return current


@njit(cache=True, nogil=True, error_model="numpy")
def _shape_equation(h, p, q, r, alpha):
    """h f′(h) of (S) and its first two derivatives in log h."""
    x = alpha * h
    first, second, third = _polygamma(1.0 + x)
    linear, inverse = h * (q + alpha * first), r / h
    curved = x * x * second
    return (
        linear - p - inverse,
        linear + curved + inverse,
        linear + 3.0 * curved + x * x * x * third - inverse,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _shape_root(p, q, r, alpha, current):
    """(S): minimiser of −p log h + q h + r/h + log Γ(1 + αh), p > 0.

    log Γ(αh) = log Γ(1 + αh) − log(αh), so p is the P of (S) plus one.
    """
    h, low, high, step = current, 0.0, np.inf, 0.5
    for _ in range(_MAX_STEPS):
        value, slope, second = _shape_equation(h, p, q, r, alpha)
        h, low, high, step, last = _advance(h, value, slope, second, low, high, step, LAST_STEP)
        if last:
            break
    return h


@njit(cache=True, nogil=True, error_model="numpy")
def _in_log_odds(first, second, third, share, rest):
    """Convert F f′, F² f″, F³ f‴ to f′F and its first two derivatives in v = log odds.

    F = dh/dv is the width times share · rest, and share is expit(v).
    """
    tilt = rest - share
    return (
        first,
        second + first * tilt,
        third + 3.0 * second * tilt + first * (tilt * tilt - 2.0 * share * rest),
    )


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
    """f′(h) · dh/dv and two derivatives in v = log odds, or log t on a half-line."""
    t, share, rest = _place(odds, width)
    h = lower + t
    factor = t * rest
    f = factor / h
    first = g_upper * share - g_lower * rest + factor * (q - p / h - r / (h * h))
    second = g_upper * share**2 + g_lower * rest**2 + f * f * (p + 2.0 * r / h)
    third = 2.0 * (g_upper * share**3 - g_lower * rest**3) - f * f * f * (2.0 * p + 6.0 * r / h)
    return _in_log_odds(first, second, third, share, rest)


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
        value, slope, second = _barrier_equation(odds, p, q, r, lower, width, g_lower, g_upper)
        odds, low, high, step, last = _advance(
            odds, value, slope, second, low, high, step, LAST_STEP
        )
        if last:
            break
    # Rounding can move a root onto an end, where the density is zero. The upper end is a quotient:
    # a few ulps less, so that its product stays below the dividend.
    h = min(lower + _place(odds, width)[0], (lower + width) * (1.0 - 4.0 * _ROUNDING))
    return max(h, np.nextafter(lower, np.inf))


# (B4) in the retained part a = b h_{n−1} of h = h_{n−1} and o = h_n:
#
#   −κ/a + λ/(h−a) + λ/(o−a) − β = 0,   0 < a < w = min(h, o),   κ = η − s, λ = γ − s.
#
# It is solved for the odds a/(w−a), from which a and both distances follow without cancellation;
# scaled by w, it depends on βw and on the gap |h−o|/w.


@njit(cache=True, nogil=True, error_model="numpy")
def _retained_guess(rate, gap, kappa, lam):
    """Odds at the root with the farther barrier held fixed: a quadratic equation."""
    near = lam / (rate + kappa + lam)
    both = lam * (1.0 + near / (near + gap))
    lead = rate - kappa - both
    root = math.sqrt(lead * lead + 4.0 * rate * kappa)
    share = (lead + root) / (2.0 * rate) if lead > 0.0 else 2.0 * kappa / (root - lead)
    return share * (rate + kappa + both + root) / (2.0 * both)


@njit(cache=True, nogil=True, error_model="numpy")
def _retained_equation(odds, rate, gap, kappa, lam):
    """(B4) times da/dv and two derivatives in v = log odds."""
    rest = 1.0 / (1.0 + odds)
    share = odds * rest
    factor = share * rest
    far = share / (1.0 + gap * (1.0 + odds))  # factor / (rest + gap)
    first = lam * (share + far) - kappa * rest - factor * rate
    second = lam * (share**2 + far**2) + kappa * rest**2
    third = 2.0 * (lam * (share**3 + far**3) - kappa * rest**3)
    return _in_log_odds(first, second, third, share, rest)


@njit(cache=True, nogil=True, error_model="numpy")
def _retained_odds(rate, gap, kappa, lam, odds, last_step):
    """(B4): odds a/(w−a) of the retained part, searched from the given odds."""
    low, high, step = 0.0, np.inf, 0.5
    for _ in range(_MAX_STEPS):
        value, slope, second = _retained_equation(odds, rate, gap, kappa, lam)
        odds, low, high, step, last = _advance(
            odds, value, slope, second, low, high, step, last_step
        )
        if last:
            break
    return odds
