"""Do intervals hold what they promise? Forecasts of the past, and what they missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, xlog1py, xlogy
from scipy.stats import binomtest, poisson
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from . import registry
from .fitting import fit_factors
from .forecasting import Noise, check_coverage
from .likelihoods import Poisson
from .likelihoods.base import Array
from .predicting import NO_LAW, data_of, forecast
from .telling import without
from .timeline import timeline_of
from .validation import Series, check_count

# Steps before the first origin, and origins, below which nothing can be learned.
_FEWEST_STEPS, _FEWEST_ORIGINS = 8, 5
_N_SAMPLES = 1000
# Entries that the dispersion is found from, at the most.
_MOST_ENTRIES = 50_000


@dataclass(frozen=True, eq=False)
class Calibration:
    """What forecasts of the past were like.

    Attributes
    ----------
    coverage : float
        What the intervals promise.
    n_origins : int
        How many forecasts were made, each without a look at what came after.
    inside, widened_inside : int
        How many totals of the first step ahead lay in their interval, model taken at its word and
        with the noise.
    entries : float
        The share of single entries that did, given the other entries of their step (counts at an
        end of an interval in part, so that a perfect model has about `coverage`).
    noise : Noise
        What intervals have to be widened by to hold what they promise; they now are.
    """

    coverage: float
    n_origins: int
    inside: int
    widened_inside: int
    entries: float
    noise: Noise

    @property
    def band(self) -> tuple[float, float]:
        """95 % confidence band of the coverage of totals."""
        found = binomtest(self.inside, self.n_origins).proportion_ci(0.95, "exact")
        return float(found.low), float(found.high)

    def _excess(self, mean: float) -> float:
        return 1.0 + self.noise.dispersion + self.noise.clumping * mean

    def __str__(self) -> str:
        low, high = self.band
        n, share = self.n_origins, self.inside / self.n_origins
        verdict = "too few"
        if low <= self.coverage <= high:
            verdict = "as it should be, as far as so few can tell"
        elif low > self.coverage:
            verdict = "more than need be"
        promise = n / (n + 1)
        limit = f" So few can promise {promise:.0%} at the most." if promise < self.coverage else ""
        return (
            f"Of {n} forecasts of the past, {self.inside} step totals lay in their "
            f"{self.coverage:.0%} interval ({share:.0%}, 95 % confidence {low:.0%} to {high:.0%}): "
            f"{verdict}. Of single entries, {self.entries:.0%} did. Intervals are now widened and "
            f"hold {self.widened_inside} of the {n}: a step as a whole strays by "
            f"{np.sqrt(self.noise.level[0]):.0%}, an entry with mean 5 has {self._excess(5.0):.2g} "
            f"times the variance of a Poisson.{limit}"
        )


def calibrate(
    model: Any, n_origins: int, steps: int, coverage: float, progress: Callable[..., Any] | None
) -> Calibration:
    """See `TemporalNMF.calibrate`."""
    n_origins, steps = check_count("n_origins", n_origins), check_count("steps", steps)
    (coverage,) = check_coverage(coverage)
    if model.chain_.name == "none":
        raise ValueError(NO_LAW)
    if not model._likelihood().additive:
        raise ValueError(
            f"calibrate is for counts, and the likelihood is {model._likelihood().name!r}."
        )
    series = data_of(model, "calibrate")
    origins = _origins(series, n_origins)
    past = clone(model).set_params(n_init=1, n_chains=1, verbose=0, callback=None, checkpoint=None)
    if not isinstance(past.init, str):
        past.set_params(init="random")  # starting values have the length of the whole series
    found: list[Look] = []
    for i, origin in enumerate(map(int, origins)):
        _fit_until(past, series, origin)
        past.set_params(warm_start=True)  # each origin knows the ones before, none a later one
        found += looks(past, series, origin, steps)
        if progress is not None:
            progress(i + 1, len(origins))
    return calibration_of(found, coverage)


def calibration_of(found: list[Look], coverage: float) -> Calibration:
    """What looks at the past teach, at least one of which is a first step ahead."""
    first = [look for look in found if look.first]
    level = _levels(found, coverage)
    x, mean = _entries_given_others(first)
    return Calibration(
        coverage=coverage,
        n_origins=len(first),
        inside=_held(first, np.zeros(1), coverage),
        widened_inside=_held(first, level, coverage),
        entries=_share_inside(x, mean, coverage),
        noise=Noise(level, *_dispersion(x, mean)),
    )


def _origins(series: Series, n_origins: int) -> Array:
    """The last observed steps that have enough before them, and not only zeros."""
    if n_origins < _FEWEST_ORIGINS:
        raise ValueError(
            f"n_origins={n_origins}: fewer than {_FEWEST_ORIGINS} forecasts teach nothing. Ask for "
            f"more."
        )
    seen = np.flatnonzero(series.observed)
    counted = (int(n) for n in seen if np.any(np.multiply(*series.row(int(n))) > 0.0))
    first = next(counted)
    origins = seen[_FEWEST_STEPS:]
    origins = origins[origins > first][-n_origins:]
    if len(origins) < _FEWEST_ORIGINS:
        raise ValueError(
            f"The series has {len(seen)} observed steps: calibrate needs at least "
            f"{_FEWEST_STEPS + _FEWEST_ORIGINS}, and a value above zero before the last "
            f"{_FEWEST_ORIGINS}."
        )
    return origins


def _fit_until(past: Any, series: Series, origin: int) -> None:
    """Fit to the steps before the origin."""
    known = series.take(np.arange(origin)).on_grid(timeline_of(np.arange(origin)))
    past.n_features_in_ = series.X.shape[1]
    # How far single runs of draws have settled shows in what they forecast.
    unwanted = (ConvergenceWarning,) if past.solver in registry.SAMPLERS else ()
    with without(*unwanted):
        past._take(fit_factors(past, known), known)


@dataclass(frozen=True, eq=False)
class Look:
    """What came at a step, and what was expected, over the entries that were observed."""

    first: bool  # the step at the origin itself
    ahead: int  # steps since the last observed one
    x: Array
    mean: Array
    rates: Array  # simulated rates of the total

    @property
    def total(self) -> float:
        return float(self.x.sum())


def looks(past: Any, series: Series, origin: int, steps: int) -> Iterator[Look]:
    """The steps from the origin on, as far as there are any with data."""
    steps = min(steps, series.n_steps - origin)
    exposure = series.exposure[origin : origin + steps]
    ahead = forecast(past, steps, 0.9, exposure, "mean", _N_SAMPLES, 0)
    for s in range(steps):
        x, weight = series.row(origin + s)
        there = weight > 0.0
        if there.any():
            rates = ahead.rates(s)[:, there]
            yield Look(
                first=s == 0,
                ahead=int(ahead.ahead[s]),
                x=np.asarray(x[there], dtype=float),
                mean=rates.mean(axis=0),
                rates=rates.sum(axis=1),
            )


def _levels(looks: list[Look], coverage: float) -> Array:
    """Variance of the common factor by steps ahead: never less for more.

    A horizon that was seen too seldom has the variance of the one before, or of the first that
    was seen often enough; if none was, all looks are taken together.
    """
    horizons = np.array([look.ahead for look in looks])
    often = [h for h in np.unique(horizons) if np.sum(horizons == h) >= _FEWEST_ORIGINS]
    if not often:
        return np.full(horizons.max(), _level_variance(looks, coverage))
    found = [_level_variance([look for look in looks if look.ahead == h], coverage) for h in often]
    places = np.searchsorted(often, np.arange(1, horizons.max() + 1), side="right") - 1
    return np.maximum.accumulate(found)[np.maximum(places, 0)]


def _level_variance(looks: list[Look], coverage: float) -> float:
    """The least variance of a common factor at which enough totals lie in their intervals.

    Enough is what makes the next total lie in its interval with the probability asked for, if it
    behaves like these: ⌈(n+1)·coverage⌉ of n, as in conformal prediction; n at the most, so that
    with few looks n/(n+1) is all that can be promised. Outliers beyond that share do not matter.
    A factor with mean one cannot be arbitrarily wide: if no variance is enough, it is the one that
    holds most.
    """
    enough = min(int(np.ceil((len(looks) + 1) * coverage)), len(looks))
    held = []
    for variance in _VARIANCES:
        held.append(_held(looks, np.full(max(look.ahead for look in looks), variance), coverage))
        if held[-1] >= enough:
            return float(variance)
    return float(_VARIANCES[int(np.argmax(held))])


# Variances that are tried, from small to large. Beyond two most of the law is next to zero.
_VARIANCES = np.concatenate([[0.0], np.geomspace(1e-4, 2.0, 100)])


def _held(looks: list[Look], level: Array, coverage: float) -> int:
    """How many totals lie in their central intervals."""
    noise, tail, inside = Noise(level, 0.0, 0.0), 0.5 - coverage / 2.0, 0
    for i, look in enumerate(looks):
        rng = np.random.default_rng(i)  # the same numbers for every variance
        totals = Poisson().sample(noise.widen(look.rates[:, None], look.ahead, rng), rng)
        below, above = np.mean(totals < look.total), np.mean(totals > look.total)
        inside += bool(1.0 - above > tail and 1.0 - below > tail)
    return inside


def _entries_given_others(looks: list[Look]) -> tuple[Array, Array]:
    """Entries and their means, scaled to what the other entries of their step turned out to be.

    By the total itself, an entry would be part of its own yardstick. A single feature has no
    others and is not scaled.
    """
    xs, means = [], []
    for look in looks:
        others = look.mean.sum() - look.mean
        scale = np.divide(look.total - look.x, others, out=np.ones_like(others), where=others > 0.0)
        xs.append(look.x)
        means.append(look.mean * scale)
    x, mean = np.concatenate(xs), np.concatenate(means)
    every = -(-len(x) // _MOST_ENTRIES)
    return x[::every], np.maximum(mean[::every], 1e-12)


def _dispersion(x: Array, mean: Array) -> tuple[float, float]:
    """Dispersion and clumping of counts, by maximum likelihood.

    A Poisson whose rate is Gamma with variance dμ + cμ² is a negative binomial with size
    μ/(d + cμ): d alone is the kind in which variance is proportional to the mean, c alone the one
    in which it grows with its square.
    """

    def cost(logs: Array) -> float:
        dispersion, clumping = np.exp(logs)
        size = mean / (dispersion + clumping * mean)
        log_density = (
            gammaln(x + size) - gammaln(size) + xlog1py(size, -mean / (size + mean))
            + xlogy(x, mean / (size + mean))
        )  # fmt: skip
        return -float(np.mean(log_density))  # without log x!, also where x is no whole number

    poisson_cost = -float(np.mean(xlogy(x, mean) - mean))
    found = minimize(cost, _SIMPLEX[0], method="Nelder-Mead", options=_SEARCH)
    if poisson_cost <= found.fun:
        return 0.0, 0.0
    dispersion, clumping = np.exp(found.x).tolist()
    return dispersion, clumping


# Logs of dispersion and clumping that the search begins with, and its end.
_SIMPLEX = [[0.0, -2.0], [-2.0, -2.0], [0.0, -4.0]]
_SEARCH = {"initial_simplex": _SIMPLEX, "xatol": 0.01, "fatol": 1e-7, "maxiter": 400}


def _share_inside(x: Array, mean: Array, coverage: float) -> float:
    """The share of counts in their central Poisson intervals, ties in part.

    A count x covers the probabilities from P(< x) to P(≤ x); what of them lies between the tails
    counts. A correct law has exactly the coverage, whatever its steps.
    """
    tail = 0.5 - coverage / 2.0
    lower, upper = poisson.cdf(x - 1.0, mean), poisson.cdf(x, mean)
    shared = np.minimum(upper, 1.0 - tail) - np.maximum(lower, tail)
    width = upper - lower
    there = width > 0.0
    return float(np.mean(np.where(there, np.maximum(shared, 0.0) / np.where(there, width, 1.0), 0)))
