"""Names from strangers are text in what we write: reports and tables."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import temporalnmf
from browser import launched, visited
from commands import done
from temporalnmf import TemporalNMF
from temporalnmf.reading import read_table
from temporalnmf.report import write_report
from temporalnmf.runtime.files import own_text, plain_cell, write_csv

HOSTILE = [
    "<script>window.hacked=1</script>", '"><img src=x onerror=window.hacked=1>',
    "</script><script>window.hacked=1</script>", "{{7*7}}", "a\u2028b\u2029c", "\u202egpj.exe",
    "javascript:window.hacked=1", "' onmouseover='window.hacked=1",
]  # fmt: skip


@pytest.mark.long
def test_hostile_names_times_and_titles_are_text_in_a_browser(tmp_path):
    rng = np.random.default_rng(0)
    n = len(HOSTILE)
    X = rng.poisson(np.outer(np.linspace(1, 9, 3 * n), rng.gamma(1.0, 9.0, n)) + 1.0)
    times = [f"{name} {k}" for k in range(3) for name in HOSTILE]
    frame = pd.DataFrame(X.astype(float), index=times, columns=HOSTILE)
    frame.iloc[4] = np.nan
    model = TemporalNMF(2, random_state=0).fit(frame)
    path = write_report(
        model,
        tmp_path / "h.html",
        question=HOSTILE[0],
        command=HOSTILE[2],
        source=HOSTILE[1],
        steps=3,
    )
    # That the page says nothing on the console and asks for nothing is for `visited` to see.
    with launched() as browser, visited(browser, path) as page:
        page.get_by_text("The same as a table").click()
        for box in page.locator("svg").all()[:4]:
            if box.is_visible():
                box.hover(force=True)
        assert page.evaluate("window.hacked") is None
        assert page.locator("img, iframe, object, embed").count() == 0
        assert page.locator("[onerror], [onmouseover], [href^='javascript']").count() == 0
        assert page.locator("h1").inner_text() == HOSTILE[0]
        features = page.locator(".bars bdi").all_text_contents()
        assert {HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[3]} <= set(features)
        text = page.locator("body").text_content()
        assert "missing and is filled in: a b c 0." in text, "the missing step is named"
        assert not set(text) & set("\u2028\u2029\u202e"), "what turns lines around is left out"


FORMULAS = ["=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1", "-x"]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert plain_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "cell", [-3.5, 0, None, "", "war", "-3.5", "+1", "-1e-7", "2001-02", "a=b", True, "-.5"]
)
def test_cells_that_are_no_formula_stay_as_they_are(cell):
    assert plain_cell(cell) is cell


def texts_of(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [cell for row in csv.reader(file) for cell in row]


def assert_harmless(path: Path) -> list[str]:
    cells = texts_of(path)
    for cell in cells:
        if cell[:1] in tuple("=+-@\t\r"):
            float(cell)  # a number, or the test fails
    return cells


def test_no_csv_that_we_write_holds_a_formula(tmp_path):
    found = texts_of(write_csv(tmp_path / "rows.csv", [{"=a": "=1+2", "b": -3.5, "c": "-3.5"}]))
    assert found == ["'=a", "b", "c", "'=1+2", "-3.5", "-3.5"]
    rng = np.random.default_rng(0)
    names = ["=1+2", "@SUM(A1)", "-x", "plain"]
    frame = pd.DataFrame(rng.poisson(9.0, size=(12, 4)).astype(float), columns=names)
    frame.iloc[3, 1] = np.nan
    frame.index = pd.Index([f"={k}+1" for k in range(12)], name="time")
    frame.to_csv(tmp_path / "data.csv")
    model, out = tmp_path / "model.npz", tmp_path / "out.csv"
    done("fit", tmp_path / "data.csv", "--components", 2, "--out", model)
    for command in (["forecast", model, "--steps", 2], ["forecast", model, "--of", "components"]):
        done(*command, "--out", out, "--force")
        assert_harmless(out)
    bands = tmp_path / "bands.csv"
    done("impute", model, "--out", out, "--bands", bands, "--force")
    assert {"'=1+2", "'@SUM(A1)", "'-x", "plain", "'=0+1"} <= set(assert_harmless(out))
    assert {"'@SUM(A1)", "'=3+1"} <= set(assert_harmless(bands))
    again = read_table(out)
    assert again.features.tolist() == names
    assert again.times[0] == "=0+1"


@pytest.mark.parametrize(
    "text", [*FORMULAS, "'=1", "''@x", "'tis", "'-3.5", "war", "-3.5", "'", ""]
)
def test_apostrophes_before_formulas_are_taken_off_when_read(text):
    assert own_text(plain_cell(text)) == text


def test_our_own_tables_fit_our_own_models(tmp_path):
    """Names that a spreadsheet would run: data, model, tables of it, and back, wide and long."""
    names = ["=1+2", "@SUM(A1)", "-x", "+y", "'=z", "plain"]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.poisson(9.0, size=(12, 6)).astype(float), columns=names)
    X.insert(0, "year", range(1990, 2002))
    X.iloc[3, 2] = np.nan
    data, model = tmp_path / "data.csv", tmp_path / "model.npz"
    X.to_csv(data, index=False)
    table = read_table(data)
    assert table.features.tolist() == [*names[:4], "=z", "plain"]
    assert "the apostrophe before names such as '=z' is removed" in table.notes
    done("fit", data, "--components", 2, "--out", model)
    filled, ahead = tmp_path / "filled.csv", tmp_path / "ahead.csv"
    said = done("impute", model, "--out", filled)
    assert "names such as '=1+2' are written as \"'=1+2\"" in " ".join(said.output.split())
    fitted = temporalnmf.load(model)
    assert fitted.transform(filled).shape == (12, 2)
    said = done("forecast", model, "--steps", 3, "--out", ahead)
    assert "removes the apostrophe" in " ".join(said.output.split())
    long = {"time": "time", "feature": "feature", "value": "mean"}
    later = read_table(ahead, **long)
    assert sorted(later.features) == sorted(fitted.feature_labels())
    assert "the apostrophe before names such as '=1+2' is removed" in later.notes
    options = [word for name, column in long.items() for word in (f"--{name}", column)]
    done("append", model, ahead, *options, "--out", tmp_path / "longer.npz")
    assert temporalnmf.load(tmp_path / "longer.npz").times_.tolist() == [*range(1990, 2005)]
