"""Checks of arguments. Errors name the argument, the value and the remedy."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from .._typing import Array


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a word that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is not known. Choose one of {', '.join(choices)}.")


def check_count(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r}: expected a whole number of at least 1.")
    return int(value)


def check_steps(name: str, value: Any, least: int = 1) -> Array:
    """Whole numbers of at least `least`, as an array."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu" or array.size == 0 or np.any(array < least):
        raise ValueError(f"{name}={value!r}: expected whole numbers of at least {least}.")
    return array.astype(np.int64)


def check_rng(rng: Any) -> np.random.Generator:
    """A generator, from one or from a seed."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"rng={rng!r}: expected a NumPy Generator, a whole number of at least 0, or None."
        ) from error


def check_positive(name: str, value: Any, *, zero: bool = False) -> Array:
    """Positive (or zero) finite numbers as an array."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}={value!r}: expected positive numbers.") from error
    wrong = ~(np.isfinite(array) & ((array >= 0.0) if zero else (array > 0.0)))
    if np.any(wrong):
        sign = "non-negative" if zero else "positive"
        raise ValueError(f"{name}={array[wrong].flat[0]}: expected {sign}, finite numbers.")
    return array
