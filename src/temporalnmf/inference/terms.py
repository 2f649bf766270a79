"""The terms of a model: those that the user asked for, or those that predict better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._typing import Array
from ..data.series import AnySeries, Series
from ..effects.covariates import Covariates, Influence, influences
from ..effects.design import Design, candidates, resolved, trends_of
from ..effects.holidays import holiday_terms
from ..effects.reasons import Code, Reason, Trial
from ..effects.season import Season
from ..effects.term import Term
from ..effects.trend import Trend
from ..kernels.floor import FLOOR
from ..messages.errors import Arg, ArgumentError, Text
from ..messages.warning import without
from ..timeline.clock import Clock
from .config import AUTO, FIRST, Config, Factors, likelihood_of
from .fitting import effects_at, fit_factors, infer_effects
from .smoothing import SMOOTHING

# Share of observed steps that a trial hides for each season, in runs of this share of its cycle.
_HIDDEN, _RUN = 0.2, 0.5
# Past forecasts that judge a trend, from the second half of the series, the most steps of each, and
# the fewest steps before the first.
_ORIGINS, _AHEAD, _BEFORE = 8, 6, 8
# With fewer runs than enough, several folds are hidden in turn.
_ENOUGH_RUNS, _MOST_FOLDS = 6, 4
# Steps of a long cycle.
_LONG = 24
# Iterations and tolerance of trials.
_MAX_ITER, _TOL = 100, 1e-5
# A term is worth it if errors fall by two standard errors, or by one and by this share; with fewer
# errors than the fewest, in each of them and by this share.
_FEWEST, _SHARE = 4, 0.01
# Rounds of EM for the strength of a trend in a past forecast.
_ROUNDS = 3


class Choice(NamedTuple):
    """The columns of the terms of a model, and why it has its seasons and its trend."""

    design: Design | None
    season: Reason
    trend: Reason


def choose_terms(config: Config, series: AnySeries, covariates: Covariates | None) -> Choice:
    """The terms of a fit."""
    assert series.timeline is not None
    clock = series.timeline.clock
    if not config.chain.has_law:
        config = _without_effects(config, covariates)
    known = [term.resolve(clock) for term in holiday_terms(config.holidays)]
    given: tuple[Term, ...] = tuple(known)
    if covariates is not None:
        given += influences(covariates, series.observed)
    _check_names(config, given)
    trial = _Trial(config, series, clock, covariates)
    seasons, season = trial.seasons(given)
    trends, trend = trial.trend((*given, *seasons))
    return Choice(Design.of((*given, *seasons, *trends), clock, covariates), season, trend)


def _check_names(config: Config, given: tuple[Term, ...]) -> None:
    """Refuse a country or an event twice, and a covariate with the name of an event."""
    names = [term.name for term in given]
    for n, name in enumerate(names):
        if name in names[:n]:
            what = "a covariate and an event" if isinstance(given[n], Influence) else "two of them"
            problem = f": {what} have the name {name!r}."
            remedy = "Leave one of them out, or rename it; an event may have several dates."
            raise ArgumentError("holidays", config.holidays, problem, remedy)


def _without_effects(config: Config, covariates: Covariates | None) -> Config:
    """The parameters for plain NMF, whose activations are free at every step; refuses effects."""
    asked = {"season": config.season, "trend": config.trend, "holidays": config.holidays}
    given = [name for name, value in asked.items() if value not in (None, AUTO)]
    if given or covariates is not None:
        problem = Text(
            "has free activations at every step, so {given} cannot be told apart from them.",
            given=Arg(given[0] if given else "covariates"),
        )
        remedy = "Use another chain, such as 'rate'."
        raise ArgumentError("chain", config.chain.name, problem, remedy)
    return replace(config, season=None, trend=None)


class _Trial(NamedTuple):
    """The choice of terms by short fits."""

    config: Config
    series: AnySeries
    clock: Clock
    covariates: Covariates | None

    def seasons(self, given: tuple[Term, ...]) -> tuple[tuple[Season, ...], Reason]:
        """The seasons, besides given terms, and why."""
        wanted, clock = self.config.season, self.clock
        if wanted != AUTO:
            found = resolved(wanted, clock)
            return found, Reason("given" if found else "not_wanted")
        possible = candidates(clock)
        if not isinstance(self.series, Series):
            return (), Reason("not_local")
        if not possible:
            return (), Reason(_why_none(clock))
        folds = _folds(self.series.observed, possible)
        if not folds:
            return (), Reason("few_steps")
        return self._best_seasons(given, possible, folds)

    def _best_seasons(
        self, given: tuple[Term, ...], possible: tuple[Season, ...], folds: list[Fold]
    ) -> tuple[tuple[Season, ...], Reason]:
        """The seasons with which held-out runs are predicted best, added one by one."""
        config, kept, trials = _short(self.config, possible), given, []
        first, starts = self._tried(config, folds[:1], kept, [None])
        # Only components without seasons start other folds: they do not know the pattern.
        others, more = self._tried(config, folds[1:], kept, starts * (len(folds) - 1))
        best, starts = np.concatenate([first, others]), [*starts, *more]
        for season in possible:
            errors, found = self._tried(config, folds, (*kept, season), starts)
            if _better(errors, best):
                trials.append(Trial(season.name, float(1.0 - errors.sum() / best.sum())))
                kept, best, starts = (*kept, season), errors, found
            else:
                trials.append(Trial(season.name, None))
        chosen = tuple(term for term in kept[len(given) :] if isinstance(term, Season))
        return chosen, Reason("tried", tuple(trials))

    def _tried(
        self,
        config: Config,
        folds: list[Fold],
        terms: tuple[Term, ...],
        starts: Sequence[Factors | None],
    ) -> tuple[Array, list[Factors]]:
        """Errors of the held-out runs of all folds, and the fits that predict them."""
        assert isinstance(self.series, Series)
        errors, found = [], []
        for runs, start in zip(folds, starts, strict=True):
            hidden = np.zeros((self.series.n_steps, 1), dtype=bool)
            hidden[np.concatenate(runs)] = True
            known, held = self.series.split(hidden)
            known = self._designed(known, terms)
            of_fold, factors = _errors(replace(config, previous=start), known, held, runs)
            errors.append(of_fold)
            found.append(factors)
        return np.concatenate([np.empty(0), *errors]), found

    def trend(self, given: tuple[Term, ...]) -> tuple[tuple[Trend, ...], Reason]:
        """The trend, besides given terms, and why."""
        wanted, series = self.config.trend, self.series
        if wanted != AUTO:
            found = tuple(trend.resolve(self.clock) for trend in trends_of(wanted))
            return found, Reason("given" if found else "not_wanted")
        if not isinstance(series, Series):
            return (), Reason("not_local")
        origins = list(_origins(series.observed))
        if len(origins) < _FEWEST:
            return (), Reason("few_steps")
        with without(ConvergenceWarning, UserWarning):
            factors = fit_factors(_short(self.config), self._designed(series, given)).factors
        plain, trending = (
            np.array([self._ahead(factors, origin, given, trend) for origin in origins])
            for trend in ((), (Trend(),))
        )
        if _better(trending, plain):
            lower = float(1.0 - trending.sum() / plain.sum())
            return (Trend().resolve(self.clock),), Reason("tried", (Trial("trend", lower),))
        return (), Reason("tried", (Trial("trend", None),))

    def _ahead(
        self, factors: Factors, origin: int, given: tuple[Term, ...], trend: tuple[Trend, ...]
    ) -> float:
        """The error of a forecast from an origin, at fixed components."""
        config, series = _short(self.config), self.series
        assert isinstance(series, Series)
        before, steps = np.arange(origin), min(_AHEAD, series.n_steps - origin)
        here = tuple(t.resolve(self.clock.take(origin)) for t in trend)
        design = Design.of((*given, *here), self.clock, self.covariates)
        past = series.take(before).designed(None if design is None else design.take(before))
        with without(ConvergenceWarning, UserWarning):
            H, effects = infer_effects(config, factors, past, _ROUNDS)
        chain = factors.chain
        G = chain.point_forecast(chain.state_of(H.T), steps, "mean", config.map_scale)
        came = np.arange(origin, origin + steps)
        if effects is not None and design is not None:
            G = G * effects.at(design.take(came)).factors
        pairs = [
            _compared(series, n, factors.components.T, G[:, i]) for i, n in enumerate(came.tolist())
        ]
        v, mean = (np.concatenate(part) for part in zip(*pairs, strict=True))
        return factors.likelihood.error(v, np.maximum(mean, FLOOR))

    def _designed(self, series: Series, terms: tuple[Term, ...]) -> Series:
        """A series with the columns of terms."""
        return series.designed(Design.of(terms, self.clock, self.covariates))


def _origins(observed: Array) -> Iterator[int]:
    """Steps of the second half after which forecasts begin."""
    seen = np.flatnonzero(observed)
    first = max(len(seen) // 2, _BEFORE)
    last = len(seen) - 1
    if last < first:
        return
    for place in np.unique(np.linspace(first, last, _ORIGINS).astype(int)).tolist():
        yield int(seen[place])


def _better(errors: Array, before: Array) -> bool:
    """Whether errors of runs, or of forecasts, are clearly lower than before."""
    lower = before - errors
    total, worthy = float(lower.sum()), bool(lower.sum() > _SHARE * before.sum())
    if len(lower) < _FEWEST:
        return worthy and bool(np.all(lower > 0.0))
    standard_error = float(np.std(lower, ddof=1)) * np.sqrt(len(lower))
    return total > 2.0 * standard_error or (worthy and total > standard_error)


def _short(config: Config, seasons: tuple[Season, ...] = ()) -> Config:
    """A short fit, with the default movement instead of a learned one unless a cycle is long.

    Over a long cycle, the default movement of a random walk takes the place of the season.
    """
    counts, longest = config.likelihood.counts, max((s.steps or 0.0 for s in seasons), default=0.0)
    return replace(
        config,
        solver="accelerated",
        chain=config.chain if longest > _LONG else config.chain.unlearned(),
        likelihood=likelihood_of(FIRST) if counts else config.likelihood,
        smoothing=config.smoothing if config.smoothing != "learn" else SMOOTHING,
        max_iter=min(_MAX_ITER, config.max_iter),
        tol=max(_TOL, config.tol),
        init=config.init if isinstance(config.init, str) else "random",
        n_init=1, callback=None, verbose=0, checkpoint=None, previous=None, automatic=False,
        random_state=0, brief=True,
    )  # fmt: skip


def _why_none(clock: Clock) -> Code:
    """Why there is no season to try."""
    if not clock.dated:
        return "no_dates"
    return "too_short" if Season("year").length(clock) >= 2.0 else "no_cycle"


Fold = list[Array]  # runs of steps that are hidden together


def _folds(observed: Array, possible: tuple[Season, ...]) -> list[Fold]:
    """Folds of runs to hide, so many that there are enough runs to compare."""
    rng = np.random.default_rng(0)
    found: list[Fold] = []
    while len(found) < _MOST_FOLDS and sum(map(len, found)) < _ENOUGH_RUNS:
        if not (runs := _runs(observed, possible, rng)):
            break
        found.append(runs)
    return found


def _runs(observed: Array, possible: tuple[Season, ...], rng: np.random.Generator) -> Fold:
    """Observed steps to hide: for each season, runs of a share of its cycle, one per segment."""
    seen = np.flatnonzero(observed)
    free = seen[1:]  # the first step stays
    found: Fold = []
    for season in possible:
        assert season.steps is not None
        length = max(2, round(_RUN * season.steps))
        n_runs = max(1, round(_HIDDEN * len(seen) / length))
        for segment in np.array_split(free, n_runs):
            if len(segment) > length:
                start = rng.integers(len(segment) - length)
                run = segment[start : start + length]
                found.append(run[~np.isin(run, np.concatenate([[-1], *found]))])
        free = free[~np.isin(free, np.concatenate([[-1], *found]))]
    return [run for run in found if len(run) > 1]


def _errors(config: Config, known: Series, held: Series, runs: Fold) -> tuple[Array, Factors]:
    """Errors of held-out runs, each relative to its total, and the fit that predicts them.

    Errors of the level, which no season predicts, would hide those of the pattern.
    """
    with without(ConvergenceWarning, UserWarning):
        fitted = fit_factors(config, known)
    effects = effects_at(fitted.effects, known)
    G = fitted.H if effects is None else fitted.H * effects.factors
    errors = []
    for run in runs:
        pairs = [_compared(held, n, fitted.W, G[:, n]) for n in run.tolist()]
        v, mean = (np.concatenate(part) for part in zip(*pairs, strict=True))
        level = max(float(v.sum()), FLOOR) / max(float(mean.sum()), FLOOR)
        errors.append(fitted.likelihood.error(v, np.maximum(level * mean, FLOOR)))
    return np.array(errors), fitted.factors


def _compared(series: Series, n: int, W: Array, g: Array) -> tuple[Array, Array]:
    """Observed entries of a step, and their means at components W (F, K) and activations (K,)."""
    x, weight = series.row(n)
    seen = weight > 0.0
    return x[seen], series.exposure[n] * (W[seen] @ g)
