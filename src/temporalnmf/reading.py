"""Files of users become tables: rows are time steps, columns are features.

A reader per format makes a `_Sheet`, the cells as they lie in the file; all else is common.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice, pairwise
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from .likelihoods.base import Array

TIME_NAMES = (
    "time", "date", "year", "month", "week", "day", "hour", "period", "index", "step", "t",
    "datetime", "timestamp",
)  # fmt: skip
MISSING = ("", "na", "nan", "null")
ARRAY_NAMES = ("X", "data", "counts", "power")
_SEPARATORS = {"\t": "tabs", ";": "';'", ",": "','"}


@dataclass(frozen=True)
class TimeTable:
    """A table of non-negative numbers over time.

    Attributes
    ----------
    X : array or sparse.csr_array, (n_times, n_features)
        NaN is missing; in a sparse X an absent entry is a zero.
    times : array, (n_times,)
        Labels of the rows, text or numbers; 0, 1, … if the file has none.
    features : array of str, (n_features,)
        Labels of the columns; x0, x1, … if the file has none.
    notes : tuple of str
        What was understood, in words.
    """

    X: Array | sparse.csr_array
    times: Array
    features: Array
    notes: tuple[str, ...]


def read_table(path: str | PathLike[str], *, transpose: bool = False) -> TimeTable:
    """Read a table of non-negative numbers over time.

    Every cell is a number, or missing (empty, NA, NaN or null), or an error that says where it is.
    Nothing that could run code is loaded.

    Parameters
    ----------
    path : path
        CSV, TSV (both also as .gz), Parquet, NPY, NPZ or Matrix Market, told by the suffix. The
        first column holds the times if its name is empty or one of time, date, year, month, week,
        day, hour, period, index, step, t, datetime, timestamp, or if it holds nothing but text.
    transpose : bool, default=False
        The file is features × times: its first line holds the times, its first column the
        features.

    Returns
    -------
    table : TimeTable

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.csv")
    ...     _ = path.write_text("year,war,peace\\n1999,3,5\\n2000,,2\\n2001,4,1\\n")
    ...     table = read_table(path)
    >>> table.X
    array([[ 3.,  5.],
           [nan,  2.],
           [ 4.,  1.]])
    >>> table.times, table.features
    (array([1999, 2000, 2001]), array(['war', 'peace'], dtype='<U5'))
    >>> print(*table.notes, sep="; ")
    times are in column 'year'; missing cells: 1 of 6
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file. Check the path.")
    for suffix, reader in _READERS.items():
        if path.name.lower().endswith(suffix):
            return _table(reader(path, transpose))
    raise ValueError(
        f"{path.name} has the suffix {path.suffix!r}, which is not known. Known are "
        f"{', '.join(_READERS)}; a spreadsheet can be saved as CSV."
    )


@dataclass
class _Wrong:
    """The first of the cells that are not as they should be, and their number."""

    count: int = 0
    first: tuple[int, int] = (0, 0)
    value: object = None

    def add(self, i: int, j: int, value: object) -> None:
        if not self.count or (i, j) < self.first:
            self.first, self.value = (i, j), value
        self.count += 1


@dataclass(frozen=True)
class _Sheet:
    """Cells (R, C) as they lie in a file, and the labels of rows and columns that it has.

    In a text file `lines` are the lines of the rows, the first cells are in the column with number
    `margin`, and `comma` says whether it has decimal commas. Other files are counted from 0.
    """

    name: str
    transpose: bool
    cells: Any
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    lines: Sequence[int] | None = None
    margin: int = 0
    comma: bool = False
    notes: tuple[str, ...] = ()

    @property
    def times(self) -> Sequence[str] | None:
        return self.columns if self.transpose else self.rows

    @property
    def features(self) -> Sequence[str] | None:
        return self.rows if self.transpose else self.columns

    def row(self, i: int) -> str:
        return f"row {i}" if self.lines is None else f"line {self.lines[i]}"

    def column(self, j: int) -> str:
        return f"column {j + self.margin}"

    def time(self, n: int) -> str:
        """Where a time stands."""
        return self.column(n) if self.transpose else self.row(n)

    def feature(self, f: int) -> str:
        """Where the name of a feature stands."""
        return self.row(f) if self.transpose else self.column(f)

    def place(self, i: int, j: int) -> str:
        """Where a cell stands."""
        row, column = self.row(i), self.column(j)
        if self.rows is not None:
            row += f" ({'feature' if self.transpose else 'time'} {self.rows[i]!r})"
        if self.columns is not None:
            column = f"column {self.columns[j]!r}"
        base = " (counted from 0)" if self.lines is None else ""
        return f"{self.name}, {row}, {column}{base}"


def _table(sheet: _Sheet) -> TimeTable:
    _check_shape(sheet)
    _check_values(sheet)
    X = sheet.cells.T if sheet.transpose else sheet.cells
    X = sparse.csr_array(X) if sparse.issparse(X) else np.ascontiguousarray(X)
    times, about_times = _times(sheet, X)
    notes = (*sheet.notes, *about_times, *_missing(X, times))
    return TimeTable(X, times, _features(sheet, X.shape[1]), notes)


def _check_shape(sheet: _Sheet) -> None:
    n_times, n_features = sheet.cells.shape[:: -1 if sheet.transpose else 1]
    found = f"{sheet.name} has {n_times} time steps and {n_features} features"
    if n_features == 0:
        raise ValueError(f"{found}. Give it a column per feature.")
    if n_times < 3:
        doubt = "times × features? Then leave out" if sheet.transpose else "features × times? Use"
        raise ValueError(
            f"{found}, and at least 3 time steps are needed. Is it {doubt} transpose=True "
            f"(--transpose)."
        )


def _check_values(sheet: _Sheet) -> None:
    remedy = "correct it, or leave it out (empty, NA, NaN) if the value is missing."
    values = sheet.cells
    if sparse.issparse(sheet.cells):
        remedy = "replace it, and hide it with mask= if the value is missing."
        values = sheet.cells.data
        _refuse(sheet, np.isnan(values), "is not a number", f"Sparse data have no gaps: {remedy}")
    elif np.isnan(values).all():
        raise ValueError(f"{sheet.name} has no numbers: every cell is missing. Check the file.")
    _refuse(sheet, np.isinf(values), "is infinite", f"Data must be finite: {remedy}")
    _refuse(sheet, values < 0, "is negative", f"The model is for non-negative data: {remedy}")


def _refuse(sheet: _Sheet, wrong: Array, what: str, remedy: str) -> None:
    if not wrong.any():
        return
    k = int(np.argmax(wrong))
    if sparse.issparse(sheet.cells):
        i = int(np.searchsorted(sheet.cells.indptr, k, side="right")) - 1
        j, value = int(sheet.cells.indices[k]), sheet.cells.data[k]
    else:
        i, j = divmod(k, wrong.shape[1])
        value = sheet.cells[i, j]
    raise _refusal(sheet, i, j, f"{value:g} {what}", int(wrong.sum()), remedy)


def _refuse_text(sheet: _Sheet, wrong: _Wrong) -> None:
    if not wrong.count:
        return
    remedy = "Write a plain number (1234.5), or leave the cell empty if the value is missing."
    i, j = wrong.first
    if j == 0 and sheet.rows is None and not sheet.transpose:
        remedy += " If the first column holds times, name it 'time'."
    raise _refusal(sheet, i, j, f"{wrong.value!r} is not a number", wrong.count, remedy)


def _refusal(sheet: _Sheet, i: int, j: int, what: str, count: int, remedy: str) -> ValueError:
    several = f" ({count} such cells in all)" if count > 1 else ""
    return ValueError(f"{sheet.place(i, j)}: {what}{several}. {remedy}")


def _features(sheet: _Sheet, n_features: int) -> Array:
    labels = sheet.features
    if labels is None:
        return np.array([f"x{f}" for f in range(n_features)])
    if "" in labels:
        raise ValueError(
            f"{sheet.name}: the feature in {sheet.feature(labels.index(''))} has no name. Name it, "
            f"or remove it."
        )
    if twice := _repeated(labels):
        first, again = twice
        raise ValueError(
            f"{sheet.name} has the feature {labels[again]!r} twice, in {sheet.feature(first)} and "
            f"{sheet.feature(again)}. Give each feature a name of its own."
        )
    return np.array(labels)


def _repeated(keys: Sequence[Any]) -> tuple[int, int] | None:
    """The places of the first key that occurs again."""
    seen: dict[Any, int] = {}
    for n, key in enumerate(keys):
        if seen.setdefault(key, n) != n:
            return seen[key], n
    return None


def _times(sheet: _Sheet, X: Any) -> tuple[Array, tuple[str, ...]]:
    labels = sheet.times
    if labels is None:
        return np.arange(X.shape[0]), _about_numbering(X)
    kind, keys = _time_keys(sheet, labels)
    if twice := _repeated(keys):
        first, again = twice
        raise ValueError(
            f"{sheet.name} has the time {labels[again]!r} twice, in {sheet.time(first)} and "
            f"{sheet.time(again)}. Give each time step one row, with all features in it."
        )
    if kind == "text":
        return np.array(labels), (
            f"times such as {labels[0]!r} are neither numbers nor ISO dates: their order is taken "
            f"as it stands",
        )
    for n, (before, after) in enumerate(pairwise(keys), 1):
        if after < before:
            raise ValueError(
                f"{sheet.name} is not in the order of time: {labels[n]!r} ({sheet.time(n)}) comes "
                f"after {labels[n - 1]!r} ({sheet.time(n - 1)}). Sort it by time."
            )
    numbers = np.array(keys)
    return (numbers if numbers.dtype.kind in "if" else np.array(labels)), ()


def _about_numbering(X: Any) -> tuple[str, ...]:
    notes = ["no times were found: steps are numbered from 0"]
    if not sparse.issparse(X):
        rise = np.diff(X[:, 0])
        if rise[0] > 0 and np.all(rise == rise[0]):
            notes.append(
                f"the first feature rises evenly ({X[0, 0]:g}, {X[1, 0]:g}, …): if these are "
                f"times, label them 'time'"
            )
    return tuple(notes)


def _time_keys(sheet: _Sheet, labels: Sequence[str]) -> tuple[str, list[Any]]:
    """The kind of all times, and what they are compared by."""
    kinds, keys = zip(*(_time_key(label, sheet.comma) for label in labels), strict=True)
    for n, kind in enumerate(kinds):
        if kind == "missing":
            raise ValueError(
                f"{sheet.name}, {sheet.time(n)} has no time. Fill it in, or remove the step."
            )
        if kind != kinds[0]:
            raise ValueError(
                f"{sheet.name} has times of two kinds: {labels[0]!r} ({sheet.time(0)}) is "
                f"{kinds[0]}, {labels[n]!r} ({sheet.time(n)}) is {kind}. Use one kind, and remove "
                f"what is no time step, such as totals."
            )
    return kinds[0], list(keys)


def _time_key(label: str, comma: bool) -> tuple[str, Any]:
    number = _number(label, comma)
    if number is not None and math.isnan(number):
        return "missing", None
    if number is not None and math.isfinite(number):
        # Whole numbers stay exact: time stamps in nanoseconds are beyond 2^53.
        return "a number", int(label) if re.fullmatch(r"[+-]?\d+", label) else number
    moment = _moment(label)
    return ("text", label) if moment is None else ("a date", moment)


def _moment(label: str) -> datetime | None:
    """An ISO date, also without its day."""
    try:
        moment = datetime.fromisoformat(f"{label}-01" if _YEAR_MONTH.fullmatch(label) else label)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_YEAR_MONTH = re.compile(r"\d{4}-\d{2}")


def _missing(X: Any, times: Array) -> tuple[str, ...]:
    if sparse.issparse(X) or not (gaps := np.isnan(X)).any():
        return ()
    notes = [f"missing cells: {int(gaps.sum())} of {X.size}"]
    whole = times[gaps.all(axis=1)]
    if len(whole):
        few = ", ".join(map(str, whole[:3])) + (", …" if len(whole) > 3 else "")
        notes.append(f"time steps without any value: {len(whole)} ({few})")
    return tuple(notes)


@contextmanager
def _damage_told(path: Path, what: str, remedy: str) -> Iterator[None]:
    """What libraries say of a damaged or foreign file, as one kind of error."""
    try:
        yield
    except PermissionError:
        raise
    except (ValueError, OSError, EOFError, OverflowError, zlib.error, BadZipFile) as error:
        raise ValueError(
            f"{path.name} cannot be read as {what}: {str(error).rstrip('.')}. {remedy}"
        ) from error


# Text


def _read_text(path: Path, transpose: bool) -> _Sheet:
    name, text = path.name, _text(path)
    separator = _separator(text)
    comma = separator == ";" and _DECIMAL_COMMA.search(text) is not None
    lines, margin, head = _outline(name, text, separator)
    header = _has_header(name, head, transpose, comma)
    lines, margin = lines[header:], margin[header:]
    if not lines:
        raise ValueError(
            f"{name} holds only a header ({head[0]!r}, …). Add a line per time step below it."
        )
    corner = head[0] if header else None
    labelled = _holds_labels(corner, margin, transpose, comma)
    if len(head) == labelled:
        raise ValueError(
            f"{name} has no column of numbers, only cells such as {margin[0]!r}. They are taken to "
            f"be separated by {_SEPARATORS[separator]}: separate them so."
        )
    body = islice(_records(name, text, separator), header, None)
    cells, wrong = np.empty((len(lines), len(head) - labelled)), _Wrong()
    for i, (_, record) in enumerate(body):
        cells[i] = _numbers(record[labelled:], comma, i, wrong)
    sheet = _Sheet(
        name, transpose, cells,
        rows=margin if labelled else None,
        columns=head[labelled:] if header else None,
        lines=lines, margin=1 + labelled, comma=comma,
        notes=_about_text(separator, comma, corner, labelled, transpose),
    )  # fmt: skip
    _refuse_text(sheet, wrong)
    return sheet


def _about_text(
    separator: str, comma: bool, corner: str | None, labelled: bool, transpose: bool
) -> tuple[str, ...]:
    where = f"column {corner!r}" if corner else "the first column"
    told = {
        "cells are separated by ';'": separator == ";",
        "commas are decimal commas": comma,
        "there is no header: the first line is data": corner is None,
        "times are in the first line": transpose and corner is not None,
        f"{'features' if transpose else 'times'} are in {where}": labelled,
    }
    return tuple(note for note, holds in told.items() if holds)


def _bytes(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix.lower() == ".gz":
        with _damage_told(path, "a gzip file", "Compress it again."):
            data = gzip.decompress(data)
    return data


def _text(path: Path) -> bytes:
    """The text of a file in UTF-8, without the blank lines at its end."""
    data = _bytes(path)
    # Excel's "Unicode text" is UTF-16.
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if utf16 else "utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path.name}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8. Save the file "
            f"as UTF-8 (in Excel: 'CSV UTF-8')."
        ) from error
    if not text.strip():
        raise ValueError(f"{path.name} is empty. Give it a row per time step.")
    return text.encode()


def _records(name: str, text: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The records of a text, each with the line it starts at."""
    source = io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", newline="")
    reader = csv.reader(source, delimiter=separator, strict=True, skipinitialspace=True)
    line = 1
    try:
        for record in reader:
            yield line, record
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{name}, line {line} cannot be split into cells: {error}. Check its quotation marks."
        ) from error


def _separator(text: bytes) -> str:
    """The first that splits all of the first lines alike, or else the one that splits most."""
    widths = {separator: _widths(text, separator) for separator in _SEPARATORS}
    alike = (separator for separator, w in widths.items() if min(w) == max(w) > 1)
    return next(alike, max(",;\t", key=lambda separator: widths[separator][0]))


def _widths(text: bytes, separator: str) -> list[int]:
    """How many cells the first lines have; 0 for one that cannot be split."""
    widths = []
    try:
        for _, record in islice(_records("", text, separator), 20):
            widths.append(len(record))
    except ValueError:
        widths.append(0)
    return widths


_DECIMAL_COMMA = re.compile(rb'(?:^|[;"\r\n]) *[+-]?\d*,\d+(?:[eE][+-]?\d+)? *(?=[;"\r\n]|$)')


def _outline(name: str, text: bytes, separator: str) -> tuple[list[int], list[str], list[str]]:
    """Line numbers and first cells of all records, and all cells of the first one."""
    lines: list[int] = []
    margin: list[str] = []
    head: list[str] = []
    for line, record in _records(name, text, separator):
        head = head or [cell.strip() for cell in record]
        if not record:
            raise ValueError(
                f"{name}, line {line} is blank. Remove it, or write NA for missing values."
            )
        if len(record) != len(head):
            raise ValueError(
                f"{name}, line {line} has {len(record)} cells and the first line has {len(head)}. "
                f"Give all lines the same number of cells, separated by {_SEPARATORS[separator]}."
            )
        lines.append(line)
        margin.append(record[0].strip())
    return lines, margin, head


def _has_header(name: str, head: list[str], transpose: bool, comma: bool) -> bool:
    """Whether the first line holds names. A line that may as well be data is refused."""
    corner, *others = head
    texts = [_number(cell, comma) is None for cell in head]
    if not others or any(texts[1:]):
        return any(texts)
    if corner == "":
        return not any(cell.casefold() in MISSING for cell in others)
    if not texts[0] or transpose or _is_time_name(corner):
        return texts[0]
    if _moment(corner) is not None:
        return False
    raise ValueError(
        f"{name}, line 1 may be a header or data: {corner!r} is followed by numbers ({others[0]}, "
        f"…). If it is a header, name the first column 'time'; if it is data, put a header before "
        f"it; if the numbers are times, use transpose=True (--transpose)."
    )


def _holds_labels(corner: str | None, margin: list[str], transpose: bool, comma: bool) -> bool:
    """Whether the first column holds times (features if transposed), not numbers to factorize."""
    if corner is not None and transpose:
        return _moment(corner) is None  # a date is one of the times
    if corner is not None and _is_time_name(corner):
        return True
    values = [_number(cell, comma) for cell in margin]
    return None in values and all(value is None or math.isnan(value) for value in values)


def _is_time_name(name: str) -> bool:
    return name.strip().casefold() in ("", "unnamed: 0", *TIME_NAMES)  # pandas' name for no name


def _numbers(record: list[str], comma: bool, i: int, wrong: _Wrong) -> Sequence[float | None]:
    """The values of row i; those that are not numbers are added to `wrong`."""
    if not comma and "_" not in "".join(record):
        try:
            return list(map(float, record))
        except ValueError:
            pass
    values = [_number(cell, comma) for cell in record]
    for j, value in enumerate(values):
        if value is None:
            wrong.add(i, j, record[j])
    return values


def _number(cell: str, comma: bool) -> float | None:
    """The value of a cell, NaN if it is missing, None if it is not a number."""
    cell = cell.strip()
    if cell.casefold() in MISSING:
        return math.nan
    # 1_000 is a number to Python only; beside decimal commas, 1.234 may be a thousand or one.
    if "_" in cell or (comma and "." in cell):
        return None
    try:
        return float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return None


# Parquet


def _read_parquet(path: Path, transpose: bool) -> _Sheet:
    try:
        import pandas as pd

        with _damage_told(path, "Parquet", "Write it again."):
            frame = pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise ImportError(
            f'{path.name} needs pandas and pyarrow: pip install "temporalnmf[io]".'
        ) from error
    labels, where, start = _frame_labels(path.name, frame, transpose)
    names = [str(name) for name in frame.columns[start:]]
    cells, wrong = np.empty((len(frame), len(names))), _Wrong()
    for j in range(len(names)):
        cells[:, j] = _column(frame.iloc[:, j + start], j, wrong)
    notes = (f"{'features' if transpose else 'times'} are in {where}",) if where else ()
    sheet = _Sheet(path.name, transpose, cells, labels, names, notes=notes)
    _refuse_text(sheet, wrong)
    return sheet


def _frame_labels(name: str, frame: Any, transpose: bool) -> tuple[list[str] | None, str, int]:
    """Labels of the rows, where they are, and the column at which the cells start."""
    import pandas as pd

    index = frame.index
    if index.nlevels > 1:
        raise ValueError(
            f"{name} has an index of {index.nlevels} levels ({', '.join(map(str, index.names))}). "
            f"Keep one level, the times, and make the others columns with unstack()."
        )
    if index.name is not None or not index.equals(pd.RangeIndex(len(frame))):
        return _words(index), "the index", 0
    if frame.shape[1]:
        column, first = str(frame.columns[0]), frame.iloc[:, 0]
        named = not transpose and _is_time_name(column)
        decimals = first.dropna().map(lambda value: isinstance(value, Decimal)).all()
        if named or not (pd.api.types.is_numeric_dtype(first) or decimals):
            return _words(pd.Index(first)), f"column {column!r}", 1
    return None, "", 0


def _words(index: Any) -> list[str]:
    pairs = zip(index.astype(str), index.isna(), strict=True)
    return ["" if missing else str(word).strip() for word, missing in pairs]


def _column(column: Any, j: int, wrong: _Wrong) -> Array:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.full(len(column), np.nan)
    for i, (value, missing) in enumerate(zip(column, column.isna(), strict=True)):
        if isinstance(value, Real | Decimal):
            values[i] = float(value)
        elif not missing:
            wrong.add(i, j, value if isinstance(value, str) else str(value))
    return values


# Arrays

_NUMPY_REMEDY = "Save it again as plain numbers, for instance np.save(file, X.astype(float))."


def _read_numpy(path: Path, transpose: bool) -> _Sheet:
    notes: tuple[str, ...] = ()
    damage = _damage_told(path, "NumPy arrays of numbers", _NUMPY_REMEDY)
    with damage, path.open("rb") as file:
        loaded = np.load(file, allow_pickle=False)
        if {"format", "shape"} <= set(getattr(loaded, "files", ())):
            file.seek(0)
            loaded = sparse.load_npz(file)
            _check_indices(loaded)
        elif not isinstance(loaded, np.ndarray):
            loaded = {name: _member(loaded, name) for name in loaded.files}
    if isinstance(loaded, dict):
        name = _chosen(path.name, loaded)
        unused = ", ".join(other for other in loaded if other != name)
        notes = (f"data are in array {name!r}", f"arrays not used: {unused or 'none'}")
        loaded = loaded[name]
    return _array_sheet(path.name, loaded, transpose, notes)


def _check_indices(matrix: Any) -> None:
    """SciPy trusts them, and would read beyond the end of its memory."""
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)


def _member(archive: Any, name: str) -> Array | None:
    """One array of an archive, None if it holds Python objects."""
    try:
        return np.asarray(archive[name])
    except ValueError:
        return None


def _chosen(file: str, arrays: dict[str, Array | None]) -> str:
    tables = [
        name
        for name, array in arrays.items()
        if array is not None and array.ndim == 2 and array.dtype.kind in "biuf"
    ]
    chosen = tables if len(tables) == 1 else [name for name in tables if name in ARRAY_NAMES]
    if len(chosen) != 1:
        found = ", ".join(
            f"{name} ({'Python objects' if array is None else f'{array.dtype} {array.shape}'})"
            for name, array in arrays.items()
        )
        raise ValueError(
            f"{file} holds {found or 'nothing'}. Keep one table of numbers, or name it one of "
            f"{', '.join(ARRAY_NAMES)}."
        )
    return chosen[0]


def _read_matrix_market(path: Path, transpose: bool) -> _Sheet:
    from scipy.io import mmread

    data = _bytes(path)
    with _damage_told(path, "Matrix Market", "Write it again with scipy.io.mmwrite."):
        matrix = mmread(io.BytesIO(data))
    return _array_sheet(path.name, matrix, transpose)


def _array_sheet(name: str, array: Any, transpose: bool, notes: tuple[str, ...] = ()) -> _Sheet:
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} holds an array of {array.dtype} with shape {array.shape}: expected real "
            f"numbers with two dimensions, times and features."
        )
    if not sparse.issparse(array):
        return _Sheet(name, transpose, array.astype(np.float64), notes=notes)
    cells = sparse.csr_array(array, dtype=np.float64)
    cells.sum_duplicates()
    return _Sheet(name, transpose, cells, notes=notes)


_READERS: dict[str, Callable[[Path, bool], _Sheet]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"), _read_text),
    ".parquet": _read_parquet,
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    **dict.fromkeys((".mtx", ".mtx.gz"), _read_matrix_market),
}
