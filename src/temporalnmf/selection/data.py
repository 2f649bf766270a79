"""Data for comparisons of models: on their time grid, NaN if not observed."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._typing import Array
from ..cluster.sources import is_split
from ..data.series import Series, dense
from ..data.validation import Data, check_series
from ..inference.config import likelihood_of
from ..likelihoods.base import Likelihood

# Largest dense copy of sparse data with gaps, in bytes.
_MOST_BYTES = 2 * 10**9

Matrix: TypeAlias = Array | sparse.csr_array


def gridded(
    X: Data,
    mask: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    likelihood: str | Likelihood = "poisson",
) -> tuple[Matrix, Array]:
    """Data (N, F) and exposures (N,) on the time grid that `TemporalNMF.fit` uses.

    The data are dense, NaN where they are missing or masked, or sparse if everything is observed.
    """
    if is_split(X):
        problem = f"X is {type(X).__name__}, but models are compared on data in memory."
        raise ValueError(f"{problem} Give an array, a frame or the path of a table.")
    series = check_series(X, mask, exposure, likelihood_of(likelihood)).series
    return _with_gaps(series), series.exposure


def _with_gaps(series: Series) -> Matrix:
    X, weights = series.X, series.weights
    thin = not isinstance(weights, np.ndarray)
    values = np.asarray(weights.data if thin else weights, dtype=float)
    wrong = (values != 0.0) & (values != 1.0)
    if wrong.any():
        expected = "1 or True for observed entries and 0 or False for missing ones"
        found = f"{values[wrong].flat[0]:g}"
        raise ValueError(f"mask contains {found}: comparisons take {expected}, no other weights.")
    if not thin and values.all():
        return X
    size = 8 * X.shape[0] * X.shape[1]
    if sparse.issparse(X) and size > _MOST_BYTES:
        problem = f"X has missing values, and as a dense array it would take {size / 1e9:.1f} GB."
        raise ValueError(f"{problem} Keep fewer features, or aggregate to longer periods.")
    return np.where(dense(weights) > 0.0, dense(X), np.nan)
