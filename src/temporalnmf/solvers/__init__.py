"""Ways to minimise the objective."""

from .accelerated import Accelerated
from .mm import MajorizeMinimize
from .monitor import Monitor, Progress
from .options import Checkpoint, Gibbs

__all__ = ["Accelerated", "Checkpoint", "Gibbs", "MajorizeMinimize", "Monitor", "Progress"]
