"""Effects in model files: the parameters that ask for them, and those that were fitted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from .._typing import Array
from ..effects.covariates import Covariates, Influence
from ..effects.design import Design
from ..effects.drawn import DrawnEffects
from ..effects.effects import FARTHEST, LARGEST_COEFFICIENT, LARGEST_LOG, Effects
from ..effects.holidays import Events, Holidays, holiday_terms
from ..effects.season import Season
from ..effects.term import Term
from ..effects.trend import Trend
from ..runtime.archives import Json
from ..timeline.grid import Timeline

_DRAWN = ("coefficients", "strengths", "moved")

_KINDS = {
    "season": Season, "trend": Trend, "influence": Influence, "holidays": Holidays,
    "events": Events,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _KINDS.items()}


def written_terms(given: object) -> object:
    """One of the parameters `season`, `trend` and `holidays` as JSON; a dict has events."""
    if isinstance(given, list | tuple):
        return [written_terms(one) for one in given]
    if isinstance(given, dict):
        return [written_terms(one) for one in holiday_terms(given)]
    return _described(given) if isinstance(given, Term) else given


def read_terms(stored: object) -> object:
    """One of these parameters from JSON."""
    if isinstance(stored, list):
        return [read_terms(one) for one in stored]
    if isinstance(stored, dict):
        return _made(stored)
    if stored is not None and not isinstance(stored, str | int | float):
        raise ValueError(f"one of its seasons, trends or holidays is {stored!r:.60}")
    return stored


def _described(term: Term) -> Json:
    return {"kind": _NAMES[type(term)], **asdict(term)}  # type: ignore[call-overload]


def _made(described: object) -> Term:
    """A term from JSON; its class checks the values."""
    if not isinstance(described, dict) or described.get("kind") not in _KINDS:
        raise ValueError(f"one of its effects is {described!r:.60}")
    json.dumps(described, ensure_ascii=False).encode()  # raises for halves of characters
    fields = {n: tuple(v) if isinstance(v, list) else v for n, v in described.items()}
    kind: Callable[..., Term] = _KINDS[str(fields.pop("kind"))]
    try:
        return kind(**fields)
    except TypeError as error:
        raise ValueError(f"one of its effects is {described!r:.60}") from error


def described_effects(effects: Effects | None) -> list[Json] | None:
    """The terms of a fit as JSON."""
    return None if effects is None else [_described(term) for term in effects.design.terms]


def effects_arrays(effects: Effects | None, levels: Array) -> dict[str, Array]:
    """The arrays of effects, and the levels (N, K) to which they belong."""
    if effects is None:
        return {}
    found = {"levels": levels, "effects_coefficients": effects.coefficients}
    found |= {"effects_strengths": effects.strengths}
    if effects.covariances is not None:
        found["effects_covariances"] = effects.covariances
    if effects.design.covariates is not None:
        found["effects_covariates"] = effects.design.covariates.values
    return found


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
    """The effects of a model; raises if terms and arrays do not belong together."""
    if described is None:
        return None
    if not isinstance(described, list) or not described:
        raise ValueError("its effects are not a list of terms")
    terms = [_made(one) for one in described]
    for term in terms:
        term.check_resolved(timeline.clock)
    names = tuple(term.covariate for term in terms if isinstance(term, Influence))
    covariates = None
    if names:
        values = arrays["effects_covariates"]
        if values.shape[1] != len(names):
            raise ValueError("its covariates are not those of its effects")
        covariates = Covariates(names, values)
    design = Design.of(terms, timeline.clock, covariates)
    assert design is not None
    coefficients, strengths = arrays["effects_coefficients"], arrays["effects_strengths"]
    if coefficients.shape[1] != design.columns.shape[1] or len(strengths) != len(terms):
        raise ValueError("its effects do not have the coefficients of its terms")
    if np.any(coefficients > LARGEST_COEFFICIENT):
        raise ValueError("its effects are out of range")
    if not np.abs(coefficients @ design.columns.T).max() <= LARGEST_LOG:
        raise ValueError("its factors of effects are out of range")
    return Effects(design, coefficients, strengths, arrays.get("effects_covariances"))
