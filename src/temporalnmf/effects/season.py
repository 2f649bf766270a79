"""Seasons: smooth functions of the position in a recurring cycle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .._typing import Array
from ..messages.errors import Arg, ArgumentError, Text
from ..timeline.clock import CYCLES, Clock
from ..timeline.positions import Positions, positions_of
from .covariates import Covariates
from .term import Term, whole

# Harmonics of long cycles by default, and the most steps of a cycle that gets all of them.
_HARMONICS, _SHORT = 6, 24
# Two cycles are needed to tell a season from a trend.
CYCLES_NEEDED = 2.0


@dataclass(frozen=True)
class Season(Term):
    """A pattern that repeats: each component has its own factor for every position in a cycle.

    The logarithm of the factor is a sum of `terms` harmonics, each a cosine and a sine, with mean
    zero over a cycle, so that the level belongs to the chain.

    Parameters
    ----------
    period : str or int
        "day", "week" or "year" by the calendar, or a number of steps.
    terms : int, default=None
        Harmonics; up to half the number of steps in a cycle, which gives every step its own factor.
        By default all of them for cycles of up to 24 steps, six for longer ones.
    strength : float or "learn", default="learn"
        Standard deviation of log factors in the prior; 0.1 is about 10 %. Learned for all
        components together.
    steps : float, default=None
        Steps per cycle; known from the data.

    Examples
    --------
    >>> Season("week")
    Season(period='week', terms=None, strength='learn')
    """

    period: str | int
    terms: int | None = None
    strength: float | str = "learn"
    steps: float | None = field(default=None, repr=False)  # per cycle, once it is known

    def __post_init__(self) -> None:
        named = isinstance(self.period, str)
        if named and self.period not in CYCLES:
            names = ", ".join(map(repr, CYCLES))
            remedy = f"Use one of {names}, or a number of steps."
            raise ArgumentError("season", self.period, "is not known.", remedy)
        if not named and not whole(self.period, 2):
            problem = ": expected a period of at least 2 steps."
            raise ArgumentError("season", self.period, problem)
        if self.terms is not None and not whole(self.terms, 1):
            raise ArgumentError("terms", self.terms, ": expected a number of at least 1.")
        self._check_strength()

    @property
    def name(self) -> str:
        """The period in words."""
        return self.period if isinstance(self.period, str) else f"{self.period} steps"

    @property
    def n_positions(self) -> int:
        """The number of positions of a cycle: its steps, rounded up."""
        assert self.steps is not None, "resolved"
        return int(np.ceil(self.steps))

    @property
    def positions(self) -> Positions:
        """The positions of a cycle in words, and on an axis."""
        named = self.period if isinstance(self.period, str) else None
        return positions_of(named, self.n_positions)

    def resolve(self, clock: Clock) -> Season:
        """With the number of harmonics, for steps that are long enough for the season."""
        length = self.length(clock)
        most = int(np.floor(length / 2.0 + 1e-9))
        if most < 1:
            problem = f"is no longer than a step (one {clock.every}): it cannot be seen."
            raise ArgumentError("season", self.period, problem, "Leave it out.")
        if len(clock.labels) < np.floor(CYCLES_NEEDED * length):
            problem = (
                f": a cycle has {length:.4g} steps, and the series has {len(clock.labels)}; at "
                f"least two cycles are needed."
            )
            raise ArgumentError("season", self.period, problem, "Leave it out.")
        terms = self.terms if self.terms is not None else most if length <= _SHORT else _HARMONICS
        if terms > most:
            problem = f": a cycle of {length:.4g} steps has at most {most} harmonics."
            raise ArgumentError("terms", terms, problem)
        return replace(self, terms=terms, steps=length)

    def check_resolved(self, clock: Clock) -> None:
        length = self.length(clock)
        if self.steps != length or self.terms is None or not 1 <= self.terms <= length / 2.0:
            raise ValueError(f"its season {self.name!r:.60} is not one of its times")

    def length(self, clock: Clock) -> float:
        """Steps per cycle."""
        if not isinstance(self.period, str):
            return float(self.period)
        self._check_dates(clock)
        return clock.length(self.period)

    def _check_dates(self, clock: Clock) -> None:
        if not clock.dated:
            raise ArgumentError(
                "season",
                self.period,
                "needs steps with dates, evenly spaced.",
                Text(
                    "Give X with dates as its index, put them into periods with {freq}, or give "
                    "the period as a number of steps.",
                    freq=Arg("freq", "…"),
                ),
            )

    def phases(self, clock: Clock) -> Array:
        """Shares of the cycle that have passed at the steps."""
        if isinstance(self.period, str):
            self._check_dates(clock)
            return clock.phases(self.period)
        return np.asarray(clock.positions % self.period / self.period)

    def columns(self, clock: Clock, covariates: Covariates | None = None) -> Array:
        """Harmonics at the steps, (N, P)."""
        return self.harmonics(self.phases(clock))

    def cycle(self) -> Array:
        """Harmonics at the steps of one cycle, (positions, P)."""
        n = self.n_positions
        return self.harmonics(np.arange(n) / n)

    def harmonics(self, phases: Array) -> Array:
        """Harmonics at shares of the cycle, (N, P), each with a mean square of one."""
        assert self.terms is not None, "resolved"
        angles = 2.0 * np.pi * np.multiply.outer(phases, np.arange(1, self.terms + 1))
        pairs = np.sqrt(2.0) * np.stack([np.cos(angles), np.sin(angles)], axis=2)
        found = pairs.reshape(len(angles), -1)
        if 2 * self.terms == self.steps:  # cos π n has no sine
            found = np.column_stack([found[:, :-2], np.cos(angles[:, -1])])
        return found
