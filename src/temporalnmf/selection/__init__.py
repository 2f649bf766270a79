"""Model selection by errors on held-out data."""

from .search import Candidate, Selection, select
from .splitters import HiddenBlocks, HiddenEntries, HiddenSteps, RollingOrigin, Split

__all__ = [
    "Candidate",
    "HiddenBlocks",
    "HiddenEntries",
    "HiddenSteps",
    "RollingOrigin",
    "Selection",
    "Split",
    "select",
]
