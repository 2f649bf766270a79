"""All features: what solvers ask of data and weights, as questions to blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._typing import Array
from .base import Observations, Sums

if TYPE_CHECKING:
    from .crew import Crew

_MAX_STEPS = 300
# Newton's error after a step of this relative size is its square, below rounding.
_LAST_STEP = 1e-9


class Look(NamedTuple):
    """What a path sees at a point: the sums for H, Σ_f y² and the multipliers of Σ_f w = 1."""

    sums: Sums
    totals: Array
    multipliers: Array


class Features:
    """Weights W in the place where they are, and everything that is done with them.

    Parameters
    ----------
    observations : Observations
        Of all features.
    crew : Crew
        Of the blocks that hold the weights.
    """

    def __init__(self, observations: Observations, crew: Crew) -> None:
        self.observations = observations
        self.crew = crew
        # Where features share B of the sums for H, it is known from Σ_f w: K numbers to send.
        self._brief = observations.shared and crew.n_blocks > 1

    def array(self) -> Array:
        """W, (F, K), here."""
        return self.crew.gather("weights")

    def randomise(self, rng: np.random.Generator, n_components: int) -> None:
        """Random weights whose columns sum to one."""
        self.crew.tell("divide", self.crew.add("randomise", rng, n_components))

    def only_active(self, smoothing: float) -> Array:
        """No weight for features that play no part, see `Problem.active`; returns Σ_f w before.

        Columns sum to one after it.
        """
        mass = self.crew.add("only_active", bool(smoothing))
        self.crew.tell("divide", mass)
        return mass

    def cross(self, other: Features) -> Array:
        """Σ_f w w′, (K, K′), with the weights w′ of another solution."""
        return self.crew.add("cross", other.crew)

    def drop(self) -> None:
        """These weights are not needed any more."""
        self.crew.drop()

    def reorder(self, order: Array) -> None:
        """Put components into another order."""
        self.crew.tell("reorder", order)

    def value(self, H: Array) -> float:
        """−log p(V | WH) without the constants that the likelihood's docstring names."""
        return float(self.crew.add("value", H))

    def log_sum(self) -> float:
        """Σ log w over positive weights."""
        return float(self.crew.add("log_sum"))

    def sums(self, H: Array) -> Sums:
        """For H, (K, N)."""
        return self._sums(*self.crew.add("sums", H, self._brief))

    def _sums(self, A: Array, B: Array) -> Sums:
        return Sums(A, np.multiply.outer(B, self.observations.exposed) if self._brief else B)

    def update(self, H: Array, smoothing: float) -> None:
        """Minimise the bound in W over the simplex, (W1)–(W3)."""
        if self.observations.shared:
            totals = self.crew.add("multiply", H, smoothing)
        else:
            totals = self._root(H, smoothing)
        self.crew.tell("divide", totals)

    def _root(self, H: Array, smoothing: float) -> Array:
        """(W2) by Newton's method, see `kernels/simplex.py`."""
        crew = self.crew
        lowest = crew.least("bound", H, smoothing)
        used = np.isfinite(lowest)
        m = crew.most("left", lowest)
        wanted = used.copy()
        for _ in range(_MAX_STEPS):
            total, slope = crew.add("roots", lowest, m, wanted)
            step = np.zeros_like(m)
            step[wanted] = (total * (total - 1.0))[wanted] / slope[wanted]
            m = m + step
            wanted = wanted & (np.abs(step) > _LAST_STEP * m)
            if not wanted.any():
                break
        crew.add("roots", lowest, m, used)
        return crew.add("above_floor", used)

    # A path of L-BFGS, see `solvers/accelerated.py`.

    def begin(self, size: int) -> None:
        """Stand at W, with memory for some moves."""
        self.crew.tell("begin", size)

    def turn(self, used: Array, shares: Array) -> Array:
        return self.crew.add("turn", used, shares)

    def aim(self, used: Array, shares: Array, scale: float) -> None:
        self.crew.tell("aim", used, shares, scale)

    def move(self, length: float, shrink: float) -> Array:
        return self.crew.add("move", length, shrink)

    def stay(self) -> Array:
        return self.crew.add("stay")

    def look(self, H: Array, totals: Array, smoothing: float) -> Look:
        A, B, multipliers = self.crew.add("look", H, totals, smoothing, self._brief)
        return Look(self._sums(A, B), totals, multipliers)

    def bend(self, look: Look, smoothing: float, row: int, used: Array) -> Array:
        return self.crew.add("bend", look.multipliers, look.totals, smoothing, row, used)

    def accept(self) -> None:
        self.crew.tell("accept")

    def decode(self, totals: Array) -> None:
        self.crew.tell("decode", totals)

    def commit(self) -> None:
        self.crew.tell("commit")

    def undo(self) -> None:
        self.crew.tell("undo")

    def leave(self) -> None:
        self.crew.tell("leave")
