"""Plots of known influences."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimator import TemporalNMF
from ..messages.errors import Arg, Text
from ..summary import EffectSummary, component_summary, effect_summary, trend_summary
from . import canvas
from .canvas import GREY, Axes, AxesLike, Components, Panels

# Characters of a line of the title of a panel, and of a name.
_TITLE_WIDTH, _NAME_WIDTH = 42, 28


def plot_effects(
    model: TemporalNMF, components: Components = None, *, ax: AxesLike = None
) -> Axes | Panels:
    """The factors of covariates, holidays, events and the trend, a panel per component.

    A dot is a factor, the line through it the 90 % interval. The scale is logarithmic; a factor of
    1, the vertical line, leaves the level of the component as it is.

    Parameters
    ----------
    model : TemporalNMF
        Fitted, with covariates, holidays, events or a trend.
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
    >>> rain = pd.DataFrame({"rain": np.sin(np.arange(70.0) ** 2)})
    >>> X = np.outer(60.0 * np.exp(0.1 * rain["rain"]), [0.5, 0.5])
    >>> model = TemporalNMF(1, season=None).fit(X, covariates=rain)
    >>> ax = plot_effects(model, components=0, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['rain, per unit']
    """
    check_is_fitted(model)
    chosen = canvas.component_indices(components, len(model.components_))
    found, trend = effect_summary(model), trend_summary(model)
    shown = found if trend is None else [*found, trend]
    if not shown:
        raise ValueError(
            Text(
                "The model has no covariates, holidays, events or trend. Fit with {holidays}, or "
                "another of them.",
                holidays=Arg("holidays", "'US'"),
            )
        )
    summary, size = component_summary(model), (3.6, 0.8 + 0.25 * len(shown))
    axes = canvas.panels(len(chosen), "component", ax, min(len(chosen), 3), size, legend=0.0)
    for k, one in zip(chosen, axes, strict=True):
        _panel(one, shown, k)
        one.set_title("\n".join(wrap(summary[k].name, _TITLE_WIDTH)), fontsize=9, loc="left")
    for one in axes[-min(len(axes), 3) :]:
        one.set_xlabel("factor", fontsize=8)
    return axes[0] if canvas.is_index(components) else axes


def _panel(ax: Axes, shown: Sequence[EffectSummary], k: int) -> None:
    """The factors of one component."""
    color, _ = canvas.line_style(k)
    y, factors = np.arange(len(shown)), np.array([effect.factors[k] for effect in shown])
    ax.axvline(1.0, color=GREY, lw=0.8, zorder=1)
    ax.hlines(y, factors[:, 1], factors[:, 2], color=color, lw=1.4)
    ax.plot(factors[:, 0], y, "o", color=color, ms=4)
    ax.set_xscale("log")
    _few_ticks(ax)
    names = [effect.label for effect in shown]
    names = [n if len(n) <= _NAME_WIDTH else f"{n[: _NAME_WIDTH - 1]}…" for n in names]
    ax.set_yticks(y, names, fontsize=8)
    ax.set_ylim(len(y) - 0.5, -0.5)


def _few_ticks(ax: Axes) -> None:
    """A few factors as plain numbers on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda factor, _: f"{factor:g}"))
    ax.tick_params(axis="x", labelsize=8)
