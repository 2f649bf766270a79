"""The seasons of a model: those that the user asked for, or those that predict better."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._typing import Array
from ..data.series import AnySeries, Series
from ..effects.design import Design, candidates, resolved
from ..effects.season import Season
from ..kernels.floor import FLOOR
from ..messages.formatting import percent
from ..messages.warning import without
from ..timeline.clock import Clock
from .config import AUTO, FIRST, Config, Factors, likelihood_of
from .fitting import effects_at, fit_factors
from .smoothing import SMOOTHING

# Share of observed steps that a trial hides for each season, in runs of this share of its cycle.
_HIDDEN, _RUN = 0.2, 1.0 / 3.0
# Iterations and tolerance of trials.
_MAX_ITER, _TOL = 200, 1e-5
# A season is worth it if errors of runs fall by two standard errors, or by one and by this share;
# with fewer runs than the fewest, in each of them and by this share.
_FEWEST_RUNS, _SHARE = 4, 0.01


class Choice(NamedTuple):
    """The columns of the seasons of a model, and why it has them, in words."""

    design: Design | None
    reason: str


def seasons_of(config: Config, series: AnySeries) -> Choice:
    """The seasons of a fit."""
    assert series.timeline is not None
    clock = series.timeline.clock
    if config.season != AUTO:
        seasons = resolved(config.season, clock)
        return Choice(Design.of(seasons, clock), "as given" if seasons else "not wanted")
    possible = candidates(clock)
    if not isinstance(series, Series):
        return Choice(None, "data that are not in memory are not searched for seasons")
    if not possible:
        long = "times are not dates" if not clock.dated else "fewer than two cycles of any season"
        return Choice(None, long)
    return _chosen(config, series, clock, possible)


def _chosen(config: Config, series: Series, clock: Clock, possible: tuple[Season, ...]) -> Choice:
    """The seasons with which held-out runs of steps are predicted better, added one by one."""
    runs = _runs(series.observed, possible)
    if not runs:
        return Choice(None, "too few observed steps to hold some out")
    hidden = np.zeros((series.n_steps, 1), dtype=bool)
    hidden[np.concatenate(runs)] = True
    known, held = series.split(hidden)
    trial = _trial(config)
    kept: tuple[Season, ...] = ()
    best, factors = _tried(trial, known, held, runs, None)
    words = []
    for season in possible:
        design = Design.of((*kept, season), clock)
        errors, found = _tried(replace(trial, previous=factors), known, held, runs, design)
        if _better(errors, best):
            lower = 1.0 - errors.sum() / best.sum()
            words.append(f"{season.name}: errors of held-out steps are {percent(lower)} lower")
            kept, best, factors = (*kept, season), errors, found
        else:
            words.append(f"no {season.name}: it does not predict held-out steps better")
    return Choice(Design.of(kept, clock), "; ".join(words))


def _better(errors: Array, before: Array) -> bool:
    """Whether errors of runs are clearly lower than before."""
    lower = before - errors
    total, worthy = float(lower.sum()), bool(lower.sum() > _SHARE * before.sum())
    if len(lower) < _FEWEST_RUNS:
        return worthy and bool(np.all(lower > 0.0))
    standard_error = float(np.std(lower, ddof=1)) * np.sqrt(len(lower))
    return total > 2.0 * standard_error or (worthy and total > standard_error)


def _trial(config: Config) -> Config:
    """A short fit."""
    counts = config.likelihood.counts
    return replace(
        config,
        solver="accelerated",
        chain=config.chain.unlearned(),
        likelihood=likelihood_of(FIRST) if counts else config.likelihood,
        smoothing=config.smoothing if config.smoothing != "learn" else SMOOTHING,
        max_iter=min(_MAX_ITER, config.max_iter),
        tol=max(_TOL, config.tol),
        init=config.init if isinstance(config.init, str) else "random",
        n_init=1, callback=None, verbose=0, checkpoint=None, previous=None, automatic=False,
        random_state=0,
    )  # fmt: skip


def _runs(observed: Array, possible: tuple[Season, ...]) -> list[Array]:
    """Observed steps to hide: for each season, runs of a share of its cycle, one per segment."""
    seen, rng = np.flatnonzero(observed), np.random.default_rng(0)
    free = seen[1:]  # the first step stays
    found: list[Array] = []
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


def _tried(
    config: Config, known: Series, held: Series, runs: list[Array], design: Design | None
) -> tuple[Array, Factors]:
    """Errors of held-out runs, each relative to its total, and the fit that predicts them.

    Errors of the level, which no season predicts, would hide those of the pattern.
    """
    known = known.designed(design)
    with without(ConvergenceWarning, UserWarning):
        fitted = fit_factors(config, known)
    effects = effects_at(fitted.effects, known)
    G = fitted.H if effects is None else fitted.H * effects.factors
    errors = []
    for run in runs:
        observed, expected = [], []
        for n in run.tolist():
            x, weight = held.row(n)
            seen = weight > 0.0
            observed.append(x[seen])
            expected.append(held.exposure[n] * (fitted.W[seen] @ G[:, n]))
        v, mean = np.concatenate(observed), np.concatenate(expected)
        level = max(float(v.sum()), FLOOR) / max(float(mean.sum()), FLOOR)
        errors.append(fitted.likelihood.error(v, np.maximum(level * mean, FLOOR)))
    return np.array(errors), fitted.factors
