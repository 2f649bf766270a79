"""Interface of the weights W and their data for solvers.

Given H, features are coupled only through sums: over all of them for H, and per component for the
weights, which sum to one. Data in memory are one `Block`. For data in many blocks, on disk or on
the workers of a cluster, `cluster/features.py` reduces the responses of the blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from .._typing import Array
from .base import Observations, Sums
from .parts import Parts


class Evaluation(NamedTuple):
    """The sums for H at a trial point, Σ_f y² and the multipliers of Σ_f w = 1."""

    sums: Sums
    totals: Array
    multipliers: Array


class Features(ABC):
    """Weights W, wherever they are stored, and the operations on them.

    Attributes
    ----------
    observations : Observations
        Of all features.
    local : bool
        Whether W is in the memory of this process.
    """

    observations: Observations
    local: ClassVar[bool]

    # Weights.

    @abstractmethod
    def array(self) -> Array:
        """W (F, K), in the memory of this process."""

    def result(self) -> Any:
        """W (F, K), or `ShardedComponents` if it is too large for memory."""
        return self.array()

    def randomise(self, rng: np.random.Generator, n_components: int) -> None:
        """Set random weights whose columns sum to one."""
        self.divide(self.fill_random(rng, n_components))

    def only_active(self, smoothing: float) -> Array:
        """Set the weights of inactive features to zero (W2), and divide columns by their sums.

        Returns these sums, Σ_f w. Without smoothing, the weights of a feature without observed
        counts would converge to zero; they have to start there for the objective to descend. A
        feature that was never observed stays at zero even with smoothing: mass on it costs nothing,
        so under a prior that is not scale-free H could grow without bound.
        """
        mass = self.clear_inactive(bool(smoothing))
        self.divide(mass)
        return mass

    @abstractmethod
    def fill_random(self, rng: np.random.Generator, n_components: int) -> Array:
        """Set random weights; returns Σ_f w, (K,)."""

    @abstractmethod
    def perturbed(self, rng: np.random.Generator) -> Features:
        """A copy with weights times random factors, columns summing to one."""

    @abstractmethod
    def clear_inactive(self, seen: bool) -> Array:
        """Set weights of features never counted (or never seen) to zero; returns Σ_f w, (K,)."""

    @abstractmethod
    def divide(self, totals: Array) -> None:
        """W / totals, (K,)."""

    @abstractmethod
    def totals(self) -> Array:
        """Σ_f w, (K,)."""

    @abstractmethod
    def reorder(self, order: Array) -> None:
        """Put components into another order."""

    @abstractmethod
    def cross(self, other: Self) -> Array:
        """Σ_f w w′, (K, K′), with the weights w′ of another solution."""

    @abstractmethod
    def drop(self) -> None:
        """Free weights that are no longer needed."""

    @abstractmethod
    def fits(self, n_components: int, on_path: bool) -> bool:
        """Whether W has so many components, and L-BFGS is running if it should be."""

    # Sums over features, for H.

    @abstractmethod
    def value(self, H: Array) -> float:
        """−log p(V | WH) without the constants that the likelihood's docstring names."""

    @abstractmethod
    def log_sum(self) -> float:
        """Σ log w over positive weights."""

    @abstractmethod
    def sums(self, H: Array) -> Sums:
        """The sums for H, (K, N)."""

    def curvature(self, H: Array, expected: bool) -> tuple[Array, Array]:
        """The data terms of (L1); for data in memory see `laplace.data_part`."""
        raise NotImplementedError

    @abstractmethod
    def parts(self, H: Array) -> Parts:
        """Sums of the expected parts of components in counts; for laws with `has_draws`."""

    # Majorize–minimize, see `solvers/mm.py`.

    @abstractmethod
    def multiply(self, H: Array, smoothing: float) -> Array:
        """(W1): set W to p, and return its sums for the division."""

    @abstractmethod
    def bound(self, H: Array, smoothing: float) -> Array:
        """(W2): compute the majorizer in W; returns min q over features, (K,)."""

    @abstractmethod
    def left(self, lowest: Array) -> Array:
        """(W2): a multiplier to the left of the root, the largest of any feature."""

    @abstractmethod
    def roots(self, lowest: Array, m: Array, wanted: Array) -> Array:
        """(W2): set W for given multipliers; returns Σ_f w and its −∂/∂m, (2, K)."""

    @abstractmethod
    def above_floor(self, wanted: Array) -> Array:
        """(W2): raise W to the floor; returns Σ_f w."""

    @abstractmethod
    def widen(self, smoothing: float, room: float) -> Array:
        """(LB2): widen local bounds that W left; (2, K), −1 for columns that did, then min q."""

    # L-BFGS in the roots y, W = y²/Σ_f y²; see `solvers/accelerated.py` and `Lbfgs`.

    @abstractmethod
    def begin_path(self, size: int) -> None:
        """Start at W, with memory for `size` moves."""

    @abstractmethod
    def apply_metric(self, used: Array, shares: Array) -> Array:
        """See `Lbfgs.apply_metric`."""

    @abstractmethod
    def set_direction(self, used: Array, shares: Array, scale: float) -> None:
        """See `Lbfgs.set_direction`."""

    @abstractmethod
    def try_step(self, length: float, shrink: float) -> Array:
        """Take a trial point along the direction; returns Σ_f y²."""

    @abstractmethod
    def try_current(self) -> Array:
        """Take the current point as the trial point; returns Σ_f y²."""

    @abstractmethod
    def evaluate(self, H: Array, totals: Array, smoothing: float) -> Evaluation:
        """Set W to the trial point, and compute the sums there."""

    @abstractmethod
    def differentiate(
        self, multipliers: Array, totals: Array, smoothing: float, row: int, used: Array
    ) -> Array:
        """Gradient and metric at the trial point; see `Lbfgs.arrive`."""

    @abstractmethod
    def accept(self) -> None:
        """Make the trial point the current one."""

    @abstractmethod
    def set_weights(self, totals: Array) -> None:
        """Set W to the current point."""

    @abstractmethod
    def commit(self) -> None:
        """Save W for `undo`."""

    @abstractmethod
    def undo(self) -> None:
        """Restore the W committed last."""

    @abstractmethod
    def end_path(self) -> None:
        """Free the memory of L-BFGS, which is much larger than W."""
