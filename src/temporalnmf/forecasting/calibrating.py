"""Calibrate intervals by comparing forecasts of past steps with the data."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import registry
from .._typing import Array
from ..data.series import Series
from ..inference.config import Config
from ..inference.fitting import fit_factors, infer_mode
from ..kernels.floor import FLOOR
from ..likelihoods.base import Likelihood
from ..likelihoods.negative_binomial import dispersed
from ..messages.arguments import check_count
from ..messages.errors import ArgumentError
from ..messages.warning import without
from ..timeline.grid import timeline_of
from .checks import CHECKED, Calibration, Check, Checked, Noise, Tally, Unseen
from .dispersion import dispersion_of
from .forecast import check_coverage
from .futures import Futures
from .notes import Note
from .predicting import forecast
from .sequential import FEWEST_ORIGINS, FEWEST_STEPS, sequential_check
from .state import State

# Default number of origins, with refits and without.
_N_ORIGINS, _MOST_ORIGINS = 20, 100
# Simulated futures per origin, for totals and for entries.
_N_SAMPLES, _N_ENTRY_SAMPLES = 500, 250
# Entries to compare: at most about this many in all, but at least so many per step.
_MOST_ENTRIES, _FEWEST_ENTRIES = 10_000, 50

Progress = Callable[[int, int], object]  # called with (origins done, all origins)


def calibrate(
    state: State,
    n_origins: int | None,
    steps: int,
    coverage: float,
    refit: bool,
    progress: Progress | None,
) -> Calibration:
    """See `TemporalNMF.calibrate`."""
    if n_origins is None:
        n_origins = _N_ORIGINS if refit else _MOST_ORIGINS
    n_origins, steps = check_count("n_origins", n_origins), check_count("steps", steps)
    (coverage,) = check_coverage(coverage)
    if not state.chain.has_law:
        raise ValueError(Note("no_intervals"))
    state.likelihood.check_law("calibrate")
    if not state.likelihood.counts:
        name = state.likelihood.name
        raise ValueError(
            f"calibrate is for counts, and the likelihood is {name!r}. Compare intervals of a "
            f"forecast with steps that you left out of the fit."
        )
    series = state.data("calibrate")
    origins = _origins(series, n_origins)
    if not refit and state.draws is not None:
        remedy = "Leave it out, or use a model fitted by solver='accelerated'."
        raise ArgumentError("refit", refit, ": draws are made anew for each origin.", remedy)
    if not refit:
        return sequential_check(state, n_origins, steps, coverage)
    most_entries = max(_MOST_ENTRIES // (len(origins) * steps), _FEWEST_ENTRIES)
    found = []
    for i, past in enumerate(_refitted(state, series, origins)):
        found.append(past_forecast(past, series, int(origins[i]), steps, most_entries))
        if progress is not None:
            progress(i + 1, len(origins))
    return calibration_of(found, coverage)


def _refitted(state: State, series: Series, origins: Array) -> Iterator[State]:
    """Models fitted to the steps before each origin."""
    config = replace(
        state.config,
        n_init=1,
        n_chains=1,
        verbose=0,
        callback=None,
        checkpoint=None,
        previous=None,
        random_state=copy.deepcopy(state.config.random_state),  # fits advance a RandomState
    )
    if not isinstance(config.init, str):
        config = replace(config, init="random")  # starting values are for the whole series
    for origin in origins.tolist():
        past = _fit_until(config, series, origin)
        yield past
        # Start from the previous fit, which saw earlier steps only.
        config = replace(config, previous=past.factors)


def _before(series: Series, origin: int) -> Series:
    """The steps before an origin, at which trends end."""
    if series.design is not None and series.timeline is not None:
        series = series.designed(series.design.ending(series.timeline.clock, origin))
    return replace(series.take(np.arange(origin)), timeline=timeline_of(np.arange(origin)))


def _origins(series: Series, n_origins: int) -> Array:
    """The last observed steps that have enough steps before them, not all zero."""
    if n_origins < FEWEST_ORIGINS:
        problem = f": at least {FEWEST_ORIGINS} forecasts are needed to learn from."
        raise ArgumentError("n_origins", n_origins, problem)
    seen = np.flatnonzero(series.observed)
    first = next(int(n) for n in seen if np.any(np.multiply(*series.row(int(n))) > 0.0))
    origins = seen[FEWEST_STEPS:]
    origins = origins[origins > first][-n_origins:]
    if len(origins) < FEWEST_ORIGINS:
        raise ValueError(
            f"The series has {len(seen)} observed steps: calibrate needs at least "
            f"{FEWEST_STEPS + FEWEST_ORIGINS}, and a value above zero before the last "
            f"{FEWEST_ORIGINS}."
        )
    return origins


def _fit_until(config: Config, series: Series, origin: int) -> State:
    """Fit to the steps before the origin."""
    known = _before(series, origin)
    # The comparison with the data shows whether a single run has converged.
    unwanted = (ConvergenceWarning,) if config.drawing else ()
    with without(*unwanted):
        return State.of(config, fit_factors(config, known), known)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The observed entries of a step of a forecast."""

    step: int  # its index in the forecast
    total: float
    mass: Array  # (K,) or (S, K), sums of the components over the entries
    activations: Array  # (K,), estimated from this step alone, given the components
    spread: Array  # (K, K), root of the covariance of that estimate at the forecast mean
    x: Array  # (n,), some of the entries
    components: Array  # (K, n) or (S′, K, n), of these entries


@dataclass(frozen=True, eq=False)
class PastForecast:
    """A forecast from an origin, and what was observed."""

    futures: Futures
    ahead: Array
    outcomes: tuple[Outcome, ...]

    @cached_property
    def normals(self) -> Array:
        """Random numbers for the noise, the same for every `Noise` that is tried."""
        S, T, K = self.futures.activations.shape
        rng = np.random.default_rng([*self.futures.streams[0], 1])
        return rng.standard_normal((T, S, 1 + K))


def past_forecast(
    past: State, series: Series, origin: int, steps: int, most_entries: int = 500
) -> PastForecast:
    """Forecast from an origin, up to the end of the series, by a model of the steps before it."""
    steps = min(steps, series.n_steps - origin)
    came = np.arange(origin, origin + steps)
    design = None
    if series.design is not None and series.timeline is not None:
        design = series.design.ending(series.timeline.clock, origin).take(came)
    made = forecast(past, steps, 0.9, series.exposure[came], "mean", _N_SAMPLES, 0, design)
    assert made.futures is not None
    there = [n for n in came.tolist() if np.any(series.row(n)[1] > 0.0)]
    H = _activations_alone(past, series.take(np.array(there)))
    outcomes = [
        _outcome(past, made.futures, n - origin, *series.row(n), h, most_entries)
        for n, h in zip(there, H.T, strict=True)
    ]
    return PastForecast(made.futures, made.ahead, tuple(outcomes))


def _activations_alone(past: State, series: Series) -> Array:
    """Activations (K, N) of steps, each from its own data alone."""
    chain = registry.create(registry.CHAINS, "none", "chain")
    plain = past.factors._replace(chain=chain, effects=None)
    with without(ConvergenceWarning):
        return infer_mode(replace(past.config, solver="accelerated"), plain, series)


def _outcome(
    past: State, futures: Futures, step: int, x: Array, weight: Array, h: Array, most: int
) -> Outcome:
    there = np.flatnonzero(weight > 0.0)
    x = np.asarray(x[there], dtype=float)
    W = past.components[:, there]
    some = np.arange(len(x))[:: -(-len(x) // most)]
    mass, of_some = W.sum(axis=1), W[:, some]
    if (which := futures.mixture.which) is not None:
        drawn = futures.mixture.components
        mass = drawn[:, :, there].sum(axis=2, dtype=float)[which]
        of_some = drawn[which[:_N_ENTRY_SAMPLES]][:, :, there[some]]
    mean = futures.activations[:, step].mean(axis=0)
    spread = _spread(W, mean, float(futures.exposure[step]), past.likelihood)
    return Outcome(step, float(x.sum()), mass, h, spread, x[some], of_some)


def _spread(W: Array, h: Array, exposure: float, likelihood: Likelihood) -> Array:
    """Root of the inverse of the Fisher information of the activations in one step."""
    means = exposure * np.maximum(h @ W, FLOOR)
    weight = likelihood.curvature(means, np.ones_like(means), means, expected=True)
    values, vectors = np.linalg.eigh(exposure**2 * (W * weight) @ W.T)
    return np.asarray(vectors / np.sqrt(np.maximum(values, FLOOR)))


def calibration_of(past: list[PastForecast], coverage: float) -> Calibration:
    """Calibration from past forecasts, at least one of which has an observed first step."""
    last = max(int(one.ahead[outcome.step]) for one in past for outcome in one.outcomes)
    none = Noise(np.zeros(last), np.zeros(last))
    before = compare_with_past(past, none, coverage)
    noise = _learned(past, none, coverage)
    after = compare_with_past(past, noise, coverage)
    dispersion = _best_dispersion(past, noise, before, after, coverage)
    while dispersion > 0.0:
        # Dispersion of entries also widens totals: estimate the level again.
        tried = _learned(past, replace(none, dispersion=dispersion), coverage)
        found = compare_with_past(past, tried, coverage)
        if _no_worse(before, after, found, coverage):
            noise, after = tried, found
            break
        dispersion = dispersion / 2.0 if dispersion > _LEAST_DISPERSION else 0.0
    checks = []
    for of, ahead in sorted(before, key=lambda key: (CHECKED.index(key[0]), key[1])):
        values, tallies = before[of, ahead], [_tally(side[of, ahead]) for side in (before, after)]
        checks.append(Check(of, ahead, len(values), sum(one.n for one in values), *tallies))
    return Calibration(coverage, tuple(checks), noise)


# A smaller dispersion makes no difference.
_LEAST_DISPERSION = 0.05


def _best_dispersion(
    past: list[PastForecast], noise: Noise, before: _ByHorizon, without: _ByHorizon, coverage: float
) -> float:
    """The dispersion with the best interval score of entries, halved from the likeliest one."""
    dispersion, best, least = dispersion_of(*_entries_given_others(past)), 0.0, np.inf
    entries: tuple[Checked, ...] = ("entries", "positive entries")
    while dispersion > _LEAST_DISPERSION:
        found = compare_with_past(past, replace(noise, dispersion=dispersion), coverage, entries)
        if _no_worse(before, without, found, coverage):
            score = _tally(_pooled(found, "entries")).score
            if score > least:
                break
            best, least = dispersion, score
        dispersion /= 2.0
    return best


def _no_worse(before: _ByHorizon, without: _ByHorizon, tried: _ByHorizon, coverage: float) -> bool:
    """Whether intervals of entries with a dispersion are as good as before, or without it.

    A negative binomial with a large dispersion and a small mean is nearly always zero: its
    intervals are narrower than those of a Poisson. So the score must not exceed both others, and
    neither the coverage of all entries (up to the nominal one) nor that of positive entries may be
    lower than before calibration.
    """
    sides = (before, without, tried)
    old, plain, new = (_tally(_pooled(side, "entries")) for side in sides)
    if new.score > max(old.score, plain.score) * (1.0 + 1e-9):
        return False
    if min(new.inside, coverage) < min(old.inside, coverage) - 1e-12:
        return False
    positive = [_pooled(side, "positive entries") for side in (before, tried)]
    if not positive[0]:
        return True
    old, new = map(_tally, positive)
    return new.inside >= old.inside - 1e-12


def _pooled(side: _ByHorizon, of: Checked) -> list[_Compared]:
    return [one for (kind, _), values in side.items() if kind == of for one in values]


def _learned(past: list[PastForecast], noise: Noise, coverage: float) -> Noise:
    """The least noise at which enough totals, components and sums are inside their intervals."""
    steps = len(noise.level)

    def with_level(noise: Noise) -> Noise:
        level = least_variances(past, lambda v: replace(noise, level=v), steps, "totals", coverage)
        return replace(noise, level=level)

    noise = with_level(noise)
    if past[0].futures.activations.shape[2] > 1:  # the factor of a single component is the level
        own = least_variances(past, lambda v: replace(noise, own=v), steps, "components", coverage)
        noise = replace(noise, own=own)
        if own.any() and noise.level.any():  # both widen totals
            noise = with_level(noise)
    return replace(noise, persistence=_persistence(past, noise, coverage))


# Variances to try. Beyond 2, most of the mass of a log-normal with mean one is near zero.
_VARIANCES = np.concatenate([[0.0], np.geomspace(1e-4, 2.0, 48)])
_PERSISTENCES = (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)


def least_variances(
    past: list[PastForecast],
    noise_with: Callable[[Array], Noise],
    steps: int,
    of: Checked,
    coverage: float,
) -> Array:
    """The least variances, by steps ahead, at which enough values are inside their intervals.

    Enough is ⌈(n+1)·coverage⌉ of n values, as in conformal prediction: an exchangeable next value
    is then inside with the nominal probability. It is n at most, so that n forecasts guarantee at
    most n/(n+1). If that makes the interval score worse, ⌈n·coverage⌉ is enough. A factor with
    mean one cannot be arbitrarily wide: if no variance is enough, the one with the best score is
    used. Variances never fall with steps ahead.

    A horizon with too few values gets the variance of the previous one, or of the first that has
    enough; if none has, all are pooled.
    """

    def compared(variances: Array) -> dict[int, list[_Compared]]:
        found = compare_with_past(past, noise_with(variances), coverage, only=(of,))
        return {ahead: values for (_, ahead), values in found.items()}

    plain = compared(np.zeros(steps))
    often = sorted(ahead for ahead, values in plain.items() if len(values) >= FEWEST_ORIGINS)
    pools = [[ahead] for ahead in often] or [sorted(plain)]
    # Index into `pools` of each step ahead.
    pool_of = np.maximum(np.searchsorted(often, np.arange(1, steps + 1), side="right") - 1, 0)

    def tallies(places: Array) -> tuple[Array, Array]:
        at = compared(_VARIANCES[places[pool_of]])
        found = [_tally([one for ahead in pool for one in at[ahead]]) for pool in pools]
        return np.array([one.inside for one in found]), np.array([one.score for one in found])

    def search(enough: Array) -> Array:
        low, high = np.full(len(pools), -1), np.full(len(pools), len(_VARIANCES) - 1)
        never = tallies(high)[0] < enough
        while np.any(high - low > 1):
            middle = np.maximum((low + high) // 2, 0)
            reached = tallies(middle)[0] >= enough
            high, low = np.where(reached, middle, high), np.where(reached, low, middle)
        if never.any():
            places = np.arange(0, len(_VARIANCES), 4)
            scores = [tallies(np.full(len(pools), place))[1] for place in places]
            high = np.where(never, places[np.argmin(scores, axis=0)], high)
        return high

    n = np.array([sum(len(plain[ahead]) for ahead in pool) for pool in pools])
    wanted, least = (np.minimum(np.ceil(m * coverage - 1e-9), n) / n - 1e-9 for m in (n + 1, n))
    inside, score = tallies(np.zeros(len(pools), dtype=int))
    if np.all(inside >= wanted):
        return np.zeros(steps)
    places = search(wanted)
    worse = tallies(places)[1] > score
    if worse.any():
        places = np.where(worse, search(least), places)
    return np.maximum.accumulate(_VARIANCES[places])[pool_of]


def _persistence(past: list[PastForecast], noise: Noise, coverage: float) -> float:
    """The least correlation at which enough sums over the steps are inside their intervals.

    1, the worst case for sums, if too few of them were observed.
    """
    for persistence in _PERSISTENCES:
        tried = replace(noise, persistence=persistence)
        values = next(iter(compare_with_past(past, tried, coverage, only=("sums",)).values()), [])
        n = len(values)
        if n < FEWEST_ORIGINS:
            break
        if sum(one.inside for one in values) >= min(np.ceil((n + 1) * coverage - 1e-9), n):
            return persistence
    return 1.0


class _Compared(NamedTuple):
    """n values of one step: how many are inside their intervals, sums of scores and widths."""

    n: int
    inside: int
    score: float
    width: float


_ByHorizon = dict[tuple[Checked, int], list[_Compared]]


def _tally(values: list[_Compared]) -> Tally:
    n, *sums = map(sum, zip(*values, strict=True))
    return Tally(*(total / n for total in sums))


def compare_with_past(
    past: list[PastForecast], noise: Noise, coverage: float, only: Iterable[Checked] = CHECKED
) -> _ByHorizon:
    """Compare observed values with the intervals of past forecasts under this noise."""
    wanted = set(only)
    found: _ByHorizon = defaultdict(list)
    longest = max(len(one.ahead) for one in past)

    def compare(of: Checked, ahead: int, samples: Array, x: Array) -> None:
        if of in wanted and x.size:
            found[of, ahead].append(compare_with_intervals(samples, x, coverage))

    for i, one in enumerate(past):
        unseen = Unseen(one.ahead, np.zeros_like(one.ahead))
        H = noise.widen_by(one.futures.activations, unseen, one.normals)
        totals, total = np.zeros(len(H)), 0.0
        for outcome in one.outcomes:
            rng = np.random.default_rng([i, outcome.step, 2])
            h, ahead = H[:, outcome.step], int(one.ahead[outcome.step])
            exposure = one.futures.exposure[outcome.step]
            if wanted & {"totals", "sums"}:
                drawn = _counts(one, exposure * (h * outcome.mass).sum(axis=1), noise, rng)
                compare("totals", ahead, drawn[:, None], np.array([outcome.total]))
                totals, total = totals + drawn, total + outcome.total
            if "components" in wanted:
                error = rng.standard_normal(h.shape) @ outcome.spread.T
                estimated = np.maximum(h + np.sqrt(1.0 + noise.dispersion) * error, 0.0)
                compare("components", ahead, estimated, outcome.activations)
            if wanted & {"entries", "positive entries"}:
                h = h[:_N_ENTRY_SAMPLES]
                path = "sk,kf->sf" if outcome.components.ndim == 2 else "sk,skf->sf"
                rates = exposure * np.einsum(path, h, outcome.components)
                drawn = _counts(one, rates, noise, rng)
                compare("entries", ahead, drawn, outcome.x)
                positive = outcome.x > 0.0
                compare("positive entries", ahead, drawn[:, positive], outcome.x[positive])
        if longest > 1 and len(one.outcomes) == longest:
            compare("sums", longest, totals[:, None], np.array([total]))
    return found


def _counts(one: PastForecast, rates: Array, noise: Noise, rng: np.random.Generator) -> Array:
    return dispersed(one.futures.likelihood, noise.dispersion).sample(rates, rng)


def compare_with_intervals(samples: Array, x: Array, coverage: float) -> _Compared:
    """Compare values (n,) with central intervals of samples (S, n), as in `Forecast.interval`."""
    tails = np.array([0.5 - coverage / 2.0, 0.5 + coverage / 2.0])
    ranks = np.ceil(tails * len(samples) - 1e-9).astype(int) - 1
    low, high = np.partition(samples, ranks, axis=0)[ranks]
    miss = np.maximum(low - x, 0.0) + np.maximum(x - high, 0.0)
    width = float(np.sum(high - low))
    score = width + 2.0 / (1.0 - coverage) * float(miss.sum())
    return _Compared(len(x), int(np.sum(miss <= 0.0)), score, width)


def _entries_given_others(past: list[PastForecast]) -> tuple[Array, Array]:
    """Entries of first steps, and their means, scaled by the other entries of the step.

    Scaling by the total would use the entry itself. A single feature is not scaled.
    """
    xs, means = [], []
    for one in past:
        outcome = one.outcomes[0]
        h, exposure = one.futures.activations[:, outcome.step], one.futures.exposure[outcome.step]
        total = exposure * float((h * outcome.mass).sum(axis=1).mean())
        if outcome.components.ndim == 2:
            mean = exposure * (h.mean(axis=0) @ outcome.components)
        else:
            some = h[: len(outcome.components)]
            mean = exposure * np.einsum("sk,skf->f", some, outcome.components) / len(some)
        others = total - mean
        there = others > 1e-9 * total
        scale = np.divide(outcome.total - outcome.x, others, out=np.ones_like(others), where=there)
        xs.append(outcome.x)
        means.append(mean * scale)
    return np.concatenate(xs), np.maximum(np.concatenate(means), 1e-12)
