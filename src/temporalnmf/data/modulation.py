"""Known factors between the activations and the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from .._typing import Array


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
