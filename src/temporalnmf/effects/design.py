"""The terms of a model for known patterns in time, and their columns at the steps of a series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from .._typing import Array
from ..messages.errors import ArgumentError
from ..timeline.clock import Clock
from .covariates import Covariates
from .season import Season
from .term import Term
from .trend import Trend

# A season, or several, and a trend, as the user names them.
SeasonsLike = str | int | Season | Sequence[str | int | Season] | None
TrendLike = str | float | Trend | None


@dataclass(frozen=True, eq=False)
class Design:
    """Resolved terms, and their columns x (N, P) at the steps of a series.

    `covariates` are the values behind the columns of influences, if there are any.
    """

    terms: tuple[Term, ...]
    columns: Array
    term_of: Array  # (P,), the number of the term of each column
    covariates: Covariates | None = None

    @classmethod
    def of(
        cls, terms: Sequence[Term], clock: Clock, covariates: Covariates | None = None
    ) -> Design | None:
        """The design of resolved terms; None if there are none."""
        if not terms:
            return None
        parts = [term.columns(clock, covariates) for term in terms]
        term_of = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        return cls(tuple(terms), np.column_stack(parts), term_of, covariates)

    @property
    def sizes(self) -> Array:
        """The number of columns of each term."""
        return np.bincount(self.term_of, minlength=len(self.terms))

    @property
    def learned(self) -> Array:
        """Whether the strengths of the terms are learned."""
        return np.array([term.strength == "learn" for term in self.terms])

    @property
    def usual(self) -> Array:
        """The strengths that learned ones are shrunk towards."""
        return np.array([term.usual for term in self.terms])

    @property
    def labels(self) -> list[str]:
        """Names of the columns."""
        numbers = [np.arange(size) + 1 for size in self.sizes]
        pairs = zip(self.terms, numbers, strict=True)
        return [f"{term.name} {n}" for term, of_term in pairs for n in of_term]

    def at(self, clock: Clock, covariates: Covariates | None = None) -> Design:
        """The same terms at other steps."""
        parts = [term.columns(clock, covariates) for term in self.terms]
        return replace(self, columns=np.column_stack(parts), covariates=covariates)

    def ending(self, clock: Clock, n: int) -> Design:
        """With terms of a series that ends after the first n steps of its clock."""
        terms = tuple(term.ending(clock.take(n)) for term in self.terms)
        return replace(self, terms=terms).at(clock, self.covariates)

    def take(self, steps: Array) -> Design:
        """The design of some steps."""
        covariates = None if self.covariates is None else self.covariates.take(steps)
        return replace(self, columns=self.columns[steps], covariates=covariates)

    def anchored(self) -> Design:
        """With one step in front, of factors 1; it has no covariates."""
        columns = np.vstack([np.zeros_like(self.columns[:1]), self.columns])
        return replace(self, columns=columns, covariates=None)


def seasons_of(given: object) -> tuple[Season, ...]:
    """The seasons that the user asked for: None, one, or several."""
    if given is None:
        return ()
    several = given if isinstance(given, list | tuple) else [given]
    return tuple(one if isinstance(one, Season) else _season(one) for one in several)


def resolved(given: object, clock: Clock) -> tuple[Season, ...]:
    """The seasons that the user asked for, at the steps of a fit."""
    found = tuple(season.resolve(clock) for season in seasons_of(given))
    for one, other in combinations(found, 2):
        if abs(one.length(clock) - other.length(clock)) < 0.01 * one.length(clock):
            problem = f": {one.name} and {other.name} are the same season."
            raise ArgumentError("season", given, problem, "Leave one of them out.")
    return found


def _season(given: object) -> Season:
    if isinstance(given, str | int | np.integer) and not isinstance(given, bool):
        return Season(given if isinstance(given, str) else int(given))
    remedy = "Use 'auto', None, 'day', 'week', 'year', a number of steps, a Season, or a list."
    raise ArgumentError("season", given, "is not a season.", remedy)


def candidates(clock: Clock) -> tuple[Season, ...]:
    """Seasons of the calendar that the series is long enough for, shortest first."""
    if not clock.dated:
        return ()
    found = (Season("day"), Season("week"), Season("year"))
    long_enough = []
    for season in found:
        length = season.length(clock)
        if length >= 2.0 and np.floor(2.0 * length) <= len(clock.labels):
            long_enough.append(season.resolve(clock))
    return tuple(long_enough)


def trends_of(given: object) -> tuple[Trend, ...]:
    """The trend that the user asked for: None, a `Trend`, or its damping."""
    if given is None:
        return ()
    if isinstance(given, Trend):
        return (given,)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return (Trend(given),)
    remedy = "Use None, 'auto', a Trend, or its damping as a number from 0.5 to 1."
    raise ArgumentError("trend", given, "is not a trend.", remedy)
