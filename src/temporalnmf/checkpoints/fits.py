"""A fit that was cut short goes on where it was, to the bit.

One file holds what the solver knows of every start, and W of data in memory. W of data in blocks
is in files of its own, one per block: these have a number, and the file of the fit, which is
written last, says which number is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from .._typing import Array
from ..objective import Problem
from ..observations.features import Features
from ..observations.stores import WeightStore, joined, parted
from ..runtime.archives import UnlikeError, refuse_negative, refuse_unlike
from ..runtime.interrupts import Interrupt
from ..solvers.keeping import Keeper, State, refuse_other
from .file import Checkpoint as StateFile


class FitKeeper(Keeper):
    """Keeps a fit from several starts.

    Parameters
    ----------
    file : StateFile
        What is there already is gone on from.
    store : WeightStore
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
        store: WeightStore,
        problem: Problem,
        n_components: int,
        seeds: Array,
    ) -> None:
        super().__init__(problem.observations)
        self._file, self._store = file, store
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
            self._states, self._weights = parted("start", found), store.load(found)
            if self._states.keys() != self._weights.keys():
                raise UnlikeError("it lacks a start")
            for start, state in self._states.items():
                refuse_other(problem, n_components, state)
                features = self._weights[start]
                if not features.fits(n_components, "path_x" in state):
                    raise UnlikeError("its components are those of another fit")
                if not np.all(np.abs(features.totals() - 1.0) <= 1e-6):
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
            weights = self._store.save(self._weights)
            starts = joined("start", self._states)
            self._file.write({"seeds": self.seeds, **starts, **weights})
            self._store.tidy()
        if self.interrupt.pressed:
            raise KeyboardInterrupt

    def remove(self) -> None:
        """The fit is complete."""
        self._file.remove()
        self._store.remove()
