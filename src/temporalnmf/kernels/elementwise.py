"""Compiled scalar functions as ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numba import vectorize


def elementwise(function: Callable[..., float]) -> Callable[..., Any]:
    """A function of numbers that broadcasts over arrays, compiled on first use and cached.

    The compiler may run both sides of a branch and keep one. The side that is thrown away can
    leave a floating-point flag behind, which NumPy would report as a warning; whether it does
    changes with the version of the compiler. Flags are unreliable here, and tests compare values.
    """
    ufunc = vectorize(cache=True)(function)

    @wraps(function)
    def quiet(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return ufunc(*(np.asarray(argument, dtype=np.float64) for argument in arguments))

    return quiet
