"""The Bessel distribution: n, given that two Poisson variables are n and n + ν."""

import math

import numpy as np

from .shared import compiled, envelope_draw, log_rising

# Modes below this are drawn by inversion; above, log factorials use Stirling's series.
_SMALL_MODE = 16.0
_ROUNDING = 1e-17

# With g = x²/4, P(n)/P(n−1) = g/(n (n + ν)) decreases: P is log-concave, and the mode is the
# integer part of the root of n (n + ν) = g. (L. Devroye 2002, Simulating Bessel random variables,
# Statistics & Probability Letters 57, 249-257, has a wider envelope.)


@compiled
def _by_inversion(rng, nu, g):
    """Count up until the sum of P exceeds a uniform share of the total."""
    term, total, n = 1.0, 1.0, 0.0
    while term > _ROUNDING * total:
        n += 1.0
        term *= g / (n * (n + nu))
        total += term
    u = rng.random() * total
    term, count = 1.0, 0.0
    while u >= term and count < n:
        u -= term
        count += 1.0
        term *= g / (count * (count + nu))
    return count


@compiled
def bessel_log_ratio(nu, mode, slope, k):
    """log(P(mode + k) / P(mode)), slope = log(P(mode + 1) / P(mode))."""
    return k * slope - log_rising(mode + 1.0, k) - log_rising(mode + nu + 1.0, k)


@compiled
def _by_rejection(rng, nu, g, mode):
    """Rejection from an envelope of the step function P: a uniform and two exponential parts."""
    # P is about normal near the mode, and falls to 1/e at √2 standard deviations.
    reach = math.sqrt(2.0 / (1.0 / (mode + 1.0) + 1.0 / (mode + 1.0 + nu)))
    s, t = np.floor(reach), np.ceil(reach)
    slope = math.log(g / ((mode + 1.0) * (mode + 1.0 + nu)))
    left, right = bessel_log_ratio(nu, mode, slope, -s), bessel_log_ratio(nu, mode, slope, t)
    xi = math.log(g / ((mode - s) * (mode - s + nu)))
    zeta = -math.log(g / ((mode + t + 1.0) * (mode + t + 1.0 + nu)))
    rounds = 0
    while True:
        rounds += 1
        # The step of k is [k, k+1), so on the falling side the contact is at the end of the step.
        y, height = envelope_draw(rng, s, -left, xi, t + 1.0, -right, zeta)
        k = np.floor(y)
        if k >= -mode and height <= bessel_log_ratio(nu, mode, slope, k):
            return mode + k, rounds


@compiled
def bessel_rounds(rng, nu, x):
    if not (nu > -1.0 and 0.0 <= x < math.inf and nu < math.inf):
        return math.nan, 0
    g = 0.25 * x * x
    r = math.hypot(nu, x)
    mode = np.floor(2.0 * g / (r + nu) if nu > 0.0 else 0.5 * (r - nu))
    if mode < _SMALL_MODE:
        return _by_inversion(rng, nu, g), 1
    return _by_rejection(rng, nu, g, mode)


@compiled
def bessel(rng, nu, x):
    """Draw from the Bessel distribution, P(n) ∝ (x/2)^(2n+ν) / (n! Γ(n+ν+1)), n = 0, 1, ….

    Parameters
    ----------
    rng : numpy.random.Generator
    nu : float
        Order, above −1.
    x : float
        Not negative.

    Returns
    -------
    float
        A whole number; NaN outside the domain.
    """
    return bessel_rounds(rng, float(nu), float(x))[0]
