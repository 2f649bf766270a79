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
from ..messages.formatting import percent
from ..messages.warning import without
from ..timeline.clock import Clock
from .config import AUTO, Config
from .fitting import effects_at, fit_factors

# Share of inner steps that a trial hides, and most of the steps at the end.
_INSIDE, _AT_END = 0.1, 0.25
# Iterations and tolerance of trials.
_MAX_ITER, _TOL = 200, 1e-5
# Least decrease of the error that is worth a season.
_WORTH = 0.01


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
    """The seasons with which held-out steps are predicted best, added one by one."""
    shortest = possible[0].steps
    assert shortest is not None
    hidden = _held_out(series.observed, int(np.ceil(shortest)))
    if hidden is None:
        return Choice(None, "too few observed steps to hold some out")
    known, held = series.split(hidden[:, None])
    trial = _trial(config)
    kept: tuple[Season, ...] = ()
    least, words = _error(trial, known, held, None), []
    for season in possible:
        design = Design.of((*kept, season), clock)
        error = _error(trial, known, held, design)
        lower = 1.0 - error / least if least > 0.0 else 0.0
        if lower > _WORTH:
            kept, least = (*kept, season), error
            words.append(f"{season.name}: errors of held-out steps are {percent(lower)} lower")
        else:
            words.append(f"no {season.name}: it does not predict held-out steps better")
    return Choice(Design.of(kept, clock), "; ".join(words))


def _trial(config: Config) -> Config:
    """A short fit."""
    return replace(
        config,
        solver="accelerated",
        chain=config.chain.unlearned(),
        smoothing=config.smoothing if config.smoothing != "learn" else 0.1,
        max_iter=min(_MAX_ITER, config.max_iter),
        tol=max(_TOL, config.tol),
        init=config.init if isinstance(config.init, str) else "random",
        n_init=1, callback=None, verbose=0, checkpoint=None, previous=None, automatic=False,
        random_state=0,
    )  # fmt: skip


def _held_out(observed: Array, cycle: int) -> Array | None:
    """Steps (N,) to hide: some inner ones, and one to two cycles at the end."""
    seen = np.flatnonzero(observed)
    last = min(2 * cycle, max(cycle, int(_AT_END * len(seen))))
    if len(seen) < last + cycle:
        return None
    hidden = np.zeros(len(observed), dtype=bool)
    hidden[seen[-last:]] = True
    inside = seen[1 : -last - 1]
    rng = np.random.default_rng(0)
    hidden[rng.choice(inside, size=int(_INSIDE * len(inside)), replace=False)] = True
    return hidden


def _error(config: Config, known: Series, held: Series, design: Design | None) -> float:
    """The error of the held-out steps, predicted from the others."""
    known = known.designed(design)
    with without(ConvergenceWarning, UserWarning):
        fitted = fit_factors(config, known)
    effects = effects_at(fitted.effects, known)
    G = fitted.H if effects is None else fitted.H * effects.factors
    observations = held.observe(fitted.likelihood)
    features = observations.hold(np.array(fitted.W, order=observations.order))
    return max(features.value(np.ascontiguousarray(G)) - observations.saturated, 0.0)
