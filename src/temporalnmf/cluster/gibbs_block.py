"""A block that draws its weights, next to its data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaln

from .._typing import Array
from ..likelihoods.base import Likelihood
from ..observations.block import Block, n_components_of
from ..runtime.archives import json_of
from ..runtime.states import NON_NEGATIVE, StateError, arrays_of, restore
from ..sampling.gibbs import LEAST, DrawnBlock
from ..sampling.learning import Tally, tallied
from .block_data import BlockData


@dataclass
class _BlockState:
    """Everything that later responses depend on, between two sweeps; streams are JSON."""

    W: Array = field(metadata=NON_NEGATIVE)
    exposure: Array = field(metadata=NON_NEGATIVE)
    streams: str


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
        """Start at the weights of a posterior mode; columns need not sum to one."""
        W = np.maximum(start.W, LEAST) * data.observations.seen[:, None]
        key = (*seed.spawn_key, data.first)
        return cls(data, exposure, W, np.random.SeedSequence(seed.entropy, spawn_key=key))

    def totals(self) -> Array:
        """Σ_f w, (K,)."""
        return self.W.sum(axis=0)

    def value(self, H: Array, likelihood: Likelihood) -> float:
        """The part of this block in −log p(V | WH)."""
        held = self._observations
        held.use(likelihood)
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
        """The `_BlockState` as arrays."""
        return arrays_of(_BlockState(self.W, self.exposure, json.dumps(self.streams())))

    @classmethod
    def restored(cls, data: BlockData, arrays: dict[str, Array]) -> GibbsBlock:
        """A block in an earlier state; refused if it cannot be the state of such a block."""
        F, N = data.observations.shape
        state = _BlockState(np.empty((F, n_components_of(arrays, F))), np.empty(N), "")
        restore(state, arrays)
        found = cls(data, state.exposure, state.W, np.random.SeedSequence(0))
        try:
            found.resume((state.W, json_of(state.streams.encode())))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise StateError("its random streams are invalid") from error
        return found
