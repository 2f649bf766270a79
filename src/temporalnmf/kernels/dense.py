"""Fused passes over dense data.

Shapes and order: `V` (F, N) and `W` (F, K) are Fortran-ordered, so the features of one time step
and of one component are contiguous; `H` is (K, N). `V` holds m·v. The weights `M` are (1, N)
where they do not depend on the feature, else (F, N), Fortran-ordered.

`power` is the exponent of the β-divergence behind the likelihood: 1 for Poisson
(Kullback–Leibler), 0 for the exponential law (Itakura–Saito). Every statistic of the majorizer
(M) is a sum of

    a = m v λ^(power−2)      b = m λ^(power−1)

The passes work on blocks of `BLOCK` features, so no temporary is larger than that, and the order
of every sum is fixed.
"""

import numpy as np
from numba import njit

from .floor import FLOOR

BLOCK = 1024


# Loops run over slices from zero: an index that might be negative would keep them scalar.


@njit(cache=True, nogil=True, error_model="numpy")
def _add_scaled(x, factor, out):
    for i in range(out.size):
        out[i] += factor * x[i]


# Re-association only lets the compiler keep several partial sums; their order stays fixed.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _dot(x, y):
    total = 0.0
    for i in range(y.size):
        total += x[i] * y[i]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _rates(W, H, n, block, lam):
    """λ of one block of features at step n, floored."""
    lam[:] = 0.0
    for k in range(H.shape[0]):
        _add_scaled(W[block, k], H[k, n], lam)
    for i in range(lam.size):
        lam[i] = max(lam[i], FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def _ratios(power, v, m, lam, a, b):
    """The two ratios of one block at one step; `m` has one element where features share it."""
    if power == 1:
        for i in range(lam.size):
            a[i] = v[i] / lam[i]
        if m.size == lam.size:
            b[:] = m
    else:
        for i in range(lam.size):
            a[i] = v[i] / (lam[i] * lam[i])
        if m.size == lam.size:
            for i in range(lam.size):
                b[i] = m[i] / lam[i]
        else:
            for i in range(lam.size):
                b[i] = m[0] / lam[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _value(power, v, m, lam):
    """Sum over one block at one step."""
    total = 0.0
    for i in range(lam.size):
        weight = m[i] if m.size == lam.size else m[0]
        if power == 1:
            total += weight * lam[i]
            if v[i] > 0.0:
                total -= v[i] * np.log(lam[i])
        elif weight > 0.0:
            total += v[i] / lam[i] + weight * np.log(lam[i])
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _block(start, F, M):
    """A block of features, and the rows of M that go with it."""
    block = slice(start, min(start + BLOCK, F))
    return block, block if M.shape[0] > 1 else slice(0, 1)


@njit(cache=True, nogil=True, error_model="numpy")
def _hidden(M, n):
    """Whether step n is missing as a whole, and known to be."""
    return M.shape[0] == 1 and M[0, n] == 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def h_sums(power, V, M, W, H):
    """A = Σ_f w a and B = Σ_f w b, both (K, N)."""
    F, N = V.shape
    K = H.shape[0]
    A = np.zeros((K, N))
    B = np.zeros((K, N))
    shared = power == 1 and M.shape[0] == 1
    buffers = np.empty((3, BLOCK))
    for start in range(0, F, BLOCK):
        block, rows = _block(start, F, M)
        size = block.stop - start
        lam, a, b = buffers[0, :size], buffers[1, :size], buffers[2, :size]
        for n in range(N):
            if _hidden(M, n):
                continue
            _rates(W, H, n, block, lam)
            _ratios(power, V[block, n], M[rows, n], lam, a, b)
            for k in range(K):
                A[k, n] += _dot(W[block, k], a)
                if not shared:
                    B[k, n] += _dot(W[block, k], b)
    if shared:
        for k in range(K):
            B[k] = W[:, k].sum() * M[0]
    return A, B


@njit(cache=True, nogil=True, error_model="numpy")
def w_sums(power, V, M, W, H):
    """A = Σ_n h a, (F, K), and B = Σ_n h b: (F, K), or (1, K) where features share it."""
    F, N = V.shape
    K = H.shape[0]
    shared = power == 1 and M.shape[0] == 1
    A = np.zeros((K, F)).T
    B = np.zeros((K, 1 if shared else F)).T
    buffers = np.empty((3, BLOCK))
    for start in range(0, F, BLOCK):
        block, rows = _block(start, F, M)
        size = block.stop - start
        lam, a, b = buffers[0, :size], buffers[1, :size], buffers[2, :size]
        for n in range(N):
            if _hidden(M, n):
                continue
            _rates(W, H, n, block, lam)
            _ratios(power, V[block, n], M[rows, n], lam, a, b)
            for k in range(K):
                _add_scaled(a, H[k, n], A[block, k])
                if not shared:
                    _add_scaled(b, H[k, n], B[block, k])
    if shared:
        for k in range(K):
            B[0, k] = np.sum(H[k] * M[0])
    return A, B


@njit(cache=True, nogil=True, error_model="numpy")
def value(power, V, M, W, H):
    """Σ m λ − m v log λ (power 1) or Σ m v/λ + m log λ (power 0)."""
    F, N = V.shape
    total = 0.0
    rates = np.empty(BLOCK)
    for start in range(0, F, BLOCK):
        block, rows = _block(start, F, M)
        lam = rates[: block.stop - start]
        for n in range(N):
            if not _hidden(M, n):
                _rates(W, H, n, block, lam)
                total += _value(power, V[block, n], M[rows, n], lam)
    return total
