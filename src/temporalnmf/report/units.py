"""Names of time steps: weeks, years, steps of 3 days."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .texts import counted

# Consecutive whole numbers in this range are taken for years.
_FIRST_YEAR, _LAST_YEAR = 1000, 2200
_BEFORE_TIME = {"year": "in", "quarter": "in", "month": "in", "week": "in the week of", "day": "on"}


@dataclass(frozen=True)
class Unit:
    """What a step is called.

    Attributes
    ----------
    noun : str
        Of one step.
    length : str
        Length of a step, if the noun does not say it.

    Examples
    --------
    >>> Unit("week").counted(105), Unit("step", "3 days").spanning(40), Unit("year").at("1848")
    ('105 weeks', '40 steps of 3 days', 'in 1848')
    """

    noun: str
    length: str = ""

    def counted(self, n: int) -> str:
        """1 week, 2 weeks."""
        return counted(n, self.noun)

    def spanning(self, n: int) -> str:
        """1 week, 2 weeks, 2 steps of 3 days."""
        return f"{self.counted(n)} of {self.length}" if self.length else self.counted(n)

    def at(self, time: str) -> str:
        """In 1848, on 1848-02-24, at 17."""
        return f"{_BEFORE_TIME.get(self.noun, 'at')} {time}"

    @property
    def plural(self) -> str:
        return f"{self.noun}s"


def unit_of(every: str, times: ArrayLike) -> Unit:
    """Unit of a timeline, from its spacing (`Timeline.every`) and its labels.

    Examples
    --------
    >>> unit_of("week", []).noun, unit_of("3 days", []).spanning(2)
    ('week', '2 steps of 3 days')
    >>> unit_of("step of 1", [1998, 1999]).noun, unit_of("step of 1", [8, 9]).noun
    ('year', 'step')
    """
    labels = np.asarray(times)
    whole = every == "step of 1" and labels.dtype.kind in "iu" and labels.size > 0
    if whole and labels.min() >= _FIRST_YEAR and labels.max() <= _LAST_YEAR:
        return Unit("year")
    count, _, word = every.rpartition(" ")
    if not count and word.isalpha():
        return Unit(word)
    return Unit("step", every) if count.isdigit() else Unit("step")
