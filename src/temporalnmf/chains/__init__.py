"""How components move in time: the priors on the activations."""

from .base import Chain
from .bgar import BGAR
from .gap import GaP
from .hier_rate import HierRate
from .hier_shape import HierShape
from .none import NoChain
from .rate import Rate
from .shape import Shape

__all__ = ["BGAR", "Chain", "GaP", "HierRate", "HierShape", "NoChain", "Rate", "Shape"]
