"""The features of data in blocks: responses of the blocks, added up."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np

from .._typing import Array
from ..components import ShardedComponents, block_file, write_header
from ..observations.base import Observations, Sums
from ..observations.block import Block
from ..observations.features import Evaluation, Features
from ..observations.parts import Parts
from .block_data import BlockData
from .executor import Slot

P = ParamSpec("P")
T = TypeVar("T")

# Largest W, in bytes, that is gathered from the blocks.
MOST_HERE = 2**30


def too_large(n_features: int, n_components: int) -> bool:
    """Whether W is too large for this process."""
    return 8 * n_features * n_components > MOST_HERE


def _sum(method: Callable[Concatenate[Block, P], T]) -> Callable[Concatenate[SplitFeatures, P], T]:
    """The method of `Features` that adds up the results of all blocks."""

    def call(features: SplitFeatures, /, *arguments: P.args, **_: P.kwargs) -> T:
        return features.slot.call(method, arguments, "add")

    return call


def _all(
    method: Callable[Concatenate[Block, P], None],
) -> Callable[Concatenate[SplitFeatures, P], None]:
    """The method of `Features` that calls a method without a result of all blocks."""

    def call(features: SplitFeatures, /, *arguments: P.args, **_: P.kwargs) -> None:
        features.slot.post(method, arguments)

    return call


class SplitFeatures(Features):
    """Weights that stay with their blocks, in the slot `slot`."""

    local = False

    def __init__(self, observations: Observations, slot: Slot) -> None:
        self.observations = observations
        self.slot = slot
        # If features share B of the sums for H, it follows from Σ_f w: blocks send K numbers.
        self._brief = observations.shared and slot.executor.n_blocks > 1

    # Weights.

    fill_random = _sum(Block.fill_random)
    clear_inactive = _sum(Block.clear_inactive)
    totals = _sum(Block.totals)
    divide = _all(Block.divide)
    reorder = _all(Block.reorder)

    def array(self) -> Array:
        return self.slot.gather(Block.array)

    def result(self) -> Array | ShardedComponents:
        n_components = len(self.totals())
        if not too_large(self.observations.shape[0], n_components):
            return self.array()
        folder = Path(tempfile.mkdtemp(prefix="temporalnmf-W-"))
        found = self._written(folder, n_components)
        # The files are deleted with the model, unless it was saved.
        weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
        return found

    def _written(self, folder: Path, n_components: int) -> ShardedComponents:
        """Let the blocks write their weights to a folder."""
        executor = self.slot.executor
        files = {block: block_file(folder, block) for block in range(executor.n_blocks)}
        self.slot.tell_each(Block.write, files)
        self.totals()  # returns after all files are written
        write_header(folder, n_components, executor.bounds.tolist())
        return ShardedComponents.open(folder)

    def perturbed(self, rng: np.random.Generator) -> Features:
        (own,) = rng.spawn(1)
        self.divide(self.slot.add(Block.shake, own))
        return self

    def cross(self, other: SplitFeatures) -> Array:
        return self.slot.add_with(Block.cross, other.slot)

    def drop(self) -> None:
        self.slot.drop()

    def fits(self, n_components: int, on_path: bool) -> bool:
        return bool(self.slot.min(Block.fits, n_components, on_path))

    # Sums over features, for H.

    def value(self, H: Array) -> float:
        return float(self.slot.add(Block.value, H))

    def log_sum(self) -> float:
        return float(self.slot.add(Block.log_sum))

    def sums(self, H: Array) -> Sums:
        return self._sums(*self.slot.add(Block.brief_sums if self._brief else Block.sums, H))

    def _sums(self, A: Array, B: Array) -> Sums:
        if not self._brief:
            return Sums(A, B)
        observations = self.observations
        return Sums(A, np.multiply.outer(observations.likelihood.cost * B, observations.exposed))

    def curvature(self, H: Array, expected: bool) -> tuple[Array, Array]:
        return self.slot.executor.data.add_with(BlockData.curvature, self.slot, H, expected)

    def parts(self, H: Array) -> Parts:
        return Parts(*self.slot.add(Block.parts, H))

    # Majorize–minimize.

    multiply = _sum(Block.multiply)
    roots = _sum(Block.roots)
    above_floor = _sum(Block.above_floor)

    def bound(self, H: Array, smoothing: float) -> Array:
        return self.slot.min(Block.bound, H, smoothing)

    def left(self, lowest: Array) -> Array:
        return self.slot.max(Block.left, lowest)

    def widen(self, smoothing: float, room: float) -> Array:
        return self.slot.min(Block.widen, smoothing, room)

    # L-BFGS.

    begin_path = _all(Block.begin_path)
    apply_metric = _sum(Block.apply_metric)
    set_direction = _all(Block.set_direction)
    try_step = _sum(Block.try_step)
    try_current = _sum(Block.try_current)
    differentiate = _sum(Block.differentiate)
    accept = _all(Block.accept)
    set_weights = _all(Block.set_weights)
    commit = _all(Block.commit)
    undo = _all(Block.undo)
    end_path = _all(Block.end_path)

    def evaluate(self, H: Array, totals: Array, smoothing: float) -> Evaluation:
        given = H, totals, smoothing, self._brief
        A, B, multipliers = self.slot.add(Block.sums_at_trial, *given)
        return Evaluation(self._sums(A, B), totals, multipliers)
