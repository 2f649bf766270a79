"""What all pictures share: matplotlib itself, the extra "plot", colours and a new picture."""

from __future__ import annotations

from typing import Any

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError('Pictures need matplotlib: pip install "temporalnmf[plot]".') from error

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"

# Okabe and Ito's colours, told apart with any kind of colour vision; yellow is too pale for a line.
PALETTE = (BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")

__all__ = ["BLUE", "GREY", "ORANGE", "PALETTE", "Figure", "new_axes"]


def new_axes(width: float = 6.4, height: float = 4.8) -> Any:
    """Axes in a new figure, which a notebook shows by itself."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
