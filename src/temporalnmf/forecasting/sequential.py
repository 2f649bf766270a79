"""Errors of forecasts of past steps at fixed components, and the noise that they call for.

From each past step the activations, given the data up to it (`inference/filtering.py`), are
predicted some steps ahead and compared with the data, in closed form: totals and activations as
log-normal variables, entries as negative binomial or binomial ones. One filter gives the forecasts
from all steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import ndtri
from sklearn.isotonic import isotonic_regression

from .._typing import Array
from ..data.series import Series
from ..inference.filtering import Filtered, filtered, predicted
from ..kernels.floor import FLOOR
from ..kernels.quantiles import fill_quantiles
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
# Entries that are compared, at least so many per forecast, and the least expectation of those that
# determine the dispersion.
_MOST_ENTRIES, _FEWEST_ENTRIES, _LEAST_MEAN = 6000, 10, 1.0
# A smaller dispersion makes no difference; counts vary less than Poisson counts below this share of
# their variance, and are never taken for less than the other.
_LEAST_DISPERSION, _UNDERDISPERSED, _LEAST_SHARE = 0.05, 0.8, 0.02
# Components that are compared: the least share of the total, and the least share of the variance of
# their prediction that the data of a step take away.
_LEAST_PART, _LEAST_GAIN = 0.02, 0.3
# Factors on the variance of activations to try.
_SCALES = np.append(np.geomspace(1e-3, 1.0, 40, endpoint=False), 1.0)


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

    def variance(self, noise: Noise) -> Array:
        """(E1): variance of log totals."""
        data = np.maximum(self.noise + noise.dispersion * self.expected, 0.0)
        of_data = np.log1p(data / np.maximum(self.expected, FLOOR) ** 2)
        return noise.scale * self.spread + of_data + np.log1p(noise.level)[self.ahead - 1]

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
    unequal: Array  # Σ_k of (share of component k in it − share in the total)²
    share: Array  # of the total that is expected

    def variance(self, noise: Noise) -> Array:
        """Variance of entries."""
        level, own = (np.log1p(v)[self.ahead - 1] for v in (noise.level, noise.own))
        spread = noise.scale * np.minimum(self.spread, 5.0) + level + self.unequal * own
        of_data = np.maximum(self.noise + noise.dispersion * self.expected, 0.0)
        return of_data + self.expected**2 * np.expm1(spread)


@dataclass(frozen=True, eq=False)
class Parts:
    """Forecasts of single components, and what the data of the step said of them."""

    origin: Array
    ahead: Array
    observed: Array  # the activation given all data up to the step
    expected: Array
    known: Array  # variance of the log ratio of both under the model
    contrast: Array  # log ratio of both, less that of the total
    contrast_known: Array  # its variance under the model
    contrast_own: Array  # and the multiple of that of own factors which is added to it

    def variance(self, noise: Noise) -> Array:
        level, own = (np.log1p(v)[self.ahead - 1] for v in (noise.level, noise.own))
        return noise.scale * self.known + level + self.contrast_own * own


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
    totals, entries, parts = _compared(state, series, W, found, origins, pairs)
    noise = noise_of(totals, entries, parts, steps, coverage)
    checks = (
        *_check_totals(totals, noise, coverage),
        *(() if parts is None else _check_parts(parts, noise, coverage)),
        *_check_entries(entries, noise, coverage),
    )
    return Calibration(coverage, checks, noise, refitted=False)


def noise_of(
    totals: Totals, entries: Entries, parts: Parts | None, steps: int, coverage: float
) -> Noise:
    """The noise that these errors call for."""
    none = np.zeros(steps)
    noise = Noise(none, none, persistence_of(totals))
    if parts is not None:
        noise = replace(noise, own=own_of(parts, steps, coverage))
    noise = replace(noise, level=level_of(totals, noise, coverage))
    dispersion = _dispersion(entries, noise, coverage)
    if dispersion != 0.0:  # it is that of totals, too
        noise = replace(noise, dispersion=dispersion, level=none)
        noise = replace(noise, level=level_of(totals, noise, coverage))
    if not (noise.level.any() or noise.own.any()):
        noise = replace(noise, scale=scale_of(totals, noise, coverage))
    return noise


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
) -> tuple[Totals, Entries, Parts | None]:
    """Forecasts from the origins, and what was observed."""
    h = np.exp(found.means[origins])
    which, ahead = np.array(pairs).T
    target = origins[which] + 1 + ahead
    moments = predicted(state.chain, h, found.covariances[origins], 1 + int(ahead.max()))
    width = max(_MOST_ENTRIES // len(pairs), _FEWEST_ENTRIES)
    totals: list[Array] = []
    entries: list[Array] = []
    parts: list[Array] = []
    for n in np.unique(target).tolist():
        here = np.flatnonzero(target == n)
        i, s = which[here], ahead[here]
        of_step = moments.means[s, i], moments.covariances[s, i]
        total, some = _forecasts(series, n, W, state.likelihood, *of_step, width)
        part, whose = parts_of(*of_step, found.means[n], found.covariances[n])
        numbers = np.array([origins[i], s + 1.0])
        totals.append(np.vstack([numbers, total]))
        repeats = some.shape[1] // len(here)
        entries.append(np.vstack([np.repeat(numbers, repeats, axis=1), some]))
        parts.append(np.vstack([numbers[:, whose], part]))
    compared = sum(rows.shape[1] for rows in parts) > 0
    of_parts = Parts(*_columns(parts)) if compared else None
    return Totals(*_columns(totals)), Entries(*_columns(entries)), of_parts


def parts_of(h: Array, covariance: Array, u: Array, known: Array) -> tuple[Array, Array]:
    """P forecasts (P, K) of the components of a step, as fields of `Parts`, and whose they are.

    u = log h, given the data of the step, has the covariance `known` (K, K). Its difference to a
    forecast has the variance by which the data reduce that of the forecast; own factors of
    components reach it in proportion to their gain (E5).
    """
    share = h / h.sum(axis=1, keepdims=True)
    before = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), FLOOR)
    gain = np.clip(1.0 - np.diagonal(known) / before, 0.0, 1.0)
    there = (share > _LEAST_PART) & (gain > _LEAST_GAIN) & (h.shape[1] > 1)
    error, model = u - np.log(h), covariance - known
    contrasts = np.eye(h.shape[1]) - share[:, None, :]  # (P, K, K)
    rows = (
        np.exp(u) * np.ones_like(h),
        h,
        np.maximum(np.diagonal(model, axis1=1, axis2=2), 0.0),
        np.einsum("pik,pk->pi", contrasts, error),
        np.maximum(np.einsum("pik,pkl,pil->pi", contrasts, model, contrasts), 0.0),
        np.einsum("pik,pk->pi", contrasts**2, gain**2),
    )
    return np.array([row[there] for row in rows]), np.nonzero(there)[0]


def _columns(rows: list[Array]) -> tuple[Array, ...]:
    """Fields of `Totals` or `Entries`, of which the first two are whole numbers."""
    origin, ahead, *rest = np.concatenate(rows, axis=1)
    return origin.astype(int), ahead.astype(int), *rest


def _forecasts(
    series: Series, n: int, W: Array, likelihood: Likelihood, h: Array, covariance: Array, most: int
) -> tuple[Array, Array]:
    """P forecasts (P, K) of one step, as fields of `Totals` and, for some entries, of `Entries`."""
    x, weight = series.row(n)
    seen = np.flatnonzero(weight > 0.0)
    x, exposed = x[seen].astype(float), series.exposure[n] * h
    parts = exposed * W[seen].sum(axis=0)
    expected = np.maximum(parts.sum(axis=1), FLOOR)
    some = np.arange(len(x))[:: -(-len(x) // most)]
    at_some = W[seen[some]] * exposed[:, None, :]  # (P, f, K)
    means = np.maximum(at_some.sum(axis=2), FLOOR)
    if likelihood.additive:
        noise = _noise(likelihood, expected)
    else:
        noise = np.array([_noise(likelihood, row @ W[seen].T).sum() for row in exposed])
    share, shares = parts / expected[:, None], at_some / means[:, :, None]
    total = np.full(len(h), x.sum())
    spread = np.einsum("pk,pkl,pl->p", share, covariance, share)
    totals = np.array([total, expected, spread, noise])
    entries = (
        np.broadcast_to(x[some], means.shape), means,
        np.einsum("pfk,pkl,pfl->pf", shares, covariance, shares, optimize=True),
        _noise(likelihood, means), np.broadcast_to((total / expected)[:, None], means.shape),
        ((shares - share[:, None]) ** 2).sum(axis=2), means / expected[:, None],
    )  # fmt: skip
    return totals, np.array([rows.ravel() for rows in entries])


def _noise(likelihood: Likelihood, means: Array) -> Array:
    """Variance of data with these means."""
    means = np.maximum(means, FLOOR)
    return 1.0 / likelihood.curvature(means, np.ones_like(means), means, expected=True)


def _dispersion(entries: Entries, noise: Noise, coverage: float) -> float:
    """Dispersion of entries beyond that of the likelihood, halved until it does no harm.

    With a large dispersion and a small mean, a negative binomial is nearly always zero. So it must
    not increase the interval score of entries, nor decrease their coverage (below the nominal one)
    or that of positive entries. Nor may a negative one.
    """
    dispersion = _likeliest_dispersion(entries) or _missing_dispersion(entries)
    score, inside, positive = _performance(entries, noise, coverage)
    least = positive if dispersion > 0.0 else min(positive, coverage)
    while abs(dispersion) > _LEAST_DISPERSION:
        tried = _performance(entries, replace(noise, dispersion=dispersion), coverage)
        if tried[0] <= score and tried[1] >= min(inside, coverage) and tried[2] >= least:
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


def _missing_dispersion(entries: Entries) -> float:
    """(E4): how much less than Poisson counts entries vary, from −1 to 0; 0 if that is not clear.

    By Pearson's statistic one step ahead, given the total of the step.
    """
    mean = entries.expected * entries.ratio
    there = (mean > _LEAST_MEAN) & (entries.ahead == 1) & (entries.share < 0.5)
    n = np.count_nonzero(there)
    if n < FEWEST_ORIGINS or not np.allclose(entries.noise[there], entries.expected[there]):
        return 0.0
    pearson = (entries.observed - mean)[there] ** 2 / (mean * (1.0 - entries.share))[there]
    found = float(pearson.mean()) * (1.0 + 2.0 * np.sqrt(2.0 / n))
    return max(found, _LEAST_SHARE) - 1.0 if found < _UNDERDISPERSED else 0.0


def level_of(totals: Totals, noise: Noise, coverage: float) -> Array:
    """Variance of the level by steps ahead, (steps,), which never falls with them.

    The least one with which the nominal share of past totals is inside their intervals, with
    (n + 1)/n of it for n forecasts, as in conformal prediction.
    """
    return _by_horizon(
        totals.ahead, totals.error, totals.variance(noise), np.ones(len(totals.ahead)),
        len(noise.level), coverage, _PRIOR,
    )  # fmt: skip


def own_of(parts: Parts, steps: int, coverage: float) -> Array:
    """(E5): variance of the factors of single components, from their differences to the total."""
    return _by_horizon(
        parts.ahead, parts.contrast, parts.contrast_known, parts.contrast_own, steps, coverage,
        np.empty(0),
    )  # fmt: skip


def scale_of(totals: Totals, noise: Noise, coverage: float) -> float:
    """Factor on the variance of activations: the least with which enough totals are inside."""
    scales = []
    for s in np.unique(totals.ahead):
        here = totals.ahead == s
        prior = np.sqrt(s) * _PRIOR
        errors, weights, share = _with_prior(totals.error[here], prior, coverage)
        known = np.append(totals.variance(replace(noise, scale=0.0))[here], np.zeros_like(prior))
        more = np.append(totals.spread[here], np.full_like(prior, np.mean(totals.spread[here])))
        least, enough = _least(errors, known + np.outer(_SCALES, more), weights, share, coverage)
        scales.append(_SCALES[least] if enough else 1.0)
    return float(max(scales))


def _by_horizon(
    ahead: Array, error: Array, known: Array, multiple: Array, steps: int, coverage: float,
    of_prior: Array,
) -> Array:  # fmt: skip
    """The least variances v by steps ahead with which log errors are inside intervals.

    Errors have the variances known + multiple·log(1+v), and those of the prior only the latter.
    """
    found, counts = np.zeros((2, steps))
    for s in range(steps):
        here = ahead == s + 1
        if not here.any():
            continue
        counts[s] = np.count_nonzero(here)
        prior = np.sqrt(s + 1.0) * of_prior
        errors, weights, share = _with_prior(error[here], prior, coverage)
        variances = np.append(known[here], np.zeros_like(prior)) + np.outer(
            np.log1p(_VARIANCES), np.append(multiple[here], np.ones_like(prior))
        )
        found[s] = _VARIANCES[_least(errors, variances, weights, share, coverage)[0]]
    # Horizons that were never observed have the variance of the one before, or of the first.
    seen = np.flatnonzero(counts)
    near = np.maximum(np.searchsorted(seen, np.arange(steps), side="right") - 1, 0)
    return np.asarray(isotonic_regression(found[seen], sample_weight=counts[seen]))[near]


def _with_prior(error: Array, prior: Array, coverage: float) -> tuple[Array, Array, float]:
    """Errors with those of the prior, which count as one; their weights; the share to be inside."""
    n = len(error)
    weights = np.concatenate([np.ones(n), np.full(len(prior), 1.0 / max(len(prior), 1))])
    return np.append(error, prior), weights, min(coverage * (n + 2.0) / (n + 1.0), 1.0)


def _least(
    errors: Array, variances: Array, weights: Array, share: float, coverage: float
) -> tuple[int, bool]:
    """The first row of variances (V, n) with which a share of the errors (n,) is inside intervals,
    and True; if there is none, the nearest to it."""
    total = np.maximum(variances, FLOOR)
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
    return int(enough[0] if len(enough) else np.argmin(ends)), len(enough) > 0


def persistence_of(totals: Totals) -> float:
    """Correlation of the errors of successive steps of one forecast; 1 if none are known."""
    places = {(o, s): i for i, (o, s) in enumerate(zip(totals.origin, totals.ahead, strict=True))}
    pairs = [(i, places[o, s + 1]) for (o, s), i in places.items() if (o, s + 1) in places]
    if not pairs:
        return 1.0
    one, other = totals.error[np.array(pairs)].T
    size = float(np.sqrt(np.mean(one**2) * np.mean(other**2)))
    return float(np.clip(np.mean(one * other) / size, 0.0, 1.0)) if size else 1.0


def _check_totals(totals: Totals, noise: Noise, coverage: float) -> list[Check]:
    sides = []
    for each in (_none(noise), noise):
        low, high = _log_normal(totals.expected, totals.variance(each), coverage)
        sides.append((np.floor(low), np.ceil(high)))
    return _checks("totals", totals, sides, coverage)


def _check_parts(parts: Parts, noise: Noise, coverage: float) -> list[Check]:
    variances = (parts.variance(each) for each in (_none(noise), noise))
    sides = [_log_normal(parts.expected, variance, coverage) for variance in variances]
    return _checks("components", parts, sides, coverage)


def _check_entries(entries: Entries, noise: Noise, coverage: float) -> list[Check]:
    sides = [_entry_ends(entries, each, coverage) for each in (_none(noise), noise)]
    return _checks("entries", entries, sides, coverage)


def _none(noise: Noise) -> Noise:
    return Noise(0.0 * noise.level, 0.0 * noise.own)


def _log_normal(expected: Array, variance: Array, coverage: float) -> Ends:
    """Ends of the intervals of log-normal variables with these means and variances of logs."""
    tails = ndtri([0.5 - coverage / 2.0, 0.5 + coverage / 2.0])
    centre = np.log(np.maximum(expected, FLOOR)) - 0.5 * variance
    low, high = np.exp(centre + np.multiply.outer(tails, np.sqrt(variance)))
    return low, high


def _entry_ends(entries: Entries, noise: Noise, coverage: float) -> Ends:
    """Ends of the intervals of entries with these means and variances: negative binomial, or
    binomial if the variance is smaller than the mean."""
    tails = np.array([[0.5 - coverage / 2.0], [0.5 + coverage / 2.0]])
    mean, variance = entries.expected, entries.variance(noise)
    ends = np.empty((2, len(mean)))
    for tail, out in zip(tails[:, 0].tolist(), ends, strict=True):
        fill_quantiles(mean, variance, tail, float(ndtri(tail)), out)
    if np.any(few := variance < mean * (1.0 - _LEAST_DISPERSION)):
        trials = np.ceil(mean[few] ** 2 / (mean - variance)[few])
        ends[:, few] = stats.binom.ppf(tails, trials, mean[few] / trials)
    low, high = ends
    return low, high


def _performance(entries: Entries, noise: Noise, coverage: float) -> tuple[float, float, float]:
    """Mean interval score, and shares of entries and of positive ones inside."""
    miss, score = _misses(entries.observed, _entry_ends(entries, noise, coverage), coverage)
    inside, positive = miss <= 0.0, entries.observed > 0.0
    held = float(inside[positive].mean()) if positive.any() else 1.0
    return float(score.mean()), float(inside.mean()), held


def _misses(x: Array, ends: Ends, coverage: float) -> tuple[Array, Array]:
    """Distances from the intervals, zero inside, and interval scores."""
    low, high = ends
    miss = np.maximum(low - x, 0.0) + np.maximum(x - high, 0.0)
    return miss, high - low + 2.0 / (1.0 - coverage) * miss


def _checks(
    of: Checked, found: Totals | Entries | Parts, sides: list[Ends], coverage: float
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
