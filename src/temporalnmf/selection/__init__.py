"""Choosing between models by what they predict."""

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
