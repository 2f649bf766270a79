"""Forecasts of past steps at fixed components, and what was observed.

From each past step the activations, given the data up to it (`inference/filtering.py`), are
predicted some steps ahead, in closed form: totals and activations as log-normal variables, entries
as negative binomial or binomial ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import ndtri

from .._typing import Array
from ..chains.base import Chain
from ..data.series import Series
from ..inference.filtering import Filtered, predicted
from ..kernels.floor import FLOOR
from ..kernels.quantiles import fill_quantiles
from ..likelihoods.base import Likelihood
from .checks import Noise

# Entries that are compared, and at least so many per forecast.
_MOST_ENTRIES, _FEWEST_ENTRIES = 6000, 10
# Components that are compared: the least share of the total, and the least share of the variance of
# their prediction that the data of a step take away.
_LEAST_PART, _LEAST_GAIN = 0.02, 0.3
# Counts with a variance closer to their mean, relative to it, are negative binomial.
_POISSON = 0.05
# From this mean on quantiles of binomial distributions overflow, and their width does not matter.
_LARGE = 1e12

Ends = tuple[Array, Array]  # of intervals
Pairs = list[tuple[int, int]]  # an index of the origins, and steps ahead from 0


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


def compared(
    chain: Chain, likelihood: Likelihood, series: Series, W: Array, found: Filtered,
    origins: Array, pairs: Pairs, factors: Array | None = None,
) -> tuple[Totals, Entries, Parts | None]:  # fmt: skip
    """Forecasts from the origins, and what was observed; `factors` (N, K) are those of effects."""
    h = np.exp(found.means[origins])
    which, ahead = np.array(pairs).T
    target = origins[which] + 1 + ahead
    moments = predicted(chain, h, found.covariances[origins], 1 + int(ahead.max()))
    width = max(_MOST_ENTRIES // len(pairs), _FEWEST_ENTRIES)
    totals: list[Array] = []
    entries: list[Array] = []
    parts: list[Array] = []
    for n in np.unique(target).tolist():
        here = np.flatnonzero(target == n)
        i, s = which[here], ahead[here]
        factor = 1.0 if factors is None else factors[n]
        of_step = moments.means[s, i] * factor, moments.covariances[s, i]
        total, some = _forecasts(series, n, W, likelihood, *of_step, width)
        u = found.means[n] + np.log(factor)
        part, whose = parts_of(*of_step, u, found.covariances[n])
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


def log_normal_ends(expected: Array, variance: Array, coverage: float) -> Ends:
    """Ends of the intervals of log-normal variables with these means and variances of logs."""
    tails = ndtri([0.5 - coverage / 2.0, 0.5 + coverage / 2.0])
    centre = np.log(np.maximum(expected, FLOOR)) - 0.5 * variance
    low, high = np.exp(centre + np.multiply.outer(tails, np.sqrt(variance)))
    return low, high


def entry_ends(entries: Entries, noise: Noise, coverage: float) -> Ends:
    """Ends of the intervals of entries with these means and variances: negative binomial, or
    binomial if the variance is smaller than the mean."""
    tails = np.array([[0.5 - coverage / 2.0], [0.5 + coverage / 2.0]])
    mean, variance = entries.expected, entries.variance(noise)
    ends = np.empty((2, len(mean)))
    for tail, out in zip(tails[:, 0].tolist(), ends, strict=True):
        fill_quantiles(mean, variance, tail, float(ndtri(tail)), out)
    if np.any(few := (variance < mean * (1.0 - _POISSON)) & (mean < _LARGE)):
        trials = np.ceil(mean[few] ** 2 / (mean - variance)[few])
        ends[:, few] = stats.binom.ppf(tails, trials, mean[few] / trials)
    low, high = ends
    return low, high
