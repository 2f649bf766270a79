"""The data with their weights and exposures, in the form that kernels read."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse, sparray

from .._typing import Array
from ..likelihoods.base import Likelihood
from ..runtime.threads import Threads
from .base import Observations
from .dense import DenseObservations
from .memory import InMemory
from .sparse import SparseObservations

__all__ = ["DenseObservations", "Observations", "SparseObservations", "observe"]


def observe(
    X: Array | sparray,
    weights: Array | sparray,
    exposure: Array,
    likelihood: Likelihood,
    threads: Threads | None = None,
) -> InMemory:
    """Prepare checked data X (N, F) for the kernels.

    Parameters
    ----------
    X : array or sparse array, (N, F)
        Non-negative, finite wherever its weight is positive.
    weights : array, (N, 1) or (N, F), or sparse array (N, F)
        Non-negative; (N, 1) if the features of a step share their weight.
    exposure : array, (N,)
    likelihood : Likelihood
    threads : Threads, default=None
        None for one thread.
    """
    kind = SparseObservations if issparse(X) else DenseObservations
    observations: InMemory = kind(X, weights, np.asarray(exposure), likelihood)
    if threads is not None:
        observations.threads = threads
    return observations
