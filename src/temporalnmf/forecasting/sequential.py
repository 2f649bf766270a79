"""Errors of forecasts of past steps at fixed components, and the noise that they call for.

From each past step the activations, given the data up to it (`inference/filtering.py`), are
predicted some steps ahead and compared with the data, in closed form: totals as log-normal
variables, entries as negative binomial ones. One filter gives the forecasts from all steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import ndtri
from sklearn.isotonic import isotonic_regression

from .._typing import Array
from ..data.series import Series
from ..inference.filtering import Filtered, filtered, predicted
from ..kernels.floor import FLOOR
from ..likelihoods.base import Likelihood
from .checks import Calibration, Check, Checked, Noise, Tally
from .dispersion import dispersion_of
from .state import State

# Observed steps up to the first origin, and least number of origins.
FEWEST_STEPS, FEWEST_ORIGINS = 8, 5
# By default: steps ahead, coverage, most origins, and most values that forecasts predict.
_STEPS, _COVERAGE, _MOST_ORIGINS, _MOST_VALUES = 12, 0.9, 100, 20_000_000
# Steps before the first origin at which the filter starts.
_BEFORE = 50
# Prior of the error of a log total s steps ahead: normal, with this standard deviation times √s,
# counted as one forecast.
_PRIOR = 0.1 * ndtri((np.arange(20) + 0.5) / 20.0)
# Variances to try. Beyond 2, most of the mass of a log-normal with mean one is near zero.
_VARIANCES = np.concatenate([[0.0], np.geomspace(1e-5, 2.0, 80)])
# Entries that are compared, and the least expectation of those that determine the dispersion.
_MOST_ENTRIES, _LEAST_MEAN = 6000, 1.0
# A smaller dispersion makes no difference.
_LEAST_DISPERSION = 0.05


Ends = tuple[Array, Array]  # of intervals
Pairs = list[tuple[int, int]]  # see `_pairs`


@dataclass(frozen=True, eq=False)
class Totals:
    """Forecasts of totals, and what was observed; one number per forecast."""

    origin: Array  # the last step that was known
    ahead: Array
    observed: Array
    expected: Array
    spread: Array  # variance of the logarithm of the expectation
    noise: Array  # variance of the data given their expectation

    def variance(self, level: Array, dispersion: float) -> Array:
        """(E1): variance of log totals, given the variance of the level by horizon."""
        of_data = (self.noise + dispersion * self.expected) / np.maximum(self.expected, FLOOR) ** 2
        return self.spread + np.log1p(of_data) + np.log1p(level)[self.ahead - 1]

    @property
    def error(self) -> Array:
        """Logarithm of the ratio of observed and expected totals, defined for zeros, too."""
        return np.log((self.observed + 0.5) / (self.expected + 0.5))


@dataclass(frozen=True, eq=False)
class Entries:
    """Forecasts of some entries, and what was observed; one number per entry."""

    origin: Array
    ahead: Array
    observed: Array
    expected: Array
    spread: Array  # variance of the logarithm of the expectation
    noise: Array  # variance of the data given their expectation
    ratio: Array  # observed over expected total of the step


def check_of(state: State) -> Calibration | None:
    """The check of a fitted model with default settings; None if it cannot be made."""
    known = state.series is not None and state.draws is None
    if not (known and state.has_law and state.likelihood.counts):
        return None
    n_origins = max(_MOST_VALUES // (_STEPS * state.components.shape[1]), FEWEST_ORIGINS)
    n_origins = min(n_origins, _MOST_ORIGINS)
    origins = origins_of(state.observed, n_origins)
    pairs = _pairs(state.observed, origins, _STEPS)
    if min(len(origins), len(pairs)) < FEWEST_ORIGINS:
        return None
    return sequential_check(state, n_origins, _STEPS, _COVERAGE)


def sequential_check(state: State, n_origins: int, steps: int, coverage: float) -> Calibration:
    """Compare forecasts from the last `n_origins` steps with the data; widen what is too narrow."""
    series = state.data("calibrate")
    origins = origins_of(series.observed, n_origins)
    pairs = _pairs(series.observed, origins, steps)
    if len(pairs) < FEWEST_ORIGINS:
        raise ValueError(
            f"calibrate: only {len(pairs)} observed steps follow another one within {steps}, and "
            f"{FEWEST_ORIGINS} are needed. Give a larger number of steps."
        )
    # Steps long before the first origin hardly matter to it.
    first = int(max(np.flatnonzero(series.observed)[0], origins[0] - _BEFORE))
    W = np.ascontiguousarray(state.components.T)
    found = filtered(series, W, state.likelihood, state.chain, state.activations[first], first)
    totals, entries = _compared(state, series, W, found, origins, pairs)
    level = level_of(totals, 0.0, steps, coverage)
    dispersion = _dispersion(entries, level, coverage)
    if dispersion > 0.0:  # it widens totals, too
        level = level_of(totals, dispersion, steps, coverage)
    noise = Noise(level, np.zeros(steps), _persistence(totals), dispersion)
    checks = (*_check_totals(totals, noise, coverage), *_check_entries(entries, noise, coverage))
    return Calibration(coverage, checks, noise, refitted=False)


def origins_of(observed: Array, n_origins: int) -> Array:
    """The last steps from which a later observed step can be forecast."""
    seen = np.flatnonzero(observed)
    return np.asarray(seen[FEWEST_STEPS - 1 : -1][-n_origins:])


def _pairs(observed: Array, origins: Array, steps: int) -> Pairs:
    """Forecasts that can be compared: an index of the origins, and steps ahead from 0."""
    return [
        (i, s)
        for i, origin in enumerate(origins.tolist())
        for s in range(min(steps, len(observed) - 1 - origin))
        if observed[origin + 1 + s]
    ]


def _compared(
    state: State, series: Series, W: Array, found: Filtered, origins: Array, pairs: Pairs
) -> tuple[Totals, Entries]:
    """Forecasts from the origins, and what was observed."""
    h = np.exp(found.means[origins])
    steps = 1 + max(s for _, s in pairs)
    ahead = predicted(state.chain, h, found.covariances[origins], steps)
    width, totals, entries = max(_MOST_ENTRIES // len(pairs), 20), [], []
    for i, s in pairs:
        n = int(origins[i]) + 1 + s
        moments = ahead.means[s, i], ahead.covariances[s, i]
        total, some = _forecast(series, n, W, state.likelihood, *moments, width)
        numbers = np.array([[origins[i]], [s + 1.0]])
        totals.append(np.vstack([numbers, total]))
        entries.append(np.vstack([np.repeat(numbers, some.shape[1], axis=1), some]))
    return Totals(*_columns(totals)), Entries(*_columns(entries))


def _columns(rows: list[Array]) -> tuple[Array, ...]:
    """Fields of `Totals` or `Entries`, of which the first two are whole numbers."""
    origin, ahead, *rest = np.concatenate(rows, axis=1)
    return origin.astype(int), ahead.astype(int), *rest


def _forecast(
    series: Series, n: int, W: Array, likelihood: Likelihood, h: Array, covariance: Array, most: int
) -> tuple[Array, Array]:
    """The forecast of one step, as fields of `Totals` and, for some entries, of `Entries`."""
    x, weight = series.row(n)
    seen = np.flatnonzero(weight > 0.0)
    x, parts = x[seen].astype(float), series.exposure[n] * W[seen] * h
    means = np.maximum(parts.sum(axis=1), FLOOR)
    noise = 1.0 / likelihood.curvature(means, np.ones_like(means), means, expected=True)
    total, expected = float(x.sum()), float(means.sum())
    share = parts.sum(axis=0) / expected
    some = np.arange(len(x))[:: -(-len(x) // most)]
    shares = parts[some] / means[some, None]
    spread = np.einsum("fk,kl,fl->f", shares, covariance, shares)
    ratio = np.full(len(some), total / expected)
    entries = np.vstack([x[some], means[some], spread, noise[some], ratio])
    of_total = total, expected, share @ covariance @ share, noise.sum()
    return np.array(of_total)[:, None], entries


def _dispersion(entries: Entries, level: Array, coverage: float) -> float:
    """Dispersion of entries beyond that of the likelihood, halved until it does no harm.

    With a large dispersion and a small mean, a negative binomial is nearly always zero. So it must
    not increase the interval score of entries, nor decrease their coverage (below the nominal one)
    or that of positive entries.
    """
    dispersion = _likeliest_dispersion(entries)
    without = _entry_ends(entries, level, 0.0, coverage)
    score, inside, positive = _performance(entries, without, coverage)
    while dispersion > _LEAST_DISPERSION:
        tried = _performance(entries, _entry_ends(entries, level, dispersion, coverage), coverage)
        if tried[0] <= score and tried[1] >= min(inside, coverage) and tried[2] >= positive:
            return dispersion
        dispersion /= 2.0
    return 0.0


def _likeliest_dispersion(entries: Entries) -> float:
    """(E2): maximum-likelihood estimate for entries scaled to the total of their step."""
    there = (entries.expected > _LEAST_MEAN) & (entries.ratio > 0.0)
    if not there.any():
        return 0.0
    means = (entries.expected * entries.ratio)[there]
    own = float(np.median(entries.noise[there] / entries.expected[there])) - 1.0
    return max(dispersion_of(entries.observed[there], means) - own, 0.0)


def level_of(totals: Totals, dispersion: float, steps: int, coverage: float) -> Array:
    """Variance of the level by steps ahead, (steps,), which never falls with them.

    The least one with which the nominal share of past totals is inside their intervals, with
    (n + 1)/n of it for n forecasts, as in conformal prediction.
    """
    found, counts = np.zeros((2, steps))
    variance = totals.variance(np.zeros(steps), dispersion)
    for s in range(steps):
        here = totals.ahead == s + 1
        if not here.any():
            continue
        counts[s] = n = np.count_nonzero(here)
        prior = np.sqrt(s + 1.0) * _PRIOR
        errors = np.concatenate([totals.error[here], prior])
        known = np.concatenate([variance[here], np.zeros_like(prior)])
        weights = np.concatenate([np.ones(n), np.full(len(prior), 1.0 / len(prior))])
        share = min(coverage * (n + 2.0) / (n + 1.0), 1.0)
        found[s] = _least_variance(errors, known, weights, share, coverage)
    # Horizons that were never observed have the level of the one before, or of the first.
    known = np.flatnonzero(counts)
    near = np.maximum(np.searchsorted(known, np.arange(steps), side="right") - 1, 0)
    return np.asarray(isotonic_regression(found[known], sample_weight=counts[known]))[near]


def _least_variance(
    errors: Array, known: Array, weights: Array, share: float, coverage: float
) -> float:
    """The least variance of the level at which a share of errors is inside intervals."""
    total = np.maximum(known + np.log1p(_VARIANCES)[:, None], FLOOR)
    # Log-normal variables with mean one have the median exp(−variance/2).
    scaled = np.abs(errors + 0.5 * total) / np.sqrt(total)
    order = np.argsort(scaled, axis=1)
    sorted_weights = weights[order]
    below = (np.cumsum(sorted_weights, axis=1) - 0.5 * sorted_weights) / weights.sum()
    ends = [
        np.interp(share, x, y)
        for x, y in zip(below, np.take_along_axis(scaled, order, axis=1), strict=True)
    ]
    enough = np.flatnonzero(np.array(ends) <= ndtri(0.5 + coverage / 2.0))
    return float(_VARIANCES[enough[0] if len(enough) else np.argmin(ends)])


def _persistence(totals: Totals) -> float:
    """Correlation of the errors of successive steps of one forecast; 1 if none are known."""
    places = {(o, s): i for i, (o, s) in enumerate(zip(totals.origin, totals.ahead, strict=True))}
    pairs = [(i, places[o, s + 1]) for (o, s), i in places.items() if (o, s + 1) in places]
    if not pairs:
        return 1.0
    one, other = totals.error[np.array(pairs)].T
    size = float(np.sqrt(np.mean(one**2) * np.mean(other**2)))
    return float(np.clip(np.mean(one * other) / size, 0.0, 1.0)) if size else 1.0


def _check_totals(totals: Totals, noise: Noise, coverage: float) -> list[Check]:
    tails = ndtri([0.5 - coverage / 2.0, 0.5 + coverage / 2.0])
    sides = []
    for level, dispersion in ((0.0 * noise.level, 0.0), (noise.level, noise.dispersion)):
        variance = totals.variance(level, dispersion)
        centre = np.log(np.maximum(totals.expected, FLOOR)) - 0.5 * variance
        low, high = np.exp(centre + np.multiply.outer(tails, np.sqrt(variance)))
        sides.append((np.floor(low), np.ceil(high)))
    return _checks("totals", totals, sides, coverage)


def _check_entries(entries: Entries, noise: Noise, coverage: float) -> list[Check]:
    sides = [
        _entry_ends(entries, level, dispersion, coverage)
        for level, dispersion in ((0.0 * noise.level, 0.0), (noise.level, noise.dispersion))
    ]
    return _checks("entries", entries, sides, coverage)


def _entry_ends(entries: Entries, level: Array, dispersion: float, coverage: float) -> Ends:
    """Ends of the intervals of entries, as negative binomial variables with these variances."""
    tails = np.array([[0.5 - coverage / 2.0], [0.5 + coverage / 2.0]])
    mean = entries.expected
    spread = np.expm1(np.minimum(entries.spread, 5.0) + np.log1p(level)[entries.ahead - 1])
    extra = entries.noise - mean + dispersion * mean + mean**2 * spread
    size = mean**2 / np.maximum(extra, 1e-9 * mean)
    low, high = stats.nbinom.ppf(tails, size, size / (size + mean))
    return low, high


def _performance(entries: Entries, ends: Ends, coverage: float) -> tuple[float, float, float]:
    """Mean interval score, and shares of entries and of positive ones inside."""
    miss, score = _misses(entries.observed, ends, coverage)
    inside, positive = miss <= 0.0, entries.observed > 0.0
    held = float(inside[positive].mean()) if positive.any() else 1.0
    return float(score.mean()), float(inside.mean()), held


def _misses(x: Array, ends: Ends, coverage: float) -> tuple[Array, Array]:
    """Distances from the intervals, zero inside, and interval scores."""
    low, high = ends
    miss = np.maximum(low - x, 0.0) + np.maximum(x - high, 0.0)
    return miss, high - low + 2.0 / (1.0 - coverage) * miss


def _checks(
    of: Checked, found: Totals | Entries, sides: list[Ends], coverage: float
) -> list[Check]:
    """Intervals before and after widening, by steps ahead."""
    checks, x = [], found.observed
    for s in np.unique(found.ahead).tolist():
        here, tallies = found.ahead == s, []
        for low, high in sides:
            miss, score = _misses(x, (low, high), coverage)
            means = (float(np.mean(part[here])) for part in (miss <= 0.0, score, high - low))
            tallies.append(Tally(*means))
        n_origins = len(np.unique(found.origin[here]))
        checks.append(Check(of, s, n_origins, int(here.sum()), *tallies))
    return checks
