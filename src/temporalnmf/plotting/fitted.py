"""Plots of a fitted model: activations, components, convergence and residuals."""

from __future__ import annotations

from textwrap import wrap

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimator import TemporalNMF
from ..messages.arguments import check_count
from ..messages.errors import Arg, ArgumentError, Text
from ..messages.formatting import number_text, percent
from ..summary import (
    ComponentSummary,
    SeasonSummary,
    component_summary,
    season_summary,
    step_errors,
)
from ..timeline.grid import time_texts
from . import canvas
from .canvas import BLUE, GREY, ORANGE, Axes, AxesLike, Components, Panels, new_axes
from .forecasts import bands_title

# Characters of a feature's name beside its bar, and of both the name and a line of the title.
_LABEL_WIDTH, _COLUMN_WIDTH = 22, 50
# Characters of a line of the title of a panel without such names.
_TITLE_WIDTH = 42
# Most positions of a season that get markers, and characters of the labels of its axis; the axis
# of factors reaches at least this far from 1.
_FEW, _AXIS_WIDTH, _LEAST_SWING = 31, 30, 0.05


def plot_activations(
    model: TemporalNMF,
    components: Components = None,
    coverage: float = 0.9,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Activations over time with bands; gaps are shaded.

    Parameters
    ----------
    model : TemporalNMF
        Fitted.
    components : int or sequence of int, default=None
        Indices, from 0, of the components to draw; None is all.
    coverage : float, default=0.9
        Posterior probability of a band. Plain NMF, the chain "none", has no bands; the title says
        so.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from temporalnmf import TemporalNMF
    >>> X = np.random.default_rng(0).poisson(5.0, size=(20, 4)).astype(float)
    >>> X[7:9] = np.nan
    >>> model = TemporalNMF(2, random_state=0).fit(X)
    >>> ax = plot_activations(model, ax=Figure().subplots())
    >>> [line.get_label() for line in ax.lines] == [c.name for c in component_summary(model)]
    True
    """
    check_is_fitted(model)
    chosen = canvas.component_indices(components, len(model.components_))
    ax = ax or new_axes(9.0, 4.2)
    x = canvas.time_axis(ax, model.times_)
    smooth = model.smooth(coverage=(coverage,))
    bands = smooth.interval(coverage, of="components") if smooth.has_bands else None
    summary = component_summary(model)
    for k in chosen:
        color, dashes = canvas.line_style(k)
        if bands is not None:
            lower, upper = bands
            ax.fill_between(x, lower[:, k], upper[:, k], color=color, alpha=0.2, lw=0, zorder=1)
        name = summary[k].name
        ax.plot(x, model.activations_[:, k], lw=1.4, label=name, color=color, ls=dashes)
    canvas.shade_gaps(ax, x, model.observed_)
    ax.set_ylim(bottom=0.0)
    per = " per unit of exposure" if np.any(model.exposure_ != 1.0) else ""
    ax.set_ylabel(f"activation{per}")
    ax.set_title(bands_title(smooth, [coverage]), fontsize=9, loc="left")
    canvas.legend_beside(ax)
    return ax


def plot_season(
    model: TemporalNMF,
    season: str | None = None,
    components: Components = None,
    *,
    ax: AxesLike = None,
) -> Axes | Panels:
    """The factors of a season by the position in its cycle, a panel per component.

    A factor of 1, the line, leaves the level of the component as it is. All panels have the same
    scale.

    Parameters
    ----------
    model : TemporalNMF
        Fitted, with a season.
    season : str, default=None
        A key of `season_`, such as "week"; None if there is only one.
    components : int or sequence of int, default=None
        Indices, from 0, of the components to draw; None is all.
    ax : matplotlib Axes or array of them, default=None
        One per component; None makes a new figure.

    Returns
    -------
    matplotlib Axes if `components` is one number, else an array of them

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> from temporalnmf import TemporalNMF
    >>> X = np.tile([80.0, 80.0, 80.0, 80.0, 80.0, 40.0, 80.0], 10)[:, None]
    >>> frame = pd.DataFrame(X, pd.date_range("2001-01-01", periods=70))
    >>> model = TemporalNMF(1, season="week").fit(frame)
    >>> ax = plot_season(model, components=0, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']
    """
    check_is_fitted(model)
    chosen = canvas.component_indices(components, len(model.components_))
    found, summary = _season(model, season), component_summary(model)
    axes = canvas.panels(len(chosen), "component", ax, min(len(chosen), 3), (3.6, 2.1), legend=0.0)
    factors, x = found.factors[chosen], np.arange(found.factors.shape[1])
    low, high = min(factors.min(), 1.0 - _LEAST_SWING), max(factors.max(), 1.0 + _LEAST_SWING)
    margin = 0.05 * (high - low)
    ticks = found.positions.ticks
    ticks = ticks[:: -(-sum(len(text) for _, text in ticks) // _AXIS_WIDTH)]
    for k, one in zip(chosen, axes, strict=True):
        color, _ = canvas.line_style(k)
        one.axhline(1.0, color=GREY, lw=0.8, zorder=1)
        one.plot(x, found.factors[k], color=color, lw=1.4, marker="." if len(x) <= _FEW else None)
        one.set_xticks(*zip(*ticks, strict=True), fontsize=8)
        one.tick_params(axis="y", labelsize=8)
        one.set_ylim(low - margin, high + margin)
        one.set_title("\n".join(wrap(summary[k].name, _TITLE_WIDTH)), fontsize=9, loc="left")
    for one in axes[:: min(len(axes), 3)]:
        one.set_ylabel(f"factor of the {found.name}", fontsize=8)
    return axes[0] if canvas.is_index(components) else axes


def _season(model: TemporalNMF, name: str | None) -> SeasonSummary:
    """The season of a model that `name` asks for."""
    seasons = {season.name: season for season in season_summary(model)}
    names = " or ".join(map(repr, seasons))
    if not seasons:
        why = f"has no season: {model.season_reason_}."
        remedy = Text("Fit with {week}, or another one.", week=Arg("season", "'week'"))
        raise ValueError(Text(f"The model {why} {{remedy}}", remedy=remedy))
    if name is None and len(seasons) > 1:
        raise ArgumentError("season", name, ": the model has several.", f"Give {names}.")
    if name is not None and name not in seasons:
        raise ArgumentError("season", name, "is not a season of the model.", f"Give {names}.")
    return next(iter(seasons.values())) if name is None else seasons[name]


def plot_components(
    model: TemporalNMF, components: Components = None, n_features: int = 10, *, ax: AxesLike = None
) -> Axes | Panels:
    """The most characteristic features of each component.

    A bar is a feature's share of the component, a grey mark its share of all components together.
    Features are characteristic if they have a large weight that is larger than elsewhere. Long
    names are shortened.

    Parameters
    ----------
    model : TemporalNMF
        Fitted.
    components : int or sequence of int, default=None
        Indices, from 0, of the components to draw; None is all.
    n_features : int, default=10
        Features per component.
    ax : matplotlib Axes or array of them, default=None
        One per component; None makes a new figure.

    Returns
    -------
    matplotlib Axes if `components` is one number, else an array of them
    """
    n_features = check_count("n_features", n_features)
    check_is_fitted(model)
    chosen = canvas.component_indices(components, len(model.components_))
    summary = component_summary(model, max(n_features, 3))  # three for the name
    size = (3.6, 1.1 + 0.17 * n_features)
    axes = canvas.panels(len(chosen), "component", ax, min(len(chosen), 3), size, legend=0.2)
    overall = np.array([c.share for c in summary]) @ model.components_
    overall_of = dict(zip(model.feature_labels().tolist(), overall.tolist(), strict=True))
    for k, one in zip(chosen, axes, strict=True):
        _draw_features(one, summary[k], n_features, overall_of)
    place, where = (
        (axes[0].figure, "outside lower right") if ax is None else (axes[0], "lower right")
    )
    place.legend(handles=axes[0].lines[-1:], loc=where, fontsize=8, frameon=False)
    return axes[0] if canvas.is_index(components) else axes


def _draw_features(
    ax: Axes, component: ComponentSummary, n_features: int, overall_of: dict[str, float]
) -> None:
    features, weights = zip(*component.top[:n_features], strict=True)
    y = np.arange(len(features))
    overall = np.array([overall_of[feature] for feature in features])
    ax.barh(y, 100.0 * np.array(weights), color=canvas.line_style(component.index)[0])
    label = "share of the feature in all components together"
    for color, width in (("white", 4.0), (GREY, 2.0)):  # visible on any bar
        ax.plot(100.0 * overall, y, "|", color=color, ms=7, mew=width, label=label)
    labels = [_shorten(feature) for feature in features]
    ax.set_yticks(y, labels, fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel("% of the component", fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    facts = f"{percent(component.share)} of all, peak {component.peak}"
    if component.stability is not None:
        facts += f", stability {component.stability:.2f}"
    # The layout does not make room for a wide title, so wrap it.
    width = _COLUMN_WIDTH - max(12, *map(len, labels))
    ax.set_title("\n".join([*wrap(component.name, width), *wrap(facts, width)]), fontsize=9,
                 loc="left")  # fmt: skip


def _shorten(name: str) -> str:
    """A name shortened in the middle, since names may differ only at the end."""
    half = _LABEL_WIDTH // 2
    return name if len(name) <= _LABEL_WIDTH else f"{name[: half - 1]}…{name[-half:]}"


def plot_objective(model: TemporalNMF, *, ax: Axes | None = None) -> Axes:
    """Objective minus its last value, by iteration; the title says why the fit stopped.

    The last value is not necessarily the minimum: the title is orange if the fit did not
    converge.

    For solver="gibbs" it is the log posterior by sweep, one line per run, and the title says
    whether the runs have settled; `plot_trace` shows more, and `posterior_.diagnosis` explains it.

    Parameters
    ----------
    model : TemporalNMF
        Fitted.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model)
    ax = ax or new_axes(6.4, 3.6)
    if model.posterior_ is not None:
        values = model.posterior_.log_posterior
        canvas.run_lines(ax, model.history_iterations_, values)
        ax.set_ylabel("log posterior")
        canvas.thicken(canvas.legend_beside(ax))
        runs = "one run" if len(values) == 1 else f"{len(values)} runs"
        title = f"{runs} of draws, {'settled' if model.converged_ else 'not settled'}"
    else:
        above = model.history_ - model.history_[-1]
        shown = above > 0.0
        iterations = model.history_iterations_[shown]
        ax.plot(iterations, above[shown], color=BLUE, lw=1.4, marker=".", ms=4)
        if shown.any():
            ax.set_yscale("log")
        ax.set_xlabel("iteration")
        ax.set_ylabel("objective above its last value")
        title = model.stop_reason_
    color = "black" if model.converged_ else ORANGE
    ax.set_title(title, fontsize=9, loc="left", color=color)
    return ax


def plot_residuals(model: TemporalNMF, n_worst: int = 5, *, ax: Axes | None = None) -> Axes:
    """Error of the fit at each step.

    Parameters
    ----------
    model : TemporalNMF
        Fitted, with its data.
    n_worst : int, default=5
        How many of the steps with the largest errors are labelled.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model)
    n_worst = check_count("n_worst", n_worst)
    errors = step_errors(model)
    if errors is None:
        problem = "This model was saved without its data, and residuals need them: fit it again."
        raise ValueError(problem)
    ax = ax or new_axes(9.0, 3.8)
    x = canvas.time_axis(ax, model.times_)
    error = errors.error
    above = errors.observed > errors.expected
    for where, color, label in (
        (above, ORANGE, "observed total above the fit"),
        (~above, BLUE, "observed total below the fit"),
    ):
        shown = where & np.isfinite(error)
        ax.vlines(x[shown], 0.0, error[shown], color=color, lw=1.0, alpha=0.5)
        ax.plot(x[shown], error[shown], ".", color=color, ms=5, label=label)
    middle = float(np.nanmedian(error))
    ax.axhline(middle, color=GREY, lw=0.8, ls=":", label=f"median {number_text(middle)}")
    texts = time_texts(model.times_)
    for n in np.argsort(np.where(np.isfinite(error), -error, np.inf))[:n_worst]:
        if np.isfinite(error[n]):
            ax.annotate(
                texts[n], (x[n], error[n]), xytext=(0, 4), textcoords="offset points",
                ha="center", fontsize=8,
            )  # fmt: skip
    canvas.shade_gaps(ax, x, model.observed_)
    ax.set_ylim(0.0, 1.12 * np.nanmax(error))  # room for the labels
    ax.set_ylabel("divergence per entry")
    canvas.legend_beside(ax)
    return ax
