"""Moves that leave the rates unchanged: one component takes over a part of another.

If components overlap, data do not determine how to divide their common part, and alternating draws
of W and H mix slowly. For a pair (i, j) the group

    w_i → e^{−t} w_i + (1 − e^{−t}) w_j,     h_i → e^t h_i,     h_j → h_j − (e^t − 1) h_i      (D1)

leaves w_i h_i + w_j h_j unchanged, and with it the likelihood, which depends on nothing but rates:
of Poisson and of negative binomial counts, since parts and clumps are drawn anew before anything
depends on them. So t has the density of the priors alone, times the volume e^{t (N − F + 1)} of the
map: N activations of i grow, F − 1 free weights shrink. With effects, h are levels and the rates
w_i c_i h_i + w_j c_j h_j; then h_j → h_j − (e^t − 1) (c_i/c_j) h_i, which is a group with the same
volume, since j is only shifted. A slice step for t leaves the posterior
invariant (generalised Gibbs; Liu and Sabatti 2000).

The range of t in which weights and activations stay positive has the same length after a move, so a
pair with a short range may be skipped. So may data with many features: the volume confines t to
about 1/F, and some feature is usually absent from one of the two components.
"""

from __future__ import annotations

import math

import numpy as np

from .._typing import Array
from ..chains.base import Chain, First
from .learning import slice_step

# Skip more features, or a shorter range of t, than this.
_MOST_FEATURES, _SHORT = 200, 1e-3
# Largest |t|: beyond it, weights would be lost to rounding.
_FAR = 20.0


def share(
    W: Array, H: Array, Z: Array, chain: Chain, smoothing: float, first: First, active: Array,
    rng: np.random.Generator, factors: Array | None = None,
) -> None:  # fmt: skip
    """As many moves as there are components, each for a random pair, in place.

    `factors` (K, N) are those of effects, if there are any.
    """
    K = W.shape[1]
    if K == 1 or np.count_nonzero(active) > _MOST_FEATURES:
        return
    for _ in range(K):
        i, j = map(int, rng.choice(K, size=2, replace=False))
        ratio = None if factors is None else factors[i] / factors[j]
        _move(W, H, Z, chain, smoothing, first, active, rng, i, j, ratio)


def _move(
    W: Array, H: Array, Z: Array, chain: Chain, smoothing: float, first: First, active: Array,
    rng: np.random.Generator, i: int, j: int, ratio: Array | None,
) -> None:  # fmt: skip
    w_i, w_j = W[active, i], W[active, j]
    pair = np.array([i, j])
    h, z, law = H[pair], Z[pair], chain.reordered(pair).path_law(2)
    volume = h.shape[1] - len(w_i) + 1.0
    part = h[0] if ratio is None else ratio * h[0]

    path = np.empty_like(h)

    def moved(t: float) -> Array:
        """The new weights of i; writes the new activations of both to `path`."""
        grown = math.exp(t)
        np.multiply(grown, h[0], out=path[0])
        np.subtract(h[1], (grown - 1.0) * part, out=path[1])
        w = w_j + (w_i - w_j) / grown  # no cancellation if the two are similar
        return w / w.sum()

    def density(t: float) -> float:
        if abs(t) > _FAR:
            return -math.inf
        w = moved(t)
        if not (w.min() > 0.0 and path.min() > 0.0):
            return -math.inf
        value = volume * t + float(law(path, z, first).sum())
        return value + (smoothing - 1.0) * float(np.log(w).sum())

    # Outside this range a weight or an activation would be negative.
    low = math.log(max(1.0 - float(np.min(w_i / w_j)), 1e-300))
    high = math.log1p(float(np.min(h[1] / part)))
    if high - low < _SHORT:
        return
    t = slice_step(rng, density, 0.0, min(high - low, 1.0))
    if t != 0.0:
        W[active, i], H[pair] = moved(t), path
