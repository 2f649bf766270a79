"""Predictions of models and of the simplest baseline."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._typing import Array
from ..estimator import TemporalNMF
from .data import Matrix, dense


def mean_activation(X: Matrix, train: Array, n_components: int, exposure: Array) -> float:
    """Mean activation of a component in the training data, gaps filled with the feature's mean.

    `train` is a mask of steps or of entries. With exposure (N,) the result is a rate.
    """
    if sparse.issparse(X) and train.ndim == 1:
        total = float(X[train].sum() / exposure[train].sum())
    else:
        values = dense(X)
        seen = (train if train.ndim == 2 else train[:, None]) & ~np.isnan(values)
        total = float(_rate(np.where(seen, values, 0.0), seen, exposure).sum())
    if total == 0.0:
        raise ValueError("X is zero wherever it is observed and not hidden: nothing to factorize.")
    return total / n_components


def _rate(X: Array, seen: Array, exposure: Array) -> Array:
    """Sums over observed steps per unit of exposure, (n_features,); 0 if never observed."""
    sizes = np.where(seen, exposure[:, None], 0.0).sum(axis=0)
    return X.sum(axis=0) / np.where(sizes > 0.0, sizes, 1.0)


def last_values(X: Matrix, train: Array, smoothing: float, exposure: Array) -> Array:
    """Predictions of every step of X by the rate of the last training step before it, (N, F).

    `smoothing` is a pseudo-count added to each feature, as in the components of a model; totals
    stay the same. Steps up to the first training step are predicted by that one.
    """
    known = np.flatnonzero(train)
    last = np.maximum(np.searchsorted(known, np.arange(len(train))) - 1, 0)  # index into `known`
    rows = dense(X[known])
    seen = ~np.isnan(rows)
    usual = _rate(np.where(seen, rows, 0.0), seen, exposure[known])
    rows = np.where(seen, rows, usual * exposure[known, None])
    totals = rows.sum(axis=1, keepdims=True)
    rows = rows + smoothing
    rows *= totals / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
    return rows[last] * (exposure / exposure[known[last]])[:, None]


def expected_steps(model: TemporalNMF) -> Array:
    """Expected values of a fitted model at every step of its data, (n_times, n_features)."""
    if model.posterior_ is None:
        return model.activations_ @ model.components_ * model.exposure_[:, None]
    return model.smooth().values
