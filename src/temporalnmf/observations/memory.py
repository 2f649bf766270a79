"""Data in the memory of this process."""

from __future__ import annotations

from os import PathLike

from .._typing import Array
from .base import Observations
from .block import Block
from .features import Features
from .stores import FileStore, WeightStore


class InMemory(Observations):
    """Observations whose features are one block."""

    def hold(self, W: Array | Features) -> Features:
        return W if isinstance(W, Features) else Block(self, W)

    def blank(self) -> Features:
        return Block(self)

    def store(self, checkpoint: str | PathLike[str] | None) -> WeightStore | None:
        return None if checkpoint is None else FileStore(checkpoint, self)
