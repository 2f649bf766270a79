"""Predictions of models and of the simplest baselines."""

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
    return _repeated(X, train, _last_of(train), smoothing, exposure)


def last_cycles(
    X: Matrix, train: Array, smoothing: float, exposure: Array, positions: Array
) -> Array:
    """The same by the last training step before it with its position (N,) in a cycle.

    Steps without one are predicted as by `last_values`.
    """
    last = _last_of(train)
    for position in np.unique(positions):
        here = positions == position
        of_same = np.cumsum(train & here) - (train & here)  # earlier training steps like it
        later = here & (of_same > 0)
        numbers = np.cumsum(train) - 1  # index into the training steps
        last[later] = numbers[train & here][of_same[later] - 1]
    return _repeated(X, train, last, smoothing, exposure)


def _last_of(train: Array) -> Array:
    """For each step the number of the last training step before it, or of the first, (N,)."""
    known = np.flatnonzero(train)
    return np.asarray(np.maximum(np.searchsorted(known, np.arange(len(train))) - 1, 0))


def _repeated(X: Matrix, train: Array, last: Array, smoothing: float, exposure: Array) -> Array:
    """Each step predicted by the rate of one of the training steps, whose number is `last`."""
    known = np.flatnonzero(train)
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
