"""Warnings of the library.

Python's warning filters are global: if two threads change them, the last to finish restores those
of the other. `without` suppresses warnings in the current thread only.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

from .errors import Text

_unwanted: ContextVar[tuple[type[Warning], ...]] = ContextVar("unwanted", default=())

# Packages whose frames may lie between the user's code and the warning.
_BETWEEN = ("temporalnmf", "sklearn", "contextlib", "numpy")


def warn(message: str | Text, category: type[Warning] = UserWarning) -> None:
    """Warn, unless inside `without`. The warning points at the user's line."""
    if issubclass(category, _unwanted.get()):
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package(frame) in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(category(message), stacklevel=level)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


@contextmanager
def without(*categories: type[Warning]) -> Iterator[None]:
    """Suppress these warnings in the current thread."""
    before = _unwanted.set((*_unwanted.get(), *categories))
    try:
        yield
    finally:
        _unwanted.reset(before)
