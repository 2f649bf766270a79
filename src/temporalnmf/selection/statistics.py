"""Tests of paired differences of errors over a few dependent splits of one data set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from .._typing import Array

# Fewest splits, or effective origins, for an interval.
FEWEST = 5
# Relative spread below which differences count as equal up to rounding.
_ROUNDING = 1e-12


class Difference(NamedTuple):
    """Mean of paired differences, its 95 % interval, and the p-value of no difference.

    Interval and p-value are NaN if no method applies.
    """

    mean: float
    low: float = float("nan")
    high: float = float("nan")
    p: float = float("nan")


def resampled_error(differences: Array, ratio: float, n: float | None = None) -> float:
    """Standard error of a mean over splits that share data (Nadeau and Bengio 2003).

    s √(1/n + ratio), where `ratio` is the number of test items over that of training items: two
    splits have a correlation of about n_test/(n_train + n_test), however many there are. `n` is
    the number of splits, or their effective one. NaN with one split.
    """
    if len(differences) < 2:
        return float("nan")
    n = len(differences) if n is None else n
    return float(np.std(differences, ddof=1) * np.sqrt(1.0 / n + ratio))


def over_splits(differences: Array, ratio: float) -> Difference:
    """Corrected resampled t over random splits, (n,)."""
    return _t(differences, ratio, len(differences))


def over_origins(differences: Array, ratio: float) -> Difference:
    """The same over forecast origins, (n,) in order of time, with their effective number."""
    return _t(differences, ratio, effective_number(differences))


def effective_number(differences: Array) -> float:
    """Effective number of differences, (n,) in order of time, for the mean.

    n (1 − φ)/(1 + φ), at most n, for differences whose correlation is φ^|i−j|. φ is estimated at
    lag 1; its bias in short series, −(1 + 3φ)/n, is subtracted (Kendall 1954).
    """
    n = len(differences)
    centred = differences - differences.mean() if n else differences
    power = float(centred @ centred)
    if n < 2 or power == 0.0:
        return float(n)
    found = float(centred[1:] @ centred[:-1]) / power
    phi = min(max((n * found + 1.0) / (n - 3.0), 0.0), 1.0) if n > 3 else 0.0
    return n * (1.0 - phi) / (1.0 + phi)


def _t(differences: Array, ratio: float, n: float) -> Difference:
    mean = float(np.mean(differences)) if len(differences) else float("nan")
    if not n >= FEWEST or not np.isfinite(mean):
        return Difference(mean)
    error = resampled_error(differences, ratio, n)
    if error <= _ROUNDING * float(np.max(np.abs(differences))):
        return Difference(mean)
    reach = error * float(stats.t.ppf(0.975, n - 1.0))
    p = 2.0 * float(stats.t.sf(abs(mean) / error, n - 1.0))
    return Difference(mean, mean - reach, mean + reach, p)


def holm(p: Array) -> Array:
    """p-values adjusted for multiple comparisons (Holm 1979); NaN stays NaN."""
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p)[: int(np.sum(~np.isnan(p)))]
    m = len(order)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(m, 0, -1)), 1.0)
    return adjusted
