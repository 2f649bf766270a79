"""Checkpoints of modes, from which fits resume with the same bits.

One file holds the state of the solver for every start and, for data in memory, W. For data in
blocks, W is in numbered files, one per block; the file of the fit, which is written last, has the
number of the complete set.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from .._typing import Array, Arrays
from ..objective import Problem
from ..observations.features import Features
from ..observations.stores import WeightStore, joined, parted
from ..runtime.interrupts import Interrupt
from ..runtime.states import NON_NEGATIVE, StateError, checked
from ..solvers.state import Checkpoints, SolverState
from .file import CheckpointFile


class CheckpointWriter(Checkpoints):
    """Writes checkpoints of a fit from several starts, and resumes it from the file if it exists.

    `problem_of` has the problem of each start by its number.

    Attributes
    ----------
    seeds : array of int
        Of all starts; those of the resumed fit, if there is one.
    interrupt : Interrupt
        If a signal was received, the file is written after this iteration, and the fit ends.
    """

    def __init__(
        self,
        file: CheckpointFile,
        store: WeightStore,
        problem_of: Callable[[int], Problem],
        n_components: int,
        seeds: Array,
    ) -> None:
        super().__init__(problem_of(0).observations)
        self._file, self._store = file, store
        self.seeds, self.interrupt = seeds, Interrupt()
        self._start = 0
        # By start: the last state of the solver, and W.
        self._states: dict[int, Arrays] = {}
        self._weights: dict[int, Features] = {}
        found = file.read()
        if found is None:
            file.begin()
            return
        with file.reading(KeyError, TypeError):
            self.seeds = checked(found, "seeds", seeds, NON_NEGATIVE)
            self._states, self._weights = parted(found, "start."), store.load(found)
            if self._states.keys() != self._weights.keys():
                raise StateError("it lacks the state or the components of a start")
            for start, state in self._states.items():
                problem, features = problem_of(start), self._weights[start]
                SolverState.restored(problem, n_components, state)
                features.observations = problem.observations
                if not features.fits(n_components, "path_x" in state):
                    raise StateError("its components are those of another fit")
                if not np.all(np.abs(features.totals() - 1.0) <= 1e-6):
                    raise StateError("its components do not sum to one")

    def reading(self) -> AbstractContextManager[None]:
        """A block that restores a state: an invalid one is reported as a damaged file."""
        return self._file.reading()

    def begun(self, start: int) -> tuple[Features, Array] | None:
        """W and H of a start in the resumed fit, or None."""
        if start not in self._states:
            return None
        return self._weights[start], self._states[start]["H"]

    def begin(self, start: int, features: Features) -> None:
        """Called when the solver begins or resumes a start."""
        self._start, self._weights[start] = start, features
        self.before = self._states.get(start)

    def between_iterations(self, state: Callable[[], Arrays]) -> None:
        self._states[self._start] = state()
        if self._file.due or self.interrupt.pressed:
            weights = self._store.save(self._weights)
            starts = joined(self._states, "start.")
            self._file.write({"seeds": self.seeds, **starts, **weights})
            self._store.tidy()
        if self.interrupt.pressed:
            raise KeyboardInterrupt

    def remove(self) -> None:
        """Delete the checkpoint of a completed fit."""
        self._file.remove()
        self._store.remove()
