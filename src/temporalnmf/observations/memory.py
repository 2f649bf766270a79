"""Data in the memory of this process."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import Literal

import numpy as np

from .._typing import Array
from .base import Observations, Sums
from .block import Block
from .features import Features
from .stores import FileStore, WeightStore


class InMemory(Observations):
    """Observations whose features are one block.

    A likelihood is a law of v given e λ. The kernels therefore read exposed activations e h, and
    the chain rule turns their sums for H into derivatives in h.
    """

    def __init__(self, exposure: Array) -> None:
        super().__init__()
        self._exposure = None if np.all(exposure == 1.0) else exposure

    def sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        if self._exposure is None:
            return self._sums(W, H, wants)
        *of_weights, sums = self._sums(W, H * self._exposure, wants)
        if "h" in wants:
            sums = Sums(sums.A * self._exposure, sums.B * self._exposure)
        return *of_weights, sums

    def value(self, W: Array, H: Array) -> float:
        exposed = H if self._exposure is None else H * self._exposure
        return self._value(W, exposed) - self.dropped

    @abstractmethod
    def _sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        """`sums` for exposed activations."""

    @abstractmethod
    def _value(self, W: Array, H: Array) -> float:
        """The value of exposed activations, by the formulas of the likelihood."""

    def hold(self, W: Array | Features) -> Features:
        return W if isinstance(W, Features) else Block(self, W)

    def blank(self) -> Features:
        return Block(self)

    def store(self, checkpoint: str | PathLike[str] | None) -> WeightStore | None:
        return None if checkpoint is None else FileStore(checkpoint, self)
