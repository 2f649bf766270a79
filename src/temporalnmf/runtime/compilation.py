"""While kernels are being compiled: a waiting user is told, and Ctrl-C waits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

from numba.core import event

from .interrupts import between_sweeps

_KIND = "numba:compile"


class _Announcer(event.Listener):
    """Of one fit. Numba calls all there are, for all fits, under its compiler's lock."""

    at_work: ClassVar[set[_Announcer]] = set()

    def __init__(self) -> None:
        self.told = False

    def on_start(self, event: Any) -> None:
        # Fits side by side wait for the same compiler: one word is enough for all of them.
        told = any(announcer.told for announcer in tuple(self.at_work))
        self.told = True
        if not told:
            print(
                "temporalnmf: compiling for this machine; the result is kept on disk, so the next "
                "fit of this kind starts at once.",
                file=sys.stderr,
            )

    def on_end(self, event: Any) -> None:
        pass


class _Guard(event.Listener):
    """Lets Ctrl-C wait while the main thread compiles, at most for one function and what it calls.

    Compilers call back to Python, which swallows whatever comes up there: an error of numba would
    be told instead, or nothing at all.
    """

    def __init__(self) -> None:
        self._depth, self._held = 0, ExitStack()

    def on_start(self, event: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            self._depth += 1
            if self._depth == 1:
                self._held.enter_context(between_sweeps())

    def on_end(self, event: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            self._depth -= 1
            if self._depth == 0:
                self._held.close()  # which raises what was held


@contextmanager
def guarded() -> Iterator[None]:
    """A stop that comes while numba compiles inside the block is raised after that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    event.register(_KIND, guard := _Guard())
    try:
        yield
    finally:
        event.unregister(_KIND, guard)


@contextmanager
def announced(wanted: bool) -> Iterator[None]:
    """Say so, once, if anything is compiled inside the block and somebody may be waiting.

    Somebody may be if it is wanted, in a terminal or in a notebook. Code that comes from the disk
    is not compiled.
    """
    if not (wanted or _terminal() or "ipykernel" in sys.modules):
        yield
        return
    listener = _Announcer()
    _Announcer.at_work.add(listener)
    event.register(_KIND, listener)
    try:
        yield
    finally:
        event.unregister(_KIND, listener)
        _Announcer.at_work.remove(listener)


def _terminal() -> bool:
    """Whether errors go to a terminal; services may have none, or have closed it."""
    return not getattr(sys.stderr, "closed", True) and sys.stderr.isatty()
