"""The weights: minimisers over the simplex, one column of W each."""

import math

import numpy as np

from .dense import compiled
from .floor import FLOOR
from .logarithm import log


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
def multiplied(A, smoothing, W):
    """(W1), (W3): replace W by p = w A, plus the smoothing where w > 0; returns Σ_f p.

    A and W are (F, K). Loops follow the memory: C order is features first, Fortran order
    components first.
    """
    F, K = W.shape
    totals = np.zeros(K)
    if W.strides[0] > W.strides[1]:
        for f in range(F):
            for k in range(K):
                W[f, k] = W[f, k] * A[f, k] + (smoothing if W[f, k] > 0.0 else 0.0)
                totals[k] += W[f, k]
    else:
        for k in range(K):
            w, a = W[:, k], A[:, k]
            total = 0.0
            for f in range(F):
                w[f] = w[f] * a[f] + (smoothing if w[f] > 0.0 else 0.0)
                total += w[f]
            totals[k] = total
    return totals


@compiled
def divide_columns(W, totals):
    """W / totals, in place; positive entries are at least at the floor, zeros stay zero."""
    F, K = W.shape
    scales = np.empty(K)
    for k in range(K):
        scales[k] = 1.0 / (totals[k] if totals[k] > 0.0 else 1.0)
    if W.strides[0] > W.strides[1]:
        for f in range(F):
            for k in range(K):
                w = W[f, k] * scales[k]
                W[f, k] = w if w > FLOOR or W[f, k] == 0.0 else FLOOR
    else:
        for k in range(K):
            column, scale = W[:, k], scales[k]
            for f in range(F):
                w = column[f] * scale
                column[f] = w if w > FLOOR or column[f] == 0.0 else FLOOR


# (W2): for every column k the minimiser of Σ_f −p log w + q w + r/w on the simplex. p and W are
# (F, K); q and r are (F, K), or (1, K) if features share them. Entries with p = r = 0 are unused
# and stay zero.
#
# With m = μ + min q > 0 each 1/w is concave in m (it inverts q − min q + m = p/w + r/w²), and so
# is 1/Σw, a harmonic mean: Newton's method on 1/Σw = 1 from the left converges monotonically. If
# features share q and r = 0, it is linear and the first step is the closed form (W1), w = p / Σp.
# A step needs only sums over features, so these may be in several blocks.


@compiled
def lowest_rates(p, q, r, smoothing, W):
    """min q over the used entries, (K,); adds the smoothing (W3) to p."""
    F, K = p.shape
    lowest = np.full(K, np.inf)
    for k in range(K):
        for f in range(F):
            p[f, k] += smoothing if W[f, k] > 0.0 else 0.0
            if p[f, k] + r[f if r.shape[0] > 1 else 0, k] > 0.0:
                lowest[k] = min(lowest[k], q[f if q.shape[0] > 1 else 0, k])
    return lowest


@compiled
def left_of_root(p, q, r, lowest):
    """The largest m at which a single weight equals one, (K,)."""
    F, K = p.shape
    m = np.zeros(K)
    for k in range(K):
        for f in range(F):
            top = p[f, k] + r[f if r.shape[0] > 1 else 0, k]
            if top > 0.0:
                m[k] = max(m[k], top - (q[f if q.shape[0] > 1 else 0, k] - lowest[k]))
    return m


@compiled
def weights_at(p, q, r, lowest, m, wanted, W):
    """W = positive roots of (q − min q + m) w² − p w − r = 0; returns Σ_f w and its −∂/∂m.

    For wanted columns only.
    """
    F, K = p.shape
    sums = np.zeros((2, K))
    for k in range(K):
        if not wanted[k]:
            continue
        total, slope = 0.0, 0.0
        for f in range(F):
            a, c = p[f, k], r[f if r.shape[0] > 1 else 0, k]
            rate = q[f if q.shape[0] > 1 else 0, k] - lowest[k] + m[k]
            discriminant = math.sqrt(a * a + 4.0 * rate * c)
            used = a + c > 0.0
            w = (a + discriminant) / (2.0 * rate) if used else 0.0
            W[f, k] = w
            total += w
            slope += w * w / discriminant if used else 0.0
        sums[0, k], sums[1, k] = total, slope
    return sums


@compiled
def raise_to_floor(p, r, wanted, W):
    """Raise used weights to the floor; returns Σ_f w."""
    F, K = W.shape
    totals = np.zeros(K)
    for k in range(K):
        for f in range(F):
            if wanted[k] and p[f, k] + r[f if r.shape[0] > 1 else 0, k] > 0.0:
                W[f, k] = max(W[f, k], FLOOR)
            totals[k] += W[f, k]
    return totals


@compiled
def log_sum(W):
    """Σ log w over the positive entries."""
    total = 0.0
    for k in range(W.shape[1]):
        column = W[:, k]
        for f in range(column.size):
            total += log(column[f] if column[f] > 0.0 else 1.0)
    return total
