"""Known influences and trends in words, notes, plots, reports and on the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from browser import launched, visited
from cases import FEW
from commands import done
from temporalnmf import TemporalNMF, plotting
from temporalnmf.cli.effects import show_effects
from temporalnmf.cli.notes import worded
from temporalnmf.effects import Trend
from temporalnmf.report import notes as report_notes
from temporalnmf.report import report_content, write_report
from temporalnmf.solvers import Gibbs
from temporalnmf.summary import (
    EffectSummary,
    TrendSummary,
    change_words,
    effect_summary,
    trend_sought,
    trend_summary,
)

N, AHEAD = 98, 6
DAYS = pd.date_range("2001-01-03", periods=N + AHEAD)
PARTS = np.array([[0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]])
STRIKE = {"strike": ["2001-02-06", "2001-03-07", "2001-03-08"]}


def known():
    rng = np.random.default_rng(3)
    values = {"sale": rng.random(N + AHEAD) < 0.2, "rain": rng.normal(size=N + AHEAD)}
    return pd.DataFrame(values, index=DAYS).astype(float)


def table(growth=1.0):
    """A sale raises the first theme, a strike halves it and raises the second."""
    strike = np.isin(DAYS, pd.to_datetime(STRIKE["strike"]))
    later = growth ** np.maximum(np.arange(N + AHEAD) - N + 20, 0)
    first = 400.0 * (1.0 + 0.35 * known()["sale"]) * np.where(strike, 0.5, 1.0) * later
    second = 250.0 * np.where(strike, 2.6, 1.0) * later
    X = np.random.default_rng(0).poisson(np.column_stack([first, second]) @ PARTS)
    return pd.DataFrame(X.astype(float), index=DAYS, columns=list("abcd"))[:N]


def fitted(growth=1.0, covariates=True, **given):
    params = {"likelihood": "poisson", "season": None, "intervals": "model", "random_state": 0}
    model = TemporalNMF(FEW, **(params | given))
    return model.fit(table(growth), covariates=known()[:N] if covariates else None)


@pytest.fixture(scope="module")
def model():
    return fitted(1.03, trend=Trend(0.9, 0.1), holidays=STRIKE)


@pytest.fixture(scope="module")
def plain():
    return fitted(covariates=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The table and its covariates, those of later days included."""
    folder = tmp_path_factory.mktemp("files")
    table().to_csv(folder / "x.csv", index_label="date")
    known().to_csv(folder / "known.csv", index_label="date")
    return folder


# In words


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([1.35, 1.30, 1.41], "+35 % (30 to 41 %)"),
        ([0.982, 0.959, 1.0049], "−1.8 % (−4.1 to 0.5 %)"),
        ([0.44, 0.38, 0.49], "−56 % (−62 to −51 %)"),
        ([1.0001, 0.99, 1.01], "0.0 % (−1.0 to 1.0 %)"),
        ([1.9, 1.7, 2.1], "+90 % (70 to 110 %)"),
        ([2.61, 2.42, 2.84], "2.6 times (2.4 to 2.8)"),
        ([0.012, 0.0051, 0.03], "0.012 times (0.0051 to 0.03)"),
        ([1.35, np.nan, np.nan], "+35 %"),
    ],
)
def test_factors_are_changes_in_words(row, words):
    effect = EffectSummary("sale", "unit", np.array([[1.0, 1.0, 1.0], row]))
    assert effect.words(1) == words
    assert effect.change(1) == words.split(" (")[0]


def test_every_influence_is_told_with_what_its_factor_is_for(model):
    found = effect_summary(model)
    assert [one.label for one in found] == ["strike", "sale, per unit", "rain, per unit"]
    for one in found:
        np.testing.assert_array_equal(one.factors, model.effects_[one.name])
    first = int(np.argmax(model.components_[:, 0]))
    by_name = {one.name: one for one in found}
    assert 1.3 < by_name["sale"].factors[first, 0] < 1.42
    assert 2.3 < by_name["strike"].factors[1 - first, 0] < 2.9


def test_in_longer_steps_the_factor_of_a_holiday_is_that_of_a_day():
    months = pd.date_range("2001-01-01", periods=24, freq="MS")
    X = pd.DataFrame(np.full((24, 2), 50.0), index=months)
    found = TemporalNMF(1, season=None, holidays={"fair": ["2001-05-03", "2002-06-04"]}).fit(X)
    assert [one.label for one in effect_summary(found)] == ["fair, per day"]


def test_the_growth_of_a_trend_adds_up_to_its_factors_in_a_forecast(model):
    trend = trend_summary(model)
    assert trend.course == "continues and fades out with damping 0.9"
    np.testing.assert_array_equal(trend.factors, model.trend_)
    factors = model.forecast(AHEAD, covariates=known()[N:]).factors["trend"]
    factors = factors / model.smooth().factors["trend"][-1]
    assert factors[-1].min() > 1.03
    for steps in (1, AHEAD):
        assert trend.after(steps) == [change_words(float(f)) for f in factors[steps - 1]]
    lasting = TrendSummary("trend", "step", np.array([[1.02, 1.0, 1.04]]), Trend(1.0))
    assert lasting.course == "continues and does not fade out"
    assert lasting.after(3) == ["+6.1 %"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_effects_of_draws_are_told_in_the_same_way():
    drawn = fitted(trend=0.9, solver=Gibbs(20, 20, 2))
    sale, _ = effect_summary(drawn)
    first = int(np.argmax(drawn.components_[:, 0]))
    assert sale.words(first).startswith("+3")
    assert " to " in sale.words(first)
    (note,) = notes_on_trend(drawn.forecast(AHEAD, covariates=known()[N:]))
    assert 0.8 < note.facts["growth"] < 1.25


def test_without_effects_nothing_is_told(plain):
    assert effect_summary(plain) == []
    assert trend_summary(plain) is None
    assert not trend_sought(plain)
    assert report_content(plain, steps=0)["effects"] is None


# Notes


def notes_on_trend(ahead):
    return [note for note in ahead.notes if note.code == "trend"]


def test_forecasts_that_continue_a_trend_say_by_how_much(model):
    ahead = model.forecast(AHEAD, covariates=known()[N:])
    (note,) = notes_on_trend(ahead)
    parts = ahead.explain()
    last = parts[parts["time"] == ahead.times[-1]]
    since = last["trend"].to_numpy() / model.smooth().factors["trend"][-1]  # the last known step
    growth = last["expected"].sum() / (last["expected"] / since).sum()
    assert note.facts["growth"] == pytest.approx(growth, rel=1e-9)
    assert growth > 1.03
    assert "which fades out. Until 2001-04-16 it raises totals by " in note
    assert "trend=None, the default," in note
    assert "--trend none" in worded([note])[0]
    assert note.render(report_notes.WORDS).endswith("%.")
    (shorter,) = notes_on_trend(model.forecast(1, covariates=known()[N : N + 1]))
    assert 1.0 < shorter.facts["growth"] < growth


@pytest.mark.parametrize(
    ("growth", "damping", "words"),
    [
        (0.97, 0.9, "fades out. Until 2001-04-16 it lowers totals by "),
        (1.2, 1.0, "lasts. Until 2001-04-16 it raises totals by "),
        (1.3, 0.95, "fades out. Until 2001-04-16 it multiplies totals by "),
        (1.0, Trend(0.8, 1e-6), "it leaves totals as they are"),
    ],
)
def test_falling_lasting_and_absent_growth_have_words(growth, damping, words):
    trend = damping if isinstance(damping, Trend) else Trend(damping, 1.0)
    ahead = fitted(growth, covariates=False, trend=trend).forecast(AHEAD)
    (note,) = notes_on_trend(ahead)
    assert words in note


def test_other_effects_are_not_noted_as_trends(plain):
    model = fitted(holidays=STRIKE)
    assert notes_on_trend(model.forecast(AHEAD, covariates=known()[N:])) == []
    assert notes_on_trend(plain.forecast(AHEAD)) == []


# Plots


def test_effects_are_drawn_as_dots_and_intervals(model):
    axes = plotting.plot_effects(model, ax=Figure().subplots(1, FEW))
    for k, ax in enumerate(axes):
        line, dots = ax.lines
        assert list(line.get_xdata()) == [1.0, 1.0]
        rows = np.array([*(f[k] for f in model.effects_.values()), model.trend_[k]])
        np.testing.assert_array_equal(dots.get_xdata(), rows[:, 0])
        (bars,) = ax.collections
        drawn = np.array([path.vertices[:, 0] for path in bars.get_paths()])
        np.testing.assert_array_equal(drawn, rows[:, 1:])
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels == ["strike", "sale, per unit", "rain, per unit", "trend, per step"]
        assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first is on top
        assert ax.get_xscale() == "log"


def test_one_panel_is_one_axes_and_nothing_to_draw_is_refused(model, plain, ax):
    assert plotting.plot_effects(model, 1, ax=ax) is ax
    with pytest.raises(ValueError, match=r"no covariates, holidays, events or trend\. Fit with ho"):
        plotting.plot_effects(plain, 0, ax=ax)


# The report


def test_the_report_has_a_table_of_influences_and_one_of_the_trend(model):
    told = report_content(model, forecast=model.forecast(AHEAD, covariates=known()[N:]))["effects"]
    assert told["title"] == "Known influences and trend"
    assert [row["name"] for row in told["rows"]] == ["strike", "sale, per unit", "rain, per unit"]
    sale = effect_summary(model)[1]
    words = [sale.words(k).replace(" %", "\N{NO-BREAK SPACE}%") for k in range(FEW)]
    assert told["rows"][1]["changes"] == words
    trend = told["trend"]
    assert trend["course"] == "continues and fades out with damping 0.9"
    assert (trend["every"], trend["ahead"]) == ("Growth per day", f"{AHEAD} days")
    later = [row["later"].replace("\N{NO-BREAK SPACE}", " ") for row in trend["rows"]]
    assert later == trend_summary(model).after(AHEAD)
    assert told["reason"] == ""


def test_a_report_says_why_there_is_a_trend_or_none():
    told = report_content(fitted(covariates=False, trend="auto"), steps=3)["effects"]
    assert told["title"] == "Trend"
    assert told["trend"] is None
    assert told["reason"].startswith("A trend was tried and left out")
    growing = TemporalNMF(1, likelihood="poisson", season=None, trend="auto", intervals="model")
    X = np.outer(50.0 * 1.05 ** np.arange(60), [0.5, 0.3, 0.2]).round()
    told = report_content(growing.fit(X), steps=3)["effects"]
    lower = growing.trend_reason_.removeprefix("trend: errors of held-out steps are ")
    assert told["reason"].endswith(f"have {lower} errors.".replace(" %", "\N{NO-BREAK SPACE}%"))
    short = growing.fit(X[:8])
    told = report_content(short, steps=0)["effects"]
    assert told["reason"] == f"A trend was sought, but not tried: {short.trend_reason_}."


def test_the_report_shows_the_tables_in_a_browser(model, tmp_path):
    ahead = model.forecast(AHEAD, covariates=known()[N:])
    path = write_report(model, tmp_path / "r.html", forecast=ahead)
    with launched() as browser, visited(browser, path) as page:
        section = page.locator('section[aria-labelledby="h-effects"]')
        assert section.locator("tbody tr").count() == 3 + FEW
        assert "sale, per unit" in section.inner_text()
    text = write_report(fitted(covariates=False), tmp_path / "s.html", steps=0).read_text()
    assert 'id="h-effects"' not in text


# The command line


def said_by(result):
    return " ".join(result.split())


def test_fit_and_info_show_influences_and_the_trend(files, tmp_path):
    words = ("fit", files / "x.csv", "--covariates", files / "known.csv", "--trend", 0.9)
    words = (*words, "--components", FEW, "--likelihood", "poisson", "--season", "none")
    words = (*words, "--starts", 1, "--intervals", "model", "--out", tmp_path / "m.npz")
    result = done(*words, "--json", "--force")
    told = json.loads(result.stdout)
    assert [one["effect"] for one in told["effects"]] == ["sale", "rain"]
    assert told["effects"][0]["per"] == "unit"
    sale = told["effects"][0]["components"]
    assert [one["component"] for one in sale] == list(range(1, FEW + 1))
    assert all(one["lower"] < one["factor"] < one["upper"] for one in sale)
    assert told["trend"]["damping"] == 0.9
    assert told["trend_reason"] == "as given"
    for said in (said_by(result.stderr), said_by(done("info", tmp_path / "m.npz").stdout)):
        assert f"sale, per unit {sale[0]['words']} {sale[1]['words']}" in said
        assert f"trend, per step {told['trend']['components'][0]['words']}" in said
        assert "the growth per step at the end continues and fades out with damping 0.9" in said
    again = json.loads(done("info", tmp_path / "m.npz", "--json").stdout)
    assert (again["effects"], again["trend"]) == (told["effects"], told["trend"])
    forecast = ("forecast", tmp_path / "m.npz", "--covariates", files / "known.csv")
    assert "The forecast continues a trend" in said_by(done(*forecast).stdout)


def test_fit_says_that_a_trend_was_left_out(files, tmp_path):
    words = ("fit", files / "x.csv", "--components", 1, "--likelihood", "poisson", "--starts", 1)
    words = (*words, "--season", "none", "--intervals", "model", "--out", tmp_path / "m.npz")
    said = said_by(done(*words, "--trend", "auto").stdout)
    left_out = "one was tried, but forecasts from past steps are not better with it"
    assert f"No trend: {left_out}." in said
    assert f"trend none: {left_out}" in said_by(done("info", tmp_path / "m.npz").stdout)
    plain = done(*words, "--force")
    for word in ("Trend:", "No trend", "effect"):
        assert word not in plain.stdout
    assert "trend none: not wanted" in said_by(done("info", tmp_path / "m.npz").stdout)


def test_wide_tables_leave_out_intervals_then_components(model):
    shown = {width: Shown(width) for width in (200, 50, 25)}
    for voice in shown.values():
        show_effects(model, voice)
    names = [f"component {k + 1}" for k in range(FEW)]
    assert shown[200].headings == ["effect", *names]
    assert "(" in shown[200].rows[0][1]
    assert shown[50].headings == ["effect", *(str(k + 1) for k in range(FEW))]
    assert "(" not in shown[50].rows[0][1]
    assert shown[50].said == "By component; --json has 90 % intervals."
    assert shown[25].headings == ["effect", "1"]
    assert shown[25].said.endswith(f"The first 1 of {FEW} components.")


class Shown:
    """A voice that remembers."""

    def __init__(self, width):
        self.width = width

    def table(self, headings, rows, *, left):
        self.headings, self.rows = headings, rows

    def say(self, text):
        self.said = text
