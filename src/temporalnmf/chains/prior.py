"""Interface of priors on the activations for solvers, Laplace's approximation and forecasts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from .._typing import Array
from ..likelihoods.base import Majorizer
from .parameters import Scale
from .process import Point


class Expansion(NamedTuple):
    """−log p(H) to second order in u = log h, auxiliary variables optimal.

    The Hessian is block diagonal, one symmetric tridiagonal block per component. Its diagonal is
    raised to make it diagonally dominant, hence positive semidefinite.

    Attributes
    ----------
    value : float
    slope : array, (K, N)
        ∂ value / ∂u.
    diagonal : array, (K, N)
        Diagonal of the Hessian, ≥ 0.
    off : array, (K, N−1)
        Its off-diagonal entries, ≤ 0.
    """

    value: float
    slope: Array
    diagonal: Array
    off: Array

    def add_to(self, band: Array, diagonal: Array) -> None:
        """Add the Hessian, and another diagonal (K, N), to a symmetric banded matrix.

        `band` (K + 1, N, K) holds it in the order (step, component), in the upper form of
        `scipy.linalg`: band[K + i − j, j] is entry (i, j). Steps are coupled K places apart.
        """
        band[-1] += (diagonal + self.diagonal).T
        band[0, 1:] = self.off.T


class ActivationPrior(ABC):
    """Prior on H (K, N). A `Chain` is a prior of K independent Markov chains.

    Attributes
    ----------
    dynamic : bool
        Whether the steps depend on each other. If not, missing steps are left out of the fit
        and interpolated, as in the paper.
    has_law : bool
        Whether activations are random, so that there are intervals.
    """

    dynamic: ClassVar[bool] = True
    has_law: ClassVar[bool] = True

    # A posterior mode

    @abstractmethod
    def auxiliary(self, H: Array, scale: Scale) -> Array:
        """Auxiliary variables that are optimal for H: (K, N−1), or empty if there are none."""

    @abstractmethod
    def value(self, H: Array, aux: Array, scale: Scale) -> float:
        """−log p(H, aux) on a scale, without the constants that the class docstring names."""

    @abstractmethod
    def sweep(
        self, H: Array, aux: Array, majorizer: Majorizer, scale: Scale, *, held: int = 0
    ) -> Array:
        """Update H in place; never increases majorizer + value.

        The first `held` steps are fixed. Returns the auxiliary variables of the new H.
        """

    @abstractmethod
    def expansion(self, H: Array, scale: Scale) -> Expansion:
        """The value to second order in log h."""

    # The future

    def state_of(self, paths: Array) -> Array:
        """The part of paths (…, N, K) on which the future depends: by default the last step."""
        return paths[..., -1, :]

    @abstractmethod
    def sample_ahead(self, state: Array, steps: int, rng: np.random.Generator) -> Array:
        """Simulated activations (S, steps, K) after states (S, K)."""

    @abstractmethod
    def mean_ahead(self, state: Array, steps: int) -> Array:
        """Expected activations (steps, …, K) after states (…, K)."""

    @abstractmethod
    def moments_ahead(self, state: Array, steps: int) -> tuple[Array, Array]:
        """Means and variances of activations, each (steps, …, K), after states (…, K).

        They may be infinite, or NaN.
        """

    @abstractmethod
    def point_forecast(
        self, state: Array, steps: int, point: Point = "mean", scale: Scale = "log"
    ) -> Array:
        """Point forecast (K, steps) after a state (K,)."""

    def between(self, H: Array, seen: Array, steps: Array) -> Array:
        """Activations (K, T) at increasing `steps` (T,) from those H (K, S) at steps `seen` (S,).

        On straight lines, which are the best linear prediction for a random walk whose steps have
        equal variances. With dynamics, movement is relative, so the lines are scaled to totals that
        are on a straight line on the log scale.
        """
        lines = np.array([np.interp(steps, seen, row) for row in H])
        if not self.dynamic:
            return lines
        totals = np.interp(steps, seen, np.log(H.sum(axis=0)))
        found: Array = lines * np.exp(totals - np.log(lines.sum(axis=0)))
        return found

    @abstractmethod
    def backcast(self, h_first: Array, steps: int) -> Array:
        """Values (K, steps) for missing steps before the first observed one."""
