"""What predictions are compared with, and the simplest of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..likelihoods.base import Array


def rows_of(X: Any, mask: Array) -> Array:
    """Some steps of X, dense."""
    return X[mask].toarray() if sparse.issparse(X) else np.asarray(X)[mask]


def mean_activation(X: Any, train: Array, n_components: int) -> float:
    """Mean activation of a component that the training steps ask for, gaps at their features' mean.

    `train` is a mask of steps or of entries.
    """
    level = _total(X, train) / n_components
    if level == 0.0:
        raise ValueError(
            "X is zero wherever it is observed and not hidden: there is nothing to factorize."
        )
    return level


def _total(X: Any, train: Array) -> float:
    if sparse.issparse(X) and train.ndim == 1:
        return float(X[train].sum() / train.sum())
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    seen = (train if train.ndim == 2 else train[:, None]) & ~np.isnan(dense)
    counts = np.maximum(seen.sum(axis=0), 1)
    return float((np.where(seen, dense, 0.0).sum(axis=0) / counts).sum())


def last_values(X: Any, train: Array, smoothing: float = 0.0) -> Array:
    """Every step of X predicted by the last training step before it, (N, F).

    With smoothing, that pseudo-count is added to each feature and the total kept, as the
    components of a model have it. Steps before the first training step get that one.
    """
    known = np.flatnonzero(train)
    before = np.searchsorted(known, np.arange(len(train)), side="left") - 1
    source = known[np.maximum(before, 0)]
    rows = rows_of(X, np.isin(np.arange(len(train)), known))
    seen = ~np.isnan(rows)
    usual = np.where(seen, rows, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    rows = np.where(seen, rows, usual)
    totals = rows.sum(axis=1, keepdims=True)
    rows = rows + smoothing
    rows *= totals / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
    return rows[np.searchsorted(known, source)]


def expected_steps(model: Any) -> Array:
    """What a fitted model expects of every step of its data, (n_times, n_features)."""
    if model.posterior_ is None:
        return model.activations_ @ model.components_
    return model.smooth().values
