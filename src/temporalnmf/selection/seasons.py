"""Seasons that all fits of a comparison share, and the cycle that a naive prediction repeats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ..data.validation import check_series
from ..effects.design import candidates, resolved, seasons_of
from ..effects.reasons import Reason
from ..effects.season import CYCLES_NEEDED, Season
from ..effects.trend import Trend
from ..estimator import TemporalNMF
from ..inference.config import AUTO
from ..inference.terms import choose_terms
from ..timeline.clock import Clock
from .data import Gridded

# Parameters of `TemporalNMF` that ask for effects, for models that have none.
NO_EFFECTS = {"season": None, "trend": None, "holidays": None}


class Terms(NamedTuple):
    """The seasons and the trend of all fits, as parameters, and why."""

    season: Any
    trend: Any
    season_reason: Reason
    trend_reason: Reason


def chosen_terms(data: Gridded, model: TemporalNMF) -> Terms:
    """The seasons and the trend of a fit of the model to all of the data; "auto" is chosen here."""
    config = model._config().check()
    series = check_series(data.table, None, data.exposure, config.likelihood).series
    choice = choose_terms(config, series, data.covariates)
    terms = () if choice.design is None else choice.design.terms
    season, trend = model.season, model.trend
    if season == AUTO:
        season = [term.period for term in terms if isinstance(term, Season)] or None
    if trend == AUTO:
        trend = next(
            (replace(term, start=None, end=None) for term in terms if isinstance(term, Trend)), None
        )
    return Terms(season, trend, choice.season, choice.trend)


def cycle_of(season: Any, clock: Clock) -> Season | None:
    """The cycle that a naive prediction repeats: the shortest season.

    If there is none, or it is not chosen yet, the shortest one that the calendar suggests.
    """
    found = () if season == AUTO else resolved(season, clock)
    found = found or candidates(clock)
    return min(found, key=lambda one: one.length(clock), default=None)


def positions_in(cycle: Season, clock: Clock) -> Array:
    """The position of each step in a cycle, whole numbers (N,)."""
    n = max(2, round(cycle.length(clock)))
    return np.asarray(np.floor(cycle.phases(clock) * n + 1e-9).astype(np.int64) % n)


def long_enough(season: Any, clock: Clock) -> list[Season]:
    """The seasons of which the steps hold two cycles; others cannot be fitted to them."""
    n_steps = len(clock.labels)
    return [s for s in seasons_of(season) if CYCLES_NEEDED * s.length(clock) <= n_steps]
