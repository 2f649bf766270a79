"""Plots of chains, and of a choice between models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .. import registry
from ..chains import ARG, BGAR, HierRate, HierShape, Process, Rate, Shape, map_region
from ..chains.outlook import paths_for_quantiles
from .canvas import BLUE, ORANGE, Axes, Figure, new_axes

if TYPE_CHECKING:
    from ..selection import Candidate, Selection

Seed = int | Sequence[int] | np.random.Generator | None

# Orders of magnitude above and below the start that a logarithmic plot shows.
_DECADES = 15.0

# The paper's figures: one panel per regime, hyper-parameters in the paper's order. ARG, which is
# not in the paper, is shown as BGAR is.
_ROOT = math.sqrt(1.5 * 2.5)
PAPER_PANELS: dict[str, list[Process]] = {
    "rate": [Rate(1.5, beta) for beta in (3.0, _ROOT, 1.7, 1.5, 1.3, 0.8)],
    "hier_rate": [
        HierRate(6.0, 1.0, 4.0, 2.0),
        HierRate(3.0, 1.0, 1.0, 1.0),
        HierRate(2.5, 1.0, 1.0, 1.0),
        HierRate(6.0, 5.0, 4.0, 4.0),
        HierRate(5.0, 5.0, 5.0, 5.0),
        HierRate(0.9, 1.0, 4.0, 1.0),
    ],
    "shape": [Shape(1.0, 1.2), Shape(10.0, 10.0), Shape(12.0, 10.0)],
    "hier_shape": [HierShape(0.0, 5.0), HierShape(0.5, 5.0), HierShape(3.0, 5.0)],
    "bgar": [BGAR(2.0, 1.0, rho) for rho in (0.5, 0.9, 0.99)],
    "arg": [ARG(2.0, 1.0, rho) for rho in (0.5, 0.9, 0.99)],
}


def plot_paths(
    chain: Process,
    *,
    n_paths: int = 10,
    n_steps: int = 50,
    h1: ArrayLike | None = None,
    seed: Seed = 0,
    log: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Simulated paths of a chain, as in the paper's figures.

    Parameters
    ----------
    chain : Process
        With scalar hyper-parameters.
    n_paths, n_steps, h1, seed
        As in `Process.sample`.
    log : bool, default=True
        Show log10 h. A cross marks where a path reaches zero.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    title = f"{chain.numbers()}\n{_regime(chain)}"
    ax = ax or new_axes()
    paths = chain.sample(n_paths, n_steps, seed, h1)
    steps = np.arange(1, n_steps + 1)
    marker = "." if n_steps == 1 else ""
    draw = partial(ax.plot, color=BLUE, linewidth=0.8, alpha=0.7, marker=marker)
    if log:
        with np.errstate(divide="ignore"):
            logs = np.log10(paths)
        shown, start = logs[np.isfinite(logs)], float(np.median(logs[:, 0]))
        low, high = max(shown.min(), start - _DECADES), min(shown.max(), start + _DECADES)
        margin = 0.05 * (high - low) + 1e-3
        for path in logs:
            draw(steps, np.maximum(path, -400.0))  # a path to zero leaves the axes at the bottom
            zeros = np.flatnonzero(np.isneginf(path))
            if zeros.size:
                ax.plot(steps[zeros[0]], low, "x", color=ORANGE, markersize=4, clip_on=False)
        ax.set_ylim(low - margin, high + margin)
        ax.set_ylabel("log₁₀ h")
    else:
        draw(steps, paths.T)
        ax.set_ylabel("h")
    ax.set_xlabel("step n")
    ax.set_title(title, fontsize=8)
    return ax


def plot_prior(
    chain: Process,
    *,
    n_steps: int = 50,
    h1: ArrayLike | None = None,
    seed: Seed = 0,
    n_paths: int | None = None,
    log: bool | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Prior distribution of a chain, step by step: quantiles and mean ± standard deviation.

    Parameters
    ----------
    chain : Process
        With scalar hyper-parameters.
    n_steps, h1, seed
        As in `Process.sample`.
    n_paths : int, default=None
        Paths to simulate for the quantiles: 10,000, or fewer if they are long. Mean and deviation
        are exact.
    log : bool, default=None
        Logarithmic axis; None uses one if the quantiles span more than two decades.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    title = f"{type(chain).__name__}, {chain.numbers()}\n{_regime(chain)}"
    ax = ax or new_axes()
    steps = np.arange(1, n_steps + 1)
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    n_paths = paths_for_quantiles(n_steps) if n_paths is None else n_paths
    fan = np.quantile(chain.sample(n_paths, n_steps, seed, h1), levels, axis=0)
    mean, deviation = chain.mean(h1, steps), np.sqrt(chain.var(h1, steps))
    if log is None:
        log = bool(fan[4].max() > 100.0 * fan[0].min())
    # All quantiles are visible; moments may lie outside the axes.
    low, high, start = fan[0].min(), fan[4].max(), fan[2, 0]
    if log:
        ax.set_yscale("log")
        low = max(low, start * 10.0**-_DECADES, 1e-300)
        ax.set_ylim(low / 1.5, min(high, start * 10.0**_DECADES) * 2.0)
    else:
        ax.set_ylim(0.0, high + 0.3 * (high - low))
    ax.fill_between(steps, fan[0], fan[4], color=BLUE, alpha=0.15, lw=0, label="90 % of paths")
    ax.fill_between(steps, fan[1], fan[3], color=BLUE, alpha=0.3, lw=0, label="50 % of paths")
    ax.plot(steps, fan[2], color=BLUE, lw=1.4, label="median")
    known = np.isfinite(mean)
    if known.all():
        ax.plot(steps, mean, color=ORANGE, lw=1.4, label="mean")
    for sign in (-1.0, 1.0):
        edge = mean + sign * np.where(known, deviation, np.nan)
        usable = np.isfinite(edge) & (edge > 0.0)
        label = "mean ± standard deviation" if sign > 0 else None
        ax.plot(steps[usable], edge[usable], color=ORANGE, lw=0.9, ls=":", label=label)
    ax.set_xlabel("step n")
    ax.set_ylabel("h")
    ax.set_title(title, fontsize=9)
    ax.legend(fontsize=7, frameon=False)
    return ax


def plot_map_region(ax: Axes | None = None) -> Axes:
    """Hyper-parameters for which BGAR has a posterior mode on the linear scale, in white.

    The paper's figure. On the log scale, the default, a mode always exists.

    Returns
    -------
    matplotlib Axes
    """
    ax = ax or new_axes()
    alpha, rho = np.linspace(0.0, 20.0, 401), np.linspace(0.0, 1.0, 401)
    inside = map_region(alpha[None], rho[:, None])
    ax.contourf(alpha, rho, ~inside, levels=[0.5, 1.5], colors=["#bbbbbb"])
    edge = np.linspace(2.0, 20.0, 400)
    ax.plot(edge, 1.0 / edge, color=BLUE, lw=1.2, label="αρ = 1")
    ax.plot(edge, 1.0 - 1.0 / edge, color=ORANGE, lw=1.2, label="α(1 − ρ) = 1")
    ax.set(xlim=(0.0, 20.0), ylim=(0.0, 1.0), xlabel="α", ylabel="ρ")
    ax.set_title("BGAR: a mode exists on the linear scale (white)", fontsize=9)
    ax.legend(fontsize=8, loc="center right")
    return ax


def plot_selection(selection: Selection, ax: Axes | None = None) -> Axes:
    """Held-out errors of a `Selection` with bars of ± one standard error; chosen in orange.

    Returns
    -------
    matplotlib Axes
    """
    ax = ax or new_axes()
    models = [c for c in selection.candidates if c.n_components]
    ranks = sorted({c.n_components for c in models})
    if len(ranks) < 2:
        _errors_by_candidate(ax, selection.candidates, selection.best)
        return ax
    for name in dict.fromkeys(c.chain for c in models):
        tried = [[c for c in models if (c.chain, c.n_components) == (name, K)] for K in ranks]
        best = [min(candidates, key=lambda c: c.mean) for candidates in tried]
        errors, means = [c.standard_error for c in best], [c.mean for c in best]
        ax.errorbar(ranks, means, yerr=errors, label=name, marker="o", capsize=3, lw=1.2)
    ax.plot(selection.best.n_components, selection.best.mean, "D", color=ORANGE, ms=9, zorder=3)
    ax.set(xlabel="number of components", ylabel="held-out error per entry")
    ax.set_xticks(ranks)
    ax.legend(fontsize=8, frameon=False)
    return ax


def _errors_by_candidate(ax: Axes, candidates: Sequence[Candidate], best: Candidate) -> None:
    """One row per candidate, the best at the top."""
    shown = sorted(candidates, key=lambda c: c.mean, reverse=True)
    for y, candidate in enumerate(shown):
        color, error = ORANGE if candidate is best else BLUE, candidate.standard_error
        ax.errorbar(candidate.mean, y, xerr=error, color=color, marker="o", capsize=3, lw=1.2)
    ax.set_yticks(range(len(shown)), [str(c).split(" with ")[0] for c in shown], fontsize=7)
    ax.set_xlabel("held-out error per entry")
    if shown[0].mean > 3.0 * shown[-1].mean:
        ax.set_xscale("log")


def draw_simulation(
    chain: Process, n_paths: int, n_steps: int, h1: float | None, seed: int
) -> Figure:
    """Paths of a chain beside its prior distribution."""
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    log = chain.stationary() is None
    plot_paths(chain, n_paths=n_paths, n_steps=n_steps, h1=h1, seed=seed, log=log, ax=left)
    plot_prior(chain, n_steps=n_steps, h1=h1, seed=seed, ax=right)
    right.set_title("prior distribution", fontsize=9)
    figure.suptitle(type(chain).__name__, fontsize=11)
    return figure


def paper_figures(seed: int = 0) -> dict[str, Callable[[], Figure]]:
    """The paper's six figures by name: paths of the five chains, and BGAR's admissible set.

    Besides, paths of ARG.
    """
    paths = {name: partial(_paths_figure, name, seed) for name in PAPER_PANELS}
    return {**paths, "bgar_region": partial(_figure, plot_map_region, 5.0, 3.6)}


def prior_figures(seed: int = 0) -> dict[str, Callable[[], Figure]]:
    """Prior of each chain with the defaults of a fit, starting at twice the level of the data."""
    figures: dict[str, Callable[[], Figure]] = {}
    for name in (name for name in registry.CHAINS if name in registry.PROCESSES):
        chain = registry.create(registry.PROCESSES, name, "chain")
        draw = partial(plot_prior, chain, h1=2.0, seed=seed)
        figures[f"prior_{name}"] = partial(_figure, draw, 5.6, 3.4)
    return figures


def _paths_figure(name: str, seed: int) -> Figure:
    """Ten paths of 50 steps per panel; of BGAR and ARG one path of 200 steps, with their mean."""
    chains = PAPER_PANELS[name]
    n_rows = len(chains) // 3
    figure = Figure(figsize=(9.6, 2.9 * n_rows + 0.4), layout="constrained")
    axes = figure.subplots(n_rows, 3, squeeze=False)
    for i, (ax, chain) in enumerate(zip(axes.flat, chains, strict=True)):
        if name in ("bgar", "arg"):
            plot_paths(chain, n_paths=1, n_steps=200, seed=[seed, i], log=False, ax=ax)
            ax.axhline(chain.mean(), color="red", ls="--", lw=1.0)
            ax.set_ylim(bottom=0.0)
        else:
            plot_paths(chain, seed=[seed, i], ax=ax)
    figure.suptitle(type(chains[0]).__name__, fontsize=11)
    return figure


def _figure(draw: Callable[..., Axes], width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    draw(ax=figure.subplots())
    return figure


def _regime(chain: Process) -> str:
    regime = chain.regime()
    if isinstance(regime, list):
        remedy = "draw a chain with one number each."
        raise ValueError(f"{chain} has hyper-parameters per component: {remedy}")
    return regime.title.replace("; ", "\n")
