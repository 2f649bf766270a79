"""Starting values of a fit."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._typing import Array
from ..data.series import AnySeries, Series, dense
from ..data.validation import check_start
from ..objective import Problem
from ..observations.features import Features
from ..observations.starts import skip_rows
from .config import Config, Factors

# Least entries of a start from singular vectors, for data with a mean of one.
_SMALLEST = 1e-6


def start_factors(
    config: Config,
    problem: Problem,
    series: AnySeries,
    kept: Array,
    rng: np.random.Generator,
    unit: float = 1.0,
) -> tuple[Features, Array]:
    """Starting values W (F, K), as `Features` on the simplex, and H (K, N′).

    H is in the unit of the problem; the series is as given.
    """
    observations = problem.observations
    F, _ = observations.shape
    K, init = config.n_components, config.init
    features, W = observations.blank(), None
    if config.previous is not None:
        W, H = _warm(config.previous, K, series, kept)
    elif isinstance(init, tuple | list):
        components, activations = check_start(init, K, series.n_steps, F)
        W, H = components.T, activations.T[:, kept]
    elif isinstance(init, str) and init == "random":
        # Gamma(2, 1/2) entries as in the paper, H at the level of the data.
        features.randomise(rng, K)
        skip_rows(rng, F, K)
        H = rng.gamma(2.0, 0.5, size=(K, len(kept))) * observations.level / K
    elif isinstance(init, str) and init == "nndsvda":
        W, H = _nndsvda(series.take(kept), K, rng)
    else:
        raise ValueError(
            f"init={init!r} is not known. Choose 'random', 'nndsvda' or give a pair "
            f"(components, activations)."
        )
    if W is not None:
        features = observations.hold(np.array(W, order=observations.order))
        H = H / unit
    mass = features.only_active(problem.smoothing)
    return features, np.array(H * mass[:, None])


def start_activations(series: AnySeries, n_components: int) -> Array:
    """H (K, N) with the observed total of each step divided equally, gaps interpolated."""
    steps = np.flatnonzero(series.observed)
    totals = series.totals[steps] / series.exposure[steps]
    # A step of zeros would start, and stay, at zero.
    totals = np.maximum(totals, 1e-3 * totals.mean() if totals.any() else 1.0)
    level = np.interp(np.arange(series.n_steps), steps, totals)
    return np.repeat(level[None] / n_components, n_components, axis=0)


def _warm(
    previous: Factors, n_components: int, series: AnySeries, kept: Array
) -> tuple[Array, Array]:
    """The last solution, for warm starts; a series of other length starts as in `transform`."""
    K, F = previous.components.shape
    if n_components != K or series.shape[1] != F:
        raise ValueError(
            f"warm_start: the fitted components have shape {(K, F)}, now "
            f"{(n_components, series.shape[1])} is asked for. Use a new estimator."
        )
    W = np.maximum(previous.components.T, 1e-12 / F)
    if len(previous.levels) == series.n_steps:
        return W, previous.levels.T[:, kept]
    return W, start_activations(series.take(kept), K)


def _nndsvda(series: AnySeries, n_components: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """scikit-learn's start from singular vectors, missing entries at their feature's mean."""
    from sklearn.decomposition._nmf import _initialize_nmf

    if not isinstance(series, Series):
        raise ValueError("init='nndsvda' needs all data in memory. Take init='random' for blocks.")
    if n_components > min(series.shape):
        raise ValueError(
            f"n_components={n_components} is more than init='nndsvda' has singular vectors for: "
            f"{series.shape[0]} step(s) and {series.shape[1]} feature(s) take part. Use "
            f"init='random'."
        )
    # Singular vectors would have the precision of the data; kernels need double precision.
    X, weights = series.X.astype(np.float64, copy=False), dense(series.weights)
    if not np.all(weights > 0):
        X = dense(X)
        seen = np.broadcast_to(weights > 0, X.shape)
        X = np.where(seen, X, 0.0)
        X = np.where(seen, X, X.sum(axis=0) / np.maximum(seen.sum(axis=0), 1))
    elif sparse.issparse(X):
        X = sparse.csr_matrix(X)
    seed = int(rng.integers(2**31 - 1))
    # Its thresholds are for data near one, and a singular vector of zeros gives NaN.
    mean = X.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        H, W = _initialize_nmf(X / mean, n_components, init="nndsvda", random_state=seed)
    return np.fmax(W.T, _SMALLEST), mean * np.fmax(H.T, _SMALLEST)
