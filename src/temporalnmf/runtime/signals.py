"""SIGTERM ends a command as Ctrl-C does, and workers end with whom they work for."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import current_process
from types import FrameType
from typing import Any
from zipfile import ZipFile

# Seconds between two looks at whether a parent is there.
_PAUSE = 0.5


class Terminated(KeyboardInterrupt):
    """SIGTERM came. Whoever tidies up after Ctrl-C does so now, too."""


_came: int | None = None  # the last signal


def stop(number: int, frame: FrameType | None) -> None:
    """The handler of SIGINT and SIGTERM that commands have; for a library it would be too bold.

    The signal is remembered: an exception that comes up in a finaliser, or in what compiled code
    calls, is swallowed.
    """
    global _came
    _came = number
    raise _stop_of(number)


def _stop_of(number: int) -> KeyboardInterrupt:
    return Terminated() if number == signal.SIGTERM else KeyboardInterrupt()


def not_raised(lost: Any) -> None:
    """The hook of commands for exceptions that Python swallows: it does not tell of a stop.

    Nor of a ZIP file that was being written when the stop came, and so cannot be closed.
    """
    of_stop = isinstance(lost.exc_value, KeyboardInterrupt)
    half_written = _came is not None and lost.object is ZipFile.__del__
    if not of_stop and not half_written:
        sys.__unraisablehook__(lost)


def so_far() -> str:
    """What there is of a command that was stopped; it says so itself once it has begun."""
    return _tell()


def tell_by(tell: Callable[[], str]) -> None:
    """Have a command say what there is of it, also in the moment after it has ended."""
    global _tell
    _tell = tell


def nothing() -> str:
    """What there is before a command has begun."""
    return "Interrupted: nothing was written."


_tell: Callable[[], str] = nothing


def stop_that_came() -> KeyboardInterrupt | None:
    """The stop of a command, whatever has become of it."""
    return None if _came is None else _stop_of(_came)


def raise_if_stopped() -> None:
    """Between two steps of long work: raise a stop that was swallowed."""
    if _came is not None:
        raise _stop_of(_came)


def exit_code(stop: KeyboardInterrupt) -> int:
    """128 and the number of the signal, as shells have it."""
    return 143 if isinstance(stop, Terminated) else 130


def stop_behind(
    error: BaseException | None, handled: BaseException | None = None
) -> KeyboardInterrupt | None:
    """The stop that an error comes from, if it does, and not from one that is `handled` already.

    A stop may come while a library is opening something, which then fails to close it and says so:
    zipfile raises a ValueError.
    """
    while error is not None and error is not handled:
        if isinstance(error, KeyboardInterrupt):
            return error
        error = error.__cause__ or error.__context__
    return None


def that_end_with_us() -> dict[str, Any]:
    """For `joblib.Parallel`: workers that end with this process, from their first moment on."""
    return {"initializer": end_with, "initargs": (os.getpid(),)}


def end_with(parent: int) -> None:
    """End this process when its parent does, which may be killed and cannot say so.

    Workers of joblib would stay for minutes. Nothing changes in a process that is no child of it.
    """
    if current_process().name.startswith("LokyProcess") and os.getppid() != parent:
        os._exit(1)  # it was killed while this worker was started
    name = f"ends with {parent}"
    if os.getppid() != parent or name in (thread.name for thread in threading.enumerate()):
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PAUSE)
        os._exit(1)

    threading.Thread(target=watch, name=name, daemon=True).start()
