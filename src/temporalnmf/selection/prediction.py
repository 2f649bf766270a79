"""What predictions are compared with, and the simplest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .._typing import Array

if TYPE_CHECKING:
    from ..estimator import TemporalNMF


def rows_of(X: Any, mask: Array) -> Array:
    """Some steps of X, dense."""
    return X[mask].toarray() if sparse.issparse(X) else np.asarray(X)[mask]


def mean_activation(
    X: Any, train: Array, n_components: int, exposure: Array | None = None
) -> float:
    """Mean activation of a component that the training steps ask for, gaps at their features' mean.

    `train` is a mask of steps or of entries. With exposure (N,) it is a rate.
    """
    exposure = np.ones(X.shape[0]) if exposure is None else exposure
    level = _total(X, train, exposure) / n_components
    if level == 0.0:
        raise ValueError(
            "X is zero wherever it is observed and not hidden: there is nothing to factorize."
        )
    return level


def _total(X: Any, train: Array, exposure: Array) -> float:
    if sparse.issparse(X) and train.ndim == 1:
        return float(X[train].sum() / exposure[train].sum())
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    seen = (train if train.ndim == 2 else train[:, None]) & ~np.isnan(dense)
    return float(_rate(np.where(seen, dense, 0.0), seen, exposure).sum())


def _rate(X: Array, seen: Array, exposure: Array) -> Array:
    """Sums over the seen steps per unit of exposure, (n_features,); 0 for features never seen."""
    sizes = np.where(seen, exposure[:, None], 0.0).sum(axis=0)
    return X.sum(axis=0) / np.where(sizes > 0.0, sizes, 1.0)


def last_values(
    X: Any, train: Array, smoothing: float = 0.0, exposure: Array | None = None
) -> Array:
    """Every step of X predicted by the rate of the last training step before it, (N, F).

    With smoothing, that pseudo-count is added to each feature and the total kept, as the
    components of a model have it. Steps before the first training step get that one.
    """
    exposure = np.ones(len(train)) if exposure is None else exposure
    known = np.flatnonzero(train)
    before = np.searchsorted(known, np.arange(len(train)), side="left") - 1
    source = known[np.maximum(before, 0)]
    rows = rows_of(X, np.isin(np.arange(len(train)), known))
    seen = ~np.isnan(rows)
    usual = _rate(np.where(seen, rows, 0.0), seen, exposure[known])
    rows = np.where(seen, rows, usual * exposure[known, None])
    totals = rows.sum(axis=1, keepdims=True)
    rows = rows + smoothing
    rows *= totals / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
    return rows[np.searchsorted(known, source)] * (exposure / exposure[source])[:, None]


def expected_steps(model: TemporalNMF) -> Array:
    """What a fitted model expects of every step of its data, (n_times, n_features)."""
    if model.posterior_ is None:
        return model.activations_ @ model.components_ * model.exposure_[:, None]
    return model.smooth().values
