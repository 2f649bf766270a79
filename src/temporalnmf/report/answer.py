"""The summary at the top of a report, in a few sentences."""

from __future__ import annotations

import numpy as np

from ..forecasting.checks import Calibration
from ..messages.formatting import number_text
from ..summary import FOUND_AGAIN, alike
from .subject import Subject
from .texts import change, clean, level, percent

# Steps that the last one is compared with, and the fewest for a comparison.
_BEFORE, _FEWEST = 10, 3
# The last step looks incomplete if its total is below this share of the usual one, or its error
# above this multiple of the largest other one.
_FAR_BELOW, _BY_FAR = 0.5, 2.0


def answer_of(subject: Subject, gaps: str, convergence: str) -> list[str]:
    """The summary, with the given sentences about gaps and convergence."""
    found = subject.model.calibration_
    sentences = [
        _last_step(subject),
        _largest(subject),
        _recent(subject),
        gaps,
        _outlook(subject) if subject.n_ahead else "",
        "" if found is None else _checked(subject, found),
        _unstable(subject),
        " ".join(map(str, alike(subject.model))),
        convergence,
    ]
    return [sentence for sentence in sentences if sentence]


def _last_step(subject: Subject) -> str:
    """A question if the last step looks incomplete, since the forecast starts from it."""
    model, errors = subject.model, subject.errors
    if errors is None:
        return ""
    assert model._series is not None
    seen = np.flatnonzero(np.isfinite(errors.error))
    last, before = int(seen[-1]), seen[-1 - _BEFORE : -1]
    if len(before) < _FEWEST:
        return ""
    # The usual total, for the exposure and the observed entries of the last step.
    _, weight = model._series.row(last)
    expected = model.activations_[last] @ model.components_
    part = float(expected[weight > 0.0].sum() / expected.sum())
    size = model.exposure_
    usual = float(np.median(errors.observed[before] / size[before]) * size[last] * part)
    total, noun = float(errors.observed[last]), subject.unit.noun
    if total < _FAR_BELOW * usual:
        before_it = f"the {subject.unit.plural} before (about {number_text(usual)})"
        problem = f"has a total of {number_text(total)}, far below {before_it}"
    elif errors.error[last] > _BY_FAR * errors.error[seen[:-1]].max():
        problem = "fits the model by far the worst"
    else:
        return ""
    starts = " The forecast starts from it." if subject.n_ahead else ""
    return f"The last {noun} ({subject.texts[last]}) {problem}: is it complete?{starts}"


def _largest(subject: Subject) -> str:
    first = subject.summary[0]
    component = f"The only component is “{subject.names[0]}”"
    if subject.n_components > 1:
        share = f"{percent(first.share)} of all activation"
        component = f"The largest component is “{subject.names[0]}”: {share}"
    return f"{component}; it peaks {subject.unit.at(clean(first.peak))}."


def _recent(subject: Subject) -> str:
    """Which component rose and which fell most, comparing the last stretch with the one before."""
    H = subject.adjusted(subject.model.activations_, subject.past)
    width = min(max(3, subject.n_steps // 20), subject.n_steps // 2)
    after, before = H[-width:].mean(axis=0), H[-2 * width : -width].mean(axis=0)
    moved = after - before
    up, down = int(np.argmax(moved)), int(np.argmin(moved))
    changes = []
    for k, verb, found in ((up, "rose", moved[up] > 0), (down, "fell", moved[down] < 0)):
        old, new = number_text(before[k]), number_text(after[k])
        if found and old != new:
            by = change(before[k], after[k])
            values = f"from {old} to {new}" + (f" ({by})" if by else "")
            changes.append(f"“{subject.names[k]}” {verb} most, on average {values}")
    if not changes:
        return "No component has changed recently."
    stretch = f"the last {subject.unit.counted(width)} (since {subject.texts[-width]})"
    adjusted = ", seasonally adjusted" if subject.model.season_ else ""
    return f"In {stretch}, compared with the {width} before{adjusted}, {', and '.join(changes)}."


def _outlook(subject: Subject) -> str:
    """The last step of the forecast, and whether its interval was checked."""
    point, bands = subject.totals_ahead()
    total = number_text(point[-1])
    expected = f"For {subject.texts_ahead[-1]} the model expects a total of {total}"
    if not bands:
        return f"{expected}; its uncertainty is unknown, see below."
    coverage, low, high = bands[0]
    interval = f"{level(coverage)} interval: {number_text(low[-1])} to {number_text(high[-1])}"
    checked = subject.ahead.checked
    if checked[-1]:
        return f"{expected} ({interval})."
    far = " so far ahead" if checked.any() else ""
    return (
        f"{expected} (the model’s own {interval}). Whether its intervals are reliable{far} has not "
        f"been checked; model.calibrate(steps={subject.n_ahead}) checks it on past data."
    )


def _checked(subject: Subject, found: Calibration) -> str:
    """How many actual values the intervals contained, before and after calibration."""
    first = [check for kind in ("totals", "components", "entries") for check in found.of(kind)[:1]]
    held = "; ".join(
        f"{c.of} {c.share(c.before)} before calibration and {c.share(c.after)} after" for c in first
    )
    return (
        f"The {percent(found.coverage)} intervals were checked on past forecasts. "
        f"{subject.unit.counted(first[0].ahead)} ahead, they contained these shares of the actual "
        f"values: {held}."
    )


def _unstable(subject: Subject) -> str:
    scores = (one.stability for one in subject.summary)
    n = sum(score is not None and score < FOUND_AGAIN for score in scores)
    if not n:
        return ""
    many, its, it = ("One", "its", "it") if n == 1 else (f"{n}", "their", "them")
    return (
        f"{many} of the {subject.n_components} components came out differently in other "
        f"{subject.start}s: check {its} stability before relying on {it}."
    )
