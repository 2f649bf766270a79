"""Posterior draws of components and activations, one unknown after the other.

Counts are split over the components, v_fn = Σ_k v_fkn; given the parts,

    column k of W ~ Dirichlet(s + Σ_n v_fkn),     Σ_f v_fkn ~ Poisson(e_n h_kn),

since columns of W sum to one, so the activations of each component are drawn on their own
(`conditionals.py`).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..chains.base import Chain
from ..kernels.allocation import allocate_rows, draw_weights
from ..likelihoods.base import Array
from ..observations.base import cut
from ..parallel import MOST_SHARDS, Workers
from ..validation import Series
from .conditionals import First, draw_activations, start_auxiliary

# Counts that make a shard worth handing to a thread.
_SHARD = 2**12


class Gibbs:
    """The state of one chain of draws, and the sweep that moves it on.

    Parameters
    ----------
    series : Series
        Counts; steps may be missing, single entries not.
    chain : Chain
        With hyper-parameters that are numbers.
    W, H : array, (F, K) and (K, N)
        Where to start, positive; columns of W sum to one.
    smoothing : float
        Of the Dirichlet prior on the columns of W, positive.
    first : First
        Law of the first activation, for chains that have none of their own.
    seed : numpy SeedSequence
    workers : Workers
    """

    def __init__(
        self,
        series: Series,
        chain: Chain,
        W: Array,
        H: Array,
        smoothing: float,
        first: First,
        seed: np.random.SeedSequence,
        workers: Workers,
    ) -> None:
        weights = series.weights
        if (
            sparse.issparse(weights)
            or weights.shape[1] > 1
            or not np.all((weights == 0) | (weights == 1))
        ):
            raise ValueError("Draws need whole steps: masks of entries and weights come later.")
        there = np.ravel(weights) > 0.0
        X = sparse.csr_array(series.X if sparse.issparse(series.X) else _visible(series.X, there))
        X = sparse.csr_array(sparse.diags_array(there.astype(float)) @ X)
        X.eliminate_zeros()
        if np.any(X.data != np.round(X.data)):
            raise ValueError("Draws need whole numbers, and X has others.")
        by_feature = sparse.csr_array(X.T)
        self._counts = by_feature.indptr, by_feature.indices, by_feature.data
        bounds = np.searchsorted(by_feature.indptr, cut(int(by_feature.nnz), _SHARD))
        bounds[0], bounds[-1] = 0, by_feature.shape[0]
        self._bounds = bounds
        self._streams = tuple(map(np.random.default_rng, seed.spawn(MOST_SHARDS)))
        self._rng = np.random.default_rng(seed.spawn(1)[0])
        self.exposure = np.where(there, series.exposure, 0.0)
        self.active = np.ones(by_feature.shape[0], dtype=bool)
        self.chain, self.smoothing, self.first, self.workers = chain, smoothing, first, workers
        self.W, self.H = np.array(W, order="C"), np.array(H, order="C")
        self.Z = start_auxiliary(chain, self.H)

    def sweep(self) -> None:
        """Draw every unknown once."""
        n_shards, (F, K), N = len(self._bounds) - 1, self.W.shape, self.H.shape[1]
        YW, YH = np.empty((F, K)), np.empty((n_shards, N, K))
        HT = np.ascontiguousarray(self.H.T)
        bounds, streams = self._bounds, self._streams
        self.workers.run(
            allocate_rows, n_shards, *self._counts, self.W, HT, bounds, streams, YW, YH
        )
        self.workers.run(
            draw_weights, n_shards, YW, self.smoothing, self.active, bounds, streams, self.W
        )
        self.W /= self.W.sum(axis=0)
        Y = np.ascontiguousarray(YH.sum(axis=0).T)
        draw_activations(self.chain, self.H, self.Z, Y, self.exposure, self._rng, self.first)


def _visible(X: Array, there: Array) -> Array:
    """Missing steps as zeros; what they hold does not matter."""
    return np.where(there[:, None], X, 0.0)
