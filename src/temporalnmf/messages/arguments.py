"""Checks of arguments. Errors name the argument, the value and the remedy."""

from __future__ import annotations

import math
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, Generator, Seed
from .errors import ArgumentError, Text


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a word that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(name, value, "is not known.", f"Choose one of {', '.join(choices)}.")


def check_count(name: str, value: object) -> int:
    """A whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ArgumentError(name, value, ": expected a whole number of at least 1.")
    return int(value)


def check_steps(name: str, value: ArrayLike, least: int = 1) -> Array:
    """Whole numbers of at least `least`, as an array."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu" or array.size == 0 or np.any(array < least):
        raise ArgumentError(name, value, f": expected whole numbers of at least {least}.")
    return array.astype(np.int64)


def check_time(name: str, value: object) -> float:
    """A positive, finite number."""
    if isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < math.inf:
        return float(value)
    raise ArgumentError(name, value, ": expected a positive, finite number.")


def check_rng(rng: Seed) -> Generator:
    """A generator, from one or from a seed."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        problem = ": expected a NumPy Generator, a whole number of at least 0, or None."
        raise ArgumentError("rng", rng, problem) from error


def check_positive(name: str, value: ArrayLike, *, zero: bool = False) -> Array:
    """Positive (or zero) finite numbers as an array."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(name, value, ": expected positive numbers.") from error
    wrong = ~(np.isfinite(array) & ((array >= 0.0) if zero else (array > 0.0)))
    if np.any(wrong):
        sign = "non-negative" if zero else "positive"
        found = float(array[wrong].flat[0])
        raise ArgumentError(name, found, f": expected {sign}, finite numbers.")
    return array


def check_sizes(exposure: ArrayLike, n_steps: int, hide: str) -> Array:
    """Exposures (N,); `hide` says what to do with a step that has none."""
    try:
        values = np.asarray(exposure, dtype=float)
    except (TypeError, ValueError) as error:
        problem = ": expected positive numbers, one per time step."
        raise ArgumentError("exposure", exposure, problem) from error
    if values.shape != (n_steps,):
        expected = f"expected {(n_steps,)}, one value per time step"
        raise ValueError(f"exposure has shape {values.shape}: {expected}.")
    wrong = ~(np.isfinite(values) & (values > 0.0))
    if wrong.any():
        problem = "exposure contains {value}: it must be positive and finite"
        remedy = f"A step without exposure is a missing step: {hide}."
        raise ValueError(Text(f"{problem}. {remedy}", value=values[wrong][0]))
    return values
