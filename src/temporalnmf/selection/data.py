"""Data for comparisons of models: on their time grid, NaN if not observed."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._typing import Array
from ..cluster.sources import is_split
from ..data.covariates import Wanted, covariates_at
from ..data.series import Series, dense
from ..data.validation import Data, check_series
from ..effects.covariates import Covariates
from ..inference.config import likelihood_of
from ..likelihoods.base import Likelihood
from ..reading import TimeTable
from ..reading.sheet import numbered_names
from ..timeline.grid import Timeline, timeline_of

# Largest dense copy of sparse data with gaps, in bytes.
_MOST_BYTES = 2 * 10**9

Matrix: TypeAlias = Array | sparse.csr_array


class Gridded(NamedTuple):
    """Data (N, F) on the steps of a timeline, with exposures (N,) and covariates.

    The data are dense, NaN where they are missing or masked, or sparse if everything is observed.
    """

    X: Matrix
    exposure: Array
    timeline: Timeline
    covariates: Covariates | None = None

    @classmethod
    def undated(cls, X: Matrix, exposure: Array | None = None) -> Gridded:
        """Data whose steps are numbered."""
        steps = np.arange(X.shape[0])
        return cls(X, np.ones(len(steps)) if exposure is None else exposure, timeline_of(steps))

    def until(self, n: int) -> Gridded:
        """The first n steps."""
        covariates = None if self.covariates is None else self.covariates.take(np.arange(n))
        line = replace(self.timeline, labels=self.timeline.labels[:n], rows=np.arange(n))
        return Gridded(self.X[:n], self.exposure[:n], line, covariates)

    @property
    def known(self) -> Array | None:
        """Values of the covariates, (N, C)."""
        return None if self.covariates is None else self.covariates.values

    @property
    def table(self) -> TimeTable:
        """The data with their times, for fits."""
        line, names = self.timeline, np.array(numbered_names(self.X.shape[1]))
        return TimeTable(self.X, line.times, names, (), line)


def gridded(
    X: Data,
    mask: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    likelihood: str | Likelihood = "poisson",
    covariates: ArrayLike | None = None,
) -> Gridded:
    """Data, exposures and covariates on the time grid that `TemporalNMF.fit` uses."""
    if is_split(X):
        problem = f"X is {type(X).__name__}, but models are compared on data in memory."
        raise ValueError(f"{problem} Give an array, a frame or the path of a table.")
    series = check_series(X, mask, exposure, likelihood_of(likelihood)).series
    assert series.timeline is not None
    known = covariates_at(covariates, Wanted.of(series.timeline))
    line = replace(series.timeline, rows=np.arange(series.n_steps))
    return Gridded(_with_gaps(series), series.exposure, line, known)


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
