"""From a fitted model to steps it has not seen: forecast and smooth."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from .._typing import Array
from ..chains.base import Point
from ..data.aligning import aligned_ahead
from ..data.modulation import Days, Exposure, by_days
from ..data.series import Series
from ..data.validation import check_exposure
from ..effects.design import Design
from ..effects.trend import Trend
from ..kernels.floor import FLOOR
from ..likelihoods.negative_binomial import dispersed
from ..messages.arguments import check_choice, check_count
from ..messages.errors import Arg, ArgumentError
from ..messages.formatting import counted, level_text, number_text, percent
from ..timeline.grid import time_texts
from .checks import Unseen
from .forecast import Forecast, check_coverage, few_beyond, samples_for
from .futures import Futures, Mixture
from .notes import Code, Note
from .posterior import MOST, Steps, posterior_of
from .state import State

# Default number of samples, and the largest number for wide intervals.
_N_SAMPLES, _MOST_SAMPLES = 1000, 100_000


def forecast(
    state: State,
    steps: int,
    coverage: Any,
    exposure: Any,
    point: Point | None,
    n_samples: int | None,
    seed: Any,
    design: Design | None = None,
) -> Forecast:
    """The steps after the last; see `TemporalNMF.forecast`.

    `design` has the columns of effects there.
    """
    steps, coverage, seed = check_count("steps", steps), check_coverage(coverage), _check_seed(seed)
    N, K = state.levels.shape
    n_samples = _n_samples(n_samples, coverage, steps * K)
    point = state.config.point if point is None else point
    check_choice("point", point, ("mean", "mode"))
    past: Exposure = state.modulation
    if by_days(exposure):
        exposure, past = None, Days.of(state.timeline)
    assumed = exposure is None and not past.trivial and not past.known_ahead
    if exposure is None and not past.trivial:
        exposure = past.ahead(steps).values
    if np.ndim(exposure) == 0 and not isinstance(exposure, str | None):
        exposure = np.full(steps, exposure)
    size = check_exposure(aligned_ahead(exposure, state.timeline, steps), steps)
    found = posterior_of(state).ahead(steps, point, n_samples, np.random.default_rng([seed, N]))
    times = state.timeline.following(steps)
    unseen = N - 1 - int(np.flatnonzero(state.observed)[-1])
    ahead = unseen + np.arange(1, steps + 1)
    notes = (
        *([Note("exposure_assumed", size=float(size[0]))] if assumed else ()),
        *_notes(state),
        *_short(state, ahead),
        *_horizon(state, ahead),
        *_seasons(state),
        *_trend(state, found, design, times),
        *_fates(state, found, times),
        *_few(found.draws, coverage),
    )
    observed = np.zeros(steps, dtype=bool)
    unseen = Unseen(ahead, np.zeros_like(ahead))
    return _made(state, found, design, times, size, observed, unseen, coverage, notes, seed, N)


def _n_samples(n_samples: int | None, coverage: tuple[float, ...], numbers: int) -> int:
    """The number asked for, or the number needed for the ends of the widest interval."""
    if n_samples is not None:
        return check_count("n_samples", n_samples)
    most = min(_MOST_SAMPLES, max(_N_SAMPLES, MOST // numbers))
    return min(max(_N_SAMPLES, samples_for(max(coverage))), most)


def _few(draws: Array | None, coverage: tuple[float, ...]) -> list[Note]:
    """A note on intervals with few samples beyond their ends."""
    widest = max(coverage)
    if draws is None or len(draws) == 1 or (1 - widest) / 2 >= few_beyond(len(draws)) - 1e-9:
        return []
    wanted = Arg("n_samples", str(samples_for(widest)))
    return [Note("few_samples", level=level_text(widest), samples=len(draws), wanted=wanted)]


def smooth(
    state: State, series: Series | None, coverage: Any, n_samples: int | None, seed: Any
) -> Forecast:
    """All steps of a series, the fitted one by default; see `TemporalNMF.smooth`."""
    coverage, seed = check_coverage(coverage), _check_seed(seed)
    n_samples = _n_samples(n_samples, coverage, state.levels.size)
    found = posterior_of(state).sample(series, n_samples, np.random.default_rng([seed, 0]))
    timeline, exposure, observed = state.timeline, state.exposure, state.observed
    design = None if state.effects is None else state.effects.design
    if series is not None:
        assert series.timeline is not None
        timeline, exposure, observed = series.timeline, series.exposure, series.observed
        design = series.design
    unseen, times = unseen_of(observed), timeline.times
    ahead = unseen.nearest
    notes = (*_notes(state), *_short(state, ahead), *_few(found.draws, coverage))
    return _made(state, found, design, times, exposure, observed, unseen, coverage, notes, seed, 0)


def _made(
    state: State,
    levels: Steps,
    design: Design | None,
    times: Array,
    exposure: Array,
    observed: Array,
    unseen: Unseen,
    coverage: tuple[float, ...],
    notes: tuple[Note, ...],
    seed: int,
    first: int,
) -> Forecast:
    """A forecast: levels times factors; `first` is the index of its first step."""
    found = posterior_of(state).with_factors(levels, design)
    return Forecast(
        times=times,
        activations=found.levels,
        components=state.components,
        exposure=exposure,
        observed=observed,
        point=found.point,
        feature_names=state.feature_names,
        component_names=state.component_names,
        ahead=unseen.nearest,
        coverage=coverage,
        notes=notes,
        futures=_simulated(state, found, exposure, unseen, seed, first),
        calibration=state.calibration,
        drawn=found.drawn,
        factors=state.factors_by_term(design),
    )


def _simulated(
    state: State, found: Steps, exposure: Array, unseen: Unseen, seed: int, first: int
) -> Futures | None:
    """Futures from draws (S, T, K) of the activations; `first` is the index of the first step."""
    draws = found.draws
    if draws is None:
        return None
    components, likelihood = state.components, state.likelihood
    if found.which is not None:
        assert found.drawn is not None
        components = found.drawn.components
        assert state.draws is not None
        likelihood = state.draws.likelihood_at(found.which)
    if state.calibration is not None:
        noise = state.calibration.noise
        draws = noise.widen(draws, unseen, np.random.default_rng([seed, first, _WIDENED]))
        likelihood = dispersed(likelihood, noise.dispersion)
    steps, mixture = draws.shape[1], Mixture(components, len(draws), found.which)
    streams = np.column_stack([np.full(steps, seed), first + np.arange(steps)])
    return Futures(draws, exposure, mixture, likelihood, streams)


# Last part of a seed, in addition to those of `Futures`.
_WIDENED = 1


def _check_seed(seed: Any) -> int:
    if seed is None:
        return int(np.random.default_rng().integers(2**31))
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        problem = ": expected a whole number of at least 0, or None."
        raise ArgumentError("random_state", seed, problem)
    return int(seed)


def unseen_of(observed: Array) -> Unseen:
    """Distances of the steps of a series to the observed ones on both sides."""
    steps, seen = np.arange(len(observed)), np.flatnonzero(observed)
    after = np.searchsorted(seen, steps)
    before = np.maximum(np.where(observed, after, after - 1), 0)
    since = np.abs(steps - seen[before])
    inside = (steps > seen[0]) & (steps < seen[-1])
    until = np.where(inside, seen[np.minimum(after, len(seen) - 1)] - steps, 0)
    return Unseen(since, until)


def _notes(state: State) -> tuple[Note, ...]:
    """Notes on all steps."""
    chain, notes = state.chain, []
    if not chain.has_law:
        return (Note("no_intervals"),)
    if not state.likelihood.has_law:
        return (Note("no_distribution", likelihood=repr(state.likelihood)),)
    if state.draws is not None and not state.draws.diagnosis.ok:
        found = state.draws.diagnosis
        settled = {q.name for q in found.quantities if q.settled(found.n_runs)}
        agreed = {"totals", "forecasts"} <= settled
        code: Code = "components_differ" if agreed else "runs_differ"
        notes.append(Note(code, verdict=found.advice))
    if not chain.dynamic:
        notes.append(Note("independent_steps", chain=chain.name))
    if state.config.automatic and state.series is not None and not state.series.whole:
        notes.append(Note("fractions"))
    if state.calibration is None:
        notes.append(Note("not_checked" if state.likelihood.counts else "not_counts"))
    return tuple(notes)


def _short(state: State, ahead: Array) -> list[Note]:
    """A note on intervals that are too narrow even after calibration."""
    found = state.calibration
    if found is None or not state.has_law:
        return []
    if not (short := found.short(range(1, max(int(ahead.max()), 1) + 1))):
        return []
    held = ", ".join(f"{check.name} {check.share(check.after)}" for check in short)
    return [Note("too_narrow", level=level_text(found.coverage), held=held)]


def _horizon(state: State, ahead: Array) -> list[Note]:
    """A note on steps beyond those that calibration checked."""
    found, last = state.calibration, int(ahead[-1])
    if found is None or not state.has_law or last <= max(found.horizons):
        return []
    return [Note("beyond_checked", checked=counted(max(found.horizons), "step"), last=last)]


# Steps in a season, and its name.
_SEASONS = {
    "month": (12, "year"), "quarter": (4, "year"), "3 months": (4, "year"), "week": (52, "year"),
    "day": (7, "week"), "hour": (24, "day"),
}  # fmt: skip
# Least correlation of changes one season apart, and least standard deviation of changes of log
# totals: in constant data, smaller changes remain when a solver stops.
_SEASONAL, _LEAST_SPREAD = 0.4, 1e-3
# Lengths of one season that differ by less than this share, such as 52 and 52.18 weeks.
_SAME_LENGTH = 0.02


def _seasons(state: State) -> list[Note]:
    """A note on changes of the levels that repeat every season, if the model has no such season."""
    every, last = state.timeline.every, time_texts(state.timeline.times)[-1]
    length, name = _SEASONS.get(every, (None, ""))
    totals = (state.levels.sum(axis=1) * state.exposure)[state.observed.argmax() :]
    if length is None or len(totals) < 3 * length or _has_season(state, length):
        return []
    change = np.diff(np.log(np.maximum(totals, 1e-300)))
    pair = np.stack([change[length:], change[:-length]])
    if pair.std(axis=1).min() < _LEAST_SPREAD:
        return []
    correlation = float(np.corrcoef(pair)[0, 1])
    if correlation <= _SEASONAL:
        return []
    step = every if every[0].isdigit() else f"one {every}"
    others = [] if state.effects is None else [season.period for season in state.effects.seasons]
    wanted = Arg("season", repr([name, *others] if others else name))
    facts = {"length": length, "step": step, "correlation": correlation, "last": last}
    return [Note("seasons", **facts, wanted=wanted)]


def _has_season(state: State, length: int) -> bool:
    """Whether a season of the model, or one of its harmonics, has some number of steps."""
    for season in () if state.effects is None else state.effects.seasons:
        assert season.steps is not None
        assert season.terms is not None
        harmonic = round(season.steps / length)
        same = abs(season.steps - harmonic * length) < _SAME_LENGTH * season.steps
        if same and 1 <= harmonic <= season.terms:
            return True
    return False


def _trend(state: State, future: Steps, design: Design | None, times: Array) -> list[Note]:
    """A note on the growth of totals, from the last step to the end of the horizon, by a trend."""
    if state.effects is None or design is None:
        return []
    effects = state.effects.at(design)
    before, after = state.effects.trend_factors(), effects.trend_factors()
    if before is None or after is None:
        return []
    trend = next(term for term in design.terms if isinstance(term, Trend))
    end = future.levels[-1] * effects.factors[:, -1]
    factor = float(end.sum() / np.maximum(end * before[:, -1] / after[:, -1], FLOOR).sum())
    course = "lasts" if trend.damping == 1.0 else "fades out"
    facts = {"course": course, "when": time_texts(times)[-1], "growth": factor}
    return [Note("trend", **facts, change=_change_of_totals(factor))]


# From this factor on a growth is not written in per cent; smaller changes than the least one are
# not written.
_MANY_TIMES, _LEAST_CHANGE = 2.0, 5e-4


def _change_of_totals(factor: float) -> str:
    """What a trend does to totals, in words."""
    if abs(factor - 1.0) < _LEAST_CHANGE:
        return "leaves totals as they are"
    if factor >= _MANY_TIMES:
        return f"multiplies totals by {number_text(factor, 2)}"
    return f"{'raises' if factor > 1.0 else 'lowers'} totals by {percent(abs(factor - 1.0))}"


# A path has faded out, or exploded, below, or above, this multiple of its last value; least share
# of such paths for a note.
_FADED, _EXPLODED = 0.1, 10.0
_LEAST_SHARE = 0.1


def _fates(state: State, future: Steps, times: Array) -> list[Note]:
    """A note on each component that fades out or explodes by the end of the horizon."""
    if future.draws is None or not state.chain.dynamic:
        return []
    end, regimes = future.draws[:, -1], state.chain.regime()
    when, found = time_texts(times)[-1], []
    for k, (name, last) in enumerate(zip(state.component_names, future.start, strict=True)):
        low, high = np.mean(end[:, k] < _FADED * last), np.mean(end[:, k] > _EXPLODED * last)
        if max(low, high) < _LEAST_SHARE:
            continue
        code: Code = "fades_out" if low >= high else "explodes"
        share = percent(max(low, high))
        regime = regimes[k] if isinstance(regimes, list) else regimes
        about = {"component": k + 1, "name": str(name)}
        found.append(Note(code, **about, when=when, share=share, regime=regime))
    return found
