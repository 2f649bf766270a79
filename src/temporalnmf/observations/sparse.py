"""Sparse counts: an absent entry is a zero, never missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..kernels import sparse as kernels
from ..likelihoods.base import Array, Likelihood
from .base import Observations


class SparseObservations(Observations):
    """Sparse X (N, F), kept by feature, with weights as a step-wise base plus a correction."""

    order = "C"

    def __init__(
        self,
        X: sparse.sparray,
        weights: Array | sparse.sparray,
        exposure: Array,
        likelihood: Likelihood,
    ) -> None:
        V = sparse.csr_array(sparse.csc_array(X, dtype=np.float64).T)
        V.sum_duplicates()
        self.likelihood = likelihood
        self.shape = V.shape
        base, correction = _split(weights, V.shape)
        entry = np.repeat(np.arange(V.shape[0]), np.diff(V.indptr))
        weight = base[V.indices] + np.asarray(correction[entry, V.indices]).ravel()
        counts = np.where(weight > 0.0, V.data, 0.0)
        totals = np.bincount(entry, counts * weight, minlength=V.shape[0])
        exposed = base @ exposure + correction @ exposure
        # Where corrections cancel the whole base, rounding may leave a trace of it.
        self._describe(totals, np.where(exposed > 1e-12 * exposure.sum(), exposed, 0.0))
        self.saturated = likelihood.saturated(counts, weight, exposure[V.indices])
        values, _ = likelihood.weigh(counts, weight, exposure[V.indices])
        _, base = likelihood.weigh(base, base, exposure)
        _, fixes = likelihood.weigh(correction.data, correction.data, exposure[correction.indices])
        self._arrays = (
            V.indptr, V.indices, values, base, correction.indptr, correction.indices, fixes,
        )  # fmt: skip

    def _sums(self, kernel: str, W: Array, H: Array) -> Any:
        result = getattr(kernels, kernel)(
            *self._arrays, np.ascontiguousarray(W), np.ascontiguousarray(H.T)
        )
        if kernel == "h_sums":
            A, B = result
            return A.T, B.T
        return result


def _split(
    weights: Array | sparse.sparray, shape: tuple[int, int]
) -> tuple[Array, sparse.csr_array]:
    """Weights (N, 1), (N, F) or sparse (N, F) as a base (N,) and a sparse correction (F, N)."""
    N = shape[1]
    if not sparse.issparse(weights) and weights.shape[1] == 1:
        return weights[:, 0].copy(), sparse.csr_array(shape)
    if sparse.issparse(weights):
        return np.zeros(N), sparse.csr_array(sparse.csr_array(weights).T)
    # The commoner of "observed" and "missing" becomes the base, so the correction stays small.
    base = float(np.count_nonzero(weights == 1.0) > np.count_nonzero(weights == 0.0))
    steps, features = np.nonzero(weights != base)
    fixes = weights[steps, features] - base
    return np.full(N, base), sparse.csr_array((fixes, (features, steps)), shape=shape)
