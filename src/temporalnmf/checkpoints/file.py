"""The state of a fit in a file, so that one that was killed can go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from .. import __version__
from .._typing import Array
from ..runtime.archives import UnlikeError, json_of, read_npz, sealed, unsealed, write_npz

# Seconds between two writes, if nobody says otherwise.
EVERY = 30.0

# Checkpoints of results that are not in files yet, if somebody is about to write them.
_unsaved: ContextVar[list[Callable[[], None]] | None] = ContextVar("unsaved", default=None)


@contextmanager
def until_saved() -> Iterator[None]:
    """A block that fits and saves: checkpoints stay until it has ended well."""
    waiting: list[Callable[[], None]] = []
    before = _unsaved.set(waiting)
    try:
        yield
    finally:
        _unsaved.reset(before)
    for remove in waiting:
        remove()


def when_saved(remove: Callable[[], None]) -> None:
    """Remove a checkpoint now that there is a result, or when it is saved."""
    waiting = _unsaved.get()
    if waiting is None:
        remove()
    else:
        waiting.append(remove)


class Checkpoint:
    """A file that is written now and then, whole or not at all, and read by whoever goes on.

    Parameters
    ----------
    path : path or None
        None: nothing is written.
    identity : dict
        What the fit depends on. A file of another fit is refused, and that of another version,
        which may round differently.
    every : float, default=30.0
        Seconds between two writes.
    """

    def __init__(
        self, path: str | PathLike[str] | None, identity: dict[str, Any], every: float = EVERY
    ) -> None:
        if path is not None and not isinstance(path, str | PathLike):
            raise ValueError(f"checkpoint={path!r}: expected the path of a file, or None.")
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
        """Refuse a place that cannot be written to, before there is anything to lose."""
        if self.path is None:
            return
        shown = f"checkpoint={str(self.path)!r}"
        if self.path.exists() or not self.path.parent.is_dir():
            what = "is no file" if self.path.exists() else "is in a folder that does not exist"
            raise ValueError(f"{shown} {what}. Name a file in a folder that is there.")
        trial = self.path.with_name(f".{self.path.name}.trial")
        try:
            trial.touch()
            trial.unlink()
        except OSError as error:
            raise ValueError(f"{shown} cannot be written: {error}. Name another file.") from error

    def write(self, arrays: dict[str, Array]) -> None:
        assert self.path is not None
        members: dict[str, Any] = {"identity": np.array(json.dumps(self.identity)), **arrays}
        write_npz(self.path, sealed(members))
        self._written = monotonic()

    def read(self) -> dict[str, Array] | None:
        """What was written by the same fit; None if there is nothing."""
        if self.path is None or not self.path.is_file():
            return None
        remedy = "Delete it, or name another checkpoint."
        with self.reading(OSError, ValueError, KeyError):
            found = unsealed(read_npz(self.path))
            identity = json_of(str(found.pop("identity")).encode())
            if not isinstance(identity, dict):
                raise ValueError("its identity is none")
        for name, value in self.identity.items():
            if identity.get(name) != value:
                if name == "data":
                    raise ValueError(
                        f"checkpoint={str(self.path)!r} is of a fit to other data (or another mask "
                        f"or exposure). {remedy}"
                    )
                raise ValueError(
                    f"checkpoint={str(self.path)!r} is of a fit with {name}={identity.get(name)}, "
                    f"and this one has {value}. {remedy}"
                )
        return found

    @contextmanager
    def reading(self, *errors: type[Exception]) -> Iterator[None]:
        """Arrays that cannot be of this fit are told as damage; so are other errors named here."""
        told: tuple[type[Exception], ...] = (UnlikeError, *errors)
        try:
            yield
        except told as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is no checkpoint of a fit, or is damaged "
                f"({error}). Name another file."
            ) from error

    def remove(self) -> None:
        """The fit is complete."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
