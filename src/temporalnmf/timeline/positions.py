"""The positions of recurring cycles, in words and on an axis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_SHORT = 3  # letters of a short name of a day or month
# Days of a leap year, whose days are the positions of a year of days.
_LEAP_YEAR = np.arange("2000-01-01", "2001-01-01", dtype="datetime64[D]")
_MINUTES = 24 * 60
# Most positions that are all labelled on an axis; hours between labels of longer days.
_FEW, _HOURS = 10, 3


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
        hours = range(0, 24, _HOURS)
        ticks = _ticks(times) if n <= _FEW else tuple((n * h / 24, f"{h:02d}:00") for h in hours)
        return Positions(times, times, ticks, "at")
    if cycle == "year":
        return _of_months(n) if 12 % n == 0 else _of_days_of_year(n)
    numbers = tuple(str(i + 1) for i in range(n))
    every = next(m for m in (1, 2, 5, 10, 20, 50, 100, n) if n <= _FEW * m or m == n)
    ticks = tuple((float(i), numbers[i]) for i in range(every - 1, n, every))
    return Positions(tuple(f"position {i}" for i in numbers), numbers, ticks, "at")


def _ticks(labels: tuple[str, ...]) -> tuple[tuple[float, str], ...]:
    """All labels at their positions."""
    return tuple((float(i), label) for i, label in enumerate(labels))


def _of_week(n: int) -> Positions:
    names: tuple[str, ...] = _DAYS
    labels = tuple(day[:_SHORT] for day in _DAYS)
    if n != 7:
        times = [(_DAYS[7 * i // n], _time_of_day(7 * i % n / n)) for i in range(n)]
        names = tuple(f"{day}, {time}" for day, time in times)
        labels = tuple(f"{day[:_SHORT]} {time}" for day, time in times)
    ticks = tuple((n * d / 7, day[:_SHORT]) for d, day in enumerate(_DAYS))
    return Positions(names, labels, ticks, "on")


def _of_months(n: int) -> Positions:
    """Months, or periods of several, which are named after the first."""
    names: tuple[str, ...] = _MONTHS[:: 12 // n]
    labels = tuple(name[:_SHORT] for name in names)
    if n == 4:
        names = labels = tuple(f"Q{quarter}" for quarter in range(1, 5))
    return Positions(names, labels, _ticks(labels), "in")


def _of_days_of_year(n: int) -> Positions:
    """Days, or other parts of a year, which are named after the day on which they begin."""
    days = _LEAP_YEAR[len(_LEAP_YEAR) * np.arange(n) // n]
    months = days.astype("datetime64[M]").astype(int) % 12
    numbers = (days - days.astype("datetime64[M]")).astype(int) + 1
    pairs = list(zip(numbers.tolist(), (_MONTHS[m] for m in months), strict=True))
    first = np.searchsorted(_LEAP_YEAR, np.unique(_LEAP_YEAR.astype("datetime64[M]")))
    places = n * first / len(_LEAP_YEAR)
    ticks = zip(places.tolist(), (name[:_SHORT] for name in _MONTHS), strict=True)
    return Positions(
        tuple(f"{day} {month}" for day, month in pairs),
        tuple(f"{day} {month[:_SHORT]}" for day, month in pairs),
        tuple(ticks),
        "on" if n == len(_LEAP_YEAR) else "around",
    )


def _time_of_day(share: float) -> str:
    minutes = round(share * _MINUTES)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
