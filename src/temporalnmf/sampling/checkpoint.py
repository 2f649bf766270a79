"""The state of a fit by draws in a file, so that a run that was killed can go on."""

from __future__ import annotations

import json
import zipfile
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from ..files import written_whole
from ..likelihoods.base import Array

# Seconds between two writes. The file holds all draws so far.
INTERVAL = 30.0


class Checkpoint:
    """A file that is written now and then, whole or not at all, and read by whoever goes on.

    Parameters
    ----------
    path : path or None
        None: nothing is written.
    identity : dict
        What the draws depend on. A file of another fit is refused.
    """

    def __init__(self, path: str | PathLike[str] | None, identity: dict[str, Any]) -> None:
        if path is not None and not isinstance(path, str | PathLike):
            raise ValueError(f"checkpoint={path!r}: expected the path of a file, or None.")
        self.path = None if path is None else Path(path)
        self.identity = json.loads(json.dumps(identity, default=str))
        self._written = monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return self.path is not None and monotonic() - self._written >= INTERVAL

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
        with written_whole(self.path) as partial, partial.open("wb") as file:
            np.savez(file, **members)
        self._written = monotonic()

    def read(self) -> dict[str, Array] | None:
        """What was written by the same fit; None if there is nothing."""
        if self.path is None or not self.path.is_file():
            return None
        remedy = "Delete it, or name another checkpoint."
        try:
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                found = dict(file)
            identity = json.loads(str(found.pop("identity")))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is no checkpoint of a fit, or is damaged. Name "
                f"another file."
            ) from error
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

    def remove(self) -> None:
        """The fit is complete."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
