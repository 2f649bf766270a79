"""Shared by all plots: matplotlib (the extra "plot"), colours, axes, grids of panels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from .._typing import Array
from ..messages.errors import ArgumentError
from ..timeline.grid import time_texts

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.legend import Legend
except ImportError as error:
    raise ImportError('Pictures need matplotlib: pip install "temporalnmf[plot]".') from error

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"

# The colours of Okabe and Ito, distinguishable with any colour vision; their yellow is too pale.
PALETTE = (BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_DASHES = ("-", "--", "-.", ":")

# Lines with fewer draws get markers. Axes that span more than this factor are labelled with powers
# of ten only.
_FEW_DRAWS, _WIDE = 20, 1e3

Components = int | Sequence[int] | None
Panels = NDArray[np.object_]  # array of Axes
AxesLike = Axes | Panels | None


def new_axes(width: float = 6.4, height: float = 4.8) -> Axes:
    """Axes in a new pyplot figure, which notebooks show automatically."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def panels(
    n: int, noun: str, ax: AxesLike, n_columns: int, size: tuple[float, float], legend: float
) -> Panels:
    """Axes (n,), one per `noun`: those given, or a grid of panels in a new figure.

    `size` is that of a panel, `legend` the height of the legend, in inches.
    """
    if ax is not None:
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) != n:
            raise ValueError(f"ax holds {len(axes)} Axes: expected {n}, one per {noun}.")
        return axes
    from matplotlib import pyplot

    n_rows = -(-n // n_columns)
    figure, grid = pyplot.subplots(
        n_rows, n_columns, squeeze=False, layout="constrained",
        figsize=(size[0] * n_columns, size[1] * n_rows + legend),
    )  # fmt: skip
    for unused in grid.ravel()[n:]:
        figure.delaxes(unused)
    return grid.ravel()[:n]


def component_indices(components: Components, n_components: int) -> list[int]:
    """Indices of the components asked for; None is all."""
    if components is None:
        return list(range(n_components))
    wanted = components if isinstance(components, Iterable) else [components]
    for k in wanted:
        if not is_index(k) or not 0 <= k < n_components:
            problem = f": {k!r} is not one of 0 to {n_components - 1}."
            raise ArgumentError("components", components, problem)
    return [int(k) for k in wanted]


def is_index(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def line_style(k: int) -> tuple[str, str]:
    """Colour and dashes of component k, the same in every plot."""
    rounds, color = divmod(k, len(PALETTE))
    return PALETTE[color], _DASHES[rounds % len(_DASHES)]


def run_lines(ax: Axes, sweeps: Array, values: Array) -> None:
    """Values (n_runs, n_draws) over their sweeps, one line per run."""
    marker = "." if values.shape[1] < _FEW_DRAWS else None
    for run, line in enumerate(values):
        color, label = PALETTE[run % len(PALETTE)], f"run {run + 1}"
        ax.plot(sweeps, line, lw=0.7, alpha=0.8, label=label, color=color, marker=marker)
    ax.set_xlabel("sweep")


def legend_beside(ax: Axes) -> Legend:
    return ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.02))


def thicken(legend: Legend) -> None:
    """Thick, opaque lines, whose colours are easier to tell apart."""
    for line in legend.get_lines():
        line.set(linewidth=2.0, alpha=1.0)


def log_scale(ax: Axes) -> None:
    """A logarithmic y-axis with a few plain labels, unlike matplotlib's; set after plotting."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if high >= low * _WIDE:
        return
    short = high < 10.0 * low
    ax.yaxis.set_major_locator(MaxNLocator(4) if short else LogLocator(subs=(1.0, 3.0)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())


def time_axis(ax: Axes, times: Array) -> Array:
    """Positions (N,) of the steps as numbers; the axis shows dates, numbers or texts."""
    if times.dtype.kind == "M":
        from matplotlib import dates

        locator = dates.AutoDateLocator()
        ax.xaxis_date()
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        return np.asarray(dates.date2num(times))
    if times.dtype.kind in "iuf":
        return times.astype(float)
    from matplotlib.ticker import MaxNLocator

    texts = time_texts(times)

    def text_at(x: float, _: float | None) -> str:
        n = round(x)
        return texts[n] if abs(x - n) < 1e-6 and 0 <= n < len(texts) else ""

    ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    ax.xaxis.set_major_formatter(text_at)
    return np.arange(len(times), dtype=float)


def shade_gaps(ax: Axes, x: Array, observed: Array) -> None:
    """Grey behind every stretch of steps without an observation."""
    edges = x[0] + np.array([-0.5, 0.5])
    if len(x) > 1:
        middle = 0.5 * (x[1:] + x[:-1])
        edges = np.concatenate([[2.0 * x[0] - middle[0]], middle, [2.0 * x[-1] - middle[-1]]])
    missing = np.concatenate([[False], ~np.asarray(observed, dtype=bool), [False]]).astype(int)
    stretches = np.flatnonzero(np.diff(missing)).reshape(-1, 2)
    for i, (first, after) in enumerate(stretches):
        label = None if i else "not observed"
        ax.axvspan(edges[first], edges[after], color=GREY, alpha=0.18, lw=0, zorder=0, label=label)
