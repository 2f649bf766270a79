"""Periods of a given frequency, and the times in them."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from .._typing import Array
from ..messages.errors import ArgumentError
from .spacing import MOST_STEPS, WORDS, by_months, smallest_step, words

LEAST_UNCOVERED = 0.2  # uncovered share of the first or last period that is worth a note

_FREQS = {
    **dict.fromkeys(("Y", "y", "YS", "YE", "A", "AS", "YS-JAN", "YE-DEC", "A-DEC"), "year"),
    **dict.fromkeys(("Q", "q", "QS", "QE", "QS-JAN", "QE-DEC", "Q-DEC"), "quarter"),
    **dict.fromkeys(("M", "MS", "ME"), "month"),
    **dict.fromkeys(("W", "w", "W-SUN"), "week"),  # pandas names weeks by their last day
    **dict.fromkeys(("D", "d"), "day"),
    **dict.fromkeys(("h", "H"), "hour"),
    **dict.fromkeys(("min", "T"), "minute"),
    **dict.fromkeys(("s", "S"), "second"),
}


class Periods(NamedTuple):
    """Consecutive periods.

    `steps` are the periods of the given times, `edges` the starts of all periods and the end of
    the last one. `partial` maps the first and last period, if covered only in part, to a text that
    says how much is covered.
    """

    steps: Array
    edges: Array
    every: str
    partial: dict[int, str]


def periods_of(values: Array, freq: str, name: str) -> Periods:
    """The periods of dates or whole numbers."""
    if values.dtype.kind == "M":
        ruler = _date_ruler(values, freq)
    elif values.dtype.kind == "i":
        step = _number_freq(values, freq, name)
        ruler = _Ruler(values, values.min(), step, values.dtype, f"step of {step}")
    else:
        example = str(values[0]) if values.dtype.kind == "U" else f"{values[0]:.12g}"
        problem = f"is for dates, and the times of {name} are of another kind, such as {example!r}."
        raise ArgumentError("freq", freq, problem, "Leave it out, or write dates as 2001-12-31.")
    steps = (ruler.ticks - ruler.origin) // ruler.length
    n_steps = int(steps.max()) + 1
    if n_steps > MOST_STEPS:
        problem = f"makes {n_steps:,} steps of {name}."
        raise ArgumentError("freq", freq, problem, "Choose longer periods.")
    edges = ruler.origin + ruler.length * np.arange(n_steps + 1)
    if ruler.kind == np.dtype("datetime64[Y]"):  # counted in months
        edges = edges.astype("datetime64[M]")
    edges = edges.astype(ruler.kind)
    return Periods(steps, edges, ruler.every, _partial_ends(values, edges))


class _Ruler(NamedTuple):
    """Times as whole numbers, and the start and length of the first period in the same unit."""

    ticks: Array
    origin: int
    length: int
    kind: np.dtype[np.generic]  # of the labels
    every: str


def _date_ruler(values: Array, freq: str) -> _Ruler:
    count, word = _parsed(freq)
    size, unit = WORDS[word]
    length = count * size
    if unit == "M":
        months = values.astype("datetime64[M]").astype(np.int64)
        kind = np.dtype("datetime64[Y]" if word == "year" else "datetime64[M]")
        return _Ruler(months, months.min() // size * size, length, kind, words(length, "M"))
    every = words(length, "s")
    days = values.astype("datetime64[D]").astype(np.int64)
    if word in ("week", "day"):
        # 1970-01-05 was a Monday.
        origin = days.min() if word == "day" else (days.min() - 4) // 7 * 7 + 4
        return _Ruler(days, origin, length // 86400, np.dtype("datetime64[D]"), every)
    seconds = values.astype("datetime64[s]").astype(np.int64)
    # Periods are counted from the first midnight; the first one is the first with a time in it.
    midnight = days.min() * 86400
    origin = midnight + (seconds.min() - midnight) // length * length
    return _Ruler(seconds, origin, length, np.dtype("datetime64[s]"), every)


def _parsed(freq: str) -> tuple[int, str]:
    found = re.fullmatch(r"(\d{,9}) ?([A-Za-z-]+)", freq)
    if found is None or found[2] not in _FREQS or not int(found[1] or 1):
        remedy = "Use Y, Q, M, W, D, h, min or s, also with a number before it, such as 3D."
        raise ArgumentError("freq", freq, "is not known.", remedy)
    return int(found[1] or 1), _FREQS[found[2]]


def _number_freq(values: Array, freq: str, name: str) -> int:
    """The width of a period of whole numbers: 5, or 5Y for years."""
    found = re.fullmatch(r"(\d{,18}) ?(Y|y|YS|YE|A|AS)?", freq)
    if found is None or not freq or not int(found[1] or 1):
        problem = f"does not suit the times of {name}, which are numbers such as {values[0]}."
        raise ArgumentError("freq", freq, problem, "Give a number, such as 5, or Y for years.")
    return int(found[1] or 1)


def _partial_ends(values: Array, edges: Array) -> dict[int, str]:
    """The first and last period, if they are at least a day long and much of them is uncovered."""
    short = edges.dtype.kind == "M" and np.datetime_data(edges.dtype)[0] == "s"
    if short or len(edges) < 3:
        return {}
    ticks, bounds, unit = _ticks(values, edges)
    distinct = np.unique(ticks)
    # Times a week or a month apart stand for whole weeks or months.
    stands_for = (smallest_step(distinct) if len(distinct) > 1 else None) or 1
    before = int(ticks.min() - bounds[0]) - stands_for + 1
    after = int(bounds[-1] - ticks.max()) - stands_for
    partial = {}
    for step, uncovered in ((0, before), (len(edges) - 2, after)):
        whole = int(bounds[step + 1] - bounds[step])
        if uncovered >= LEAST_UNCOVERED * whole:
            partial[step] = f"{whole - uncovered} of {whole} {unit}"
    return partial


def _ticks(values: Array, edges: Array) -> tuple[Array, Array, str]:
    """Times and edges as whole numbers of a unit: months, days, or that of numbers."""
    if edges.dtype.kind != "M":
        return values, edges, "times"
    in_months = np.datetime_data(edges.dtype)[0] != "D" and by_months(values) is not None
    kind = f"datetime64[{'M' if in_months else 'D'}]"
    ticks, bounds = (dates.astype(kind).astype(np.int64) for dates in (values, edges))
    return ticks, bounds, "months" if in_months else "days"
