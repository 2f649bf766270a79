"""Files become tables; every cell is a number, missing, or an error that says where it is."""

import gzip
import io
import re
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_sotu
from temporalnmf.reading import TIME_NAMES, read_table

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
    assert table.times.tolist() == list(times)
    assert table.features.tolist() == list(features)
    assert table.features.dtype.kind == "U"


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


def test_parquet_with_an_index_of_numbers_that_has_a_name(write):
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
    check(read_table(path), X[:, :1], [str(time)[:10] for time in index], ["war"])


def unnamed(shape):
    return range(shape[0]), [f"x{f}" for f in range(shape[1])]


@pytest.mark.parametrize("kind", ["float64", "float32", ">f8"])
@pytest.mark.parametrize("transpose", [False, True])
def test_npy_round_trip(write, kind, transpose):
    stored = (GAPS.T if transpose else GAPS).astype(kind)
    path = write(bytes_of(np.save, stored), "data.npy")
    check(read_table(path, transpose=transpose), GAPS, *unnamed(X.shape))


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64])
def test_npy_of_whole_numbers(write, kind):
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


def test_dense_matrix_market(write):
    check(read_table(write(bytes_of(mmwrite, X), "data.mtx")), X, *unnamed(X.shape))


def test_state_of_the_union_as_csv_gives_the_same_fit(write):
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
    table = read_table(write(f"{name},war\n3,1\n4,1\n6,2\n"))
    check(table, [[1], [1], [2]], [3, 4, 6], ["war"])
    where = f"column {name.strip()!r}" if name else "the first column"
    assert table.notes == (f"times are in {where}",)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["2000-01-31", "2000-02-01", "2001-01-01"], str),
        (["1999-12", "2000-01", "2000-02"], str),
        (["2000-01-01T10:00", "2000-01-01 11:00", "2000-01-01T13:00+01:00"], str),
        (["-1", "0", "12"], int),
        (["0.5", "1", "1e1"], float),
        (["1700000000000000001", "1700000000000000002", "1700000000000000003"], int),
    ],
)
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("header", ["season", "time"])
def test_times_keep_their_labels(write, times, expected, transpose, header):
    if header == "season" and expected is not str and not transpose:
        header = "date"  # numbers are times by their name only
    table = pd.DataFrame({"war": [1, 2, 3]}, index=pd.Index(times, name=header))
    path = write((table.T.rename_axis(header) if transpose else table).to_csv())
    table = read_table(path, transpose=transpose)
    check(table, [[1], [2], [3]], map(expected, times), ["war"])
    assert not any("order" in note for note in table.notes)


def test_text_times_keep_their_order(write):
    table = read_table(write("season,war\nJan,1\nFeb,2\nMar,3\n"))
    check(table, [[1], [2], [3]], ["Jan", "Feb", "Mar"], ["war"])
    assert table.notes[0] == "times are in column 'season'"
    assert re.search("'Jan'.*neither.*order", table.notes[1])


def test_no_header_at_all(write):
    table = read_table(write("5,1\n3,\n4,2\n"))
    check(table, [[5, 1], [3, np.nan], [4, 2]], range(3), ["x0", "x1"])
    assert table.notes == (
        "there is no header: the first line is data",
        "no times were found: steps are numbered from 0",
        "missing cells: 1 of 6",
    )


def test_no_header_and_a_gap_in_the_first_line(write):
    for first, values in {"5,,1": [5, np.nan, 1], ",,1": [np.nan, np.nan, 1]}.items():
        table = read_table(write(f"{first}\n3,4,5\n4,2,2\n"))
        check(table, [values, [3, 4, 5], [4, 2, 2]], range(3), ["x0", "x1", "x2"])


def test_no_header_before_dates(write):
    table = read_table(write("2000-01,1\n2000-02,2\n2000-03,3\n"))
    check(table, [[1], [2], [3]], ["2000-01", "2000-02", "2000-03"], ["x0"])


def test_no_header_transposed(write):
    table = read_table(write("5,3,4\n1,1,2\n"), transpose=True)
    check(table, [[5, 1], [3, 1], [4, 2]], range(3), ["x0", "x1"])


def test_times_without_names_of_features(write):
    table = read_table(write("2000-01,2000-02,2000-03\n1,2,3\n4,5,6\n"), transpose=True)
    check(table, [[1, 4], [2, 5], [3, 6]], ["2000-01", "2000-02", "2000-03"], ["x0", "x1"])


@pytest.mark.parametrize("corner", ["", "word", "time"])
def test_transposed_years_are_a_header(write, corner):
    path = write(f'{corner},"1990","1991",1992\nwar,1,2,3\n60,4,5,6\n')
    table = read_table(path, transpose=True)
    check(table, [[1, 4], [2, 5], [3, 6]], [1990, 1991, 1992], ["war", "60"])
    where = f"column {corner!r}" if corner else "the first column"
    assert table.notes == ("times are in the first line", f"features are in {where}")


def test_numbered_columns_below_an_empty_corner(write):
    table = read_table(write(pd.DataFrame(X).to_csv()))
    check(table, X, range(6), list("0123"))


def test_numbered_columns_beside_times(write):
    table = read_table(write("time,0,21.5\n0.1,1,2\n0.2,3,4\n0.3,5,6\n"))
    check(table, [[1, 2], [3, 4], [5, 6]], [0.1, 0.2, 0.3], ["0", "21.5"])


def test_first_column_without_values_is_a_feature(write):
    table = read_table(write("war,peace\n,2\n,4\n,6\n"))
    check(table, [[np.nan, 2], [np.nan, 4], [np.nan, 6]], range(3), ["war", "peace"])


def test_last_cell_of_a_file_with_tabs_may_be_missing(write):
    table = read_table(write("year\twar\n1990\t1\n1991\t2\n1992\t", "data.tsv"))
    check(table, [[1], [2], [np.nan]], [1990, 1991, 1992], ["war"])


def test_first_column_of_numbers_is_data_but_even_steps_are_remarked(write):
    table = read_table(write("season,war\n1990,5\n1991,1\n1992,2\n"))
    assert table.features.tolist() == ["season", "war"]
    assert re.search("1990, 1991, ….*'time'", table.notes[-1])
    for last in ("1990,1990", "1991,1993"):
        second, third = last.split(",")
        table = read_table(write(f"season,war\n1990,5\n{second},1\n{third},2\n"))
        assert table.notes == ("no times were found: steps are numbered from 0",)


def test_words_named_like_times_are_features_elsewhere(write):
    table = read_table(write("war,day,year\n3,1,2\n1,1,9\n4,2,5\n"))
    assert table.features.tolist() == ["war", "day", "year"]


def test_decimal_commas_are_remarked_and_reach_the_times(write):
    table = read_table(write("time;a,b;c\n0,5;1,25;3\n1;,5;1e1\n1,5;2,5e-1;\n"))
    check(table, [[1.25, 3], [0.5, 10], [0.25, np.nan]], [0.5, 1, 1.5], ["a,b", "c"])
    assert table.notes[:2] == ("cells are separated by ';'", "commas are decimal commas")


def test_decimal_commas_without_a_header(write):
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


def test_blank_lines_at_the_end_are_nothing(write):
    check(read_table(write(PLAIN + "\r\n\n")), [[1, 2], [3, 4], [5, 6]], YEARS[:3], WORDS[:2])


def test_missing_cells_are_counted(write):
    assert read_table(write(frame().to_csv())).notes[1:] == (
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
MONTHS = "".join(f"2000-{month:02},1\n" for month in (1, 3, 2))
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
        for cell in ("-", "1_000", "1 000", "1.2.3", "0x10", "?", "None", "n/a", "1;5", "12%", "e5")
    },
    "thousands": bad(PLAIN.replace("4", '"1,234"'), r"line 3 .*'1,234' is not .*plain number"),
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
        r"line 1 may be a header or data: 'Jan' .*\(1, …\).*'time'.*put a header.*--transpose",
    ),
    "two steps": bad(
        "year,a\n1990,1\n1991,2\n",
        r"is 2 × 1 \(times × features\), .*at least 3 .*features × times\? Then use transpose=True",
    ),
    "two steps, transposed": bad(
        "word,1990,1991\nwar,1,2\n",
        r"is 2 × 1 .*Is it times × features\? Then leave out transpose=True",
        transpose=True,
    ),
    "Latin-1": bad("year,été\n".encode("latin-1"), "line 1: byte 0xe9 .*Save .*UTF-8"),
    "gzip cut short": bad(
        b"\x1f\x8b\x08\x00", "data.csv.gz cannot be read as a gzip.*again", name="data.csv.gz"
    ),
    # Times.
    "years out of order": bad(
        PLAIN.replace("1991", "1989"),
        r"not in the order of time: '1989' \(line 3\) comes after '1990' \(line 2\)\. Sort",
    ),
    "numbers are not ordered as text": bad("t,a\n9,1\n11,1\n10,2\n", "'10' .* after '11'"),
    "months out of order": bad("month,a\n" + MONTHS, r"'2000-02' \(line 4\) comes after '2000-03'"),
    "hours of other zones out of order": bad(
        "hour,a\n2000-01-01T10:00+00:00,1\n2000-01-01T10:30+01:00,1\n2000-01-02,1\n",
        r"10:30\+01:00' \(line 3\) comes after .*10:00\+00:00'",
    ),
    "years out of order, transposed": bad(
        "word,1990,1989,1991\nwar,1,2,3\n",
        r"'1989' \(column 3\) comes after '1990'",
        transpose=True,
    ),
    "year twice": bad(
        PLAIN.replace("1992", "1990.0"),
        "the time '1990.0' twice, in line 2 and line 4. Give each",
    ),
    "day twice": bad(
        "date,a\n2000-01-01,1\n2000-01-02,1\n2000-01,1\n", "'2000-01' twice, in line 2"
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
        f"{PLACE}nan is not a number. Sparse data.*mask=",
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
    "years out of order in Parquet": bad(
        parquet(frame().iloc[::-1]),
        r"'1994' \(row 1\) comes after '1995' \(row 0\)",
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
    "spreadsheet": bad(
        b"", r"data.xlsx has the suffix '.xlsx'.*\.csv, .*\.mtx\.gz.*as CSV", name="data.xlsx"
    ),
    "no suffix": bad(b"", r"^data has the suffix ''.*\.csv", name="data"),
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


def test_importing_does_not_load_pandas():
    code = "import sys, temporalnmf.reading; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_wide_table(write):
    counts = np.random.default_rng(0).poisson(3.0, size=(500, 5000))
    lines = [f"{n}," + ",".join(map(str, row)) for n, row in enumerate(counts.tolist())]
    path = write(",".join(["year", *(f"w{f}" for f in range(5000))]) + "\n" + "\n".join(lines))
    table = read_table(path)
    np.testing.assert_array_equal(table.X, counts)


@pytest.mark.parametrize(
    ("times", "absent"),
    [
        (["2020-01", "2020-02", "2020-03", "2020-04", "2020-05"], None),
        (["2019-12-31", "2020-12-31", "2021-12-31"], None),
        (["2020-01", "2020-02", "2020-03", "2020-05", "2020-06"], ("2020-03", "2020-05")),
        (["1931", "1932", "1934", "1935"], ("1932", "1934")),
    ],
)
def test_absent_times_are_noticed(write, times, absent):
    rows = "".join(f"{label},1,2\n" for label in times)
    notes = read_table(write("time,war,peace\n" + rows)).notes
    uneven = [note for note in notes if "evenly spaced" in note]
    if absent is None:
        assert uneven == []
    else:
        assert f"the first from {absent[0]!r} to {absent[1]!r}" in uneven[0]
