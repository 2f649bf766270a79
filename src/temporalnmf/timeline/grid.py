"""The regular grid of time steps on which the rows of a table lie."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .dates import STYLES, Where, as_weeks, in_style, moments_of, row, short_month_in, style_of

if TYPE_CHECKING:
    from .._typing import Array  # not at run time: it loads the compiler

AS_GIVEN = "as given"
MOST_ABSENT = 4  # absent steps per given one; beyond it a grid is no help
MOST_STEPS = 2_000_000
LEAST_UNCOVERED = 0.2  # of a period at an end, to be worth a word


@dataclass(frozen=True, eq=False)
class Timeline:
    """The steps of a series, evenly spaced, and where the rows of a table lie on them.

    Attributes
    ----------
    labels : array, (n_steps,)
        Moments of all steps in order, also of those without a row: int64, float64, str, or
        datetime64 in the unit of the steps (years, months, days or finer).
    rows : array of int, (n_rows,)
        The step on which each row lies.
    every : str
        The spacing: "month", "3 days", "step of 1"; "as given" for text and for uneven times.
    notes : tuple of str
        What was understood, in words.
    style : str
        How weeks, quarters and fiscal years are written, see `moments.style_of`; "" for others.

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
    notes: tuple[str, ...] = ()
    style: str = ""

    @property
    def times(self) -> Array:
        """Labels of all steps as the user writes them: text where there is a style."""
        return self._written(self.labels)

    def _written(self, moments: Array) -> Array:
        return (
            in_style(moments, self.style) if self.style and moments.dtype.kind == "M" else moments
        )

    @property
    def absent(self) -> Array:
        """Indices of the steps on which no row lies."""
        return np.setdiff1d(np.arange(len(self.labels)), self.rows)

    @property
    def numbered(self) -> bool:
        """Whether steps are merely numbered from 0, since rows had no labels."""
        return np.array_equal(self.labels, np.arange(len(self.labels)))

    def following(self, steps: int) -> Array:
        """Times after the last: "+1", "+2", … where the spacing is not known."""
        return self._written(self.moments_after(steps))

    def moments_after(self, steps: int) -> Array:
        """What `labels` go on with."""
        ahead = np.arange(1, steps + 1)
        if self.every == AS_GIVEN:
            return np.array([f"+{k}" for k in ahead], dtype=np.str_)
        if self.labels.dtype.kind != "M":
            return _numbers_from(self.labels, self.every, ahead)
        size, unit = _span(self.every)
        if unit == "M":
            rule = _by_months(self.labels)
            assert rule is not None, "labels that are spaced by months are counted in months"
            months, day, clock = rule
            return _month_dates(months[-1] + int(size) * ahead, day, clock, self.labels.dtype)
        ahead_of_last = (size * ahead).astype(f"timedelta64[{unit}]")
        return (self.labels[-1] + ahead_of_last).astype(self.labels.dtype)

    def to_dict(self) -> dict[str, Any]:
        """Lists, numbers and text only; dates as ISO text."""
        kind = "str" if self.labels.dtype.kind == "U" else str(self.labels.dtype)
        dates = self.labels.dtype.kind == "M"
        labels = np.datetime_as_string(self.labels) if dates else self.labels
        return {
            "labels": labels.tolist(), "kind": kind, "rows": self.rows.tolist(),
            "every": self.every, "notes": list(self.notes), "style": self.style,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Timeline:
        """What `to_dict` gave.

        Examples
        --------
        >>> Timeline.from_dict(timeline_of([2001, 2002]).to_dict()).labels
        array([2001, 2002])
        """
        labels = np.array(stored["labels"], dtype=stored["kind"])
        rows = np.array(stored["rows"], dtype=np.int64)
        style = stored.get("style", "")  # absent from older files
        if style not in ("", *STYLES):
            raise ValueError(f"its times have the style {style!r:.60}")
        return cls(labels, rows, stored["every"], tuple(stored["notes"]), style)


def timeline_of(
    labels: Any,
    freq: str | None = None,
    *,
    drop_partial: bool = False,
    name: str = "the table",
    where: Where = row,
    style: str = "",
) -> Timeline:
    """Put labelled rows on a regular grid.

    Dates that agree in the day of the month (or are all last days) and in the time of day are
    counted in months. Else the smallest difference is the step, if it is the commonest one and
    divides all others; else the times are taken as even, in their order, and this is said.

    Parameters
    ----------
    labels : sequence, (n_rows,)
        Numbers, dates, or text that may hold them: ISO dates, years, 2001-03, 03.2001, 2001Q3,
        Q3 2001, 2001-W07, 31/12/2001 where the column leaves no doubt about day and month,
        31-Dec-01, Mar 2001, Mar 01 where it leaves no doubt that 01 is the year, fiscal years
        2001/02. Other text is kept, in the order given. Anything NumPy can make an array of.
    freq : str, default=None
        Periods to put the times into, from "Y", "Q", "M", "W" (from Monday), "D", "h", "min",
        "s", also as "3D"; a number for times that are numbers. Several rows may then share a step.
    drop_partial : bool, default=False
        Leave out a first or last period that the times cover only in part; its rows lie on step -1.
    name, where
        What errors call the table and the place of a row.
    style : str, default=""
        That of a timeline which the labels continue: see `moments_of` and `style_of`.

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
    values, notes = moments_of(labels, name, where, style)
    if freq is not None:
        return _in_periods(values, str(freq), notes, name, drop_partial)
    if drop_partial:
        raise ValueError("drop_partial=True is for periods: give freq= (--freq) too.")
    _refuse_repeats(values, labels, name, where)
    if values.dtype.kind == "U":
        _refuse_totals(str(values[-1]), name, where(len(values) - 1))
        return Timeline(values, np.arange(len(values)), AS_GIVEN, (*notes, _about_text(values)))
    written = style_of(labels, values, style)
    order = np.argsort(values, kind="stable")
    if np.any(np.diff(order) < 0):
        notes = (*notes, "sorted by time")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ordered = values[order]
    grid = _grid(ordered) if len(values) > 1 else None
    if grid is None:
        uneven = "times are not evenly spaced: taken as even, in their order"
        if values.dtype.kind == "M":
            uneven += "; freq= (--freq) puts them into periods"
        notes = (*notes, uneven) if len(values) > 1 else notes
        return Timeline(ordered, rank, AS_GIVEN, notes, written)
    grid_labels, steps, every = grid
    return _told(Timeline(grid_labels, steps[rank], every, notes, written))


def timeline_of_rows(X: Any) -> Timeline | None:
    """The times of a pandas frame (its index) or an xarray array (its first dimension).

    None where rows have no labels: arrays, sparse matrices, polars frames.

    Examples
    --------
    >>> timeline_of_rows(np.ones((3, 2))) is None
    True
    """
    if hasattr(X, "dims") and hasattr(X, "coords"):
        first = X.dims[0]
        return timeline_of(X.coords[first].values) if first in X.coords else None
    index = getattr(X, "index", None)
    if not hasattr(X, "columns") or index is None or callable(index):
        return None
    return timeline_of_labels(index, index.name)


def timeline_of_labels(labels: Any, corner: Any, name: str = "X", style: str = "") -> Timeline:
    """The times of labels in memory, such as a pandas index, that are called `corner`."""
    if getattr(labels, "nlevels", 1) > 1:  # such as years and quarters: words, in the order given
        return timeline_of([" ".join(map(str, label)) for label in labels], name=name)
    labels, notes = as_weeks(labels, corner)
    line = timeline_of(labels, name=name, style=style)
    return replace(line, notes=(*notes, *line.notes))


def time_texts(labels: Any) -> list[str]:
    """Labels of steps for people.

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


def _refuse_repeats(values: Array, labels: Any, name: str, where: Where) -> None:
    order = np.argsort(values, kind="stable")
    again = order[1:][values[order][1:] == values[order][:-1]]
    if not len(again):
        return
    n = int(again.min())
    first = int(np.argmax(values == values[n]))
    given = np.asarray(labels)[n]
    label = given if isinstance(given, str) else time_texts(values[n : n + 1])[0]
    raise ValueError(
        f"{name} has the time {str(label)!r} twice, in {where(first)} and {where(n)}. Give each "
        f"time step one row, with all features in it; or add up the rows of a period with freq= "
        f"(--freq); or, if there is a row per time and feature, name its columns with time= and "
        f"feature= (--time, --feature)."
    )


_TOTALS = re.compile(
    r"(grand |over ?)?(sums?|summen?|totals?|totale|totaux|totales|somme|suma|subtotals?|gesamt|"
    r"gesamtsumme|insgesamt|zwischensumme|average|mean|durchschnitt|mittelwert|all|alle|[Σ∑])"
    r"( ?\d+)?",
    re.IGNORECASE,
)


def is_total(label: str) -> bool:
    """Whether a label is one of sums, such as Total or Gesamt."""
    return _TOTALS.fullmatch(label.strip(" :.*()-")) is not None


def _refuse_totals(label: str, name: str, place: str) -> None:
    if is_total(label):
        raise ValueError(
            f"{name}, {place}: the last time is {label!r}, which is no time step but sums up the "
            f"others. Remove it."
        )


def _about_text(values: Array) -> str:
    told = f"times such as {str(values[0])!r} are neither numbers nor dates"
    note = f"{told}: their order is taken as it stands"
    if all(short_month_in(value) is not None for value in values.tolist()):
        note += "; absent periods cannot be seen: write months as 2019-01"
    return note


def _told(line: Timeline) -> Timeline:
    """The line with a word on its spacing and on the steps that are absent."""
    texts = time_texts(line.times)
    if line.numbered and not len(line.absent):
        return line
    notes = [*line.notes, f"{_rhythm(line.every)}, {texts[0]} to {texts[-1]}"]
    absent = line.absent
    if len(absent):
        few = ", ".join(texts[n] for n in absent[:3]) + (", …" if len(absent) > 3 else "")
        notes.append(f"absent periods: {len(absent):,} ({few})")
    return replace(line, notes=tuple(notes))


def _grid(ordered: Array) -> tuple[Array, Array, str] | None:
    """Labels of an even grid, the steps that hold the given times, and the spacing in words."""
    if ordered.dtype.kind in "if":
        return _number_grid(ordered)
    if (rule := _by_months(ordered)) is not None:
        months, day, clock = rule
        step = _step(months)
        if step is None:
            return None
        steps = (months - months[0]) // step
        grid = months[0] + step * np.arange(steps[-1] + 1)
        return (
            _month_dates(grid, day, clock, _month_type(rule, step, ordered)),
            steps,
            _words(step, "M"),
        )
    ticks = ordered.astype(np.int64)
    step = _step(ticks)
    if step is None:
        return None
    steps = (ticks - ticks[0]) // step
    labels = (ticks[0] + step * np.arange(steps[-1] + 1)).astype(ordered.dtype)
    return labels, steps, _words(step, np.datetime_data(ordered.dtype)[0])


def _step(ticks: Array) -> Any:
    """The smallest difference, if it is the commonest, divides all others and leaves few gaps.

    Of more than two differences it has to be there twice: once may be an accident.
    """
    gaps, counts = np.unique(np.diff(ticks), return_counts=True)
    step = gaps[0]
    common = counts[0] == counts.max() and (counts[0] > 1 or len(ticks) <= 3)
    n_absent = (ticks[-1] - ticks[0]) // step + 1 - len(ticks)
    even = not np.any(gaps % step) and n_absent <= MOST_ABSENT * len(ticks)
    return step if common and even else None


def _number_grid(ordered: Array) -> tuple[Array, Array, str] | None:
    """Numbers on a grid; those given keep their value to the last bit."""
    if ordered.dtype.kind == "i":
        step = _step(ordered)
        if step is None:
            return None
        steps = (ordered - ordered[0]) // step
        return ordered[0] + step * np.arange(steps[-1] + 1), steps, f"step of {step}"
    fine = np.diff(ordered).min()
    steps = np.rint((ordered - ordered[0]) / fine)
    if steps[-1] > MOST_STEPS or not np.allclose(
        ordered[0] + steps * fine, ordered, rtol=1e-9, atol=1e-6 * fine
    ):
        return None
    steps = steps.astype(np.int64)
    if _step(steps) != 1:
        return None
    exact = (ordered[-1] - ordered[0]) / steps[-1]
    labels = _short(ordered[0] + exact * np.arange(steps[-1] + 1))
    labels[steps] = ordered
    return labels, steps, f"step of {exact:.12g}"


def _numbers_from(labels: Array, every: str, ahead: Array) -> Array:
    """Numbers after the last; the words hold the step, the labels hold it to the last bit."""
    if labels.dtype.kind == "i":
        return labels[-1] + int(every.removeprefix("step of ")) * ahead
    step = float(every.removeprefix("step of "))
    return _short(labels[-1] + step * ahead)


def _short(values: Array) -> Array:
    """0.3 for 0.1 + 0.2."""
    return np.array([float(f"{value:.12g}") for value in values.tolist()])


_Months = tuple[Any, int, Any]


def _by_months(dates: Array) -> _Months | None:
    """Months since 1970, day of the month and time of day, if all dates agree in the latter two.

    Day 31 stands for the last day, and any day for the last one of a month that is too short.
    """
    months, days = dates.astype("datetime64[M]"), dates.astype("datetime64[D]")
    number = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
    length = ((months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")).astype(
        np.int64
    )
    day = 31 if np.all(number == length) else int(number.max())
    clock = dates - days
    if np.any(number != np.minimum(day, length)) or np.any(clock != clock[0]):
        return None
    return months.astype(np.int64), day, clock[0]


def _month_dates(months: Array, day: int, clock: Any, kind: Any) -> Array:
    """The dates of months since 1970."""
    first = months.astype("datetime64[M]")
    if np.datetime_data(kind)[0] in ("Y", "M"):
        return first.astype(kind)
    start, end = first.astype("datetime64[D]"), (first + 1).astype("datetime64[D]")
    number = np.minimum(day, (end - start).astype(np.int64))
    return (start + (number - 1)).astype(kind) + clock


def _month_type(rule: _Months, step: int, dates: Array) -> Any:
    """Years and months are written as such if they stand for whole ones."""
    months, day, clock = rule
    written_as_months = np.datetime_data(dates.dtype)[0] == "M"
    if written_as_months or day != 1 or clock != np.timedelta64(0, "s"):
        return dates.dtype
    whole_years = step % 12 == 0 and months[0] % 12 == 0
    return np.dtype("datetime64[Y]" if whole_years else "datetime64[M]")


# Words for spacings, longest first: how many of which unit of NumPy.
_WORDS = {
    "year": (12, "M"), "quarter": (3, "M"), "month": (1, "M"),
    "week": (7 * 86400, "s"), "day": (86400, "s"), "hour": (3600, "s"), "minute": (60, "s"),
    "second": (1, "s"), "millisecond": (1, "ms"), "microsecond": (1, "us"), "nanosecond": (1, "ns"),
}  # fmt: skip
_RHYTHMS = {
    "year": "yearly", "quarter": "quarterly", "month": "monthly", "week": "weekly",
    "day": "daily", "hour": "hourly",
}  # fmt: skip


def _words(step: int, unit: str) -> str:
    """A step of so many units in the longest word that fits: 14 days are 2 weeks."""
    size = int(step) * (86400 if unit == "D" else 1)
    unit = "s" if unit == "D" else unit
    for finer, coarser in (("ns", "us"), ("us", "ms"), ("ms", "s")):
        if unit == finer and size % 1000 == 0:
            size, unit = size // 1000, coarser
    for word, (length, base) in _WORDS.items():
        if base == unit and size % length == 0:
            # Quarters are told as such, half years as months.
            if word == "quarter" and size != length:
                continue
            return word if size == length else f"{size // length} {word}s"
    raise AssertionError(f"no word for {step} {unit}")


def _span(every: str) -> tuple[int, str]:
    """How many of which unit: months, seconds or finer."""
    count, _, word = every.rpartition(" ")
    length, unit = _WORDS[word.removesuffix("s") if count else word]
    return int(count or 1) * length, unit


def _rhythm(every: str) -> str:
    if every.startswith("step"):
        return f"in steps{every.removeprefix('step')}"
    return _RHYTHMS.get(every, f"every {every}")


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


def _in_periods(
    values: Array, freq: str, notes: tuple[str, ...], name: str, drop_partial: bool
) -> Timeline:
    """Each time in its period; the labels are the starts of the periods."""
    if values.dtype.kind == "M":
        ticks, origin, step, kind, every = _date_periods(values, freq)
    elif values.dtype.kind == "i":
        step = _number_freq(values, freq, name)
        ticks, origin, kind, every = values, values.min(), np.dtype(np.int64), f"step of {step}"
    else:
        raise ValueError(
            f"freq={freq!r} puts dates into periods, and the times of {name} are of another kind, "
            f"such as {time_texts(values[:1])[0]!r}. Leave it out, or write dates as 2001-12-31."
        )
    steps = (ticks - origin) // step
    n_steps = int(steps.max()) + 1
    if n_steps > MOST_STEPS:
        raise ValueError(f"freq={freq!r} makes {n_steps:,} steps of {name}. Take longer periods.")
    edges = (
        (origin + step * np.arange(n_steps + 1))
        .astype("datetime64[M]" if kind == "datetime64[Y]" else kind)
        .astype(kind)
    )
    partial = _partial_ends(values, edges)
    first, last = 0, n_steps
    if drop_partial:
        first, last = int(0 in partial), n_steps - int(n_steps - 1 in partial)
        steps = np.where((steps >= first) & (steps < last), steps - first, -1)
        if not np.any(steps >= 0):
            raise ValueError(
                f"freq={freq!r} makes no period that {name} covers wholly. Take shorter periods, "
                f"or leave out drop_partial."
            )
    n_times = int(np.sum(steps >= 0))
    if last - first < n_times:
        notes = (*notes, f"{n_times:,} times in {last - first:,} periods")
    line = _told(Timeline(edges[first:last], steps, every, notes))
    about = _about_partial(partial, time_texts(edges[:-1]), drop_partial)
    return replace(line, notes=(*line.notes, *about))


_Partial = dict[int, str]  # steps at the ends, and in words how much of them is covered


def _partial_ends(values: Array, edges: Array) -> _Partial:
    """The first and last period, if the times leave much of them uncovered.

    Times that are spaced by weeks or months stand for whole ones. Periods shorter than a day are
    not judged.
    """
    short = edges.dtype.kind == "M" and np.datetime_data(edges.dtype)[0] == "s"
    if short or len(edges) < 3:
        return {}
    ticks, bounds, unit = _ticks(values, edges)
    distinct = np.unique(ticks)
    stands_for = int((_step(distinct) if len(distinct) > 1 else None) or 1)
    before = int(ticks.min() - bounds[0]) - stands_for + 1
    after = int(bounds[-1] - ticks.max()) - stands_for
    partial = {}
    for step, uncovered in ((0, before), (len(edges) - 2, after)):
        whole = int(bounds[step + 1] - bounds[step])
        if uncovered >= LEAST_UNCOVERED * whole:
            partial[step] = f"{whole - uncovered} of {whole} {unit}"
    return partial


def _ticks(values: Array, edges: Array) -> tuple[Array, Array, str]:
    """Times and edges of periods as whole numbers of a unit: months, days, or that of numbers."""
    if edges.dtype.kind != "M":
        return values, edges, "times"
    by_months = np.datetime_data(edges.dtype)[0] != "D" and _by_months(values) is not None
    unit = "M" if by_months else "D"
    ticks, bounds = (
        dates.astype(f"datetime64[{unit}]").astype(np.int64) for dates in (values, edges)
    )
    return ticks, bounds, "months" if by_months else "days"


def _about_partial(partial: _Partial, texts: list[str], dropped: bool) -> list[str]:
    notes = []
    for step, covered in partial.items():
        end, effect = ("last", "what follows from it") if step else ("first", "it")
        what = f"the {end} period, {texts[step]}, "
        if dropped:
            notes.append(f"left out: {what}which holds data of {covered}")
        else:
            notes.append(f"{what}holds data of {covered}: {effect} may be too low")
    return notes


def _date_periods(values: Array, freq: str) -> tuple[Array, Any, int, Any, str]:
    """Times as numbers, where the first period starts, its length, the type of labels, words."""
    count, word = _parsed(freq)
    length, unit = _WORDS[word]
    if unit == "M":
        months = values.astype("datetime64[M]").astype(np.int64)
        kind = np.dtype("datetime64[Y]" if word == "year" else "datetime64[M]")
        origin = months.min() // length * length
        return months, origin, count * length, kind, _words(count * length, "M")
    every = _words(count * length, "s")
    days = values.astype("datetime64[D]").astype(np.int64)
    if word in ("week", "day"):
        # 1970-01-05 was a Monday.
        origin = days.min() if word == "day" else (days.min() - 4) // 7 * 7 + 4
        return days, origin, count * length // 86400, np.dtype("datetime64[D]"), every
    seconds = values.astype("datetime64[s]").astype(np.int64)
    # From the first midnight, and then from the first period that holds a time.
    midnight, size = days.min() * 86400, count * length
    origin = midnight + (seconds.min() - midnight) // size * size
    return seconds, origin, size, np.dtype("datetime64[s]"), every


def _parsed(freq: str) -> tuple[int, str]:
    found = re.fullmatch(r"(\d*) ?([A-Za-z-]+)", freq)
    if found is None or found[2] not in _FREQS or not int(found[1] or 1):
        raise ValueError(
            f"freq={freq!r} is not known. Use Y, Q, M, W, D, h, min or s, also with a number "
            f"before it, such as 3D."
        )
    return int(found[1] or 1), _FREQS[found[2]]


def _number_freq(values: Array, freq: str, name: str) -> int:
    """The width of a period of whole numbers: 5, or 5Y for years."""
    found = re.fullmatch(r"(\d*) ?(Y|y|YS|YE|A|AS)?", freq)
    if found is None or not freq or not int(found[1] or 1):
        raise ValueError(
            f"freq={freq!r} is for dates, and the times of {name} are numbers such as {values[0]}. "
            f"Give a number, such as 5, or Y for years."
        )
    return int(found[1] or 1)
