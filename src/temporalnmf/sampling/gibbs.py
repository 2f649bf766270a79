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
        Counts; steps and single entries may be missing.
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
        there = series.observed
        X, unseen = _counts(series, there)
        if np.any(X.data != np.round(X.data)):
            raise ValueError("Draws need whole numbers, and X has others.")
        by_feature = sparse.csr_array(X.T)
        self._counts = by_feature.indptr, by_feature.indices, by_feature.data
        self._unseen = unseen.indptr, unseen.indices
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
            allocate_rows, n_shards, *self._counts, *self._unseen, self.exposure,
            self.W, HT, bounds, streams, YW, YH,
        )  # fmt: skip
        self.workers.run(
            draw_weights, n_shards, YW, self.smoothing, self.active, bounds, streams, self.W
        )
        self.W /= self.W.sum(axis=0)
        Y = np.ascontiguousarray(YH.sum(axis=0).T)
        draw_activations(self.chain, self.H, self.Z, Y, self.exposure, self._rng, self.first)


def _counts(series: Series, there: Array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Observed counts (N, F), and a row per feature of what was not observed in observed steps."""
    weights = series.weights
    weights = weights.toarray() if sparse.issparse(weights) else np.asarray(weights, dtype=float)
    if not np.all((weights == 0.0) | (weights == 1.0)):
        raise ValueError("Draws need entries that are observed or not: weights have no law.")
    if sparse.issparse(series.X):
        X = sparse.csr_array(series.X.multiply(weights))
    else:
        X = sparse.csr_array(np.where(weights > 0.0, series.X, 0.0))
    X.eliminate_zeros()
    if weights.shape[1] == 1:
        return X, sparse.csr_array(X.shape[::-1])
    return X, sparse.csr_array((there[:, None] & (weights == 0.0)).T)
