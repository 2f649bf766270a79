"""Ctrl-C between sweeps, not inside: a sweep hands random streams to compiled code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether Ctrl-C was pressed."""

    pressed = False


@contextmanager
def between_sweeps() -> Iterator[Interrupt]:
    """Take note of Ctrl-C instead of raising; the caller looks and raises KeyboardInterrupt.

    Numba may crash the process if an exception comes up while it takes over the generators.
    Outside of the main thread, and where somebody else handles the signal, nothing changes.
    """
    interrupt = Interrupt()
    usual = signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not usual:
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.pressed = True

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, usual)
