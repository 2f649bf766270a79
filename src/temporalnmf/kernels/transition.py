"""The transition density of BGAR, an integral over the retained part.

With w = min(h_{n−1}, h_n), a = w t the part of h_{n−1} retained in h_n, δ = |h_n − h_{n−1}|/w and
y = 1 − t,

    p(h_n | h_{n−1}) = C ∫ t^η y^γ (δ + y)^(γ−1) exp(−β w y) dv,   v = log(t/y),

over the real line. In v the integrand has one maximum: the slope of its logarithm, divided by t,
is negative at y = 0 and from there rises (γ < 1) or is convex (γ ≥ 1). It decays exponentially on
both sides and is analytic in a strip, so the trapezoidal rule converges geometrically; in the tails
its terms are a geometric series, however small η or γ is.
"""

import math

import numpy as np
from numba import njit, vectorize

# Largest step, absolutely and relative to the width of the maximum.
_STEP = 0.2
_PART = 0.4
_NEGLIGIBLE = 1e-18
# Beyond v = ∓(40 + logarithm of the coefficients), 1 + e^∓v and the like are 1 in doubles.
_FAR = 40.0


@njit(cache=True, nogil=True, error_model="numpy")
def _log_integrand(v, eta, gamma, rate, gap, log_gap):
    if v >= 0.0:
        e = math.exp(-v)
        log_t = -math.log1p(e)
        log_y = log_t - v
        y = e / (1.0 + e)
    else:
        e = math.exp(v)
        log_y = -math.log1p(e)
        log_t = log_y + v
        y = 1.0 / (1.0 + e)
    log_far = log_y
    if gap > 1.0:  # it may be infinite
        log_far = log_gap + math.log1p(y / gap)
    elif gap > 0.0:
        log_far = math.log(gap + y)
    return eta * log_t + gamma * log_y + (gamma - 1.0) * log_far - rate * y


@njit(cache=True, nogil=True, error_model="numpy")
def _slope(v, eta, gamma, rate, gap):
    """Slope of the logarithm, divided by t; its sign changes once."""
    y = 1.0 / (1.0 + math.exp(v))
    beyond = (1.0 - gamma) / (1.0 + gap * (1.0 + math.exp(v)))
    return eta * math.exp(-v) - gamma + beyond + rate * y


@njit(cache=True, nogil=True, error_model="numpy")
def _top(eta, gamma, rate, gap):
    """v of the maximum, and the curvature of the logarithm there."""
    low, high, reach = 0.0, 0.0, 1.0
    while _slope(low, eta, gamma, rate, gap) < 0.0:
        low, reach = low - reach, 2.0 * reach
    reach = 1.0
    while _slope(high, eta, gamma, rate, gap) > 0.0:
        high, reach = high + reach, 2.0 * reach
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _slope(middle, eta, gamma, rate, gap) > 0.0:
            low = middle
        else:
            high = middle
    v = 0.5 * (low + high)
    t, y = 1.0 / (1.0 + math.exp(-v)), 1.0 / (1.0 + math.exp(v))
    passed = min(gap * math.exp(v), 1e150)
    curved = (1.0 - gamma) * passed / (1.0 + gap + passed) ** 2
    return v, t * (eta * math.exp(-v) + rate * y * t + curved)


@njit(cache=True, nogil=True, error_model="numpy")
def _half(start, step, top, eta, gamma, rate, gap, log_gap, edge, power):
    """Sum of the terms on one side of the maximum; beyond `edge` they fall like exp(−power |v|)."""
    total, v = 0.0, start
    ratio = math.exp(-power * abs(step))
    while True:
        v += step
        term = math.exp(_log_integrand(v, eta, gamma, rate, gap, log_gap) - top)
        total += term
        if abs(v) > edge and (v > 0.0) == (step > 0.0):
            return total + term * ratio / -math.expm1(-power * abs(step))
        if term < _NEGLIGIBLE * min(1.0, power * abs(step)):
            return total


@njit(cache=True, nogil=True, error_model="numpy")
def _log_integral(eta, gamma, rate, gap, log_gap):
    """log ∫ t^η y^γ (δ + y)^(γ−1) exp(−rate·y) dv."""
    power = gamma if gap > 0.0 else 2.0 * gamma - 1.0
    if power <= 0.0:
        return math.inf
    v, curvature = _top(eta, gamma, rate, gap)
    step = min(_STEP, _PART / math.sqrt(curvature)) if curvature > 0.0 else _STEP
    top = _log_integrand(v, eta, gamma, rate, gap, log_gap)
    largest = max(1.0, eta, gamma, rate)
    left = _FAR + math.log(largest)
    right = _FAR + math.log(max(largest, largest / gap if gap > 0.0 else 1.0))
    total = 1.0 + _half(v, -step, top, eta, gamma, rate, gap, log_gap, left, eta)
    total += _half(v, step, top, eta, gamma, rate, gap, log_gap, right, power)
    return top + math.log(total * step)


@vectorize(cache=True)
def bgar_log_density(h, before, eta, gamma, beta):
    """log p(h_n = h | h_{n−1} = before), without −log B(η, γ) − log Γ(γ) + γ log β; η, γ > 0."""
    if not h > 0.0:
        return -np.inf
    width = min(h, before)
    gap = abs(h - before) / width
    log_gap = math.log(abs(h - before)) - math.log(width) if gap > 1.0 else 0.0
    powers = (eta + 2.0 * gamma - 2.0) * math.log(width) - (eta + gamma - 1.0) * math.log(before)
    integral = _log_integral(eta, gamma, beta * width, gap, log_gap)
    return powers - beta * max(h - before, 0.0) + integral
