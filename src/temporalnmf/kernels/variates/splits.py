"""Splits of a count: binomial in two parts, multinomial in several."""

import math

import numpy as np

from .shared import compiled, log_rising

# Counts up to this are drawn one by one.
_FEW = 8.0
# Means below this are drawn by inversion; P(k > 120) < 1e-80 there.
_SMALL_MEAN = 10.0
_INVERSION_END = 120.0


@compiled
def _one_by_one(rng, n, p):
    count = 0.0
    for _ in range(int(n)):
        count += 1.0 if rng.random() < p else 0.0
    return count


@compiled
def _by_inversion(rng, n, p):
    """Count up until the sum of P exceeds a uniform number."""
    odds = p / (1.0 - p)
    term = math.exp(n * math.log1p(-p))
    u = rng.random()
    k = 0.0
    end = min(n, _INVERSION_END)
    while u >= term and k < end:
        u -= term
        k += 1.0
        term *= odds * (n - k + 1.0) / k
    return k


@compiled
def binomial_log_ratio(n, p, mode, k):
    """log(P(mode + k) / P(mode))."""
    slope = math.log(p / (1.0 - p) * ((n - mode + 1.0) / (mode + 1.0)))
    return k * slope - log_rising(mode + 1.0, k) - log_rising(n - mode + 1.0, -k)


@compiled
def binomial_hat(n, p):
    """Constants a, b of the transformation, the bound of v for quick acceptance, and a scale."""
    deviation = math.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    return -0.0873 + 0.0248 * b + 0.01 * p, b, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation


@compiled
def _by_rejection(rng, n, p):
    """Transformed rejection with squeeze, for p ≤ ½ and n p ≥ 10.

    W. Hörmann (1993), The generation of binomial random variates, Journal of Statistical
    Computation and Simulation 46, 101-110, algorithm BTRS. The last comparison uses differences of
    log factorials without cancellation for large n.
    """
    a, b, certain, scale = binomial_hat(n, p)
    rounds = 0
    while True:
        rounds += 1
        u = rng.random() - 0.5
        v = rng.random()
        us = 0.5 - abs(u)
        k = np.floor((2.0 * a / us + b) * u + n * p + 0.5)
        if us >= 0.07 and v <= certain:
            return k, rounds
        if 0.0 <= k <= n and us > 0.0:
            mode = np.floor((n + 1.0) * p)
            # a/us² + b is the derivative of the transformation.
            ratio = math.exp(binomial_log_ratio(n, p, mode, k - mode))
            if v * scale <= ratio * (a / (us * us) + b):
                return k, rounds


@compiled
def binomial_rounds(rng, n, p):
    """Successes for p ≤ ½, and the number of rounds."""
    if n <= _FEW:
        return _one_by_one(rng, n, p), 1
    if n * p < _SMALL_MEAN:
        return _by_inversion(rng, n, p), 1
    return _by_rejection(rng, n, p)


@compiled
def binomial(rng, n, p):
    """Draw the number of successes in n trials.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : float
        Number of trials, a whole number.
    p : float
        Probability of success.

    Returns
    -------
    float
        A whole number from 0 to n.
    """
    if not (p > 0.0 and n > 0.0):
        return 0.0
    if p >= 1.0:
        return float(n)
    if p <= 0.5:
        return binomial_rounds(rng, float(n), float(p))[0]
    return n - binomial_rounds(rng, float(n), 1.0 - p)[0]


@compiled
def _sum_from(weights, k):
    total = 0.0
    for j in range(k, len(weights)):
        total += weights[j]
    return total


@compiled
def _part(rng, v, weight, later):
    """The part of the first of two weights, drawn by the smaller one to avoid p near one."""
    if weight < later:
        return binomial(rng, v, weight / (weight + later))
    return v - binomial(rng, v, later / (weight + later))


@compiled
def _allocate_few(rng, v, weights, total, last, out):
    """Allocate a small count unit by unit."""
    for _ in range(int(v)):
        u = rng.random() * total
        k = 0
        while k < last and u >= weights[k]:
            u -= weights[k]
            k += 1
        out[k] += 1.0


@compiled
def allocate(rng, v, weights, out):
    """Split a count at random in proportion to weights, and add the parts to `out`.

    Parameters
    ----------
    rng : numpy.random.Generator
    v : float
        Count, a whole number.
    weights : array, shape (K,)
        Not negative. If all are zero, nothing is added.
    out : array, shape (K,)
    """
    total = 0.0
    last = -1
    for k in range(len(weights)):
        total += weights[k]
        if weights[k] > 0.0:
            last = k
    if last < 0:
        return
    if v <= _FEW:
        _allocate_few(rng, v, weights, total, last, out)
        return
    # `later` is the sum of the weights after k: by subtraction, but summed again whenever it has
    # halved, to limit rounding errors.
    later = summed = total
    for k in range(last):
        later -= weights[k]
        if later < 0.5 * summed:
            later = summed = _sum_from(weights, k + 1)
        part = _part(rng, v, weights[k], later)
        out[k] += part
        v -= part
    out[last] += v
