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

# Draws that a line does not show, and a factor over which powers of ten are numbers enough.
_FEWEST_OF_A_LINE, _LONG = 20, 1e3

__all__ = ["BLUE", "GREY", "ORANGE", "PALETTE", "Figure", "log_scale", "new_axes", "run_lines"]


def new_axes(width: float = 6.4, height: float = 4.8) -> Any:
    """Axes in a new figure, which a notebook shows by itself."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def run_lines(ax: Any, sweeps: Any, values: Any) -> None:
    """Values (n_runs, n_draws) over their sweeps, a line per run; a few are marked one by one."""
    few = values.shape[1] < _FEWEST_OF_A_LINE
    for run, line in enumerate(values):
        ax.plot(
            sweeps, line, lw=0.7, alpha=0.8, label=f"run {run + 1}",
            color=PALETTE[run % len(PALETTE)], marker="." if few else None,
        )  # fmt: skip
    ax.set_xlabel("sweep")


def log_scale(ax: Any) -> None:
    """A logarithmic y-axis for what is drawn already, with few numbers, plain ones if it is short.

    Left to itself, matplotlib puts powers of ten only, or all of 2×10², 3×10², … one upon another.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if high >= low * _LONG:
        return
    short = high < 10.0 * low
    ax.yaxis.set_major_locator(MaxNLocator(4) if short else LogLocator(subs=(1.0, 3.0)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
