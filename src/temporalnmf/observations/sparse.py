"""Sparse counts: an absent entry is a zero, never missing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from .._typing import Array
from ..kernels.simplex import column_sums
from ..kernels.sparse import sparse_pass, sparse_value
from ..likelihoods.base import Likelihood
from .base import Observations, Sums, cut
from .memory import InMemory

# Minimum number of non-zeros in a range.
_RANGE = 2**12
# Non-zeros prepared at a time, up to the end of a step.
_CHUNK = 2**18


class SparseObservations(InMemory):
    """Sparse X (N, F), stored by step and by feature, with weights as a base plus a correction.

    The weight of an entry, zeros included, is `base[n]` plus a sparse correction. If most entries
    are observed, missing ones have a correction of −base; if few are, the base is 0.

    Parameters
    ----------
    X, weights, exposure, likelihood
        See `observe`.
    by_feature : csr_array, (F, N), default=None
        X by feature; computed if None.
    known : Observations, default=None
        The same data, prepared before: their totals are reused.
    """

    order: Literal["C", "F"] = "C"

    def __init__(
        self,
        X: sparse.sparray,
        weights: Array | sparse.sparray,
        exposure: Array,
        likelihood: Likelihood,
        *,
        by_feature: sparse.csr_array | None = None,
        known: Observations | None = None,
    ) -> None:
        super().__init__(exposure)
        by_step = sparse.csr_array(X, dtype=np.float64)
        if not by_step.has_canonical_format:
            by_step = by_step.copy()
            by_step.sum_duplicates()
        N, F = by_step.shape
        self.likelihood = likelihood
        self.shape = (F, N)
        base, correction = _split(weights, (N, F))
        plain = not correction.nnz and bool(np.all(base == 1.0))
        values = by_step.data if plain else np.empty_like(by_step.data)
        in_values = plain or likelihood.weighs
        kept = np.ones(1) if in_values else np.empty_like(by_step.data)
        totals, self.saturated, self.dropped = np.zeros(F), 0.0, 0.0
        nnz = 0 if plain and known is not None else by_step.nnz
        # A few steps at a time, to allocate nothing else of the size of X.
        for first, last in pairwise(np.searchsorted(by_step.indptr, _chunks(nnz))):
            part = slice(by_step.indptr[first], by_step.indptr[last])
            step = np.repeat(np.arange(first, last), np.diff(by_step.indptr[first : last + 1]))
            feature, weight = by_step.indices[part], base[step]
            if correction.nnz:
                weight = weight + np.asarray(correction[step, feature]).ravel()
            counts = np.where(weight > 0.0, by_step.data[part], 0.0)
            totals += np.bincount(feature, counts * weight, minlength=F)
            self.saturated += likelihood.saturated(counts, weight)
            self.dropped += likelihood.dropped(counts, weight, exposure[step])
            if not plain:
                values[part] = likelihood.weigh(counts, weight)
            if not in_values:
                kept[part] = weight
        self.saturated -= self.dropped
        if known is None:
            exposed = base @ exposure + exposure @ correction
            # Corrections that cancel the base may leave a rounding error.
            self._describe(totals, np.where(exposed > 1e-12 * exposure.sum(), exposed, 0.0))
        else:
            self.seen, self.counted, self.level = known.seen, known.counted, known.level
            self.saturated, self.dropped = known.saturated, known.dropped
        self.exposed = base * exposure
        self._base, self._correction = base, correction
        self.shared = not self._correction.nnz
        by_step = sparse.csr_array((values, by_step.indices, by_step.indptr), shape=(N, F))
        self._store(by_step, by_feature if plain else None, kept)

    def _store(
        self, by_step: sparse.csr_array, by_feature: sparse.csr_array | None, weights: Array
    ) -> None:
        """Values and weights, (nnz,) or (1,), by step and by feature."""
        self._by_step = Rows.of(by_step, weights)
        if by_feature is None:
            by_feature = by_step.tocsc().T
        if weights.size > 1:
            parts = weights, by_step.indices, by_step.indptr
            weights = sparse.csr_array(parts, shape=by_step.shape).tocsc().data
        self._by_feature = Rows.of(by_feature, weights)

    def _sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        W, HT = np.ascontiguousarray(W), np.ascontiguousarray(H.T)
        (F, N), K = self.shape, len(H)
        kernel, cost = sparse_pass(K, self.likelihood.formulas), self.likelihood.cost
        result = []
        if "w" in wants:
            B = cost * (self._base @ HT)[None]
            if not self.shared:
                # If no entry of a feature is observed, the sum is zero up to rounding.
                B = np.maximum(B + cost * (self._correction.T @ HT), 0.0)
            A = self._keep("WA", (F, K))
            self.threads.run(*self._pass(kernel, self._by_feature, W, HT), A)
            result.append(Sums(A, B))
        if "h" in wants:
            B = np.multiply.outer(cost * column_sums(W), self._base)
            if not self.shared:
                B = np.maximum(B + cost * (self._correction @ W).T, 0.0)
            A = np.empty((N, K))
            self.threads.run(*self._pass(kernel, self._by_step, HT, W), A)
            result.append(Sums(np.ascontiguousarray(A.T), np.ascontiguousarray(B)))
        return tuple(result)

    def _value(self, W: Array, H: Array) -> float:
        W, HT = np.ascontiguousarray(W), np.ascontiguousarray(H.T)
        # Σ_f λ of a step is its row of H times the column sums of W.
        expected = self._base @ HT @ column_sums(W)
        if not self.shared:
            expected += float(((self._correction @ W) * HT).sum())
        values = np.zeros(self._by_feature.n_ranges)
        kernel = sparse_value(self.likelihood.formulas)
        self.threads.run(*self._pass(kernel, self._by_feature, W, HT), values)
        return float(self.likelihood.cost * expected + values.sum())

    def _pass(self, kernel: Callable[..., None], rows: Rows, X: Array, Y: Array) -> tuple[Any, ...]:
        """A kernel, its number of ranges, and its arguments up to the result."""
        theta = self.likelihood.theta
        given = rows.indptr, rows.indices, rows.counts, rows.weights
        return kernel, rows.n_ranges, *given, X, Y, theta, rows.bounds


class Rows(NamedTuple):
    """Compressed rows, in ranges with about as many non-zeros each."""

    indptr: Array
    indices: Array
    counts: Array
    bounds: Array
    weights: Array  # those that the counts are not multiplied by, (nnz,) or (1,)

    @classmethod
    def of(cls, rows: sparse.csr_array, weights: Array | None = None) -> Rows:
        """Weights of None are all 1."""
        bounds = np.searchsorted(rows.indptr, cut(int(rows.nnz), _RANGE))
        bounds[0], bounds[-1] = 0, rows.shape[0]
        # One type for the same data: the compiler may order sums by the type of the indices.
        kind = np.int32 if max(rows.nnz, *rows.shape) < 2**31 else np.int64
        indptr, indices = (part.astype(kind, copy=False) for part in (rows.indptr, rows.indices))
        weights = np.ones(1) if weights is None else weights
        return cls(indptr, indices, rows.data, bounds, weights)

    @property
    def n_ranges(self) -> int:
        return len(self.bounds) - 1


def _chunks(nnz: int) -> Array:
    """Bounds of chunks of non-zeros."""
    return np.append(np.arange(0, max(nnz, 1), _CHUNK), nnz)


def _split(
    weights: Array | sparse.sparray, shape: tuple[int, int]
) -> tuple[Array, sparse.csr_array]:
    """Weights (N, 1), (N, F) or sparse (N, F) as a base (N,) and a sparse correction (N, F)."""
    N = shape[0]
    if not sparse.issparse(weights) and weights.shape[1] == 1:
        return weights[:, 0].copy(), sparse.csr_array(shape)
    if sparse.issparse(weights):
        return np.zeros(N), sparse.csr_array(weights)
    # The commoner of "observed" and "missing" becomes the base, so the correction stays small.
    base = float(np.count_nonzero(weights == 1.0) > np.count_nonzero(weights == 0.0))
    steps, features = np.nonzero(weights != base)
    fixes = weights[steps, features] - base
    return np.full(N, base), sparse.csr_array((fixes, (steps, features)), shape=shape)
