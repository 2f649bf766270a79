"""Ways to minimise the objective."""

from .accelerated import Accelerated
from .mm import MajorizeMinimize
from .monitor import Monitor, Progress

__all__ = ["Accelerated", "MajorizeMinimize", "Monitor", "Progress"]
