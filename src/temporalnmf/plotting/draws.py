"""Plots of posterior draws: do the runs agree?"""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimator import TemporalNMF
from ..messages.errors import Arg, Text
from ..sampling.diagnostics import RHAT
from ..sampling.draws import PosteriorDraws
from ..sampling.traces import Trace, ranks, required_draws, traces
from ..solvers.options import solver_name
from . import canvas
from .canvas import GREY, ORANGE, PALETTE, Axes, AxesLike, Components, Panels


def plot_trace(model: TemporalNMF, components: Components = None, *, ax: AxesLike = None) -> Panels:
    """Traces of the draws, sweep by sweep, one line per run.

    Runs that have converged look alike: each moves over the same range, and none drifts. An orange
    title marks a quantity on which they do not agree (R-hat above 1.05).

    Parameters
    ----------
    model : TemporalNMF
        Fitted with solver="gibbs".
    components : int or sequence of int, default=None
        Indices, from 0, of the components whose activation, summed over all steps, and learned
        hyper-parameters are drawn. None takes, for each, the component on which the runs agree
        least.
    ax : matplotlib Axes or array of them, default=None
        One per quantity; None makes a new figure.

    Returns
    -------
    array of matplotlib Axes
        Of the log posterior, all activations together, activations by component, and learned
        hyper-parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from temporalnmf import TemporalNMF
    >>> from temporalnmf.solvers import Gibbs
    >>> X = np.random.default_rng(0).poisson(5.0, size=(20, 4))
    >>> model = TemporalNMF(1, likelihood="poisson", solver=Gibbs(300), random_state=0).fit(X)
    >>> axes = plot_trace(model, ax=Figure().subplots(2))
    >>> [ax.get_title(loc="left") for ax in axes]
    ['log posterior', 'all activations']
    """
    found = _traces(_draws(model, "plot_trace"), components)
    axes = _panels(len(found), ax)
    for one, trace in zip(axes, found, strict=True):
        canvas.run_lines(one, model.history_iterations_, trace.values)
        if trace.wide:
            canvas.log_scale(one)
        one.xaxis.label.set_size(8)
        _titles(one, trace)
    _legend(axes, ax is None)
    return axes


def plot_ranks(model: TemporalNMF, components: Components = None, *, ax: AxesLike = None) -> Panels:
    """Ranks of the draws of each run among the draws of all runs.

    A line is the share of a run's draws below a rank, minus the share of all draws: flat if the
    run is like the others, above zero where it has more small values. If all runs draw from the
    same distribution, all lines stay in the grey band with probability 95 %. The band accounts for
    autocorrelation: the more slowly runs mix, the wider it is.

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
    draws = _draws(model, "plot_ranks")
    found = _traces(draws, components)
    if len(draws.smoothing) == 1:
        problem = "plot_ranks compares runs, and this model has only one: fit it with {several}."
        raise ValueError(Text(problem, several=Arg("n_chains", "4")))
    axes = _panels(len(found), ax)
    for one, trace in zip(axes, found, strict=True):
        at, excess, reach = ranks(trace.values)
        one.axhspan(-reach, reach, color=GREY, alpha=0.18, lw=0, label="if all runs agree (95 %)")
        one.axhline(0.0, color=GREY, lw=0.8, ls=":")
        for run, line in enumerate(excess):
            one.plot(at, line, lw=1.2, label=f"run {run + 1}", color=PALETTE[run % len(PALETTE)])
        most = 1.15 * max(reach, float(np.abs(excess).max()))
        one.set(xlim=(0.0, 1.0), ylim=(-most, most))
        one.set_xlabel("rank among all draws", fontsize=8)
        one.set_ylabel("excess share", fontsize=8)
        _titles(one, trace)
    _legend(axes, ax is None)
    return axes


def _draws(model: TemporalNMF, what: str) -> PosteriorDraws:
    check_is_fitted(model)
    return required_draws(model.posterior_, solver_name(model.solver), what)


def _traces(draws: PosteriorDraws, components: Components) -> list[Trace]:
    n_components = draws.activations.shape[3]
    chosen = None if components is None else canvas.component_indices(components, n_components)
    return traces(draws, chosen)


def _panels(n: int, ax: AxesLike) -> Panels:
    n_columns = next((width for width in (3, 2) if n % width == 0), min(n, 3))
    return canvas.panels(n, "quantity", ax, n_columns, size=(3.9, 1.9), legend=0.4)


def _titles(ax: Axes, trace: Trace) -> None:
    ax.tick_params(labelsize=7)
    ax.set_title(trace.name, fontsize=9, loc="left")
    if np.isfinite(trace.rhat):
        color = ORANGE if trace.rhat > RHAT else "black"
        ax.set_title(f"R-hat {trace.rhat:.2f}", fontsize=8, loc="right", color=color)


def _legend(axes: Panels, own_figure: bool) -> None:
    handles, labels = axes[0].get_legend_handles_labels()
    style = {"fontsize": 8, "frameon": False}
    place, where = axes[0], {}
    if own_figure:
        place, where = axes[0].figure, {"loc": "outside lower center", "ncols": min(len(labels), 8)}
    canvas.thicken(place.legend(handles, labels, **style, **where))
