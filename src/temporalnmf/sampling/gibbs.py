"""Posterior draws of components and activations, one unknown after the other.

Counts are split over the components, v_fn = Σ_k v_fkn; given the parts,

    column k of W ~ Dirichlet(s + Σ_n v_fkn),     Σ_f v_fkn ~ Poisson(e_n h_kn),

since columns of W sum to one, so the activations of each component are drawn on their own
(`conditionals/`). Hyper-parameters to learn are drawn in between (`learning.py`).
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from ..kernels.allocation import allocate_rows, draw_weights
from ..kernels.floor import FLOOR
from ..likelihoods.base import Array
from ..observations.base import Observations, cut
from ..parallel import MOST_SHARDS, Workers
from ..validation import Series
from .conditionals import First, Paths, draw_activations, start_auxiliary
from .learning import Learned, Smoothing
from .sharing import share

# Counts that make a shard worth handing to a thread.
_SHARD = 2**12


class Gibbs:
    """The state of one run of draws, and the sweep that moves it on.

    Parameters
    ----------
    series : Series
        Counts; steps and single entries may be missing.
    law : Learned
        The chain, with hyper-parameters that move or stay.
    W, H : array, (F, K) and (K, N)
        Where to start, positive; columns of W sum to one.
    smoothing : Smoothing
        Of the Dirichlet prior on the columns of W.
    first : First
        Law of the first activation, for chains that have none of their own.
    seed : numpy SeedSequence
    workers : Workers
    held : {0, 1}
        Steps at the beginning whose activations are known.
    """

    def __init__(
        self,
        series: Series,
        law: Learned,
        W: Array,
        H: Array,
        smoothing: Smoothing,
        first: First,
        seed: np.random.SeedSequence,
        workers: Workers,
        *,
        held: int = 0,
    ) -> None:
        there = series.observed
        X, unseen, self.active = _counts(series, there)
        by_feature = sparse.csr_array(X.T)
        self._counts = by_feature.indptr, by_feature.indices, by_feature.data
        self._unseen = unseen.indptr, unseen.indices
        bounds = np.searchsorted(by_feature.indptr, cut(int(by_feature.nnz), _SHARD))
        bounds[0], bounds[-1] = 0, by_feature.shape[0]
        self._bounds = bounds
        self._streams = tuple(map(np.random.default_rng, seed.spawn(MOST_SHARDS)))
        # It takes 0.2 ms to hand all of them over: longer than a sweep of small data.
        self._handed = self._streams[:1] if len(bounds) == 2 else self._streams
        self._rng = np.random.default_rng(seed.spawn(1)[0])
        self.exposure = np.where(there, series.exposure, 0.0)
        self.law, self.smoothing, self.first, self.workers = law, smoothing, first, workers
        self.held = held
        self.W, self.H = np.array(W, order="C"), np.array(H, order="C")
        self.Z = start_auxiliary(law.chain, self.H)

    def sweep(self, *, fixed_W: bool = False) -> None:
        """Draw every unknown once; with `fixed_W` activations only."""
        of_features, of_steps = self._allocate()
        if not fixed_W:
            self._draw_components(of_features)
        draw_activations(
            self.law.chain, self.H, self.Z, of_steps, self.exposure, self._rng, self.first,
            held=self.held,
        )  # fmt: skip
        if not fixed_W:
            share(
                self.W, self.H, self.Z, self.law.chain, self.smoothing.value, self.first,
                self.active, self._rng,
            )  # fmt: skip
            self.law.draw(self.H, self.Z, self._rng)

    def _allocate(self) -> tuple[Array, Array]:
        """Counts of each component by feature (F, K) and by step (K, N)."""
        n_shards, (F, K), N = len(self._bounds) - 1, self.W.shape, self.H.shape[1]
        YW, YH = np.empty((F, K)), np.empty((n_shards, N, K))
        HT = np.ascontiguousarray(self.H.T)
        self.workers.run(
            allocate_rows, n_shards, *self._counts, *self._unseen, self.exposure,
            self.W, HT, self._bounds, self._handed, YW, YH,
        )  # fmt: skip
        return YW, np.ascontiguousarray(YH.sum(axis=0).T)

    def _draw_components(self, counts: Array) -> None:
        self.smoothing.draw(counts[self.active] if self.smoothing.learned else counts, self._rng)
        self.workers.run(
            draw_weights, len(self._bounds) - 1, counts, self.smoothing.value, self.active,
            self._bounds, self._handed, self.W,
        )  # fmt: skip
        self.W /= self.W.sum(axis=0)

    def log_posterior(self, observations: Observations) -> float:
        """Log density of data, components, activations and what is learned, up to a constant."""
        s, K = self.smoothing.value, self.W.shape[1]
        W = self.W[self.active]
        value = -observations.value(np.array(self.W, order=observations.order), self.H)
        value += float(Paths(self.law.chain, K)(self.H, self.Z, self.first).sum())
        value += K * float(gammaln(len(W) * s) - len(W) * gammaln(s))
        value += (s - 1.0) * float(np.log(np.maximum(W, FLOOR)).sum())
        return value + self.law.log_prior() + self.smoothing.log_prior()

    def state(self) -> dict[str, Array]:
        """Everything that the draws to come depend on, as arrays."""
        streams = [rng.bit_generator.state for rng in (*self._streams, self._rng)]
        return {
            "W": self.W,
            "H": self.H,
            "Z": self.Z,
            "smoothing": np.array(self.smoothing.value),
            "streams": np.array(json.dumps(streams)),
            **{f"learned_{name}": x for name, x in self.law.coordinates.items()},
        }

    def restore(self, state: Any) -> None:
        """Go on where `state` was taken."""
        self.W, self.H, self.Z = (np.array(state[name]) for name in "WHZ")
        self.smoothing.value = float(state["smoothing"])
        streams = json.loads(str(state["streams"]))
        for rng, found in zip((*self._streams, self._rng), streams, strict=True):
            rng.bit_generator.state = found
        self.law.move({name: np.array(state[f"learned_{name}"]) for name in self.law.names})


def check_counts(series: Series) -> None:
    """Refuse weights, and numbers that are not whole."""
    _counts(series, series.observed)


def _counts(series: Series, there: Array) -> tuple[sparse.csr_array, sparse.csr_array, Array]:
    """Counts (N, F), a row per feature of what observed steps lack, features ever observed."""
    weights = series.weights
    weights = weights.toarray() if sparse.issparse(weights) else np.asarray(weights, dtype=float)
    known = np.isin(weights, (0.0, 1.0))
    if not known.all():
        raise ValueError(
            f"mask has the weight {weights[~known].flat[0]:g}: draws (solver='gibbs') need entries "
            f"that are observed or not. Give 1 and 0, or use solver='accelerated'."
        )
    if sparse.issparse(series.X):
        X = sparse.csr_array(series.X.multiply(weights))
    else:
        X = sparse.csr_array(np.where(weights > 0.0, series.X, 0.0))
    X.eliminate_zeros()
    whole = X.data == np.round(X.data)
    if not whole.all():
        raise ValueError(
            f"X has {X.data[~whole][0]:g}, and draws (solver='gibbs') need counts, whole numbers. "
            f"Round X, give the size behind rates as exposure=, or use solver='accelerated'."
        )
    if weights.shape[1] == 1:
        return X, sparse.csr_array(X.shape[::-1]), np.ones(X.shape[1], dtype=bool)
    active = np.any(weights > 0.0, axis=0)
    unseen = there[:, None] & (weights == 0.0) & active
    return X, sparse.csr_array(unseen.T), active
