"""Plots of forecasts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from ..estimator import TemporalNMF
from ..forecasting.forecast import Forecast, Of
from ..messages.arguments import check_count
from ..messages.errors import ArgumentError
from ..messages.formatting import level_text
from ..summary import component_summary, step_errors
from ..timeline.grid import time_texts
from . import canvas
from .canvas import GREY, Axes, new_axes

Chosen = str | int | Sequence[str] | Sequence[int]


def plot_forecast(
    source: TemporalNMF | Forecast,
    steps: int = 10,
    of: Chosen = "components",
    history: int | None = None,
    *,
    exposure: ArrayLike | None = None,
    covariates: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A forecast after the end of the series, as a fan of 50 % and 90 % intervals.

    Parameters
    ----------
    source : TemporalNMF or Forecast
        A fitted model; or a forecast, which is drawn without a history.
    steps : int, default=10
        Steps ahead, if `source` is a model.
    of : default="components"
        "components", or the index of a component or several; "totals", the sums of all features;
        or the name of a feature or several. Dots are observed values.
    history : int, default=None
        Steps of the past to show; None is three times as many as are forecast.
    exposure, covariates : default=None
        As in `TemporalNMF.forecast`, if `source` is a model.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    if isinstance(source, Forecast):
        ahead, model, n_past = source, None, 0
        times = ahead.times
    else:
        check_is_fitted(source)
        model, ahead = source, source.forecast(steps, exposure=exposure, covariates=covariates)
        wanted = 3 * len(ahead.times) if history is None else check_count("history", history)
        n_past = min(wanted, len(model.times_))
        times = _joined(model.times_[-n_past:], ahead.times)
    ax = ax or new_axes(9.0, 4.2)
    x = canvas.time_axis(ax, times)
    kind, chosen, names = _columns(ahead, model, of)
    fitted, observed = (None, None) if model is None else _past(model, kind, chosen)
    coverages = sorted(ahead.coverage, reverse=True) if ahead.has_bands else []
    bands = [ahead.interval(coverage, of=kind) for coverage in coverages]
    for i, k in enumerate(chosen):
        column = ... if kind == "totals" else (slice(None), k)
        line, label = ahead.point_of(kind)[column], names[i]
        color, dashes = canvas.line_style(k if kind == "components" else i)
        if fitted is not None:
            if observed is not None:
                ax.plot(x[:n_past], observed[-n_past:, i], ".", color=color, ms=5, alpha=0.6)
            past = fitted[-n_past:, i]
            ax.plot(x[:n_past], past, color=color, ls=dashes, lw=1.4, label=label)
            line, label = np.concatenate([past[-1:], line]), "_forecast"  # not in the legend
        for lower, upper in bands:
            ends = lower[column], upper[column]
            ax.fill_between(x[n_past:], *ends, color=color, alpha=0.2, lw=0, zorder=1)
        ax.plot(x[-len(line) :], line, color=color, lw=1.4, ls=(0, (2, 1)), label=label)
    if model is not None:
        canvas.shade_gaps(ax, x[:n_past], model.observed_[-n_past:])
        ax.axvline(0.5 * (x[n_past - 1] + x[n_past]), color=GREY, lw=0.8, ls=":")
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel({"components": "activation", "totals": "total", "features": "value"}[kind])
    ax.set_title(bands_title(ahead, ahead.coverage), fontsize=9, loc="left")
    canvas.legend_beside(ax)
    return ax


def bands_title(forecast: Forecast, coverages: Sequence[float]) -> str:
    if any(note.code == "no_distribution" for note in forecast.notes):
        return "no bands: the likelihood is no distribution"
    if not forecast.has_bands:
        return "no bands: plain NMF does not model changes"
    return f"bands: {' and '.join(level_text(c) for c in sorted(coverages))} intervals"


def _past(model: TemporalNMF, kind: Of, chosen: Sequence[int]) -> tuple[Array, Array | None]:
    """Fitted values and, if available, observed ones (N, n) at all steps of the fit."""
    if kind == "components":
        return model.activations_[:, chosen], None
    if kind == "totals":
        errors = step_errors(model)
        fitted = model.exposure_ * model.activations_.sum(axis=1)  # components sum to one
        return fitted[:, None], None if errors is None else errors.observed[:, None]
    fitted = model.exposure_[:, None] * (model.activations_ @ model.components_[:, chosen])
    series = model._series
    if series is None:
        return fitted, None
    rows = (series.row(n) for n in range(series.n_steps))
    return fitted, np.array([np.where(w[chosen] > 0.0, x[chosen], np.nan) for x, w in rows])


def _columns(
    ahead: Forecast, model: TemporalNMF | None, of: Chosen
) -> tuple[Of, list[int], list[str]]:
    """Kind, indices and names of what `of` asks for."""
    if isinstance(of, str) and of == "totals":
        return "totals", [0], ["total"]
    everything = isinstance(of, str) and of == "components"
    wanted: list[str | int] = [of] if isinstance(of, str | int | np.integer) else list(of)
    if everything or all(map(canvas.is_index, wanted)):
        asked = None if everything else [int(k) for k in wanted]
        indices = canvas.component_indices(asked, ahead.activations.shape[1])
        if model is None:
            return "components", indices, [f"component {k + 1}" for k in indices]
        summary = component_summary(model)
        return "components", indices, [summary[k].name for k in indices]
    labels = [str(label) for label in ahead.feature_names]
    names = [str(name) for name in wanted]
    for name in names:
        if name not in labels:
            known = '"components", "totals", the index of a component, or names of features such as'
            remedy = f"Give {known} {labels[0]!r}."
            raise ArgumentError("of", of, f": there is no feature {name!r}.", remedy)
    return "features", [labels.index(name) for name in names], names


def _joined(past: Array, ahead: Array) -> Array:
    """Labels of past and future steps; as texts if they are of different kinds."""
    if past.dtype.kind == ahead.dtype.kind:
        return np.concatenate([past, ahead])
    return np.array([*time_texts(past), *time_texts(ahead)])
