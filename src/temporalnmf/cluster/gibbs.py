"""Gibbs sampling on data in blocks: weights and counts stay with their blocks.

Each sweep sends the activations and receives Σ_f v_fkn; columns of W are normalised by K sums.
Each block has its own random streams, so draws do not depend on which worker holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, pairwise

import numpy as np
from numpy.typing import DTypeLike

from .._typing import Array
from ..chains.base import First
from ..likelihoods.base import Likelihood
from ..runtime.threads import MOST_RANGES
from ..sampling.gibbs import Sweeps
from ..sampling.learning import Parameters, Tally
from ..sampling.sharing import _MOST_FEATURES
from .executor import Executor, Slot
from .gibbs_block import GibbsBlock


class SplitGibbs(Sweeps):
    """A run on data in blocks; see `Sweeps`. It begins with the weights in the slot `start`."""

    def __init__(
        self,
        executor: Executor,
        exposure: Array,
        parameters: Parameters,
        start: Slot,
        H: Array,
        first: First,
        seed: np.random.SeedSequence,
    ) -> None:
        of_blocks, of_run = seed.spawn(2)
        super().__init__(parameters, H, first, exposure, np.random.default_rng(of_run), 0)
        self._slot = Slot(executor)
        self._slot.tell_with(GibbsBlock.begin, start, exposure, of_blocks)
        self._n_active = int(self._slot.add(GibbsBlock.count_active))
        self._n_positive = 0
        if parameters.likelihood.value.learns:
            self._n_positive = int(self._slot.add(GibbsBlock.count_positive))
        self._slot.tell(GibbsBlock.divide, self._slot.add(GibbsBlock.totals))
        # Components of many features are not shared, see `_share_components`.
        few = self._n_active <= _MOST_FEATURES
        self._active = self._slot.gather(GibbsBlock.seen) if few else None

    def weights(self, kind: DTypeLike = float) -> Array:
        return self._slot.gather(GibbsBlock.weights, kind)

    def count_active(self) -> int:
        return self._n_active

    def count_positive(self) -> int:
        return self._n_positive

    def log_sum(self) -> float:
        return float(self._slot.add(GibbsBlock.log_sum))

    def streams(self) -> list[Mapping[str, object]]:
        return list(chain.from_iterable(self._slot.each(GibbsBlock.streams)))

    def resume(self, where: tuple[Array, list[Mapping[str, object]]]) -> None:
        W, streams = where
        own = {
            b: (W[i:j], streams[b * MOST_RANGES : (b + 1) * MOST_RANGES])
            for b, (i, j) in enumerate(pairwise(self._slot.executor.bounds))
        }
        self._slot.tell_each(GibbsBlock.resume, own)

    def drop(self) -> None:
        self._slot.drop()

    def _value(self, likelihood: Likelihood) -> float:
        return float(self._slot.add(GibbsBlock.value, self.activations, likelihood))

    def _allocate(self) -> Array:
        return self._slot.add(
            GibbsBlock.allocate, self.activations, self.parameters.likelihood.value
        )

    def _draw_components(self) -> None:
        slot, smoothing = self._slot, self.parameters.smoothing
        if smoothing.learned:
            tally = Tally(*slot.add(GibbsBlock.tally))
            smoothing.draw_given(tally, lambda s: slot.add(GibbsBlock.of_large, s), self._rng)
        slot.tell(GibbsBlock.divide, slot.add(GibbsBlock.draw_weights, smoothing.value))

    def _share_components(self) -> None:
        if self._active is not None and len(self.H) > 1:
            W = self.weights()
            self._share(W, self._active)
            self._slot.hold(W)
