"""The regular grid of time steps for the rows of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array
from ..messages.errors import ArgumentError, Text
from .clock import Clock
from .dates import Notes, Where, as_weeks, parse_times, row, style_of
from .formats import STYLES, in_style, short_month_in
from .periods import periods_of
from .spacing import AS_GIVEN, even_grid, labels_ahead, rhythm

# The exposure that stands for the number of days in each step.
DAYS = "days"


class StoredTimeline(TypedDict):
    """A timeline as JSON."""

    labels: list[int] | list[float] | list[str]
    kind: str
    rows: list[int]
    every: str
    notes: list[str]
    style: str
    absent: NotRequired[list[int]]  # in headers of shards, for other programs


@dataclass(frozen=True, eq=False)
class Timeline:
    """The steps of a series, evenly spaced, and the step of each row of a table.

    Attributes
    ----------
    labels : array, (n_steps,)
        Times of all steps in order, including steps without a row: int64, float64, str, or
        datetime64 in the unit of the steps (years, months, days or finer).
    rows : array of int, (n_rows,)
        The step of each row.
    every : str
        The spacing: "month", "3 days", "step of 1"; "as given" for text and for uneven times.
    notes : tuple of str
        How the times were read.
    style : str
        How weeks, quarters and fiscal years are written, see `dates.style_of`; "" for others.

    Examples
    --------
    >>> line = timeline_of(["2001-01-31", "2001-02-28", "2001-04-30"])
    >>> line.every, line.absent, time_texts(line.labels[line.absent])
    ('month', array([2]), ['2001-03-31'])
    >>> time_texts(line.following(2))
    ['2001-05-31', '2001-06-30']
    >>> timeline_of(["2020-W52", "2020-W53"]).following(1)
    array(['2021-W01'], dtype='<U8')
    """

    labels: Array
    rows: Array
    every: str
    notes: Notes = ()
    style: str = ""

    @property
    def times(self) -> Array:
        """Labels of all steps as the user writes them: text if there is a style."""
        return self._written(self.labels)

    def _written(self, labels: Array) -> Array:
        return in_style(labels, self.style) if self.style and labels.dtype.kind == "M" else labels

    @property
    def absent(self) -> Array:
        """Indices of the steps without a row."""
        return np.setdiff1d(np.arange(len(self.labels)), self.rows)

    @property
    def numbered(self) -> bool:
        """Whether steps are only numbered from 0, because rows had no labels."""
        return np.array_equal(self.labels, np.arange(len(self.labels)))

    def following(self, steps: int) -> Array:
        """Times after the last one: "+1", "+2", … if the spacing is not known."""
        return self._written(self.labels_after(steps))

    def labels_after(self, steps: int) -> Array:
        """The continuation of `labels`."""
        ahead = np.arange(1, steps + 1)
        if self.every == AS_GIVEN:
            return np.array([f"+{k}" for k in ahead], dtype=np.str_)
        return labels_ahead(self.labels, self.every, ahead)

    @property
    def clock(self) -> Clock:
        """Where all steps lie in recurring cycles."""
        return Clock(self.labels, self.every)

    def clock_after(self, steps: int) -> Clock:
        """The clock of the steps after the last."""
        return Clock(self.labels_after(steps), self.every, len(self.labels))

    def to_dict(self) -> StoredTimeline:
        """Lists, numbers and text only; dates as ISO text."""
        kind = "str" if self.labels.dtype.kind == "U" else str(self.labels.dtype)
        dates = self.labels.dtype.kind == "M"
        labels = np.datetime_as_string(self.labels) if dates else self.labels
        return {
            "labels": labels.tolist(), "kind": kind, "rows": self.rows.tolist(),
            "every": self.every, "notes": list(self.notes), "style": self.style,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, stored: StoredTimeline) -> Timeline:
        """The inverse of `to_dict`."""
        labels = np.array(stored["labels"], dtype=stored["kind"])
        rows = np.array(stored["rows"], dtype=np.int64)
        style = stored.get("style", "")  # absent from older files
        if style not in ("", *STYLES):
            raise ValueError(f"its times have the style {style!r:.60}")
        return cls(labels, rows, stored["every"], tuple(stored["notes"]), style)


def timeline_of(
    labels: ArrayLike,
    freq: str | None = None,
    *,
    drop_partial: bool = False,
    name: str = "the table",
    where: Where = row,
    style: str = "",
) -> Timeline:
    """Put labelled rows on a regular grid.

    Dates that agree in the day of the month (or are all last days) and in the time of day are
    counted in months. Otherwise the smallest difference is the step, if it is the commonest one
    and divides all others; failing that, the times are taken as even, in their order, with a note.

    Parameters
    ----------
    labels : sequence, (n_rows,)
        Numbers, dates, or text that may hold them: ISO dates, years, 2001-03, 03.2001, 2001Q3,
        Q3 2001, 2001-W07, 31/12/2001 if the column leaves no doubt about day and month,
        31-Dec-01, Mar 2001, Mar 01 if it leaves no doubt that 01 is the year, fiscal years
        2001/02. Other text is kept, in the order given. Any type that NumPy can convert.
    freq : str, default=None
        Periods to put the times into, from "Y", "Q", "M", "W" (from Monday), "D", "h", "min",
        "s", also as "3D"; a number for times that are numbers. Several rows may then share a step.
    drop_partial : bool, default=False
        Leave out a first or last period that the times cover only in part; its rows have step -1.
    name, where
        Name of the table and places of its rows in errors.
    style : str, default=""
        Style of a timeline that the labels continue: see `parse_times` and `style_of`.

    Returns
    -------
    timeline : Timeline

    Examples
    --------
    >>> line = timeline_of(["2001-03", "2001-01", "2001-04"])
    >>> time_texts(line.labels), line.rows
    (['2001-01', '2001-02', '2001-03', '2001-04'], array([2, 0, 3]))
    >>> print(*line.notes, sep="; ")
    sorted by time; monthly, 2001-01 to 2001-04; absent periods: 1 (2001-02)
    >>> timeline_of(["2001-01-05", "2001-01-29", "2001-03-02"], freq="M").rows
    array([0, 0, 2])
    """
    values, notes = parse_times(labels, name, where, style)
    if freq is not None:
        return _in_periods(values, str(freq), notes, name, drop_partial)
    if drop_partial:
        raise ArgumentError("drop_partial", True, "is for periods.", Text("Set {freq=} as well."))
    _refuse_repeats(values, labels, name, where)
    if values.dtype.kind == "U":
        if is_total(last := str(values[-1])):
            found = f"{name}, {where(len(values) - 1)}: the last time is {last!r}"
            raise ValueError(f"{found}, which is not a time step but a total. Remove it.")
        return Timeline(values, np.arange(len(values)), AS_GIVEN, (*notes, _about_text(values)))
    written = style_of(labels, values, style)
    order = np.argsort(values, kind="stable")
    if np.any(np.diff(order) < 0):
        notes = (*notes, "sorted by time")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ordered = values[order]
    if len(values) == 1:
        return Timeline(ordered, rank, AS_GIVEN, notes, written)
    if (grid := even_grid(ordered)) is None:
        uneven = "times are not evenly spaced: taken as even, in their order"
        if values.dtype.kind == "M":
            uneven += "; set freq to put them into periods"
        return Timeline(ordered, rank, AS_GIVEN, (*notes, uneven), written)
    return _described(Timeline(grid.labels, grid.steps[rank], grid.every, notes, written))


def timeline_of_labels(
    labels: ArrayLike, corner: object, name: str = "X", style: str = ""
) -> Timeline:
    """The timeline of labels in memory, such as a pandas index, with the name `corner`."""
    if getattr(labels, "nlevels", 1) > 1:  # such as years and quarters: joined, in this order
        tuples = np.asarray(labels).tolist()
        return timeline_of([" ".join(map(str, label)) for label in tuples], name=name)
    labels, notes = as_weeks(labels, corner)
    line = timeline_of(labels, name=name, style=style)
    return replace(line, notes=(*notes, *line.notes))


def time_texts(labels: ArrayLike) -> list[str]:
    """Labels of steps as text.

    Examples
    --------
    >>> time_texts(np.array(["2001-03", "2001-04"], dtype="datetime64[M]"))
    ['2001-03', '2001-04']
    >>> time_texts(np.array(["2001-03-04T00:00"], dtype="datetime64[s]"))
    ['2001-03-04']
    >>> time_texts([1965, 1966]), time_texts([0.1, 2.0])
    (['1965', '1966'], ['0.1', '2'])
    """
    array = np.asarray(labels)
    if array.dtype.kind == "f":
        return [f"{value:.12g}" for value in array.tolist()]
    if array.dtype.kind != "M":
        return [str(value) for value in array.tolist()]
    if np.datetime_data(array.dtype)[0] in ("Y", "M"):
        return [str(value) for value in np.datetime_as_string(array).tolist()]
    for unit in ("D", "m", "s", "ms", "us", "ns"):
        coarse = array.astype(f"datetime64[{unit}]")
        if np.array_equal(coarse, array):
            break
    return [text.replace("T", " ") for text in np.datetime_as_string(coarse).tolist()]


def first_few(texts: Sequence[str]) -> str:
    """The first three of some texts: a, b, c, …"""
    return ", ".join(texts[:3]) + (", …" if len(texts) > 3 else "")


def _refuse_repeats(values: Array, labels: ArrayLike, name: str, where: Where) -> None:
    order = np.argsort(values, kind="stable")
    again = order[1:][values[order][1:] == values[order][:-1]]
    if not len(again):
        return
    n = int(again.min())
    first = int(np.argmax(values == values[n]))
    given = np.asarray(labels)[n]
    label = given if isinstance(given, str) else time_texts(values[n : n + 1])[0]
    found = f"the time {str(label)!r} twice, in {where(first)} and {where(n)}"
    remedy = (
        "Give each time step one row; or add up the rows of a period with {freq=}; or, if there is "
        "a row per time and feature, name its columns with {time=} and {feature=}."
    )
    raise ValueError(Text("{name} has {found}. " + remedy, name=name, found=found))


_TOTALS = re.compile(
    r"(grand |over ?)?(sums?|summen?|totals?|totale|totaux|totales|somme|suma|subtotals?|gesamt|"
    r"gesamtsumme|insgesamt|zwischensumme|average|mean|durchschnitt|mittelwert|all|alle|[Σ∑])"
    r"( ?\d+)?",
    re.IGNORECASE,
)


def is_total(label: str) -> bool:
    """Whether a label means a sum, such as Total or Gesamt."""
    return _TOTALS.fullmatch(label.strip(" :.*()-")) is not None


def _about_text(values: Array) -> str:
    kind = f"times such as {str(values[0])!r} are neither numbers nor dates"
    note = f"{kind}: their order is taken as it stands"
    if all(short_month_in(value) is not None for value in values.tolist()):
        note += "; absent periods cannot be seen: write months as 2019-01"
    return note


def _described(line: Timeline) -> Timeline:
    """The line with notes on its spacing and on absent steps."""
    texts, absent = time_texts(line.times), line.absent
    if line.numbered and not len(absent):
        return line
    notes = [*line.notes, f"{rhythm(line.every)}, {texts[0]} to {texts[-1]}"]
    if len(absent):
        notes.append(f"absent periods: {len(absent):,} ({first_few([texts[n] for n in absent])})")
    return replace(line, notes=tuple(notes))


def _in_periods(values: Array, freq: str, notes: Notes, name: str, drop_partial: bool) -> Timeline:
    """Each time in its period; the labels are the starts of the periods."""
    periods = periods_of(values, freq, name)
    steps, first, last = periods.steps, 0, len(periods.edges) - 1
    texts = time_texts(periods.edges[:-1])
    if drop_partial:
        first, last = int(0 in periods.partial), last - int(last - 1 in periods.partial)
        steps = np.where((steps >= first) & (steps < last), steps - first, -1)
        if not np.any(steps >= 0):
            remedy = Text("Choose shorter periods, or leave out {drop_partial=}.")
            problem = f"makes no period that {name} covers completely."
            raise ArgumentError("freq", freq, problem, remedy)
    n_times = int(np.sum(steps >= 0))
    if last - first < n_times:
        notes = (*notes, f"{n_times:,} times in {last - first:,} periods")
    line = _described(Timeline(periods.edges[first:last], steps, periods.every, notes))
    about = []
    for step, covered in periods.partial.items():
        period = f"the {'last' if step else 'first'} period, {texts[step]},"
        effect = f"{'forecasts from it' if step else 'it'} may be too low"
        kept = f"{period} holds data of {covered}: {effect}"
        about.append(f"left out: {period} which holds data of {covered}" if drop_partial else kept)
    return replace(line, notes=(*line.notes, *about))
