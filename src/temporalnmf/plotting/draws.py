"""Pictures of posterior draws: have the runs found the same law?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from ..sampling.diagnostics import RHAT
from ..sampling.draws import PosteriorDraws
from ..sampling.traces import Trace, ranks, required_draws, traces
from .canvas import GREY, ORANGE, PALETTE, log_scale, run_lines
from .fitted import _indices

if TYPE_CHECKING:
    from ..estimator import TemporalNMF

# Size of a panel, and panels beside each other at the most.
_WIDTH, _HEIGHT = 3.9, 1.9
_BESIDE = 3


def plot_trace(model: TemporalNMF, components: Any = None, *, ax: Any = None) -> Any:
    """What the draws went through, sweep by sweep, a line per run.

    Runs that have settled look alike: each wanders over the same stretch, and none drifts. A title
    in orange names what they do not agree on (R-hat above 1.05).

    Parameters
    ----------
    model : TemporalNMF
        Fitted with solver="gibbs".
    components : int or sequence of int, default=None
        Indices, from 0, of those whose activation, summed over all steps, and learned
        hyper-parameters are drawn. None takes of each the component on which the runs agree least.
    ax : matplotlib Axes or array of them, default=None
        As many as there are things to draw; None makes a new figure.

    Returns
    -------
    array of matplotlib Axes
        Of the log posterior, all activations together, activations by component, what was learned.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from temporalnmf import TemporalNMF
    >>> X = np.random.default_rng(0).poisson(5.0, size=(20, 4))
    >>> model = TemporalNMF(1, solver="gibbs", n_draws=300, n_tune=100, random_state=0).fit(X)
    >>> axes = plot_trace(model, ax=Figure().subplots(2))
    >>> [ax.get_title(loc="left") for ax in axes]
    ['log posterior', 'all activations']
    """
    _, watched = _watched(model, components, "plot_trace")
    axes = _panels(len(watched), ax)
    sweeps = model.history_iterations_
    for one, trace in zip(axes, watched, strict=True):
        run_lines(one, sweeps, trace.values)
        if trace.wide:
            log_scale(one)
        one.xaxis.label.set_size(8)
        _titles(one, trace)
    _legend(axes, ax is None)
    return axes


def plot_ranks(model: TemporalNMF, components: Any = None, *, ax: Any = None) -> Any:
    """Where the draws of each run lie among those of all runs.

    A line is the share of a run's draws below a rank, less the share of all: flat if the run
    is like the others, above zero where it has more small values than they. If all draw from one
    law, all lines stay in the grey band with a probability of 95 %. The band is that of effective
    draws: the more slowly runs move, the wider it is.

    Parameters
    ----------
    model : TemporalNMF
        Fitted with solver="gibbs" and two or more runs.
    components : int or sequence of int, default=None
        As in `plot_trace`.
    ax : matplotlib Axes or array of them, default=None
        As in `plot_trace`.

    Returns
    -------
    array of matplotlib Axes
        As in `plot_trace`.
    """
    draws, watched = _watched(model, components, "plot_ranks")
    n_runs = len(draws.smoothing)
    if n_runs == 1:
        raise ValueError(
            "plot_ranks compares runs with each other, and there is one only: fit with n_chains=4."
        )
    axes = _panels(len(watched), ax)
    for one, trace in zip(axes, watched, strict=True):
        at, excess, reach = ranks(trace.values)
        one.axhspan(-reach, reach, color=GREY, alpha=0.18, lw=0, label="if all runs agree (95 %)")
        one.axhline(0.0, color=GREY, lw=0.8, ls=":")
        for run, line in enumerate(excess):
            one.plot(at, line, lw=1.2, label=f"run {run + 1}", color=PALETTE[run % len(PALETTE)])
        most = 1.15 * max(reach, float(np.abs(excess).max()))
        one.set(xlim=(0.0, 1.0), ylim=(-most, most))
        one.set_xlabel("rank among all draws", fontsize=8)
        one.set_ylabel("above its share", fontsize=8)
        _titles(one, trace)
    _legend(axes, ax is None)
    return axes


def _watched(model: TemporalNMF, components: Any, what: str) -> tuple[PosteriorDraws, list[Trace]]:
    check_is_fitted(model)
    draws = required_draws(model.posterior_, model.solver, what)
    chosen = None
    if components is not None:
        chosen = _indices(components, draws.activations.shape[3])
    return draws, traces(draws, chosen)


def _titles(ax: Any, trace: Trace) -> None:
    ax.tick_params(labelsize=7)
    ax.set_title(trace.name, fontsize=9, loc="left")
    if np.isfinite(trace.rhat):
        color = ORANGE if trace.rhat > RHAT else "black"
        ax.set_title(f"R-hat {trace.rhat:.2f}", fontsize=8, loc="right", color=color)


def _panels(n: int, ax: Any) -> Array:
    """Axes (n,): those given, or a grid in a new figure, which a notebook shows by itself."""
    if ax is not None:
        axes = np.atleast_1d(ax).ravel()
        if len(axes) != n:
            raise ValueError(f"ax holds {len(axes)} Axes: expected {n}, one per quantity.")
        return axes
    from matplotlib import pyplot

    n_columns = next((width for width in (_BESIDE, 2) if n % width == 0), min(n, _BESIDE))
    n_rows = -(-n // n_columns)
    figure, grid = pyplot.subplots(
        n_rows, n_columns, squeeze=False, layout="constrained",
        figsize=(_WIDTH * n_columns, _HEIGHT * n_rows + 0.4),
    )  # fmt: skip
    for unused in grid.ravel()[n:]:
        figure.delaxes(unused)
    return grid.ravel()[:n]


def _legend(axes: Array, own: bool) -> None:
    handles, labels = axes[0].get_legend_handles_labels()
    how = {"fontsize": 8, "frameon": False}
    if own:
        wide = min(len(labels), 8)
        shown = axes[0].figure.legend(
            handles, labels, loc="outside lower center", ncols=wide, **how
        )
    else:
        shown = axes[0].legend(handles, labels, **how)
    for line in shown.get_lines():
        line.set(linewidth=2.0, alpha=1.0)  # colours are told apart by thick lines
