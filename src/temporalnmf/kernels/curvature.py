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
