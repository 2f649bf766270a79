"""The number of tables in a Chinese restaurant process."""

import math

import numpy as np

from .shared import compiled
from .splits import binomial

# Customers in a block, in units of (r + i)/√r: then about one customer per block is a candidate.
_BLOCK = 1.5
_SMALLEST_BLOCK = 8.0

# Customer i opens a table with probability r/(r + i). A block of customers first … last with
# probabilities p_i between `low` and `high` is drawn in two layers: each succeeds with probability
# `low` (their number is binomial); besides, each is a candidate with probability
# e = (high − low)/(1 − low), and a candidate succeeds with probability (p_i − low)/(high − low):
#
#   low + (1 − low) e (p_i − low)/(high − low) = p_i.
#
# Candidates are found by geometric skips. Given the number of successes in the first layer, all
# subsets are equally likely, so whether a candidate is among them is drawn without replacement.
#
# While i < r, the rarer event is counted instead, customers who open no table, p_i = i/(r + i):
# probabilities close to one would be rounded.


@compiled
def _block(rng, r, first, last, opened):
    """Customers first … last who open a table if `opened`, else those who do not."""
    size = last - first + 1.0
    if opened:
        anchor, other = last, first
        low, e = r / (r + last), r * (last - first) / (last * (r + first))
    else:
        anchor, other = first, last
        low, e = first / (r + first), (last - first) / (r + last)
    count = binomial(rng, size, low)
    without, unknown = size - count, size
    scale = -1.0 / math.log1p(-e)
    i = first + np.floor(scale * rng.standard_exponential())
    while i <= last:
        # (p_i − low)/(high − low) for either kind of success.
        share = (anchor - i) / (anchor - other) * ((r + other) / (r + i))
        if rng.random() * unknown < without:
            without -= 1.0
            if rng.random() < share:
                count += 1.0
        unknown -= 1.0
        i += 1.0 + np.floor(scale * rng.standard_exponential())
    return count


@compiled
def crt(rng, n, r):
    """Draw the number of tables of n customers, the sum of Bernoulli(r/(r + i)), i = 0 … n − 1.

    Exact. The time is proportional to √r log(1 + n/r), and at most to n.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : float
        Number of customers, a whole number.
    r : float
        Concentration, positive.

    Returns
    -------
    float
        Tables, from min(n, 1) to n.
    """
    tables = min(float(n), 1.0)
    per_customer = _BLOCK / math.sqrt(r)
    i = 1.0
    while i < n:
        size = np.floor(per_customer * (r + i))
        if size < _SMALLEST_BLOCK:
            tables += 1.0 if rng.random() * (r + i) < r else 0.0
            i += 1.0
            continue
        last = min(i + size, float(n)) - 1.0
        if i < r:
            tables += last - i + 1.0 - _block(rng, r, i, last, False)
        else:
            tables += _block(rng, r, i, last, True)
        i = last + 1.0
    return tables


# Up to this many customers are faster one by one than in blocks.
_FEW = 64.0


@compiled
def few_crt(rng, n, r):
    """`crt`, by other random numbers, faster where most n are small."""
    if n > _FEW:
        return crt(rng, n, r)
    tables, i = min(float(n), 1.0), 1.0
    while i < n:
        tables += 1.0 if rng.random() * (r + i) < r else 0.0
        i += 1.0
    return tables
