"""Steps of time as people call them: weeks, years, steps of 3 days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .texts import counted

# Whole numbers between these that follow each other are years.
_FIRST_YEAR, _LAST_YEAR = 1000, 2200


@dataclass(frozen=True)
class Unit:
    """What a step is called.

    Attributes
    ----------
    noun : str
        Of one step.
    length : str
        How long a step is, where the noun does not tell.

    Examples
    --------
    >>> Unit("week").counted(105), Unit("step", "3 days").spanning(40)
    ('105 weeks', '40 steps of 3 days')
    """

    noun: str
    length: str = ""

    def counted(self, n: int) -> str:
        """1 week, 2 weeks."""
        return counted(n, self.noun)

    def spanning(self, n: int) -> str:
        """The same, with the length of a step where the noun does not tell it."""
        return f"{self.counted(n)} of {self.length}" if self.length else self.counted(n)

    @property
    def plural(self) -> str:
        return self.counted(2).split(" ", 1)[1]


def unit_of(every: str, times: Any) -> Unit:
    """The unit of a timeline from its spacing (`Timeline.every`) and its labels.

    Examples
    --------
    >>> unit_of("week", []).noun, unit_of("3 days", []).spanning(2)
    ('week', '2 steps of 3 days')
    >>> unit_of("step of 1", [1998, 1999]).noun, unit_of("step of 1", [8, 9]).noun
    ('year', 'step')
    """
    if every == "step of 1" and _are_years(np.asarray(times)):
        return Unit("year")
    count, _, word = every.rpartition(" ")
    if not count and word.isalpha():
        return Unit(word)
    return Unit("step", every) if count.isdigit() else Unit("step")


def _are_years(times: Any) -> bool:
    if times.dtype.kind not in "iu" or not len(times):
        return False
    return bool(times.min() >= _FIRST_YEAR and times.max() <= _LAST_YEAR)
