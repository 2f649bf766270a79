"""Likelihoods with a parameter of their own, which is given or learned from the data."""

from __future__ import annotations

import copy
from collections.abc import Callable
from numbers import Real
from typing import ClassVar, Self

import numpy as np

from .._typing import Array
from .base import Likelihood

# Distance, in the logarithm of the parameter, of the points of a parabola, and its largest step.
_APART, _FARTHEST = 0.1, 2.0


class OneParameter(Likelihood):
    """A law with one positive parameter: a number, or "learn".

    Attributes
    ----------
    parameter : str
        Its name.
    bounds : tuple of float
        Between which it is learned. It starts at 1.
    limit : str
        What to use for an invalid number that stands for a limit of the law.
    """

    parameter: ClassVar[str]
    bounds: ClassVar[tuple[float, float]]
    limit: ClassVar[str] = ""
    _learned: bool = False

    @property
    def number(self) -> float:
        """The value of the parameter; where learning starts, if it is yet to be learned."""
        value = getattr(self, self.parameter)
        return 1.0 if isinstance(value, str) else float(value)

    @property
    def learns(self) -> bool:
        return self._learned

    @property
    def learned(self) -> dict[str, float]:
        return {self.parameter: self.number} if self._learned else {}

    def check(self) -> None:
        given = getattr(self, self.parameter)
        if isinstance(given, str) and given == "learn":
            return
        number = isinstance(given, Real) and not isinstance(given, bool)
        if number and 0.0 < given < np.inf:
            return
        more = f" {self.limit}" if number and self.limit else ""
        if not isinstance(given, str) and hasattr(given, "__len__"):
            more = " All features share it: fit features that differ in it on their own."
        raise ValueError(
            f"{type(self).__name__}({self.parameter}={given!r:.60}): give a positive number, or "
            f"'learn'.{more}"
        )

    def resolve(self) -> Self:
        self.check()
        given = getattr(self, self.parameter)
        found = self.at(self.number)
        found._learned = isinstance(given, str)
        return found

    def at(self, number: float) -> Self:
        """A copy with another value of the parameter."""
        found = copy.copy(self)
        setattr(found, self.parameter, float(np.clip(number, *self.bounds)))
        return found

    def learn(
        self, value: Callable[[Likelihood], float], present: float | None = None
    ) -> tuple[Likelihood, float]:
        """One step of Newton's method in the logarithm, by differences; never to a higher value."""
        tried: list[tuple[float, float]] = []

        def value_at(x: float) -> float:
            found = value(self.at(np.exp(x)))
            tried.append((found, x))
            return found

        x = float(np.log(self.number))
        low, high = value_at(x - _APART), value_at(x + _APART)
        present = value(self) if present is None else present
        bend, fall = low + high - 2.0 * present, low - high
        step = _FARTHEST * np.sign(fall)
        if bend > 0.0:
            step = np.clip(0.5 * _APART * fall / bend, -_FARTHEST, _FARTHEST)
        value_at(x + float(step))
        best, found = min(tried)
        return (self, present) if present <= best else (self.at(np.exp(found)), best)


def each(fill: Callable[..., None], v: Array, lam: Array, *given: Array | float) -> Array:
    """A compiled function of vectors, for arrays and given parameters."""
    v, lam = np.broadcast_arrays(np.asarray(v, dtype=float), np.asarray(lam, dtype=float))
    found = np.empty(v.shape)
    # Of a single value, `ravel` is a view of a broadcast array, about whose flags NumPy warns.
    flat = (x.flatten() if x.size == 1 else x.ravel() for x in (v, lam))
    fill(*flat, *given, found.reshape(-1))
    return found
