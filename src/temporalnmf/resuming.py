"""A fit of data in blocks that was cut short goes on where it was.

A folder holds `fit.npz`, what the solver knows, and a file per block of features with its weights
and what L-BFGS remembers of them. Files of blocks have a number, and `fit.npz`, which is written
last, says which number is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .objective import Problem
from .observations.features import Features
from .observations.split import Checkpoint, Slot, SplitObservations
from .sampling.checkpoint import Checkpoint as StateFile
from .solvers.keeping import Keeper, State, go_on, state_of
from .solvers.mm import FitResult
from .solvers.monitor import Monitor


class FitKeeper(Keeper):
    """Keeps a fit from several starts.

    Parameters
    ----------
    folder : Path
        That everybody who holds blocks sees.
    identity : dict
        What the fit depends on. A folder of another fit is refused.
    observations : SplitObservations
    """

    def __init__(
        self, folder: Path, identity: dict[str, Any], observations: SplitObservations
    ) -> None:
        super().__init__(observations)
        self._team, self._folder = observations.team, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._file = StateFile(folder / "fit.npz", identity)
        self._number = 0
        self._start, self._slot = 0, 0
        self._done: State = {}
        found = self._file.read()
        if found is None:
            self._file.begin()
            return
        self._number, self._start, self._slot = map(int, found["places"])
        self._done = {name: array for name, array in found.items() if name.startswith("done")}
        self.before = {
            name.removeprefix("now_"): array
            for name, array in found.items()
            if name.startswith("now_")
        }
        self._team.load(Checkpoint(folder, self._number))
        self._team.number_from(self._slot + 1)

    def began_before(self, start: int) -> bool:
        """Whether a start was begun, or ended, in the fit that was cut short."""
        return self.before is not None and start <= self._start

    def features(self, start: int) -> Features:
        """Those of a start that was begun."""
        ended = start < self._start
        slot = int(self._done[f"done{start}_slot"]) if ended else self._slot
        return Features(self.observations, Slot(self._team, slot))

    def result(self, start: int, problem: Problem, monitor: Monitor) -> FitResult | None:
        """That of a start that was ended; None if it was not."""
        if start >= self._start:
            return None
        prefix = f"done{start}_"
        state = {
            name.removeprefix(prefix): array
            for name, array in self._done.items()
            if name.startswith(prefix)
        }
        problem, H, _ = go_on(problem, monitor, state)
        return FitResult(self.features(start), H, problem.chain, monitor)

    def begin(self, start: int, features: Features) -> None:
        """What is kept from now on is about this start."""
        assert isinstance(features.crew, Slot)
        if start > self._start:
            self.before = None
        self._start, self._slot = start, features.crew.number

    def end(self, start: int, problem: Problem, result: FitResult) -> None:
        """A start is complete."""
        assert isinstance(result.features.crew, Slot)
        problem = replace(problem, chain=result.chain)
        state = state_of(problem, result.monitor, result.H, np.empty(0))
        state["slot"] = np.array(result.features.crew.number)
        self._done |= {f"done{start}_{name}": array for name, array in state.items()}

    def rest(self, state: Callable[[], State]) -> None:
        if self._file.due:
            old = Checkpoint(self._folder, self._number)
            self._number += 1
            self._team.save(Checkpoint(self._folder, self._number))
            now = {f"now_{name}": array for name, array in state().items()}
            places = np.array([self._number, self._start, self._slot])
            self._file.write({**self._done, **now, "places": places})
            old.remove(self._team.n_blocks)

    def remove(self) -> None:
        """The fit is complete."""
        self._file.remove()
        Checkpoint(self._folder, self._number).remove(self._team.n_blocks)
