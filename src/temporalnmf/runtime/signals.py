"""SIGTERM ends a command as Ctrl-C does, and worker processes end with their parent."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import current_process
from types import FrameType
from zipfile import ZipFile

# Seconds between two checks of whether the parent process is alive.
_PAUSE = 0.5


class Terminated(KeyboardInterrupt):
    """SIGTERM was received. It is handled like Ctrl-C."""


_received: int | None = None  # the last signal


def stop(number: int, frame: FrameType | None) -> None:
    """The handler of SIGINT and SIGTERM in commands; the library does not install it.

    The signal is recorded: an exception in a finaliser, or in a callback of compiled code, is
    swallowed.
    """
    global _received
    _received = number
    raise _stop_of(number)


def _stop_of(number: int) -> KeyboardInterrupt:
    return Terminated() if number == signal.SIGTERM else KeyboardInterrupt()


def not_raised(lost: sys.UnraisableHookArgs) -> None:
    """The hook of commands for exceptions that Python swallows: signals are not reported.

    Nor is a ZIP file that cannot be closed because a signal interrupted writing it.
    """
    of_signal = isinstance(lost.exc_value, KeyboardInterrupt)
    half_written = _received is not None and lost.object is ZipFile.__del__
    if not of_signal and not half_written:
        sys.__unraisablehook__(lost)


def so_far() -> str:
    """The message of an interrupted command: what it has done so far."""
    return _tell()


def tell_by(tell: Callable[[], str]) -> None:
    """Set the function that returns this message."""
    global _tell
    _tell = tell


def nothing() -> str:
    """The message before a command has begun."""
    return "Interrupted: nothing was written."


_tell: Callable[[], str] = nothing


def stop_that_came() -> KeyboardInterrupt | None:
    """The exception of the last signal, even if it was swallowed."""
    return None if _received is None else _stop_of(_received)


def raise_if_stopped() -> None:
    """Raise the exception of a signal if it was swallowed; called between two iterations."""
    if _received is not None:
        raise _stop_of(_received)


def exit_code(stop: KeyboardInterrupt) -> int:
    """128 plus the number of the signal, as in shells."""
    return 143 if isinstance(stop, Terminated) else 130


def stop_behind(
    error: BaseException | None, handled: BaseException | None = None
) -> KeyboardInterrupt | None:
    """The signal's exception that caused an error, unless it is behind `handled`; else None.

    A library that is interrupted while it opens a file may fail to close it and raise another
    error: zipfile raises a ValueError.
    """
    while error is not None and error is not handled:
        if isinstance(error, KeyboardInterrupt):
            return error
        error = error.__cause__ or error.__context__
    return None


def that_end_with_us() -> dict[str, object]:
    """Arguments of `joblib.Parallel` for processes that end with this one."""
    return {"initializer": end_with, "initargs": (os.getpid(),)}


def end_with(parent: int) -> None:
    """End this process when its parent ends, even if the parent is killed.

    joblib's processes would stay alive for minutes. In a process that is not a child of `parent`,
    this does nothing.
    """
    if current_process().name.startswith("LokyProcess") and os.getppid() != parent:
        os._exit(1)  # the parent was killed while this process started
    name = f"ends with {parent}"
    if os.getppid() != parent or name in (thread.name for thread in threading.enumerate()):
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PAUSE)
        os._exit(1)

    threading.Thread(target=watch, name=name, daemon=True).start()
