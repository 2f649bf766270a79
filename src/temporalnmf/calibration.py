"""Do intervals hold what they promise? Forecasts of the past, and what they missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaincinv, gammaln, xlog1py, xlogy
from scipy.stats import binomtest, poisson
from sklearn.base import clone

from .fitting import fit_factors
from .forecasting import Noise, check_coverage
from .likelihoods.base import Array
from .predicting import NO_LAW, data_of, forecast
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
        The share of single entries that did (counts at an end of an interval in part, so that a
        perfect model has exactly `coverage`).
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
        return (
            f"Of {n} forecasts of the past, {self.inside} step totals lay in their "
            f"{self.coverage:.0%} interval ({share:.0%}, 95 % confidence {low:.0%} to {high:.0%}): "
            f"{verdict}. Of single entries, {self.entries:.0%} did. Intervals are now widened and "
            f"hold {self.widened_inside} of the {n}: a step as a whole strays by "
            f"{np.sqrt(self.noise.level[0]):.0%}, an entry with mean 5 has {self._excess(5.0):.2g} "
            f"times the variance of a Poisson."
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
    seen = np.flatnonzero(series.observed)
    origins = seen[seen >= seen[0] + _FEWEST_STEPS][-n_origins:]
    if len(origins) < _FEWEST_ORIGINS:
        raise ValueError(
            f"The series has {len(seen)} observed steps: calibrate needs at least "
            f"{_FEWEST_STEPS + _FEWEST_ORIGINS}."
        )
    past = clone(model).set_params(n_init=1, verbose=0, callback=None)
    looks: list[list[_Look]] = [[] for _ in range(steps)]
    for i, origin in enumerate(map(int, origins)):
        _fit_until(past, series, origin)
        past.set_params(warm_start=True)  # each origin knows the ones before, none a later one
        for s, look in enumerate(_looks(past, series, origin, steps)):
            if look is not None:
                looks[s].append(look)
        if progress is not None:
            progress(i + 1, len(origins))
    level = np.array([_level_variance(found, coverage) for found in looks if found])
    x, mean = _entries_given_totals(looks[0])
    return Calibration(
        coverage=coverage,
        n_origins=len(looks[0]),
        inside=_held(looks[0], 0.0, coverage),
        widened_inside=_held(looks[0], level[0], coverage),
        entries=_share_inside(x, mean, coverage),
        noise=Noise(level, *_dispersion(x, mean)),
    )


def _fit_until(past: Any, series: Series, origin: int) -> None:
    """Fit to the steps before the origin."""
    known = series.take(np.arange(origin)).on_grid(timeline_of(np.arange(origin)))
    past.n_features_in_ = series.X.shape[1]
    past._take(fit_factors(past, known), known)


@dataclass(frozen=True, eq=False)
class _Look:
    """What came, and what was expected: entries and total, over the entries that were observed."""

    x: Array
    mean: Array
    total: float
    totals: Array  # simulated


def _looks(past: Any, series: Series, origin: int, steps: int) -> list[_Look | None]:
    """The steps from the origin on, as far as there are any with data."""
    found: list[_Look | None] = []
    steps = min(steps, series.n_steps - origin)
    exposure = series.exposure[origin : origin + steps]
    ahead = forecast(past, steps, 0.9, exposure, "mean", _N_SAMPLES, 0)
    assert ahead.draws is not None
    rng = np.random.default_rng([origin, steps])
    for s in range(steps):
        x, weight = series.row(origin + s)
        there = weight > 0.0
        if not there.any():
            found.append(None)
            continue
        rates = exposure[s] * (ahead.draws[:, s] @ past.components_[:, there])
        totals = past._likelihood().sample(rates.sum(axis=1), rng)
        x = np.asarray(x[there], dtype=float)
        found.append(_Look(x, rates.mean(axis=0), float(x.sum()), totals))
    return found


def _holds(total: float, draws: Array, coverage: float) -> bool:
    """Whether the central interval of the draws holds the total."""
    tail = 0.5 - coverage / 2.0
    below, above = np.mean(draws < total), np.mean(draws > total)
    return bool(1.0 - above > tail and 1.0 - below > tail)


def _held(looks: list[_Look], variance: float, coverage: float) -> int:
    """How many totals lie in their intervals, times a common factor of this variance."""
    factor = 1.0
    if variance > 0.0:
        # The same quantiles of the factor for every variance, against any order in the draws.
        levels = (np.random.default_rng(0).permutation(_N_SAMPLES) + 0.5) / _N_SAMPLES
        factor = gammaincinv(1.0 / variance, levels) * variance
    return sum(_holds(look.total, look.totals * factor, coverage) for look in looks)


def _level_variance(looks: list[_Look], coverage: float) -> float:
    """The least variance of a common factor at which enough totals lie in their intervals.

    Enough is what makes the next total lie in its interval with the probability asked for, if it
    behaves like these: ⌈(n+1)·coverage⌉ of n, as in conformal prediction. Outliers beyond that
    share do not matter.
    """
    n = len(looks)
    enough = min(int(np.ceil((n + 1) * coverage)), n)
    return _least(lambda variance: _held(looks, variance, coverage) >= enough, 1e-4, 25.0)


def _entries_given_totals(looks: list[_Look]) -> tuple[Array, Array]:
    """Entries and their means, scaled to what the total of their step turned out to be."""
    x = np.concatenate([look.x for look in looks])
    mean = np.concatenate([look.mean * look.total / look.mean.sum() for look in looks])
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


def _least(enough: Callable[[float], bool], low: float, high: float) -> float:
    """The least number that is enough, by bisection on the log scale; zero may be."""
    if enough(0.0):
        return 0.0
    while high / low > 1.01:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
