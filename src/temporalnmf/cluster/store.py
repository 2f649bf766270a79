"""The weights of a fit on data in blocks, in a folder of checkpoints."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ..observations.base import Observations
from ..observations.features import Features
from ..observations.stores import State
from ..runtime.archives import UnlikeError, refuse_negative, refuse_unlike
from .features import SplitFeatures
from .team import Checkpoint, Slot, Team


class FolderStore:
    """Weights in a folder, which holds a file per block.

    Parameters
    ----------
    folder : Path
        That everybody who holds blocks sees.
    observations : Observations
    team : Team
    """

    waits = False

    def __init__(self, folder: Path, observations: Observations, team: Team) -> None:
        self.file: str | PathLike[str] = folder / "fit.npz"
        self._observations, self._team = observations, team
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
        return {
            s: SplitFeatures(self._observations, Slot(self._team, n)) for s, n in numbers.items()
        }

    def tidy(self) -> None:
        self._old.remove(self._team.n_blocks)

    def remove(self) -> None:
        self._new.remove(self._team.n_blocks)


def _slot(features: Features) -> Slot:
    assert isinstance(features, SplitFeatures)
    return features.slot
