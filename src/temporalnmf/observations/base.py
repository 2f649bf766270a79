"""What a solver asks of data: three numbers-to-numbers questions, and nothing about storage."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from ..likelihoods.base import Array, Likelihood, Majorizer


class Observations:
    """V (F, N) with weights m and exposures e, prepared for one likelihood.

    Attributes
    ----------
    shape : tuple
        (F, N).
    order : {"C", "F"}
        Memory order of W that its kernels want.
    seen, counted : array of bool, (F,)
        Features with any observed entry, and with any observed value above zero.
    level : float
        Mean total of a step per unit of exposure: what Σ_k h_kn has to reach on average.
    saturated : float
        Smallest value that any rates could reach.
    """

    order: ClassVar[Literal["C", "F"]]
    likelihood: Likelihood
    shape: tuple[int, int]
    seen: Array
    counted: Array
    level: float
    saturated: float

    def _sums(self, kernel: str, W: Array, H: Array) -> Any:
        """Run one kernel on these data."""
        raise NotImplementedError

    def _describe(self, totals: Array, exposed: Array) -> None:
        """Set what is known of the features from their weighted totals and exposures, (F,)."""
        self.seen = exposed > 0.0
        self.counted = totals > 0.0
        self.level = float((totals[self.seen] / exposed[self.seen]).sum())

    def h_statistics(self, W: Array, H: Array) -> Majorizer:
        """The majorizer (M) in H at the current (W, H), (K, N)."""
        A, B = self._sums("h_sums", W, H)
        return self.likelihood.majorizer(A, B, H)

    def w_statistics(self, W: Array, H: Array) -> Majorizer:
        """The majorizer (M) in W at the current (W, H), (F, K)."""
        A, B = self._sums("w_sums", W, H)
        return self.likelihood.majorizer(A, B, W)

    def value(self, W: Array, H: Array) -> float:
        """−log p(V | WH) without the constants that the likelihood's docstring names."""
        return float(self._sums("value", W, H))


def observe(
    X: Array | sparse.sparray,
    weights: Array | sparse.sparray,
    exposure: Array,
    likelihood: Likelihood,
) -> Observations:
    """Hold checked data X (N, F) for the kernels.

    Parameters
    ----------
    X : array or sparse array, (N, F)
        Non-negative, finite wherever its weight is positive.
    weights : array, (N, 1) or (N, F), or sparse array (N, F)
        Non-negative; (N, 1) where the features of a step share their weight.
    exposure : array, (N,)
    likelihood : Likelihood
    """
    from .dense import DenseObservations
    from .sparse import SparseObservations

    kind = SparseObservations if sparse.issparse(X) else DenseObservations
    return kind(X, weights, np.asarray(exposure), likelihood)
