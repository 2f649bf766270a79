"""The features of data in blocks: answers of the blocks, added up."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array
from ..components import ShardedComponents, block_file, write_header
from ..observations.base import Observations, Sums
from ..observations.features import Evaluation, Features
from .questions import DATA, Question, Reference
from .team import Slot

# Bytes of W that are brought here from the blocks.
MOST_HERE = 2**30


def too_large(n_features: int, n_components: int) -> bool:
    """Whether W is too large for one place."""
    return 8 * n_features * n_components > MOST_HERE


class SplitFeatures(Features):
    """Weights that lie with their blocks.

    Parameters
    ----------
    observations : Observations
        Of all features.
    slot : Slot
        The weights among those that the blocks hold.
    """

    local = False

    def __init__(self, observations: Observations, slot: Slot) -> None:
        self.observations = observations
        self.slot = slot
        # Where features share B of the sums for H, it is known from Σ_f w: K numbers to send.
        self._brief = observations.shared and slot.n_blocks > 1

    # Weights.

    def array(self) -> Array:
        return self.slot.gather("array")

    def result(self) -> Any:
        n_components = len(self.totals())
        if not too_large(self.observations.shape[0], n_components):
            return self.array()
        folder = Path(tempfile.mkdtemp(prefix="temporalnmf-W-"))
        found = self._written(folder, n_components)
        # They are gone with the model, unless it was saved.
        weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
        return found

    def _written(self, folder: Path, n_components: int) -> ShardedComponents:
        """Have the blocks write their weights."""
        team = self.slot.team
        files = {block: block_file(folder, block) for block in range(team.n_blocks)}
        team.tell(Question(self.slot.number, "write", own=files))
        self.totals()  # the answer says that all is written
        write_header(folder, n_components, team.bounds.tolist())
        return ShardedComponents.open(folder)

    def fill_random(self, rng: np.random.Generator, n_components: int) -> Array:
        return self.slot.add("fill_random", rng, n_components)

    def perturbed(self, rng: np.random.Generator) -> Features:
        (own,) = rng.spawn(1)
        self.divide(self.slot.add("shake", own))
        return self

    def clear_inactive(self, seen: bool) -> Array:
        return self.slot.add("clear_inactive", seen)

    def divide(self, totals: Array) -> None:
        self.slot.tell("divide", totals)

    def totals(self) -> Array:
        return self.slot.add("totals")

    def reorder(self, order: Array) -> None:
        self.slot.tell("reorder", order)

    def cross(self, other: SplitFeatures) -> Array:
        return self.slot.add("cross", other.slot)

    def drop(self) -> None:
        self.slot.drop()

    def fits(self, n_components: int, on_path: bool) -> bool:
        return bool(self.slot.least("fits", n_components, on_path))

    # Sums over features, for H.

    def value(self, H: Array) -> float:
        return float(self.slot.add("value", H))

    def log_sum(self) -> float:
        return float(self.slot.add("log_sum"))

    def sums(self, H: Array) -> Sums:
        return self._sums(*self.slot.add("brief_sums" if self._brief else "sums", H))

    def _sums(self, A: Array, B: Array) -> Sums:
        return Sums(A, np.multiply.outer(B, self.observations.exposed) if self._brief else B)

    def curvature(self, H: Array, expected: bool) -> tuple[Array, Array]:
        about = (Reference(self.slot.number), H, expected)
        blocks, slopes = self.slot.team.ask(Question(DATA, "curvature", about, "add"))
        return blocks, slopes

    # Majorize–minimize.

    def multiply(self, H: Array, smoothing: float) -> Array:
        return self.slot.add("multiply", H, smoothing)

    def bound(self, H: Array, smoothing: float) -> Array:
        return self.slot.least("bound", H, smoothing)

    def left(self, lowest: Array) -> Array:
        return self.slot.most("left", lowest)

    def roots(self, lowest: Array, m: Array, wanted: Array) -> Array:
        return self.slot.add("roots", lowest, m, wanted)

    def above_floor(self, wanted: Array) -> Array:
        return self.slot.add("above_floor", wanted)

    # L-BFGS.

    def begin_path(self, size: int) -> None:
        self.slot.tell("begin_path", size)

    def apply_metric(self, used: Array, shares: Array) -> Array:
        return self.slot.add("apply_metric", used, shares)

    def set_direction(self, used: Array, shares: Array, scale: float) -> None:
        self.slot.tell("set_direction", used, shares, scale)

    def try_step(self, length: float, shrink: float) -> Array:
        return self.slot.add("try_step", length, shrink)

    def try_current(self) -> Array:
        return self.slot.add("try_current")

    def evaluate(self, H: Array, totals: Array, smoothing: float) -> Evaluation:
        name = "brief_sums_at_trial" if self._brief else "sums_at_trial"
        A, B, multipliers = self.slot.add(name, H, totals, smoothing)
        return Evaluation(self._sums(A, B), totals, multipliers)

    def differentiate(
        self, multipliers: Array, totals: Array, smoothing: float, row: int, used: Array
    ) -> Array:
        return self.slot.add("differentiate", multipliers, totals, smoothing, row, used)

    def accept(self) -> None:
        self.slot.tell("accept")

    def set_weights(self, totals: Array) -> None:
        self.slot.tell("set_weights", totals)

    def commit(self) -> None:
        self.slot.tell("commit")

    def undo(self) -> None:
        self.slot.tell("undo")

    def end_path(self) -> None:
        self.slot.tell("end_path")
