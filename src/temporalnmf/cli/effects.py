"""Known influences and the trend of a model: on the terminal, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .console import Voice, fitting

if TYPE_CHECKING:
    from ..estimator import TemporalNMF
    from ..summary import EffectSummary

# Most rows of a table.
_MOST_ROWS = 40


def show_effects(model: TemporalNMF, voice: Voice) -> None:
    """Print a table of covariates, holidays, events and the trend: changes of each component."""
    from ..summary import effect_summary, trend_summary

    found, trend = effect_summary(model), trend_summary(model)
    shown = found[:_MOST_ROWS]
    if trend is not None:
        shown = [*shown, trend]
    if not shown:
        return
    labels, numbers = [one.label for one in shown], range(len(model.components_))
    headings = [f"component {k + 1}" for k in numbers]
    width = voice.width - max(map(len, ["effect", *labels]))
    columns = [[one.words(k) for one in shown] for k in numbers]
    remarks = ["In brackets: 90 % intervals."]
    if fitting(headings, columns, width) < len(columns):
        headings = [str(k + 1) for k in numbers]
        columns = [[one.change(k) for one in shown] for k in numbers]
        remarks = ["By component; --json has 90 % intervals."]
    n = fitting(headings, columns, width)
    if n < len(columns):
        remarks.append(f"The first {n} of {len(columns)} components.")
    if len(found) > _MOST_ROWS:
        remarks.append(f"The first {_MOST_ROWS} of {len(found)} effects; --json has all.")
    voice.table(["effect", *headings[:n]], list(zip(labels, *columns[:n], strict=True)),
                left=("effect",))  # fmt: skip
    voice.say(" ".join(remarks))


def show_trend(model: TemporalNMF, voice: Voice) -> None:
    """Print what becomes of the trend of a fit, or that none was found."""
    from ..summary import trend_sought, trend_summary

    trend = trend_summary(model)
    if trend is not None:
        voice.say(f"Trend: the growth per step at the end {trend.course}.")
        if trend_sought(model):
            voice.say(f"Reason: {model.trend_reason_}.")
    elif trend_sought(model):
        voice.say(f"No trend: {_why_none(model)}.")


def _why_none(model: TemporalNMF) -> str:
    reason = model._reasons["trend"]
    if reason.code == "tried":
        return "one was tried, but forecasts from past steps are not better with it"
    return str(reason)


def trend_line(model: TemporalNMF) -> str:
    """The trend in a line of `info`."""
    from ..summary import trend_summary

    trend = trend_summary(model)
    if trend is None:
        return f"none: {_why_none(model)}"
    return f"the growth per step at the end {trend.course}; reason: {model.trend_reason_}"


def effects_answer(model: TemporalNMF) -> list[dict[str, object]]:
    """Covariates, holidays and events as JSON."""
    from ..summary import effect_summary

    return [
        {"effect": one.name, "per": one.per or None, "components": _by_component(one)}
        for one in effect_summary(model)
    ]


def trend_answer(model: TemporalNMF) -> dict[str, object] | None:
    """The trend as JSON."""
    from ..summary import trend_summary

    trend = trend_summary(model)
    if trend is None:
        return None
    damping = float(trend.trend.damping)
    return {"damping": damping, "per": trend.per, "components": _by_component(trend)}


def _by_component(effect: EffectSummary) -> list[dict[str, object]]:
    return [
        {
            "component": k + 1,
            "factor": factor,
            "lower": low,
            "upper": high,
            "words": effect.words(k),
        }
        for k, (factor, low, high) in enumerate(effect.factors.tolist())
    ]
