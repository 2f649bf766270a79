"""Long tables, a row per time and feature, are added up; nothing is lost unsaid."""

import gzip
import io
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from temporalnmf.reading import as_table, containers, long, long_files, read_table
from temporalnmf.timeline import time_texts

NAMES = {"time": "date", "feature": "word", "value": "count"}


def rows(n=400, n_days=30, n_words=12, seed=0, scale=1.0):
    """Rows in random order, with cells that have several; day 7 has none."""
    rng = np.random.default_rng(seed)
    day = rng.integers(n_days, size=n)
    day[:2] = 0, n_days - 1
    day[day == 7] = 8
    dates = pd.Timestamp("2001-01-20") + pd.to_timedelta(day, unit="D")
    words = np.array([f"word {w}" if w % 3 else f'"q", {w}' for w in range(n_words)])
    return pd.DataFrame(
        {
            "date": dates.strftime("%Y-%m-%d"),
            "word": words[np.minimum(rng.geometric(0.3, size=n) - 1, n_words - 1)],
            "count": rng.poisson(2.0, size=n) * scale,
        }
    )


def oracle(frame):
    """Days × words as pandas makes them; days without a row are NaN."""
    wide = frame.groupby(["date", "word"])["count"].sum().unstack(fill_value=0.0)
    days = pd.date_range(wide.index.min(), wide.index.max()).strftime("%Y-%m-%d")
    return wide.reindex(days).sort_index(axis=1)


def check(table, wide, exact=True):
    """Same numbers, labels and gaps, sparse or dense."""
    X = table.X
    if sparse.issparse(X):
        assert isinstance(X, sparse.csr_array)
        assert X.has_canonical_format
        gaps = wide.isna().all(axis=1).to_numpy()
        observed = np.ones(len(gaps), dtype=bool) if table.observed is None else table.observed
        np.testing.assert_array_equal(observed, ~gaps)
        assert (table.observed is None) == (not gaps.any())
        wide, X = wide.fillna(0.0), X.toarray()
    else:
        assert table.observed is None
    assert X.dtype == np.float64
    np.testing.assert_allclose(X, wide.to_numpy(), rtol=0 if exact else 1e-12)
    assert time_texts(table.times) == list(wide.index)
    assert table.features.tolist() == list(wide.columns)
    assert table.times is table.timeline.labels


@pytest.fixture
def write(tmp_path):
    def write(content, name="long.csv"):
        path = tmp_path / name
        if isinstance(content, pd.DataFrame):
            if name.endswith("parquet"):
                content.to_parquet(path, index=False)
                return path
            content = content.to_csv(index=False)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture(
    params=[pytest.param(100, marks=pytest.mark.long), 1000, 1 << 24],
    ids=["small blocks", "some blocks", "one block"],
)
def blocks(request, monkeypatch):
    monkeypatch.setattr(long_files, "BLOCK_BYTES", request.param)
    monkeypatch.setattr(long_files, "BLOCK_ROWS", max(request.param // 30, 1))
    monkeypatch.setattr(containers, "BLOCK_ROWS", max(request.param // 30, 1))


@pytest.mark.pairwise
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n_words", [3, 12, 300])
@pytest.mark.parametrize("name", ["long.csv", "long.parquet", "frame", "polars"])
@pytest.mark.usefixtures("blocks")
def test_sums_are_those_of_pandas(write, seed, n_words, name):
    frame = rows(seed=seed, n_words=n_words)
    if name in ("frame", "polars"):
        table = as_table(frame if name == "frame" else pl.from_pandas(frame), **NAMES)
    else:
        table = read_table(write(frame, name), **NAMES)
    check(table, oracle(frame))
    total = frame["count"].sum()
    assert table.notes[0] == f"rows read: 400, total {total:,.0f}; dropped: none"
    assert "absent periods: 1 (2001-01-27)" in table.notes
    assert table.notes[-1].startswith("cells without a row are zero; times without any row")


def test_a_file_is_read_in_several_blocks(write, monkeypatch):
    frame = rows()
    seen = []
    read = long_files.text_blocks

    def counted(*args):
        for block in read(*args):
            seen.append(len(block[0]))
            yield block

    monkeypatch.setattr(long_files, "text_blocks", counted)
    monkeypatch.setattr(long_files, "BLOCK_BYTES", 1000)
    read_table(write(frame), **NAMES)
    assert sum(seen) == 400
    assert len(seen) > 5


@pytest.mark.parametrize("scale", [0.1, 1e-9, 1e9])
@pytest.mark.usefixtures("blocks")
def test_values_need_not_be_whole(write, scale):
    frame = rows(scale=scale)
    check(read_table(write(frame), **NAMES), oracle(frame), exact=False)


def test_single_values_are_read_to_the_last_bit(write):
    values = np.exp(np.random.default_rng(0).normal(scale=50.0, size=300))
    frame = pd.DataFrame({"t": np.repeat([1, 2, 3], 100), "f": np.tile(range(100), 3), "v": values})
    table = read_table(write(frame), time="t", feature="f", value="v")
    np.testing.assert_array_equal(table.X, values.reshape(3, 100))
    assert table.features.tolist() == [str(f) for f in range(100)]  # as numbers, not as text


def test_tables_are_dense_above_a_quarter_of_non_zeros(write):
    dense = read_table(write(rows(n=4000)), **NAMES)
    assert isinstance(dense.X, np.ndarray)
    assert np.isnan(dense.X[7]).all()
    assert np.isnan(dense.X).sum() == dense.X.shape[1]
    thin = read_table(write(rows(n=4000, n_words=900, n_days=900)), **NAMES)
    assert sparse.issparse(thin.X)
    assert not thin.observed[7]


def test_without_values_each_row_counts_one(write):
    frame = rows()
    table = read_table(write(frame), time="date", feature="word")
    check(table, oracle(frame.assign(count=1.0)))
    assert table.notes[0] == "rows read: 400, total 400; dropped: none"


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("name", "options"),
    {
        "crlf.csv": {"lineterminator": "\r\n"},
        "semicolon.csv": {"sep": ";"},
        "excel.csv": {"sep": ";", "decimal": ",", "lineterminator": "\r\n"},
        "quoted.csv": {"quoting": 1},
        "tab.tsv": {"sep": "\t"},
        "tab.txt": {"sep": "\t"},
        "ZIP.CSV.GZ": {},
    }.items(),
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.usefixtures("blocks")
def test_separators_encodings_and_line_ends_are_recognised(write, name, options, encoding):
    frame = rows(scale=0.25)
    frame["word"] = frame["word"] + " été"
    data = frame.assign(other="x;y", more=1)[["other", "count", "word", "more", "date"]]
    data = data.to_csv(index=False, **options).encode(encoding)
    table = read_table(write(gzip.compress(data) if name.endswith("GZ") else data, name), **NAMES)
    check(table, oracle(frame))
    assert ("commas are decimal commas" in table.notes) == (name == "excel.csv")


def test_columns_of_any_type_in_frames_and_parquet_give_the_same_table(write):
    frame = rows()
    expected = oracle(frame)
    stamps = pd.to_datetime(frame["date"])
    for column in (
        stamps,
        stamps.dt.date,
        stamps.dt.tz_localize("Europe/Berlin"),
        stamps.astype("datetime64[s]"),
        frame["date"].astype("category"),
    ):
        changed = frame.assign(
            date=column,
            word=frame["word"].astype("category"),
            count=frame["count"].astype("float32"),
        )
        check(read_table(write(changed, "long.parquet"), **NAMES), expected)
        check(as_table(changed, **NAMES), expected)
    check(as_table(frame.assign(date=stamps.dt.to_period("D")), **NAMES), expected)
    check(as_table(frame.set_index("date"), **NAMES), expected)
    flags = frame.assign(count=frame["count"] > 1)
    check(as_table(flags, **NAMES), oracle(flags.assign(count=flags["count"].astype(float))))


@pytest.mark.usefixtures("blocks")
def test_features_of_several_kinds_are_text():
    frame = pd.DataFrame({"date": [1, 2, 3, 3], "word": [1, "a", "1", 2.5], "count": [1, 2, 3, 4]})
    table = as_table(frame, **NAMES)
    assert table.features.tolist() == ["1", "2.5", "a"]
    np.testing.assert_array_equal(table.X, [[1, 0, 0], [0, 0, 2], [3, 4, 0]])


@pytest.mark.usefixtures("blocks")
def test_rows_of_zero_do_not_fill_a_sparse_table():
    words = [f"w{w}" for w in range(40)]
    frame = pd.DataFrame({"date": np.repeat([1, 2, 3], 40), "word": words * 3, "count": 0})
    frame.loc[::20, "count"] = 1
    table = as_table(frame, **NAMES)
    assert sparse.issparse(table.X)
    assert table.X.nnz == 6
    assert table.X.shape == (3, 40)


def test_words_that_look_missing_are_words(write):
    text = "date,word,count\n1,null,1\n2,NA,2\n3,nan,3\n3,None,4\n"
    table = read_table(write(text), **NAMES)
    assert table.features.tolist() == ["NA", "None", "nan", "null"]
    assert table.X.sum() == 10


def test_blanks_around_cells_do_not_count(write):
    text = " date , word, count \n1, war ,1\n2,war, 2\n 3 , war, 3 \n1,tax , NA \n1,tax,5\n"
    table = read_table(write(text), **NAMES)
    assert table.features.tolist() == ["tax", "war"]
    np.testing.assert_array_equal(table.X, [[5, 1], [0, 2], [0, 3]])


# What is left out


@pytest.mark.parametrize("name", ["long.csv", "long.parquet", "frame"])
@pytest.mark.usefixtures("blocks")
def test_totals_are_conserved(write, name):
    frame = rows()
    rng = np.random.default_rng(1)
    holes = frame.mask(rng.random(frame.shape) < 0.1)
    table = as_table(holes, **NAMES) if name == "frame" else read_table(write(holes, name), **NAMES)
    blank = holes.isna().all(axis=1)
    no_time = holes["date"].isna() & ~blank
    no_word = ~holes["date"].isna() & holes["word"].isna()
    no_count = holes[["date", "word"]].notna().all(axis=1) & holes["count"].isna()
    lost = [int(holes["count"][which].sum()) for which in (no_time, no_word)]
    assert min(no_time.sum(), no_word.sum(), no_count.sum(), *lost) > 0
    total = int(holes["count"].sum())
    assert table.notes[0] == (
        f"rows read: {400 - blank.sum()}, total {total}; dropped: {no_time.sum()} without 'date', "
        f"total {lost[0]}; {no_word.sum()} without 'word', total {lost[1]}; {no_count.sum()} "
        f"without 'count'"
    )
    in_table = table.X.sum() if sparse.issparse(table.X) else np.nansum(table.X)
    assert in_table + sum(lost) == total
    summed = holes.dropna(subset=["date", "word"]).groupby(["date", "word"])["count"]
    wide = summed.sum(min_count=1).unstack(fill_value=0.0)
    check(table, wide.reindex(oracle(frame).index))
    n_cells = int(wide.isna().sum().sum())
    assert n_cells > 0
    assert table.notes[-1] == f"cells whose only row has no value: {n_cells}, taken as missing"


def test_a_cell_without_a_value_is_missing(write):
    text = "date,word,count\n1,a,1\n1,b,3\n2,a,2\n2,b,{}\n3,a,5\n3,b,0\n4,b,1\n"
    for missing in ("NA", "", "-"):
        table = read_table(write(text.format(missing)), **NAMES)
        np.testing.assert_array_equal(table.X, [[1, 3], [2, np.nan], [5, 0], [0, 1]])
        assert table.notes[-1] == "cells whose only row has no value: 1, taken as missing"
    # Another row of the cell has a value, were it zero.
    table = read_table(write(text.format("NA") + "2,b,0\n"), **NAMES)
    np.testing.assert_array_equal(table.X, [[1, 3], [2, 0], [5, 0], [0, 1]])
    assert not any("taken as missing" in note for note in table.notes)


def test_a_time_without_any_value_is_missing_even_at_the_end(write):
    table = read_table(write("date,word,count\n1,a,1\n2,a,2\n3,a,3\n4,a,NA\n"), **NAMES)
    np.testing.assert_array_equal(table.X, [[1], [2], [3], [np.nan]])
    assert table.notes[-1] == "time steps without any value: 1 (4)"
    sized = "date,word,count,docs\n1,a,1,2\n2,a,2,2\n3,a,3,2\n4,a,NA,\n"
    table = read_table(write(sized), exposure="docs", **NAMES)
    assert table.exposure.tolist() == pytest.approx([2, 2, 2, 2])


@pytest.mark.usefixtures("blocks")
def test_single_cells_of_a_sparse_table_are_hidden(write):
    frame = rows(n=1500, n_words=200)
    cells = [f"cell {n}" for n in range(40)]  # so that it is sparse
    days = sorted(frame["date"].unique())
    extra = pd.DataFrame({"date": days[0], "word": cells, "count": 1.0})
    hole = pd.DataFrame({"date": [days[3]], "word": ["cell 5"], "count": [np.nan]})
    table = read_table(write(pd.concat([frame, extra, hole])), **NAMES)
    assert sparse.issparse(table.X)
    assert table.observed.shape == table.X.shape
    expected = np.ones(table.X.shape, dtype=bool)
    expected[7] = False
    expected[3, table.features.tolist().index("cell 5")] = False
    np.testing.assert_array_equal(table.observed, expected)
    assert "1 steps missing, 1 cells in other steps missing" in repr(table)


def test_a_missing_cell_of_a_table_too_large_to_mask_is_refused(write, monkeypatch):
    frame = pd.DataFrame({"date": range(40), "word": range(40), "count": 1})
    hole = pd.DataFrame({"date": [3], "word": [5], "count": [None]})
    path = write(pd.concat([frame, hole]).astype({"count": float}))
    assert read_table(path, **NAMES).observed.sum() == 40 * 40 - 1
    monkeypatch.setattr(long, "MOST_ENTRIES", 1599)
    with pytest.raises(ValueError, match=r"1 cells whose only row has no value.*40 × 40.*Remove"):
        read_table(path, **NAMES)


def test_a_cell_of_a_period_is_missing_if_none_of_its_rows_has_a_value(write):
    text = (
        "date,word,count\n2001-01-01,a,1\n2001-01-02,b,NA\n2001-02-01,b,NA\n2001-02-02,b,2\n"
        "2001-02-03,a,1\n2001-03-01,a,1\n"
    )
    table = read_table(write(text), freq="M", **NAMES)
    np.testing.assert_array_equal(table.X, [[1, np.nan], [1, 2], [1, 0]])


def test_empty_rows_of_spreadsheets_are_left_out(write):
    table = read_table(write("date,word,count,\n1,a,1,\n2,a,2,\n3,a,3,\n,,,\n,,,\n"), **NAMES)
    np.testing.assert_array_equal(table.X, [[1], [2], [3]])
    assert table.notes[:2] == ("rows read: 3, total 6; dropped: none", "empty rows left out: 2")
    counted = read_table(write("date,word\n1,a\n2,a\n3,a\n,\n"), time="date", feature="word")
    assert counted.notes[:2] == ("rows read: 3, total 3; dropped: none", "empty rows left out: 1")


def test_a_time_whose_rows_were_all_dropped_is_missing(write):
    table = read_table(write("date,word,count\n1,a,1\n2,a,2\n3,,2\n3,a,\n4,b,0\n"), **NAMES)
    np.testing.assert_array_equal(table.X, [[1, 0], [2, 0], [np.nan, np.nan], [0, 0]])
    assert table.features.tolist() == ["a", "b"]  # a row of zero is a row


def test_totals_at_the_foot_of_a_table_are_no_time(write):
    table = read_table(write("date,word,count\n1,a,1\n2,a,2\n3,a,2\nTotal,,5\n"), **NAMES)
    assert table.times.tolist() == [1, 2, 3]
    assert table.notes[0].endswith("dropped: 1 without 'word', total 5")


def test_spellings_of_the_same_time_are_one_step(write):
    text = "date,word,count\n2001-01,a,1\n2001-01-01,a,2\n2001/1/1,b,4\n2001-02,a,8\n2001-03,a,16\n"
    table = read_table(write(text), **NAMES)
    np.testing.assert_array_equal(table.X, [[3, 4], [8, 0], [16, 0]])


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.usefixtures("blocks")
def test_moments_are_added_up_by_periods(write, monkeypatch, texts):
    monkeypatch.setattr("temporalnmf.reading.long_columns.MANY", 10**9 if texts else 10)
    rng = np.random.default_rng(2)
    stamps = pd.Timestamp("2001-01-15") + pd.to_timedelta(rng.integers(10**7, size=500), unit="s")
    stamps = stamps[stamps.month != 3]
    frame = pd.DataFrame({"date": stamps, "word": rng.choice(list("abc"), len(stamps)), "count": 2})
    table = read_table(write(frame), freq="M", **NAMES)
    monthly = frame.groupby([frame["date"].dt.strftime("%Y-%m"), "word"])["count"].sum().unstack()
    check(table, monthly.reindex([f"2001-0{month}" for month in range(1, 6)]))
    assert "absent periods: 1 (2001-03)" in table.notes
    assert table.timeline.every == "month"


def test_text_times_keep_the_order_in_which_they_come(write):
    text = "date,word,count\nspring,a,1\nautumn,a,2\nspring,b,3\nsummer,a,4\n"
    table = read_table(write(text), **NAMES)
    assert table.times.tolist() == ["spring", "autumn", "summer"]
    np.testing.assert_array_equal(table.X, [[1, 3], [2, 0], [4, 0]])


# Exposure


@pytest.mark.usefixtures("blocks")
def test_exposure_is_one_number_per_time(write):
    frame = rows()
    sizes = {day: float(n + 1) for n, day in enumerate(sorted(frame["date"].unique()))}
    frame["docs"] = frame["date"].map(sizes)
    expected = oracle(frame)
    known = pd.Series([sizes.get(day) for day in expected.index], dtype=float)
    exposure = np.exp(np.log(known).interpolate())
    for table in (
        read_table(write(frame), exposure="docs", **NAMES),
        as_table(frame, exposure="docs", **NAMES),
    ):
        check(table, expected)
        np.testing.assert_allclose(table.exposure, exposure)
        assert "exposure of absent periods: interpolated" in table.notes
    weekly = read_table(write(frame), exposure="docs", freq="W", **NAMES)
    days = pd.Series(list(sizes.values()), pd.to_datetime(list(sizes)))
    weeks = days.resample("W-MON", closed="left", label="left").sum()
    np.testing.assert_array_equal(weekly.exposure, weeks)
    assert not any("interpolated" in note for note in weekly.notes)


@pytest.mark.parametrize(
    ("sizes", "pattern"),
    [
        ("2,3,4,5", "exposure 'docs' of the time 1 is 2 and 3. Give each time one"),
        ("2,2,0,5", "exposure 'docs' of the time 2 is 0"),
        ("2,2,NA,5", "exposure 'docs' of the time 2 is missing"),
        ("2,2,-1,5", "line 4, column 'docs': -1 is negative"),
    ],
)
def test_bad_exposure_is_refused_with_its_place(write, sizes, pattern):
    parts = zip("1123", "abab", sizes.split(","), strict=True)
    text = "date,word,docs\n" + "".join(f"{','.join(part)}\n" for part in parts)
    with pytest.raises(ValueError, match=pattern):
        read_table(write(text), time="date", feature="word", exposure="docs")


def test_exposure_may_be_missing_in_some_rows(write):
    text = "date,word,docs\n1,a,2\n1,b,\n2,a,3\n3,a,4\n"
    table = read_table(write(text), time="date", feature="word", exposure="docs")
    assert table.exposure.tolist() == [2, 3, 4]


def test_exposure_of_two_spellings_of_one_time_counts_once(write):
    text = "date,word,docs\n2001-01-05,a,10\n5 Jan 2001,b,10\n2001-02-05,a,20\n2001-03-05,a,30\n"
    columns = {"time": "date", "feature": "word", "exposure": "docs"}
    for freq in (None, "M"):
        assert read_table(write(text), freq=freq, **columns).exposure.tolist() == [10, 20, 30]
    with pytest.raises(ValueError, match=r"of the time 2001-01(-05)? is 10 and 11"):
        read_table(write(text.replace("b,10", "b,11")), **columns)


def test_exposure_that_is_added_up_is_noted(write):
    days = pd.date_range("2001-01-01", "2001-03-20").strftime("%Y-%m-%d")
    frame = pd.DataFrame({"date": days, "word": "a", "count": 1, "docs": 5})
    told = "exposure is added up within periods: "
    table = read_table(write(frame), freq="M", exposure="docs", **NAMES)
    assert table.exposure.tolist() == [155, 140, 100]
    assert (
        f"{told}20 to 31 times per period; if it is a stock, such as a population, give one value "
        f"per period" in table.notes
    )
    even = read_table(write(frame[:77]), freq="7D", exposure="docs", **NAMES)
    assert f"{told}7 times per period" in even.notes
    for table in (
        read_table(write(frame), exposure="docs", **NAMES),
        read_table(write(frame[::31]), freq="M", exposure="docs", **NAMES),
    ):
        assert not any(note.startswith(told) for note in table.notes)


# Numbers


def test_thousands_and_signs_are_read(write):
    text = 'date,word,count\n1,a,"1,234"\n2,a,+5\n3,a,1e2\n'
    table = read_table(write(text), **NAMES)
    assert table.X.ravel().tolist() == [1234, 5, 100]
    assert "commas in numbers such as 1,234 separate thousands" in table.notes


@pytest.mark.usefixtures("blocks")
def test_points_are_read_as_thousands_beside_decimal_commas(write):
    values = ["1.041,98", "1.041", "12.345.678", "7,5", "3", "."] * 30
    lines = [f"{n};w{n % 2};{value}" for n, value in enumerate(values)]
    table = read_table(write("\n".join(["date;word;count", *lines])), **NAMES)
    assert dense_total(table) == pytest.approx(30 * (1041.98 + 1041 + 12345678 + 7.5 + 3))
    assert "points in numbers such as 1.234 separate thousands" in table.notes
    assert table.notes[0].endswith("dropped: 30 without 'count'")


@pytest.mark.parametrize("word", ["n/a", "#N/A", "#NA", "-", "–", ".", "None"])
def test_other_words_for_missing_are_dropped_and_counted(write, word):
    text = f"date,word,count\n1,{word},1\n2,a,{word}\n3,a,3\n4,a,2.5\n"
    table = read_table(write(text), **NAMES)
    assert table.notes[0] == "rows read: 4, total 6.5; dropped: 1 without 'count'"
    assert word in table.features  # a feature may have any name


@pytest.mark.usefixtures("blocks")
def test_windows_1252_is_recognised(write):
    frame = rows()
    frame["word"] = frame["word"].str.replace("word 1", "Größe – €")
    for name in ("long.csv", "long.csv.gz"):
        data = frame.to_csv(index=False).encode("cp1252")
        path = write(gzip.compress(data) if name.endswith("gz") else data, name)
        table = read_table(path, **NAMES)
        check(table, oracle(frame))
        assert table.notes[0] == "read as Windows-1252"
    assert "read as Windows-1252" not in read_table(write(frame), **NAMES).notes


@pytest.mark.parametrize("name", ["long.csv", "frame"])
@pytest.mark.usefixtures("blocks")
def test_partial_ends_of_long_tables_are_noted_or_left_out(write, name):
    """Weeks from Monday: 2001-01-20 was a Saturday, 2001-02-14 a Wednesday."""
    frame = rows()
    frame = frame[frame["date"] <= "2001-02-14"]
    options = {**NAMES, "freq": "W"}
    if name == "frame":
        table, whole = (as_table(frame, **options, drop_partial=drop) for drop in (False, True))
    else:
        path = write(frame)
        table, whole = (read_table(path, **options, drop_partial=drop) for drop in (False, True))
    assert [note for note in table.notes if "too low" in note] == [
        "the first period, 2001-01-15, holds data of 2 of 7 days: it may be too low",
        "the last period, 2001-02-12, holds data of 3 of 7 days: forecasts from it may be too low",
    ]
    ends = (frame["date"] < "2001-01-22") | (frame["date"] >= "2001-02-12")
    total, lost = frame["count"].sum(), frame["count"][ends].sum()
    assert lost > 0
    assert whole.notes[0] == (
        f"rows read: {len(frame)}, total {total:.0f}; dropped: {ends.sum()} in partial periods, "
        f"total {lost:.0f}"
    )
    assert time_texts(whole.times) == time_texts(table.times)[1:-1]
    assert dense_total(table) == total
    assert dense_total(whole) == total - lost


def dense_total(table):
    return table.X.sum() if sparse.issparse(table.X) else np.nansum(table.X)


@pytest.mark.parametrize(
    ("span", "freq"),
    [
        ("10h", "min"),
        ("20h", "15min"),
        ("40h", "15min"),
        ("30D", "h"),
        ("60D", "D"),
        ("900D", "D"),
        ("9000D", "M"),
    ],
)
def test_times_that_all_differ_get_a_proposal_of_a_freq(write, span, freq):
    rng = np.random.default_rng(0)
    seconds = np.unique(rng.integers(pd.Timedelta(span).total_seconds(), size=1500))[:1300]
    stamps = pd.Timestamp("2001-01-01") + pd.to_timedelta(seconds, unit="s")
    frame = pd.DataFrame({"date": stamps, "word": "a", "count": 1})
    (note,) = [n for n in read_table(write(frame), **NAMES).notes if "freq" in n and "rows" in n]
    found = re.fullmatch(
        r"([\d,]+) steps for 1,300 rows: a freq of (\w+) makes about ([\d,]+) .*", note
    )
    assert found[2] == freq
    made = read_table(write(frame), freq=freq, **NAMES)
    assert not any("makes about" in n for n in made.notes)
    n_steps = len(made.times)
    assert abs(n_steps - int(found[3].replace(",", ""))) <= 2
    assert 30 <= n_steps <= 1000
    often = pd.concat([frame] * 3)
    assert not any("makes about" in n for n in as_table(often, **NAMES).notes)
    few = frame.iloc[:1000]
    assert not any("makes about" in n for n in as_table(few, **NAMES).notes)


PLAIN = "date,word,count\n2001,war,1\n2002,tax,2\n\n2003,war,3\n2003,tax,4\n"


def bad(text, pattern, name="long.csv", **options):
    return text, pattern, name, options


BAD = {
    "text": bad(PLAIN.replace(",3", ",many"), r"long.csv, line 5, column 'count': 'many' is not a"),
    "underscore": bad(PLAIN.replace(",3", ",1_000"), "line 5, .*'1_000' is not a number"),
    "negative": bad(PLAIN.replace(",3", ",-3"), "line 5, column 'count': -3 is negative.*correct"),
    "infinite": bad(PLAIN.replace(",3", ",inf"), "line 5, .*inf is infinite"),
    "too large": bad(PLAIN.replace(",3", ",1e999"), "line 5, .*inf is infinite"),
    "after a cell of two lines": bad(
        PLAIN.replace("tax,2", '"t\na\nx",2').replace(",3", ",x"), "line 7, .*'x' is not"
    ),
    "decimal comma between commas": bad(PLAIN.replace(",3", ',"3,5"'), "line 5, .*'3,5' is not"),
    "comma and point": bad(
        PLAIN.replace(",", ";").replace(";3", ";3,5").replace(";4", ";1.234"),
        "decimal commas and others with decimal points in column 'count'",
    ),
    "short line": bad(PLAIN.replace(",war,3", ",war"), "line 5 has 2 cells .* has 3. Give all"),
    "long line": bad(PLAIN.replace("war,3", "war,3,4"), "line 5 has 4 cells .* has 3. Give all"),
    "open quote": bad(PLAIN.replace("war,3", '"war,3'), "line 5 cannot be split .*quotation"),
    "zeros after Latin-1": bad(
        PLAIN.replace("war,3", "été,3").encode("latin-1") + b"\0\n", "line 5: byte 0xe9 .*UTF-8"
    ),
    "no Windows-1252": bad(
        PLAIN.replace("war,3", "w\x9dr,3").encode("latin-1"), "line 5: byte 0x9d .*UTF-8"
    ),
    "totals of texts": bad(
        "date,word,count\nspring,a,1\nsummer,a,2\nautumn,a,3\nSumme,a,6\n",
        "^long.csv, line 5: the last time is 'Summe', .*Remove it",
    ),
    "points that separate nothing": bad(
        "date;word;count\n1;a;1.234,5\n2;a;1.25\n3;a;2\n", "decimal commas and others with"
    ),
    "grouped times": bad(PLAIN, "drop_partial=True is for periods", drop_partial=True),
    "two kinds": bad(PLAIN.replace("2002", "later"), r"'later' \(line 3\) is text"),
    "two ways": bad(
        "date,word,count\n1/2/2001,a,1\n1/3/2001,a,1\n1/4/2001,a,1\n",
        r"two ways: '1/2/2001' \(line 2\)",
    ),
    "empty": bad("", "long.csv is empty"),
    "only a header": bad("date,word,count\n", "has no rows. Add"),
    "only dropped": bad("date,word,count\n1,,2\n", "no row with 'date', 'word', 'count'"),
    "two times": bad("date,word,count\n1,a,2\n2,a,2\n", "has 2 times, and at least 3"),
    "two periods": bad(
        "date,word,count\n2001-01,a,2\n2001-02,a,2\n2002-03,b,3\n",
        "freq='Y' makes 2 steps",
        freq="Y",
    ),
    "no such column": bad(
        PLAIN, r"value='n' is not .* 'date', 'word', 'count' \(.*\)\.$", value="n"
    ),
    "a column twice": bad(PLAIN, "name one column twice: date, date, count", feature="date"),
    "a name twice": bad(PLAIN.replace("word", "date"), "time='date' .* several", feature="count",
                        value=None),
    "gzip cut short": bad(gzip.compress(PLAIN.encode() * 99)[:-20], "gzip file.*again",
                          name="long.csv.gz"),
    "not gzip": bad(b"garbage", "gzip file.*again", name="long.csv.gz"),
    "not Parquet": bad(b"garbage", "cannot be read as Parquet.*again", name="long.parquet"),
    "an array": bad(b"", r"'.npy', which is not known for long tables", name="a.npy"),
    "transposed": bad(PLAIN, "transpose=True .*Leave out one", transpose=True),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
@pytest.mark.usefixtures("blocks")
def test_bad_long_tables_are_refused_with_the_reason(write, case):
    text, pattern, name, options = case
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the cases hold the patterns
        read_table(write(text, name), **NAMES | options)
    assert re.search(pattern, str(refusal.value), re.DOTALL), str(refusal.value)


def test_decimal_points_in_blocks_before_decimal_commas_are_refused(write, monkeypatch):
    """The comma comes blocks after the point, which was read as a decimal point by then."""
    monkeypatch.setattr(long_files, "BLOCK_BYTES", 40)
    lines = "".join(f"{year};war;1.234\n" for year in range(2001, 2020))
    path = write(f"date;word;count\n{lines}2020;war;1,5\n")
    with pytest.raises(ValueError, match=r"decimal commas and others with decimal points"):
        read_table(path, **NAMES)


@pytest.mark.usefixtures("blocks")
def test_bad_values_are_found_in_later_blocks(write):
    for value, pattern in {"many": "'many' is not a number", "-1": "-1 is negative"}.items():
        frame = rows().astype({"count": str})
        frame.loc[317, "count"] = value
        with pytest.raises(ValueError, match=f"long.csv, line 319, column 'count': {pattern}"):
            read_table(write(frame), **NAMES)
        with pytest.raises(ValueError, match=f"the frame, row 317, column 'count': {pattern}"):
            as_table(frame, **NAMES)
    frame = rows()
    frame.loc[318, "date"] = "Total"
    with pytest.raises(ValueError, match=r"'Total' \(line 320\) is text"):
        read_table(write(frame), **NAMES)


@pytest.mark.usefixtures("blocks")
def test_words_may_have_several_lines(write):
    frame = rows()
    frame["word"] = "two\r\nlines: " + frame["word"] + "\n"
    table = read_table(write(frame), **NAMES)
    check(table, oracle(frame.assign(word="two\nlines: " + rows()["word"])))


def test_bad_values_in_frames_and_parquet_are_refused_with_their_row(write):
    frame = rows()
    frame.loc[17, "count"] = -1.0
    with pytest.raises(ValueError, match="the frame, row 17, column 'count': -1 is negative"):
        as_table(frame, **NAMES)
    with pytest.raises(ValueError, match=r"long.parquet, row 17, column 'count': -1 is negative"):
        read_table(write(frame, "long.parquet"), **NAMES)
    with pytest.raises(ValueError, match=r"row 0, column 'word': '.*' is not a number"):
        as_table(frame, time="date", feature="count", value="word")
    dates = frame.assign(count=pd.Timestamp("2001-01-01"))
    with pytest.raises(ValueError, match=r"column 'count' holds timestamp.*not numbers"):
        as_table(dates, **NAMES)


@pytest.mark.parametrize("name", ["long.csv", "long.parquet"])
def test_without_pyarrow_long_tables_say_what_to_install(write, monkeypatch, name):
    path = write(rows(), name)
    for module in ("pyarrow", "pyarrow.csv", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=re.escape('pip install "temporalnmf[io]"')):
        read_table(path, **NAMES)


def test_the_order_of_rows_does_not_matter(write):
    frame = rows()
    one = read_table(write(frame), **NAMES)
    other = read_table(write(frame.sample(frac=1, random_state=0)), **NAMES)
    assert one.notes == other.notes
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.X, other.X)


def test_the_table_of_the_benchmark_is_read_as_it_was_written(tmp_path):
    import large_table

    path = tmp_path / "long.csv"
    large_table.write_table(path, 20_000)
    frame = pd.read_csv(io.BytesIO(path.read_bytes()))
    table = read_table(path, **NAMES)
    assert table.notes[0] == f"rows read: 20,000, total {frame['count'].sum():,}; dropped: none"
    assert (~table.observed).sum() >= 1
    assert table.timeline.every == "month"


# Periods of pandas, and blank lines

_IN_A_NEW_PROCESS = """
import sys
from temporalnmf.reading import read_table
if sys.argv[2:] == ["without pandas"]:
    sys.modules["pandas"] = None
assert sys.modules.get("pandas") is None
table = read_table(sys.argv[1], time="date", feature="word", value="count")
print(table.times.astype(str).tolist())
"""


def _periods():
    months = pd.period_range("2018-01", periods=4, freq="M").repeat(2)
    return pd.DataFrame({"date": months, "word": [*"ab"] * 4, "count": range(8)})


def test_periods_in_parquet_are_times(write):
    frame = _periods()
    table = read_table(write(frame, "long.parquet"), **NAMES)
    assert time_texts(table.times) == ["2018-01", "2018-02", "2018-03", "2018-04"]
    np.testing.assert_array_equal(table.X, np.arange(8).reshape(4, 2))
    gap = frame.assign(date=frame["date"].where(frame.index != 3))
    table = read_table(write(gap, "long.parquet"), **NAMES)
    assert table.notes[0].endswith("dropped: 1 without 'date', total 3")


@pytest.mark.long
@pytest.mark.parametrize("pandas", ["with pandas", "without pandas"])
def test_periods_in_parquet_load_pandas_or_say_that_they_need_it(write, pandas):
    path = write(_periods(), "long.parquet")
    command = [sys.executable, "-c", _IN_A_NEW_PROCESS, str(path), pandas]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if pandas == "with pandas":
        assert ended.stdout.strip() == "['2018-01', '2018-02', '2018-03', '2018-04']", ended.stderr
    else:
        assert "polars frames need pandas and pyarrow" in ended.stderr


@pytest.mark.parametrize("blank", ["", "  ", ",,"])
def test_a_blank_first_line_is_refused(write, blank):
    with pytest.raises(ValueError, match=r"long.csv, line 1 is blank. Remove it"):
        read_table(write(f"{blank}\ndate,word,count\n1,a,1\n2,a,1\n3,a,1\n"), **NAMES)
