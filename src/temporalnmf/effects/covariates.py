"""Known influences: values that the user gives for every step, those of the future included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .._typing import Array
from ..messages.errors import ArgumentError, Text
from ..timeline.clock import Clock
from .term import Term

# Singular values below this share of the largest count as zero.
_DEPENDENT = 1e-8
# Largest size of a value; squares of values have to be numbers.
LARGEST = 1e100
_OTHER_UNIT = "Give it in another unit."
# Most names in a message.
_MOST_NAMES = 8


@dataclass(frozen=True, eq=False)
class Covariates:
    """Names, and values (N, C) at some steps."""

    names: tuple[str, ...]
    values: Array

    def column(self, name: str) -> Array:
        """The values of one of them, (N,)."""
        return np.asarray(self.values[:, self.names.index(name)])

    def take(self, steps: Array) -> Covariates:
        """Those of some steps."""
        return Covariates(self.names, self.values[steps])

    def followed_by(self, other: Covariates) -> Covariates:
        """Those of these steps, then of others."""
        return Covariates(self.names, np.vstack([self.values, other.values]))


@dataclass(frozen=True)
class Influence(Term):
    """The influence of a covariate, log-linear: a factor exp(b (x − center)/scale).

    Parameters
    ----------
    covariate : str
    center, scale : float
        Mean and standard deviation in the fit.
    strength : float or "learn", default="learn"
    """

    covariate: str
    center: float
    scale: float
    strength: float | str = field(default="learn")

    def __post_init__(self) -> None:
        numbers = (self.center, self.scale)
        if type(self.covariate) is not str or not all(type(x) is float for x in numbers):
            raise ValueError(f"{self!r:.60} is not an influence")
        if not (np.isfinite(self.center) and 0.0 < self.scale < np.inf):
            raise ValueError(f"{self!r:.60} is not an influence")
        self._check_strength()

    @property
    def name(self) -> str:
        return self.covariate

    def resolve(self, clock: Clock) -> Influence:
        return self

    def check_resolved(self, clock: Clock) -> None:
        pass  # the constructor has checked all of it

    def columns(self, clock: Clock, covariates: Covariates | None) -> Array:
        assert covariates is not None, "checked"
        return (covariates.column(self.covariate)[:, None] - self.center) / self.scale

    def readings(self) -> dict[str, Array]:
        """The change of the log factor per unit of the covariate."""
        return {self.covariate: np.array([1.0 / self.scale])}


def influences(covariates: Covariates, observed: Array) -> tuple[Influence, ...]:
    """A term for each covariate; `observed` are the steps whose data they explain.

    Raises if one is constant, or a combination of others. Without observed steps there are none,
    and the fit says so.
    """
    if not observed.any():
        return ()
    seen = covariates.values[observed]
    center, scale = seen.mean(axis=0), seen.std(axis=0)
    largest = np.abs(seen).max(axis=0)
    for name, one, spread, most in zip(covariates.names, center, scale, largest, strict=True):
        if 0.0 < most < 1.0 / LARGEST:
            problem = f": {name!r} has no value larger than {most:.4g}."
            raise ArgumentError("covariates", ColumnNames(covariates.names), problem, _OTHER_UNIT)
        if not spread > 1e-12 * most:
            problem = f": {name!r} is {one:.4g} at all observed steps, so it explains nothing."
            raise ArgumentError(
                "covariates", ColumnNames(covariates.names), problem, "Leave it out."
            )
    _check_independent(covariates.names, (seen - center) / scale)
    pairs = zip(covariates.names, center.tolist(), scale.tolist(), strict=True)
    return tuple(Influence(name, one, spread) for name, one, spread in pairs)


def _check_independent(names: tuple[str, ...], X: Array) -> None:
    """Refuse standardized covariates one of which is a combination of others."""
    values, vectors = np.linalg.eigh(X.T @ X)
    if len(names) <= len(X) - 1 and values[0] > _DEPENDENT * values[-1]:
        return
    if len(names) > len(X) - 1:
        problem = f": {len(names)} covariates are too many for {len(X)} observed steps."
        raise ArgumentError("covariates", ColumnNames(names), problem, "Give fewer.")
    involved = [name for name, share in zip(names, vectors[:, 0], strict=True) if abs(share) > 0.01]
    left = len(involved) - _MOST_NAMES
    more = f" and {left} more" if left > 0 else ""
    words = ", ".join(map(repr, involved[:_MOST_NAMES])) + more
    problem = f": {words} determine each other, so their influences cannot be told apart."
    raise ArgumentError("covariates", ColumnNames(names), problem, "Leave one of them out.")


class ColumnNames:
    """Names of columns, as the value in a message."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def __repr__(self) -> str:
        left = len(self.names) - _MOST_NAMES
        more = f" and {left} more" if left > 0 else ""
        return f"[{', '.join(self.names[:_MOST_NAMES])}{more}]"


def check_size(names: Sequence[str], values: Array, times: Sequence[str]) -> None:
    """Refuse values (N, C) that are infinite, or so large that their squares are."""
    large = np.argwhere(~(np.abs(values) <= LARGEST))
    if len(large):
        n, c = large[0]
        problem = f": {names[c]!r} is {values[n, c]:.4g} at {times[n]}."
        remedy = _OTHER_UNIT if np.isfinite(values[n, c]) else "Give a finite number."
        raise ArgumentError("covariates", ColumnNames(names), problem, remedy)


def missing_values(names: Sequence[str], times: Sequence[str], where: str) -> ArgumentError:
    """The error for steps whose covariates are not known."""
    some = ", ".join(times[:8]) + (f" and {len(times) - 8} more" if len(times) > 8 else "")
    problem = f": values are missing for {where} {some}."
    remedy = Text("Give {covariates=} for these steps, too, without gaps.")
    return ArgumentError("covariates", ColumnNames(names), problem, remedy)
