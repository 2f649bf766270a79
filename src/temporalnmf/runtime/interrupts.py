"""Ctrl-C and SIGTERM between sweeps, not inside: a sweep hands random streams to compiled code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .signals import stop

# Handlers that raise wherever the program is just then.
_RAISING = (signal.default_int_handler, stop)


class Interrupt:
    """Whether Ctrl-C was pressed, or SIGTERM came."""

    number: int | None = None

    @property
    def pressed(self) -> bool:
        return self.number is not None


@contextmanager
def between_sweeps() -> Iterator[Interrupt]:
    """Take note of a signal instead of raising; the caller looks and raises KeyboardInterrupt.

    What the signal stands for is raised when the block ends, however it does.

    Numba may crash the process if an exception comes up while it takes over the generators, and
    swallows one that comes up while it compiles, to fail later with words of its own.
    Outside of the main thread, and where somebody else handles the signal, nothing changes.
    """
    interrupt = Interrupt()
    main = threading.current_thread() is threading.main_thread()
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    usual: Any = {n: handler for n, handler in handlers.items() if handler in _RAISING}
    if not main or not usual:
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.number = number

    for number in usual:
        signal.signal(number, note)
    try:
        yield interrupt
    finally:
        for number, raising in usual.items():
            signal.signal(number, raising)
        if interrupt.number is not None:
            usual[signal.Signals(interrupt.number)](interrupt.number, None)
