"""Where steps lie in recurring cycles, such as weeks and years."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import Array
from ..messages.errors import Arg, ArgumentError, Text
from .spacing import AS_GIVEN, by_months, span

_DAY = 86400
# Lengths of cycles in months, or else in seconds.
_MONTHS, _SECONDS = {"year": 12}, {"week": 7 * _DAY, "day": _DAY}
_YEAR = 365.2425 * _DAY
CYCLES = ("day", "week", "year")

# Numbers of steps have to be whole.
_MOST_STEPS = 2.0**62


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

    def take(self, n: int) -> Clock:
        """The first n steps."""
        return self._replace(labels=self.labels[:n])

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
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            found = np.rint(labels / step)
        if not np.all(np.abs(found) < _MOST_STEPS):  # of a file from a stranger
            raise ValueError(f"its times are not evenly spaced, by {self.every!r:.60}")
        return found.astype(np.int64)

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

    def days_in(self, days: Array) -> Array:
        """How many of some days (datetime64[D]) are in each step; in parts of a day, 0 or 1."""
        starts = self.starts
        first, last = starts[:-1].astype("datetime64[D]"), starts[1:]
        if np.all(last - starts[:-1] < np.timedelta64(1, "D")):
            return np.isin(first, days).astype(float)
        bounds = np.searchsorted(days.astype(starts.dtype), starts, side="left")
        return np.diff(bounds).astype(float)

    @property
    def starts(self) -> Array:
        """Starts of all steps, and the end of the last, datetime64 in seconds or finer."""
        ticks, size, unit = self._ticks()
        ends = np.append(ticks, ticks[-1] + size)
        if unit == "M":  # labels may be any day of their month
            return ends.astype("datetime64[M]").astype("datetime64[s]")
        return ends.astype(f"datetime64[{unit}]")

    @property
    def days(self) -> Array:
        """The length of each step in days, (N,); an error if steps are not dates."""
        if not self.dated:
            raise ArgumentError(
                "exposure",
                "days",
                "needs steps with dates, evenly spaced.",
                Text(
                    "Give X with dates as its index, put them into periods with {freq}, or give "
                    "the numbers of days.",
                    freq=Arg("freq", "…"),
                ),
            )
        return np.asarray(np.diff(self.starts) / np.timedelta64(1, "D"))

    def years_around(self) -> tuple[int, int]:
        """The first year of the steps, and the one after the last."""
        years = self.starts.astype("datetime64[Y]").astype(np.int64) + 1970
        return int(years[0]), int(years[-1]) + 1

    def _ticks(self) -> tuple[Array, int, str]:
        """Dates as whole numbers of a unit, the length of a step, and the unit."""
        size, unit = span(self.every)
        if unit != "M":
            return self.labels.astype(f"datetime64[{unit}]").astype(np.int64), size, unit
        rule = by_months(self.labels)
        months = self.labels.astype("datetime64[M]").astype(np.int64)
        return (months if rule is None else rule.months), size, unit


def _seconds_of(unit: str) -> float:
    return {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]


def _share_of_year(seconds: Array) -> Array:
    """The share of the calendar year that has passed."""
    whole = np.floor(seconds).astype(np.int64).astype("datetime64[s]")
    start = whole.astype("datetime64[Y]")
    first, last = (year.astype("datetime64[s]").astype(np.int64) for year in (start, start + 1))
    return np.asarray((seconds - first) / (last - first))
