"""Ctrl-C and SIGTERM are handled between sweeps, since compiled code holds random streams."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .signals import stop

# Handlers that raise an exception at any point of the program.
_RAISING = (signal.default_int_handler, stop)


class Interrupt:
    """Whether Ctrl-C was pressed, or SIGTERM was received."""

    number: int | None = None

    @property
    def pressed(self) -> bool:
        return self.number is not None


@contextmanager
def between_sweeps() -> Iterator[Interrupt]:
    """Record a signal instead of raising; the caller checks it and raises KeyboardInterrupt.

    Its exception is raised at the end of the block in any case.

    Numba may crash if an exception is raised while it takes over random generators, and swallows
    one that is raised while it compiles. Nothing changes outside of the main thread, or if other
    handlers are installed.
    """
    interrupt = Interrupt()
    main = threading.current_thread() is threading.main_thread()
    signals = signal.SIGINT, signal.SIGTERM
    usual = {n: raising for n in signals for raising in _RAISING if signal.getsignal(n) is raising}
    if not main or not usual:
        yield interrupt
        return

    def record(number: int, frame: FrameType | None) -> None:
        interrupt.number = number

    for number in usual:
        signal.signal(number, record)
    try:
        yield interrupt
    finally:
        for number, raising in usual.items():
            signal.signal(number, raising)
        if interrupt.number is not None:
            usual[signal.Signals(interrupt.number)](interrupt.number, None)
