"""Posterior draws by Gibbs sampling: each unknown in turn, given all others."""

from .diagnostics import Diagnosis, Quantity
from .draws import PosteriorDraws

__all__ = ["Diagnosis", "PosteriorDraws", "Quantity"]
