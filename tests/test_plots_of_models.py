"""Pictures of a fitted model: do they show its numbers?"""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import dates
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from temporalnmf import TemporalNMF, plotting, registry
from temporalnmf.chains import Rate
from temporalnmf.plotting import canvas, fitted, movement
from temporalnmf.summary import component_summary, step_errors
from temporalnmf.timeline import time_texts

NAMES = ["ada", "bix", "cleo", "django", "ella", "fela"]
BANDED = [name for name in registry.CHAINS if name != "none"]


def monthly_counts():
    """40 months, of which 3, 4 and 20 are missing, and 21 lacks one cell."""
    rng = np.random.default_rng(0)
    level = 60.0 + 40.0 * np.sin(np.arange(40)[:, None] / 6.0 + [0.0, 2.0])
    X = rng.poisson(level @ rng.dirichlet(np.full(6, 0.4), size=2)).astype(float)
    X[[3, 4, 20]] = np.nan
    X[21, 2] = np.nan
    months = pd.date_range("2001-01", periods=40, freq="MS")
    return pd.DataFrame(X, index=months, columns=NAMES)


GAPS = [[3, 4], [20]]


@pytest.fixture(scope="module")
def models():
    X = monthly_counts()
    return {name: TemporalNMF(2, chain=name, random_state=0).fit(X) for name in registry.CHAINS}


def band(collection, n):
    """Lower and upper edge of a band over n steps."""
    points = collection.get_paths()[0].vertices
    return points[1 : n + 1], points[n + 2 : 2 * n + 2][::-1]


def shaded(ax, x):
    """Steps (by index) behind which there is grey, one list per rectangle."""
    spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in ax.patches]
    return [np.flatnonzero((x > low) & (x < high)).tolist() for low, high in spans]


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# Activations


@pytest.mark.quick("none", "rate", "bgar")
@pytest.mark.parametrize("name", registry.CHAINS)
def test_activations_are_drawn_with_lines_bands_and_gaps(models, name, ax):
    model = models[name]
    assert plotting.plot_activations(model, coverage=0.8, ax=ax) is ax
    x = dates.date2num(model.times_)
    assert len(ax.lines) == 2
    for k, line in enumerate(ax.lines):
        np.testing.assert_array_equal(line.get_xdata(), x)
        np.testing.assert_array_equal(line.get_ydata(), model.activations_[:, k])
    assert shaded(ax, x) == GAPS
    assert legend_of(ax) == [c.name for c in component_summary(model)] + ["not observed"]
    if name == "none":
        assert not ax.collections
        assert "no bands" in ax.get_title(loc="left")
        return
    assert "80 %" in ax.get_title(loc="left")
    ends = model.smooth().quantile([0.1, 0.9], of="components")
    for k, drawn in enumerate(ax.collections):
        for edge, level in zip(band(drawn, 40), ends, strict=True):
            np.testing.assert_allclose(edge, np.column_stack([x, level[:, k]]))


def test_activations_of_some_components_keep_their_colours(models, ax):
    plotting.plot_activations(models["rate"], components=1, ax=ax)
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), models["rate"].activations_[:, 1])
    assert line.get_color() == plotting.PALETTE[1]
    with pytest.raises(ValueError, match=r"components=\[0, 2\]: 2 is not one of 0 to 1"):
        plotting.plot_activations(models["rate"], components=[0, 2], ax=ax)


def test_more_components_than_colours_differ_in_their_dashes():
    styles = [canvas.line_style(k) for k in range(20)]
    assert len(set(styles)) == 20


@pytest.mark.parametrize("times", ["dates", "years", "texts"])
def test_time_axis_is_in_the_users_units(times, ax):
    X = monthly_counts().to_numpy()
    index = {
        "dates": pd.date_range("1990-03-01", periods=40, freq="D"),
        "years": np.arange(1901, 1941),
        "texts": [f"no. {i}a" for i in range(40)],
    }[times]
    model = TemporalNMF(1, random_state=0).fit(pd.DataFrame(X, index=index, columns=NAMES))
    plotting.plot_activations(model, ax=ax)
    x = ax.lines[0].get_xdata()
    shown = ax.xaxis.get_major_formatter()
    if times == "dates":
        assert dates.num2date(x[0]).date().isoformat() == "1990-03-01"
        assert isinstance(shown, dates.ConciseDateFormatter)
    elif times == "years":
        assert x[0] == 1901.0
    else:
        assert shown(7.0) == "no. 7a"
        assert shown(7.5) == shown(40.0) == ""


def test_the_axis_of_activations_names_the_exposure():
    X = monthly_counts()
    model = TemporalNMF(1, random_state=0).fit(X, exposure=np.full(len(X), 2.0))
    assert "exposure" in plotting.plot_activations(model, ax=Figure().subplots()).get_ylabel()


def test_a_model_that_is_not_fitted_is_refused(ax):
    for draw in (plotting.plot_activations, plotting.plot_forecast, plotting.plot_objective):
        with pytest.raises(NotFittedError):
            draw(TemporalNMF(2), ax=ax)


def test_new_figures_belong_to_pyplot(models):
    """So that a notebook shows them by itself."""
    mpl.use("Agg")
    from matplotlib import pyplot

    model = models["rate"]
    for draw in (plotting.plot_activations, plotting.plot_residuals, plotting.plot_objective,
                 plotting.plot_movement, plotting.plot_forecast):  # fmt: skip
        assert draw(model).figure is pyplot.gcf()
    axes = plotting.plot_components(model)
    assert [axes.shape, len(pyplot.gcf().axes)] == [(2,), 2]
    pyplot.close("all")


# Components


def test_components_are_bars_of_their_characteristic_features():
    model = TemporalNMF(2, n_init=2, random_state=0).fit(monthly_counts())
    axes = plotting.plot_components(model, n_features=4, ax=Figure().subplots(1, 2))
    share = model.activations_.sum(axis=0) / model.activations_.sum()
    for k, ax in enumerate(axes):
        c = component_summary(model)[k]
        features = [t.get_text() for t in ax.get_yticklabels()]
        assert features == [feature for feature, _ in c.top[:4]]
        order = [NAMES.index(feature) for feature in features]
        widths = [bar.get_width() for bar in ax.patches]
        np.testing.assert_allclose(widths, 100.0 * model.components_[k, order])
        marks = ax.lines[0].get_xdata()
        np.testing.assert_allclose(marks, 100.0 * (share @ model.components_)[order])
        assert ax.yaxis_inverted()  # the first on top
        said = f"{c.name} {100 * c.share:.0f} % of all, peak {c.peak}, stability {c.stability:.2f}"
        assert ax.get_title(loc="left").split() == said.split()
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == [
        "share of the feature in all components together"
    ]
    assert axes[1].get_legend() is None


def test_nothing_of_a_title_is_cut_beside_long_names():
    from matplotlib import pyplot

    counts = monthly_counts()
    counts.columns = [f"a very long name of the feature {name}" for name in counts.columns]
    model = TemporalNMF(3, n_init=2, random_state=0).fit(counts)
    axes = plotting.plot_components(model)
    figure = axes[0].figure
    figure.canvas.draw()
    for ax in axes:
        assert ax._left_title.get_window_extent().x1 <= figure.bbox.x1
    for ax, after in pairwise(axes):
        assert ax._left_title.get_window_extent().x1 <= after.get_tightbbox().x0
    assert "share of the feature" in figure.legends[0].get_texts()[0].get_text()
    pyplot.close("all")


def test_one_component_is_drawn_on_one_axes(models, ax):
    assert plotting.plot_components(models["rate"], 1, n_features=2, ax=ax) is ax
    assert len(ax.patches) == 2
    assert ax.get_title(loc="left").count(",") >= 3  # the name still has three features
    assert "stability" not in ax.get_title(loc="left")
    with pytest.raises(ValueError, match="ax holds 1 Axes: expected 2"):
        plotting.plot_components(models["rate"], ax=ax)


# Forecasts


@pytest.mark.parametrize("name", registry.CHAINS)
def test_a_forecast_is_drawn_as_a_fan_after_its_history(models, name, ax):
    model = models[name]
    plotting.plot_forecast(model, steps=5, history=12, ax=ax)
    ahead = model.forecast(5)
    x = dates.date2num(np.concatenate([model.times_[-12:], ahead.times]))
    lines = [line for line in ax.lines if len(line.get_xdata()) > 2]
    for k in range(2):
        past, future = lines[2 * k : 2 * k + 2]
        np.testing.assert_array_equal(past.get_xydata().T, [x[:12], model.activations_[-12:, k]])
        joined = [model.activations_[-1, k], *ahead.activations[:, k]]
        np.testing.assert_array_equal(future.get_xydata().T, [x[11:], joined])
    if name == "none":
        assert not ax.collections
        assert "no bands" in ax.get_title(loc="left")
        return
    fans = [(k, c) for k in range(2) for c in (0.9, 0.5)]  # the narrow one on top
    for (k, coverage), drawn in zip(fans, ax.collections, strict=True):
        for edge, level in zip(band(drawn, 5), ahead.interval(coverage, "components"), strict=True):
            np.testing.assert_allclose(edge, np.column_stack([x[12:], level[:, k]]))


def test_forecasts_of_totals_and_features_are_drawn_beside_what_was_observed(models, ax):
    model, X = models["rate"], monthly_counts().to_numpy()
    plotting.plot_forecast(model, steps=4, of="totals", history=30, ax=ax)
    dots = next(line for line in ax.lines if line.get_marker() == ".")
    totals = np.where(np.isnan(X).all(axis=1), np.nan, np.nansum(X, axis=1))
    np.testing.assert_allclose(dots.get_ydata(), totals[-30:])
    assert shaded(ax, ax.lines[0].get_xdata()) == [[10]]
    assert legend_of(ax) == ["total", "not observed"]
    lower, upper = model.forecast(4).interval(0.9, of="totals")
    np.testing.assert_allclose([edge[:, 1] for edge in band(ax.collections[0], 4)], [lower, upper])

    ax = Figure().subplots()
    plotting.plot_forecast(model, steps=4, of=["cleo", "ada"], history=30, exposure=2.0, ax=ax)
    drawn = [line.get_ydata() for line in ax.lines if line.get_marker() == "."]
    np.testing.assert_allclose(drawn, X[-30:, [2, 0]].T)
    lower, upper = model.forecast(4, exposure=2.0).interval(0.9)
    np.testing.assert_allclose([e[:, 1] for e in band(ax.collections[0], 4)],
                               [lower[:, 2], upper[:, 2]])  # fmt: skip


def test_a_forecast_is_drawn_alone(models, ax):
    ahead = models["shape"].forecast(6, coverage=0.7)
    plotting.plot_forecast(ahead, of=1, ax=ax)
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), ahead.activations[:, 1])
    assert legend_of(ax) == ["component 2"]
    assert len(ax.collections) == 1
    assert "70 %" in ax.get_title(loc="left")


@pytest.mark.filterwarnings("ignore:X. times are not evenly spaced")
@pytest.mark.parametrize("kind", ["texts", "numbers"])
def test_forecasts_of_unknown_spacing_are_numbered(kind, ax):
    uneven = np.cumsum(np.random.default_rng(0).integers(1, 90, size=40)) + 0.5
    index = uneven if kind == "numbers" else [f"t{i}x" for i in range(40)]
    X = pd.DataFrame(monthly_counts().to_numpy(), index=index, columns=NAMES)
    model = TemporalNMF(1, random_state=0).fit(X)
    plotting.plot_forecast(model, steps=3, history=100, ax=ax)
    shown = ax.xaxis.get_major_formatter()
    assert [shown(40.0), shown(42.0)] == ["+1", "+3"]
    assert shown(39.0) == time_texts(model.times_)[39]


def test_a_forecast_of_an_unknown_feature_is_refused(models, ax):
    with pytest.raises(ValueError, match="no feature 'zoe'"):
        plotting.plot_forecast(models["rate"], of=["ada", "zoe"], ax=ax)


# How the fit went


def test_objective_falls_to_its_end_and_the_title_says_why(models, ax):
    model = models["rate"]
    plotting.plot_objective(model, ax=ax)
    x, y = ax.lines[0].get_xydata().T
    above = model.history_ - model.history_[-1]
    np.testing.assert_array_equal(y, above[above > 0.0])
    np.testing.assert_array_equal(x, model.history_iterations_[above > 0.0])
    assert ax.get_yscale() == "log"
    assert ax.get_title(loc="left") == model.stop_reason_
    with pytest.warns(ConvergenceWarning):
        cut = TemporalNMF(2, max_iter=2, random_state=0).fit(monthly_counts())
    plotting.plot_objective(cut, ax=(other := Figure().subplots()))
    assert to_hex(other._left_title.get_color()) == plotting.ORANGE
    assert to_hex(ax._left_title.get_color()) == "#000000"


def test_residuals_are_the_errors_and_the_worst_are_named(models, ax):
    model = models["rate"]
    plotting.plot_residuals(model, n_worst=3, ax=ax)
    error = step_errors(model).error
    dots = np.vstack([line.get_xydata() for line in ax.lines if line.get_marker() == "."])
    x = dates.date2num(model.times_)
    seen = np.isfinite(error)
    assert seen.sum() == 37
    np.testing.assert_allclose(dots[np.argsort(dots[:, 0])], np.column_stack([x, error])[seen])
    worst = np.argsort(-np.where(seen, error, 0.0))[:3]
    assert [t.get_text() for t in ax.texts] == [time_texts(model.times_)[n] for n in worst]
    assert shaded(ax, x) == GAPS
    more = next(line for line in ax.lines if "above" in line.get_label()).get_xdata()
    found = step_errors(model)
    np.testing.assert_allclose(more, x[seen & (found.observed > found.expected)])


def test_residuals_need_the_data(models, ax, monkeypatch):
    monkeypatch.setattr(fitted, "step_errors", lambda model: None)
    with pytest.raises(ValueError, match="saved without its data"):
        plotting.plot_residuals(models["rate"], ax=ax)


# Movement


@pytest.mark.quick("rate", "bgar")
@pytest.mark.parametrize("name", registry.CHAINS)
def test_movement_is_that_of_neighbours_that_were_observed(models, name, ax):
    model = models[name]
    plotting.plot_movement(model, ax=ax)
    drawn = {patch.get_label(): patch.get_data() for patch in ax.patches}
    # Of 39 pairs, those with steps 3, 4 or 20 are left out.
    after = [n for n in range(1, 40) if not {n - 1, n} & {3, 4, 20}]
    draws = model.activations_[None] if name == "none" else model.smooth().samples("components")
    found = np.log(draws[:, after] / draws[:, np.array(after) - 1]).ravel()
    heights, edges, _ = drawn["found"]
    np.testing.assert_allclose(heights, np.histogram(found, edges)[0] / found.size)
    if name == "none":
        assert set(drawn) == {"found"}
        assert "no chain to compare with" in ax.get_title(loc="left")
    else:
        assert drawn["expected by the chain"].values.sum() == pytest.approx(1.0, abs=0.02)


def test_movement_expected_is_that_of_the_chain(models):
    """Under Rate the logarithm of a step is that of a Gamma variable, whatever the value before."""
    from scipy.stats import kstest, loggamma

    model = models["rate"]
    _, expected = movement.movements(model, [0, 1], 3)
    alpha = model.chain_.alpha
    assert kstest(expected, loggamma(alpha, loc=-np.log(alpha)).cdf).pvalue > 1e-3


@pytest.mark.long
def test_movement_says_stiff_loose_or_right():
    """Components that move as Rate(30) does, seen through many counts, under three chains."""
    rng = np.random.default_rng(1)
    H = Rate(30.0).sample(2, 150, rng, 2000.0)
    X = rng.poisson(H.T @ rng.dirichlet(np.full(20, 0.2), size=2)).astype(float)
    said = {}
    for alpha in (1000.0, 30.0, 2.0):
        model = TemporalNMF(2, chain=Rate(alpha), random_state=0).fit(X)
        said[alpha] = plotting.plot_movement(model, ax=Figure().subplots()).get_title(loc="left")
    assert "α = 1000" in said[1000.0]
    assert "too stiff" in said[1000.0]
    assert "fits" in said[30.0]
    assert "too loose" in said[2.0]


def test_movement_needs_two_neighbours(ax):
    X = monthly_counts().to_numpy(copy=True)
    X[::2] = np.nan
    model = TemporalNMF(1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="no two adjacent steps"):
        plotting.plot_movement(model, ax=ax)


@pytest.mark.parametrize("reach", [0.01, 0.05, 0.3, 1.0, 4.0, 50.0])
def test_marks_on_the_axis_of_movement_are_few_and_within_reach(reach):
    factors = movement.round_factors(reach)
    assert 1.0 in factors
    assert len(factors) <= 7
    assert np.all(np.abs(np.log(factors)) <= reach)
    assert len(factors) >= 3 or reach < 0.02


def test_marks_on_the_axis_of_movement_are_written_short():
    marks = [
        movement.factor_text(factor) for factor in (1e-5, 1 / 30, 1 / 1.5, 1.0, 1.05, 100.0, 1e3)
    ]
    assert marks == ["×$10^{-5}$", "×0.033", "×0.67", "×1", "×1.05", "×100", "×$10^{3}$"]
