"""Posterior draws: each unknown from its law given all others, in turn (Gibbs)."""

from .diagnostics import Diagnosis, Quantity
from .draws import PosteriorDraws

__all__ = ["Diagnosis", "PosteriorDraws", "Quantity"]
