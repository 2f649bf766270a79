"""The noise that errors of past forecasts call for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtri
from sklearn.isotonic import isotonic_regression

from .._typing import Array
from ..kernels.floor import FLOOR
from .checks import Noise
from .dispersion import dispersion_of
from .past_errors import Ends, Entries, Parts, Totals, entry_ends, log_normal_ends

# Prior of the error of a log total s steps ahead: normal, with this standard deviation times √s,
# counted as one forecast.
_PRIOR = 0.1 * ndtri((np.arange(20) + 0.5) / 20.0)
# Variances to try. Beyond 2, most of the mass of a log-normal with mean one is near zero.
_VARIANCES = np.concatenate([[0.0], np.geomspace(1e-5, 2.0, 80)])
# With fewer forecasts the prior alone calls for a level.
_MANY = 23
# Factors on the variance of activations to try, if that of totals falls below a share.
_CLEAR = 0.6
_SCALES = np.append(np.geomspace(1e-3, 1.0, 40, endpoint=False), 1.0)
# The least expectation of entries that determine the dispersion, and the fewest of them.
_LEAST_MEAN, _FEWEST = 1.0, 5
# A smaller dispersion makes no difference; counts vary less than Poisson counts below this share of
# their variance, and are never taken for less than the other.
_LEAST_DISPERSION, _UNDERDISPERSED, _LEAST_SHARE = 0.05, 0.8, 0.02


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
    many = np.bincount(totals.ahead, minlength=steps + 1)[1:] >= _MANY
    if not many.any() or noise.level[many].any():
        return noise
    return _narrowed(totals, entries, parts, noise, coverage)


def _narrowed(
    totals: Totals, entries: Entries, parts: Parts | None, noise: Noise, coverage: float
) -> Noise:
    """The noise with a smaller variance of activations, if that does no harm.

    What components move on their own, which totals do not show, is learned again beside it.
    """
    without = replace(noise, level=np.zeros_like(noise.level))
    tried = replace(without, scale=scale_of(totals, without, coverage))
    if tried.scale == 1.0:
        return noise
    if parts is not None:
        if noise.own.any():
            parts_then = replace(parts, contrast_known=tried.scale * parts.contrast_known)
            tried = replace(tried, own=own_of(parts_then, len(noise.own), coverage))
        if _held(parts, tried, coverage) < min(_held(parts, noise, coverage), coverage):
            return noise
    before, after = (_performance(entries, each, coverage) for each in (noise, tried))
    worse = after[0] > before[0] or after[1] < min(before[1], coverage)
    return noise if noise.own.any() and worse else tried


def _held(parts: Parts, noise: Noise, coverage: float) -> float:
    """Share of components inside their intervals."""
    low, high = log_normal_ends(parts.expected, parts.variance(noise), coverage)
    return float(np.mean((low <= parts.observed) & (parts.observed <= high)))


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
    if n < _FEWEST or not np.allclose(entries.noise[there], entries.expected[there]):
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
        if np.count_nonzero(here) < _MANY:
            continue
        prior = np.sqrt(s) * _PRIOR
        errors, weights, share = _with_prior(totals.error[here], prior, coverage)
        known = np.append(totals.variance(replace(noise, scale=0.0))[here], np.zeros_like(prior))
        more = np.append(totals.spread[here], np.full_like(prior, np.mean(totals.spread[here])))
        variances = known + np.outer(_SCALES, more)
        least, enough = _least(errors, variances, weights, share, coverage)
        # Where noise hides the activations, the data cannot tell.
        clear = np.median(variances[least] / variances[-1]) < _CLEAR
        scales.append(_SCALES[least] if enough and clear else 1.0)
    return float(max(scales, default=1.0))


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


def _performance(entries: Entries, noise: Noise, coverage: float) -> tuple[float, float, float]:
    """Mean interval score, and shares of entries and of positive ones inside."""
    miss, score = misses(entries.observed, entry_ends(entries, noise, coverage), coverage)
    inside, positive = miss <= 0.0, entries.observed > 0.0
    held = float(inside[positive].mean()) if positive.any() else 1.0
    return float(score.mean()), float(inside.mean()), held


def misses(x: Array, ends: Ends, coverage: float) -> tuple[Array, Array]:
    """Distances from the intervals, zero inside, and interval scores."""
    low, high = ends
    miss = np.maximum(low - x, 0.0) + np.maximum(x - high, 0.0)
    return miss, high - low + 2.0 / (1.0 - coverage) * miss
