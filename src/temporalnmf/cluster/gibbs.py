"""Draws on data in blocks: weights, counts and their parts stay where they are.

Per sweep H goes out and Σ_f v_fkn comes back; columns of W are divided by sums of K numbers. Each
block has random streams of its own, so draws do not depend on who holds it.
"""

from __future__ import annotations

import json
from itertools import chain, pairwise
from typing import Any

import numpy as np
from scipy.special import gammaln

from .._typing import Array
from ..data.series import Series
from ..observations.base import Observations
from ..observations.block import Block
from ..observations.features import Features
from ..runtime.threads import MOST_SHARDS
from ..sampling.conditionals import First
from ..sampling.gibbs import DrawnBlock, Sweeps, check_counts
from ..sampling.learning import Learned, Smoothing, Tally, tallied
from ..sampling.sharing import _MOST_FEATURES
from .bench import DATA, BlockData, Question
from .series import Slot, SplitSeries

# A weight to start from: draws would not move away from zero.
LEAST = 1e-12


class HeldBlock(DrawnBlock):
    """A block beside its data.

    Parameters
    ----------
    data : BlockData
    exposure, W, seed
        See `DrawnBlock`.
    """

    def __init__(
        self, data: BlockData, exposure: Array, W: Array, seed: np.random.SeedSequence
    ) -> None:
        super().__init__(data.steps.of(data.piece.series()), exposure, W, seed, data.workers)
        self._observations = data.observations
        self._large = np.empty(0)

    @classmethod
    def begun(
        cls, data: BlockData, start: Block, exposure: Array, seed: np.random.SeedSequence
    ) -> HeldBlock:
        """At the weights of another, whose columns need not sum to one after it."""
        W = np.maximum(start.W, LEAST) * data.observations.seen[:, None]
        key = (*seed.spawn_key, data.first)
        return cls(data, exposure, W, np.random.SeedSequence(seed.entropy, spawn_key=key))

    def totals(self) -> Array:
        """Σ_f w, (K,)."""
        return self.W.sum(axis=0)

    def value(self, H: Array) -> float:
        """Its part of −log p(V | WH)."""
        held = self._observations
        return held.value(np.array(self.W, order=held.order), H)

    def seen(self) -> Array:
        """Features that play a part."""
        return self.active

    def tally(self) -> Tally:
        """What the smoothing asks of the parts."""
        found, self._large = tallied(self._parts[self.active])
        return found

    def of_large(self, s: float) -> float:
        """Σ log Γ(s + y) of parts that are large."""
        return float(gammaln(s + self._large).sum())

    def state(self) -> dict[str, Array]:
        """Everything that later answers depend on, between two sweeps."""
        streams = np.array(json.dumps(self.streams()))
        return {"W": self.W, "exposure": self.exposure, "streams": streams}

    @classmethod
    def restored(cls, data: BlockData, state: dict[str, Array]) -> HeldBlock:
        """Go on from there."""
        found = cls(data, state["exposure"], state["W"], np.random.SeedSequence(0))
        found.resume((state["W"], json.loads(str(state["streams"]))))
        return found


class SplitGibbs(Sweeps):
    """A run on data in blocks.

    Parameters
    ----------
    series : SplitSeries
        Counts.
    law, H, smoothing, first
        See `Sweeps`.
    start : Features
        Weights to start from.
    seed : numpy SeedSequence
    """

    def __init__(
        self,
        series: SplitSeries,
        law: Learned,
        start: Features,
        H: Array,
        smoothing: Smoothing,
        first: First,
        seed: np.random.SeedSequence,
    ) -> None:
        of_blocks, of_run = seed.spawn(2)
        exposure = np.where(series.observed, series.exposure, 0.0)
        super().__init__(law, H, smoothing, first, exposure, np.random.default_rng(of_run), 0)
        self._crew = Slot(series.team)
        self._n_active = int(self._crew.add("draw_here", start.crew, exposure, of_blocks))
        self._divide(self._crew.add("totals"))
        # Of many features nothing is shared, and nobody has to know which play a part.
        few = self._n_active <= _MOST_FEATURES
        self._active = self._crew.gather("seen") if few else None

    def weights(self, kind: Any = float) -> Array:
        return self._crew.gather("weights", kind)

    def count_active(self) -> int:
        return self._n_active

    def log_sum(self) -> float:
        return float(self._crew.add("log_sum"))

    def streams(self) -> list[Any]:
        return list(chain.from_iterable(self._crew.ask("streams", (), "each")))

    def resume(self, where: tuple[Array, list[Any]]) -> None:
        W, streams = where
        own = {
            b: (W[i:j], streams[b * MOST_SHARDS : (b + 1) * MOST_SHARDS])
            for b, (i, j) in enumerate(pairwise(self._crew.team.bounds))
        }
        self._crew.team.tell(Question(self._crew.number, "resume", own=own))

    def drop(self) -> None:
        self._crew.drop()

    def _value(self, observations: Observations) -> float:
        return float(self._crew.add("value", self.H))

    def _allocate(self) -> Array:
        return self._crew.add("allocate", self.H)

    def _draw_components(self) -> None:
        crew, smoothing = self._crew, self.smoothing
        if smoothing.learned:
            tally = Tally(*crew.add("tally"))
            smoothing.draw_given(tally, lambda s: float(crew.add("of_large", s)), self._rng)
        self._divide(crew.add("draw_weights", smoothing.value))

    def _divide(self, totals: Array) -> None:
        self._crew.tell("divide", totals)

    def _share_components(self) -> None:
        if self._active is not None and len(self.H) > 1:
            W = self.weights()
            self._share(W, self._active)
            self._crew.hold(W)


def check_all_counts(series: Series | SplitSeries) -> None:
    """Refuse weights, and numbers that are not whole, in any block."""
    if isinstance(series, SplitSeries):
        series.team.ask(Question(DATA, "drawable", (), "add"))
    else:
        check_counts(series)
