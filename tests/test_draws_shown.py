"""Posterior draws as they are shown: ArviZ, pictures, the report."""

import copy
import json
import re
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from arviz_stats.base import array_stats
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.stats import rankdata

from browser import launched, visited
from cases import estimator
from commands import done
from drawn import NAMES, SETTLED, drawn, months
from temporalnmf import load, plotting
from temporalnmf.chains import Rate
from temporalnmf.report import report_content, write_report
from temporalnmf.sampling.diagnostics import Diagnosis, Quantity, rhat
from temporalnmf.sampling.traces import one_step_on, ranks, traces

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def learned():
    return drawn(2, chain=Rate("learn", "learn"), smoothing="learn")


@pytest.fixture(scope="module")
def settled():
    """One component is known at once."""
    model = drawn(1, **SETTLED)
    assert model.posterior_.diagnosis.ok
    return model


@pytest.fixture(scope="module")
def mode():
    return estimator(2, random_state=0).fit(months())


def diagnosed(model, **rhats):
    """The same draws with a diagnosis of our own: R-hat by name, 1 if not given."""
    names = [q.name for q in model.posterior_.diagnosis.quantities]
    quantities = tuple(
        Quantity(name, rhats.get(name.replace(" ", "_"), 1.0), 900.0, 800.0) for name in names
    )
    n_runs = rhats.get("n_runs", 3)
    apart = (rhats.get("activations", 1.0), 1.0)
    draws = replace(model.posterior_)
    draws.__dict__["diagnosis"] = Diagnosis(quantities, n_runs, 60, apart, (0.5, 1.0))
    other = copy.copy(model)
    other.posterior_ = draws
    return other


# ArviZ


def test_arviz_has_names_times_and_numbers_of_components(learned):
    tree = learned.to_arviz()
    posterior, draws = tree["posterior"], learned.posterior_
    sizes = {"chain": 3, "draw": 60}
    assert posterior["components"].sizes == {**sizes, "component": 2, "feature": 6}
    assert posterior["activations"].sizes == {**sizes, "time": 28, "component": 2}
    assert draws.learned == ("alpha", "beta")
    for name, values in draws.parameters.items():
        assert posterior[name].dims == ("chain", "draw", "component")
        np.testing.assert_array_equal(posterior[name], values)
    np.testing.assert_array_equal(posterior["smoothing"], draws.smoothing)
    np.testing.assert_array_equal(tree["sample_stats"]["lp"], draws.log_posterior)
    assert posterior["feature"].values.tolist() == NAMES
    assert posterior["component"].values.tolist() == [1, 2]
    # Up to the last month that was observed.
    expected = np.arange("2001-01", "2003-05", dtype="datetime64[M]")
    np.testing.assert_array_equal(posterior["time"].values.astype("datetime64[M]"), expected)
    at = posterior["activations"].sel(chain=1, draw=7, time="2001-03-01", component=2)
    assert float(at) == draws.activations[1, 7, 2, 1]
    data = tree["observed_data"]["X"]
    assert data.sizes == {"time": 30, "feature": 6}
    np.testing.assert_array_equal(data, months().to_numpy())
    assert tree["constant_data"]["exposure"].values.tolist() == [1.0] * 30


def test_rhat_of_arviz_on_the_tree_is_ours(learned):
    posterior, draws = learned.to_arviz()["posterior"], learned.posterior_
    for name, ours in {
        "alpha": draws.parameters["alpha"],
        "smoothing": draws.smoothing,
        "activations": draws.activations,
        "components": draws.components,
    }.items():
        values = posterior[name].values.astype(float)  # in single precision theirs is less exact
        theirs = array_stats.rhat(values, chain_axis=0, draw_axis=1)
        np.testing.assert_allclose(rhat(ours), theirs, rtol=1e-6)


@pytest.mark.parametrize("index", [None, "texts", "years"])
def test_arviz_has_only_what_was_learned_and_observed_times_of_any_kind(index):
    X = months()
    labels = {"texts": [f"no. {n}x" for n in range(30)], "years": range(1901, 1931)}.get(index)
    X = X.to_numpy() if index is None else X.set_axis(list(labels), axis=0)
    model = estimator(
        1,
        likelihood="poisson",
        solver="gibbs",
        chain="gap",
        n_draws=8,
        n_tune=0,
        n_chains=2,
        random_state=0,
    ).fit(X)
    tree = model.to_arviz()
    assert set(tree["posterior"].data_vars) == {"components", "activations"}
    times = np.arange(30) if index is None else np.array(list(labels))
    seen = ~months().isna().all(axis=1).to_numpy()  # steps that are independent: observed ones
    assert tree["posterior"]["time"].values.tolist() == times[seen].tolist()


def test_arviz_of_a_file_without_data_has_no_observed_data(learned, tmp_path):
    tree = load(learned.save(tmp_path / "m.npz", data=False)).to_arviz()
    assert "observed_data" not in tree.children
    np.testing.assert_array_equal(
        tree["posterior"]["alpha"], learned.posterior_.parameters["alpha"]
    )


def test_a_mode_has_no_draws_to_show(mode):
    for what in (
        mode.to_arviz,
        lambda: plotting.plot_trace(mode),
        lambda: plotting.plot_ranks(mode),
    ):
        with pytest.raises(ValueError, match=r"'accelerated': .* needs.*with solver='gibbs'"):
            what()


def test_without_arviz_the_extra_is_named(learned, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(ImportError, match=r'pip install "temporalnmf\[bayes\]"'):
        learned.to_arviz()


# Pictures


def test_traces_take_the_component_that_is_settled_least(learned):
    draws = learned.posterior_
    found = {trace.name.split(" of component")[0]: trace for trace in traces(draws)}
    assert list(found) == [
        "log posterior", "all activations", "activation", "alpha", "beta", "smoothing",
    ]  # fmt: skip
    worst = int(np.argmax(rhat(draws.parameters["alpha"])))
    assert found["alpha"].name == f"alpha of component {worst + 1}"
    np.testing.assert_array_equal(found["alpha"].values, draws.parameters["alpha"][:, :, worst])
    np.testing.assert_allclose(found["all activations"].values, draws.activations.sum((2, 3)))
    assert [trace.name for trace in traces(draws, [1, 0])][2:4] == [
        "activation of component 2", "activation of component 1",
    ]  # fmt: skip


def test_trace_has_a_line_per_run_over_its_sweeps(learned):
    axes = plotting.plot_trace(learned, 1, ax=Figure().subplots(6))
    assert [ax.get_title(loc="left") for ax in axes] == [
        "log posterior", "all activations", "activation of component 2", "alpha of component 2",
        "beta of component 2", "smoothing",
    ]  # fmt: skip
    values = learned.posterior_.parameters["alpha"][:, :, 1]
    lines = axes[3].lines
    assert len(lines) == 3
    for run, line in enumerate(lines):
        np.testing.assert_array_equal(line.get_xydata().T, [np.arange(31, 91), values[run]])
        assert line.get_color() == plotting.PALETTE[run]
    assert [ax.get_yscale() for ax in axes] == ["linear"] * 3 + ["log"] * 3
    assert axes[3].get_title(loc="right") == f"R-hat {rhat(values):.2f}"
    legend = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert legend == ["run 1", "run 2", "run 3"]


@pytest.fixture(scope="module")
def follows():
    """α is learned; β goes along with it."""
    model = drawn(2, chain=Rate("learn"), n_draws=20, n_chains=2)
    assert set(model.posterior_.parameters) == {"alpha", "beta"}
    return model


@pytest.mark.long
def test_only_what_was_learned_is_shown(follows, tmp_path):
    kinds = ["log posterior", "all activations", "activation", "alpha"]
    found = [trace.name.split(" of component")[0] for trace in traces(follows.posterior_)]
    assert found == kinds
    for draw in (plotting.plot_trace, plotting.plot_ranks):
        titles = [ax.get_title(loc="left") for ax in draw(follows, 0, ax=Figure().subplots(4))]
        assert titles[2:] == ["activation of component 1", "alpha of component 1"]
    content = report_content(follows, steps=0)
    assert content["runs"]["learned"]["headings"] == ["α"]
    assert {len(row["cells"]) for row in content["runs"]["learned"]["rows"]} == {1}
    assert len(content["runs"]["panels"]) == len(content["charts"]["runs"]["panels"]) == 4
    assert [row["name"] for row in content["runs"]["rows"]][-1] == "α of the chain"
    lines = done("info", follows.save(tmp_path / "m.npz")).output.splitlines()
    assert "means of draws: alpha" in [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("low", "high"), [(240.0, 720.0), (310.0, 330.0), (1.2e-5, 9e-5), (0.4, 9.0), (8.0, 1100.0)]
)
def test_numbers_of_a_short_log_axis_are_few_and_plain(settled, low, high):
    """Powers like 2×10², 3×10², 4×10² lay upon each other."""
    values = np.geomspace(low, high, 1600).reshape(4, 400, 1)
    other = copy.copy(settled)
    other.posterior_ = replace(settled.posterior_, parameters={"alpha": values}, learned=("alpha",))
    figure = Figure(figsize=(3.9, 5.7), layout="constrained")
    ax = plotting.plot_trace(other, ax=figure.subplots(3))[2]
    assert ax.get_yscale() == "log"
    figure.canvas.draw()
    inside = ax.get_window_extent()
    boxes = [
        text.get_window_extent()
        for text in ax.get_yticklabels(which="both")
        if text.get_text() and inside.y0 <= text.get_window_extent().y0 + 4.0 <= inside.y1
    ]
    assert 2 <= len(boxes) <= 6
    boxes.sort(key=lambda box: box.y0)
    assert all(a.y1 <= b.y0 for a, b in pairwise(boxes))
    shown = [text.get_text().replace("−", "-") for text in ax.get_yticklabels(which="both")]
    assert not any("$" in text for text in shown)
    np.testing.assert_allclose([float(text) for text in shown if text], ax.get_yticks(), rtol=1e-5)


def test_the_objective_of_draws_is_the_log_posterior_of_every_run(learned, settled):
    for model, said, color in (
        (learned, "3 runs of draws, not settled", plotting.ORANGE),
        (settled, "4 runs of draws, settled", "#000000"),
    ):
        ax = plotting.plot_objective(model, ax=Figure().subplots())
        assert ax.get_title(loc="left") == said
        assert to_hex(ax._left_title.get_color()) == color
        assert [ax.get_xlabel(), ax.get_ylabel()] == ["sweep", "log posterior"]
        assert ax.get_yscale() == "linear"
        values = model.posterior_.log_posterior
        for line, run in zip(ax.lines, values, strict=True):
            np.testing.assert_array_equal(line.get_xydata().T, [model.history_iterations_, run])
    one = drawn(1, n_draws=20, thin=5, n_chains=1)
    ax = plotting.plot_objective(one, ax=Figure().subplots())
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [35, 40, 45, 50])
    assert ax.lines[0].get_marker() == "."  # so few are no line
    assert ax.get_title(loc="left").startswith("one run of draws, ")


def test_sweeps_count_those_that_were_not_kept():
    model = drawn(1, n_draws=60, thin=5, n_chains=2)
    axes = plotting.plot_trace(model, ax=Figure().subplots(2))
    np.testing.assert_array_equal(axes[0].lines[0].get_xdata(), 30 + 5 * np.arange(1, 13))


def test_rhat_of_runs_that_disagree_is_shown_in_orange(settled, learned):
    from temporalnmf.sampling.diagnostics import RHAT

    for model, n in ((settled, 2), (learned, 6)):
        axes = plotting.plot_ranks(model, ax=Figure().subplots(n))
        for ax, trace in zip(axes, traces(model.posterior_), strict=True):
            wanted = plotting.ORANGE if trace.rhat > RHAT else "#000000"
            assert to_hex(ax._right_title.get_color()) == wanted
    assert all(trace.rhat <= RHAT for trace in traces(settled.posterior_))
    assert any(trace.rhat > RHAT for trace in traces(learned.posterior_))


def test_ranks_are_shares_of_each_run_below(learned):
    values = learned.posterior_.log_posterior
    at, excess, reach = ranks(values)
    share = rankdata(values).reshape(values.shape) / values.size
    below = [[(run <= place + 1e-12).mean() for place in at] for run in share]
    np.testing.assert_allclose(excess, np.array(below) - at, atol=1e-12)
    ax = plotting.plot_ranks(learned, ax=Figure().subplots(6))[0]
    lines = [line for line in ax.lines if line.get_label().startswith("run")]
    for line, expected in zip(lines, excess, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), expected)
    (band,) = ax.patches
    assert [band.get_y(), band.get_height()] == pytest.approx([-reach, 2 * reach])


@pytest.mark.long
@pytest.mark.parametrize("memory", [0.0, 0.8], ids=["independent", "slow"])
def test_runs_of_one_law_stay_in_their_band(memory):
    """In 95 of 100 cases; slow ones in more, since their effective draws are counted."""
    rng, inside = np.random.default_rng(0), 0
    for _ in range(200):
        x = rng.normal(size=(4, 400))
        for n in range(1, 400):
            x[:, n] = memory * x[:, n - 1] + np.sqrt(1.0 - memory**2) * x[:, n]
        found = ranks(x)
        inside += bool(np.abs(found.excess).max() <= found.reach)
    assert inside >= 180
    assert (inside < 200) == (memory == 0.0)  # the band is no wider than it has to be


def test_a_run_elsewhere_leaves_the_band():
    x = np.random.default_rng(0).normal(size=(4, 400))
    x[2] += 0.7
    found = ranks(x)
    outside = np.abs(found.excess).max(axis=1) > found.reach
    assert outside[2]
    assert found.excess[2].min() < -found.reach  # it has too few small values


def test_pictures_of_draws_refuse_what_they_cannot_show(learned):
    with pytest.raises(ValueError, match=r"components=2: 2 is not one of 0 to 1"):
        plotting.plot_trace(learned, 2)
    with pytest.raises(ValueError, match="ax holds 2 Axes: expected 6"):
        plotting.plot_trace(learned, ax=Figure().subplots(2))
    with pytest.raises(ValueError, match="has only one: fit it with n_chains=4"):
        plotting.plot_ranks(drawn(1, n_draws=8, n_chains=1))


@pytest.mark.long
def test_new_figures_belong_to_pyplot_and_nothing_is_cut(learned):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    for draw in (plotting.plot_trace, plotting.plot_ranks):
        axes = draw(learned)
        figure = pyplot.gcf()
        assert axes[0].figure is figure
        figure.canvas.draw()
        for ax in axes:
            box = ax.get_tightbbox()
            assert figure.bbox.x0 <= box.x0
            assert box.x1 <= figure.bbox.x1
    pyplot.close("all")


def test_few_draws_are_drawn_without_a_verdict():
    model = drawn(1, n_draws=3, n_tune=0)
    for draw in (plotting.plot_trace, plotting.plot_ranks):
        ax = draw(model, ax=Figure().subplots(2))[0]
        assert ax.get_title(loc="right") == ""


def test_all_other_pictures_work_with_draws(learned):
    ax = Figure().subplots()
    assert plotting.plot_activations(learned, ax=ax).collections
    for draw in (plotting.plot_forecast, plotting.plot_residuals, plotting.plot_objective):
        draw(learned, ax=Figure().subplots())
    plotting.plot_components(learned, ax=Figure().subplots(1, 2))


def test_a_step_on_is_that_of_each_draws_own_chain(learned):
    """Under Rate the mean of h_{n+1}/h_n is α/β of the draw and of the component."""
    draws, rng = learned.posterior_, np.random.default_rng(0)
    which = np.array([3, 170])
    first = rng.uniform(1.0, 9.0, size=(2, 40_000, 2))
    growth = (one_step_on(draws, which, first, rng) / first).mean(axis=1)
    alpha, beta = (draws.parameters[name].reshape(-1, 2)[which] for name in ("alpha", "beta"))
    spread = np.sqrt(alpha) / beta / np.sqrt(40_000)
    assert np.all(np.abs(growth - alpha / beta) < 5.0 * spread)


# The report


def visible(text):
    return re.sub(r"<details.*?</details>", "", text.split("<script")[0], flags=re.S)


@pytest.mark.parametrize(
    ("rhats", "verdict", "answer"),
    [
        ({}, "The runs agree.", None),
        ({"activations": 1.3}, "The runs agree on predictions, but not on", "agree on totals"),
        ({"totals": 1.2}, "The runs do not agree yet.", "do not agree yet: treat the numbers"),
        ({"n_runs": 1}, "Not checked.", "drawn in one run"),
    ],
)
def test_the_report_says_how_far_runs_agree(learned, rhats, verdict, answer):
    model = diagnosed(learned, **rhats)
    content = report_content(model, steps=2)
    told = content["convergence"]
    assert told["verdict"].startswith(verdict)
    assert told["converged"] == (answer is None)
    said = " ".join(content["answer"])
    if answer is None:
        assert "runs" not in said.replace("other runs", "")
        assert "worth at least 800 independent draws" in told["words"]
    else:
        assert answer in said
    if "activations" in rhats:
        assert f"“{content['components'][0]['name']}”" in told["words"]
        assert f"“{content['components'][1]['name']}”" not in told["words"]
    words = f"{said} {told['words']} {content['notes']} {content['forecast']['notes']}"
    for advice in ("n_draws", "n_tune", "n_chains", "converged", "start."):
        assert advice not in words


def test_the_report_tells_too_few_draws_from_runs_that_differ(learned):
    """Few draws that agree are not called runs that differ."""

    def told(ess, **rhats):
        other = diagnosed(learned, **rhats)
        found = other.posterior_.diagnosis
        quantities = tuple(replace(q, ess_tail=ess.get(q.name, 800.0)) for q in found.quantities)
        other.posterior_.__dict__["diagnosis"] = replace(found, quantities=quantities)
        content = report_content(other, steps=0)
        column = [row["agrees"] for row in content["runs"]["rows"]]
        return column[1:4], content["convergence"], " ".join(content["answer"])

    few = {"totals": 90.0, "activations": 30.0}
    column, verdict, answer = told(few, totals=1.03)
    assert column == ["too few draws", "yes", "too few draws"]
    assert verdict["verdict"] == "There are too few draws yet."
    assert "worth only 30 independent draws" in verdict["words"]
    assert "too few draws yet" in answer
    column, verdict, _ = told(few, totals=1.2)
    assert column == ["runs differ", "yes", "too few draws"]
    assert verdict["verdict"] == "The runs do not agree yet."
    column, verdict, answer = told({"activations": 30.0})
    assert column == ["yes", "yes", "too few draws"]
    assert verdict["verdict"].startswith("The runs agree, but there are few draws for")
    assert "do not" not in verdict["words"] + answer
    assert told({}, totals=1.2, n_runs=1)[0][0] == "halves of the run differ"


@pytest.mark.long
@pytest.mark.parametrize(
    ("n_runs", "n_draws"), [(1, 1), *(pytest.param(2, n, marks=pytest.mark.long) for n in (1, 3))]
)
def test_the_report_says_that_there_are_too_few_draws(n_runs, n_draws, tmp_path):
    model = drawn(1, n_chains=n_runs, n_draws=n_draws, n_tune=0)
    path = write_report(model, tmp_path / "few.html", steps=2)
    text = visible(path.read_text(encoding="utf-8"))
    assert not re.search(r"\b1 (?:models|runs|draws|steps)\b", text)
    assert ("drew 1 plausible model in" in text) == (n_runs * n_draws == 1)
    assert ("are those of this draw." in text) == (n_runs * n_draws == 1)
    who = "The run" if n_runs == 1 else "Each run"
    has = "1 draw" if n_draws == 1 else "3 draws"
    assert f"{who} has {has}, too few to draw a line through." in text
    assert 'id="run-traces"' not in text
    assert 'id="run-ranks"' not in text
    runs = report_content(model, steps=0)["runs"]
    assert {row["agrees"] for row in runs["rows"]} == {"too few draws"}
    assert {row[name] for row in runs["rows"] for name in ("rhat", "bulk", "tail")} == {"–"}
    with launched() as browser, visited(browser, path) as page:
        assert page.locator("#by-component svg .line").count() == 1
    said = done("info", model.save(tmp_path / "m.npz")).output
    assert f"{n_runs} {'run' if n_runs == 1 else 'runs'} of {has}," in said
    assert "inf" not in said


def test_the_report_has_the_numbers_of_the_diagnosis(learned):
    runs = report_content(learned, steps=2)["runs"]
    for row, q in zip(runs["rows"], learned.posterior_.diagnosis.quantities, strict=True):
        assert row["rhat"] == f"{q.rhat:.2f}"
        assert row["bulk"] == f"{q.ess_bulk:,.0f}"
        assert row["tail"] == f"{q.ess_tail:,.0f}"
        assert row["settled"] == q.settled(3)
    assert runs["rows"][1]["name"] == "The total of a month"
    assert runs["wanted"] == {"rhat": "1.05", "ess": "150"}
    alpha = learned.posterior_.parameters["alpha"][:, :, 1].ravel()
    low, middle, high = np.quantile(alpha, [0.05, 0.5, 0.95])
    cell = runs["learned"]["rows"][1]["cells"][0]
    found = [float(part.strip("()").replace(",", "")) for part in cell.split() if part != "to"]
    assert found == pytest.approx([middle, low, high], rel=0.01)
    assert runs["learned"]["headings"] == ["α", "β"]
    assert runs["learned"]["smoothing"] is not None


def test_the_report_draws_the_runs(learned):
    content = report_content(learned, steps=2)
    charts = content["charts"]
    assert charts["trace"] is None
    assert charts["runs"]["sweeps"] == list(range(31, 91))
    for panel, trace in zip(charts["runs"]["panels"], traces(learned.posterior_), strict=True):
        shown = np.log10(trace.values) if trace.wide else trace.values
        np.testing.assert_allclose(panel["lines"], shown, rtol=1e-4, atol=1e-4)
        found = ranks(trace.values)
        np.testing.assert_allclose(panel["ranks"]["lines"], found.excess, atol=1e-3)
        assert panel["ranks"]["reach"] == pytest.approx(found.reach, rel=1e-2)
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    low, high = learned.smooth(coverage=0.9).interval(0.9, of="components")
    wide = charts["components"][0]["bands"][0]
    np.testing.assert_allclose(wide["low"][:30], low[:, 0], rtol=6e-4)
    np.testing.assert_allclose(wide["high"][:30], high[:, 0], rtol=6e-4)


def test_words_of_a_mode_and_of_draws_do_not_mix(learned, mode, tmp_path):
    draws, of_mode = (
        visible(write_report(m, tmp_path / f"{n}.html", steps=2).read_text(encoding="utf-8"))
        for n, m in enumerate((learned, mode))
    )
    for words in ("How sure are these results?", "separate runs of draws", "Tail ESS"):
        assert words in draws
        assert words not in of_mode
    for words in ("Can the fit be trusted?", "several starts of the fit", "Converged."):
        assert words in of_mode
        assert words not in draws
    assert "nverged" not in draws
    assert report_content(mode)["runs"] is None


def test_the_report_of_draws_tells_stability_between_runs(learned):
    other = copy.copy(learned)
    other.stability_ = np.array([0.5, 0.95])
    content = report_content(other, steps=0)
    words = [card["stability_words"] for card in content["components"]]
    assert words == ["not found again (0.50)", "found again (0.95)"]
    assert "came out differently in other runs" in " ".join(content["answer"])
    other.stability_ = None
    card = report_content(other, steps=0)["components"][0]
    assert card["stability_words"] == "not assessed: there was one run"


def test_movement_is_expected_by_each_draws_chain(settled):
    """At the mean of α a chain with an uncertain α would look too stiff."""
    draws = replace(
        settled.posterior_,
        parameters={name: np.full((4, 400, 1), 100.0) for name in ("alpha", "beta")},
    )
    draws.parameters["alpha"][::2] = draws.parameters["beta"][::2] = 4.0
    other = copy.copy(settled)
    other.posterior_ = draws
    (row,) = report_content(other, steps=0)["movement"]
    # Half of the steps have a log variance of about 1/4, half of 1/100.
    sd = np.sqrt((0.2838 + 0.01) / 2.0)
    found = float(row["expected"].split("\N{NO-BREAK SPACE}")[0])
    assert found == pytest.approx(100.0 * np.expm1(sd), rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize("n_runs", [pytest.param(1, marks=pytest.mark.long), 3])
def test_the_report_of_draws_works_in_a_browser(learned, tmp_path, n_runs):
    model = learned if n_runs > 1 else drawn(2, n_chains=1)
    path = write_report(model, tmp_path / "draws.html", steps=3)
    with launched() as browser:
        for width in (1280, 390):
            with visited(browser, path, viewport={"width": width, "height": 844}) as page:
                n_panels = 6 if n_runs > 1 else 3
                assert page.locator("#run-traces svg .line").count() == n_panels * n_runs
                several = n_panels if n_runs > 1 else 0
                assert page.locator("#run-ranks svg .line").count() == several * (n_runs + 1)
                assert page.locator("#run-ranks svg .band").count() == several
                assert page.locator("#by-component svg .line").count() == 2
                assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
