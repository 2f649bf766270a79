"""The report: what it says, that it needs nothing else, and that it works in a browser."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import polygamma

from browser import launched, screenshot, visited
from temporalnmf import TemporalNMF, load
from temporalnmf.chains import Rate
from temporalnmf.datasets import load_sotu
from temporalnmf.report import report_content, write_report
from temporalnmf.report.texts import NO_BREAK, change, percent, percents, unit_of
from temporalnmf.summary import step_errors
from temporalnmf.timeline import time_texts, timeline_of

LIMIT = 1_500_000
HOSTILE = [
    "</script><script>window.hit = 1</script>",
    '"><img src=x onerror="window.hit = 1">',
    "<!-- <script>",
    "{{ 7919 * 104729 }}",
    "a\u2028b\x00c\ud800d & e",
    "']]>&lt;svg onload=window.hit=1&gt;",
]
HOLD_OUT = {
    "coverage": 0.9, "inside": 170, "total": 200, "low": 0.79, "high": 0.89,
    "words": "Twenty origins.",
}  # fmt: skip


def counts(n_steps: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Two themes, one that rises and one that falls."""
    rng = np.random.default_rng(seed)
    up = np.linspace(1, 9, n_steps)
    first, second = rng.dirichlet(np.full(n_features, 0.5), 2)
    rates = np.outer(up, 40 * first) + np.outer(10 - up, 40 * second)
    return rng.poisson(rates).astype(float)


def months(n_steps: int = 40, names: list[str] | None = None) -> pd.DataFrame:
    """Counts by month, with a gap of one month and one of two."""
    X = counts(n_steps, len(names) if names else 6)
    X[[7, 20, 21]] = np.nan
    index = pd.period_range("2001-03", periods=n_steps, freq="M").to_timestamp()
    columns = pd.Index(names or list("abcdef"), dtype=object)
    return pd.DataFrame(X, index=index, columns=columns)


@pytest.fixture(scope="module")
def sotu() -> TemporalNMF:
    return TemporalNMF(3, n_init=2, random_state=0).fit(load_sotu(as_frame=True).data)


@pytest.fixture(scope="module")
def small() -> TemporalNMF:
    return TemporalNMF(2, intervals="model", random_state=0).fit(months())


@pytest.fixture(scope="module")
def sotu_report(sotu: TemporalNMF, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "sotu.html"
    return write_report(sotu, path, steps=5, hold_out=HOLD_OUT, source="sotu.csv")


@pytest.fixture(scope="module")
def told(sotu: TemporalNMF) -> dict:
    return report_content(sotu, steps=5)


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


def charts_of(text: str) -> dict:
    """The numbers inside a report; no sign of a tag is among them."""
    data = re.search(r'id="data">(.*?)</script>', text, re.S).group(1)
    assert not set("<>&") & set(data)
    return json.loads(data)


# What it says


@pytest.mark.long
def test_the_question_is_made_from_the_data(told, small):
    assert told["question"] == (
        "Which of the 1,609 features move together over 232 years (1790 to 2021), when did each "
        "group rise and fall, and what comes next?"
    )
    assert report_content(small, steps=0)["question"] == (
        "Which of the 6 features move together over 40 months (2001-03 to 2004-06), and when did "
        "each group rise and fall?"
    )
    assert report_content(small, question="Who spoke?")["question"] == "Who spoke?"


def test_the_answer_names_the_largest_component_and_the_gap(told, sotu):
    answer = " ".join(told["answer"])
    assert told["components"][0]["name"] in told["answer"][0]
    share = sotu.activations_[:, 0].sum() / sotu.activations_.sum()
    assert f"{100 * share:.0f}{NO_BREAK}%" in told["answer"][0]
    assert "One year of 232 was missing and is filled in: 1933." in answer
    assert "For 2026 the model expects a total of" in answer


def test_the_answer_names_what_rose_and_what_fell(small):
    (said,) = [text for text in report_content(small)["answer"] if "rose most" in text]
    names = [card["name"] for card in report_content(small)["components"]]
    change = small.activations_[-3:].mean(axis=0) - small.activations_[-6:-3].mean(axis=0)
    assert f"“{names[np.argmax(change)]}” rose most" in said
    assert ("fell most" in said) == bool(change.min() < 0)


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0 %"), (1e-5, "<0.1 %"), (0.0006, "0.1 %"), (0.0974, "9.7 %"), (0.831, "83 %"),
     (0.9962, "99.6 %"), (1.0, "100 %")],
)  # fmt: skip
def test_percentages_have_one_decimal_at_the_most_and_no_break(share, words):
    assert percent(share) == words.replace(" ", NO_BREAK)


def test_percentages_of_a_column_have_one_decimal():
    column = ["83.1 %", "1.0 %", "<0.1 %", "0.0 %"]
    assert percents([0.83126, 0.01, 3e-4, 0.0]) == [one.replace(" ", NO_BREAK) for one in column]


def test_changes_are_in_per_cent_or_factors():
    assert change(0.00065, 0.00082) == f"+26{NO_BREAK}%"
    assert change(1.0, 0.95) == f"−5.0{NO_BREAK}%"
    assert (change(1.0, 25.0), change(0.0, 1.0)) == ("25 times as much", "")


@pytest.mark.parametrize(
    ("every", "times", "words"),
    [
        ("month", [], "24 months"), ("week", [], "24 weeks"), ("year", [], "24 years"),
        ("3 days", [], "24 steps of 3 days"), ("step of 1", [1790, 2021], "24 years"),
        ("step of 1", [999, 2021], "24 steps"), ("step of 1", [1790, 2201], "24 steps"),
        ("step of 1", [1790.0, 1791.0], "24 steps"), ("step of 10", [1790, 1800], "24 steps"),
        ("as given", ["a", "b"], "24 steps"),
    ],
)  # fmt: skip
def test_steps_have_the_name_of_their_spacing(every, times, words):
    assert unit_of(every, times).spanning(24) == words


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([1790, 1791, 1792], "in 1790"), ([1790, 1800, 1810], "in 1790"), ([5, 6, 7], "at step 5"),
        ([1790, 1793, 1799, 1812], "in 1790"), ([0.5, 1.0, 1.5], "at time 0.5"),
        (["2001", "2002"], "in 2001"), (["2001-03", "2001-04"], "in 2001-03"),
        (["2001-03", "2001-06", "2001-09"], "in 2001-03"), (["2001Q3", "2001Q4"], "in 2001Q3"),
        (["2001-W07", "2001-W08"], "in 2001-W07"),
        (["1999/00", "2000/01", "2001/02"], "in 1999/00"),
        (["2001-03-04", "2001-03-05"], "on 2001-03-04"),
        (["2001-03-31", "2001-04-30"], "on 2001-03-31"),
        (["2001-03-04", "2001-03-07"], "on 2001-03-04"),
        (["2001-03-04", "2001-03-11"], "in the week of 2001-03-04"),
        (["2001-03-04", "2001-03-05", "2001-03-09", "2001-04-01"], "on 2001-03-04"),
        (["2001-03-04 00:00", "2001-03-04 06:00"], "at 2001-03-04 00:00"),
        (["winter", "spring"], "at “winter”"), (["{0}", "b"], "at “{0}”"),
    ],
)  # fmt: skip
def test_a_peak_is_in_a_year_on_a_day_or_at_a_step(labels, words):
    line = timeline_of(labels)
    unit = unit_of(line.every, line.times)
    assert unit.at(time_texts(line.times)[0]) == words


def test_the_peak_is_a_sentence(sotu, tmp_path):
    content = report_content(sotu, steps=0)
    card = content["components"][0]
    assert card["when"] == f"in {card['peak']}"
    assert any(f"; it peaks in {card['peak']}." in words for words in content["answer"])
    page = write_report(sotu, tmp_path / "report.html", steps=0).read_text()
    assert f"highest in {card['peak']}" in page


def weeks(last: float = 1.0, size: np.ndarray | None = None, n_steps: int = 60) -> TemporalNMF:
    """Counts by week, all alike but for the last one."""
    X = np.random.default_rng(0).poisson(100.0, size=(n_steps, 5)).astype(float)
    X[-1] = np.round(last * X[-1])
    index = pd.date_range("2018-01-01", periods=n_steps, freq="W-MON")
    return TemporalNMF(1, random_state=0).fit(pd.DataFrame(X, index=index), exposure=size)


def test_a_last_step_that_looks_incomplete_is_asked_about():
    model = weeks(0.25)
    total = int(step_errors(model).observed[-1])
    usual = np.median(step_errors(model).observed[-11:-1])
    content = report_content(model, steps=3)
    assert content["answer"][0] == (
        f"The last week (2019-02-18) has a total of {total}, far below the weeks before (about "
        f"{usual:.0f}): is it complete? The forecast starts from it."
    )
    assert content["forecast"]["ahead"] == "3 weeks"
    assert report_content(model, steps=0)["answer"][0].endswith("is it complete?")
    for fine in (weeks(), weeks(0.25, np.where(np.arange(60) == 59, 0.25, 1.0))):
        assert "complete" not in " ".join(report_content(fine)["answer"])


def test_a_last_step_that_is_by_far_the_worst_is_asked_about():
    X = np.random.default_rng(0).poisson(100.0, size=(40, 5)).astype(float)
    X[-1] = [500, 0, 0, 0, 0]  # the usual total
    model = TemporalNMF(1, random_state=0).fit(X)
    assert report_content(model)["answer"][0].startswith(
        "The last step (39) fits the model by far the worst: is it complete?"
    )


def test_small_activations_are_compared_in_per_cent():
    X = np.random.default_rng(0).poisson(np.repeat([650.0, 820.0], [27, 3])[:, None], (30, 4))
    model = TemporalNMF(1, chain=Rate(20.0), random_state=0).fit(X, exposure=np.full(30, 4e6))
    (said,) = [text for text in report_content(model)["answer"] if "rose most" in text]
    before, after = model.activations_[-6:-3].mean(), model.activations_[-3:].mean()
    old, new = map(float, re.search(r"from (0\.\d+) to (0\.\d+) \(", said).groups())
    assert [old, new] == pytest.approx([before, after], rel=0.01)
    assert f"(+{100 * (after / before - 1):.0f}{NO_BREAK}%)" in said


def test_readers_get_no_advice_for_authors(small, tmp_path):
    model = copy.copy(small).calibrate(10)
    for one, note in (
        (small, "These intervals assume the model is correct; they were not compared with past "
                "forecasts."),
        (model, "Intervals were checked 1 step ahead, and this forecast has 5: later ones may be "
                "too narrow."),
    ):  # fmt: skip
        assert note in report_content(one, steps=5)["forecast"]["notes"]
        text = write_report(one, tmp_path / "r.html", steps=5, overwrite=True).read_text()
        assert f'<p class="note">{note}</p>' in text
        # But for the headline, which says how to check what was not.
        assert text.count("calibrate(") == text.count("model.calibrate(steps=5) checks") == 1
    none = TemporalNMF(2, chain="none", random_state=0).fit(months())
    assert "choose a chain" not in " ".join(report_content(none)["forecast"]["notes"])


def test_the_headline_states_no_unchecked_interval_as_a_fact(small):
    """Until forecasts of the past were compared with it, and as far ahead, it is a claim."""

    def outlook(model, steps):
        content = report_content(model, steps=steps)
        (said,) = [text for text in content["answer"] if "expects a total of" in text]
        return said, content["forecast"]["checked"]

    checked = copy.copy(small).calibrate(6, steps=2)
    for model, steps, told in (
        (
            small,
            2,
            "reliable has not been checked; model.calibrate(steps=2) checks it on past data.",
        ),
        (checked, 3, "so far ahead has not been checked; model.calibrate(steps=3) checks it"),
        (checked, 2, f" (90{NO_BREAK}% interval: "),
    ):
        said, known = outlook(model, steps)
        assert told in said
        assert ("not been checked" in said) == (not known) == (model is small or steps == 3)
        assert "probability" not in said


def test_seasons_are_noted_beside_the_forecast(tmp_path):
    season = 1.0 + 0.5 * np.sin(2 * np.pi * np.arange(72) / 12)
    X = np.random.default_rng(0).poisson(np.outer(500 * season, [0.5, 0.3, 0.2]))
    frame = pd.DataFrame(X, index=pd.date_range("2001-01-01", periods=72, freq="MS"))
    model = TemporalNMF(1, chain=Rate(20.0), season=None, random_state=0).fit(frame)
    text = write_report(model, tmp_path / "r.html", steps=3).read_text()
    section = text.split('id="h-forecast"')[1].split('id="totals"')[0]
    assert '<p class="note">The series has seasons' in section


def test_what_explodes_is_named_and_the_long_run_is_for_specialists(tmp_path):
    model = TemporalNMF(2, chain=Rate(4.0, 2.0), random_state=0).fit(months())
    content = report_content(model, steps=12)
    notes = " ".join(content["forecast"]["notes"])
    assert f"“{content['components'][0]['name']}” explodes: by 2005-06" in notes
    assert "long run" not in notes
    assert "almost every path" in content["specialists"]["long_run"]
    text = write_report(model, tmp_path / "r.html", steps=12).read_text()
    visible = re.sub(r"<details.*?</details>", "", text.split("<script")[0], flags=re.S)
    for words in ("almost every path", "conditional", "Objective", "Kullback"):
        assert words in text
        assert words not in visible
    assert "Converged." in visible
    assert "agreement is no proof" in visible


def test_the_content_of_a_report_is_json(told, small):
    for content in (told, report_content(small, hold_out=HOLD_OUT)):
        assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_curves_are_the_models_to_four_digits(small):
    charts = report_content(small, steps=4)["charts"]
    ahead = small.forecast(4)
    low, high = ahead.interval(0.9, of="components")
    for k, curve in enumerate(charts["components"]):
        expected = np.concatenate([small.activations_[:, k], ahead.activations[:, k]])
        np.testing.assert_allclose(curve["y"], expected, rtol=6e-4)
        wide, narrow = curve["bands"]
        assert (wide["from"], narrow["from"]) == (0, 40)
        np.testing.assert_allclose(wide["low"][40:], low[:, k], rtol=6e-4)
        np.testing.assert_allclose(wide["high"][40:], high[:, k], rtol=6e-4)
        assert np.all(np.less_equal(wide["low"][40:], narrow["low"]))
        assert np.all(np.greater_equal(wide["high"][40:], narrow["high"]))


def test_dates_stand_on_a_true_axis_and_gaps_on_their_dates(small):
    charts = report_content(small, steps=3)["charts"]
    assert charts["kind"] == "date"
    dates = pd.to_datetime(charts["x"], unit="ms")
    assert list(dates[:3]) == list(pd.to_datetime(["2001-03-01", "2001-04-01", "2001-05-01"]))
    assert charts["text"][0] == "2001-03"
    assert charts["text"][-1] == "2004-09"
    gap = pd.to_datetime(charts["gaps"][1], unit="ms")
    assert gap[0] < pd.Timestamp("2002-11-01") < pd.Timestamp("2002-12-01") < gap[1]
    assert gap[0] > pd.Timestamp("2002-10-01")
    assert gap[1] < pd.Timestamp("2003-01-01")


def test_text_labels_are_evenly_spaced():
    X = counts(12, 5)
    frame = pd.DataFrame(X, index=[f"round {chr(97 + n)}" for n in range(12)])
    frame.columns = list("abcde")
    charts = report_content(TemporalNMF(2, random_state=0).fit(frame), steps=2)["charts"]
    assert charts["kind"] == "text"
    assert charts["x"] == list(range(14))
    assert charts["text"][3] == "round d"


def test_gaps_are_listed_with_what_was_put_there(small):
    rows = report_content(small)["gaps"]["rows"]
    assert [row["when"] for row in rows] == ["2001-10", "2002-11 to 2002-12"]
    assert [row["steps"] for row in rows] == [1, 2]
    assert float(rows[0]["total"].replace(",", "")) == pytest.approx(
        small.activations_[7].sum(), abs=0.5
    )
    assert float(rows[1]["total"].replace(",", "")) == pytest.approx(
        small.activations_[20:22].sum(axis=1).mean(), abs=0.5
    )
    low, high = (float(end.replace(",", "")) for end in rows[0]["band"].split(" to "))
    assert low < small.activations_[7].sum() < high


def test_the_worst_steps_are_named(told, sotu):
    error = step_errors(sotu).error
    years = np.asarray(sotu.times_)[np.argsort(-np.nan_to_num(error))[:5]]
    assert [row["when"] for row in told["errors"]["rows"]] == list(map(str, years))
    drawn = np.array(told["charts"]["text"])[told["charts"]["worst"]]
    assert sorted(drawn) == sorted(map(str, years))
    assert told["charts"]["errors"][143] is None  # 1933


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (0.9, "found again (0.90)"),
        (0.89, "varies between starts (0.89)"),
        (0.7, "varies between starts (0.70)"),
        (0.69, "not found again (0.69)"),
    ],
)
def test_stability_is_shown_in_words(small, score, words):
    model = copy.copy(small)
    model.stability_ = np.array([score, 1.0])
    content = report_content(model, steps=0)
    assert content["components"][0]["stability_words"] == words
    told = any("came out differently" in text for text in content["answer"])
    assert told == (score < 0.9)


def test_stability_of_one_start_is_not_assessed(small):
    words = report_content(small, steps=0)["components"][0]["stability_words"]
    assert words == "not assessed: the fit was started once"


def test_a_forecast_made_before_is_used(small):
    forecast = small.forecast(2, coverage=(0.8,))
    content = report_content(small, forecast=forecast)
    assert content["forecast"]["steps"] == 2
    assert content["forecast"]["bands"] == [f"80{NO_BREAK}%"]
    low, high = forecast.interval(0.8, of="totals")
    assert content["forecast"]["rows"][1]["bands"] == [[f"{low[1]:.0f}", f"{high[1]:.0f}"]]


def test_a_chain_without_law_says_why_there_are_no_bands(tmp_path):
    model = TemporalNMF(2, chain="none", random_state=0).fit(months())
    content = report_content(model, steps=3)
    assert content["bands"] is False
    assert content["forecast"]["bands"] == []
    assert content["forecast"]["notes"]
    assert all(curve["bands"] == [] for curve in content["charts"]["components"])
    assert content["movement"] is None
    text = write_report(model, tmp_path / "none.html", steps=3).read_text()
    assert "A band holds" not in text


def test_exposure_is_noted_and_kept_for_the_forecast():
    X = counts(30, 5)
    exposure = np.full(30, 4.0)
    model = TemporalNMF(2, random_state=0).fit(X, exposure=exposure)
    content = report_content(model, steps=2)
    assert content["exposed"] is True
    total = float(content["forecast"]["rows"][0]["point"].replace(",", ""))
    assert total == pytest.approx(4.0 * model.forecast(2).activations[0].sum(), abs=0.5)
    assert any("of the last step, 4, is assumed" in note for note in content["forecast"]["notes"])


@pytest.mark.parametrize(("alpha", "lively"), [(20_000.0, True), (30.0, False)])
def test_movement_says_whether_the_chain_is_too_stiff(alpha, lively):
    chain = Rate(alpha=alpha)
    X = chain.sample(3, 60, 0, np.ones(3)).T  # calm, and then a jump at every tenth step
    if lively:
        X *= np.where(np.arange(60) // 10 % 2, 4.0, 1.0)[:, None]
    counts = np.random.default_rng(0).poisson(2000 * X).astype(float)
    model = TemporalNMF(1, chain=chain, likelihood="poisson", random_state=0).fit(counts)
    rows = report_content(model)["movement"]
    assert [row["lively"] for row in rows] == [lively]
    # Of log h_{n+1} - log h_n, which is minus that of a Gamma(alpha) variable.
    expected = float(rows[0]["expected"].removesuffix(f"{NO_BREAK}%"))
    assert expected == pytest.approx(100 * np.expm1(np.sqrt(polygamma(1, alpha))), rel=0.06)


def test_a_fit_that_was_cut_short_says_so():
    with pytest.warns(UserWarning, match="did not converge"):
        model = TemporalNMF(2, max_iter=2, tol=1e-12, random_state=0).fit(months())
    content = report_content(model, steps=0)
    assert content["convergence"]["verdict"] == "Not converged."
    assert "stopped after 2 iterations: treat" in content["convergence"]["words"]
    assert "max_iter=2 reached" in content["specialists"]["stop"].lower()
    assert any("had not converged" in text for text in content["answer"])


def test_the_report_shows_every_check_of_the_calibration(small, tmp_path):
    """Every kind and horizon, in a table; the first horizon in the answer."""
    model = copy.copy(small).calibrate(10, steps=2)
    told = report_content(model, steps=2)["calibration"]
    checks = model.calibration_.checks
    assert len(told["rows"]) == len(checks) >= 9
    for row, check in zip(told["rows"], checks, strict=True):
        assert row["after"] == check.share(check.after)
        assert row["change"] == check.change
        assert row["short"] == (check in model.calibration_.short([check.ahead], [check.of]))
    assert told["n_origins"] == "10"
    (line,) = [text for text in report_content(model)["answer"] if "past forecasts" in text]
    first = model.calibration_.of("totals")[0]
    shares = [first.share(tally) for tally in (first.before, first.after)]
    assert f"totals {shares[0]} before calibration and {shares[1]} after" in line
    assert "components" in line
    assert not any("past forecasts" in text for text in report_content(small)["answer"])
    notes = report_content(model, steps=2)["forecast"]["notes"]
    assert not any("assume the model is correct" in note for note in notes)
    page = write_report(model, tmp_path / "report.html", steps=2).read_text()
    assert "<td>2 steps ahead</td>" in page
    assert "sums over 2 steps" in page


def test_a_model_from_a_file_gives_the_same_report(small, tmp_path):
    small.save(tmp_path / "model.npz")
    again = report_content(load(tmp_path / "model.npz"))
    first = report_content(small)
    again["made"]["date"] = first["made"]["date"]
    assert again == first
    small.save(tmp_path / "bare.npz", data=False)
    bare = report_content(load(tmp_path / "bare.npz"))
    assert bare["errors"] is None
    assert bare["charts"]["components"] == first["charts"]["components"]
    path = write_report(load(tmp_path / "bare.npz"), tmp_path / "bare.html")
    assert "Where the model fails" not in path.read_text()


def test_the_report_says_that_the_default_check_is_at_fixed_components(tmp_path):
    model = TemporalNMF(2, random_state=0).fit(months())
    page = write_report(model, tmp_path / "report.html", steps=2).read_text()
    assert "Are the intervals reliable?" in page
    assert "at components that were fitted to all" in page
    assert "the model was fitted to the data up to then" not in page


def test_hold_out_results_are_compared_with_the_nominal_coverage(small):
    agrees = report_content(small, hold_out={**HOLD_OUT, "high": 0.92})["calibration"]
    misses = report_content(small, hold_out=HOLD_OUT)["calibration"]
    assert (agrees["agrees"], misses["agrees"]) == (True, False)
    assert (misses["nominal"], misses["found"]) == (f"90{NO_BREAK}%", f"85{NO_BREAK}%")
    assert report_content(small)["calibration"] is None


def test_the_report_tells_command_and_checksums(small, tmp_path):
    source = tmp_path / "plays.csv"
    source.write_bytes(b"month,a\n2001-03,1\n")
    made = report_content(small, command=["temporalnmf", "fit", "my plays.csv"], source=source)[
        "made"
    ]
    assert made["command"] == "temporalnmf fit 'my plays.csv'"
    bytes_of_both = small.components_.tobytes() + small.activations_.tobytes()
    digest = hashlib.sha256(bytes_of_both).hexdigest()
    assert made["checksums"]["components and activations"] == digest
    X = np.ascontiguousarray(months().to_numpy())
    assert made["checksums"]["data, missing entries as NaN"] == hashlib.sha256(X).hexdigest()
    file_digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert made["checksums"]["file of the data"] == file_digest
    assert made["versions"]["numpy"] == np.__version__
    assert made["parameters"]["n_components"] == "2"
    assert "TemporalNMF(" in report_content(small)["made"]["command"]


def test_the_checksum_of_the_data_is_that_of_what_was_observed(small):
    frame = months()
    hidden = TemporalNMF(2, random_state=0).fit(frame.fillna(7.0), mask=frame.notna().to_numpy())
    first, second = (report_content(model)["made"]["checksums"] for model in (small, hidden))
    assert first["data, missing entries as NaN"] == second["data, missing entries as NaN"]


# The file


def test_the_file_needs_nothing_else(sotu_report):
    text = sotu_report.read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"\ssrc\s*=|@import|url\((?!#)|\bfetch\(|XMLHttpRequest|import\(", text)
    assert re.findall(r'<link [^>]*href="([^"]*)"', text) == ["data:,"]
    assert len(text.encode()) < LIMIT


@pytest.mark.long
def test_a_long_series_stays_a_small_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.poisson(3.0, size=(5000, 60)).astype(float)
    X[100:200:2] = np.nan
    names = [f"a feature with a rather long name {i}" for i in range(60)]
    frame = pd.DataFrame(X, columns=names)
    with pytest.warns(UserWarning, match="did not converge"):
        model = TemporalNMF(20, max_iter=3, random_state=0).fit(frame)
    path = write_report(model, tmp_path / "long.html")
    assert 100_000 < path.stat().st_size < LIMIT
    text = path.read_text(encoding="utf-8")
    charts = charts_of(text)
    assert charts["past"] < 5000
    assert len(charts["x"]) == len(charts["text"]) == len(charts["components"][0]["y"])
    peaks = {str(n) for n in np.argmax(model.activations_, axis=0)}
    assert peaks <= set(charts["text"])
    assert len(charts["gaps"]) == 50
    assert "And 10 more." in text
    assert f"{charts['past']:,} of 5,000 steps are drawn." in text


def test_hostile_names_stay_text(tmp_path):
    model = TemporalNMF(2, random_state=0).fit(months(names=HOSTILE))
    hold_out = {**HOLD_OUT, "words": HOSTILE[0]}
    path = write_report(
        model, tmp_path / "h.html", question=HOSTILE[1], command=HOSTILE[0], source=HOSTILE[1],
        hold_out=hold_out,
    )  # fmt: skip
    text = path.read_text(encoding="utf-8")
    assert "<script>window.hit" not in text
    assert "<img" not in text
    assert "<!--" not in text
    assert str(7919 * 104729) not in text
    assert text.count("<script") == text.count("</script>") == 2
    names = " ".join(curve["name"] for curve in charts_of(text)["components"])
    assert any(name in names for name in HOSTILE[:4])


def test_a_report_is_not_overwritten_unless_asked(small, tmp_path):
    path = tmp_path / "new" / "report.html"
    assert write_report(small, path) == path
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_report(small, path, question="Another?")
    assert path.read_bytes() == before
    write_report(small, path, question="Another?", overwrite=True)
    assert "Another?" in path.read_text()
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"steps": -1}, "steps=-1: expected a whole number of at least 0"),
        ({"steps": 1.5}, "steps=1.5"),
        ({"n_features": 0}, "n_features=0"),
        ({"steps": 2, "forecast": object()}, "both given"),
        ({"hold_out": {"coverage": 0.9}}, "hold_out lacks high, inside, low, total"),
    ],
)
def test_wrong_arguments_are_refused_by_name(small, tmp_path, arguments, match):
    with pytest.raises(ValueError, match=match):
        write_report(small, tmp_path / "report.html", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_without_jinja2_the_extra_is_named(small, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"temporalnmf\[report\]"):
        write_report(small, tmp_path / "report.html")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one: str, other: str) -> float:
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_stand_out_in_light_and_dark(sotu_report):
    themes = re.findall(r":root \{(.*?)\}", sotu_report.read_text(encoding="utf-8"), re.S)
    assert len(themes) == 2
    for theme in themes:
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})\b", theme))
        for name in ("ink", "muted", "warn"):
            assert contrast(colours[name], colours["paper"]) >= 4.5, name
        for name in ("strong", "focus", *(f"c{i}" for i in range(8))):
            assert contrast(colours[name], colours["paper"]) >= 3.0, name


# In a browser

CHART = "#activations .plot svg"


def spoken(value: float) -> str:
    """A number as the page writes it."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):.8f}".rstrip("0").rstrip(".")


def shown(page) -> list[str]:
    return page.locator("#activations .key .value").evaluate_all(
        "nodes => nodes.map(node => node.firstChild.textContent)"
    )


def place_of(page, index: int) -> dict[str, float]:
    """Where a step stands in the chart, read from the cursor after going there by keys."""
    page.focus(CHART)
    page.keyboard.press("Home")
    for _ in range(index):
        page.keyboard.press("ArrowRight")
    return page.locator(f"{CHART} .cursor").bounding_box()


@pytest.mark.long
def test_hover_shows_the_values_of_the_model(browser, sotu, sotu_report, tmp_path):
    with visited(browser, sotu_report, viewport={"width": 1280, "height": 900}) as page:
        assert "sotu.csv" in page.title()
        where = place_of(page, 60)
        page.evaluate("document.activeElement.blur()")
        page.mouse.move(where["x"] + 100, where["y"] + 50)
        assert page.locator("#activations .when").inner_text() != "1850"
        page.mouse.move(where["x"], where["y"] + 50)
        assert page.locator("#activations .when").inner_text() == "1850"
        assert shown(page) == [spoken(value) for value in sotu.activations_[60]]
        low, high = sotu.smooth(n_samples=1000).interval(0.9, of="components")
        band = page.locator("#activations .value small").first.inner_text()
        assert band == f"{spoken(low[60, 0])} to {spoken(high[60, 0])}"
        assert page.locator(f"{CHART} .dot:not(.hidden)").count() == 3
        assert page.locator(f"{CHART} .now").is_visible()
        assert screenshot(page, tmp_path, "report-light").stat().st_size > 50_000
        page.mouse.move(5, 5)
        assert page.locator("#activations .when").inner_text() == "2021"
        assert not page.locator(f"{CHART} .now").is_visible()


@pytest.mark.long
def test_the_gap_and_the_forecast_are_marked(browser, sotu, sotu_report):
    with visited(browser, sotu_report) as page:
        assert page.locator(f"{CHART} .gap").count() == 1
        place_of(page, 143)
        assert page.locator("#activations .when").inner_text() == "1933 missing, filled in"
        page.keyboard.press("End")
        assert page.locator("#activations .when").inner_text() == "2026 forecast"
        assert shown(page) == [spoken(value) for value in sotu.forecast(5).activations[-1]]
        assert page.locator(f"{CHART} .divide").count() == 1
        assert page.locator(".mini svg .band").count() == 6


def test_switches_hide_and_show_a_line(browser, sotu_report):
    with visited(browser, sotu_report) as page:
        lines = page.locator(f"{CHART} .line")
        boxes = page.get_by_role("checkbox")
        assert boxes.count() == lines.count() == 3
        assert all(lines.nth(k).is_visible() for k in range(3))
        boxes.nth(1).uncheck()
        assert [lines.nth(k).is_visible() for k in range(3)] == [True, False, True]
        boxes.nth(1).check()
        assert lines.nth(1).is_visible()
        page.get_by_role("button", name="Hide all").click()
        assert not any(lines.nth(k).is_visible() for k in range(3))
        assert not any(box.is_checked() for box in boxes.all())


@pytest.mark.long
def test_a_switch_by_its_label_names_its_component(browser, told, sotu_report):
    name = told["components"][1]["name"]
    with visited(browser, sotu_report) as page:
        box = page.get_by_role("checkbox", name=name)
        page.get_by_text(name, exact=True).first.click()
        assert not box.is_checked()


@pytest.mark.long
def test_the_keyboard_reaches_charts_and_switches(browser, sotu_report):
    with visited(browser, sotu_report) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.getAttribute('role')") == "slider"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        assert page.locator("#activations .when").inner_text() == "2021"
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        assert page.locator("#activations .when").inner_text() == "2019"
        assert page.locator(CHART).get_attribute("aria-valuetext").startswith("2019: ")
        page.keyboard.press("ArrowRight")
        assert page.locator(f"{CHART} .now").inner_html() == "2020"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.type") == "checkbox"
        page.keyboard.press("Space")
        assert not page.locator(f"{CHART} .line").first.is_visible()
        assert page.evaluate("document.activeElement.type") == "checkbox"
        page.keyboard.press("Space")
        assert page.locator(f"{CHART} .line").first.is_visible()


BROKEN = """nodes => nodes.flatMap(node => {
  const text = node.firstChild;
  return [...text.data.matchAll(/\\S+/g)].filter(word => {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return range.getClientRects().length > 1;
  }).map(word => word[0]);
})"""


@pytest.mark.long
@pytest.mark.parametrize("width", [320, 960, 1000, 1280])
def test_names_in_the_legend_break_at_spaces_only(browser, tmp_path, width):
    names = ["pertussis", "salmonellosis", "campylobacteriosis", "chickenpox", "rubella", "mumps"]
    size = np.full(40, 5e6)
    model = TemporalNMF(3, random_state=0).fit(months(names=names), exposure=size)
    path = write_report(model, tmp_path / "r.html")
    with visited(browser, path, viewport={"width": width, "height": 844}) as page:
        assert page.locator("#activations .key bdi").evaluate_all(BROKEN) == []
        assert page.locator(".card .number").evaluate_all(BROKEN) == []
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.long
def test_what_is_for_specialists_is_folded_and_drawn_when_opened(browser, sotu_report):
    with visited(browser, sotu_report, viewport={"width": 1280, "height": 900}) as page:
        assert not page.locator("#trace .plot svg").is_visible()
        page.get_by_text("For specialists").click()
        drawn = "() => document.querySelector('#trace .plot svg').viewBox.baseVal.width > 600"
        page.wait_for_function(drawn)
        page.get_by_text("For specialists").click()
    with visited(browser, sotu_report, viewport={"width": 1280, "height": 900}) as page:
        page.emulate_media(media="print")
        page.wait_for_function(drawn)


@pytest.mark.long
def test_the_table_says_what_the_chart_draws(browser, sotu, sotu_report):
    from playwright.sync_api import expect

    with visited(browser, sotu_report) as page:
        page.get_by_text("The same as a table").click()
        rows = page.locator("#activations-table tbody tr")
        expect(rows).to_have_count(237)
        cells = rows.nth(143).locator("th, td").all_inner_texts()
        assert cells == ["1933 (filled in)", *map(spoken, sotu.activations_[143])]


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_scrolls_sideways(browser, sotu_report, tmp_path, scheme, width):
    options = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    with visited(browser, sotu_report, **options) as page:
        page.get_by_text("The same as a table").click()
        page.get_by_text("All parameters").click()
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 23, 26)")
        # Letters keep their size: the chart is drawn anew for the width it has.
        size = page.evaluate(
            f"document.querySelector('{CHART} text').getBoundingClientRect().height"
        )
        assert size > 10
    with visited(browser, sotu_report, **options) as page:
        screenshot(page, tmp_path, f"report-{scheme}-{width}")


@pytest.mark.long
def test_on_paper_all_is_open_light_and_without_switches(browser, sotu_report, tmp_path):
    from playwright.sync_api import expect

    with visited(browser, sotu_report, color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        expect(page.locator("details:not([open])")).to_have_count(0)
        assert page.locator("#activations-table tbody tr").count() == 237
        assert not any(box.is_visible() for box in page.locator("input").all())
        assert (
            page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        )
        screenshot(page, tmp_path, "report-print")
        page.emulate_media(media="screen")
        expect(page.locator("details[open]")).to_have_count(0)


def test_headings_are_in_order_and_everything_drawn_has_a_name(browser, sotu_report):
    with visited(browser, sotu_report) as page:
        assert page.evaluate("document.documentElement.lang") == "en"
        levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        nameless = page.evaluate(
            "[...document.querySelectorAll('svg')].filter(s => !s.getAttribute('aria-label') "
            "&& s.getAttribute('aria-hidden') !== 'true').length"
        )
        assert nameless == 0


def test_hostile_names_do_nothing_in_a_browser(browser, tmp_path):
    model = TemporalNMF(2, random_state=0).fit(months(names=HOSTILE))
    path = write_report(model, tmp_path / "h.html", question=HOSTILE[1], source=HOSTILE[0])
    with visited(browser, path) as page:
        page.get_by_text("The same as a table").click()
        page.hover(CHART)
        assert page.evaluate("window.hit") is None
        assert page.locator("img").count() == 0
        assert page.locator("h1").inner_text() == HOSTILE[1]
        features = page.locator(".bars bdi").all_inner_texts()
        assert HOSTILE[0] in features


@pytest.mark.long
def test_many_components_and_dates_are_drawn(browser, tmp_path):
    frame = months(60, [f"f{i}" for i in range(14)])
    model = TemporalNMF(10, random_state=0).fit(frame)
    path = write_report(model, tmp_path / "many.html", steps=6)
    with visited(browser, path, viewport={"width": 390, "height": 844}) as page:
        lines = page.locator(f"{CHART} .line")
        # A component that is zero throughout has a line without height, which is drawn, too.
        shown = "found => found.filter(line => !line.closest('.hidden')).length"
        assert lines.evaluate_all(shown) == 6
        page.get_by_role("button", name="Show all").click()
        assert lines.evaluate_all(shown) == 10
        dashes = lines.evaluate_all("nodes => nodes.map(n => getComputedStyle(n).strokeDasharray)")
        assert len(set(dashes[:8])) == 1
        assert dashes[8] not in dashes[:8]
        ticks = page.locator(f"{CHART} > text").all_text_contents()
        assert {"2002", "2003", "2004"} <= set(ticks)
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_missing_browser_skips_or_fails_as_asked(monkeypatch):
    from browser import chromium

    monkeypatch.delenv("TEMPORALNMF_CHROMIUM", raising=False)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.delenv("TEMPORALNMF_REQUIRE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no browser"):
        chromium()
    monkeypatch.setenv("TEMPORALNMF_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="no browser"):
        chromium()


def test_uneven_dates_are_drawn_as_steps(tmp_path):
    """What follows them has no date."""
    days = ["2000-01-03", "2000-01-17", "2000-03-01", "2000-03-09", "2000-07-22", "2001-01-05"]
    counts = np.random.default_rng(0).poisson(20, (6, 4))
    with pytest.warns(UserWarning, match="not evenly spaced"):
        model = TemporalNMF(2, random_state=0).fit(pd.DataFrame(counts, index=pd.to_datetime(days)))
    text = write_report(model, tmp_path / "uneven.html", steps=2).read_text(encoding="utf-8")
    assert "2000-03-09" in text
    assert "+2" in text
