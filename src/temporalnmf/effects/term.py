"""A term of the effects: columns at the steps of a series, shrunk together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import TYPE_CHECKING, ClassVar, Self

from .._typing import Array
from ..messages.errors import ArgumentError
from ..timeline.clock import Clock

if TYPE_CHECKING:
    from .covariates import Covariates

# Least and largest strength; squares of strengths have to be numbers.
STRENGTHS = 1e-100, 1e100


class Term(ABC):
    """Columns x (N, P) whose coefficients have the same normal prior.

    Attributes
    ----------
    strength : float or "learn"
        Standard deviation of log factors in the prior.
    usual : float
        Strength that a learned one is shrunk towards.
    """

    strength: float | str
    usual: ClassVar[float] = 0.1

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in results."""

    @abstractmethod
    def resolve(self, clock: Clock) -> Self:
        """With what it needs to know of the steps of the fit."""

    @abstractmethod
    def columns(self, clock: Clock, covariates: Covariates | None) -> Array:
        """The columns at some steps, of which covariates are known."""

    def ending(self, clock: Clock) -> Self:
        """The same term for a series with another end."""
        return self

    @abstractmethod
    def check_resolved(self, clock: Clock) -> None:
        """Raise if this is not a term of a fit to steps of the clock; for files from strangers."""

    def readings(self) -> dict[str, Array]:
        """Sums of coefficients, as weights (P,), that a user wants to know, by name."""
        return {}

    def _check_strength(self) -> None:
        number = isinstance(self.strength, Real) and not isinstance(self.strength, bool)
        if self.strength != "learn" and not (
            number and STRENGTHS[0] <= float(self.strength) <= STRENGTHS[1]
        ):
            problem = ": expected a positive number from 1e-100 to 1e100, or 'learn'."
            raise ArgumentError("strength", self.strength, problem)


def whole(value: object, least: int) -> bool:
    """Whether a value is a whole number of at least `least`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
