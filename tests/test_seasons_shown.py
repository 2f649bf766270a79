"""Seasons in plots, reports, notes, explained forecasts and on the command line."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from browser import launched, visited
from cases import FEW
from commands import done, refused
from temporalnmf import TemporalNMF, plotting
from temporalnmf.cli.notes import worded
from temporalnmf.effects import Season
from temporalnmf.forecasting.forecast import Forecast
from temporalnmf.messages.formatting import csv_number, number_text, percent
from temporalnmf.plotting.movement import movements
from temporalnmf.report import notes as report_notes
from temporalnmf.report import report_content, write_report
from temporalnmf.solvers import Gibbs
from temporalnmf.summary import season_summary, seasons_left_out
from temporalnmf.timeline import time_texts
from temporalnmf.timeline.positions import positions_of

DAYS = pd.date_range("2001-01-03", periods=98)  # from a Wednesday
PARTS = np.array([[0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]])
NAMES = list("abcd")


def daily(seed=0):
    """One theme is low on Saturdays, the other is high on Sundays."""
    rng = np.random.default_rng(seed)
    day = DAYS.day_of_week.to_numpy()
    first = 400.0 * np.where(day == 5, 0.4, 1.0)
    second = 250.0 * np.where(day == 6, 1.8, 1.0)
    X = rng.poisson(np.column_stack([first, second]) @ PARTS)
    return pd.DataFrame(X.astype(float), index=DAYS, columns=NAMES)


def hourly():
    """High around three on Thursday afternoons, over four weeks."""
    hours = pd.date_range("2001-02-06 05:00", periods=24 * 28, freq="h")
    high = (hours.day_of_week == 3) & (hours.hour == 15)
    near = np.abs(np.subtract.outer(np.arange(len(hours)), np.flatnonzero(high))).min(axis=1)
    X = np.outer(60.0 * np.exp(np.clip(1.0 - near / 12.0, 0.0, 1.0)), [0.5, 0.5])
    return pd.DataFrame(X, index=hours)


def fitted(season="week", data=None, **given):
    params = {"likelihood": "poisson", "intervals": "model", "random_state": 0, **given}
    return TemporalNMF(FEW, season=season, **params).fit(daily() if data is None else data)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def model_file(model, tmp_path_factory):
    return model.save(tmp_path_factory.mktemp("seasons") / "model.npz")


# Positions


@pytest.mark.parametrize(
    ("cycle", "n", "position", "when", "label"),
    [
        ("week", 7, 5, "on Saturday", "Sat"), ("week", 168, 126, "on Saturday, 06:00", "Sat 06:00"),
        ("week", 4, 1, "on Tuesday, 18:00", "Tue 18:00"), ("day", 24, 6, "at 06:00", "06:00"),
        ("day", 96, 1, "at 00:15", "00:15"), ("year", 12, 7, "in August", "Aug"),
        ("year", 4, 3, "in Q4", "Q4"), ("year", 2, 1, "in July", "Jul"),
        ("year", 366, 365, "on 31 December", "31 Dec"), ("year", 366, 60, "on 1 March", "1 Mar"),
        ("year", 53, 0, "around 1 January", "1 Jan"), (None, 9, 8, "at position 9", "9"),
    ],
)  # fmt: skip
def test_positions_of_cycles_have_names(cycle, n, position, when, label):
    found = positions_of(cycle, n)
    assert len(found.names) == len(found.labels) == n
    assert found.when(position) == when
    assert found.labels[position] == label
    assert len(set(found.names)) == n


@pytest.mark.parametrize("n", [7, 12, 24, 53, 168, 366, 1440, 10_000])
@pytest.mark.parametrize("cycle", ["day", "week", "year", None])
def test_labels_of_axes_are_few_and_at_their_positions(cycle, n):
    found = positions_of(cycle, n)
    places = [at for at, _ in found.ticks]
    assert 1 <= len(places) <= 12
    assert all(0.0 <= at < n for at in places)
    assert sorted(set(places)) == places
    for at, text in found.ticks:  # a label at a whole position is part of that position's
        if at.is_integer():
            assert text in found.labels[int(at)]


def test_the_positions_are_those_of_the_fitted_factors():
    """A peak that is known by its date is where the labels say."""
    found = fitted(Season("week", strength=1.0), hourly())
    (season,) = season_summary(found)
    assert season.positions.names[int(season.total.argmax())] in {
        f"Thursday, {hour}:00" for hour in (14, 15, 16)
    }


# In words


def test_the_swing_of_a_season_is_told_in_words(model):
    (week,) = season_summary(model)
    np.testing.assert_array_equal(week.factors, model.season_["week"])
    low = int(np.argmin(week.factors[:, 5]))  # the theme that is low on Saturdays
    high = 1 - low
    assert week.words(low).startswith(f"{percent(1 - week.factors[low, 5])} below the level on Sat")
    assert week.words(high).endswith(f"{percent(week.factors[high, 6] - 1)} above on Sunday")
    assert week.largest == low
    # The factor of the total is that of the sum of activations at constant levels.
    level = model.levels_.mean(axis=0)
    total = (level[:, None] * model.season_["week"]).sum(axis=0) / level.sum()
    np.testing.assert_allclose(week.total, total)
    assert "on Saturday" in week.words()


def test_large_and_missing_swings_have_words_of_their_own(model):
    (week,) = season_summary(model)
    flat, high = np.ones(7), np.array([0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 3.14159])
    assert "nearly the same" in replace(week, total=flat).words()
    words = replace(week, factors=high[None]).words(0)
    assert words == "50 % below the level on Monday, 3.1 times the level on Sunday"


def test_a_season_that_was_tried_in_vain_is_known():
    flat = np.random.default_rng(0).poisson(50.0, size=(98, 4)).astype(float)
    plain = fitted("auto", pd.DataFrame(flat, index=DAYS, columns=NAMES))
    assert plain.season_ == {}
    assert seasons_left_out(plain) == ["week"]
    assert seasons_left_out(fitted("auto")) == []
    assert seasons_left_out(fitted(None)) == []
    (told,) = report_content(plain, steps=0)["seasons"]["reasons"]
    assert told.startswith("A season of the week was tried and left out")
    assert report_content(plain, steps=0)["seasons"]["found"] == []


# Plots


def test_a_season_is_drawn_by_its_positions_one_panel_per_component(model):
    axes = plotting.plot_season(model, ax=Figure().subplots(1, 2))
    for k, ax in enumerate(axes):
        line, curve = ax.lines
        assert set(line.get_ydata()) == {1.0}
        np.testing.assert_array_equal(curve.get_ydata(), model.season_["week"][k])
        labels = [label.get_text() for label in ax.get_xticklabels()]
        assert labels == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        assert ax.get_xticks().tolist() == list(range(7))
        low, high = ax.get_ylim()
        assert low < model.season_["week"].min() < model.season_["week"].max() < high
        assert (low, high) == axes[0].get_ylim()
    assert axes[0].get_ylabel() == "factor of the week"


def test_one_panel_of_one_season_is_drawn_on_one_axes(model, ax):
    assert plotting.plot_season(model, "week", 1, ax=ax) is ax
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), model.season_["week"][1])


def test_small_seasons_do_not_look_large(model, ax, monkeypatch):
    monkeypatch.setattr(model, "season_", {"week": np.full((2, 7), 1.001)})
    low, high = plotting.plot_season(model, components=0, ax=ax).get_ylim()
    assert low < 0.95
    assert high > 1.05


def test_a_season_that_is_not_there_is_refused(model, ax):
    with pytest.raises(
        ValueError, match=r"season='year' is not a season of the model\. Give 'week"
    ):
        plotting.plot_season(model, "year", 0, ax=ax)
    with pytest.raises(ValueError, match=r"no season: not wanted\. Fit with season='week'"):
        plotting.plot_season(fitted(None), components=0, ax=ax)
    several = fitted(["week", 9])
    with pytest.raises(ValueError, match=r"season=None: the model has several\. Give 'week' or '9"):
        plotting.plot_season(several, components=0, ax=ax)
    plotting.plot_season(several, "9 steps", components=0, ax=ax)
    assert [label.get_text() for label in ax.get_xticklabels()] == list("123456789")


def test_movement_is_that_of_levels():
    """Components of this series do not move; their activations do, every Saturday."""
    model = fitted(Season("week", strength=3.0))
    found, _ = movements(model, [0, 1], 0)
    factors = model.season_["week"]
    assert np.ptp(np.log(factors), axis=1).min() > 0.4
    assert np.quantile(np.abs(found), 0.99) < 0.3
    for row in report_content(model, steps=0)["movement"]:
        assert not row["lively"]


# Explained forecasts


def explained(ahead: Forecast) -> pd.DataFrame:
    """The parts of a forecast, after checking that they add up and multiply."""
    parts = ahead.explain()
    names = parts.columns[3:-1]
    np.testing.assert_allclose(parts[names].prod(axis=1), parts["expected"], rtol=1e-12)
    totals = parts["expected"].to_numpy().reshape(len(ahead.times), -1).sum(axis=1)
    np.testing.assert_allclose(totals, ahead.point_of("totals"), rtol=1e-12)
    assert len(parts) == ahead.activations.size
    return parts


def test_an_explained_forecast_adds_up_to_its_totals(model):
    ahead = model.forecast(9)
    parts = explained(ahead)
    assert parts.columns.tolist() == [
        "time", "component", "name", "level", "week", "exposure", "expected",
    ]  # fmt: skip
    of_first = parts[parts["component"] == 1]
    # The factor of a date is that of its day of the week.
    days = pd.DatetimeIndex(of_first["time"]).day_of_week
    np.testing.assert_allclose(of_first["week"], model.season_["week"][0][days], rtol=1e-9)
    np.testing.assert_allclose(of_first["level"], model.levels_[-1, 0], rtol=1e-6)
    assert parts["name"].tolist()[:2] == ahead.component_names.tolist()
    explained(ahead.at([3, 5]))
    assert ahead.at([3, 5]).explain()["week"].tolist() == parts["week"][[6, 7, 10, 11]].tolist()


def test_smoothed_steps_are_explained_by_the_levels_of_the_fit():
    X = daily()
    X.iloc[[20, 21]] = np.nan
    size = np.linspace(1.0, 3.0, len(X))
    model = fitted(["week", 9], X.mul(size, axis=0).round(), n_init=1)
    assert explained(model.smooth()).columns.tolist()[4:6] == ["week", "9 steps"]
    exposed = TemporalNMF(FEW, likelihood="poisson", season="week", random_state=0)
    exposed.fit(X.mul(size, axis=0).round(), exposure=size)
    smooth = exposed.smooth()
    parts = explained(smooth)
    np.testing.assert_allclose(parts["level"], exposed.levels_.ravel(), rtol=1e-9)
    np.testing.assert_allclose(parts["exposure"], np.repeat(size, FEW))
    again = explained(exposed.smooth(X.iloc[10:40], exposure=size[10:40]))
    assert again["week"].tolist() == parts["week"][10 * FEW : 40 * FEW].tolist()
    explained(exposed.forecast(5, exposure=[1.0, 2.0, 3.0, 4.0, 5.0]))


def test_forecasts_without_seasons_are_explained_by_levels_alone():
    ahead = fitted(None).forecast(4)
    parts = explained(ahead)
    assert parts.columns.tolist()[3:] == ["level", "exposure", "expected"]
    np.testing.assert_array_equal(ahead.levels, ahead.activations)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_forecasts_from_draws_are_explained():
    """Drawn components are kept with few digits, and their sums are not exactly one."""
    model = fitted(None, solver=Gibbs(20, 20, 2))
    for ahead in (model.forecast(3), model.smooth()):
        parts = explained(ahead)
        np.testing.assert_allclose(parts["level"], ahead.activations.ravel(), rtol=1e-6)


def test_other_effects_are_explained_in_the_same_way():
    """A covariate, events and a trend; a covariate with the name of a season keeps both."""
    rng = np.random.default_rng(1)
    known = pd.DataFrame({"rain": rng.normal(size=98), "week": rng.normal(size=98)}, index=DAYS)
    strike = {"strike": ["2001-02-06", "2001-03-07", "2001-04-12"]}
    model = TemporalNMF(
        FEW, likelihood="poisson", season="week", trend=0.9, holidays=strike, intervals="model"
    ).fit(daily(), covariates=known)
    ahead = pd.DataFrame({"rain": [1.0, -1.0, 0.0, 2.0], "week": [0.0] * 4})
    forecast = model.forecast(4, covariates=ahead)
    parts = explained(forecast)
    assert set(parts.columns[4:-2]) == {"rain", "week (effect)", "strike", "week", "trend"}
    np.testing.assert_array_equal(parts["strike"][2 * FEW :], 1.0)
    days = pd.DatetimeIndex(forecast.times).day_of_week
    np.testing.assert_allclose(forecast.factors["week"], model.season_["week"].T[days], rtol=1e-9)
    smooth = model.smooth()
    explained(smooth)
    np.testing.assert_allclose(smooth.levels, model.levels_, rtol=1e-9)
    # Adjusted for the season only: what is left has the other effects.
    charts = report_content(model, forecast=forecast)["charts"]
    found = np.array(charts["adjusted"])[:, : charts["past"]]
    np.testing.assert_allclose(found, (model.activations_ / smooth.factors["week"]).T, rtol=1e-6)


def test_sums_over_steps_are_not_explained_but_groups_are(model):
    ahead = model.forecast(7)
    with pytest.raises(ValueError, match="Explain the forecast before sum"):
        ahead.sum("steps").explain()
    assert ahead.sum("steps").factors == {}
    grouped = ahead.sum(groups={"ab": ["a", "b"]})
    pd.testing.assert_frame_equal(grouped.explain(), ahead.explain())


def test_a_factor_with_the_name_of_a_column_keeps_both(model):
    """Effects may have any name."""
    ahead = model.forecast(3)
    named = replace(ahead, factors={"level": ahead.factors["week"]})
    assert named.explain().columns.tolist()[3:5] == ["level", "factor of level"]
    explained(named)


# Notes


def seasonal_note(model):
    return [note for note in model.forecast(3).notes if note.code == "seasons"]


def test_a_season_that_the_model_has_is_not_noted(model):
    assert seasonal_note(model) == []
    (note,) = seasonal_note(fitted(None))
    assert note.endswith("To avoid this error, fit with season='week'.")
    assert "whatever its season" in note
    assert worded([note])[0].endswith("fit with --season week.")
    assert note.render(report_notes.WORDS).endswith("A fit with season='week' has it.")


def test_a_season_beside_another_is_noted_with_both():
    (note,) = seasonal_note(fitted(9))
    assert "fit with season=['week', 9]." in note
    assert worded([note])[0].endswith("fit with --season week,9.")


@pytest.mark.parametrize(("season", "known"), [(7, True), (14, True), (9, False)])
def test_seasons_of_the_same_steps_or_with_such_a_harmonic_count(season, known):
    assert (seasonal_note(fitted(season)) == []) == known


def test_a_season_that_is_held_near_none_is_a_season_of_the_model():
    assert seasonal_note(fitted(Season("week", strength=1e-4))) == []


def test_a_harmonic_that_a_season_leaves_out_does_not_count():
    assert seasonal_note(fitted(Season(14, terms=1)))


# The report


def test_the_report_shows_factors_and_levels(model):
    content = report_content(model, steps=9)
    told = content["seasons"]
    assert told["reasons"] == ["The seasons of the model were given, not chosen by held-out steps."]
    (week,) = told["found"]
    (summary,) = season_summary(model)
    assert summary.words().replace(" %", "\N{NO-BREAK SPACE}%") in week["words"]
    assert [row["when"] for row in week["rows"]] == list(summary.positions.names)
    charts = content["charts"]
    np.testing.assert_allclose(charts["seasons"][0]["lines"], model.season_["week"], rtol=1e-3)
    levels = np.array(charts["adjusted"])
    np.testing.assert_allclose(levels[:, : charts["past"]], model.levels_.T, rtol=1e-6)
    np.testing.assert_allclose(levels[:, charts["past"] :], model.forecast(9).levels.T, rtol=1e-6)


def test_a_report_on_a_chosen_season_says_why():
    model = fitted("auto")
    (told,) = report_content(model, steps=0)["seasons"]["reasons"]
    lower = model.season_reason_.removeprefix("week: errors of held-out steps are ")
    assert told.endswith(f"with {lower} errors.".replace(" %", "\N{NO-BREAK SPACE}%"))
    assert "tried and left out" not in told


def test_a_report_without_seasons_does_not_speak_of_them(tmp_path):
    plain = fitted(None)
    assert report_content(plain, steps=3)["seasons"] is None
    assert report_content(plain, steps=3)["charts"]["adjusted"] is None
    text = write_report(plain, tmp_path / "r.html", steps=3).read_text()
    assert 'id="h-seasons"' not in text


def test_recent_changes_are_those_of_levels(model):
    (said,) = [text for text in report_content(model)["answer"] if "compared with" in text]
    assert "seasonally adjusted" in said
    after, before = model.levels_[-4:].mean(axis=0), model.levels_[-8:-4].mean(axis=0)
    most = int(np.argmax(np.abs(after - before)))
    assert f"from {number_text(before[most])} to {number_text(after[most])}" in said


def test_the_report_draws_seasons_in_a_browser(model, tmp_path):
    path = write_report(fitted(["day", "week"], hourly()), tmp_path / "r.html", steps=7)
    with launched() as browser, visited(browser, path) as page:
        assert page.locator(".minis.season").count() == 2
        assert page.locator(".minis.season .mini svg .line").count() == 2 * FEW
        assert page.locator("#adjusted .line.pale").count() == FEW
        assert page.locator("#adjusted .line").count() == 2 * FEW
        day, week = (page.locator(".minis.season").nth(i).locator("text") for i in (0, 1))
        assert {"06:00", "1"} <= set(day.all_text_contents())
        assert {"Mon", "Sun", "1"} <= set(week.all_text_contents())


# The command line


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "daily.csv"
    daily().to_csv(path, index_label="date")
    return path


def test_fit_and_info_tell_the_seasons(table, tmp_path):
    words = ("fit", table, "--components", FEW, "--likelihood", "poisson", "--starts", 1)
    words = (*words, "--intervals", "model", "--out", tmp_path / "m.npz")
    result = done(*words, "--json")
    told = json.loads(result.stdout)
    (week,) = told["seasons"]
    assert week["season"] == "week"
    assert week["positions"][5] == "Saturday"
    assert len(week["components"]) == FEW
    said = " ".join(result.stderr.split())
    total, k = week["total"]["words"], int(np.argmin([c["factors"][5] for c in week["components"]]))
    most = week["components"][k]["words"]
    assert f"Season week: {total}; most in component {k + 1}: {most}." in said
    assert f"Reason: {told['season_reason']}." in said
    shown = " ".join(done("info", tmp_path / "m.npz").stdout.split())
    assert f"season week: {total}; most in component {k + 1}: {most} reason: week: errors" in shown
    assert json.loads(done("info", tmp_path / "m.npz", "--json").stdout)["seasons"] == [week]
    without = done(*words, "--season", "none", "--force")
    assert "eason" not in without.stdout
    assert "season none: not wanted" in " ".join(done("info", tmp_path / "m.npz").stdout.split())


def test_fit_names_a_season_that_was_left_out(tmp_path):
    flat = np.random.default_rng(0).poisson(50.0, size=(98, 4))
    frame = pd.DataFrame(flat, index=DAYS, columns=NAMES)
    frame.to_csv(tmp_path / "flat.csv", index_label="date")
    words = ("fit", tmp_path / "flat.csv", "--components", 1, "--likelihood", "poisson")
    said = done(*words, "--intervals", "model", "--out", tmp_path / "m.npz").stdout
    assert "No season: week was tried, but held-out steps are not predicted better." in said


def test_the_parts_of_a_forecast_are_written(model, model_file, tmp_path):
    out = tmp_path / "parts.csv"
    said = done("forecast", model_file, "--of", "parts", "--steps", 9, "--out", out).stdout
    assert f"The first of 9 steps. All are in {out}." in " ".join(said.split())
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    parts = model.forecast(9).explain()
    assert list(rows[0]) == parts.columns.tolist()
    assert [row["expected"] for row in rows] == list(map(csv_number, parts["expected"]))
    assert [row["time"] for row in rows[::FEW]] == time_texts(model.forecast(9).times)
    told = json.loads(done("forecast", model_file, "--of", "parts", "--json").stdout)
    assert [row["week"] for row in told["rows"]] == parts["week"][:10].tolist()


def test_parts_of_sums_are_refused(model_file, tmp_path):
    told = refused("forecast", model_file, "--of", "parts", "--sum", "steps")
    assert "--of parts is for single steps and all features. Leave out --sum steps." in told
    told = refused("forecast", model_file, "--of", "parts", "--groups", tmp_path / "g.csv")
    assert "Leave out --groups" in told
