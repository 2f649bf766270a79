"""Cases that end badly, for tests of what runs them. Other processes find them by their names."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, NoReturn

from fuzzing import files, fits

# A variable of the environment with the path of a file, which is there when a case hangs.
HANGS = "TEMPORALNMF_TRIAL_HANGS"


def end_by(number: int) -> str:
    """Some die, some hang, some fail, most do not."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 5:
        Path(os.environ[HANGS]).touch()
        time.sleep(600)
    if number == 7:
        raise KeyError("lost")
    if number == 11:
        bytearray(1 << 40)
    return "odd" if number % 2 else "even"


def spin(number: int) -> str:
    """Does not end, but for the first."""
    while number:
        pass
    return "ended"


def kept_file(number: int) -> files.FileCase:
    """A case that went wrong before."""
    return files.kept(sorted(files.CORPUS.iterdir())[number])


def read_or_fail(path: Path) -> None:
    """A third of all files is not read."""
    if path.stat().st_size % 3 == 0:
        raise KeyError("lost")


def take_a_moment(path: Path) -> None:
    time.sleep(0.01)


def break_promise(*_: Any) -> NoReturn:
    raise fits.PromiseError("broken on purpose")
