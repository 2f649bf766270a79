"""Times of steps: dates and numbers in all their spellings, on a regular grid."""

from .grid import Timeline, time_texts, timeline_of

__all__ = ["Timeline", "time_texts", "timeline_of"]
