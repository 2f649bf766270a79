"""A block that draws its weights, next to its data."""

from __future__ import annotations

import json

import numpy as np
from scipy.special import gammaln

from .._typing import Array
from ..observations.block import Block
from ..sampling.gibbs import LEAST, DrawnBlock
from ..sampling.learning import Tally, tallied
from .block_data import BlockData


class GibbsBlock(DrawnBlock):
    """A block of a Gibbs run; see `DrawnBlock`."""

    def __init__(
        self, data: BlockData, exposure: Array, W: Array, seed: np.random.SeedSequence
    ) -> None:
        super().__init__(data.used(), exposure, W, seed, data.threads)
        self._observations = data.observations
        self._large = np.empty(0)

    @classmethod
    def begin(
        cls, data: BlockData, start: Block, exposure: Array, seed: np.random.SeedSequence
    ) -> GibbsBlock:
        """Start at the weights of a posterior mode; columns need not sum to one after it."""
        W = np.maximum(start.W, LEAST) * data.observations.seen[:, None]
        key = (*seed.spawn_key, data.first)
        return cls(data, exposure, W, np.random.SeedSequence(seed.entropy, spawn_key=key))

    def totals(self) -> Array:
        """Σ_f w, (K,)."""
        return self.W.sum(axis=0)

    def value(self, H: Array) -> float:
        """The part of this block in −log p(V | WH)."""
        held = self._observations
        return held.value(np.array(self.W, order=held.order), H)

    def seen(self) -> Array:
        """Features with any observed entry."""
        return self.active

    def tally(self) -> Tally:
        """Statistics of the counts of components that the smoothing depends on."""
        found, self._large = tallied(self._parts[self.active])
        return found

    def of_large(self, s: float) -> float:
        """Σ log Γ(s + y) over large counts y."""
        return float(gammaln(s + self._large).sum())

    def state(self) -> dict[str, Array]:
        """Everything that later responses depend on, between two sweeps."""
        streams = np.array(json.dumps(self.streams()))
        return {"W": self.W, "exposure": self.exposure, "streams": streams}

    @classmethod
    def restored(cls, data: BlockData, state: dict[str, Array]) -> GibbsBlock:
        """A block in an earlier state."""
        found = cls(data, state["exposure"], state["W"], np.random.SeedSequence(0))
        found.resume((state["W"], json.loads(str(state["streams"]))))
        return found
