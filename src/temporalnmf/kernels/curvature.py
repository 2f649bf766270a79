"""Curvature of the objective in the log activations of one step, from its data."""

import numpy as np

from .dense import compiled
from .floor import FLOOR


@compiled
def rates(W, features, h):
    """λ_f = w_f · h of some features; W is (F, K), C-ordered."""
    lam = np.empty(features.size)
    for i in range(features.size):
        w, total = W[features[i]], 0.0
        for k in range(h.size):
            total += w[k] * h[k]
        lam[i] = max(total, FLOOR)
    return lam


@compiled
def add_curvature(W, features, curvature, slope, h, block, slopes):
    """Add h_k h_l Σ f″ w_fk w_fl to block (K, K) and h_k Σ f′ w_fk to slopes (K,)."""
    K = h.size
    for i in range(features.size):
        w, c, s = W[features[i]], curvature[i], slope[i]
        for k in range(K):
            x = w[k] * h[k]
            slopes[k] += s * x
            x *= c
            for other in range(k + 1):
                block[k, other] += x * w[other] * h[other]
    for k in range(K):
        for other in range(k):
            block[other, k] = block[k, other]


@compiled
def rates_of_steps(W, G):
    """λ_nf of several steps, with exposed activations G (n, K)."""
    lam = np.empty((len(G), len(W)))
    features = np.arange(len(W))
    for n in range(len(G)):
        lam[n] = rates(W, features, G[n])
    return lam


@compiled
def add_curvatures(W, curvature, slope, G, blocks, slopes):
    """`add_curvature` of all features at several steps, to blocks (n, K, K) and slopes (n, K)."""
    features = np.arange(len(W))
    for n in range(len(G)):
        add_curvature(W, features, curvature[n], slope[n], G[n], blocks[n], slopes[n])


@compiled
def coupling(D, X, K):
    """(DX)ᵀ (n P, N K), in the order (component, column), of D (N, K, n) and X (N, P)."""
    N, n, P = D.shape[0], D.shape[2], X.shape[1]
    rows = np.empty((n * P, N * K))
    for k in range(n):
        for j in range(P):
            row = rows[k * P + j]
            for step in range(N):
                for other in range(K):
                    row[step * K + other] = D[step, other, k] * X[step, j]
    return rows


@compiled
def marginal_precision(D, X, rows, precisions):
    """(EF3): XᵀDX + Λ less the products of `rows`, of D (N, n, n) and X (N, P)."""
    N, n, P = D.shape[0], D.shape[1], X.shape[1]
    S = np.zeros((n * P, n * P))
    for step in range(N):
        x = X[step]
        for k in range(n):
            for other in range(k + 1):
                d = D[step, k, other]
                for i in range(P):
                    for j in range(P):
                        S[k * P + i, other * P + j] += d * x[i] * x[j]
    for a in range(n * P):
        S[a, a] += precisions[a % P]
        for b in range(a + 1):
            total = 0.0
            for m in range(rows.shape[1]):
                total += rows[a, m] * rows[b, m]
            S[a, b] -= total
            S[b, a] = S[a, b]
    return S
