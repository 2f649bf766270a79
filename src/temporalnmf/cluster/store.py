"""The weights of a fit on data in blocks, in a folder of checkpoints."""

from __future__ import annotations

from itertools import count
from os import PathLike
from pathlib import Path

import numpy as np

from .._typing import Arrays
from ..observations.base import Observations
from ..observations.features import Features
from ..runtime.states import FREE_LENGTH, NON_NEGATIVE, StateError, checked
from .executor import BlockFiles, Executor, Slot
from .features import SplitFeatures


class FolderStore:
    """Weights in a folder that all workers see, with a file per block."""

    waits = False

    def __init__(self, folder: Path, observations: Observations, executor: Executor) -> None:
        self.file: str | PathLike[str] = folder / "fit.npz"
        self._observations, self._executor = observations, executor
        self._old = self._new = BlockFiles(folder, 0)

    def save(self, weights: dict[int, Features]) -> Arrays:
        self._old, self._new = self._new, BlockFiles(self._new.folder, self._new.number + 1)
        self._executor.save(self._new)
        slots = []
        for start, features in weights.items():
            assert isinstance(features, SplitFeatures)
            slots.append((start, features.slot.number))
        return {"number": np.array(self._new.number), "slots": np.array(slots)}

    def load(self, found: Arrays) -> dict[int, Features]:
        number = checked(found, "number", 0, NON_NEGATIVE)
        pairs = np.empty((0, 2), dtype=int)
        slots = checked(found, "slots", pairs, NON_NEGATIVE | FREE_LENGTH)
        if not slots.size:
            raise StateError("it has no slots")
        self._new = BlockFiles(self._new.folder, int(number))
        self._executor.load(self._new)
        numbers = dict(slots.tolist())
        self._executor.numbers = count(max(numbers.values()) + 1)
        return {
            start: SplitFeatures(self._observations, Slot(self._executor, number))
            for start, number in numbers.items()
        }

    def tidy(self) -> None:
        self._old.remove(self._executor.n_blocks)

    def remove(self) -> None:
        self._new.remove(self._executor.n_blocks)
