"""Covariates, holidays and trends on the command line, in reports and in plots."""

import numpy as np
import pandas as pd
import pytest

from cases import FEW
from commands import done, refused
from temporalnmf import TemporalNMF
from temporalnmf.plotting import plot_forecast
from temporalnmf.report import write_report

N = 84
DAYS = pd.date_range("2001-01-01", periods=N + 14, name="date")


def table():
    rng = np.random.default_rng(0)
    X = rng.poisson(40.0, (N, 4))
    return pd.DataFrame(X, index=DAYS[:N], columns=list("abcd"))


def known():
    rain = np.random.default_rng(1).gamma(2.0, 1.0, N + 14).round(3)
    return pd.DataFrame({"rain": rain}, index=DAYS)


@pytest.fixture(scope="module")
def model():
    options = {"season": "week", "intervals": "model", "random_state": 0}
    return TemporalNMF(FEW, **options).fit(table(), covariates=known())


@pytest.fixture
def files(tmp_path, model):
    table().to_csv(tmp_path / "x.csv")
    known().to_csv(tmp_path / "rain.csv")
    model.save(tmp_path / "m.npz")
    return tmp_path


def test_reports_and_plots_of_models_with_covariates(model, files):
    out = files / "m.html"
    told = refused("report", files / "m.npz", "--out", out)
    assert "--covariates rain: values are missing for the forecast of 2001-03-26" in told
    done("report", files / "m.npz", "--covariates", files / "rain.csv", "--out", out)
    again = write_report(model, files / "same.html", covariates=known()).read_text()
    assert "2001-03-26" in again
    assert "2001-03-26" in out.read_text()
    plot_forecast(model, 3, covariates=known())


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "{x}", "--components", 1, "--covariates", "{rain}", "--out", "{rain}"),
        ("fit", "{x}", "--covariates", "{rain}", "--checkpoint", "{rain}", "--out", "{new}"),
        ("append", "{m}", "{x}", "--covariates", "{rain}", "--out", "{rain}"),
        ("forecast", "{m}", "--covariates", "{rain}", "--out", "{rain}"),
        ("impute", "{m}", "{x}", "--covariates", "{rain}", "--out", "{rain}"),
        ("impute", "{m}", "--covariates", "{rain}", "--out", "{new}", "--bands", "{rain}"),
        ("report", "{m}", "--covariates", "{rain}", "--out", "{rain}"),
    ],
)
def test_covariates_are_never_overwritten(files, words):
    paths = {"x": "x.csv", "rain": "rain.csv", "m": "m.npz", "new": "new.npz"}
    names = {name: files / file for name, file in paths.items()}
    before = names["rain"].read_bytes()
    told = refused(*(str(word).format(**names) for word in words), "--force")
    assert "is the input file" in told
    assert names["rain"].read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04\x95\xb1", b"a,b\n1,2,3\n1,2,3,4,5,6\n"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_covariates_that_cannot_be_read_are_refused(files, content, suffix):
    path = files / f"broken.{suffix}"
    path.write_bytes(content)
    told = refused("forecast", files / "m.npz", "--covariates", path)
    assert f"--covariates {path} cannot be read" in told
    assert "Expected a CSV or Parquet file" in told


def test_a_damping_out_of_range_is_told_as_an_option(files):
    told = refused("fit", files / "x.csv", "--trend", "0.3", "--out", files / "new.npz")
    assert "--trend 0.3: expected 'none', 'auto' or a number from 0.5 to 1." in told
