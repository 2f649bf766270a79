"""The exposure "days": the days in each step, by the calendar."""

import csv
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from commands import invoke
from temporalnmf import TemporalNMF, load
from temporalnmf.reading import as_table, read_table
from temporalnmf.selection import HiddenSteps, select
from temporalnmf.shards import write_shards
from temporalnmf.timeline import timeline_of

N = 30
MONTHS = pd.date_range("2003-01-01", periods=N + 4, freq="MS", name="month")
DAYS = MONTHS.days_in_month.to_numpy(dtype=float)


def monthly():
    """Counts of two components whose rates per day are nearly constant."""
    rng = np.random.default_rng(0)
    W = rng.dirichlet(np.ones(6), size=2)
    X = rng.poisson(DAYS[:, None] * (np.array([50.0, 30.0]) @ W))
    return pd.DataFrame(X, index=MONTHS, columns=[f"band {i}" for i in range(6)])


ALL = monthly()
X = ALL.iloc[:N]


def model(**options):
    return TemporalNMF(2, season=None, random_state=0, **options)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, exposure="days")


@pytest.mark.parametrize(
    ("times", "days"),
    [
        (["2003-12", "2004-01", "2004-02", "2004-03"], [31, 31, 29, 31]),
        (["2003-11-30", "2003-12-31", "2004-01-31", "2004-02-29"], [30, 31, 31, 29]),
        (["2003Q1", "2003Q2", "2003Q3", "2003Q4", "2004Q1"], [90, 91, 92, 92, 91]),
        (["2003-W01", "2003-W02", "2003-W03"], [7, 7, 7]),
        (pd.date_range("2003-01-01", periods=4, freq="6h"), [0.25] * 4),
        (pd.date_range("2003-01-01", periods=4, freq="YS"), [365, 366, 365, 365]),
    ],
)
def test_steps_have_the_days_of_the_calendar(times, days):
    assert timeline_of(times).clock.days.tolist() == days


def test_years_that_are_numbers_have_no_days():
    with pytest.raises(ValueError, match="exposure='days' needs steps with dates"):
        timeline_of(np.arange(2000, 2010)).clock.days  # noqa: B018


def test_results_are_those_of_the_numbers(fitted):
    other = model().fit(X, exposure=DAYS[:N])
    np.testing.assert_array_equal(fitted.exposure_, DAYS[:N])
    np.testing.assert_array_equal(fitted.components_, other.components_)
    np.testing.assert_array_equal(fitted.activations_, other.activations_)
    for use in ("transform", "impute", "score"):
        found = getattr(fitted, use)(ALL, exposure="days")
        np.testing.assert_array_equal(found, getattr(other, use)(ALL, exposure=DAYS))
    smooth, numbers = (m.smooth(ALL, exposure=e) for m, e in ((fitted, "days"), (other, DAYS)))
    np.testing.assert_array_equal(smooth.values, numbers.values)
    np.testing.assert_array_equal(smooth.exposure, DAYS)


def test_forecasts_continue_with_the_days_of_the_future(fitted):
    ahead = fitted.forecast(4)
    np.testing.assert_array_equal(ahead.exposure, DAYS[N:])
    assert "exposure_assumed" not in [note.code for note in ahead.notes]
    numbers = model().fit(X, exposure=DAYS[:N])
    assert "exposure_assumed" in [note.code for note in numbers.forecast(4).notes]
    np.testing.assert_array_equal(numbers.forecast(4).exposure, np.full(4, DAYS[N - 1]))
    np.testing.assert_array_equal(numbers.forecast(4, exposure="days").exposure, DAYS[N:])
    np.testing.assert_array_equal(fitted.forecast(2, exposure=[1.0, 2.0]).exposure, [1.0, 2.0])
    with pytest.raises(ValueError, match="exposure='week': expected numbers"):
        fitted.forecast(2, exposure="week")


def test_absent_months_have_their_own_days():
    """They are not interpolated from their neighbours, as other exposures are."""
    with pytest.warns(UserWarning, match="absent periods"):
        found = model().fit(X.drop(MONTHS[13]), exposure="days")  # February 2004
    assert found.exposure_[13] == 29.0


def test_appended_steps_have_their_days(fitted, tmp_path):
    copy = load(fitted.save(tmp_path / "model.npz"))
    with pytest.raises(ValueError, match=r"Give exposure='days' for these steps"):
        copy.append(ALL.iloc[N : N + 1])
    copy.append(ALL.iloc[[N + 2]], exposure="days")  # two absent months before it
    np.testing.assert_array_equal(copy.exposure_, DAYS[: N + 3])
    assert copy.forecast(1).exposure.tolist() == [DAYS[N + 3]]
    for rows in (slice(N, N + 1), slice(N + 1, None)):
        found = fitted.transform(ALL.iloc[rows], exposure="days")
        np.testing.assert_array_equal(found, fitted.transform(ALL.iloc[rows], exposure=DAYS[rows]))
    other = load(tmp_path / "model.npz").append(ALL.iloc[N : N + 1], exposure=[28.5])
    assert other.forecast(1).exposure.tolist() == [28.5]  # not days any more


def test_files_keep_it_and_refuse_other_numbers(fitted, tmp_path):
    path = fitted.save(tmp_path / "model.npz")
    again = load(path)
    np.testing.assert_array_equal(again.forecast(3).samples(), fitted.forecast(3).samples())
    assert again._series.days
    without = load(model().fit(X, exposure=DAYS[:N]).save(tmp_path / "numbers.npz"))
    assert not without._days
    with zipfile.ZipFile(tmp_path / "numbers.npz") as file:
        assert "exposure" not in json.loads(file.read("header.json"))
    for name, value in (("other", "weeks"), ("wrong", "days")):
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / f"{name}.npz", "w") as new:
            for member in old.namelist():
                content = old.read(member)
                if member == "header.json":
                    content = json.dumps({**json.loads(content), "exposure": value}).encode()
                if member == "labels.json" and name == "wrong":
                    content = content.replace(b"2003-01", b"2002-12")
                new.writestr(member, content)
        with pytest.raises(ValueError, match="its exposure is"):
            load(tmp_path / f"{name}.npz")


@pytest.mark.parametrize(
    ("data", "exposure", "words"),
    [
        (X.to_numpy(), "days", r"exposure='days' needs steps with dates.*dates as its index"),
        (X.set_axis(range(N)), "days", r"needs steps with dates"),
        (X.rename(columns={"band 0": "days"}), "days", r"may mean.*X.pop\('days'\)"),
        (X, "day", r"exposure='day': expected numbers.*X.pop\('day'\)"),
    ],
)
def test_what_has_no_days_is_refused(data, exposure, words):
    with pytest.raises(ValueError, match=words):
        model().fit(data, exposure=exposure)


def test_shards_and_dask_arrays(tmp_path, fitted):
    from dask import array as dask

    line = timeline_of(X.index)
    names = X.columns.to_numpy(dtype=str)
    data = sparse.csr_array(X.to_numpy())
    shards = write_shards(tmp_path / "shards", data, names=names, timeline=line)
    options = {"likelihood": "poisson"}
    found = model(**options).fit(shards, exposure="days")
    np.testing.assert_array_equal(found.exposure_, DAYS[:N])
    np.testing.assert_array_equal(found.forecast(4).exposure, DAYS[N:])
    with pytest.raises(ValueError, match="exposure='days' needs steps with dates"):
        model().fit(dask.from_array(X.to_numpy()), exposure="days")


def test_searches_take_it():
    settings = {"chains": "none", "n_components": 1, "random_state": 0}
    settings["splitter"] = HiddenSteps(2, random_state=0)
    found, other = select(X, exposure="days", **settings), select(X, exposure=DAYS[:N], **settings)
    np.testing.assert_array_equal(found.best.errors, other.best.errors)
    assert found.model.forecast(1).exposure.tolist() == [DAYS[N]]


# Tables and the command line


def test_a_column_of_that_name_wins(tmp_path):
    path = tmp_path / "wide.csv"
    X.to_csv(path)
    table = read_table(path, exposure="days")
    assert (table.exposure, table.notes[-1]) == (
        "days",
        "exposure: the days in each step, up to 31",
    )
    np.testing.assert_array_equal(table.sizes, DAYS[:N])
    X.assign(days=2.0).to_csv(path)
    np.testing.assert_array_equal(read_table(path, exposure="days").exposure, np.full(N, 2.0))
    np.testing.assert_array_equal(as_table(X.assign(days=2.0), exposure="days").sizes, [2.0] * N)
    long = X.melt(ignore_index=False, var_name="band", value_name="plays").reset_index()
    names = {"time": "month", "feature": "band", "value": "plays", "exposure": "days"}
    found = as_table(long, **names)
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.sizes, DAYS[:N])
    np.testing.assert_array_equal(as_table(long.assign(days=3), **names).sizes, [3.0] * N)
    with pytest.raises(ValueError, match="feature='bands' is not the name of a column"):
        as_table(long, **{**names, "feature": "bands"})
    with pytest.raises(ValueError, match="exposure='day' is not the name of a column"):
        as_table(X, exposure="day")
    numbered = tmp_path / "numbered.csv"
    X.set_axis(pd.RangeIndex(2000, 2000 + N, name="year")).to_csv(numbered)
    with pytest.raises(ValueError, match="exposure='days' needs steps with dates"):
        read_table(numbered, exposure="days")


def test_comparisons_by_the_day(tmp_path):
    """Counts are the days times constant numbers: as rates they have no error."""
    path = tmp_path / "months.csv"
    pd.DataFrame(np.outer(DAYS, [40, 10]), index=MONTHS, columns=["a", "b"]).to_csv(path)
    how = ("--exposure", "days", "--out", tmp_path)
    words = ("compare", path, "--components", 1, "--splits", 1, "--inits", 1, "--origins", 1)
    result = invoke(*words, "--chains", "last_value,none", *how)
    assert result.exit_code == 0, result.output
    table = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert all(float(row["kle_s_mean"]) < 1e-2 for row in table)
    result = invoke("select-rank", path, "--largest", 1, "--splits", 2, *how)
    assert result.exit_code == 0, result.output
    (row,) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert float(row["error_mean"]) < 1e-6


def test_the_commands_continue_with_days(tmp_path):
    first, all_, out = tmp_path / "first.csv", tmp_path / "all.csv", tmp_path / "model.npz"
    X.to_csv(first)
    ALL.to_csv(all_)
    how = ("--exposure", "days")
    result = invoke("fit", first, "--components", 1, "--season", "none", "--out", out, *how)
    assert result.exit_code == 0, result.output
    assert "exposure: the days in each step, up to 31" in result.output
    assert "the days in each step" in invoke("info", out).output
    np.testing.assert_array_equal(load(out).exposure_, DAYS[:N])
    ahead = invoke("forecast", out, "--steps", 4, "--json", "--of", "totals")
    assert ahead.exit_code == 0, ahead.output
    assert "exposure was given" not in ahead.output
    same = invoke("forecast", out, "--steps", 4, "--json", "--of", "totals", *how)
    assert same.stdout == ahead.stdout
    missing = invoke("append", out, all_, "--force")
    assert "--exposure is missing" in missing.stderr
    longer = invoke("append", out, all_, "--force", *how)
    assert longer.exit_code == 0, longer.output
    np.testing.assert_array_equal(load(out).exposure_, DAYS)
    assert load(out)._days
