"""Some of the variables of L-BFGS, with what is remembered of their last moves.

The two loops of L-BFGS need only products of vectors, so the variables may lie in several places:
each has a track of its own, and products are added up over all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import Array
from ..kernels.quasi_newton import (
    differences,
    divide_tridiagonal,
    dot,
    move,
    plus_rows,
    row_products,
)
from ..runtime.archives import refuse_unlike


class Diagonal(NamedTuple):
    """One number per variable."""

    numbers: Array

    def divide(self, vector: Array) -> None:
        np.divide(vector, self.numbers, out=vector)


class Tridiagonal(NamedTuple):
    """A symmetric tridiagonal matrix per component, (K, N) and (K, N − 1)."""

    diagonal: Array
    off: Array

    def divide(self, vector: Array) -> None:
        divide_tridiagonal(vector, self.diagonal, self.off)


# The initial metric of L-BFGS.
Metric = Diagonal | Tridiagonal


class Limits(NamedTuple):
    """How far variables may move: the first `n_roots` as roots, the others as logarithms.

    Roots keep a share `shrink` of themselves, or may change sign if it is zero.
    """

    n_roots: int
    shrink: float = 0.0
    lowest: float = -np.inf
    longest: float = np.inf


def memory_of(n_components: int, n_steps: int) -> int:
    """Moves to remember."""
    return min(max(n_steps // (2 * n_components), 5), 10)


class Track:
    """Variables x, the slope and the metric there, and the last moves.

    Parameters
    ----------
    x : array, (n,)
    size : int
        Moves to remember. There is a row more than that, for a move that is being tried.
    """

    def __init__(self, x: Array, size: int) -> None:
        self.x = self.there = x
        self.slope = self.slope_there = np.zeros_like(x)
        self.metric: Metric = Diagonal(np.ones_like(x))
        self.metric_there: Metric = self.metric
        # Single precision: they are only ever a guess of the curvature.
        self.S, self.T = np.empty((2, size + 1, x.size), dtype=np.float32)
        self.way, self.turned = np.zeros_like(x), np.zeros_like(x)

    def stay(self) -> None:
        """The next look is at where we are."""
        self.there = self.x

    def turn(self, used: Array, shares: Array) -> Array:
        """r = (slope − Σ shares·t) / metric; products with it.

        Returns t·r of every row, then t·t of the newest in the inverse metric, then slope·r.
        """
        plus_rows(self.slope, self.T, used, -shares, self.turned)
        self.metric.divide(self.turned)
        bent = 0.0
        if len(used):
            newest = self.T[used[0]].astype(float)
            self.metric.divide(newest)
            bent = dot(newest, self.T[used[0]])
        products = row_products(self.turned, self.T, used)
        return np.concatenate([products, [bent, dot(self.slope, self.turned)]])

    def aim(self, used: Array, shares: Array, scale: float) -> None:
        """The way to go: −(scale·r + Σ shares·s)."""
        np.multiply(self.turned, -scale, out=self.turned)
        plus_rows(self.turned, self.S, used, -shares, self.way)

    def move(self, length: float, limits: Limits) -> None:
        """Try a point on the way."""
        self.there = np.empty_like(self.x)
        move(
            self.x, length, self.way, limits.n_roots, limits.shrink, limits.lowest, limits.longest,
            self.there,
        )  # fmt: skip

    def arrive(self, slope: Array, metric: Metric, row: int, used: Array) -> Array:
        """Take note of slope and metric at the point that was tried, and write the move to a row.

        Returns the slopes along the way at its start and its end, s·t, s·s and t·t; then s·slope
        for the new slope and every row, s·t for the new t, and t·s for the new s.
        """
        self.slope_there, self.metric_there = slope, metric
        S, T = self.S, self.T
        moved = differences(self.there, self.x, slope, self.slope, S[row], T[row])
        rows = np.append(used, row)
        products = (
            row_products(slope, S, rows),
            row_products(T[row], S, rows),
            row_products(S[row], T, rows),
        )
        return np.concatenate([moved, *products])

    def accept(self) -> None:
        """Be where the last look was."""
        self.x, self.slope, self.metric = self.there, self.slope_there, self.metric_there

    def state(self) -> dict[str, Array]:
        """Where it is and what it remembers, as arrays; what is being tried is forgotten."""
        metric = {f"metric_{name}": array for name, array in self.metric._asdict().items()}
        return {"x": self.x, "slope": self.slope, "S": self.S, "T": self.T, **metric}

    def restore(self, state: dict[str, Array]) -> None:
        """Be as a track was that had as many variables, as much memory and the same metric."""
        refuse_unlike(state, self.state())
        self.x, self.slope, self.S, self.T = (np.array(state[n]) for n in ("x", "slope", "S", "T"))
        kept = {name: np.array(state[f"metric_{name}"]) for name in self.metric._fields}
        self.metric = self.metric._replace(**kept)
