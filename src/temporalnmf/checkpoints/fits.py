"""A fit that was cut short goes on where it was, to the bit.

One file holds what the solver knows of every start, and W of data in memory. W of data in blocks
is in files of its own, one per block: these have a number, and the file of the fit, which is
written last, says which number is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from .._typing import Array
from ..cluster.series import Checkpoint, Slot, SplitObservations
from ..objective import Problem
from ..observations import Observations
from ..observations.crew import Here
from ..observations.features import Features
from ..runtime.archives import UnlikeError, refuse_negative, refuse_unlike
from ..runtime.interrupts import Interrupt
from ..solvers.keeping import Keeper, State, refuse_other
from .file import Checkpoint as StateFile


class InFile:
    """W, and what L-BFGS remembers of it, in the file of the fit.

    Parameters
    ----------
    file : path
        Of the fit.
    observations : Observations
        In memory.
    """

    def __init__(self, file: str | PathLike[str], observations: Observations) -> None:
        self.file, self._observations = file, observations

    def save(self, weights: dict[int, Features]) -> State:
        """What the file of the fit has to hold of the W of every start."""
        states = {}
        for start, features in weights.items():
            assert isinstance(features.crew, Here)
            (block,) = features.crew.blocks
            states[start] = block.state()
        return _joined("W", states)

    def load(self, found: State) -> dict[int, Features]:
        """Go on from there."""
        weights = {}
        for start, state in _parted("W", found).items():
            weights[start] = features = self._observations.blank()
            features.crew.tell("restore", state)
        return weights

    def tidy(self) -> None:
        """The file of the fit is written: what only the one before knew of can go."""

    def remove(self) -> None:
        """The fit is complete."""


class InFolder:
    """The same in a folder, which holds a file per block.

    Parameters
    ----------
    folder : Path
        That everybody who holds blocks sees.
    observations : SplitObservations
    """

    def __init__(self, folder: Path, observations: SplitObservations) -> None:
        self.file = folder / "fit.npz"
        self._observations, self._team = observations, observations.team
        self._old = self._new = Checkpoint(folder, 0)

    def save(self, weights: dict[int, Features]) -> State:
        self._old, self._new = self._new, Checkpoint(self._new.folder, self._new.number + 1)
        self._team.save(self._new)
        slots = [(start, _slot(features).number) for start, features in weights.items()]
        return {"number": np.array(self._new.number), "slots": np.array(slots)}

    def load(self, found: State) -> dict[int, Features]:
        slots = found.get("slots", np.array(0))
        refuse_unlike(found, {"number": np.array(0)})
        if slots.dtype.kind != "i" or slots.shape[1:] != (2,) or not slots.size:
            raise UnlikeError("its slots are none")
        refuse_negative({"slots": slots}, ("slots",))
        self._new = Checkpoint(self._new.folder, int(found["number"]))
        try:
            self._team.load(self._new)
        except (FileNotFoundError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise ValueError(
                f"checkpoint={str(self._new.folder)!r} lacks a file of a block, or has a damaged "
                f"one. Empty the folder, or name another."
            ) from error
        numbers = dict(slots.tolist())
        self._team.number_from(max(numbers.values()) + 1)
        return {s: Features(self._observations, Slot(self._team, n)) for s, n in numbers.items()}

    def tidy(self) -> None:
        self._old.remove(self._team.n_blocks)

    def remove(self) -> None:
        self._new.remove(self._team.n_blocks)


class FitKeeper(Keeper):
    """Keeps a fit from several starts.

    Parameters
    ----------
    file : StateFile
        What is there already is gone on from.
    place : InFile or InFolder
        For weights.
    problem : Problem
    n_components : int
    seeds : array of int
        Of all starts.

    Attributes
    ----------
    seeds : array of int
        Those of the fit that is gone on with, if there is one.
    interrupt : Interrupt
        If it was pressed, the fit ends between two iterations, and its file is of that moment.
    """

    def __init__(
        self,
        file: StateFile,
        place: InFile | InFolder,
        problem: Problem,
        n_components: int,
        seeds: Array,
    ) -> None:
        super().__init__(problem.observations)
        self._file, self._place = file, place
        self.seeds, self.interrupt = seeds, Interrupt()
        self._start = 0
        # By start: what the solver knew when it rested last, and W.
        self._states: dict[int, State] = {}
        self._weights: dict[int, Features] = {}
        found = file.read()
        if found is None:
            file.begin()
            return
        with file.reading(KeyError, TypeError):
            refuse_unlike(found, {"seeds": seeds})
            refuse_negative(found, ("seeds",))
            self.seeds = found["seeds"]
            self._states, self._weights = _parted("start", found), place.load(found)
            if self._states.keys() != self._weights.keys():
                raise UnlikeError("it lacks a start")
            for start, state in self._states.items():
                refuse_other(problem, n_components, state)
                crew = self._weights[start].crew
                if crew.add("unlike", n_components, "path_x" in state)[0]:
                    raise UnlikeError("its components are those of another fit")
                if not np.all(np.abs(crew.add("totals") - 1.0) <= 1e-6):
                    raise UnlikeError("its components do not sum to one")

    def reading(self) -> AbstractContextManager[None]:
        """While a solver takes up what it left: what it cannot have left is told as damage."""
        return self._file.reading()

    def begun(self, start: int) -> tuple[Features, Array] | None:
        """W and H of a start that was begun, or ended, in the fit that was cut short."""
        if start not in self._states:
            return None
        return self._weights[start], self._states[start]["H"]

    def begin(self, start: int, features: Features) -> None:
        """What is kept from now on is about this start."""
        self._start, self._weights[start] = start, features
        self.before = self._states.get(start)

    def rest(self, state: Callable[[], State]) -> None:
        self._states[self._start] = state()
        if self._file.due or self.interrupt.pressed:
            weights = self._place.save(self._weights)
            starts = _joined("start", self._states)
            self._file.write({"seeds": self.seeds, **starts, **weights})
            self._place.tidy()
        if self.interrupt.pressed:
            raise KeyboardInterrupt

    def remove(self) -> None:
        """The fit is complete."""
        self._file.remove()
        self._place.remove()


def _slot(features: Features) -> Slot:
    assert isinstance(features.crew, Slot)
    return features.crew


def _joined(word: str, states: dict[int, State]) -> State:
    """States of several starts as one."""
    return {
        f"{word}.{start}.{name}": array
        for start, state in states.items()
        for name, array in state.items()
    }


def _parted(word: str, found: State) -> dict[int, State]:
    """States of several starts, out of one."""
    states: dict[int, State] = {}
    for key, array in found.items():
        if key.startswith(f"{word}."):
            _, start, name = key.split(".", 2)
            if not start.isdecimal():
                raise UnlikeError(f"it has {key!r}")
            states.setdefault(int(start), {})[name] = array
    return states
