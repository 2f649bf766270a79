"""L-BFGS on some of the variables.

The two loops of L-BFGS need only products of vectors, so the variables may be in several places:
each has its own `Lbfgs`, and products are summed over all of them.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
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
from ..runtime.states import named


@dataclass
class Diagonal:
    """A diagonal matrix, one number per variable."""

    numbers: Array

    def divide(self, vector: Array) -> None:
        np.divide(vector, self.numbers, out=vector)


@dataclass
class Tridiagonal:
    """A symmetric tridiagonal matrix per component, (K, N) and (K, N − 1)."""

    diagonal: Array
    off: Array

    def divide(self, vector: Array) -> None:
        divide_tridiagonal(vector, self.diagonal, self.off)


# The initial metric of L-BFGS.
Metric = Diagonal | Tridiagonal


class Limits(NamedTuple):
    """Limits of moves: the first `n_roots` variables are roots, the others logarithms.

    Roots shrink at most to a share `shrink`, or may change sign if it is zero.
    """

    n_roots: int
    shrink: float = 0.0
    lowest: float = -np.inf
    longest: float = np.inf


def memory_of(n_components: int, n_steps: int) -> int:
    """Number of moves to remember."""
    return min(max(n_steps // (2 * n_components), 5), 10)


@dataclass(eq=False)
class Lbfgs:
    """Variables x with their gradient and metric, the last moves, and a trial point.

    Checkpoints contain the fields, hence not the trial point and the direction.

    Parameters
    ----------
    x : array, (n,)
    size : int
        Moves to remember. One more row is for the move to the trial point.

    Attributes
    ----------
    S, Y : array, (size + 1, n)
        Moves s, and the changes y of the gradient along them.
    """

    x: Array
    size: InitVar[int]
    gradient: Array = field(init=False, metadata=named("slope"))
    metric: Metric = field(init=False)
    S: Array = field(init=False)
    Y: Array = field(init=False, metadata=named("T"))

    def __post_init__(self, size: int) -> None:
        x = self.trial = self.x
        self.gradient = self.trial_gradient = np.zeros_like(x)
        self.metric = Diagonal(np.ones_like(x))
        self.trial_metric: Metric = self.metric
        # Single precision is enough for an estimate of the curvature.
        self.S, self.Y = np.empty((2, size + 1, x.size), dtype=np.float32)
        self.direction, self.scaled = np.zeros_like(x), np.zeros_like(x)

    def try_current(self) -> None:
        """Take the current point as the trial point."""
        self.trial = self.x

    def apply_metric(self, used: Array, shares: Array) -> Array:
        """Compute r = (gradient − Σ shares·y) / metric.

        Returns y·r of every row, then y·y of the newest in the inverse metric, then gradient·r.
        """
        plus_rows(self.gradient, self.Y, used, -shares, self.scaled)
        self.metric.divide(self.scaled)
        bent = 0.0
        if len(used):
            newest = self.Y[used[0]].astype(float)
            self.metric.divide(newest)
            bent = dot(newest, self.Y[used[0]])
        products = row_products(self.scaled, self.Y, used)
        return np.concatenate([products, [bent, dot(self.gradient, self.scaled)]])

    def set_direction(self, used: Array, shares: Array, scale: float) -> None:
        """Set the direction to −(scale·r + Σ shares·s)."""
        np.multiply(self.scaled, -scale, out=self.scaled)
        plus_rows(self.scaled, self.S, used, -shares, self.direction)

    def try_step(self, length: float, limits: Limits) -> None:
        """Take a trial point along the direction."""
        self.trial = np.empty_like(self.x)
        move(
            self.x, length, self.direction, limits.n_roots, limits.shrink, limits.lowest,
            limits.longest, self.trial,
        )  # fmt: skip

    def arrive(self, gradient: Array, metric: Metric, row: int, used: Array) -> Array:
        """Store gradient and metric at the trial point, and the move in a row.

        Returns the slopes along the move at its start and its end, s·y, s·s and y·y; then
        s·gradient for the new gradient and every row, s·y for the new y, and y·s for the new s.
        """
        self.trial_gradient, self.trial_metric = gradient, metric
        S, Y = self.S, self.Y
        moved = differences(self.trial, self.x, gradient, self.gradient, S[row], Y[row])
        rows = np.append(used, row)
        products = (
            row_products(gradient, S, rows),
            row_products(Y[row], S, rows),
            row_products(S[row], Y, rows),
        )
        return np.concatenate([moved, *products])

    def accept(self) -> None:
        """Make the trial point the current one."""
        self.x, self.gradient, self.metric = self.trial, self.trial_gradient, self.trial_metric
