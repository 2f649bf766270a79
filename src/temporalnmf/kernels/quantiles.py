"""Quantiles of negative binomial variables with given means and variances."""

import math

import numpy as np

from .dense import compiled

# Probabilities are added up to this mean, if that of zero is not too small; quantiles of larger
# variables are those of a curve: a Gamma variable's, or with little excess of the variance, a
# normal one's with the skewness of the count.
_SUMMED, _LEAST_LOG, _LIKE_GAMMA = 100.0, -600.0, 4.0


@compiled
def fill_quantiles(mean, variance, tail, z, out):
    """Set out (n,) to the quantiles at the probability `tail`, whose normal quantile is z."""
    for i in range(mean.size):
        out[i] = _quantile(mean[i], max(variance[i], mean[i] * (1.0 + 1e-9)), tail, z)


@compiled
def _quantile(mean, variance, tail, z):
    share = mean / variance
    size = mean * share / (1.0 - share)
    log_zero = size * math.log(share)
    if mean <= _SUMMED and log_zero > _LEAST_LOG:
        mass = math.exp(log_zero)
        total, count = mass, 0.0
        while total < tail and mass > 1e-18 * total + 1e-300:
            mass *= (count + size) / (count + 1.0) * (1.0 - share)
            count += 1.0
            total += mass
        return count
    if variance > _LIKE_GAMMA * mean:
        shape = mean * mean / variance
        third = 1.0 / (9.0 * shape)
        root = max(1.0 - third + z * math.sqrt(third), 0.0)
        return np.ceil(max(mean * root * root * root - 0.5, 0.0))
    spread = math.sqrt(variance)
    skewness = (2.0 - share) / math.sqrt(size * (1.0 - share))
    return np.ceil(max(mean + spread * (z + skewness * (z * z - 1.0) / 6.0) - 0.5, 0.0))
