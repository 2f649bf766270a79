"""Vector arithmetic of the accelerated solver, one pass each over the variables.

A vector holds y (F·K numbers in the memory order of W), then x (K·N, row by row). W = y²/Σ_f y²;
what x stands for is the solver's business. Arrays named y and W are (F, K) in either memory
order, and loops follow it.
"""

import numpy as np

from .dense import compiled
from .floor import FLOOR


@compiled
def weights(y, W):
    """W = y² / Σ_f y²; returns the sums."""
    F, K = y.shape
    totals = np.zeros(K)
    if W.strides[0] > W.strides[1]:
        for f in range(F):
            for k in range(K):
                totals[k] += y[f, k] * y[f, k]
        for f in range(F):
            for k in range(K):
                W[f, k] = y[f, k] * y[f, k] / totals[k]
    else:
        for k in range(K):
            roots, column = y[:, k], W[:, k]
            total = 0.0
            for f in range(F):
                total += roots[f] * roots[f]
            totals[k] = total
            for f in range(F):
                column[f] = roots[f] * roots[f] / total
    return totals


@compiled
def weight_slopes(y, W, A, B, smoothing, totals, slope, curvature):
    """Gradient in y of value − s Σ log w on the simplex, and the curvature of its bound.

    A and B are the sums for W; B may be (1, K). All others are (F, K). On the simplex q w of the
    bound (M) becomes (q + μ) w with the multiplier μ, and at its minimum each −p log w + (q + μ) w
    bends like 4 (q + μ) y². A share of A keeps that positive far from there.
    """
    F, K = y.shape
    shared = B.shape[0] == 1
    multipliers = np.zeros(K)
    if W.strides[0] > W.strides[1]:
        for f in range(F):
            for k in range(K):
                b = B[0 if shared else f, k]
                multipliers[k] += W[f, k] * (A[f, k] - b) + (smoothing if W[f, k] > 0.0 else 0.0)
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
            multiplier, first = 0.0, b[0]
            for f in range(F):
                multiplier += w[f] * (a[f] - (first if shared else b[f]))
                multiplier += smoothing if w[f] > 0.0 else 0.0
            factor = 2.0 / totals[k]
            for f in range(F):
                rate = (first if shared else b[f]) + multiplier
                least = w[f] if w[f] > FLOOR else FLOOR
                s[f] = factor * root[f] * (rate - a[f] - smoothing / least)
                bend = rate if rate > 0.1 * a[f] else 0.1 * a[f]
                c[f] = 2.0 * factor * (bend if bend > FLOOR else FLOOR)


@compiled
def dot(a, b):
    """a·b; BLAS would use threads of its own, and wait for them."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled
def _subtract_and_dot(q, factor, t, s):
    """q −= factor·t; returns q·s."""
    total = 0.0
    for i in range(q.size):
        q[i] -= factor * t[i]
        total += q[i] * s[i]
    return total


@compiled
def _divide(vector, curvature, diagonal, off):
    """Divide by the metric: elementwise for y, a tridiagonal matrix per row for x."""
    K, N = diagonal.shape
    head = vector.size - K * N
    front = vector[:head]
    for i in range(head):
        front[i] /= curvature[i]
    pivots = np.empty(N)
    for k in range(K):
        row = vector[head + k * N : head + (k + 1) * N]
        pivots[0] = diagonal[k, 0]
        for n in range(1, N):
            share = off[k, n - 1] / pivots[n - 1]
            pivots[n] = diagonal[k, n] - share * off[k, n - 1]
            row[n] -= share * row[n - 1]
        row[N - 1] /= pivots[N - 1]
        for n in range(N - 2, -1, -1):
            row[n] = (row[n] - off[k, n] * row[n + 1]) / pivots[n]


@compiled
def direction(slope, S, T, products, order, curvature, diagonal, off, out):
    """−(approximate inverse Hessian)·slope by the two loops of L-BFGS; returns slope·out.

    Rows of S and T are the last moves and the changes of slope that went with them, `products`
    their products, `order` their row numbers from new to old.
    """
    shares = np.empty(order.size)
    for i in range(out.size):
        out[i] = slope[i]
    scale = 1.0
    if order.size > 0:
        product = dot(out, S[order[0]])
        for i in range(order.size):
            shares[i] = product / products[order[i]]
            following = S[order[min(i + 1, order.size - 1)]]
            product = _subtract_and_dot(out, shares[i], T[order[i]], following)
        change = np.empty(out.size)
        for i in range(out.size):
            change[i] = T[order[0], i]
        _divide(change, curvature, diagonal, off)
        scale = products[order[0]] / max(dot(change, T[order[0]]), 1e-300)
        scale = min(max(scale, 0.05), 20.0)
    _divide(out, curvature, diagonal, off)
    for i in range(out.size):
        out[i] *= scale
    if order.size > 0:
        product = dot(out, T[order[-1]])
        for i in range(order.size - 1, -1, -1):
            share = product / products[order[i]] - shares[i]
            following = T[order[max(i - 1, 0)]]
            product = _subtract_and_dot(out, share, S[order[i]], following)
    total = 0.0
    for i in range(out.size):
        out[i] = -out[i]
        total += out[i] * slope[i]
    return total


@compiled
def move(x, step, way, n_weights, shrink, n_roots, lowest, longest, out):
    """x + step·way, where weights keep at least a share `shrink` of their root (or, if it is
    zero, may change sign) and logarithms move by at most `longest` and stay above `lowest`.

    First come n_weights roots, then others up to n_roots, then logarithms.
    """
    for i in range(n_weights):
        there = x[i] + step * way[i]
        out[i] = there if shrink == 0.0 or there > shrink * x[i] else shrink * x[i]
    for i in range(n_weights, n_roots):
        out[i] = x[i] + step * way[i]
    for i in range(n_roots, x.size):
        out[i] = max(x[i] + min(max(step * way[i], -longest), longest), lowest)


@compiled
def slopes(slope, slope_then, x, x_then):
    """Slopes along the way from one point to another, at its start and at its end."""
    start, end = 0.0, 0.0
    for i in range(x.size):
        step = x_then[i] - x[i]
        start += slope[i] * step
        end += slope_then[i] * step
    return start, end


@compiled
def differences(x, before, slope, slope_before, s, t):
    """s = x − before and t = the change of slope; returns s·t, s·s and t·t."""
    st, ss, tt = 0.0, 0.0, 0.0
    for i in range(x.size):
        a = x[i] - before[i]
        b = slope[i] - slope_before[i]
        s[i] = a
        t[i] = b
        st += a * b
        ss += a * a
        tt += b * b
    return st, ss, tt
