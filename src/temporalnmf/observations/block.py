"""A block of features in memory: data, weights W, and the operations of solvers on both."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from ..likelihoods.local import LocalBound
from ..runtime.files import written_whole
from ..runtime.states import NON_NEGATIVE, arrays_of, named, restore
from .base import Observations, Sums
from .features import Evaluation, Features
from .lbfgs import Diagonal, Lbfgs, Limits, memory_of
from .parts import Parts, parts_of
from .starts import random_rows

_NO_PATH = Lbfgs(np.empty(0), 0)


@dataclass
class BlockState:
    """State of a block between two iterations, with that of L-BFGS while it runs."""

    W: Array = field(metadata=NON_NEGATIVE)
    before: Array | None = field(default=None, metadata=NON_NEGATIVE)
    path: Lbfgs | None = field(default=None, metadata=named(""))


class Block(Features):
    """A block of features; all of them if the data are one array in memory.

    Sums over features are over those of the block.

    Parameters
    ----------
    observations : Observations
        Its data.
    W : array, (F, K), default=None
        Its weights, in the order of the observations. They are overwritten.
    first : int, default=0
        Number of its first feature.
    """

    local = True

    def __init__(self, observations: Observations, W: Array | None = None, first: int = 0) -> None:
        self.observations, self.first = observations, first
        self.W: Array = np.empty((0, 0)) if W is None else W
        self._bound: Majorizer
        self._local: LocalBound
        self._lowest: Array
        self._sums: Sums
        self._path = _NO_PATH
        self._before: Array

    # Weights.

    def hold(self, W: Array) -> None:
        """Set the weights, (F, K)."""
        self.W = np.array(W, order=self.observations.order)

    def array(self) -> Array:
        return self.W

    def fill_random(self, rng: np.random.Generator, n_components: int) -> Array:
        F = self.observations.shape[0]
        self.hold(random_rows(rng, self.first, self.first + F, n_components))
        return column_sums(self.W)

    def perturbed(self, rng: np.random.Generator) -> Features:
        W = self.W * rng.gamma(2.0, 0.5, size=self.W.shape)
        return Block(self.observations, np.array(W / W.sum(axis=0), order=self.observations.order))

    def shake(self, rng: np.random.Generator) -> Array:
        """Multiply weights by random factors of their features; returns Σ_f w, (K,)."""
        F, K = self.W.shape
        self.hold(self.W * random_rows(rng, self.first, self.first + F, K))
        return column_sums(self.W)

    def clear_inactive(self, seen: bool) -> Array:
        active = self.observations.seen if seen else self.observations.counted
        self.W[~active] = 0.0
        return column_sums(self.W)

    def divide(self, totals: Array) -> None:
        divide_columns(self.W, totals)

    def totals(self) -> Array:
        return np.asarray(self.W.sum(axis=0))

    def reorder(self, order: Array) -> None:
        self.W = np.array(self.W[:, order], order=self.observations.order)

    def cross(self, other: Block) -> Array:
        return np.asarray(self.W.T @ other.W)

    def drop(self) -> None:
        """Nothing to do: the garbage collector frees it."""

    def fits(self, n_components: int, on_path: bool) -> bool:
        lost = on_path and self._path is _NO_PATH
        return not lost and self.W.shape[1] == n_components

    def write(self, path: Path) -> None:
        """Write W to a file."""
        with written_whole(path) as partial, partial.open("wb") as file:
            np.save(file, np.ascontiguousarray(self.W), allow_pickle=False)

    # Sums over features, for H.

    def value(self, H: Array) -> float:
        return self.observations.value(self.W, H)

    def log_sum(self) -> float:
        return log_sum(self.W)

    def sums(self, H: Array) -> Sums:
        (sums,) = self.observations.sums(self.W, H, "h")
        return sums

    def brief_sums(self, H: Array) -> tuple[Array, Array]:
        """A of the sums for H, and Σ_f w (K,), from which B follows if features share it."""
        return self.sums(H).A, column_sums(self.W)

    def parts(self, H: Array) -> Parts:
        (sums,) = self.observations.sums(self.W, H, "w")
        y = self.observations.likelihood.majorizer(*sums, self.W).p
        return parts_of(y, int(np.count_nonzero(self.observations.seen)))

    # Majorize–minimize, (W1)–(W3).

    def multiply(self, H: Array, smoothing: float) -> Array:
        (sums,) = self.observations.sums(self.W, H, "w")
        return multiplied(sums.A, smoothing, self.W)

    def bound(self, H: Array, smoothing: float) -> Array:
        (sums,) = self.observations.sums(self.W, H, "w")
        likelihood = self.observations.likelihood
        if likelihood.local:
            self._local = LocalBound(*sums, self.W.copy(order="K"))
            return self._set_bound(smoothing)
        self._bound = likelihood.majorizer(*sums, self.W)
        return lowest_rates(*self._bound, smoothing, self.W)

    def widen(self, smoothing: float, room: float) -> Array:
        beyond = self._local.beyond(self.W)
        if beyond.any():
            self._local.widen(beyond, self.W, room)
            self._set_bound(smoothing)
        return np.stack([-beyond.any(axis=0).astype(float), self._lowest])

    def _set_bound(self, smoothing: float) -> Array:
        """Set the majorizer to the local bound; returns min q, (K,)."""
        self._bound = self._local.majorizer
        self._lowest = lowest_rates(*self._bound, smoothing, self._local.x)
        return self._lowest

    def left(self, lowest: Array) -> Array:
        return left_of_root(*self._bound, lowest)

    def roots(self, lowest: Array, m: Array, wanted: Array) -> Array:
        return weights_at(*self._bound, lowest, m, wanted, self.W)

    def above_floor(self, wanted: Array) -> Array:
        return raise_to_floor(self._bound.p, self._bound.r, wanted, self.W)

    # L-BFGS in the roots y, W = y²/Σ_f y².

    def begin_path(self, size: int) -> None:
        self._before = self.W.copy(order="K")
        self._path = Lbfgs(np.sqrt(self.W).ravel(order="K"), size)

    def apply_metric(self, used: Array, shares: Array) -> Array:
        return self._path.apply_metric(used, shares)

    def set_direction(self, used: Array, shares: Array, scale: float) -> None:
        self._path.set_direction(used, shares, scale)

    def try_step(self, length: float, shrink: float) -> Array:
        self._path.try_step(length, Limits(self.W.size, shrink))
        return squares(self._matrix(self._path.trial))

    def try_current(self) -> Array:
        self._path.try_current()
        return squares(self._matrix(self._path.x))

    def evaluate(self, H: Array, totals: Array, smoothing: float) -> Evaluation:
        weights(self._matrix(self._path.trial), totals, self.W)
        self._sums, sums = self.observations.sums(self.W, H, "wh")
        return Evaluation(sums, totals, multipliers(self.W, *self._sums, smoothing))

    def sums_at_trial(
        self, H: Array, totals: Array, smoothing: float, brief: bool
    ) -> tuple[Array, ...]:
        """A and B of an `Evaluation`, or Σ_f w (K,) if `brief`, and its multipliers."""
        (A, B), _, found = self.evaluate(H, totals, smoothing)
        return A, column_sums(self.W) if brief else B, found

    def differentiate(
        self, multipliers: Array, totals: Array, smoothing: float, row: int, used: Array
    ) -> Array:
        gradient, curvature = np.empty((2, self.W.size))
        weight_slopes(
            self._matrix(self._path.trial), self.W, *self._sums, smoothing, totals, multipliers,
            self._matrix(gradient), self._matrix(curvature),
        )  # fmt: skip
        return self._path.arrive(gradient, Diagonal(curvature), row, used)

    def accept(self) -> None:
        self._path.accept()

    def set_weights(self, totals: Array) -> None:
        weights(self._matrix(self._path.x), totals, self.W)

    def commit(self) -> None:
        self._before[...] = self.W

    def undo(self) -> None:
        self.W[...] = self._before

    def end_path(self) -> None:
        self._path, self._before = _NO_PATH, self.W

    # Checkpoints.

    def state(self) -> dict[str, Array]:
        """The `BlockState` as arrays."""
        on_path = self._path is not _NO_PATH
        path = (self._before, self._path) if on_path else (None, None)
        return arrays_of(BlockState(self.W, *path))

    def restore(self, arrays: dict[str, Array]) -> None:
        """Resume from a state; raises if it cannot be the state of such a block."""
        F, N = self.observations.shape
        K = n_components_of(arrays, F)
        state = BlockState(np.empty((F, K)))
        if len(arrays) > 1:  # L-BFGS was running
            state.before, state.path = state.W, Lbfgs(np.empty(F * K), memory_of(K, N))
        restore(state, arrays)
        self.hold(state.W)
        if state.before is not None and state.path is not None:
            self._before = np.array(state.before, order=self.observations.order)
            self._path = state.path

    def _matrix(self, vector: Array) -> Array:
        """A vector as (F, K), in the order of W."""
        F, K = self.W.shape
        fortran = self.observations.order == "F"
        return vector.reshape(K, F).T if fortran else vector.reshape(F, K)


def n_components_of(arrays: dict[str, Array], n_features: int) -> int:
    """The number of components of a state with weights W; 1 if W has an invalid shape."""
    shape = np.shape(arrays.get("W", ()))
    return shape[1] if len(shape) == 2 and shape[0] == n_features and shape[1] else 1
