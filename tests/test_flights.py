"""Departures per airport and day, and the tool that makes them."""

import importlib.util
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import temporalnmf.datasets
from temporalnmf.datasets import load_flights

TOOL = Path(__file__).parents[1] / "tools" / "make_flights.py"
DATA = Path(temporalnmf.datasets.__file__).parent / "data"


@pytest.fixture(scope="module")
def flights():
    return load_flights()


@pytest.fixture(scope="module")
def tool():
    specification = importlib.util.spec_from_file_location("make_flights", TOOL)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def write_matrix(folder, counts, airports, days):
    """A folder as TEMPORALNMF_DATA has it; `counts` are airports × days."""
    sparse.save_npz(folder / "flights2001_origin_day.npz", sparse.csr_array(counts))
    for what, lines in (("labels", airports), ("times", days)):
        (folder / f"flights2001_origin_day_{what}.txt").write_text("\n".join(lines) + "\n")


def test_flights_have_their_shape_and_types(flights):
    assert flights.data.shape == (181, 229)
    assert flights.data.dtype == np.float64
    assert flights.data.flags.c_contiguous
    days = np.arange("2001-01-01", "2001-07-01", dtype="datetime64[D]")
    np.testing.assert_array_equal(flights.times, days)
    airports = flights.feature_names.tolist()
    assert airports == sorted(set(airports))
    assert all(len(code) == 3 and code.isupper() for code in airports)
    assert flights.frame is None


def test_flights_have_their_total_count_and_none_is_missing(flights):
    assert flights.data.sum() == 2_999_994  # NaN would not be equal
    assert (flights.data.sum(axis=0) > 0).all()


# Counted in flights-3m.parquet of the source package.
@pytest.mark.parametrize(
    ("day", "airport", "count"),
    [
        ("2001-01-01", "BOS", 296),
        ("2001-03-05", "BOS", 100),
        ("2001-06-30", "ATL", 677),
        ("2001-05-26", "ORD", 789),
        ("2001-02-14", "ACT", 8),
        ("2001-06-30", "YAK", 2),
    ],
)
def test_counts_agree_with_the_source(flights, day, airport, count):
    row = flights.times == np.datetime64(day)
    assert flights.data[row, flights.feature_names == airport].tolist() == [count]


def test_saturdays_have_the_fewest_flights(flights):
    days = (flights.times - np.datetime64("2001-01-01")).astype(int) % 7  # a Monday
    totals = flights.data.sum(axis=1)
    means = [totals[days == day].mean() for day in range(7)]
    assert int(np.argmin(means)) == 5
    assert min(means) < 0.93 * np.median(means)


def test_frame_equals_array(flights):
    framed = load_flights(as_frame=True)
    assert framed.data is framed.frame
    np.testing.assert_array_equal(framed.frame.to_numpy(), flights.data)
    assert framed.frame.index.name == "date"
    np.testing.assert_array_equal(framed.frame.index.to_numpy(), flights.times)
    assert framed.frame.columns.tolist() == flights.feature_names.tolist()
    assert framed.frame.loc["2001-03-05", "BOS"] == 100


def test_pandas_is_needed_for_the_frame_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    importlib.reload(temporalnmf.datasets.flights)
    assert load_flights().data.shape == (181, 229)
    with pytest.raises(ImportError, match=r"load_flights.*temporalnmf\[io\]"):
        load_flights(as_frame=True)


def test_each_call_gives_its_own_array():
    load_flights().data[:] = -1
    assert load_flights().data.min() == 0


def test_description_names_source_and_licence(flights):
    licence = (DATA / "FLIGHTS_LICENSE.txt").read_text(encoding="utf-8")
    for text in (flights.DESCR, licence):
        for fact in (
            "vega-datasets", "3.2.1", "flights-3m.parquet", "Bureau of Transportation Statistics",
            "United States government", "BSD-3-Clause", "229",
        ):  # fmt: skip
            assert fact in " ".join(text.split()), fact


def test_file_is_small_and_free_of_pickles():
    assert (DATA / "flights.npz").stat().st_size < 60_000
    with np.load(DATA / "flights.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    assert set(arrays) == {"counts", "airports", "days"}
    assert arrays["counts"].dtype == np.uint16
    assert arrays["days"].dtype == np.dtype("datetime64[D]")
    with zipfile.ZipFile(DATA / "flights.npz") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_tool_turns_a_matrix_with_labels_into_days_and_airports(tool, tmp_path, monkeypatch):
    days = ["2001-01-30", "2001-01-31", "2001-02-01"]
    write_matrix(tmp_path, [[3, 0, 256], [0, 7, 0]], ["AAA", "BBB"], days)
    output = tmp_path / "out.npz"
    monkeypatch.setattr(sys, "argv", ["make_flights.py", str(tmp_path), "--output", str(output)])
    tool.main()
    with np.load(output, allow_pickle=False) as arrays:
        assert arrays["counts"].tolist() == [[3, 0], [0, 7], [256, 0]]
        assert arrays["counts"].dtype == np.uint16
        assert arrays["airports"].tolist() == ["AAA", "BBB"]
        assert arrays["days"].astype(str).tolist() == days


def test_tool_counts_a_table_of_flights_and_leaves_out_the_last_day(tool, tmp_path):
    import pandas as pd

    dates = ["2001-06-29 00:01", "2001-06-29 23:59", "2001-06-30 12:00", "2001-07-01 00:00"]
    flights = {"date": pd.to_datetime(dates), "origin": ["BBB", "BBB", "AAA", "BBB"]}
    pd.DataFrame(flights).to_parquet(tmp_path / "flights.parquet")
    arrays = tool.from_flights(tmp_path / "flights.parquet")
    assert arrays["airports"].tolist() == ["AAA", "BBB"]
    assert arrays["days"].astype(str).tolist() == ["2001-06-29", "2001-06-30"]
    assert arrays["counts"].tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("counts", "airports", "days", "reason"),
    [
        ([[1.5, 2]], ["AAA"], ["2001-01-01", "2001-01-02"], "counts"),
        ([[1, 2]], ["AAA", "BBB"], ["2001-01-01", "2001-01-02"], "label"),
        ([[1, 2]], ["AAA"], ["2001-01-01", "2001-01-03"], "not consecutive"),
        ([[1], [2]], ["BBB", "AAA"], ["2001-01-01"], "order"),
    ],
)
def test_tool_refuses_other_matrices(tool, tmp_path, counts, airports, days, reason):
    write_matrix(tmp_path, np.array(counts, dtype=float), airports, days)
    with pytest.raises(ValueError, match=reason):
        tool.from_matrix(tmp_path)


def test_tool_asks_for_the_data(tool, monkeypatch, capsys):
    monkeypatch.delenv("TEMPORALNMF_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["make_flights.py"])
    with pytest.raises(SystemExit):
        tool.main()
    assert "TEMPORALNMF_DATA" in capsys.readouterr().err
