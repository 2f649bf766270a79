"""The spacing of times: regular grids, and words for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import Array

AS_GIVEN = "as given"  # the spacing of text, and of uneven times
MOST_ABSENT = 4  # absent steps per given one; with more, times count as uneven
MOST_STEPS = 2_000_000


class EvenGrid(NamedTuple):
    """Labels of all steps of a regular grid, the steps of the given times, and the spacing."""

    labels: Array
    steps: Array
    every: str


def even_grid(ordered: Array) -> EvenGrid | None:
    """The grid of sorted times, or None if they are not evenly spaced."""
    if ordered.dtype.kind == "f":
        return _float_grid(ordered)
    rule = by_months(ordered) if ordered.dtype.kind == "M" else None
    ticks = ordered.astype(np.int64) if rule is None else rule.months
    step = smallest_step(ticks)
    if step is None:
        return None
    steps = (ticks - ticks[0]) // step
    grid = ticks[0] + step * np.arange(steps[-1] + 1)
    if rule is not None:
        return EvenGrid(rule.dates(grid, rule.label_type(step)), steps, words(step, "M"))
    if ordered.dtype.kind == "i":
        return EvenGrid(grid, steps, f"step of {step}")
    unit = np.datetime_data(ordered.dtype)[0]
    return EvenGrid(grid.astype(ordered.dtype), steps, words(step, unit))


def smallest_step(ticks: Array) -> int | None:
    """The smallest difference, if it is the commonest, divides all others and leaves few gaps.

    If there are more than two differences, it has to occur twice: once may be chance.
    """
    gaps, counts = np.unique(np.diff(ticks), return_counts=True)
    step = gaps[0]
    common = counts[0] == counts.max() and (counts[0] > 1 or len(ticks) <= 3)
    n_absent = (ticks[-1] - ticks[0]) // step + 1 - len(ticks)
    even = not np.any(gaps % step) and n_absent <= MOST_ABSENT * len(ticks)
    return int(step) if common and even else None


@np.errstate(over="ignore", invalid="ignore")  # differences may be infinite
def _float_grid(ordered: Array) -> EvenGrid | None:
    """Numbers on a grid. The given numbers keep their exact values."""
    fine = np.diff(ordered).min()
    steps = np.rint((ordered - ordered[0]) / fine)
    if not steps[-1] <= MOST_STEPS or not np.allclose(
        ordered[0] + steps * fine, ordered, rtol=1e-9, atol=1e-6 * fine
    ):
        return None
    steps = steps.astype(np.int64)
    if smallest_step(steps) != 1:
        return None
    exact = (ordered[-1] - ordered[0]) / steps[-1]
    labels = _short(ordered[0] + exact * np.arange(steps[-1] + 1))
    labels[steps] = ordered
    return EvenGrid(labels, steps, f"step of {exact:.12g}")


def _short(values: Array) -> Array:
    """Rounded to 12 digits: 0.3 for 0.1 + 0.2."""
    return np.array([float(f"{value:.12g}") for value in values.tolist()])


def labels_ahead(labels: Array, every: str, ahead: Array) -> Array:
    """Labels of the steps `ahead` of the last one."""
    last, number = labels[-1], every.removeprefix("step of ")
    if labels.dtype.kind == "i":
        return last + int(number) * ahead
    if labels.dtype.kind != "M":
        return _short(last + float(number) * ahead)
    size, unit = span(every)
    if unit != "M":
        return (last + (size * ahead).astype(f"timedelta64[{unit}]")).astype(labels.dtype)
    rule = by_months(labels)
    assert rule is not None, "labels that are spaced by months are counted in months"
    return rule.dates(rule.months[-1] + size * ahead, labels.dtype)


class MonthRule(NamedTuple):
    """Months since 1970, and the day of the month and time of day that all dates share."""

    months: Array
    day: int
    clock: np.timedelta64
    given: np.dtype[np.datetime64]

    def dates(self, months: Array, kind: np.dtype[np.datetime64]) -> Array:
        """The dates of other months since 1970."""
        first = months.astype("datetime64[M]")
        if np.datetime_data(kind)[0] in ("Y", "M"):
            return first.astype(kind)
        start, end = first.astype("datetime64[D]"), (first + 1).astype("datetime64[D]")
        number = np.minimum(self.day, (end - start).astype(np.int64))
        return (start + (number - 1)).astype(kind) + self.clock

    def label_type(self, step: int) -> np.dtype[np.datetime64]:
        """Years or months if the dates stand for whole ones, else the type of the dates."""
        written_as_months = np.datetime_data(self.given)[0] == "M"
        if written_as_months or self.day != 1 or self.clock != np.timedelta64(0, "s"):
            return self.given
        whole_years = step % 12 == 0 and self.months[0] % 12 == 0
        return np.dtype("datetime64[Y]" if whole_years else "datetime64[M]")


def by_months(dates: Array) -> MonthRule | None:
    """The rule of dates that agree in the day of the month and the time of day, else None.

    Day 31 is the last day of any month; in shorter months, the last day stands for later ones.
    """
    months, days = dates.astype("datetime64[M]"), dates.astype("datetime64[D]")
    start, end = months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]")
    number, length = (days - start).astype(np.int64) + 1, (end - start).astype(np.int64)
    day = 31 if np.all(number == length) else int(number.max())
    clock = dates - days
    if np.any(number != np.minimum(day, length)) or np.any(clock != clock[0]):
        return None
    return MonthRule(months.astype(np.int64), day, clock[0], dates.dtype)


# Words for spacings, longest first, as multiples of a NumPy unit.
WORDS = {
    "year": (12, "M"), "quarter": (3, "M"), "month": (1, "M"),
    "week": (7 * 86400, "s"), "day": (86400, "s"), "hour": (3600, "s"), "minute": (60, "s"),
    "second": (1, "s"), "millisecond": (1, "ms"), "microsecond": (1, "us"), "nanosecond": (1, "ns"),
}  # fmt: skip
_RHYTHMS = {
    "year": "yearly", "quarter": "quarterly", "month": "monthly", "week": "weekly",
    "day": "daily", "hour": "hourly",
}  # fmt: skip


def words(step: int, unit: str) -> str:
    """A step in the longest unit that divides it: 14 days are 2 weeks."""
    size = step * (86400 if unit == "D" else 1)
    unit = "s" if unit == "D" else unit
    for finer, coarser in (("ns", "us"), ("us", "ms"), ("ms", "s")):
        if unit == finer and size % 1000 == 0:
            size, unit = size // 1000, coarser
    for word, (length, base) in WORDS.items():
        # Only one quarter is called so: two are 6 months.
        if base == unit and size % length == 0 and (word != "quarter" or size == length):
            return word if size == length else f"{size // length} {word}s"
    raise AssertionError(f"no word for {step} {unit}")


def span(every: str) -> tuple[int, str]:
    """The length of a spacing, and its unit: months, seconds or finer."""
    count, _, word = every.rpartition(" ")
    length, unit = WORDS[word.removesuffix("s") if count else word]
    return int(count or 1) * length, unit


def rhythm(every: str) -> str:
    """monthly, every 3 days, in steps of 1."""
    if every.startswith("step"):
        return f"in steps{every.removeprefix('step')}"
    return _RHYTHMS.get(every, f"every {every}")
