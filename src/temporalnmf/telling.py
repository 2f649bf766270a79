"""Warnings of ours, which a caller may not want.

Python's filters are one for the process: of two threads that change them, the last to leave
restores those of the other. What is not wanted here is so in this thread alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_unwanted: ContextVar[tuple[type[Warning], ...]] = ContextVar("unwanted", default=())


def warn(message: str, category: type[Warning], stacklevel: int) -> None:
    """`warnings.warn`, unless the caller said `without`."""
    if not issubclass(category, _unwanted.get()):
        warnings.warn(message, category, stacklevel=stacklevel + 1)


@contextmanager
def without(*categories: type[Warning]) -> Iterator[None]:
    """A block in which this thread is not warned."""
    before = _unwanted.set((*_unwanted.get(), *categories))
    try:
        yield
    finally:
        _unwanted.reset(before)
