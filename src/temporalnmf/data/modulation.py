"""Known factors between the activations and the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from .._typing import Array
from ..timeline.grid import DAYS, Timeline


class Modulation(ABC):
    """Known factors c_kn: an entry has the mean Σ_k w_fk c_kn h_kn.

    Factors belong to the steps of a series, absent and future ones included. Solvers see them as
    exposures of the data, posterior draws as exposures of activations (`Chain.draw`).
    """

    @property
    @abstractmethod
    def factors(self) -> Array:
        """(1, N) where the components share them, else (K, N)."""

    @abstractmethod
    def take(self, steps: Array) -> Self:
        """Of some steps only."""

    @abstractmethod
    def on_grid(self, rows: Array, n_steps: int) -> Self:
        """Of all steps of a grid on which these ones lie at `rows`."""

    @abstractmethod
    def followed_by(self, other: Self) -> Self:
        """Of these steps, then of others."""

    @abstractmethod
    def ahead(self, steps: int) -> Self:
        """Of the steps after the last, if nothing is known about them."""


@dataclass(frozen=True, eq=False)
class Exposure(Modulation):
    """The size behind each step, such as documents or days; it is the same for all components.

    Examples
    --------
    >>> Exposure(np.array([1.0, 4.0])).on_grid(np.array([0, 2]), n_steps=3).values
    array([1., 2., 4.])
    >>> Exposure(np.array([1.0, 4.0])).ahead(2).values
    array([4., 4.])
    """

    values: Array

    # Whether the sizes of later steps are known without data.
    known_ahead: ClassVar[bool] = False

    @property
    def factors(self) -> Array:
        return self.values[None]

    def take(self, steps: Array) -> Exposure:
        return Exposure(self.values[steps])

    def on_grid(self, rows: Array, n_steps: int) -> Exposure:
        # An absent step has the size of its neighbours, interpolated on the log scale.
        order = np.argsort(rows)
        values = np.exp(np.interp(np.arange(n_steps), rows[order], np.log(self.values[order])))
        values[rows] = self.values
        return Exposure(values)

    def followed_by(self, other: Exposure) -> Exposure:
        return Exposure(np.concatenate([self.values, other.values]))

    def ahead(self, steps: int) -> Exposure:
        return Exposure(np.full(steps, self.values[-1]))

    @property
    def trivial(self) -> bool:
        """Whether all sizes are 1."""
        return bool(np.all(self.values == 1.0))


@dataclass(frozen=True, eq=False)
class Days(Exposure):
    """The number of days in each step, by the calendar: months, for instance, differ in length.

    Examples
    --------
    >>> from temporalnmf.timeline import timeline_of
    >>> months = Days.of(timeline_of(["2001-01", "2001-02", "2001-03"]))
    >>> months.values, months.ahead(2).values
    (array([31., 28., 31.]), array([30., 31.]))
    """

    timeline: Timeline

    known_ahead: ClassVar[bool] = True

    @classmethod
    def of(cls, timeline: Timeline, like: Timeline | None = None) -> Days:
        """Of all steps of a timeline; an error if they are not dates.

        A single step, which has no spacing, is as long as those of another timeline.
        """
        if like is not None and len(timeline.labels) == 1:
            timeline = replace(timeline, every=like.every)
        return cls(timeline.clock.days, timeline)

    def ahead(self, steps: int) -> Days:
        labels, rows = self.timeline.labels_after(steps), np.arange(steps)
        later = replace(self.timeline, labels=labels, rows=rows)
        return Days(self.timeline.clock_after(steps).days, later)


def by_days(exposure: object) -> bool:
    """Whether the user asks for the days in each step."""
    return isinstance(exposure, str) and exposure == DAYS


def exposure_of(values: Array, timeline: Timeline | None, days: bool) -> Exposure:
    """Exposures of all steps of a timeline, which are its days or not."""
    return Exposure(values) if timeline is None or not days else Days(values, timeline)
