"""What people read: precision, per cent, numbering and stability are the same in all front ends."""

import csv
import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import temporalnmf
from cases import estimator
from commands import done
from temporalnmf.messages.formatting import csv_number, level_text, number_text, percent
from temporalnmf.plotting import plot_activations, plot_components, plot_forecast
from temporalnmf.report import report_content
from temporalnmf.summary import FOUND_AGAIN, VARIES, component_summary

SOURCE = Path(temporalnmf.__file__).parent


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    level = np.exp(np.cumsum(rng.normal(0.0, 0.1, size=(30, 2)), axis=0))
    W = [[900.0, 30.0, 0.01, 0.0], [1.0, 0.0, 20.0, 7.0]]
    X = pd.DataFrame(rng.poisson(level @ W), index=range(1990, 2020), columns=list("abcd"))
    fitted = estimator(2, random_state=0).fit(X.astype(float))
    fitted.stability_ = np.array([0.95, 0.65])
    return fitted


@pytest.fixture(scope="module")
def model_file(model, tmp_path_factory):
    return model.save(tmp_path_factory.mktemp("words") / "model.npz")


# Precision


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0005662, "0.000566"), (945.3, "945"), (99.96, "100"), (99.94, "99.9"), (100.4, "100"),
        (1e6 + 0.3, "1,000,000"), (0.0, "0"), (-0.0, "0"), (-945.3, "-945"), (5.0, "5"),
        (0.00009996, "0.0001"), (0.0001, "0.0001"), (1e9, "1.00e+09"), (math.inf, "–"),
        (None, "–"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits_and_are_whole_from_100_on(value, text):
    assert number_text(value) == text


@pytest.mark.parametrize("value", 10.0 ** np.random.default_rng(0).uniform(-12, 12, size=200))
def test_printed_numbers_are_right_to_their_last_digit(value):
    """The error is at most half a unit of the third digit, or half of one."""
    read = float(number_text(value).replace(",", ""))
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    assert abs(read - value) <= 0.5000001 * (min(unit, 1.0) if value < 1e9 else unit)
    in_file = float(csv_number(value))
    assert in_file == pytest.approx(value, rel=5.01e-6)


@pytest.mark.parametrize("value", [0.0, 3.0, -7.0, 12345678.0, 2.0**53])
def test_whole_numbers_of_a_csv_file_are_in_full(value):
    assert csv_number(value) == str(int(value))


# A number with more than three digits below 100, or with decimals from 100 on.
FALSE_PRECISION = re.compile(r"(?<![\d.,-])(?:\d{3,}\.\d+|0\.0*[1-9]\d{3,}|[1-9]\d?\.\d{3,})")


def test_the_check_notices_false_precision():
    assert FALSE_PRECISION.findall("0.0005662 945.3 12.345 1.234") == [
        "0.0005662", "945.3", "12.345", "1.234"
    ]  # fmt: skip
    assert not FALSE_PRECISION.search("0.000566 945 12.3 1.23 12,345 2.50e-07")


@pytest.mark.parametrize("of", ["features", "components", "totals"])
def test_printed_forecasts_have_no_false_precision(of, model_file):
    output = done("forecast", model_file, "--of", of).stdout
    assert re.search(r"\d", output)
    assert not FALSE_PRECISION.findall(output)


def test_the_report_has_no_false_precision(model):
    content = report_content(model, steps=3)
    for part in ("answer", "components", "forecast", "gaps", "errors", "movement", "specialists"):
        shown = json.dumps(content[part], ensure_ascii=False)
        shown = re.sub(r'"(length|stability)": [\d.]+', "", shown)  # drawn, not read
        assert not FALSE_PRECISION.findall(shown), part


def test_csv_files_have_six_digits_and_json_all(model, model_file, tmp_path):
    out = tmp_path / "next.csv"
    told = json.loads(done("forecast", model_file, "--steps", 2, "--out", out, "--json").stdout)
    frame = model.forecast(2).to_frame()
    assert [row["mean"] for row in told["rows"]] == frame["mean"].tolist()
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    for row, mean, upper in zip(rows, frame["mean"], frame["upper_90"], strict=True):
        assert row["mean"] == f"{mean:.6g}"
        assert row["upper_90"] == str(int(upper))  # a count is whole


def test_filled_cells_have_six_digits_and_observed_ones_all(tmp_path):
    X = np.random.default_rng(0).gamma(9.0, size=(12, 3))
    X[5, 1] = np.nan
    frame = pd.DataFrame(X, index=range(2001, 2013), columns=list("abc"))
    fitted = estimator(1, random_state=0).fit(frame)
    out = tmp_path / "filled.csv"
    done("impute", fitted.save(tmp_path / "m.npz"), "--out", out)
    rows = list(csv.reader(out.read_text(encoding="utf-8").splitlines()))[1:]
    filled = fitted.smooth().values[5, 1]
    assert rows[5][2] == f"{filled:.6g}"
    rows[5][2] = "nan"
    np.testing.assert_array_equal(np.array(rows)[:, 1:].astype(float), X)


# Per cent


def test_a_level_is_written_as_it_was_asked_for():
    assert [level_text(c) for c in (0.9, 0.5, 0.95, 0.999)] == ["90 %", "50 %", "95 %", "99.9 %"]
    assert percent(0.9) == "90 %"


def test_a_share_that_is_not_all_is_not_rounded_to_it():
    shares = (0.0, 0.0004, 0.996, 0.9997, 1.0)
    assert [percent(x) for x in shares] == ["0 %", "<0.1 %", "99.6 %", ">99.9 %", "100 %"]


def test_no_source_writes_a_percentage_without_a_space():
    """Neither f"{share:.0%}" nor "90%" in a text; `%` in a template's CSS is another matter."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r":\.?\d*%\}|\d%(?![\w(])", line):
                found.append(f"{path.name}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize("command", [("info",), ("forecast", "--of", "totals")])
def test_commands_write_a_space_before_per_cent(command, model_file):
    name, *options = command
    output = done(name, model_file, *options).stdout
    assert re.search(r"\d %", output)
    assert not re.search(r"\d%", output)


# Components are numbered from 1 wherever people read.


def test_component_tables_of_commands_count_from_1(model_file):
    lines = done("info", model_file).stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if "top features" in line)
    assert [line.split()[0] for line in lines[start + 2 : start + 4]] == ["1", "2"]
    lines = done("forecast", model_file, "--of", "components").stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == ["component"])
    assert [line.split()[0] for line in lines[start + 2 : start + 4]] == ["1", "2"]


def test_json_and_csv_of_commands_count_components_from_1(model_file, tmp_path):
    told = json.loads(done("info", model_file, "--json").stdout)["components"]
    assert [one["component"] for one in told] == [1, 2]
    assert not any("index" in one for one in told)
    out = tmp_path / "next.csv"
    words = ("forecast", model_file, "--of", "components", "--steps", 1, "--out", out, "--json")
    assert [row["component"] for row in json.loads(done(*words).stdout)["rows"]] == [1, 2]
    rows = csv.DictReader(out.read_text(encoding="utf-8").splitlines())
    assert [row["component"] for row in rows] == ["1", "2"]


def test_frames_count_components_from_1(model):
    assert model.forecast(1).to_frame("components")["component"].tolist() == [1, 2]
    assert model.forecast(1).to_frame("components", wide=True).columns.tolist() == [1, 2]


def test_the_report_counts_components_from_1(model):
    assert [card["number"] for card in report_content(model, steps=0)["components"]] == [1, 2]


def test_plots_name_components_and_number_them_from_1(model):
    names = [one.name for one in component_summary(model)]
    assert [line.get_label() for line in plot_activations(model).lines[:2]] == names
    assert [ax.get_title(loc="left").split("\n")[0] for ax in plot_components(model)] == names
    labels = plot_forecast(model.forecast(2)).get_legend_handles_labels()[1]
    assert [label for label in labels if label.startswith("comp")] == ["component 1", "component 2"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_arviz_counts_components_from_1_and_scikit_learn_from_0():
    X = np.random.default_rng(0).poisson(5.0, size=(20, 4)).astype(float)
    drawn = estimator(
        2, solver="gibbs", n_draws=8, n_tune=2, n_chains=1, random_state=0
    ).fit(X)  # fmt: skip
    assert drawn.to_arviz().posterior["component"].values.tolist() == [1, 2]
    assert drawn.get_feature_names_out().tolist() == ["temporalnmf0", "temporalnmf1"]


# Stability has one meaning.


def test_thresholds_of_stability_are_what_a_cosine_means():
    """c² is the share of a squared length that two directions have in common."""
    assert FOUND_AGAIN**2 > 0.8
    assert abs(VARIES - math.cos(math.pi / 4)) < 0.01


def test_report_command_and_guides_have_the_same_thresholds_of_stability(model, model_file):
    cards = report_content(model, steps=0)["components"]
    assert [card["stability_words"] for card in cards] == [
        "found again (0.95)", "not found again (0.65)"
    ]  # fmt: skip
    output = " ".join(done("info", model_file).stdout.split())
    assert (
        f"from {FOUND_AGAIN} on a component is found again in other starts; below {VARIES} it"
        in output
    )
    docs = SOURCE.parents[1] / "docs"
    for page in ("gallery/1_topics.py", "commands.md", "quickstart.md"):
        text = " ".join((docs / page).read_text(encoding="utf-8").replace("#", " ").split())
        told = text[text.lower().index("stability") :]
        assert re.search(rf"from {FOUND_AGAIN} on .* below {VARIES} it is not", told, re.IGNORECASE)
