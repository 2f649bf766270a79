"""Where steps lie in recurring cycles, such as weeks and years."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import Array
from .spacing import AS_GIVEN, by_months, span

_DAY = 86400
# Lengths of cycles in months, or else in seconds.
_MONTHS, _SECONDS = {"year": 12}, {"week": 7 * _DAY, "day": _DAY}
_YEAR = 365.2425 * _DAY
CYCLES = ("day", "week", "year")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_SHORT = 3  # letters of a short name of a day or month
# Days of a leap year, whose days are the positions of a year of days.
_LEAP_YEAR = np.arange("2000-01-01", "2001-01-01", dtype="datetime64[D]")
_HOURS = 24
_FEW_TICKS = 10


class Clock(NamedTuple):
    """Labels of steps with their spacing; `first` is the number of the first step.

    Examples
    --------
    >>> days = np.arange("2001-01-06", "2001-01-09", dtype="datetime64[D]")
    >>> Clock(days, "day").phases("week") * 7  # from Monday; 6 January was a Saturday
    array([5., 6., 0.])
    >>> Clock(days, "day").length("week")
    7.0
    """

    labels: Array
    every: str
    first: int = 0

    @property
    def dated(self) -> bool:
        """Whether steps are evenly spaced dates."""
        return self.labels.dtype.kind == "M" and self.every != AS_GIVEN

    @property
    def positions(self) -> Array:
        """Numbers of the steps: counted from a fixed date if they are dates, or from zero."""
        labels = self.labels
        if self.every == AS_GIVEN or labels.dtype.kind not in "ifM":
            return self.first + np.arange(len(labels))
        if labels.dtype.kind == "M":
            ticks, size, _ = self._ticks()
            return ticks // size
        step = float(self.every.removeprefix("step of "))
        return np.rint(labels / step).astype(np.int64)

    def length(self, cycle: str) -> float:
        """Steps per cycle."""
        _, size, unit = self._ticks()
        if unit == "M":
            return _MONTHS[cycle] / size if cycle in _MONTHS else 0.0
        return _SECONDS.get(cycle, _YEAR) / (size * _seconds_of(unit))

    def phases(self, cycle: str) -> Array:
        """Shares of the cycle that have passed, from 0 to 1.

        At the start of a step if a cycle is a whole number of steps, else at its middle.
        """
        ticks, size, unit = self._ticks()
        if unit == "M":
            return (ticks // size * size % 12) / 12.0
        whole = cycle != "year" and float(self.length(cycle)).is_integer()
        seconds = ticks * _seconds_of(unit)
        if whole:
            seconds = seconds // (size * _seconds_of(unit)) * (size * _seconds_of(unit))
        else:
            seconds = seconds + 0.5 * size * _seconds_of(unit)
        if cycle == "year":
            return _share_of_year(seconds)
        monday = 3 * _DAY if cycle == "week" else 0  # 1970-01-01 was a Thursday
        return np.asarray((seconds + monday) / _SECONDS[cycle] % 1.0)

    def _ticks(self) -> tuple[Array, int, str]:
        """Dates as whole numbers of a unit, the length of a step, and the unit."""
        size, unit = span(self.every)
        if unit != "M":
            return self.labels.astype(f"datetime64[{unit}]").astype(np.int64), size, unit
        rule = by_months(self.labels)
        months = self.labels.astype("datetime64[M]").astype(np.int64)
        return (months if rule is None else rule.months), size, unit


class Positions(NamedTuple):
    """The positions of a cycle: evenly spaced, the first at its start.

    Attributes
    ----------
    names : tuple of str
        For sentences: Saturday, 1 January, 06:00.
    labels : tuple of str
        The same, short: Sat, 1 Jan, 06:00.
    ticks : tuple of (float, str)
        Places to label on an axis, counted in positions from zero.
    at : str
        The preposition before a name.

    Examples
    --------
    >>> week = positions_of("week", 7)
    >>> week.labels, week.when(5)
    (('Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'), 'on Saturday')
    >>> positions_of("year", 366).when(59)
    'on 29 February'
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]
    at: str

    def when(self, position: int) -> str:
        """On Saturday, in January, at 06:00."""
        return f"{self.at} {self.names[position]}"


def positions_of(cycle: str | None, n: int) -> Positions:
    """The n positions of a cycle of the calendar; None is a cycle that it does not know."""
    if cycle == "week":
        return _of_week(n)
    if cycle == "day":
        times = tuple(_time_of_day(i / n) for i in range(n))
        every = 1 if n <= _FEW_TICKS else _HOURS // 8
        ticks = [(n * h / _HOURS, f"{h:02d}:00") for h in range(0, _HOURS, every)]
        short = tuple((float(i), time) for i, time in enumerate(times))
        return Positions(times, times, short if every == 1 else tuple(ticks), "at")
    if cycle == "year":
        return _of_months(n) if 12 % n == 0 else _of_days_of_year(n)
    numbers = tuple(str(i + 1) for i in range(n))
    every = next(m for m in (1, 2, 5, 10, 20, 50, n) if n <= _FEW_TICKS * m or m == n)
    marks = [i for i in range(n) if every == 1 or (i + 1) % every == 0]
    ticks = [(float(i), numbers[i]) for i in marks]
    return Positions(tuple(f"position {i}" for i in numbers), numbers, tuple(ticks), "at")


def _of_week(n: int) -> Positions:
    names, labels = _DAYS, tuple(day[:_SHORT] for day in _DAYS)
    if n != 7:
        times = [(_DAYS[7 * i // n], _time_of_day(7 * i % n / n)) for i in range(n)]
        names = tuple(f"{day}, {time}" for day, time in times)
        labels = tuple(f"{day[:_SHORT]} {time}" for day, time in times)
    ticks = tuple((n * d / 7, day[:_SHORT]) for d, day in enumerate(_DAYS))
    return Positions(names, labels, ticks, "on")


def _of_months(n: int) -> Positions:
    """Months, or periods of several, which are named after the first."""
    names = _MONTH_NAMES[:: 12 // n]
    labels = tuple(name[:_SHORT] for name in names)
    if n == 4:
        names = labels = tuple(f"Q{quarter}" for quarter in range(1, 5))
    return Positions(names, labels, tuple((float(i), label) for i, label in enumerate(labels)), "in")


def _of_days_of_year(n: int) -> Positions:
    """Days, or other parts of a year, which are named after the day on which they begin."""
    days = _LEAP_YEAR[len(_LEAP_YEAR) * np.arange(n) // n]
    months = days.astype("datetime64[M]").astype(int) % 12
    numbers = (days - days.astype("datetime64[M]")).astype(int) + 1
    pairs = list(zip(numbers.tolist(), (_MONTH_NAMES[m] for m in months), strict=True))
    first = np.flatnonzero(_LEAP_YEAR == _LEAP_YEAR.astype("datetime64[M]"))
    places = n * first / len(_LEAP_YEAR)
    ticks = zip(places.tolist(), (name[:_SHORT] for name in _MONTH_NAMES), strict=True)
    return Positions(
        tuple(f"{day} {month}" for day, month in pairs),
        tuple(f"{day} {month[:_SHORT]}" for day, month in pairs),
        tuple(ticks),
        "on" if n == len(_LEAP_YEAR) else "around",
    )


def _time_of_day(share: float) -> str:
    minutes = round(share * _HOURS * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _seconds_of(unit: str) -> float:
    return {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]


def _share_of_year(seconds: Array) -> Array:
    """The share of the calendar year that has passed."""
    whole = np.floor(seconds).astype(np.int64).astype("datetime64[s]")
    start = whole.astype("datetime64[Y]")
    first, last = (year.astype("datetime64[s]").astype(np.int64) for year in (start, start + 1))
    return np.asarray((seconds - first) / (last - first))
