"""Likelihoods: the distribution of an entry v given its rate λ = [WH]."""

from .base import Likelihood, Majorizer
from .exponential import Exponential
from .poisson import Poisson

__all__ = ["Exponential", "Likelihood", "Majorizer", "Poisson"]
