"""What recurs or is known in time: factors between levels and activations."""

from .holidays import Events, Holidays
from .season import Season
from .trend import Trend

__all__ = ["Events", "Holidays", "Season", "Trend"]
