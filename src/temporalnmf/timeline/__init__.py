"""Times of steps: dates and numbers in many formats, on a regular grid."""

from .grid import Timeline, time_texts, timeline_of
from .positions import Positions

__all__ = ["Positions", "Timeline", "time_texts", "timeline_of"]
