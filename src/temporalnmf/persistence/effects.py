"""Seasons in model files: the parameter, and the effects that were fitted."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from .._typing import Array
from ..effects.design import Design
from ..effects.drawn import DrawnEffects
from ..effects.effects import FARTHEST, LARGEST_COEFFICIENT, Effects
from ..effects.season import Season
from ..runtime.archives import Json
from ..timeline.grid import Timeline

_DRAWN = ("coefficients", "strengths", "moved")


def written_season(given: object) -> object:
    """The parameter `season` as JSON."""
    if isinstance(given, list | tuple):
        return [written_season(one) for one in given]
    return asdict(given) if isinstance(given, Season) else given


def read_season(stored: object) -> object:
    """The parameter `season` from JSON."""
    if isinstance(stored, list):
        return [read_season(one) for one in stored]
    if isinstance(stored, dict):
        return Season(**stored)
    if stored is not None and not isinstance(stored, str | int):
        raise ValueError(f"its season is {stored!r:.60}")
    return stored


def described_effects(effects: Effects | None) -> list[Json] | None:
    """The seasons of a fit as JSON."""
    return None if effects is None else [asdict(season) for season in effects.seasons]


def effects_arrays(effects: Effects | None, levels: Array) -> dict[str, Array]:
    """The arrays of effects, and the levels (N, K) to which they belong."""
    if effects is None:
        return {}
    found = {"levels": levels, "effects_coefficients": effects.coefficients}
    return found | {"effects_strengths": effects.strengths}


def drawn_arrays(effects: DrawnEffects | None) -> dict[str, Array]:
    """The arrays of draws of effects."""
    return {} if effects is None else {f"draws_{n}": getattr(effects, n) for n in _DRAWN}


def drawn_effects(effects: Effects | None, arrays: dict[str, Array]) -> DrawnEffects | None:
    """The draws of the effects of a model; raises if there are none."""
    if effects is None:
        return None
    design = effects.design.take(arrays["fitted_steps"])
    found = DrawnEffects(design, *(arrays[f"draws_{name}"] for name in _DRAWN))
    most = np.abs(found.coefficients @ design.columns.T).max()
    if most > FARTHEST + 1e-6:  # rounding
        raise ValueError("its draws of effects are out of range")
    return found


def effects_of(described: object, arrays: dict[str, Array], timeline: Timeline) -> Effects | None:
    """The effects of a model; raises if terms and coefficients do not belong together."""
    if described is None:
        return None
    if not isinstance(described, list) or not described:
        raise ValueError("its effects are not a list of seasons")
    seasons = [Season(**one) for one in described]
    if any(s.terms is None or s.steps is None or s.terms > len(timeline.labels) for s in seasons):
        raise ValueError("its seasons are not resolved")
    for season in seasons:
        if season.length(timeline.clock) != season.steps:
            raise ValueError(f"its season {season.name!r} is not of its times")
    design = Design.of(seasons, timeline.clock)
    assert design is not None
    coefficients, strengths = arrays["effects_coefficients"], arrays["effects_strengths"]
    if coefficients.shape[1] != design.columns.shape[1] or len(strengths) != len(seasons):
        raise ValueError("its effects do not have the coefficients of its seasons")
    if np.any(coefficients > LARGEST_COEFFICIENT):
        raise ValueError("its effects are out of range")
    return Effects(design, coefficients, strengths)
