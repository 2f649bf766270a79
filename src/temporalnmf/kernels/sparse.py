"""Fused passes over the non-zeros of sparse counts (Poisson only: zeros need a rate, not a log).

`V` comes as the three arrays of its compressed rows, one row per feature, holding m·v. `W` is
(F, K) and `HT` (N, K), both C-ordered, so that each non-zero gathers two short contiguous rows.

The weights of all F·N entries, zeros of V included, are `base[n]` plus a sparse correction, given
as a second set of compressed rows. Hidden entries of data that are mostly observed are a
correction of −base; data of which few entries are observed have base 0.
"""

import numpy as np
from numba import njit

from .floor import FLOOR


@njit(cache=True, nogil=True, error_model="numpy")
def _rate(W, HT, f, n):
    lam = 0.0
    for k in range(W.shape[1]):
        lam += W[f, k] * HT[n, k]
    return max(lam, FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def h_sums(indptr, steps, counts, base, fix_indptr, fix_steps, fixes, W, HT):
    """A = Σ_f w m v/λ and B = Σ_f m w, both (N, K)."""
    F, K = W.shape
    N = HT.shape[0]
    A = np.zeros((N, K))
    B = np.zeros((N, K))
    mass = np.zeros(K)
    for f in range(F):
        for k in range(K):
            mass[k] += W[f, k]
        for j in range(indptr[f], indptr[f + 1]):
            n = steps[j]
            ratio = counts[j] / _rate(W, HT, f, n)
            for k in range(K):
                A[n, k] += W[f, k] * ratio
        for j in range(fix_indptr[f], fix_indptr[f + 1]):
            for k in range(K):
                B[fix_steps[j], k] += W[f, k] * fixes[j]
    for n in range(N):
        for k in range(K):
            # Where every weight of a step is corrected away the sum is zero up to rounding.
            B[n, k] = max(B[n, k] + base[n] * mass[k], 0.0)
    return A, B


@njit(cache=True, nogil=True, error_model="numpy")
def w_sums(indptr, steps, counts, base, fix_indptr, fix_steps, fixes, W, HT):
    """A = Σ_n h m v/λ, (F, K), and B = Σ_n m h: (F, K), or (1, K) where features share it."""
    F, K = W.shape
    N = HT.shape[0]
    A = np.zeros((F, K))
    shared = np.zeros(K)
    for n in range(N):
        for k in range(K):
            shared[k] += base[n] * HT[n, k]
    B = np.empty((F if fixes.size > 0 else 1, K))
    B[:] = shared
    for f in range(F):
        for j in range(indptr[f], indptr[f + 1]):
            n = steps[j]
            ratio = counts[j] / _rate(W, HT, f, n)
            for k in range(K):
                A[f, k] += HT[n, k] * ratio
        for j in range(fix_indptr[f], fix_indptr[f + 1]):
            for k in range(K):
                B[f, k] = max(B[f, k] + fixes[j] * HT[fix_steps[j], k], 0.0)
    return A, B


@njit(cache=True, nogil=True, error_model="numpy")
def value(indptr, steps, counts, base, fix_indptr, fix_steps, fixes, W, HT):
    """Σ m λ − m v log λ; Σ_f λ of a step is its row of H times the column sums of W."""
    F, K = W.shape
    N = HT.shape[0]
    total = 0.0
    mass = np.zeros(K)
    for f in range(F):
        partial = 0.0
        for k in range(K):
            mass[k] += W[f, k]
        for j in range(indptr[f], indptr[f + 1]):
            partial -= counts[j] * np.log(_rate(W, HT, f, steps[j]))
        for j in range(fix_indptr[f], fix_indptr[f + 1]):
            partial += fixes[j] * _rate(W, HT, f, fix_steps[j])
        total += partial
    for n in range(N):
        for k in range(K):
            total += base[n] * mass[k] * HT[n, k]
    return total
