"""Checkpoint files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from time import monotonic

import numpy as np

from .. import __version__
from .._typing import Array
from ..messages.errors import ArgumentError
from ..runtime.archives import json_of, read_npz, sealed, unsealed, write_npz
from ..runtime.states import StateError

# Default number of seconds between two writes.
EVERY = 30.0

# Functions that remove checkpoints, to be called when the results are saved.
_unsaved: ContextVar[list[Callable[[], None]] | None] = ContextVar("unsaved", default=None)


@contextmanager
def until_saved() -> Iterator[None]:
    """A block that fits and saves: checkpoints are kept until it has succeeded."""
    waiting: list[Callable[[], None]] = []
    before = _unsaved.set(waiting)
    try:
        yield
    finally:
        _unsaved.reset(before)
    for remove in waiting:
        remove()


def when_saved(remove: Callable[[], None]) -> None:
    """Remove a checkpoint of a completed fit: now, or when its result is saved."""
    waiting = _unsaved.get()
    if waiting is None:
        remove()
    else:
        waiting.append(remove)


class CheckpointFile:
    """A file that is written from time to time, whole or not at all, and read to resume a fit.

    Parameters
    ----------
    path : path or None
        None: nothing is written.
    identity : dict
        What the fit depends on. Files of other fits are refused, and those of other versions,
        which may round differently.
    every : float, default=30.0
        Seconds between two writes.
    """

    def __init__(
        self, path: str | PathLike[str] | None, identity: dict[str, object], every: float = EVERY
    ) -> None:
        if path is not None and not isinstance(path, str | PathLike):
            raise ArgumentError("checkpoint", path, ": expected the path of a file, or None.")
        self.path = None if path is None else Path(path)
        known = {**identity, "temporalnmf": __version__}
        self.identity = json.loads(json.dumps(known, default=str))
        self.every = every
        self._written = monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return self.path is not None and monotonic() - self._written >= self.every

    def begin(self) -> None:
        """Refuse a path that cannot be written to, before anything is computed."""
        if self.path is None:
            return
        if self.path.exists() or not self.path.parent.is_dir():
            what = "is not a file" if self.path.exists() else "is in a folder that does not exist"
            raise self._error(f"{what}.", "Name a file in an existing folder.")
        trial = self.path.with_name(f".{self.path.name}.trial")
        try:
            trial.touch()
            trial.unlink()
        except OSError as error:
            raise self._error(f"cannot be written: {error}.", "Name another file.") from error

    def _error(self, problem: str, remedy: str) -> ArgumentError:
        return ArgumentError("checkpoint", str(self.path), problem, remedy)

    def write(self, arrays: dict[str, Array]) -> None:
        assert self.path is not None
        identity = np.array(json.dumps(self.identity))
        write_npz(self.path, sealed({"identity": identity, **arrays}))
        self._written = monotonic()

    def read(self) -> dict[str, Array] | None:
        """The arrays that the same fit wrote; None if there is no file."""
        if self.path is None or not self.path.is_file():
            return None
        with self.reading(OSError, ValueError, KeyError):
            found = unsealed(read_npz(self.path))
            identity = json_of(str(found.pop("identity")).encode())
            if not isinstance(identity, dict):
                raise ValueError("its identity is not a JSON object")
        for name, value in self.identity.items():
            if (other := identity.get(name)) != value:
                problem = f"is of a fit with {name}={other}, and this one has {value}."
                if name == "data":
                    problem = "is of a fit to other data (or another mask or exposure)."
                raise self._error(problem, "Delete it, or name another checkpoint.")
        return found

    @contextmanager
    def reading(self, *errors: type[Exception]) -> Iterator[None]:
        """Report these errors, and arrays that cannot be of this fit, as a damaged file."""
        damage: tuple[type[Exception], ...] = (StateError, *errors)
        try:
            yield
        except damage as error:
            problem = f"is not a checkpoint of a fit, or is damaged ({error})."
            raise self._error(problem, "Name another file.") from error

    def remove(self) -> None:
        """Delete the file of a completed fit."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
