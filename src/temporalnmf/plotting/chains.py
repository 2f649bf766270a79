"""Pictures of chains, and of a choice between models."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._typing import Array
from ..chains import BGAR, HierRate, HierShape, Process, Rate, Shape, map_region
from ..chains.outlook import paths_for_quantiles
from .canvas import BLUE, ORANGE, Figure, new_axes

_STYLE = {"color": BLUE, "linewidth": 0.8, "alpha": 0.7}

# Powers of ten that a logarithmic picture shows: what is beyond tells nothing more.
_DECADES = 15.0

# The paper's figures: a panel per regime, hyper-parameters in the paper's order.
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
}


def plot_paths(
    chain: Process,
    *,
    n_paths: int = 10,
    n_steps: int = 50,
    h1: Any = None,
    seed: Any = 0,
    log: bool = True,
    ax: Any = None,
) -> Any:
    """Simulated paths of a chain, as in the paper's figures.

    Parameters
    ----------
    chain : Process
        With hyper-parameters that are numbers, one for all components.
    n_paths, n_steps, h1, seed
        As in `Process.sample`.
    log : bool, default=True
        Show log10 h. A path that reaches zero ends in a cross.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    title = f"{chain.numbers()}\n{_regime(chain)}"
    ax = new_axes() if ax is None else ax
    paths = chain.sample(n_paths, n_steps, seed, h1)
    steps = np.arange(1, n_steps + 1)
    style = {**_STYLE, "marker": "." if n_steps == 1 else ""}
    if log:
        with np.errstate(divide="ignore"):
            logs = np.log10(paths)
        shown, start = logs[np.isfinite(logs)], float(np.median(logs[:, 0]))
        low, high = max(shown.min(), start - _DECADES), min(shown.max(), start + _DECADES)
        margin = 0.05 * (high - low) + 1e-3
        for path in logs:
            ended = np.flatnonzero(np.isneginf(path))
            # Down to the frame where the next value is zero.
            ax.plot(steps, np.maximum(path, -400.0), **style)
            if ended.size:
                ax.plot(steps[ended[0]], low, "x", color=ORANGE, markersize=4, clip_on=False)
        ax.set_ylim(low - margin, high + margin)
        ax.set_ylabel("log₁₀ h")
    else:
        ax.plot(steps, paths.T, **style)
        ax.set_ylabel("h")
    ax.set_xlabel("step n")
    ax.set_title(title, fontsize=8)
    return ax


def plot_prior(
    chain: Process,
    *,
    n_steps: int = 50,
    h1: Any = None,
    seed: Any = 0,
    n_paths: int | None = None,
    log: bool | None = None,
    ax: Any = None,
) -> Any:
    """What a chain expects before it has seen data: quantiles, mean ± standard deviation.

    Parameters
    ----------
    chain : Process
        With hyper-parameters that are numbers, one for all components.
    n_steps, h1, seed
        As in `Process.sample`.
    n_paths : int, default=None
        Simulated for the quantiles, 10,000 unless the paths are long; mean and deviation are
        exact.
    log : bool, default=None
        Logarithmic axis; None takes one where the quantiles span more than two decades.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    title = f"{type(chain).__name__}, {chain.numbers()}\n{_regime(chain)}"
    ax = new_axes() if ax is None else ax
    steps = np.arange(1, n_steps + 1)
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    n_paths = paths_for_quantiles(n_steps) if n_paths is None else n_paths
    fan = np.quantile(chain.sample(n_paths, n_steps, seed, h1), levels, axis=0)
    mean, deviation = chain.mean(h1, steps), np.sqrt(chain.var(h1, steps))
    if log is None:
        log = bool(fan[4].max() > 100.0 * fan[0].min())
    if log:
        ax.set_yscale("log")
    _frame(ax, fan, log)
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


def _frame(ax: Any, fan: Array, log: bool) -> None:
    """Room for the quantiles; moments may run out of the picture."""
    low, high = fan[0].min(), fan[4].max()
    if log:
        start = fan[2, 0]
        low = max(low, start * 10.0**-_DECADES, 1e-300)
        ax.set_ylim(low / 1.5, min(high, start * 10.0**_DECADES) * 2.0)
    else:
        ax.set_ylim(0.0, high + 0.3 * (high - low))


def plot_map_region(ax: Any = None) -> Any:
    """Hyper-parameters for which BGAR has a posterior mode on the linear scale, in white.

    The paper's figure. On the log scale, the default, all of the picture would be white.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes() if ax is None else ax
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


def plot_selection(selection: Any, ax: Any = None) -> Any:
    """Held-out errors of a `Selection`, bars one standard error to each side; chosen in orange.

    Returns
    -------
    matplotlib Axes
    """
    ax = new_axes() if ax is None else ax
    models = [c for c in selection.candidates if c.n_components]
    ranks = sorted({c.n_components for c in models})
    style: dict[str, Any] = {"marker": "o", "capsize": 3, "lw": 1.2}
    if len(ranks) > 1:
        for name in dict.fromkeys(c.chain for c in models):
            best = [
                min(
                    (c for c in models if c.chain == name and c.n_components == K),
                    key=lambda c: c.mean,
                )
                for K in ranks
            ]
            errors = [c.standard_error for c in best]
            ax.errorbar(ranks, [c.mean for c in best], yerr=errors, label=name, **style)
        ax.plot(selection.best.n_components, selection.best.mean, "D", color=ORANGE, ms=9, zorder=3)
        ax.set(xlabel="number of components", ylabel="held-out error per entry")
        ax.set_xticks(ranks)
        ax.legend(fontsize=8, frameon=False)
        return ax
    shown = sorted(selection.candidates, key=lambda c: c.mean, reverse=True)
    for y, candidate in enumerate(shown):
        color = ORANGE if candidate is selection.best else BLUE
        ax.errorbar(candidate.mean, y, xerr=candidate.standard_error, color=color, **style)
    ax.set_yticks(range(len(shown)), [str(c).split(" with ")[0] for c in shown], fontsize=7)
    ax.set_xlabel("held-out error per entry")
    if shown[0].mean > 3.0 * shown[-1].mean:
        ax.set_xscale("log")
    return ax


def draw_simulation(
    chain: Process, n_paths: int = 10, n_steps: int = 50, h1: Any = None, seed: Any = 0
) -> Figure:
    """Paths of a chain beside what it expects."""
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    log = chain.stationary() is None
    plot_paths(chain, n_paths=n_paths, n_steps=n_steps, h1=h1, seed=seed, log=log, ax=left)
    plot_prior(chain, n_steps=n_steps, h1=h1, seed=seed, ax=right)
    right.set_title("what to expect", fontsize=9)
    figure.suptitle(type(chain).__name__, fontsize=11)
    return figure


def paper_figures(seed: int = 0) -> dict[str, Callable[[], Figure]]:
    """The paper's six figures by name: realizations of the five chains, BGAR's admissible set."""
    figures: dict[str, Callable[[], Figure]] = {
        name: partial(_realizations, name, seed) for name in PAPER_PANELS
    }
    figures["bgar_region"] = _region
    return figures


def prior_figures(seed: int = 0) -> dict[str, Callable[[], Figure]]:
    """What each chain expects at the defaults of a fit, from twice the level of the data."""
    from .. import registry

    def draw(name: str) -> Figure:
        figure = Figure(figsize=(5.6, 3.4), layout="constrained")
        chain = registry.create(registry.PROCESSES, name, "chain")
        plot_prior(chain, h1=2.0, seed=seed, ax=figure.subplots())
        return figure

    return {
        f"prior_{name}": partial(draw, name)
        for name in registry.CHAINS
        if name in registry.PROCESSES
    }


def _realizations(name: str, seed: int) -> Figure:
    """Ten paths over 50 steps per panel; for BGAR one over 200, with the mean of its law."""
    chains = PAPER_PANELS[name]
    n_rows = len(chains) // 3
    figure = Figure(figsize=(9.6, 2.9 * n_rows + 0.4), layout="constrained")
    axes = figure.subplots(n_rows, 3, squeeze=False)
    for i, (ax, chain) in enumerate(zip(axes.flat, chains, strict=True)):
        if name == "bgar":
            plot_paths(chain, n_paths=1, n_steps=200, seed=[seed, i], log=False, ax=ax)
            ax.axhline(chain.mean(), color="red", ls="--", lw=1.0)
            ax.set_ylim(bottom=0.0)
        else:
            plot_paths(chain, seed=[seed, i], ax=ax)
    figure.suptitle(type(chains[0]).__name__, fontsize=11)
    return figure


def _region() -> Figure:
    figure = Figure(figsize=(5.0, 3.6), layout="constrained")
    plot_map_region(figure.subplots())
    return figure


def _regime(chain: Process) -> str:
    regime = chain.regime()
    if isinstance(regime, list):
        raise ValueError(
            f"{chain} has hyper-parameters per component: draw a chain with one number each."
        )
    return regime.title.replace("; ", "\n")
