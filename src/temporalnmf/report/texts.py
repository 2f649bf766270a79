"""Names, numbers and time steps as a report writes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array
from ..messages import formatting
from ..messages.formatting import counted, number_text
from ..timeline.grid import AS_GIVEN, time_texts

_LONGEST_NAME = 80
# Significant digits of numbers in charts.
_DRAWN = 7
# Between a number and its per cent sign.
NO_BREAK = "\N{NO-BREAK SPACE}"
# Whole numbers in this range are taken for years.
_FIRST_YEAR, _LAST_YEAR = 1000, 2200

Content = dict[str, object]  # part of a report, of values that JSON can hold
Number = float | int | None


def clean(text: str, longest: int = _LONGEST_NAME) -> str:
    """Text from an untrusted file: valid UTF-8, without control characters, cut if too long."""
    text = text.encode("utf-8", "replace").decode()
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def number(value: float | None, digits: int = _DRAWN) -> Number:
    """A number for JSON, rounded to significant digits or to units; None if not finite."""
    if value is None or not np.isfinite(value):
        return None
    short = float(value)
    short = float(f"{short:.{digits}g}") if abs(short) < 10.0**digits else float(round(short))
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def numbers(values: ArrayLike, digits: int = _DRAWN) -> list[Number]:
    """A list of `number`."""
    return [number(value, digits) for value in np.asarray(values, dtype=float).tolist()]


def thinned(values: Array, most: int) -> Array:
    """At most `most` of the values, evenly spaced, including the last one."""
    return values[:: -max(1, -(-len(values) // most))][::-1]


def percent(share: float) -> str:
    """A share in per cent, with no line break inside."""
    return formatting.percent(share).replace(" ", NO_BREAK)


def level(coverage: float) -> str:
    """The probability of an interval, with no line break inside."""
    return formatting.level_text(coverage).replace(" ", NO_BREAK)


def percents(shares: list[float]) -> list[str]:
    """Shares in per cent for a column: all with one decimal."""
    return [
        f"<0.1{NO_BREAK}%" if 0.0 < 100.0 * share < 0.05 else f"{100.0 * share:.1f}{NO_BREAK}%"
        for share in shares
    ]


def change(before: float, after: float) -> str:
    """A change in per cent, or as a factor if it is large; empty if it started at zero."""
    if not before > 0.0:
        return ""
    ratio = after / before
    if ratio >= 10.0:
        return f"{number_text(ratio, 2)} times as much"
    percentage = 100.0 * (ratio - 1.0)
    digits = 1 if abs(percentage) < 10.0 else 0
    return f"{percentage:+.{digits}f}{NO_BREAK}%".replace("-", "−")


@dataclass(frozen=True)
class Unit:
    """The noun for a step, its length if the noun does not say it, and a template for a time."""

    noun: str
    length: str = ""
    when: str = "at {}"

    def counted(self, n: int) -> str:
        """1 week, 2 weeks."""
        return counted(n, self.noun)

    def spanning(self, n: int) -> str:
        """1 week, 2 weeks, 2 steps of 3 days."""
        return f"{self.counted(n)} of {self.length}" if self.length else self.counted(n)

    def at(self, time: str) -> str:
        """In 1848, on 1848-02-24, at step 17."""
        return self.when.format(time)

    @property
    def plural(self) -> str:
        return f"{self.noun}s"


def unit_of(every: str, times: ArrayLike) -> Unit:
    """Unit of a timeline, from its spacing (`Timeline.every`) and its labels."""
    labels = np.asarray(times)
    years = labels.dtype.kind in "iu" and labels.size > 0
    years = years and labels.min() >= _FIRST_YEAR and labels.max() <= _LAST_YEAR
    when = "in {}" if years else _when(every, labels)
    if years and every == "step of 1":
        return Unit("year", when=when)
    count, _, word = every.rpartition(" ")
    if not count and word.isalpha():
        return Unit(word, when=when)
    return Unit("step", every if count.isdigit() else "", when)


def _when(every: str, labels: Array) -> str:
    """A template for a time in a sentence."""
    if labels.dtype.kind != "M":
        of_text = "at “{}”" if every == AS_GIVEN else "in {}"  # 2001-W07
        return {"U": of_text, "f": "at time {}"}.get(labels.dtype.kind, "at step {}")
    if np.datetime_data(labels.dtype)[0] in ("Y", "M"):
        return "in {}"
    if " " in time_texts(labels)[0]:
        return "at {}"
    return "in the week of {}" if every == "week" else "on {}"
