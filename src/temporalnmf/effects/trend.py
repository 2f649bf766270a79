"""Trends: growth at the end of a series that continues for a while."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import ClassVar

import numpy as np

from .._typing import Array
from ..messages.errors import ArgumentError
from ..timeline.clock import Clock
from .covariates import Covariates
from .term import Term

_LAST = 2**62  # number of a step


@dataclass(frozen=True)
class Trend(Term):
    """Growth or decline of each component at the end of the series, which fades out.

    The log factor of a component grows by b φ^s between s + 1 and s steps before the end, and by
    b φ^s in the s-th step after it: φ is both the memory, since growth of the distant past does not
    count, and the damping of forecasts, whose total growth is b φ/(1 − φ). In the distant past, or
    in the middle of the series if φ = 1, the factor is 1, so that levels stay what they were.

    Parameters
    ----------
    damping : float, default=0.8
        φ, at least 0.5 and at most 1, growth that lasts.
    strength : float or "learn", default=0.02
        Standard deviation of b in the prior. With "learn" it is learned for all components
        together; one component that comes from nothing then lets all of them grow.
    start, end : int, default=None
        Numbers of the first and the last step; known from the data.

    Examples
    --------
    >>> Trend(damping=0.9)
    Trend(damping=0.9, strength=0.02)
    """

    damping: float = 0.8
    strength: float | str = 0.02
    start: int | None = field(default=None, repr=False)
    end: int | None = field(default=None, repr=False)

    usual: ClassVar[float] = 0.02

    def __post_init__(self) -> None:
        number = isinstance(self.damping, Real) and not isinstance(self.damping, bool)
        if not (number and 0.5 <= self.damping <= 1.0):
            raise ArgumentError("damping", self.damping, ": expected a number from 0.5 to 1.")
        self._check_strength()

    @property
    def name(self) -> str:
        return "trend"

    def resolve(self, clock: Clock) -> Trend:
        first, last = clock.positions[[0, -1]].tolist()
        return replace(self, start=int(first), end=int(last))

    def check_resolved(self, clock: Clock) -> None:
        for number in (self.start, self.end):
            if type(number) is not int or abs(number) > _LAST:
                raise ValueError(f"its trend is from step {self.start!r:.60} to {self.end!r:.60}")

    def ending(self, clock: Clock) -> Trend:
        return self.resolve(clock)

    def columns(self, clock: Clock, covariates: Covariates | None = None) -> Array:
        assert self.start is not None, "resolved"
        assert self.end is not None
        whole = self.damping == 1.0
        anchor = 0.5 * (self.end - self.start) if whole else 1.0 / (1.0 - self.damping)
        return anchor + self.accumulated((clock.positions - self.end).astype(float))[:, None]

    def accumulated(self, away: Array) -> Array:
        """Growth since the end for b = 1, at steps `away` from it; before the end negative."""
        if self.damping == 1.0:
            return away
        sums = -np.expm1(np.abs(away) * np.log(self.damping)) / (1.0 - self.damping)
        ahead = np.where(away > 0.0, self.damping, 1.0)  # the first step ahead grows by φ b
        return np.asarray(np.sign(away) * ahead * sums)
