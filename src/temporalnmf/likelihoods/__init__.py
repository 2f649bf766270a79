"""Likelihoods: the distribution of an entry v given its rate λ = [WH]."""

from .base import Likelihood, Majorizer
from .exponential import Exponential
from .gamma import Gamma
from .gaussian import Gaussian
from .negative_binomial import NegativeBinomial
from .negative_binomial_2 import NegativeBinomial2
from .poisson import Poisson
from .tweedie import Tweedie

__all__ = [
    "Exponential",
    "Gamma",
    "Gaussian",
    "Likelihood",
    "Majorizer",
    "NegativeBinomial",
    "NegativeBinomial2",
    "Poisson",
    "Tweedie",
]
