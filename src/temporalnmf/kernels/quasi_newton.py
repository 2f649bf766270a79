"""Vector arithmetic of the accelerated solver, one pass each over the variables.

Vectors hold roots y of weights (F·K numbers in the memory order of W) or the variables of H (K·N,
row by row); W = y²/Σ_f y². Arrays named y and W are (F, K) in either memory order, and loops
follow it. Rows of memory are the last moves and the changes of the gradient along them.
"""

import numpy as np

from .dense import compiled
from .floor import FLOOR

# Numbers of a vector that stay in the cache while the rows of memory are read.
_TILE = 1024


@compiled
def squares(y):
    """Σ_f y² per component."""
    F, K = y.shape
    totals = np.zeros(K)
    if y.strides[0] > y.strides[1]:
        for f in range(F):
            for k in range(K):
                totals[k] += y[f, k] * y[f, k]
    else:
        for k in range(K):
            roots, total = y[:, k], 0.0
            for f in range(F):
                total += roots[f] * roots[f]
            totals[k] = total
    return totals


@compiled
def weights(y, totals, W):
    """W = y² / totals."""
    F, K = y.shape
    if W.strides[0] > W.strides[1]:
        for f in range(F):
            for k in range(K):
                W[f, k] = y[f, k] * y[f, k] / totals[k]
    else:
        for k in range(K):
            roots, column, total = y[:, k], W[:, k], totals[k]
            for f in range(F):
                column[f] = roots[f] * roots[f] / total


@compiled
def multipliers(W, A, B, smoothing):
    """Σ_f w (A − B) + s per component: the multiplier of Σ_f w = 1 if W is optimal.

    A and B are the sums for W; B may be (1, K).
    """
    F, K = W.shape
    shared = B.shape[0] == 1
    found = np.zeros(K)
    if W.strides[0] > W.strides[1]:
        for f in range(F):
            for k in range(K):
                b = B[0 if shared else f, k]
                found[k] += W[f, k] * (A[f, k] - b) + (smoothing if W[f, k] > 0.0 else 0.0)
    else:
        for k in range(K):
            w, a, b = W[:, k], A[:, k], B[:, k]
            total, first = 0.0, b[0]
            for f in range(F):
                total += w[f] * (a[f] - (first if shared else b[f]))
                total += smoothing if w[f] > 0.0 else 0.0
            found[k] = total
    return found


@compiled
def weight_slopes(y, W, A, B, smoothing, totals, multipliers, slope, curvature):
    """Gradient in y of value − s Σ log w on the simplex, and the curvature of its bound.

    A and B are the sums for W; B may be (1, K). All others are (F, K). On the simplex q w of the
    bound (M) becomes (q + μ) w with the multiplier μ, and at its minimum each −p log w + (q + μ) w
    has the curvature 4 (q + μ) y². A share of A keeps it positive far from the minimum.
    """
    F, K = y.shape
    shared = B.shape[0] == 1
    if W.strides[0] > W.strides[1]:
        for f in range(F):
            for k in range(K):
                rate = B[0 if shared else f, k] + multipliers[k]
                pull = A[f, k] + smoothing / max(W[f, k], FLOOR)
                slope[f, k] = 2.0 * y[f, k] * (rate - pull) / totals[k]
                curvature[f, k] = 4.0 * max(rate, 0.1 * A[f, k], FLOOR) / totals[k]
    else:
        for k in range(K):
            w, root, a, b = W[:, k], y[:, k], A[:, k], B[:, k]
            s, c = slope[:, k], curvature[:, k]
            first, multiplier, factor = b[0], multipliers[k], 2.0 / totals[k]
            for f in range(F):
                rate = (first if shared else b[f]) + multiplier
                least = w[f] if w[f] > FLOOR else FLOOR
                s[f] = factor * root[f] * (rate - a[f] - smoothing / least)
                curved = rate if rate > 0.1 * a[f] else 0.1 * a[f]
                c[f] = 2.0 * factor * (curved if curved > FLOOR else FLOOR)


@compiled
def dot(a, b):
    """a·b, without the overhead of BLAS threads."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled
def divide_tridiagonal(vector, diagonal, off):
    """Divide a vector, (K·N,), by a symmetric tridiagonal matrix per row, in place."""
    K, N = diagonal.shape
    pivots = np.empty(N)
    for k in range(K):
        row = vector[k * N : (k + 1) * N]
        pivots[0] = diagonal[k, 0]
        for n in range(1, N):
            share = off[k, n - 1] / pivots[n - 1]
            pivots[n] = diagonal[k, n] - share * off[k, n - 1]
            row[n] -= share * row[n - 1]
        row[N - 1] /= pivots[N - 1]
        for n in range(N - 2, -1, -1):
            row[n] = (row[n] - off[k, n] * row[n + 1]) / pivots[n]


@compiled
def plus_rows(vector, rows, used, shares, out):
    """out = vector + Σ shares·rows over the rows that are used."""
    for start in range(0, vector.size, _TILE):
        end = min(start + _TILE, vector.size)
        part = out[start:end]
        part[:] = vector[start:end]
        for i in used:
            row, share = rows[i, start:end], shares[i]
            for j in range(part.size):
                part[j] += share * row[j]


@compiled
def row_products(vector, rows, used):
    """vector·row for every row that is used, zero for the others."""
    found = np.zeros(rows.shape[0])
    for start in range(0, vector.size, _TILE):
        end = min(start + _TILE, vector.size)
        part = vector[start:end]
        for i in used:
            found[i] += dot(part, rows[i, start:end])
    return found


@compiled
def move(x, step, way, n_roots, shrink, lowest, longest, out):
    """x + step·way within limits.

    The first n_roots variables are roots, which shrink at most to a share `shrink` (or may change
    sign if it is zero); the others are logarithms, which move by at most `longest` and stay above
    `lowest`.
    """
    for i in range(n_roots):
        there = x[i] + step * way[i]
        out[i] = there if shrink == 0.0 or there > shrink * x[i] else shrink * x[i]
    for i in range(n_roots, x.size):
        out[i] = max(x[i] + min(max(step * way[i], -longest), longest), lowest)


@compiled
def differences(x, before, slope, slope_before, s, t):
    """s = x − before and t, the change of slope; returns their products.

    These are slope_before·s, slope·s, s·t, s·s and t·t.
    """
    start, end, st, ss, tt = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(x.size):
        a = x[i] - before[i]
        b = slope[i] - slope_before[i]
        s[i] = a
        t[i] = b
        start += slope_before[i] * a
        end += slope[i] * a
        st += a * b
        ss += a * a
        tt += b * b
    return start, end, st, ss, tt
