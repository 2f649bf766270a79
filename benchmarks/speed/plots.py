"""Plots of the page, from results.json alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from speed.page import named
from speed.summary import cases, records, slope, speed_up, timed, unique

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

BLUE, ORANGE, GREEN, GREY, PURPLE = "#0072b2", "#d55e00", "#009e73", "#666666", "#aa4499"


def draw(results: dict[str, Any], out: Path) -> None:
    """All plots for which there are records."""
    plots = {"iteration": _iteration, "acceleration": _acceleration, "growth": _growth}
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        for part, plot in plots.items():
            if part in results["parts"]:
                figure = plot(results)
                figure.savefig(out / f"{part}.png", dpi=130)
                plt.close(figure)


def _round_ticks(axis: Any, unit: str = "") -> None:
    """1, 2, 5, 10 … in plain figures on a logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: f"{value:g}{unit}")
    axis.set_minor_formatter(NullFormatter())


def _iteration(results: dict[str, Any]) -> plt.Figure:
    """A panel per data set, a row per chain; scikit-learn and torchnmf are lines."""
    found = cases(records(results, "iteration"))
    n_rows = -(-len(found) // 2)
    figure, axes = plt.subplots(
        n_rows, 2, figsize=(9, 2.3 * n_rows + 0.6), layout="constrained", squeeze=False
    )
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    handles: dict[str, Any] = {}
    for axis, (name, K) in zip(axes.flat, found, strict=False):
        data = {"dataset": name, "K": K}
        chains = unique(r["chain"] for r in records(results, "iteration", **data))
        for label, marker, color, fields in (
            ("temporalnmf, 1 thread", "o", BLUE, {"who": "temporalnmf", "threads": 1}),
            ("temporalnmf, 2 threads", "D", GREEN, {"who": "temporalnmf", "threads": 2}),
            ("plain NumPy, 1 thread", "s", GREY, {"who": "numpy"}),
        ):
            points = {c: timed(results, **data, **fields, chain=c) for c in chains}
            rows = [i for i, c in enumerate(chains) if points[c]]
            best = [1e3 * min(points[chains[i]]) for i in rows]
            (handles[label],) = axis.plot(best, rows, marker, color=color, ms=5, ls="")
        for label, style, color, fields in (
            ("scikit-learn, 1 thread", "-", ORANGE, {"who": "scikit-learn", "threads": 1}),
            ("scikit-learn, as installed", "--", ORANGE, {"who": "scikit-learn", "threads": 0}),
            ("torchnmf, 1 thread", ":", PURPLE, {"who": "torchnmf", "threads": 1}),
        ):
            seconds = timed(results, **data, **fields)
            if seconds:
                handles[label] = axis.axvline(1e3 * min(seconds), color=color, ls=style, lw=1.3)
        axis.set_xscale("log")
        _round_ticks(axis.xaxis)
        axis.set_yticks(range(len(chains)), chains)
        axis.invert_yaxis()
        axis.grid(axis="x", alpha=0.3)
        axis.set_title(named(name, K), fontsize=10, loc="left")
    for axis in axes.flat[max(len(found) - 2, 0) : len(found)]:
        axis.set_xlabel("ms per iteration (best repetition)")
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=3, frameon=False
    )
    return figure


def _acceleration(results: dict[str, Any]) -> plt.Figure:
    """A point per run; crosses at the left for runs that ended in another optimum."""
    found = records(results, "acceleration")
    scales = unique(r["scale"] for r in found)
    chains, names = unique(r["chain"] for r in found), unique(r["dataset"] for r in found)
    figure, axes = plt.subplots(
        1, len(scales), figsize=(9, 4.6), layout="constrained", sharex=True, sharey=True,
        squeeze=False,
    )  # fmt: skip
    colors = dict(zip(names, plt.get_cmap("tab10").colors, strict=False))
    handles: dict[str, Any] = {}
    values = [speed_up(r, "mm_seconds_there") for r in found if r["reached"]] or [1.0]
    elsewhere = 0.5 * min(*values, 1.0)
    for axis, scale in zip(axes.flat, scales, strict=True):
        for i, name in enumerate(names):
            offset = 0.7 * ((i + 0.5) / len(names) - 0.5)
            here = records(results, "acceleration", scale=scale, dataset=name)
            for reached, marker in ((True, "o"), (False, "x")):
                runs = [r for r in here if r["reached"] is reached]
                x = [speed_up(r, "mm_seconds_there") or elsewhere for r in runs]
                y = [chains.index(r["chain"]) + offset for r in runs]
                points = axis.plot(x, y, marker, color=colors[name], ms=4, ls="", alpha=0.8)
                if reached:
                    handles[named(name)] = points[0]
        for bar in (5, 8):
            axis.axvline(bar, color=GREY, lw=0.9, ls="--")
        every = [speed_up(r, "mm_seconds_there") for r in found if r["scale"] == scale]
        axis.axvline(max(float(np.median(every)), elsewhere), color="black", lw=1.2)
        axis.set_title(f"{scale} scale, median {np.median(every):.1f}×", fontsize=10, loc="left")
        axis.set_xscale("log")
        _round_ticks(axis.xaxis, "×")
        axis.set_yticks(range(len(chains)), chains)
        axis.set_ylim(len(chains) - 0.5, -0.5)
        axis.grid(axis="x", alpha=0.3)
        axis.set_xlabel("times faster than MM")
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=3, frameon=False
    )
    return figure


def _growth(results: dict[str, Any]) -> plt.Figure:
    """Time against size, with the fitted line over the upper half."""
    titles = {"nnz": "non-zeros", "N": "steps", "K": "components"}
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        found = records(results, "growth", axis=name)
        if not found:
            continue
        size = np.array([r["size"] for r in found], dtype=float)
        exponent, factor, points = slope(found)
        axis.loglog(size, [1e3 * min(r["seconds"]) for r in found], "o", color=BLUE, ms=5)
        upper = size[-points:]
        axis.loglog(upper, 1e3 * factor * upper**exponent, color=ORANGE, lw=1.5)
        axis.set_title(f"slope {exponent:.2f}", fontsize=10, loc="left")
        axis.set_xlabel(title)
        axis.grid(alpha=0.3)
        if name == "K":
            axis.set_xticks(size, [f"{k:g}" for k in size])
            axis.minorticks_off()
        _round_ticks(axis.yaxis)
    axes[0].set_ylabel("ms per iteration")
    return figure
