"""Pictures of a fitted model: what it found, what it expects, how the fit went, where it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from ..forecasting.forecast import Forecast
from ..messages.arguments import check_count
from ..messages.formatting import level_text, number_text, percent
from ..sampling.traces import one_step_on
from ..summary import component_summary, step_errors
from ..timeline.grid import time_texts
from .canvas import BLUE, GREY, ORANGE, PALETTE, new_axes, run_lines

if TYPE_CHECKING:
    from ..estimator import TemporalNMF

_DASHES = ("-", "--", "-.", ":")

# Characters in a column of a grid: of a name beside bars, and of it and a line of the title.
_LABEL_WIDTH, _COLUMN_WIDTH = 22, 50

# Movement that differs by less than this factor from what the chain expects is called right.
_MOVES_ALIKE = 1.5
_PATHS_PER_STEP = 200

# In place of an activation of zero, from which no chain starts.
_SMALLEST = 1e-300


def plot_activations(
    model: TemporalNMF, components: Any = None, coverage: float = 0.9, *, ax: Any = None
) -> Any:
    """How much of each component there is over time, with bands; gaps are shaded.

    Parameters
    ----------
    model : TemporalNMF
        Fitted.
    components : int or sequence of int, default=None
        Indices, from 0, of those to draw; None is all.
    coverage : float, default=0.9
        Share of the posterior law inside a band. Plain NMF, the chain "none", has no bands, and
        the picture says so.
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
    chosen = _components(model, components)
    ax = new_axes(9.0, 4.2) if ax is None else ax
    x = _time_axis(ax, model.times_)
    smooth = model.smooth(coverage=(coverage,))
    if smooth.has_bands:
        lower, upper = smooth.interval(coverage, of="components")
    names = _names(model)
    for k in chosen:
        style = _line(k)
        if smooth.has_bands:
            ax.fill_between(
                x, lower[:, k], upper[:, k], color=style["color"], alpha=0.2, lw=0, zorder=1
            )
        ax.plot(x, model.activations_[:, k], lw=1.4, label=names[k], **style)
    _shade_gaps(ax, x, model.observed_)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel(_amount(model))
    ax.set_title(_bands_said(smooth, [coverage], "what each may have been"), fontsize=9, loc="left")
    _legend_beside(ax)
    return ax


def plot_components(
    model: TemporalNMF, components: Any = None, n_features: int = 10, *, ax: Any = None
) -> Any:
    """The features that are most characteristic of each component.

    A bar is a feature's share of the component, a grey mark its share of all components together:
    characteristic is what has much weight, and more than elsewhere. Long names are cut.

    Parameters
    ----------
    model : TemporalNMF
        Fitted.
    components : int or sequence of int, default=None
        Indices, from 0, of those to draw; None is all.
    n_features : int, default=10
        Features per component.
    ax : matplotlib Axes or array of them, default=None
        As many as there are components to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes if `components` is one number, else an array of them
    """
    n_features = check_count("n_features", n_features)
    chosen = _components(model, components)
    summary = component_summary(model, max(n_features, 3))  # three for the name
    axes = _grid(len(chosen), n_features) if ax is None else np.atleast_1d(ax).ravel()
    if len(axes) != len(chosen):
        raise ValueError(f"ax holds {len(axes)} Axes: expected {len(chosen)}, one per component.")
    usual = np.array([c.share for c in summary]) @ model.components_
    usual_of = dict(zip(model.feature_labels().tolist(), usual.tolist(), strict=True))
    for k, one in zip(chosen, axes, strict=True):
        _draw_features(one, summary[k], n_features, usual_of)
    mark = {"handles": axes[0].lines[-1:], "fontsize": 8, "frameon": False}
    if ax is None:
        axes[0].figure.legend(loc="outside lower right", **mark)
    else:
        axes[0].legend(loc="lower right", **mark)
    return axes[0] if _is_index(components) else axes


def _draw_features(ax: Any, component: Any, n_features: int, usual_of: dict[str, float]) -> None:
    features, weights = zip(*component.top[:n_features], strict=True)
    y = np.arange(len(features))
    usual = np.array([usual_of[feature] for feature in features])
    ax.barh(y, 100.0 * np.array(weights), color=_line(component.index)["color"])
    for color, width in (("white", 4.0), (GREY, 2.0)):  # grey is seen on any bar
        ax.plot(
            100.0 * usual, y, "|", color=color, ms=7, mew=width,
            label="share of the feature in all components together",
        )  # fmt: skip
    labels = [_shorten(feature) for feature in features]
    ax.set_yticks(y, labels, fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel("% of the component", fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    said = f"{percent(component.share)} of all, peak {component.peak}"
    if component.stability is not None:
        said += f", stability {component.stability:.2f}"
    # No layout makes room for a wide title: its lines have to fit.
    width = _COLUMN_WIDTH - max(12, *map(len, labels))
    lines = [*wrap(component.name, width), *wrap(said, width)]
    ax.set_title("\n".join(lines), fontsize=9, loc="left")


def _shorten(name: str) -> str:
    """A name that leaves room for bars beside it; its end may tell it from others."""
    half = _LABEL_WIDTH // 2
    return name if len(name) <= _LABEL_WIDTH else f"{name[: half - 1]}…{name[-half:]}"


def plot_forecast(
    source: Any,
    steps: int = 10,
    of: Any = "components",
    history: int | None = None,
    *,
    exposure: Any = None,
    ax: Any = None,
) -> Any:
    """What comes next: a fan with half and 90 % of the futures, after the end of the series.

    Parameters
    ----------
    source : TemporalNMF or Forecast
        A fitted model; or a forecast, which is drawn as it is, without a history.
    steps : int, default=10
        Steps ahead, where `source` is a model.
    of : default="components"
        "components", or the index of a component or several; "totals", the sums of all features;
        or the name of a feature or several. Dots are what was observed.
    history : int, default=None
        Steps of the past to show; None is three times as many as are forecast.
    exposure : float or array, (steps,), default=None
        As in `TemporalNMF.forecast`, where `source` is a model.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    ahead, model = source, None
    if not isinstance(source, Forecast):
        model = source
        check_is_fitted(model)
        ahead = model.forecast(steps, exposure=exposure)
    ax = new_axes(9.0, 4.2) if ax is None else ax
    n_past = 0
    if model is not None:
        wanted = 3 * len(ahead.times) if history is None else check_count("history", history)
        n_past = min(wanted, len(model.times_))
    x = _time_axis(ax, ahead.times if model is None else _with_past(model, ahead, n_past))
    kind, tracks = _tracks(ahead, model, of)
    for track in tracks:
        _draw_track(ax, x, n_past, track)
    if model is not None:
        _shade_gaps(ax, x[:n_past], model.observed_[-n_past:])
        ax.axvline(0.5 * (x[n_past - 1] + x[n_past]), color=GREY, lw=0.8, ls=":")
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel({"components": "activation", "totals": "total", "features": "value"}[kind])
    ax.set_title(_bands_said(ahead, ahead.coverage, "the futures"), fontsize=9, loc="left")
    _legend_beside(ax)
    return ax


@dataclass(frozen=True)
class _Track:
    """One thing that is forecast: a component, a feature or the totals."""

    name: str
    style: dict[str, Any]
    past: Array | None  # (N,), as the model has it
    seen: Array | None  # (N,), as it was observed, NaN where it was not
    point: Array  # (S,)
    bands: list[tuple[Array, Array]]  # lower and upper (S,), one pair per coverage


def _tracks(ahead: Any, model: TemporalNMF | None, of: Any) -> tuple[str, list[_Track]]:
    """What to draw of a forecast, and of the past where there is a model; its kind first."""
    kind, chosen, names = _columns(ahead, model, of)
    bands = [ahead.interval(coverage, of=kind) for coverage in _coverages(ahead)]
    point = ahead.point_of(kind)
    past = seen = None
    if model is not None:
        past, seen = _past(model, kind, chosen)

    def column(values: Array, j: int) -> Array:
        return values if kind == "totals" else values[:, j]

    return kind, [
        _Track(
            names[j],
            _line(j if kind == "components" else i),
            None if past is None else past[:, i],
            None if seen is None else seen[:, i],
            column(point, j),
            [(column(lower, j), column(upper, j)) for lower, upper in bands],
        )
        for i, j in enumerate(chosen)
    ]


def _past(model: TemporalNMF, kind: str, chosen: Sequence[int]) -> tuple[Array, Array | None]:
    """The chosen things at all steps of the fit (N, n): as fitted and, where it can be, as seen."""
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


def _columns(ahead: Any, model: TemporalNMF | None, of: Any) -> tuple[str, list[int], list[str]]:
    """Kind ("components", "features" or "totals"), indices and names of what `of` asks for."""
    if isinstance(of, str) and of == "totals":
        return "totals", [0], ["total"]
    n_components = ahead.activations.shape[1]
    everything = isinstance(of, str) and of == "components"
    if everything or _is_index(of) or (not isinstance(of, str) and all(map(_is_index, of))):
        names = (
            [f"component {k + 1}" for k in range(n_components)] if model is None else _names(model)
        )
        return "components", _indices(None if everything else of, n_components), names
    labels = [str(label) for label in ahead.feature_names]
    wanted = [of] if isinstance(of, str) else [str(name) for name in of]
    unknown = [name for name in wanted if name not in labels]
    if unknown:
        raise ValueError(
            f'of={of!r}: there is no feature {unknown[0]!r}. Give "components", "totals", the '
            f"index of a component, or names of features such as {labels[0]!r}."
        )
    return "features", [labels.index(name) for name in wanted], labels


def _draw_track(ax: Any, x: Array, n_past: int, track: _Track) -> None:
    """The past as a line, the forecast as a dashed one in its fan, joined to the past."""
    color = track.style["color"]
    point, fan = track.point, track.bands
    start = n_past
    if n_past:
        assert track.past is not None
        if track.seen is not None:
            ax.plot(x[:n_past], track.seen[-n_past:], ".", color=color, ms=5, alpha=0.6)
        ax.plot(x[:n_past], track.past[-n_past:], lw=1.4, label=track.name, **track.style)
        last, start = track.past[-1:], n_past - 1
        point = np.concatenate([last, point])
    for lower, upper in fan:
        ax.fill_between(x[n_past:], lower, upper, color=color, alpha=0.2, lw=0, zorder=1)
    label = None if n_past else track.name
    ax.plot(x[start:], point, color=color, lw=1.4, ls=(0, (2, 1)), label=label)


def plot_objective(model: TemporalNMF, *, ax: Any = None) -> Any:
    """How far above its end the objective was, iteration by iteration, and why the fit stopped.

    The end is the last value, not the lowest there is: whether the fit arrived is said in the
    title, in orange if it did not.

    Draws (solver="gibbs") go down to no end. Of these it is the log posterior, sweep by sweep, a
    line per run, and whether they have settled; `plot_trace` has more, and
    `posterior_.diagnosis` says it in words.

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
    ax = new_axes(6.4, 3.6) if ax is None else ax
    if model.posterior_ is not None:
        return _draw_log_posterior(ax, model)
    above = model.history_ - model.history_[-1]
    shown = above > 0.0
    ax.plot(model.history_iterations_[shown], above[shown], color=BLUE, lw=1.4, marker=".", ms=4)
    if shown.any():
        ax.set_yscale("log")
    ax.set_xlabel("iteration")
    ax.set_ylabel("objective above its last value")
    color = "black" if model.converged_ else ORANGE
    ax.set_title(model.stop_reason_, fontsize=9, loc="left", color=color)
    return ax


def _draw_log_posterior(ax: Any, model: TemporalNMF) -> Any:
    assert model.posterior_ is not None
    values = model.posterior_.log_posterior
    run_lines(ax, model.history_iterations_, values)
    ax.set_ylabel("log posterior")
    runs = "one run" if len(values) == 1 else f"{len(values)} runs"
    said = "settled" if model.converged_ else "not settled"
    color = "black" if model.converged_ else ORANGE
    ax.set_title(f"{runs} of draws, {said}", fontsize=9, loc="left", color=color)
    _legend_beside(ax)
    for line in ax.get_legend().get_lines():
        line.set(linewidth=2.0, alpha=1.0)  # colours are told apart by thick lines
    return ax


def plot_movement(
    model: TemporalNMF, components: Any = None, *, random_state: Any = 0, ax: Any = None
) -> Any:
    """How far components move in a step, against how far the chain expects them to.

    Both are laws of log h_n / h_{n−1} at pairs of observed steps: that of the activations found,
    as draws that carry their uncertainty, and that of one step of the chain from the same h_{n−1}.
    If the chain is right the two agree. If components move much more than it expects, it is too
    stiff, and a looser one follows them better; if much less, a stiffer one gives narrower bands.

    Parameters
    ----------
    model : TemporalNMF
        Fitted. The chain "none" expects nothing, so only what was found is drawn.
    components : int or sequence of int, default=None
        Indices of those to count in; None is all.
    random_state : int, default=0
        For the draws.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    chosen = _components(model, components)
    ax = new_axes(6.4, 3.6) if ax is None else ax
    found, expected = _movements(model, chosen, random_state)
    laws = [law for law in (found, expected) if law is not None]
    reach = max(np.abs(np.quantile(law, (0.005, 0.995))).max() for law in laws)
    bins = np.linspace(-reach, reach, 61)
    if expected is not None:
        heights, _ = np.histogram(expected, bins)
        ax.stairs(
            heights / len(expected), bins, fill=True, color=GREY, alpha=0.35,
            label="expected by the chain",
        )  # fmt: skip
    heights, _ = np.histogram(found, bins)
    ax.stairs(heights / len(found), bins, color=BLUE, lw=1.4, label="found")
    ax.axvline(0.0, color=GREY, lw=0.8, ls=":")
    factors = _round_factors(reach)
    ax.set_xticks(np.log(factors), map(_times, factors))
    ax.set_xlabel("change of an activation in one step")
    ax.set_ylabel("share of all steps")
    ax.set_title(_movement_said(model, found, expected), fontsize=9, loc="left")
    ax.legend(fontsize=8, frameon=False)
    return ax


def _movements(
    model: TemporalNMF, chosen: Sequence[int], random_state: Any
) -> tuple[Array, Array | None]:
    """log h_n / h_{n−1} as found and as expected, at all pairs of neighbours that were observed."""
    after = np.flatnonzero(model.observed_[1:] & model.observed_[:-1]) + 1
    if not len(after):
        raise ValueError("The model has no two neighbouring steps that were observed.")
    smooth = model.smooth(random_state=random_state)
    # (n, N, K): draws where there are any, else the activations themselves.
    draws = smooth.samples(of="components") if smooth.has_bands else model.activations_[None]
    now, before = draws[:, after][..., chosen], draws[:, after - 1][..., chosen]
    found = _log_ratio(now, before)
    if not smooth.has_bands:
        return found, None
    rng = np.random.default_rng(random_state)
    if model.posterior_ is not None:  # each draw with the hyper-parameters it was drawn with
        which = model.posterior_.pick(_PATHS_PER_STEP)
        before = model.posterior_.steps(which, model._kept, len(model.times_), rng)[:, after - 1]
        return found, _log_ratio(
            one_step_on(model.posterior_, which, before, rng)[..., chosen], before[..., chosen]
        )
    rows = rng.integers(len(draws), size=_PATHS_PER_STEP)
    first = draws[rows][:, after - 1].reshape(-1, draws.shape[2])  # (n, K)
    paths = model.chain_.sample(len(first), 2, rng, np.maximum(first, _SMALLEST))
    return found, _log_ratio(paths[:, 1][:, chosen], first[:, chosen])


def _log_ratio(now: Array, before: Array) -> Array:
    """log now/before, flat; at most 50 in size, so that a path that died has a place."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(now) - np.log(before)
    return np.clip(np.nan_to_num(ratio, nan=0.0), -50.0, 50.0).ravel()


def _round_factors(reach: float) -> list[float]:
    """Factors to mark on an axis of logarithms from −reach to reach, not too close together."""
    marks: list[float] = []
    for factor in (
        1e20,
        1e10,
        1e5,
        1e3,
        100.0,
        30.0,
        10.0,
        5.0,
        3.0,
        2.0,
        1.5,
        1.2,
        1.1,
        1.05,
        1.02,
    ):
        place, taken = np.log(factor), np.log([*marks, 1.0])
        if place <= reach and np.abs(taken - place).min() > reach / 3.0:
            marks.append(factor)
    return [*(1.0 / factor for factor in marks), 1.0, *marks]


def _times(factor: float) -> str:
    """×0.5, ×1.2, ×10⁵"""
    if 1e-2 <= factor < 1e3:
        return f"×{factor:.2g}" if factor < 1.0 else f"×{factor:g}"
    return f"×$10^{{{round(np.log10(factor))}}}$"


def _movement_said(model: TemporalNMF, found: Array, expected: Array | None) -> str:
    if expected is None:
        return "no chain to compare with:\nplain NMF expects nothing of the next step"
    low, high = 0.1, 0.9
    spread = [float(np.subtract(*np.quantile(law, (high, low)))) for law in (found, expected)]
    factor = spread[0] / max(spread[1], _SMALLEST)
    chain = f"{model.chain_.name} ({model.chain_.numbers()})"
    if factor > _MOVES_ALIKE:
        return f"{chain} is too stiff:\ncomponents move {factor:.1f} times as far as it expects"
    if factor < 1.0 / _MOVES_ALIKE:
        return f"{chain} is too loose:\ncomponents move {factor:.2g} times as far as it expects"
    return f"{chain} fits:\ncomponents move {factor:.2f} times as far as it expects"


def plot_residuals(model: TemporalNMF, n_worst: int = 5, *, ax: Any = None) -> Any:
    """Error of the fit by time: where does the model fail?

    Parameters
    ----------
    model : TemporalNMF
        Fitted, with its data.
    n_worst : int, default=5
        The steps with the largest errors are labelled, so many of them.
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
        raise ValueError(
            "This model was saved without its data, and residuals need them: fit it again."
        )
    ax = new_axes(9.0, 3.8) if ax is None else ax
    x = _time_axis(ax, model.times_)
    error = errors.error
    more = errors.observed > errors.expected
    for where, color, label in (
        (more, ORANGE, "more was observed than the fit has"),
        (~more, BLUE, "less was observed"),
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
    _shade_gaps(ax, x, model.observed_)
    ax.set_ylim(0.0, 1.12 * np.nanmax(error))  # room for the labels
    ax.set_ylabel("divergence per entry")
    _legend_beside(ax)
    return ax


# What the pictures share


def _components(model: TemporalNMF, components: Any) -> list[int]:
    check_is_fitted(model)
    return _indices(components, len(model.components_))


def _indices(components: Any, n_components: int) -> list[int]:
    """Indices of components; an error where one does not exist."""
    if components is None:
        return list(range(n_components))
    wanted = [components] if _is_index(components) else list(components)
    for k in wanted:
        if not _is_index(k) or not 0 <= k < n_components:
            raise ValueError(
                f"components={components!r}: {k!r} is not one of 0 to {n_components - 1}."
            )
    return [int(k) for k in wanted]


def _is_index(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _names(model: TemporalNMF) -> list[str]:
    return [component.name for component in component_summary(model)]


def _line(k: int) -> dict[str, Any]:
    """Colour and dashes of a component, the same in every picture."""
    rounds, color = divmod(k, len(PALETTE))
    return {"color": PALETTE[color], "ls": _DASHES[rounds % len(_DASHES)]}


def _coverages(ahead: Any) -> list[float]:
    """The widest first, so that narrower bands lie on top; none for plain NMF."""
    return sorted(ahead.coverage, reverse=True) if ahead.has_bands else []


def _amount(model: TemporalNMF) -> str:
    given = np.any(np.asarray(model.exposure_) != 1.0)
    return "activation per unit of exposure" if given else "activation"


def _bands_said(about: Any, coverages: Sequence[float], law: str) -> str:
    if not about.has_bands:
        return "no bands: plain NMF has no law of motion, so it cannot say how sure it is"
    shares = " and ".join(level_text(c) for c in sorted(coverages))
    return f"bands hold {shares} of {law}"


def _time_axis(ax: Any, times: Array) -> Array:
    """Positions (N,) of the steps, as numbers; the axis shows dates, numbers or texts."""
    times = np.asarray(times)
    if times.dtype.kind == "M":
        from matplotlib import dates

        locator = dates.AutoDateLocator()
        ax.xaxis_date()
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        return dates.date2num(times)
    if times.dtype.kind in "iuf":
        return times.astype(float)
    texts = time_texts(times)

    def text_at(x: float, _: Any) -> str:
        n = round(x)
        return texts[n] if abs(x - n) < 1e-6 and 0 <= n < len(texts) else ""

    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    ax.xaxis.set_major_formatter(text_at)
    return np.arange(len(times), dtype=float)


def _shade_gaps(ax: Any, x: Array, observed: Array) -> None:
    """Grey behind every run of steps without an observation."""
    edges = _edges(x)
    missing = np.concatenate([[False], ~np.asarray(observed, dtype=bool), [False]]).astype(int)
    turns = np.diff(missing)
    runs = zip(np.flatnonzero(turns == 1), np.flatnonzero(turns == -1), strict=True)
    for i, (first, after) in enumerate(runs):
        label = None if i else "not observed"
        ax.axvspan(edges[first], edges[after], color=GREY, alpha=0.18, lw=0, zorder=0, label=label)


def _edges(x: Array) -> Array:
    """Half way between neighbours (N + 1,), and as far beyond the ends."""
    if len(x) == 1:
        return np.array([x[0] - 0.5, x[0] + 0.5])
    middle = 0.5 * (x[1:] + x[:-1])
    return np.concatenate([[2.0 * x[0] - middle[0]], middle, [2.0 * x[-1] - middle[-1]]])


def _legend_beside(ax: Any) -> None:
    ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.02))


def _grid(n: int, n_features: int) -> Array:
    """Axes (n,) in a new figure, three beside each other."""
    from matplotlib import pyplot

    n_columns = min(n, 3)
    n_rows = -(-n // n_columns)
    figure, axes = pyplot.subplots(
        n_rows, n_columns, squeeze=False, layout="constrained",
        figsize=(3.6 * n_columns, (1.1 + 0.17 * n_features) * n_rows + 0.2),
    )  # fmt: skip
    for unused in axes.ravel()[n:]:
        figure.delaxes(unused)
    return axes.ravel()[:n]


def _with_past(model: TemporalNMF, ahead: Any, n_past: int) -> Array:
    """Labels of the last steps and of those ahead; texts where they are not of one kind."""
    past = model.times_[-n_past:]
    if past.dtype.kind == ahead.times.dtype.kind:
        return np.concatenate([past, ahead.times])
    return np.array([*time_texts(past), *time_texts(ahead.times)])
