"""Times of steps: dates and numbers in many formats, on a regular grid."""

from .grid import Timeline, time_texts, timeline_of

__all__ = ["Timeline", "time_texts", "timeline_of"]
