"""Ways to minimise the objective."""

from .mm import MajorizeMinimize
from .monitor import Monitor, Progress

__all__ = ["MajorizeMinimize", "Monitor", "Progress"]
