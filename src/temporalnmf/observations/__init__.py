"""The data with their weights and exposures, in the form the kernels read."""

from .base import Observations, observe
from .dense import DenseObservations
from .sparse import SparseObservations

__all__ = ["DenseObservations", "Observations", "SparseObservations", "observe"]
