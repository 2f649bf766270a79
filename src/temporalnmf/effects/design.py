"""The terms of a model for known patterns in time, and their columns at the steps of a series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from .._typing import Array
from ..messages.errors import ArgumentError
from ..timeline.clock import Clock
from .season import Season

# A season, or several, as the user names them.
Seasons = str | int | Season | Sequence[str | int | Season] | None


@dataclass(frozen=True, eq=False)
class Design:
    """Terms, and their columns x (N, P) at the steps of a series."""

    terms: tuple[Season, ...]
    columns: Array
    term_of: Array  # (P,), the number of the term of each column

    @classmethod
    def of(cls, terms: Sequence[Season], clock: Clock) -> Design | None:
        """The design of resolved terms; None if there are none."""
        if not terms:
            return None
        parts = [term.columns(clock) for term in terms]
        term_of = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        return cls(tuple(terms), np.column_stack(parts), term_of)

    @property
    def sizes(self) -> Array:
        """The number of columns of each term."""
        return np.bincount(self.term_of, minlength=len(self.terms))

    @property
    def learned(self) -> Array:
        """Whether the strengths of the terms are learned."""
        return np.array([term.strength == "learn" for term in self.terms])

    @property
    def labels(self) -> list[str]:
        """Names of the columns."""
        numbers = [np.arange(size) + 1 for size in self.sizes]
        pairs = zip(self.terms, numbers, strict=True)
        return [f"{term.name} {n}" for term, of_term in pairs for n in of_term]

    def at(self, clock: Clock) -> Design:
        """The same terms at other steps."""
        return replace(self, columns=np.column_stack([t.columns(clock) for t in self.terms]))

    def take(self, steps: Array) -> Design:
        """The design of some steps."""
        return replace(self, columns=self.columns[steps])

    def anchored(self) -> Design:
        """With one step in front, of factors 1."""
        return replace(self, columns=np.vstack([np.zeros_like(self.columns[:1]), self.columns]))


def resolved(given: object, clock: Clock) -> tuple[Season, ...]:
    """The seasons that the user asked for: None, one, or several."""
    if given is None:
        return ()
    several = given if isinstance(given, list | tuple) else [given]
    seasons = [season if isinstance(season, Season) else _season(season) for season in several]
    found = tuple(season.resolve(clock) for season in seasons)
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
        if 2.0 <= length <= len(clock.labels) / 2.0:
            long_enough.append(season.resolve(clock))
    return tuple(long_enough)
