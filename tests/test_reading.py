"""Files become tables; every cell is a number, missing, or an error that says where it is."""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import threading
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray
from scipy import sparse
from scipy.io import mmwrite

from commands import done
from temporalnmf import load
from temporalnmf.datasets import load_sotu
from temporalnmf.reading import TIME_NAMES, as_table, read_table
from temporalnmf.timeline import time_texts

X = np.random.default_rng(0).poisson(4.0, size=(6, 4)) + 0.25
GAPS = X.copy()
GAPS[1, 2] = GAPS[4] = np.nan
YEARS = np.arange(1990, 1996)
WORDS = np.array(["war", "peace", "tax, or toll", 'the "gold"'])
PLAIN = "year,war,peace\n1990,1,2\n1991,3,4\n1992,5,6\n"


@pytest.fixture
def write(tmp_path):
    """Writes a file and returns its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def bytes_of(save, *args, **kwargs):
    """What a function writes to a file."""
    file = io.BytesIO()
    save(file, *args, **kwargs)
    return file.getvalue()


def frame(values=GAPS):
    return pd.DataFrame(values, index=pd.Index(YEARS, name="year"), columns=WORDS)


def parquet(table):
    return bytes_of(lambda file: table.to_parquet(file))


def check(table, values, times, features):
    """Same values, and labels of the same type."""
    assert isinstance(table.X, np.ndarray)
    assert table.X.dtype == np.float64
    assert table.X.flags.c_contiguous
    np.testing.assert_array_equal(table.X, values)
    dates = table.times.dtype.kind == "M"
    assert (time_texts if dates else list)(table.times) == list(times)
    assert table.times is table.timeline.labels
    assert table.features.tolist() == list(features)
    assert table.features.dtype.kind == "U"
    assert table.exposure is None
    assert table.observed is None


# Round trips


@pytest.mark.parametrize(
    ("name", "options"),
    {
        "data.csv": {},
        "DATA.CSV": {},
        "data.csv.gz": {},
        "crlf.csv": {"lineterminator": "\r\n"},
        "mac.csv": {"lineterminator": "\r"},
        "quoted.csv": {"quoting": 2},
        "na.csv": {"na_rep": "NA"},
        "nan.csv": {"na_rep": "NaN"},
        "null.csv": {"na_rep": "null"},
        "space.csv": {"na_rep": "  "},
        "semicolon.csv": {"sep": ";"},
        "excel.csv": {"sep": ";", "decimal": ",", "lineterminator": "\r\n"},
        "excel_quoted.csv": {"sep": ";", "decimal": ",", "quoting": 1},
        "tab.csv": {"sep": "\t"},
        "data.tsv": {"sep": "\t"},
        "data.tsv.gz": {"sep": "\t"},
        "data.txt": {"sep": "\t"},
    }.items(),
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("transpose", [False, True])
def test_text_round_trip(write, name, options, encoding, transpose):
    table = frame().T.rename_axis("word") if transpose else frame()
    data = table.to_csv(**options).encode(encoding)
    path = write(gzip.compress(data) if name.endswith(".gz") else data, name)
    check(read_table(path, transpose=transpose), GAPS, YEARS, WORDS)


@pytest.mark.parametrize("transpose", [False, True])
def test_numbers_are_read_to_the_last_bit(write, transpose):
    values = np.exp(np.random.default_rng(1).normal(scale=50.0, size=(200, 7)))
    path = write((pd.DataFrame(values.T if transpose else values)).to_csv())
    np.testing.assert_array_equal(read_table(path, transpose=transpose).X, values)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        frame,
        lambda: frame().reset_index(),
        lambda: frame().astype("Float64"),
        lambda: frame().astype("double[pyarrow]"),
        lambda: frame().astype(np.float32),
        lambda: frame().map(lambda value: None if np.isnan(value) else Decimal(value)),
    ],
    ids=["index", "column", "nullable", "arrow", "single", "decimal"],
)
def test_parquet_round_trip(write, make, transpose):
    table = make()
    if transpose:
        table = (table.set_index("year") if "year" in table else table).astype(float).T
        table = table.rename_axis("word").rename(columns=str)
    path = write(parquet(table), "data.parquet")
    check(read_table(path, transpose=transpose), GAPS, YEARS, WORDS)


def test_parquet_without_times_may_start_with_decimals_or_flags(write):
    table = pd.DataFrame({"a": [Decimal(1), Decimal("2.5"), None], "b": [True, False, True]})
    for columns in (["a", "b"], ["b", "a"]):
        path = write(parquet(table[columns]), "data.parquet")
        values = np.array([[1.0, 2.5, np.nan], [1.0, 0.0, 1.0]]).T
        check(
            read_table(path), values[:, [columns.index("a"), columns.index("b")]], range(3), columns
        )


def test_an_index_of_numbers_with_a_name_is_the_times_of_parquet(write):
    table = frame().set_axis(pd.RangeIndex(6, name="season"))
    table = read_table(write(parquet(table), "data.parquet"))
    check(table, GAPS, range(6), WORDS)
    assert table.notes[0] == "times are in the index"


def test_transposed_parquet_has_times_as_names_of_columns(write):
    table = pd.DataFrame({"t": [1.0, 2.0], "u": [3.0, 4.0], "v": [5.0, 6.0]})
    table = read_table(write(parquet(table), "data.parquet"), transpose=True)
    check(table, [[1, 2], [3, 4], [5, 6]], ["t", "u", "v"], ["x0", "x1"])


@pytest.mark.parametrize("index", [pd.date_range("2000", periods=6, freq="MS"), list("abcdef")])
def test_parquet_keeps_dates_and_names(write, index):
    table = pd.DataFrame({"when": index, "war": X[:, 0]})
    path = write(parquet(table), "data.parquet")
    check(read_table(path), X[:, :1], [str(time)[:7] for time in index], ["war"])


def unnamed(shape):
    return range(shape[0]), [f"x{f}" for f in range(shape[1])]


@pytest.mark.parametrize("kind", ["float64", "float32", ">f8"])
@pytest.mark.parametrize("transpose", [False, True])
def test_npy_round_trip(write, kind, transpose):
    stored = (GAPS.T if transpose else GAPS).astype(kind)
    path = write(bytes_of(np.save, stored), "data.npy")
    check(read_table(path, transpose=transpose), GAPS, *unnamed(X.shape))


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64])
def test_npy_of_whole_numbers_is_read(write, kind):
    whole = X.astype(kind)
    table = read_table(write(bytes_of(np.save, whole), "data.npy"))
    check(table, whole.astype(float), *unnamed(X.shape))


@pytest.mark.parametrize(
    ("arrays", "name"),
    [
        ({"anything": GAPS}, "anything"),
        ({"anything": GAPS, "years": YEARS, "words": WORDS}, "anything"),
        ({"other": X, "X": GAPS}, "X"),
        ({"other": X, "data": GAPS}, "data"),
        ({"counts": GAPS, "other": X}, "counts"),
        ({"power": GAPS, "other": X, "labels": np.array([["a"]])}, "power"),
        ({"power": GAPS, "words": WORDS.astype(object)}, "power"),
    ],
)
@pytest.mark.parametrize("transpose", [False, True])
def test_npz_round_trip(write, arrays, name, transpose):
    if transpose:
        arrays = {key: array.T for key, array in arrays.items()}
    table = read_table(write(bytes_of(np.savez, **arrays), "data.npz"), transpose=transpose)
    check(table, GAPS, *unnamed(X.shape))
    unused = ", ".join(key for key in arrays if key != name) or "none"
    assert table.notes[:2] == (f"data are in array '{name}'", f"arrays not used: {unused}")


def check_sparse(table, values):
    assert isinstance(table.X, sparse.csr_array)
    assert table.X.dtype == np.float64
    assert table.X.has_canonical_format
    np.testing.assert_array_equal(table.X.toarray(), values)
    assert table.times.tolist() == list(range(values.shape[0]))
    assert table.features.tolist() == [f"x{f}" for f in range(values.shape[1])]


COUNTS = np.random.default_rng(0).poisson(0.5, size=(9, 5))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("make", [sparse.coo_array, sparse.coo_matrix])
@pytest.mark.parametrize("transpose", [False, True])
def test_sparse_npz_round_trip(write, form, make, transpose):
    matrix = make(COUNTS.T if transpose else COUNTS).asformat(form)
    path = write(bytes_of(sparse.save_npz, matrix), "data.npz")
    check_sparse(read_table(path, transpose=transpose), COUNTS)


@pytest.mark.parametrize("name", ["data.mtx", "data.mtx.gz"])
@pytest.mark.parametrize("values", [COUNTS, COUNTS / 4])
@pytest.mark.parametrize("transpose", [False, True])
def test_matrix_market_round_trip(write, name, values, transpose):
    matrix = sparse.coo_array(values.T if transpose else values)
    data = bytes_of(mmwrite, matrix)
    path = write(gzip.compress(data) if name.endswith(".gz") else data, name)
    check_sparse(read_table(path, transpose=transpose), values)


def test_sparse_npz_adds_up_entries_given_twice(write):
    matrix = sparse.csr_array(([4.0, 6.0, 5.0], [1, 1, 0], [0, 2, 2, 3]), shape=(3, 2))
    path = write(bytes_of(sparse.save_npz, matrix), "data.npz")
    check_sparse(read_table(path), np.array([[0, 10], [0, 0], [5, 0]]))


def test_matrix_market_adds_up_entries_given_twice(write):
    text = "%%MatrixMarket matrix coordinate integer general\n3 2 3\n1 2 4\n3 1 5\n1 2 6\n"
    check_sparse(read_table(write(text, "data.mtx")), np.array([[0, 10], [0, 0], [5, 0]]))


def test_dense_matrix_market_is_read(write):
    check(read_table(write(bytes_of(mmwrite, X), "data.mtx")), X, *unnamed(X.shape))


def test_state_of_the_union_as_csv_gives_the_same_fit(write):
    from temporalnmf import TemporalNMF

    words = load_sotu(as_frame=True).data.iloc[120:, :50]
    table = read_table(write(words.to_csv()))
    check(table, words.to_numpy(), words.index, words.columns)
    assert table.notes[-1] == "time steps without any value: 1 (1933)"
    model = TemporalNMF(2, tol=0.1, random_state=0)
    expected = model.fit(words).activations_
    np.testing.assert_array_equal(model.fit(table.X).activations_, expected)


# What is understood


@pytest.mark.parametrize("name", [*TIME_NAMES, "YEAR", "Date", " time ", "", "Unnamed: 0"])
def test_first_column_is_times_by_its_name(write, name):
    table = read_table(write(f"{name},war\n3,1\n4,1\n5,2\n"))
    check(table, [[1], [1], [2]], [3, 4, 5], ["war"])
    where = f"column {name.strip()!r}" if name else "the first column"
    assert table.notes == (f"times are in {where}", "in steps of 1, 3 to 5")


HOURS = ["2000-01-01T10:00", "2000-01-01 11:00", "2000-01-01T13:00+01:00"]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["2000-01-31", "2000-02-01", "2001-01-01"], None),
        (["1999-12", "2000-01", "2000-02"], None),
        (HOURS, ["2000-01-01 10:00", "2000-01-01 11:00", "2000-01-01 12:00"]),
        (["-1", "0", "1"], [-1, 0, 1]),
        (["0.5", "1", "1e1"], [0.5, 1.0, 10.0]),
        (["1700000000000000001", "1700000000000000002", "1700000000000000003"],
         [1700000000000000001, 1700000000000000002, 1700000000000000003]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("header", ["season", "time"])
def test_times_keep_their_labels(write, times, expected, transpose, header):
    if header == "season" and times[0].lstrip("-").replace(".", "").isdigit() and not transpose:
        header = "date"  # numbers are times by their name only
    table = pd.DataFrame({"war": [1, 2, 3]}, index=pd.Index(times, name=header))
    path = write((table.T.rename_axis(header) if transpose else table).to_csv())
    table = read_table(path, transpose=transpose)
    check(table, [[1], [2], [3]], expected or times, ["war"])
    assert not any("sorted" in note for note in table.notes)


def test_text_times_keep_their_order(write):
    table = read_table(write("season,war\nJan,1\nFeb,2\nMar,3\n"))
    check(table, [[1], [2], [3]], ["Jan", "Feb", "Mar"], ["war"])
    assert table.notes[0] == "times are in column 'season'"
    assert re.search("'Jan'.*neither.*order", table.notes[1])


def test_a_table_without_header_or_times_is_numbered(write):
    table = read_table(write("5,1\n3,\n4,2\n"))
    check(table, [[5, 1], [3, np.nan], [4, 2]], range(3), ["x0", "x1"])
    assert table.notes == (
        "there is no header: the first line is data",
        "no times were found: steps are numbered from 0",
        "missing cells: 1 of 6",
    )


def test_a_gap_in_the_first_line_is_no_header(write):
    for first, values in {"5,,1": [5, np.nan, 1], ",,1": [np.nan, np.nan, 1]}.items():
        table = read_table(write(f"{first}\n3,4,5\n4,2,2\n"))
        check(table, [values, [3, 4, 5], [4, 2, 2]], range(3), ["x0", "x1", "x2"])


def test_dates_are_found_without_a_header(write):
    table = read_table(write("2000-01,1\n2000-02,2\n2000-03,3\n"))
    check(table, [[1], [2], [3]], ["2000-01", "2000-02", "2000-03"], ["x0"])


def test_a_transposed_table_without_header_is_numbered(write):
    table = read_table(write("5,3,4\n1,1,2\n"), transpose=True)
    check(table, [[5, 1], [3, 1], [4, 2]], range(3), ["x0", "x1"])


def test_a_line_of_times_needs_no_names_of_features(write):
    table = read_table(write("2000-01,2000-02,2000-03\n1,2,3\n4,5,6\n"), transpose=True)
    check(table, [[1, 4], [2, 5], [3, 6]], ["2000-01", "2000-02", "2000-03"], ["x0", "x1"])


@pytest.mark.parametrize("corner", ["", "word", "time"])
def test_transposed_years_are_a_header(write, corner):
    path = write(f'{corner},"1990","1991",1992\nwar,1,2,3\n60,4,5,6\n')
    table = read_table(path, transpose=True)
    check(table, [[1, 4], [2, 5], [3, 6]], [1990, 1991, 1992], ["war", "60"])
    where = f"column {corner!r}" if corner else "the first column"
    assert table.notes == (
        "times are in the first line",
        f"features are in {where}",
        "in steps of 1, 1990 to 1992",
    )


def test_columns_below_an_empty_corner_may_be_numbers(write):
    table = read_table(write(pd.DataFrame(X).to_csv()))
    check(table, X, range(6), list("0123"))


def test_columns_beside_times_may_be_numbers(write):
    table = read_table(write("time,0,21.5\n0.1,1,2\n0.2,3,4\n0.3,5,6\n"))
    check(table, [[1, 2], [3, 4], [5, 6]], [0.1, 0.2, 0.3], ["0", "21.5"])


def test_first_column_without_values_is_a_feature(write):
    table = read_table(write("war,peace\n,2\n,4\n,6\n"))
    check(table, [[np.nan, 2], [np.nan, 4], [np.nan, 6]], range(3), ["war", "peace"])


def test_last_cell_of_a_file_with_tabs_may_be_missing(write):
    table = read_table(write("year\twar\n1990\t1\n1991\t2\n1992\t", "data.tsv"))
    check(table, [[1], [2], [np.nan]], [1990, 1991, 1992], ["war"])


def test_a_first_column_of_numbers_is_data_but_even_steps_are_noted(write):
    table = read_table(write("season,war\n1990,5\n1991,1\n1992,2\n"))
    assert table.features.tolist() == ["season", "war"]
    assert re.search("1990, 1991, ….*'time'", table.notes[1])
    for last in ("1990,1990", "1991,1993"):
        second, third = last.split(",")
        table = read_table(write(f"season,war\n1990,5\n{second},1\n{third},2\n"))
        assert table.notes[0] == "no times were found: steps are numbered from 0"
        assert not any("rises evenly" in note for note in table.notes)


@pytest.mark.parametrize(
    ("labels", "told"),
    {
        "1990 1992 1995": "the first feature rises in each row (1990, 1992, …): if these are times",
        "1995 1994 1993": "the first feature falls in each row (1995, 1994, …): if these are times",
        "9 4 3": "the first feature falls in each row (9, 4, …): if these are times",
        "1990 1992 1992": None,
        "1990 1992 1991": None,
        "1.5 2 4": None,
        "1990 NA 1992": None,
    }.items(),
)
def test_a_first_column_that_may_be_times_is_noted(write, labels, told):
    lines = [f"{label},{n % 2}" for n, label in enumerate(labels.split())]
    table = read_table(write("\n".join(["season,war", *lines])))
    assert table.features.tolist() == ["season", "war"]
    hints = [note for note in table.notes if "first feature" in note]
    assert hints == [] if told is None else hints[0].startswith(told)


@pytest.mark.parametrize(
    "name",
    ["Jahr", "MONAT", "Woche", "Tag", "Datum", "année", "ANNÉE", "anne\u0301e", "an", "mois",
     "jour", "semaine", "fecha", "año", "mes", "día", "anno", "mese", "giorno"],
)  # fmt: skip
def test_names_of_times_are_recognised_in_other_languages(write, name):
    check(read_table(write(f"{name},war\n1,3\n2,1\n3,4\n")), [[3], [1], [4]], [1, 2, 3], ["war"])


@pytest.mark.parametrize("name", ["week", "Woche", "KW", "semaine"])
def test_six_digits_are_weeks_in_a_column_of_weeks(write, name):
    weeks = ["201951", "201952", "202001", "202002"]
    mondays = ["2019-12-16", "2019-12-23", "2019-12-30", "2020-01-06"]
    wide = f"{name},a\n" + "".join(f"{week},1\n" for week in weeks)
    long = f"{name},f\n" + "".join(f"{week},a\n" for week in weeks)
    frame = pd.DataFrame({name: [int(week) for week in weeks], "f": "a"})
    for table in (
        read_table(write(wide)),
        read_table(write(long), time=name, feature="f"),
        as_table(frame, time=name, feature="f"),
    ):
        assert time_texts(table.timeline.labels) == mondays
        assert table.times.tolist() == [f"{week[:4]}-W{week[4:]}" for week in weeks]
        assert table.timeline.every == "week"
        assert "times such as 201951 are read as ISO weeks" in table.notes
    months = read_table(write("month,a\n201911,1\n201912,1\n202001,1\n"))
    assert time_texts(months.times) == ["2019-11", "2019-12", "2020-01"]


AMBIGUOUS = (
    r"'1.234' may be 1234, with a point between thousands, or 1.234 with three decimals.*"
    r"Write thousands without points \(1234\), or decimals with commas \(1,234\)"
)


def _by_semicolon(cells, long):
    rows = [f"{n};a;{cell};1" if long else f"{n};{cell};1" for n, cell in enumerate(cells.split())]
    return "\n".join(["time;f;v;w" if long else "time;v;w", *rows]) + "\n"


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(
    "cells", ["987 1.234 12.500", "1.234 NA 100", "1.234 5 2345", "1.234 - 512"]
)
def test_points_that_may_be_thousands_or_decimals_are_refused(write, cells, long):
    options = {"time": "time", "feature": "f", "value": "v"} if long else {}
    place = "column 'v'" if long else rf"line {2 + cells.split().index('1.234')} .*column 'v'"
    with pytest.raises(ValueError, match=rf"data.csv, {place}: {AMBIGUOUS}"):
        read_table(write(_by_semicolon(cells, long)), **options)


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(
    ("cells", "told"),
    {
        "1.234 2.345 3.456": True,
        "1.234 99 0": True,
        "987 1.234 0.5": False,
        "987 1.234 0.125": False,  # no thousands start with a zero
        "987 1.234 1.25": False,
        "987 12 3": False,
        "1234.567 123 3": False,
    }.items(),
)
def test_decimal_points_are_noted_where_they_might_be_thousands(write, cells, told, long):
    options = {"time": "time", "feature": "f", "value": "v"} if long else {}
    table = read_table(write(_by_semicolon(cells, long)), **options)
    assert table.X[:, 0].tolist() == [float(cell) for cell in cells.split()]
    note = "points in numbers such as 1.234 are decimal points, not thousands"
    assert (note in table.notes) == told
    comma = read_table(write(_by_semicolon(cells, long).replace(";", ",")), **options)
    assert note not in comma.notes


def test_words_named_like_times_are_features_elsewhere(write):
    table = read_table(write("war,day,year\n3,1,2\n1,1,9\n4,2,5\n"))
    assert table.features.tolist() == ["war", "day", "year"]


def test_decimal_commas_are_noted_and_apply_to_times(write):
    table = read_table(write("time;a,b;c\n0,5;1,25;3\n1;,5;1e1\n1,5;2,5e-1;\n"))
    check(table, [[1.25, 3], [0.5, 10], [0.25, np.nan]], [0.5, 1, 1.5], ["a,b", "c"])
    assert table.notes[:2] == ("cells are separated by ';'", "commas are decimal commas")


def test_decimal_commas_are_read_without_a_header(write):
    table = read_table(write("1,5;2,5;3,5\n5,5;1,5;2,5\n1,0;2;3,25\n"))
    check(table, [[1.5, 2.5, 3.5], [5.5, 1.5, 2.5], [1, 2, 3.25]], range(3), ["x0", "x1", "x2"])


@pytest.mark.parametrize("header", ["year,a;b,c", 'year,"a;b;c",c', "year,a\tb,c"])
def test_other_separators_in_names_do_not_confuse(write, header):
    table = read_table(write(f"{header}\n1990,1,2\n1991,3,4\n1992,5,6\n"))
    assert table.X.shape == (3, 2)
    assert table.features[1] == "c"


def test_quoted_cells_may_hold_separators_and_line_ends(write):
    table = read_table(write('year, "war, cold", "two\r\nlines"\n1990,1,"2"\n1991,3,4\n1992,5,6\n'))
    check(table, [[1, 2], [3, 4], [5, 6]], [1990, 1991, 1992], ["war, cold", "two\r\nlines"])


def test_blank_lines_at_the_end_are_ignored(write):
    check(read_table(write(PLAIN + "\r\n\n")), [[1, 2], [3, 4], [5, 6]], YEARS[:3], WORDS[:2])


def test_missing_cells_are_counted(write):
    assert read_table(write(frame().to_csv())).notes[2:] == (
        "missing cells: 5 of 24",
        "time steps without any value: 1 (1994)",
    )


def test_only_the_first_steps_without_values_are_named(write):
    rows = "".join(f"{year},\n" for year in range(1991, 1995))
    notes = read_table(write(f"year,war\n1990,1\n{rows}")).notes
    assert notes[-1] == "time steps without any value: 4 (1991, 1992, 1993, …)"


# What is refused

SPARSE = sparse.csr_array(COUNTS.astype(float))


def changed(array, where, value):
    copied = array.copy()
    copied[where] = value
    return copied


def damaged_indices(form):
    """A sparse file whose indices point outside the matrix."""
    matrix = SPARSE.asformat(form)
    with np.load(io.BytesIO(bytes_of(sparse.save_npz, matrix))) as archive:
        parts = {name: archive[name] for name in archive.files}
    parts["indices"] = parts["indices"] + 1000
    return bytes_of(np.savez, **parts)


def bad(content, pattern, name="data.csv", transpose=False):
    """A file that is refused with a message like the pattern."""
    return content, pattern, name, transpose


PLACE = r"row 2, column 3 \(counted from 0\): "
RAGGED = "Give all lines the same number"
BAD_FILES = {
    # Cells of text files: file, place, value, remedy.
    "text": bad(
        PLAIN.replace("4", "abc"),
        r"^data.csv, line 3 \(time '1991'\), column 'peace': 'abc' is not a number\. "
        r"Write a plain number .*empty.*missing",
    ),
    "several": bad(
        PLAIN.replace("4", "abc").replace("5", "x").replace("6", ""),
        r"line 3 .*'peace': 'abc' is not a number \(2 such cells in all\)",
    ),
    **{
        f"cell {cell!r}": bad(PLAIN.replace("4", cell), f"line 3 .*: '{re.escape(cell)}' is not a")
        for cell in ("--", "1_000", "1 000", "1.2.3", "0x10", "?", "no", "1;5", "12%", "e5")
    },
    "decimal comma between commas": bad(
        PLAIN.replace("4", '"4,5"'), "line 3 .*'4,5' is not a number"
    ),
    "decimal comma between tabs": bad(
        PLAIN.replace("4", '"4.5"').replace(",", "\t").replace(".", ","),
        "line 3 .*'4,5' is not",
    ),
    "points beside decimal commas": bad(
        "year;war\n1990;1,5\n1991;1.234\n1992;2\n",
        r"line 3 \(time '1991'\).*'1.234' is not .*decimal comma \(1234,5\)",
    ),
    "text without header": bad("1,2\n3,x\n5,6\n", r"line 2, column 2: 'x' is not a number"),
    "text below dates": bad(
        "2000-01,2\n2000-02,x\n", r"line 2 \(time '2000-02'\), column 2: 'x' is"
    ),
    "text in the first column": bad(
        "war,peace\n1,2\nmany,3\n4,5\n",
        "line 3, column 'war': 'many' is not .*name it 'time'",
    ),
    "after a cell of two lines": bad(
        'year,"a\nb"\n1990,1\n1991,x\n',
        r"line 4 \(time '1991'\), column 'a\\nb': 'x'",
    ),
    "text, transposed": bad(
        "word,1990,1991,1992\nwar,1,2,3\ntax,1,2,b\n",
        r"line 3 \(feature 'tax'\), column '1992': 'b' is not a number",
        transpose=True,
    ),
    "negative": bad(
        PLAIN.replace("4", "-4.5"),
        r"line 3 \(time '1991'\), column 'peace': -4.5 is negative\. .*non-negative.*NA",
    ),
    "several negative": bad(
        PLAIN.replace(",4", ",-4").replace(",5", ",-5"), r"-4 .*\(2 such cells"
    ),
    "infinite": bad(
        PLAIN.replace("4", "inf"), r"line 3 .*'peace': inf is infinite\. .*correct.*NA"
    ),
    "too large": bad(PLAIN.replace("4", "1e999"), r"line 3 .*'peace': inf is infinite"),
    "minus infinity": bad(PLAIN.replace("4", "-Infinity"), r"line 3 .*'peace': -inf is infinite"),
    "negative, transposed": bad(
        "word,1990,1991,1992\nwar,1,2,-3\n",
        r"line 2 \(feature 'war'\), column '1992': -3 is negative",
        transpose=True,
    ),
    # The form of text files.
    "empty": bad("", r"^data.csv is empty\. Give"),
    "blank": bad(" \n\n", r"^data.csv is empty\. Give"),
    "only a header": bad("year,war\n", r"^data.csv holds only a header \('year', …\)\. Add"),
    "only times": bad("year\n1990\n1991\n1992\n", r"no column of numbers.*'1990'.*Give"),
    "only text": bad("1 2\n3 4\n5 6\n", r"no column of numbers.*'3 4'.*separate cells by ','"),
    "all missing": bad("year,war\n1990,\n1991,NA\n1992,nan\n", "every cell is missing. Check"),
    "short line": bad(PLAIN.replace("3,4", "3"), f"line 3 has 2 cells .* has 3. {RAGGED}"),
    "long line": bad(PLAIN.replace("3,4", "3,4,5"), f"line 3 has 4 cells .* has 3. {RAGGED}"),
    "short line between semicolons": bad(
        PLAIN.replace("3,4", "3").replace(",", ";"),
        f"line 3 has 2 cells .* {RAGGED}.*';'",
    ),
    "blank line": bad(PLAIN.replace("1991", "\n1991"), "line 3 is blank. Remove it.*NA"),
    "open quote": bad(PLAIN.replace("3,4", '"3,4'), "line 3 cannot be split .*quotation marks"),
    "text after a quote": bad(PLAIN.replace("3,4", '"3"0,4'), "line 3 cannot .*quotation marks"),
    "same name twice": bad(
        PLAIN.replace("peace", "war"),
        "the feature 'war' twice, in column 2 and column 3. Give",
    ),
    "same name twice, transposed": bad(
        "word,1,2,3\nwar,1,2,3\nwar,1,2,3\n",
        "the feature 'war' twice, in line 2 and line 3. Give",
        transpose=True,
    ),
    "no name": bad(PLAIN.replace("peace", ""), "the feature in column 3 has no name. Name it"),
    "may be a header": bad(
        "Jan,1,2\nFeb,3,4\nMar,5,6\n",
        r"line 1 may be a header or data: 'Jan' .*\(1, …\).*'time'.*put a header.*transpose=True",
    ),
    "two steps": bad(
        "year,a\n1990,1\n1991,2\n",
        r"is 2 × 1 \(times × features\), .*at least 3 .*swapped, use transpose=True",
    ),
    "two steps, transposed": bad(
        "word,1990,1991\nwar,1,2\n",
        r"is 2 × 1 .*swapped, leave out transpose=True",
        transpose=True,
    ),
    **{
        f"byte {byte:#04x} after Latin-1": bad(
            b"year,\xe9t\xe9\n1990,1\n%c\n" % byte, "line 1: byte 0xe9 is not UTF-8.*Save .*UTF-8"
        )
        for byte in (0, 7, 0x1A, 0x81, 0x9D)
    },
    "damaged UTF-16": bad(
        "year,été\n".encode("utf-16") + b"\xd8", "cannot be read as UTF-16.*as UTF-8"
    ),
    "point groups without a decimal comma": bad(
        "year;war;tax\n1990;1,5;1\n1991;1;1.234\n1992;2;1.234.567\n", "'1.234' is not a number"
    ),
    "other points beside groups": bad(
        "year;war\n1990;1.234,5\n1991;1.23\n1992;2\n", "line 3 .*'1.23' is not a number"
    ),
    **{
        f"last row {label!r}": bad(
            f"season,war,peace\nspring,1,2\nsummer,3,4\nautumn,5,6\n{label},9,12\n",
            f"^data.csv, line 5: the last time is {label!r}, .*not a time step.*Remove it",
        )
        for label in ("Summe", "TOTAL", "Gesamt")
    },
    "last column of totals, transposed": bad(
        "word,spring,summer,autumn,Total\nwar,1,2,3,6\n",
        "^data.csv, column 5: the last time is 'Total'",
        transpose=True,
    ),
    "totals below months": bad(
        "Monat;a\n01.2019;1\n02.2019;2\n12.2019;4\nSumme;7\n",
        r"two kinds: '01.2019' \(line 2\) is a date, 'Summe' \(line 5\) is text.*remove.*totals",
    ),
    "sums under another name": bad(
        "season,war,peace\nJan 19,1,2\nFeb 19,3,4\nMar 19,5,\nboth,9,6\n",
        "^data.csv, line 5: the values of 'both' are the sums of all others.*Remove it",
    ),
    "gzip cut short": bad(
        b"\x1f\x8b\x08\x00", "data.csv.gz cannot be read as a gzip.*again", name="data.csv.gz"
    ),
    # Times.
    "year twice": bad(
        PLAIN.replace("1992", "1990.0"),
        "the time '1990.0' twice, in line 2 and line 4. Give each",
    ),
    "day twice": bad(
        "date,a\n2000-01-01,1\n2000-01-02,1\n2000-01,1\n",
        "'2000-01' twice, in line 2 and line 4. .*freq=.*feature=",
    ),
    "name twice": bad("date,a\nJan,1\nFeb,1\nJan,1\n", "'Jan' twice, in line 2 and line 4"),
    "total": bad(
        PLAIN + "Total,9,12\n",
        r"two kinds: '1990' \(line 2\) is a number, 'Total' \(line 5\) is text.*remove.*totals",
    ),
    "infinite time": bad(PLAIN.replace("1992", "inf"), r"two kinds: .*'inf' \(line 4\) is text"),
    "no time": bad(PLAIN.replace("1991", ""), "line 3 has no time. Fill it in"),
    "time NA": bad(PLAIN.replace("1991", "NA"), "line 3 has no time. Fill it in"),
    # Other formats.
    **{
        f"{name} in {kind}": bad(content, f"^data.{kind}, {PLACE}{pattern}", name=f"data.{kind}")
        for name, value, pattern in [
            ("negative", -1.5, r"-1\.5 is negative\. .*non-negative"),
            ("infinite", np.inf, "inf is infinite.*finite"),
        ]
        for kind, content in {
            "npy": bytes_of(np.save, changed(X, (2, 3), value)),
            "npz": bytes_of(sparse.save_npz, changed(SPARSE.tolil(), (2, 3), value).tocsr()),
            "mtx": bytes_of(mmwrite, changed(SPARSE.tolil(), (2, 3), value).tocoo()),
        }.items()
    },
    "NaN in sparse": bad(
        bytes_of(sparse.save_npz, changed(SPARSE.tolil(), (2, 3), np.nan).tocsr()),
        f"{PLACE}nan is not a number. Sparse data.*mask it",
        name="data.npz",
    ),
    "objects": bad(
        bytes_of(np.save, X.astype(object), allow_pickle=True),
        r"^data.npy cannot be .*: it .* holds Python objects\. Save .*astype\(float\)",
        name="data.npy",
    ),
    "objects in an archive": bad(
        bytes_of(np.savez, X=X.astype(object)),
        r"holds X \(Python objects\)\. Keep",
        name="data.npz",
    ),
    "vector": bad(
        bytes_of(np.save, X[0]), r"float64 .*\(4,\): expected .*two dimensions", name="a.npy"
    ),
    "complex": bad(bytes_of(np.save, X * 1j), "complex128 .*expected real numbers", name="a.npy"),
    "words": bad(bytes_of(np.save, X.astype(str)), "<U32 .*expected real numbers", name="a.npy"),
    "no features": bad(
        bytes_of(np.save, X[:, :0]), r"6 × 0 \(times × features\)\. Give", name="a.npy"
    ),
    "garbage": bad(
        b"garbage", r"a.npy cannot .*: it is damaged or .*objects\. Save it again", name="a.npy"
    ),
    "npy cut short": bad(bytes_of(np.save, X)[:-8], "a.npy cannot be read.*again", name="a.npy"),
    "npz cut short": bad(bytes_of(np.savez, X=X)[:-8], "a.npz cannot be read.*again", name="a.npz"),
    "two tables": bad(
        bytes_of(np.savez, a=X, b=X[:2], years=YEARS),
        r"holds a \(float64 \(6, 4\)\), b \(float64 \(2, 4\)\), years .*X, data, counts, power",
        name="a.npz",
    ),
    "two known names": bad(
        bytes_of(np.savez, X=X, data=X), "holds X .*, data .*Keep", name="a.npz"
    ),
    "no arrays": bad(bytes_of(np.savez), r"holds nothing\. Keep", name="a.npz"),
    **{
        f"{form} with indices outside": bad(damaged_indices(form), "a.npz cannot be", name="a.npz")
        for form in ("csr", "csc", "bsr")
    },
    "not Matrix Market": bad(
        "1 2\n3 4\n", "a.mtx cannot be read as Matrix Market.*again", name="a.mtx"
    ),
    "Matrix Market cut short": bad(
        bytes_of(mmwrite, SPARSE)[:-30],
        "a.mtx cannot be read as Matrix Market",
        name="a.mtx",
    ),
    "not Parquet": bad("PAR1", "a.parquet cannot be read as Parquet.*again", name="a.parquet"),
    "text in Parquet": bad(
        parquet(frame().rename(columns=str).assign(war=["a", None, "3", *"bcd"])),
        r"row 0 \(time '1990'\), column 'war' \(counted from 0\): 'a' is not .*\(5 such cells",
        name="a.parquet",
    ),
    "first text in Parquet": bad(
        parquet(frame().assign(war=[None, *"bcdef"], peace=[*"uvwxy", None])),
        r"row 0 \(time '1990'\), column 'peace' .*'u' is not a number \(10 such cells",
        name="a.parquet",
    ),
    "feature without a name in Parquet": bad(
        parquet(pd.DataFrame({"word": ["war", None], "1": 1, "2": 2, "3": 3})),
        "the feature in row 1 has no name",
        name="a.parquet",
        transpose=True,
    ),
    "dates in Parquet": bad(
        parquet(frame().assign(war=pd.Timestamp("2000-01-01"))),
        "'war' .*'2000-01-01",
        name="a.parquet",
    ),
    "negative in Parquet": bad(
        parquet(frame(-X)),
        r"row 0 \(time '1990'\), column 'war' .*is negative \(24 such",
        name="a.parquet",
    ),
    "date missing in Parquet": bad(
        parquet(pd.DataFrame({"when": pd.to_datetime(["2000-01-01", None, "2002-01-01"]), "a": 1})),
        "row 1 has no time",
        name="a.parquet",
    ),
    "two levels in Parquet": bad(
        parquet(pd.DataFrame({"year": YEARS, "day": 1, "a": 2}).set_index(["year", "day"])),
        r"index of 2 levels \(year, day\).*unstack",
        name="a.parquet",
    ),
    "empty cells": bad(";\n;", r"^data.csv has empty cells only\. Give it a line per time step"),
    "spreadsheet": bad(
        b"", r"data.xlsx has the suffix '.xlsx'.*\.csv, .*\.mtx\.gz.*as CSV", name="data.xlsx"
    ),
    "no suffix": bad(b"", r"^data.csv is empty", name="data"),
}


@pytest.mark.parametrize("case", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_file_is_refused_clearly(write, case):
    content, pattern, name, transpose = case
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the cases hold the patterns
        read_table(write(content, name), transpose=transpose)
    assert re.search(pattern, str(refusal.value), re.DOTALL), str(refusal.value)


def test_absent_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.csv: there is no such file"):
        read_table(tmp_path / "absent.csv")


def test_locked_file_is_not_called_damaged(write, monkeypatch):
    path = write(bytes_of(np.save, X), "data.npy")

    def refuse(*args):
        raise PermissionError("locked")

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(PermissionError, match=r"^locked$"):
        read_table(path)


@pytest.mark.parametrize("module", ["pandas", "pyarrow"])
def test_parquet_without_its_libraries_says_what_to_install(write, monkeypatch, module):
    path = write(parquet(frame()), "data.parquet")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=re.escape('pip install "temporalnmf[io]"')):
        read_table(path)


def test_csv_needs_neither_pandas_nor_the_compiler(write):
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from temporalnmf.reading import read_table\n"
        f"print(read_table({str(write(PLAIN))!r}).X.sum(), 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["21.0", "False"]


def test_importing_the_reader_does_not_load_pandas():
    code = "import sys, temporalnmf.reading; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_tables_of_many_columns_are_read(write):
    counts = np.random.default_rng(0).poisson(3.0, size=(60, 5000))
    lines = [f"{n}," + ",".join(map(str, row)) for n, row in enumerate(counts.tolist())]
    path = write(",".join(["year", *(f"w{f}" for f in range(5000))]) + "\n" + "\n".join(lines))
    table = read_table(path)
    np.testing.assert_array_equal(table.X, counts)


# Times on a grid

MONTHS = ["2020-01", "2020-02", "2020-03", "2020-05"]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (MONTHS, ["2020-01", "2020-02", "2020-03", "2020-04", "2020-05"]),
        (["2019-12-31", "2020-12-31", "2022-12-31"],
         ["2019-12-31", "2020-12-31", "2021-12-31", "2022-12-31"]),
        (["1931", "1932", "1934", "1935"], [1931, 1932, 1933, 1934, 1935]),
        (["1935", "1931", "1934", "1932"], [1931, 1932, 1933, 1934, 1935]),
        (["9", "11", "10"], [9, 10, 11]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("transpose", [False, True])
def test_times_are_sorted_and_absent_ones_are_missing(write, times, expected, transpose):
    given = dict(zip(times, enumerate(times, 1), strict=True))
    frame = pd.DataFrame({"war": range(1, len(times) + 1), "peace": 7}, index=times)
    path = write((frame.T if transpose else frame).to_csv())
    rows = [
        [given[str(time)][0], 7] if str(time) in given else [np.nan, np.nan] for time in expected
    ]
    table = read_table(path, transpose=transpose)
    check(table, rows, expected, ["war", "peace"])
    n_absent = len(expected) - len(times)
    assert any(f"absent periods: {n_absent} (" in note for note in table.notes) == (n_absent > 0)
    assert ("sorted by time" in table.notes) == (times != sorted(times, key=expected_key))


def expected_key(label):
    return float(label) if label.isdigit() else label


def test_uneven_times_stay_as_they_are(write):
    table = read_table(write("year,war\n1900,1\n1903,2\n1906,3\n1907,4\n1918,5\n"))
    check(table, [[1], [2], [3], [4], [5]], [1900, 1903, 1906, 1907, 1918], ["war"])
    assert table.notes[-1] == "times are not evenly spaced: taken as even, in their order"


def test_times_in_a_named_column_are_read_and_sorted(write):
    text = "word count,when,war\n5,2001-03-01,1\n6,2001-01-01,2\n7,2001-02-01,3\n"
    table = read_table(write(text), time="when")
    check(table, [[6, 2], [7, 3], [5, 1]], ["2001-01", "2001-02", "2001-03"],
          ["word count", "war"])  # fmt: skip
    assert table.notes[0] == "times are in column 'when'"
    with pytest.raises(ValueError, match=r"line 2 \(time '2001-03-01'\), column 'war': 'x'"):
        read_table(write(text.replace(",1\n", ",x\n")), time="when")


def test_duplicate_names_around_a_named_time_are_placed(write):
    text = "war,when,war\n1,2001,1\n6,2002,2\n7,2003,3\n"
    with pytest.raises(ValueError, match="'war' twice, in column 1 and column 3"):
        read_table(write(text), time="when")


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_exposure_is_no_feature(write, name):
    frame = pd.DataFrame(
        {"month": MONTHS, "war": [1, 2, 3, 4], "issues": [10, 20, 30.5, 40], "tax": 5}
    )
    path = write(parquet(frame) if name.endswith("parquet") else frame.to_csv(index=False), name)
    table = read_table(path, exposure="issues")
    assert table.features.tolist() == ["war", "tax"]
    np.testing.assert_allclose(table.exposure, [10, 20, 30.5, np.sqrt(30.5 * 40), 40])
    assert table.notes[-1] == "exposure of absent periods: interpolated"
    np.testing.assert_array_equal(table.X[:, 0], [1, 2, 3, np.nan, 4])


def test_exposure_is_read_from_a_transposed_table(write):
    text = "word,1990,1991,1992\nwar,1,2,3\nsize,4,5,6\n"
    table = read_table(write(text), transpose=True, exposure="size")
    assert table.exposure.tolist() == [4, 5, 6]
    assert table.features.tolist() == ["war"]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("year,a,n\n1,1,2\n2,1,0\n3,1,1\n", "line 3: the exposure 'n' is 0. .*positive"),
        ("year,a,n\n1,1,2\n2,1,\n3,1,1\n", "line 3: the exposure 'n' is missing"),
        ("year,a,m\n1,1,2\n2,1,1\n3,1,1\n", r"exposure='n' is not .* 'a', 'm'"),
        ("year,n\n1,1\n2,1\n3,1\n", "no feature beside the exposure 'n'"),
    ],
)
def test_bad_exposure_is_refused_with_the_reason(write, text, pattern):
    with pytest.raises(ValueError, match=pattern):
        read_table(write(text), exposure="n")


def test_exposure_is_read_from_a_sparse_table(write):
    sizes = np.arange(1, 10)
    counts = np.column_stack([COUNTS[:, :2], sizes, COUNTS[:, 2:]])
    path = write(bytes_of(sparse.save_npz, sparse.csr_array(counts)), "data.npz")
    table = read_table(path, exposure="x2")
    np.testing.assert_array_equal(table.X.toarray(), COUNTS)
    np.testing.assert_array_equal(table.exposure, sizes)
    assert table.features.tolist() == ["x0", "x1", "x3", "x4", "x5"]


def test_exposure_may_be_missing_where_all_is(write):
    table = read_table(write("year,a,n\n1,1,2\n2,,\n3,1,5\n"), exposure="n")
    np.testing.assert_allclose(table.exposure, [2, np.sqrt(10), 5])


def test_absent_exposures_are_interpolated_in_logarithms(write):
    """Beyond the ends there is the nearest one."""
    text = "year,a,n\n1,,\n2,1,2\n3,,\n4,,\n5,1,54\n6,,\n"
    table = read_table(write(text), exposure="n")
    np.testing.assert_allclose(table.exposure, [2, 2, 6, 18, 54, 54])
    assert "exposure of absent periods: interpolated" in table.notes
    whole = read_table(write("year,a,n\n1,1,2\n2,1,2\n3,1,5\n"), exposure="n")
    assert not any("interpolated" in note for note in whole.notes)


def test_wide_tables_are_added_up_by_periods_as_pandas_does(write):
    rng = np.random.default_rng(3)
    days = pd.date_range("2001-01-30", periods=200, freq="D")[rng.random(200) < 0.3]
    days = days[(days.month != 4)]
    frame = pd.DataFrame(rng.poisson(3.0, (len(days), 3)).astype(float), days, list("abc"))
    frame = frame.mask(rng.random(frame.shape) < 0.3)
    frame["docs"] = rng.integers(1, 9, len(days))
    frame.loc[frame.index.month == 3, "b"] = np.nan
    table = read_table(write(frame.sample(frac=1, random_state=0).to_csv()), freq="M",
                       exposure="docs")  # fmt: skip
    expected = frame.resample("MS").sum(min_count=1)
    np.testing.assert_array_equal(table.X, expected[list("abc")])
    docs = np.log(expected["docs"].replace(0, np.nan)).interpolate()
    np.testing.assert_allclose(table.exposure, np.exp(docs))
    assert time_texts(table.times) == [f"{month:%Y-%m}" for month in expected.index]
    rows, cells = frame.resample("MS").size(), frame[list("abc")].resample("MS").count()
    partial = ((cells > 0) & cells.lt(rows, axis=0)).to_numpy().sum()
    assert partial > 0
    assert f"sums that leave out missing cells: {partial}" in table.notes
    assert np.isnan(table.X[time_texts(table.times).index("2001-03"), 1])


@pytest.mark.parametrize("name", ["data.csv", "frame"])
def test_partial_ends_of_wide_tables_are_noted_or_left_out(write, name):
    days = pd.date_range("2019-12-12", "2020-01-14")
    frame = pd.DataFrame({"a": np.arange(34.0), "b": 2.0, "n": 1}, days)
    frame.iloc[-1, 0] = np.nan

    def read(**options):
        if name == "frame":
            return as_table(frame, freq="W", **options)
        return read_table(write(frame.to_csv()), freq="W", **options)

    table = read(exposure="n")
    assert table.notes[-4:-2] == (
        "the first period, 2019-12-09, holds data of 4 of 7 days: it may be too low",
        "the last period, 2020-01-13, holds data of 2 of 7 days: forecasts from it may be too low",
    )
    assert table.notes[-1].startswith("exposure is added up within periods: 2 to 7 times per")
    whole = read(exposure="n", drop_partial=True)
    assert whole.notes[-1] == "exposure is added up within periods: 7 times per period"
    assert time_texts(whole.times) == time_texts(table.times)[1:-1]
    np.testing.assert_array_equal(whole.X, table.X[1:-1])
    np.testing.assert_array_equal(whole.exposure, [7, 7, 7, 7])
    left = 0 + 1 + 2 + 3 + 32 + 6 * 2
    assert f"rows left out: 6, total {left}" in whole.notes
    assert whole.X.sum() + left == np.nansum(table.X)
    assert whole.timeline.rows.min() == 0


def test_drop_partial_without_times_or_periods_is_refused(write):
    for text in (PLAIN, "a,b\n1,2\n2,3\n5,4\n"):
        with pytest.raises(ValueError, match="drop_partial=True"):
            read_table(write(text), drop_partial=True)


def test_periods_that_leave_too_few_steps_are_refused(write):
    path = write("date,a\n2001-01-01,1\n2001-01-02,1\n2002-01-05,1\n")
    with pytest.raises(ValueError, match=r"freq='Y' makes 2 steps.*at least 3 .*shorter"):
        read_table(path, freq="Y")


@pytest.mark.parametrize(
    ("text", "options", "pattern"),
    [
        (PLAIN, {"time": "when"}, r"time='when' is not .* 'year', 'war', 'peace'"),
        ("a,a\n1,2\n", {"time": "a"}, "time='a' names several columns"),
        (PLAIN, {"freq": "M"}, "freq='M' does not suit .* numbers such as 1990. .*5, or Y"),
        ("a,b\n1,2\n2,3\n5,4\n", {"freq": "M"}, "freq='M' needs times; .*time="),
        (PLAIN, {"value": "war"}, "value='war' is for long tables.*feature="),
        (PLAIN, {"feature": "war"}, "feature='war' is for long tables.*time="),
        (PLAIN, {"time": "year", "transpose": True}, "transpose=True .*Leave out one"),
    ],
)
def test_bad_options_are_refused_with_the_reason(write, text, options, pattern):
    with pytest.raises(ValueError, match=pattern):
        read_table(write(text), **options)


def test_arrays_have_no_columns_to_name(write):
    path = write(bytes_of(np.save, X), "data.npy")
    with pytest.raises(ValueError, match=r"time='year' cannot be found: .* has no named columns"):
        read_table(path, time="year")


@pytest.mark.parametrize("header", ["Monat", "month", None])
@pytest.mark.parametrize("sign", [".", "/", "-"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_months_may_stand_before_years(write, header, sign, separator):
    lines = [f"{month},{n},7.5" for n, month in enumerate(["01.2019", "02.2019", "12.2018"])]
    text = "\n".join([f"{header},a,b"] * (header is not None) + lines)
    table = read_table(write(text.replace("01.2", f"01{sign}2").replace("02.2", f"02{sign}2")
                             .replace("12.2", f"12{sign}2").replace(",", separator)))  # fmt: skip
    check(table, [[2, 7.5], [0, 7.5], [1, 7.5]], ["2018-12", "2019-01", "2019-02"],
          ["a", "b"] if header else ["x0", "x1"])  # fmt: skip


@pytest.mark.parametrize("corner", ["word,", ""])
def test_months_may_stand_before_years_in_the_first_line(write, corner):
    text = f"{corner}12.2018,01.2019,02.2019\n{'a,' if corner else ''}1,2,3\n"
    table = read_table(write(text), transpose=True)
    check(table, [[1], [2], [3]], ["2018-12", "2019-01", "2019-02"], ["a" if corner else "x0"])


def test_a_row_that_adds_up_others_is_a_time_if_its_label_is_like_theirs(write):
    table = read_table(write("season,a\nspring,1\nsummer,2\nautumn,3\n"))
    assert table.X.ravel().tolist() == [1, 2, 3]
    table = read_table(write("season,a\nJan 19,1\nFeb 19,2\nlater,4\n"))
    assert table.times.tolist() == ["Jan 19", "Feb 19", "later"]


def test_a_column_that_dwarfs_the_others_is_noted(write):
    text = "year,war,population,tax\n1990,1,9000,3\n1991,2,9100,\n1992,,9200,3\n"
    table = read_table(write(text))
    assert table.notes[-1] == (
        "column 'population' holds 100.0 % of the total: is it an exposure, such as a "
        "population, rather than a feature?"
    )
    assert not any("an exposure" in n for n in read_table(write(text), exposure="population").notes)
    for sizes, remarked in {"91 9": True, "90 10": False, "89 11": False, "0 0": False}.items():
        rows = "".join(f"{year},{sizes.replace(' ', ',')}\n" for year in range(1990, 1993))
        notes = read_table(write("year,a,b c\n" + rows)).notes
        assert any("of the total" in note for note in notes) == remarked
    sized = read_table(write("year,n,a,b\n1,2,99,1\n2,2,99,1\n3,2,99,1\n"), exposure="n")
    assert not any("of the total" in note for note in sized.notes)
    swapped = read_table(
        write("word,1990,1991,1992\nwar,1,2,3\nall men,99,98,97\n"), transpose=True
    )
    assert "row 'all men' holds 98.0 % of the total" in swapped.notes[-1]
    one = read_table(write("year,a\n1990,1\n1991,2\n1992,3\n"))
    assert not any("of the total" in note for note in one.notes)


def test_tables_are_shown_in_short(write):
    table = read_table(write("year,war,peace\n1999,3,5\n2000,,2\n2002,4,1\n"))
    assert repr(table).splitlines() == [
        "TimeTable: 4 steps × 2 features, 1999 to 2002",
        "  missing cells: 3 of 8",
        *(f"  {note}" for note in table.notes),
    ]
    thin = read_table(write(bytes_of(sparse.save_npz, SPARSE), "data.npz"))
    share = SPARSE.nnz / 45
    assert f"sparse, {100 * share:.2f} % of the cells are not zero\n" in repr(thin)


# Spreadsheets


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_windows_1252_is_recognised(write, encoding, name):
    data = "Jahr,Äpfel,€uro – Übrige\n1990,1,2\n1991,3,4\n1992,5,6\n".encode(encoding)
    data = data.replace(b"Jahr", b"year")
    table = read_table(write(gzip.compress(data) if name.endswith("gz") else data, name))
    assert table.features.tolist() == ["Äpfel", "€uro – Übrige"]
    assert ("read as Windows-1252" in table.notes) == (encoding == "cp1252")


@pytest.mark.parametrize("header", ["year;a;b\n", ""])
def test_points_are_read_as_thousands_beside_decimal_commas(write, header):
    text = f"{header}1990;1.041,98;2\n1991;1.041;12.345.678\n1992;7,5;-\n"
    table = read_table(write(text))
    values = np.array([[1041.98, 2], [1041, 12345678], [7.5, np.nan]])
    np.testing.assert_array_equal(table.X[:, -2:], values)
    assert "commas are decimal commas" in table.notes
    assert "points in numbers such as 1.234 separate thousands" in table.notes


@pytest.mark.parametrize("word", ["n/a", "N/A", "#N/A", "#NA", "-", ".", "–", "None", "NONE"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_other_words_for_missing_are_read_and_noted(write, word, separator):
    text = f"year,war,peace\n1990,1.5,{word}\n1991,{word},4\n1992,NA,6\n"
    text = text.replace(",", separator)
    if separator == ";":
        text = text.replace("1.5", "1,5")
    table = read_table(write(text))
    np.testing.assert_array_equal(table.X, [[1.5, np.nan], [np.nan, 4], [np.nan, 6]])
    assert "missing cells: 3 of 6" in table.notes
    assert f"cells taken as missing: {word!r} (2)" in table.notes


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_empty_columns_and_rows_at_the_end_are_left_out(write, separator):
    text = "\ufeffyear,war,peace,,\r\n1990,1,2,,\r\n1991,,,,\r\n1992,5,6, ,\r\n,,,,\r\n,,,,\r\n"
    table = read_table(write(text.replace(",", separator)))
    check(table, [[1, 2], [np.nan, np.nan], [5, 6]], [1990, 1991, 1992], ["war", "peace"])
    assert "empty columns at the end left out: 2" in table.notes
    assert "empty rows at the end left out: 2" in table.notes


def test_columns_and_rows_that_hold_something_stay(write):
    notes = read_table(write("year,a,b\n1990,1,\n1991,2,\n1992,,\n")).notes
    assert not any("left out" in note for note in notes)
    with pytest.raises(ValueError, match="the feature in column 4 has no name"):
        read_table(write("year,a,b,\n1990,1,2,\n1991,2,2,7\n1992,,1,\n"))


def test_thousands_in_quotes_are_read(write):
    table = read_table(write('year,a,b\n1990,"1,234","1,234,567.5"\n1991,2,3\n1992,"12,000",1\n'))
    check(table, [[1234, 1234567.5], [2, 3], [12000, 1]], [1990, 1991, 1992], ["a", "b"])
    assert "commas in numbers such as 1,234 separate thousands" in table.notes
    assert not any("thousand" in note for note in read_table(write(PLAIN)).notes)


@pytest.mark.parametrize("cell", ["1,5", "12,34", "1,2345", ",123", "1,,234"])
def test_commas_that_separate_no_thousands_are_refused(write, cell):
    with pytest.raises(ValueError, match=re.escape(f"{cell!r} is not a number")):
        read_table(write(f'year,a\n1990,"{cell}"\n1991,2\n1992,"1,234"\n'))


# Long tables taken for wide ones

LONG = "date,word,count\n2001-01,war,3\n2001-01,tax,4\n2001-02,war,5\n2001-03,war,5\n"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (LONG, "time='date', feature='word', value='count'"),
        (LONG.replace("word", "the word"), "time='date', feature='the word', value='count'"),
        ("date,count,word\n2001-01,3,war\n2001-01,4,tax\n2001-02,5,war\n2001-03,5,war\n",
         "time='date', feature='word', value='count'"),
        ("date,word\n2001-01,war\n2001-01,tax\n2001-02,war\n", "time='date', feature='word'."),
    ],
)  # fmt: skip
def test_a_long_table_is_recognised(write, text, options):
    pattern = f"the time '2001-01' twice, in line 2 and line 3, and text .*{re.escape(options)}"
    with pytest.raises(ValueError, match=pattern):
        read_table(write(text))


def test_text_beside_distinct_times_is_no_long_table(write):
    with pytest.raises(ValueError, match=r"line 2 .*'war' is not a number"):
        read_table(write("date,word,count\n2001,war,3\n2002,tax,4\n2003,war,5\n"))


# Containers


@pytest.mark.parametrize("make", [lambda f: f, lambda f: f.rename_axis(None)])
def test_pandas_frames_are_read_by_their_index(make):
    index = pd.date_range("2001-01-31", periods=6, freq="ME")[[3, 0, 1, 5, 4]]
    table = as_table(make(pd.DataFrame(X[:5], index.rename("month"), WORDS)))
    expected = np.full((6, 4), np.nan)
    expected[[3, 0, 1, 5, 4]] = X[:5]
    ends = [f"{end:%Y-%m-%d}" for end in pd.date_range("2001-01-31", periods=6, freq="ME")]
    check(table, expected, ends, WORDS)


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy"])
def test_frames_with_a_column_of_times_are_read(kind):
    frame = pd.DataFrame(X, columns=WORDS)
    frame.insert(2, "when", pd.period_range("2001-01", periods=6, freq="M").to_timestamp())
    if kind != "pandas":
        frame = pl.from_pandas(frame)
        frame = frame.lazy() if kind == "lazy" else frame
    months = [f"2001-0{m}" for m in range(1, 7)]
    check(as_table(frame, time="when"), X, months, WORDS)
    table = as_table(frame, time="when", exposure="war")
    np.testing.assert_array_equal(table.exposure, X[:, 0])
    np.testing.assert_array_equal(table.X, X[:, 1:])


def test_time_may_name_the_index():
    check(as_table(frame(), time="year"), GAPS, YEARS, WORDS)


def test_frames_with_an_index_of_periods_are_read():
    weeks = pd.period_range("2001-01-01", periods=6, freq="W")
    check(as_table(pd.DataFrame(X, weeks, WORDS)), X,
          [f"{week.start_time:%Y-%m-%d}" for week in weeks], WORDS)  # fmt: skip


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("dim", "index", "options"),
    [
        ("time", YEARS, {}),
        ("Month", pd.date_range("2001", periods=6, freq="MS"), {}),
        ("season", pd.date_range("2001", periods=6, freq="MS"), {}),
        ("season", YEARS, {"time": "season"}),
    ],
)
def test_arrays_of_xarray_are_read_by_their_dimensions(transposed, dim, index, options):
    dates = index is not YEARS
    array = xarray.DataArray(GAPS, dims=(dim, "word"), coords={dim: index, "word": WORDS})
    table = as_table(array.T if transposed else array, **options)
    expected = [f"{date:%Y-%m}" for date in index] if dates else index
    check(table, GAPS, expected, WORDS)


def test_arrays_of_xarray_need_no_coordinates():
    check(as_table(xarray.DataArray(X)), X, *unnamed(X.shape))


@pytest.mark.parametrize(
    ("data", "pattern"),
    [
        (X, "of type ndarray: expected a pandas or polars frame"),
        (sparse.csr_array(COUNTS), "of type csr_array"),
        (xarray.Dataset({"a": (("x", "y"), X)}), r"Dataset with dimensions x, y.*data\['counts'\]"),
        (xarray.DataArray(X[0]), "DataArray with dimensions dim_0: expected .* two"),
        (pl.Series([1, 2]), "of type Series"),
        (pd.Series([1, 2]), "of type Series"),
    ],
)
def test_other_containers_are_refused(data, pattern):
    with pytest.raises(TypeError, match=pattern):
        as_table(data)


def test_containers_are_checked_as_files_are():
    with pytest.raises(ValueError, match=r"the frame, row 0 \(time '1990'\), column 'war' .*negat"):
        as_table(frame(-X))
    array = xarray.DataArray(-X, dims=("time", "word"), coords={"time": YEARS})
    with pytest.raises(ValueError, match=r"the array, row 0 \(time '1990'\), column 0 .*negative"):
        as_table(array)
    with pytest.raises(ValueError, match="feature='word' is for long tables, and an xarray"):
        as_table(array, time="time", feature="word")


# Pipes, and files whose name does not tell their format


def through_a_pipe(tmp_path, data, **options):
    """What is read from a pipe, which can be read once, and not from another place."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    # If nobody reads, it waits for ever: then it ends with the process.
    threading.Thread(target=path.write_bytes, args=(data,), daemon=True).start()
    try:
        return read_table(path, **options)
    finally:
        path.unlink()


def files_of_all_formats():
    frame = pd.DataFrame(X, columns=WORDS)
    text = frame.to_csv(index=False).encode()
    market = bytes_of(mmwrite, sparse.coo_array(X))
    return {
        "csv": text, "tsv": text.replace(b",", b"\t"), "csv.gz": gzip.compress(text),
        "mtx": market, "mtx.gz": gzip.compress(market), "npy": bytes_of(np.save, X),
        "npz": bytes_of(np.savez, X=X), "parquet": parquet(frame),
    }  # fmt: skip


def test_pipes_and_files_without_a_suffix_are_known_by_their_content(tmp_path):
    for suffix, data in files_of_all_formats().items():
        named, bare = tmp_path / f"x.{suffix}", tmp_path / "x"
        for path in (named, bare):
            path.write_bytes(data)
        expected = read_table(named)
        for table in (through_a_pipe(tmp_path, data), read_table(bare)):
            assert_same(table, expected)


def assert_same(table, expected):
    one, other = (sparse.csr_array(t.X).toarray() for t in (table, expected))
    np.testing.assert_array_equal(one, other)
    assert table.features.tolist() == expected.features.tolist()
    assert table.notes == expected.notes


def test_long_tables_come_through_pipes(tmp_path):
    text = b"day,word\n2001-01-01,a\n2001-01-02,b\n2001-01-03,a\n"
    table = through_a_pipe(tmp_path, text, time="day", feature="word")
    assert table.X.tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


def test_errors_name_pipes_and_devices(tmp_path):
    with pytest.raises(ValueError, match=r"^pipe.csv, line 3.*'many' is not a number"):
        through_a_pipe(tmp_path, b"time,a\n1,2\n2,many\n3,4\n")
    with pytest.raises(ValueError, match="/dev/zero is a device"):
        read_table("/dev/zero")


def test_commands_read_pipes_once(tmp_path):
    """Data, checksum and all: from standard input, a redirected file and a named pipe."""
    file, model = tmp_path / "x.csv", tmp_path / "model.npz"
    file.write_text(PLAIN)
    digest = hashlib.sha256(PLAIN.encode()).hexdigest()
    command = [sys.executable, "-m", "temporalnmf", "info", "/dev/stdin", "--json"]
    piped = subprocess.run(command, input=PLAIN.encode(), capture_output=True, check=True).stdout
    with file.open() as opened:
        redirected = subprocess.run(command, stdin=opened, capture_output=True, check=True).stdout
    for answer in (piped, redirected):
        known = json.loads(answer)
        assert (known["sha256"], known["n_steps"]) == (digest, 3)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=(PLAIN,), daemon=True).start()
    done("fit", pipe, "--components", 2, "--out", model)
    fitted = load(model)
    assert fitted.times_.tolist() == [1990, 1991, 1992]
    assert fitted.provenance_["sha256"] == digest


# Columns that add up the others


@pytest.mark.parametrize("name", ["Total", "Gesamt", "words"])
def test_a_feature_that_is_the_sum_of_all_others_is_refused(write, name):
    table = frame(X)
    table.insert(2, name, X.sum(axis=1))
    pattern = f"feature '{name}' is the sum of all others. Remove it.*exposure="
    text = table.to_csv()
    with pytest.raises(ValueError, match=f"data.csv: the {pattern}"):
        read_table(write(text))
    with pytest.raises(ValueError, match=f"the frame: the {pattern}"):
        as_table(table)
    with pytest.raises(ValueError, match=pattern):
        read_table(write(table.T.to_csv()), transpose=True)
    long = table.melt(ignore_index=False, var_name="word").to_csv()
    with pytest.raises(ValueError, match=pattern):
        read_table(write(long), time="year", feature="word", value="value")
    assert read_table(write(text), exposure=name).features.tolist() == WORDS.tolist()
