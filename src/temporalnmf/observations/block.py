"""Some of the features: their data, their weights W, and what solvers ask of both.

Given H, features have to do with each other only through sums: over all of them for H, per
component for the weights, which sum to one. A block answers with the sums over its own features,
and whoever asks adds them up over all blocks. So the data may be one block in memory, which is the
common case, or many, read from disk one after the other, or held by the workers of a cluster.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._typing import Array
from ..kernels.quasi_newton import multipliers, squares, weight_slopes, weights
from ..kernels.simplex import (
    column_sums,
    divide_columns,
    left_of_root,
    log_sum,
    lowest_rates,
    multiplied,
    raise_to_floor,
    weights_at,
)
from ..likelihoods.base import Majorizer
from ..runtime.archives import refuse_negative, refuse_unlike
from ..runtime.files import written_whole
from .base import Observations, Sums
from .starts import random_rows
from .track import Diagonal, Limits, Track, memory_of

_NOWHERE = Track(np.empty(0), 0)


class Block:
    """A block of features.

    Parameters
    ----------
    observations : Observations
        Its data.
    W : array, (F, K), default=None
        Its weights, in the order that the observations want. They are written to.
    first : int, default=0
        Number of its first feature.
    """

    def __init__(self, observations: Observations, W: Array | None = None, first: int = 0) -> None:
        self.observations, self.first = observations, first
        self.W: Array = np.empty((0, 0)) if W is None else W
        self._bound: Majorizer
        self._sums: Sums
        self._track = _NOWHERE
        self._before: Array

    # Weights.

    def hold(self, W: Array) -> None:
        """Take these weights, (F, K)."""
        self.W = np.array(W, order=self.observations.order)

    def weights(self) -> Array:
        """W, (F, K)."""
        return self.W

    def randomise(self, rng: np.random.Generator, n_components: int) -> Array:
        """Random weights; returns Σ_f w, (K,)."""
        F = self.observations.shape[0]
        self.hold(random_rows(rng, self.first, self.first + F, n_components))
        return column_sums(self.W)

    def shake(self, rng: np.random.Generator) -> Array:
        """Weights times random factors; returns Σ_f w, (K,)."""
        F, K = self.W.shape
        self.hold(self.W * random_rows(rng, self.first, self.first + F, K))
        return column_sums(self.W)

    def only_active(self, seen: bool) -> Array:
        """No weight for features never counted, or never seen; returns Σ_f w, (K,)."""
        active = self.observations.seen if seen else self.observations.counted
        self.W[~active] = 0.0
        return column_sums(self.W)

    def divide(self, totals: Array) -> None:
        """W / totals: so do columns of W sum to one, if these are the totals of all blocks."""
        divide_columns(self.W, totals)

    def reorder(self, order: Array) -> None:
        """Put components into another order."""
        self.W = np.array(self.W[:, order], order=self.observations.order)

    def cross(self, other: Block) -> Array:
        """Σ_f w w′, (K, K′), with other weights w′ of the same features."""
        return np.asarray(self.W.T @ other.W)

    def write(self, path: Path) -> None:
        """Write W to a file."""
        with written_whole(path) as partial, partial.open("wb") as file:
            np.save(file, np.ascontiguousarray(self.W), allow_pickle=False)

    # Sums over features, for H.

    def value(self, H: Array) -> float:
        """Its part of −log p(V | WH)."""
        return self.observations.value(self.W, H)

    def log_sum(self) -> float:
        """Σ log w over positive weights."""
        return log_sum(self.W)

    def sums(self, H: Array, brief: bool) -> tuple[Array, Array]:
        """A and B of `Sums` for H; in brief, Σ_f w (K,), which B follows from, in its place."""
        (sums,) = self.observations.sums(self.W, H, "h")
        return sums.A, column_sums(self.W) if brief else sums.B

    # Majorize–minimize, (W1)–(W3).

    def multiply(self, H: Array, smoothing: float) -> Array:
        """(W1): W becomes p, not yet divided by its sums, which are returned."""
        (sums,) = self.observations.sums(self.W, H, "w")
        return multiplied(sums.A, smoothing, self.W)

    def bound(self, H: Array, smoothing: float) -> Array:
        """(W2): make the majorizer in W; returns min q (K,)."""
        (sums,) = self.observations.sums(self.W, H, "w")
        self._bound = self.observations.likelihood.majorizer(*sums, self.W)
        return lowest_rates(*self._bound, smoothing, self.W)

    def left(self, lowest: Array) -> Array:
        """(W2): a multiplier on the left of the root; the largest of all blocks is wanted."""
        return left_of_root(*self._bound, lowest)

    def roots(self, lowest: Array, m: Array, wanted: Array) -> Array:
        """(W2): W at some multipliers; returns Σ_f w and −∂/∂m of it, (2, K)."""
        return weights_at(*self._bound, lowest, m, wanted, self.W)

    def above_floor(self, wanted: Array) -> Array:
        """(W2): the end of it; returns Σ_f w."""
        return raise_to_floor(self._bound.p, self._bound.r, wanted, self.W)

    # A path of L-BFGS in the roots y, W = y²/Σ_f y².

    def begin(self, size: int) -> None:
        """Stand at W, with memory for some moves."""
        self._before = self.W.copy(order="K")
        self._track = Track(np.sqrt(self.W).ravel(order="K"), size)

    def stay(self) -> Array:
        """The next look is at where the path is; returns Σ_f y²."""
        self._track.stay()
        return squares(self._matrix(self._track.x))

    def turn(self, used: Array, shares: Array) -> Array:
        """See `Track.turn`."""
        return self._track.turn(used, shares)

    def aim(self, used: Array, shares: Array, scale: float) -> None:
        """See `Track.aim`."""
        self._track.aim(used, shares, scale)

    def move(self, length: float, shrink: float) -> Array:
        """Try a point on the way; returns Σ_f y²."""
        self._track.move(length, Limits(self.W.size, shrink))
        return squares(self._matrix(self._track.there))

    def look(
        self, H: Array, totals: Array, smoothing: float, brief: bool
    ) -> tuple[Array, Array, Array]:
        """W, and the sums for H, at the point that is tried; and multipliers of Σ_f w = 1."""
        weights(self._matrix(self._track.there), totals, self.W)
        self._sums, (A, B) = self.observations.sums(self.W, H, "wh")
        found = multipliers(self.W, *self._sums, smoothing)
        return A, column_sums(self.W) if brief else B, found

    def bend(
        self, multipliers: Array, totals: Array, smoothing: float, row: int, used: Array
    ) -> Array:
        """Slope and metric there; see `Track.arrive`."""
        slope, curvature = np.empty((2, self.W.size))
        weight_slopes(
            self._matrix(self._track.there), self.W, *self._sums, smoothing, totals, multipliers,
            self._matrix(slope), self._matrix(curvature),
        )  # fmt: skip
        return self._track.arrive(slope, Diagonal(curvature), row, used)

    def accept(self) -> None:
        """Be at the point that was tried."""
        self._track.accept()

    def decode(self, totals: Array) -> None:
        """W of where the path is."""
        weights(self._matrix(self._track.x), totals, self.W)

    def commit(self) -> None:
        """W is good."""
        self._before[...] = self.W

    def undo(self) -> None:
        """W as it was when it was last good."""
        self.W[...] = self._before

    def leave(self) -> None:
        """The end of the path: what was remembered takes much more memory than W."""
        self._track, self._before = _NOWHERE, self.W

    # Everything that later answers depend on, between two iterations.

    def state(self) -> dict[str, Array]:
        """As arrays."""
        found = {"W": self.W}
        if self._track is not _NOWHERE:
            found |= {"before": self._before, **self._track.state()}
        return found

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from there; refused if it cannot be of such a block."""
        F, N = self.observations.shape
        K = state["W"].shape[-1] if "W" in state and state["W"].ndim == 2 else 0
        form = dict.fromkeys(("W", "before") if len(state) > 1 else ("W",), np.empty((F, K)))
        refuse_unlike(state, form)
        refuse_negative(state, form)
        self.hold(state["W"])
        if len(state) > 1:
            self._before = np.array(state["before"], order=self.observations.order)
            self._track = Track(np.sqrt(self.W).ravel(order="K"), memory_of(K, N))
            self._track.restore(state)

    def totals(self) -> Array:
        """Σ_f w, (K,)."""
        return np.asarray(self.W.sum(axis=0))

    def unlike(self, n_components: int, on_path: bool) -> Array:
        """One if W has another number of components, or is not on a path but should be."""
        lost = on_path and self._track is _NOWHERE
        return np.array([lost or self.W.shape[1] != n_components], dtype=float)

    def _matrix(self, vector: Array) -> Array:
        """A vector as (F, K), in the order of W."""
        F, K = self.W.shape
        fortran = self.observations.order == "F"
        return vector.reshape(K, F).T if fortran else vector.reshape(F, K)
