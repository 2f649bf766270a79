"""The weights: minimisers over the simplex, one column of W each."""

import math

import numpy as np

from .dense import compiled
from .floor import FLOOR
from .logarithm import log

_MAX_STEPS = 300
# Newton's error after a step of this relative size is its square, below rounding.
_LAST_STEP = 1e-9


@compiled
def column_sums(W):
    """Σ_f w per component."""
    F, K = W.shape
    totals = np.zeros(K)
    if W.strides[0] > W.strides[1]:
        for f in range(F):
            for k in range(K):
                totals[k] += W[f, k]
    else:
        for k in range(K):
            column, total = W[:, k], 0.0
            for f in range(F):
                total += column[f]
            totals[k] = total
    return totals


@compiled
def proportional(A, smoothing, W):
    """(W1), (W3): w = p / Σp, with p = w A plus the smoothing where w > 0.

    A and W are (F, K); the result overwrites W. Loops follow the memory: C order is features
    first, Fortran order components first.
    """
    F, K = W.shape
    if W.strides[0] > W.strides[1]:
        totals = np.zeros(K)
        for f in range(F):
            for k in range(K):
                W[f, k] = W[f, k] * A[f, k] + (smoothing if W[f, k] > 0.0 else 0.0)
                totals[k] += W[f, k]
        for k in range(K):
            totals[k] = 1.0 / (totals[k] if totals[k] > 0.0 else 1.0)
        for f in range(F):
            for k in range(K):
                w = W[f, k] * totals[k]
                W[f, k] = w if w > FLOOR or W[f, k] == 0.0 else FLOOR
    else:
        for k in range(K):
            w, a = W[:, k], A[:, k]
            total = 0.0
            for f in range(F):
                w[f] = w[f] * a[f] + (smoothing if w[f] > 0.0 else 0.0)
                total += w[f]
            scale = 1.0 / (total if total > 0.0 else 1.0)
            for f in range(F):
                x = w[f] * scale
                w[f] = x if x > FLOOR or w[f] == 0.0 else FLOOR


@compiled
def _weights(p, q, r, m, w):
    """Positive roots w of (q + m) w² − p w − r = 0, their sum and −∂sum/∂m; p = r = 0 gives 0."""
    total, slope = 0.0, 0.0
    for f in range(w.size):
        rate = q[f] + m
        discriminant = math.sqrt(p[f] * p[f] + 4.0 * rate * r[f])
        w[f] = (p[f] + discriminant) / (2.0 * rate)
        total += w[f]
        slope += w[f] * w[f] / (discriminant if discriminant > 0.0 else 1.0)
    return total, slope


@compiled
def simplex_minimiser(p, q, r, smoothing, W):
    """(W2), (W3): for every column k the minimiser of Σ_f −p log w + q w + r/w on the simplex.

    p and W are (F, K); q and r are (F, K), or (1, K) where features share them; the smoothing is
    added to p where w > 0. The result overwrites W. Entries with p = r = 0 are zero and play no
    part.

    With m = μ + min q > 0 each 1/w is concave in m (it inverts q − min q + m = p/w + r/w²), and so
    is 1/Σw, a harmonic mean: Newton on 1/Σw = 1 from the left climbs to the root and cannot
    overshoot. Where features share q and r = 0 it is linear and the first step is the closed
    form (W1), w = p / Σp.
    """
    F, K = p.shape
    columns = np.empty((4, F))
    pk, qk, rk, w = columns[0], columns[1], columns[2], columns[3]
    for k in range(K):
        lowest = np.inf
        for f in range(F):
            pk[f] = p[f, k] + (smoothing if W[f, k] > 0.0 else 0.0)
            rk[f] = r[f if r.shape[0] > 1 else 0, k]
            qk[f] = q[f if q.shape[0] > 1 else 0, k]
            if pk[f] + rk[f] > 0.0:
                lowest = min(lowest, qk[f])
        if lowest == np.inf:
            continue
        # Left of the root: the largest m at which some weight alone reaches one.
        m = 0.0
        for f in range(F):
            used = pk[f] + rk[f] > 0.0
            qk[f] = qk[f] - lowest if used else 0.0
            m = max(m, pk[f] + rk[f] - qk[f] if used else 0.0)
        for _ in range(_MAX_STEPS):
            total, slope = _weights(pk, qk, rk, m, w)
            step = total * (total - 1.0) / slope
            m += step
            if abs(step) <= _LAST_STEP * m:
                break
        total = 0.0
        _weights(pk, qk, rk, m, w)
        for f in range(F):
            W[f, k] = max(w[f], FLOOR) if w[f] > 0.0 or pk[f] + rk[f] > 0.0 else 0.0
            total += W[f, k]
        for f in range(F):
            W[f, k] /= total


@compiled
def log_sum(W):
    """Σ log w over the positive entries, which are all used."""
    total = 0.0
    for k in range(W.shape[1]):
        column = W[:, k]
        for f in range(column.size):
            total += log(column[f] if column[f] > 0.0 else 1.0)
    return total
