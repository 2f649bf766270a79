"""The one-dimensional minimisers behind every update: ufuncs that broadcast over (K, N) arrays.

Each solves f′(x) = 0 for a function with exactly one stationary point on its interval, so a
bracket always exists. The search runs in a variable without bounds (log of the distance to an
end, logit inside an interval): Newton's step where it stays inside the bracket and shrinks,
a bisection elsewhere.
"""

import math

import numpy as np
from numba import njit

from .elementwise import elementwise
from .floor import FLOOR
from .special import _digamma, _trigamma

# Where Newton's step gets small the root is near, if the function is smooth on that scale. It need
# not be (activations a hair apart under BGAR), so the sign beyond is checked before it counts.
_SMALL_STEP = 1e-9
# Newton's error after a step of this size is its square, below rounding.
_LAST_STEP = 1e-12
_MAX_STEPS = 300
# exp(±700) is still a positive finite float.
_WIDEST = 700.0
_ROUNDING = 2.3e-16


@njit(cache=True, nogil=True, error_model="numpy")
def _next_step(x, value, slope, low, high, previous):
    """Step from x towards the root, and whether it is the last one that is needed."""
    if value == 0.0:
        return 0.0, True
    newton = -value / slope if slope > 0.0 else math.copysign(2.0 * _WIDEST, -value)
    rounding = _ROUNDING * max(1.0, abs(x))
    tight = high - low <= 4.0 * abs(newton) + 16.0 * rounding
    if tight and abs(newton) <= _LAST_STEP:
        return newton, True
    if not tight and abs(newton) <= _SMALL_STEP:
        # Look beyond the root that Newton promises; if it is not there, look ever further.
        reach = max(2.0 * abs(newton), 4.0 * rounding)
        if abs(previous) <= 4.0 * _SMALL_STEP:
            reach = max(reach, 4.0 * abs(previous))
        return min(max(math.copysign(reach, -value), 0.5 * (low - x)), 0.5 * (high - x)), False
    if low > -_WIDEST and high < _WIDEST:
        if low < x + newton < high and abs(newton) <= 0.5 * abs(previous):
            return newton, False
        middle = 0.5 * (low + high) - x
        return middle, abs(middle) <= rounding
    # One end of the bracket is still open: go Newton's way, at most four times the last step.
    limit = max(4.0 * abs(previous), _SMALL_STEP)
    step = min(max(newton, -limit, -_WIDEST - x), limit, _WIDEST - x)
    return step, step == 0.0


@elementwise
def quadratic_root(p, q, r, current):
    """(ROOT): the positive root of q h² − p h − r = 0; `current` where p ≥ 0 = q leaves h free."""
    discriminant = math.sqrt(p * p + 4.0 * q * r)
    if p < 0.0:
        return 2.0 * r / (discriminant - p)
    if q > 0.0:
        return (p + discriminant) / (2.0 * q)
    return current


@njit(cache=True, nogil=True, error_model="numpy")
def _shape_equation(u, p, q, r, alpha):
    """h f′(h) of (S) at h = e^u and its derivative in u."""
    h = math.exp(u)
    x = alpha * h
    linear = h * (q + alpha * _digamma(1.0 + x))
    return linear - p - r / h, linear + x * x * _trigamma(1.0 + x) + r / h


@elementwise
def shape_root(p, q, r, alpha, current):
    """(S): minimiser of −p log h + q h + r/h + log Γ(1 + αh), p > 0.

    log Γ(αh) = log Γ(1 + αh) − log(αh), so p is the P of (S) plus one.
    """
    u = math.log(current)
    low, high, step = -_WIDEST, _WIDEST, 0.5
    for _ in range(_MAX_STEPS):
        value, slope = _shape_equation(u, p, q, r, alpha)
        if value > 0.0:
            high = u
        else:
            low = u
        step, last = _next_step(u, value, slope, low, high, step)
        u += step
        if last:
            break
    return math.exp(u)


@njit(cache=True, nogil=True, error_model="numpy")
def _place(v, width):
    """Distance t from the lower end at v, and the share of the interval on either side of it."""
    if width == np.inf:
        return math.exp(v), 0.0, 1.0
    small = math.exp(-abs(v))
    near, far = small / (1.0 + small), 1.0 / (1.0 + small)
    if v < 0.0:
        return width * near, near, far
    return width * far, far, near


@njit(cache=True, nogil=True, error_model="numpy")
def _barrier_equation(v, p, q, r, lower, width, g_lower, g_upper, g_far, gap):
    """f′(h) · dh/dv at v and its derivative in v; t = width·expit(v), or exp(v) on a half-line."""
    t, share, rest = _place(v, width)
    factor = t * rest
    to_far = width * rest + gap if width < np.inf else np.inf
    h = lower + t
    pull = q - p / h - r / (h * h) + g_far / to_far
    bend = p / (h * h) + 2.0 * r / (h * h * h) + g_far / (to_far * to_far)
    value = g_upper * share - g_lower * rest + factor * pull
    slope = (
        (g_lower + g_upper) * share * rest + factor * (rest - share) * pull + factor * factor * bend
    )
    return value, slope


@njit(cache=True, nogil=True, error_model="numpy")
def _barrier_place(p, q, r, lower, width, g_lower, g_upper, g_far, gap, v):
    """v of the root of `barrier_root`, searched from the given v."""
    low, high, step = -_WIDEST, _WIDEST, 0.5
    for _ in range(_MAX_STEPS):
        value, slope = _barrier_equation(v, p, q, r, lower, width, g_lower, g_upper, g_far, gap)
        if value > 0.0:
            high = v
        else:
            low = v
        step, last = _next_step(v, value, slope, low, high, step)
        v += step
        if last:
            break
    return v


@elementwise
def barrier_root(p, q, r, lower, width, g_lower, g_upper, g_far, gap, current):
    """(B1)–(B4): the root, on (lower, lower + width), of

    −p/h − r/h² + q − g_lower/(h−lower) + g_upper/(upper−h) + g_far/(upper+gap−h).

    `width` may be infinite; the last two terms are then absent. The result is strictly inside.
    """
    t = current - lower
    v = 0.0
    if t > 0.0 and t < width:
        v = math.log(t) - (math.log(width - t) if width < np.inf else 0.0)
    v = _barrier_place(p, q, r, lower, width, g_lower, g_upper, g_far, gap, v)
    # Rounding can put a root that is close to an end on it, where the density is zero. The upper
    # end is a quotient: a few units less, and its product is below the dividend.
    h = min(lower + _place(v, width)[0], (lower + width) * (1.0 - 4.0 * _ROUNDING))
    return max(h, np.nextafter(lower, np.inf))


@njit(cache=True, nogil=True, error_model="numpy")
def _shared_part(h, other, beta, g_kept, g_lost, v):
    """(B5): T(h, o) = min over a of −g_kept log a − g_lost log((h−a)(o−a)) − βa, 0 < a < h, o.

    Returns where the minimum is (for the next search), T, −∂T/∂h and ∂²T/∂h². A neighbour that
    does not exist is given as zero.
    """
    if other == 0.0:
        return v, 0.0, 0.0, 0.0
    width, gap = min(h, other), abs(h - other)
    v = _barrier_place(0.0, -beta, 0.0, 0.0, width, g_kept, g_lost, g_lost, gap, v)
    a, _, rest = _place(v, width)
    near = width * rest
    to_h, to_other = (near, near + gap) if h <= other else (near + gap, near)
    value = -g_kept * math.log(a) - g_lost * (math.log(to_h) + math.log(to_other)) - beta * a
    bend_h, bend_other = g_lost / (to_h * to_h), g_lost / (to_other * to_other)
    bend_a = g_kept / (a * a)
    return v, value, g_lost / to_h, bend_h * (bend_a + bend_other) / (bend_a + bend_h + bend_other)


@elementwise
def profile_root(p, q, r, before, after, beta, g_kept, g_lost, current):
    """(B5): minimiser of −p log h + q h + r/h + T(h, before) + T(h, after) near the current h.

    The sum is not known to have a single valley, so the result is only taken if it is lower.
    """
    u = math.log(current)
    v, w = 0.0, 0.0
    low, high, step = -_WIDEST, _WIDEST, 0.5
    start, value = np.inf, 0.0
    for _ in range(_MAX_STEPS):
        h = math.exp(u)
        v, first, pull_first, bend_first = _shared_part(h, before, beta, g_kept, g_lost, v)
        w, second, pull_second, bend_second = _shared_part(h, after, beta, g_kept, g_lost, w)
        value = first + second - p * u + q * h + r / h
        if start == np.inf:
            start = value
        slope = h * (q - pull_first - pull_second) - p - r / h
        if slope > 0.0:
            high = u
        else:
            low = u
        curvature = slope + p + 2.0 * r / h + h * h * (bend_first + bend_second)
        step, last = _next_step(u, slope, curvature, low, high, step)
        u += step
        if last:
            break
    return math.exp(u) if value <= start else current
