"""Chains: priors on the activations over time, which can also be simulated."""

from .arg import ARG
from .base import Chain
from .bgar import BGAR, map_region
from .gap import GaP
from .gar import GAR
from .hier_rate import HierRate
from .hier_shape import HierShape
from .none import NoChain
from .outlook import Outlook
from .process import Process
from .rate import Rate
from .regime import LongRun, Paths, Regime
from .shape import Shape

__all__ = [
    "ARG",
    "BGAR",
    "GAR",
    "Chain",
    "GaP",
    "HierRate",
    "HierShape",
    "LongRun",
    "NoChain",
    "Outlook",
    "Paths",
    "Process",
    "Rate",
    "Regime",
    "Shape",
    "map_region",
]  # fmt: skip
