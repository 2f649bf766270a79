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


@njit(cache=True, nogil=True, error_model="numpy")
def _rates(W, H, n, start, lam):
    """λ of one block of features at step n, floored."""
    lam[:] = 0.0
    for k in range(H.shape[0]):
        h = H[k, n]
        for i in range(lam.size):
            lam[i] += W[start + i, k] * h
    for i in range(lam.size):
        lam[i] = max(lam[i], FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def _ratios(power, V, M, n, start, lam, a, b):
    """The two ratios of one block at step n; b is left alone where it is the same for all."""
    if power == 1:
        for i in range(lam.size):
            a[i] = V[start + i, n] / lam[i]
        if M.shape[0] > 1:
            for i in range(lam.size):
                b[i] = M[start + i, n]
        return
    for i in range(lam.size):
        a[i] = V[start + i, n] / (lam[i] * lam[i])
    if M.shape[0] > 1:
        for i in range(lam.size):
            b[i] = M[start + i, n] / lam[i]
    else:
        for i in range(lam.size):
            b[i] = M[0, n] / lam[i]


# Re-association only lets the compiler use several partial sums; the order stays fixed.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _dot(W, k, start, x):
    total = 0.0
    for i in range(x.size):
        total += W[start + i, k] * x[i]
    return total


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
        size = min(BLOCK, F - start)
        lam, a, b = buffers[0, :size], buffers[1, :size], buffers[2, :size]
        for n in range(N):
            if M.shape[0] == 1 and M[0, n] == 0.0:
                continue
            _rates(W, H, n, start, lam)
            _ratios(power, V, M, n, start, lam, a, b)
            for k in range(K):
                A[k, n] += _dot(W, k, start, a)
                if not shared:
                    B[k, n] += _dot(W, k, start, b)
    if shared:
        for k in range(K):
            mass = W[:, k].sum()
            for n in range(N):
                B[k, n] = mass * M[0, n]
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
        size = min(BLOCK, F - start)
        lam, a, b = buffers[0, :size], buffers[1, :size], buffers[2, :size]
        for n in range(N):
            if M.shape[0] == 1 and M[0, n] == 0.0:
                continue
            _rates(W, H, n, start, lam)
            _ratios(power, V, M, n, start, lam, a, b)
            for k in range(K):
                h = H[k, n]
                for i in range(size):
                    A[start + i, k] += h * a[i]
                if not shared:
                    for i in range(size):
                        B[start + i, k] += h * b[i]
    if shared:
        for k in range(K):
            for n in range(N):
                B[0, k] += H[k, n] * M[0, n]
    return A, B


@njit(cache=True, nogil=True, error_model="numpy")
def value(power, V, M, W, H):
    """Σ m λ − m v log λ (power 1) or Σ m v/λ + m log λ (power 0)."""
    F, N = V.shape
    total = 0.0
    rates = np.empty(BLOCK)
    for start in range(0, F, BLOCK):
        lam = rates[: min(BLOCK, F - start)]
        for n in range(N):
            if M.shape[0] == 1 and M[0, n] == 0.0:
                continue
            _rates(W, H, n, start, lam)
            partial = 0.0
            for i in range(lam.size):
                m = M[start + i, n] if M.shape[0] > 1 else M[0, n]
                v = V[start + i, n]
                if power == 1:
                    partial += m * lam[i]
                    if v > 0.0:
                        partial -= v * np.log(lam[i])
                elif m > 0.0:
                    partial += v / lam[i] + m * np.log(lam[i])
            total += partial
    return total
