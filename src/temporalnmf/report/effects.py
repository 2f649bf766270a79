"""Known influences and the trend of a model: changes of each component, as tables."""

from __future__ import annotations

from ..summary import TrendSummary, effect_summary, trend_sought, trend_summary
from .subject import Subject
from .texts import NO_BREAK, Content, clean, percent

# Most rows of a table.
_MOST_ROWS = 100


def effects_content(subject: Subject) -> Content | None:
    """Tables; None without covariates, holidays, events and a trend, if none was sought either."""
    model = subject.model
    found, trend = effect_summary(model), trend_summary(model)
    if not found and trend is None and not trend_sought(model):
        return None
    components = range(subject.n_components)
    rows = [
        {"name": clean(one.label), "changes": [_plain(one.words(k)) for k in components]}
        for one in found[:_MOST_ROWS]
    ]
    return {
        "title": _title(bool(found), trend is not None or trend_sought(model)),
        "rows": rows,
        "left_out": len(found) - len(rows),
        "reason": _reason(subject),
        "trend": None if trend is None else _trend(trend, subject),
    }


def _title(known: bool, trend: bool) -> str:
    names = [name for name, there in (("known influences", known), ("trend", trend)) if there]
    return " and ".join(names).capitalize()


def _reason(subject: Subject) -> str:
    """Why the model has a trend, or none, if one was sought; else empty."""
    model = subject.model
    if not trend_sought(model):
        return ""
    reason = model._reasons["trend"]
    if reason.code != "tried":
        return f"A trend was sought, but not tried: {reason}."
    if reason.left_out:
        return "A trend was tried and left out: forecasts from past steps are not better with it."
    (trial,) = reason.trials
    assert trial.lower is not None
    return (
        f"The model has a trend: with it, forecasts from past steps have {percent(trial.lower)} "
        f"lower errors."
    )


def _trend(trend: TrendSummary, subject: Subject) -> Content:
    """Growth at the end, and until the end of the forecast, by component."""
    later = trend.after(subject.n_ahead)
    rows = [
        {"name": name, "growth": _plain(trend.words(k)), "later": _plain(later[k])}
        for k, name in enumerate(subject.names)
    ]
    ahead = subject.unit.spanning(subject.n_ahead) if subject.n_ahead else ""
    every = f"Growth per {subject.unit.noun}" if not subject.unit.length else "Growth per step"
    return {"course": trend.course, "rows": rows, "every": every, "ahead": ahead}


def _plain(words: str) -> str:
    return words.replace(" %", f"{NO_BREAK}%")
