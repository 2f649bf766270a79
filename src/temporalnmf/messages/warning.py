"""Warnings of ours, which a caller may not want.

Python's filters are one for the process: of two threads that change them, the last to leave
restores those of the other. What is not wanted here is so in this thread alone.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

_unwanted: ContextVar[tuple[type[Warning], ...]] = ContextVar("unwanted", default=())


# Packages whose frames may lie between the code of a user and the warning.
_BETWEEN = ("temporalnmf", "sklearn", "contextlib", "numpy")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, unless the caller said `without`. The warning points at the line of the user."""
    if issubclass(category, _unwanted.get()):
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package(frame) in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


@contextmanager
def without(*categories: type[Warning]) -> Iterator[None]:
    """A block in which this thread is not warned."""
    before = _unwanted.set((*_unwanted.get(), *categories))
    try:
        yield
    finally:
        _unwanted.reset(before)
