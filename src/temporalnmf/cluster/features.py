"""The features of data in blocks: responses of the blocks, added up."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

import numpy as np

from .._typing import Array
from ..components import ShardedComponents, block_file, write_header
from ..observations.base import Observations, Sums
from ..observations.block import Block
from ..observations.features import Evaluation, Features
from .block_data import BlockData
from .executor import Slot

# Largest W, in bytes, that is gathered from the blocks.
MOST_HERE = 2**30


def too_large(n_features: int, n_components: int) -> bool:
    """Whether W is too large for this process."""
    return 8 * n_features * n_components > MOST_HERE


class SplitFeatures(Features):
    """Weights that stay with their blocks.

    Parameters
    ----------
    observations : Observations
        Of all features.
    slot : Slot
        Where the blocks hold these weights.
    """

    local = False

    def __init__(self, observations: Observations, slot: Slot) -> None:
        self.observations = observations
        self.slot = slot
        # If features share B of the sums for H, it follows from Σ_f w: blocks send K numbers.
        self._brief = observations.shared and slot.executor.n_blocks > 1

    # Weights.

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

    def fill_random(self, rng: np.random.Generator, n_components: int) -> Array:
        return self.slot.add(Block.fill_random, rng, n_components)

    def perturbed(self, rng: np.random.Generator) -> Features:
        (own,) = rng.spawn(1)
        self.divide(self.slot.add(Block.shake, own))
        return self

    def clear_inactive(self, seen: bool) -> Array:
        return self.slot.add(Block.clear_inactive, seen)

    def divide(self, totals: Array) -> None:
        self.slot.tell(Block.divide, totals)

    def totals(self) -> Array:
        return self.slot.add(Block.totals)

    def reorder(self, order: Array) -> None:
        self.slot.tell(Block.reorder, order)

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
        if self._brief:
            return self._sums(*self.slot.add(Block.brief_sums, H))
        return self._sums(*self.slot.add(Block.sums, H))

    def _sums(self, A: Array, B: Array) -> Sums:
        return Sums(A, np.multiply.outer(B, self.observations.exposed) if self._brief else B)

    def curvature(self, H: Array, expected: bool) -> tuple[Array, Array]:
        return self.slot.executor.data.add_with(BlockData.curvature, self.slot, H, expected)

    # Majorize–minimize.

    def multiply(self, H: Array, smoothing: float) -> Array:
        return self.slot.add(Block.multiply, H, smoothing)

    def bound(self, H: Array, smoothing: float) -> Array:
        return self.slot.min(Block.bound, H, smoothing)

    def left(self, lowest: Array) -> Array:
        return self.slot.max(Block.left, lowest)

    def roots(self, lowest: Array, m: Array, wanted: Array) -> Array:
        return self.slot.add(Block.roots, lowest, m, wanted)

    def above_floor(self, wanted: Array) -> Array:
        return self.slot.add(Block.above_floor, wanted)

    # L-BFGS.

    def begin_path(self, size: int) -> None:
        self.slot.tell(Block.begin_path, size)

    def apply_metric(self, used: Array, shares: Array) -> Array:
        return self.slot.add(Block.apply_metric, used, shares)

    def set_direction(self, used: Array, shares: Array, scale: float) -> None:
        self.slot.tell(Block.set_direction, used, shares, scale)

    def try_step(self, length: float, shrink: float) -> Array:
        return self.slot.add(Block.try_step, length, shrink)

    def try_current(self) -> Array:
        return self.slot.add(Block.try_current)

    def evaluate(self, H: Array, totals: Array, smoothing: float) -> Evaluation:
        method = Block.brief_sums_at_trial if self._brief else Block.sums_at_trial
        A, B, multipliers = self.slot.add(method, H, totals, smoothing)
        return Evaluation(self._sums(A, B), totals, multipliers)

    def differentiate(
        self, multipliers: Array, totals: Array, smoothing: float, row: int, used: Array
    ) -> Array:
        return self.slot.add(Block.differentiate, multipliers, totals, smoothing, row, used)

    def accept(self) -> None:
        self.slot.tell(Block.accept)

    def set_weights(self, totals: Array) -> None:
        self.slot.tell(Block.set_weights, totals)

    def commit(self) -> None:
        self.slot.tell(Block.commit)

    def undo(self) -> None:
        self.slot.tell(Block.undo)

    def end_path(self) -> None:
        self.slot.tell(Block.end_path)
