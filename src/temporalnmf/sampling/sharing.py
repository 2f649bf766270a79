"""Moves along which the rates do not change at all: one component takes over a part of another.

Where components overlap, data cannot tell how much of what they share belongs to which, and draws
of W given H, then H given W, creep along. For a pair (i, j) the group

    w_i → e^{−t} w_i + (1 − e^{−t}) w_j,     h_i → e^t h_i,     h_j → h_j − (e^t − 1) h_i      (D1)

leaves w_i h_i + w_j h_j as it is, so t has the density of the priors alone, times the volume
e^{t (N − F + 1)} of the map: N activations of i grow, F − 1 free weights shrink. A slice step for t
keeps the posterior (generalised Gibbs; Liu and Sabatti 2000).

The way from where a weight would become negative to where an activation would is as long wherever
one stands on it, so a pair for which it is short may be left out. So may data with many features:
the volume holds t within 1/F, and there is a feature that one of two components lacks.
"""

from __future__ import annotations

import math

import numpy as np

from .._typing import Array
from ..chains.base import Chain, First
from .learning import slice_step

# Features from which on, and ways up to which, nothing is gained.
_MOST_FEATURES, _SHORT = 200, 1e-3
# Of t: beyond, weights would be lost to rounding.
_FAR = 20.0


def share(
    W: Array, H: Array, Z: Array, chain: Chain, smoothing: float, first: First, active: Array,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """As many moves as there are components, each for a random pair, in place."""
    K = W.shape[1]
    if K == 1 or np.count_nonzero(active) > _MOST_FEATURES:
        return
    for _ in range(K):
        i, j = map(int, rng.choice(K, size=2, replace=False))
        _move(W, H, Z, chain, smoothing, first, active, rng, i, j)


def _move(
    W: Array, H: Array, Z: Array, chain: Chain, smoothing: float, first: First, active: Array,
    rng: np.random.Generator, i: int, j: int,
) -> None:  # fmt: skip
    w_i, w_j = W[active, i], W[active, j]
    pair = np.array([i, j])
    h, z, law = H[pair], Z[pair], chain.reordered(pair).path_law(2)
    volume = h.shape[1] - len(w_i) + 1.0

    path = np.empty_like(h)

    def moved(t: float) -> Array:
        """The weights of i; activations of both are left in `path`."""
        grown = math.exp(t)
        np.multiply(grown, h[0], out=path[0])
        np.subtract(h[1], (grown - 1.0) * h[0], out=path[1])
        w = w_j + (w_i - w_j) / grown  # where the two are alike nothing cancels
        return w / w.sum()

    def density(t: float) -> float:
        if abs(t) > _FAR:
            return -math.inf
        w = moved(t)
        if not (w.min() > 0.0 and path.min() > 0.0):
            return -math.inf
        value = volume * t + float(law(path, z, first).sum())
        return value + (smoothing - 1.0) * float(np.log(w).sum())

    # Beyond these ends a weight or an activation would be negative.
    low = math.log(max(1.0 - float(np.min(w_i / w_j)), 1e-300))
    high = math.log1p(float(np.min(h[1] / h[0])))
    if high - low < _SHORT:
        return
    t = slice_step(rng, density, 0.0, min(high - low, 1.0))
    if t != 0.0:
        W[active, i], H[pair] = moved(t), path
