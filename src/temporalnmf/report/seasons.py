"""The seasons of a model: swings in words, factors of a cycle, and the adjusted course."""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..messages.formatting import number_text, percent
from ..summary import SeasonSummary, season_summary, seasons_left_out
from .subject import Subject
from .texts import Content, clean, number, numbers

# Most positions of a table.
_MOST_ROWS = 31
# The axis of factors reaches at least this far from 1.
_LEAST_SWING = 0.05


def seasons_content(subject: Subject) -> Content | None:
    """Text and tables; None if no season was found, and none was tried and left out."""
    found = season_summary(subject.model)
    if not found and not seasons_left_out(subject.model):
        return None
    return {"reasons": _reasons(subject), "found": [_season(one, subject) for one in found]}


def _reasons(subject: Subject) -> list[str]:
    """Why the model has these seasons, or none, in sentences."""
    reason = subject.model._reasons["season"]
    if reason.code == "given":
        return ["The seasons of the model were given, not chosen by held-out steps."]
    chosen = [
        f"The model has a season of the {trial.name}: with it, steps that were held out of a trial "
        f"are predicted with {_plain(percent(trial.lower))} lower errors."
        for trial in reason.trials
        if trial.lower is not None
    ]
    return chosen + [
        f"A season of the {name} was tried and left out: held-out steps are not predicted better "
        f"with it."
        for name in seasons_left_out(subject.model)
    ]


def _season(season: SeasonSummary, subject: Subject) -> Content:
    """One season in words and, if its cycle is short, as a table."""
    rows = []
    if len(season.total) <= _MOST_ROWS:
        columns = np.column_stack([season.total, season.factors.T])
        names = season.positions.names
        rows = [
            {"when": name, "factors": [number_text(factor) for factor in row]}
            for name, row in zip(names, columns.tolist(), strict=True)
        ]
    words = f"The total is {_plain(season.words())}."
    if len(season.factors) > 1:
        k = season.largest
        words += f" The component with the largest season is “{subject.names[k]}”: "
        words += f"{_plain(season.words(k))}."
    return {"name": clean(season.name), "words": words, "rows": rows}


def _plain(words: str) -> str:
    return words.replace(" %", "\N{NO-BREAK SPACE}%")


def season_charts(subject: Subject) -> list[Content]:
    """The factors of each cycle, for report.js."""
    return [_chart(season) for season in season_summary(subject.model)]


def _chart(season: SeasonSummary) -> Content:
    factors = season.factors
    low = min(float(factors.min()), 1.0 - _LEAST_SWING)
    high = max(float(factors.max()), 1.0 + _LEAST_SWING)
    return {
        "x": list(range(factors.shape[1])),
        "text": list(season.positions.labels),
        "ticks": [[number(at), text] for at, text in season.positions.ticks],
        "range": numbers([low, high]),
        "lines": [numbers(line, 4) for line in factors],
    }


def adjusted_curves(subject: Subject, kept: Array, ahead: Array) -> list[list[object]] | None:
    """Seasonally adjusted activations of some past steps, then of some ahead, by component."""
    if not subject.model.season_:
        return None
    found = subject.adjusted(subject.model.activations_, subject.past)[kept]
    if subject.n_ahead:
        more = subject.adjusted(subject.ahead.activations, subject.ahead)
        found = np.concatenate([found, more[ahead]])
    return [list(numbers(line)) for line in found.T]
