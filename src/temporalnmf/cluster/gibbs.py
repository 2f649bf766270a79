"""Draws on data in blocks: weights, counts and their parts stay where they are.

Per sweep H goes out and Σ_f v_fkn comes back; columns of W are divided by sums of K numbers. Each
block has random streams of its own, so draws do not depend on who holds it.
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

import numpy as np

from .._typing import Array
from ..chains.base import First
from ..observations.base import Observations
from ..runtime.threads import MOST_SHARDS
from ..sampling.gibbs import Sweeps
from ..sampling.learning import Learned, Smoothing, Tally
from ..sampling.sharing import _MOST_FEATURES
from .questions import Question
from .team import Slot, Team


class SplitGibbs(Sweeps):
    """A run on data in blocks.

    Parameters
    ----------
    team : Team
        Holds the counts.
    exposure : array, (N,)
        Zero for steps that are missing.
    law, H, smoothing, first
        See `Sweeps`.
    start : Slot
        Weights to start from.
    seed : numpy SeedSequence
    """

    def __init__(
        self,
        team: Team,
        exposure: Array,
        law: Learned,
        start: Slot,
        H: Array,
        smoothing: Smoothing,
        first: First,
        seed: np.random.SeedSequence,
    ) -> None:
        of_blocks, of_run = seed.spawn(2)
        super().__init__(law, H, smoothing, first, exposure, np.random.default_rng(of_run), 0)
        self._slot = Slot(team)
        self._n_active = int(self._slot.add("draw_here", start, exposure, of_blocks))
        self._divide(self._slot.add("totals"))
        # Of many features nothing is shared, and nobody has to know which play a part.
        few = self._n_active <= _MOST_FEATURES
        self._active = self._slot.gather("seen") if few else None

    def weights(self, kind: Any = float) -> Array:
        return self._slot.gather("weights", kind)

    def count_active(self) -> int:
        return self._n_active

    def log_sum(self) -> float:
        return float(self._slot.add("log_sum"))

    def streams(self) -> list[Any]:
        return list(chain.from_iterable(self._slot.ask("streams", (), "each")))

    def resume(self, where: tuple[Array, list[Any]]) -> None:
        W, streams = where
        own = {
            b: (W[i:j], streams[b * MOST_SHARDS : (b + 1) * MOST_SHARDS])
            for b, (i, j) in enumerate(pairwise(self._slot.team.bounds))
        }
        self._slot.team.tell(Question(self._slot.number, "resume", own=own))

    def drop(self) -> None:
        self._slot.drop()

    def _value(self, observations: Observations) -> float:
        return float(self._slot.add("value", self.H))

    def _allocate(self) -> Array:
        return self._slot.add("allocate", self.H)

    def _draw_components(self) -> None:
        slot, smoothing = self._slot, self.smoothing
        if smoothing.learned:
            tally = Tally(*slot.add("tally"))
            smoothing.draw_given(tally, lambda s: float(slot.add("of_large", s)), self._rng)
        self._divide(slot.add("draw_weights", smoothing.value))

    def _divide(self, totals: Array) -> None:
        self._slot.tell("divide", totals)

    def _share_components(self) -> None:
        if self._active is not None and len(self.H) > 1:
            W = self.weights()
            self._share(W, self._active)
            self._slot.hold(W)
