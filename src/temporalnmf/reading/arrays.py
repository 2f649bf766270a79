"""Parquet, NumPy and Matrix Market."""

from __future__ import annotations

import io
import re
from decimal import Decimal
from numbers import Real
from pathlib import Path

import numpy as np
from scipy import sparse

from .._typing import Array
from ..messages.errors import ArgumentError
from ..runtime.archives import Archive, ObjectsError, read_npy, refuse_wild_indices
from . import parquet
from .cells import bytes_of, damage_told, is_time_name, place_of
from .libraries import pd
from .sheet import Cells, Sheet, Wrong, refuse_text

ARRAY_NAMES = ("X", "data", "counts", "power")


def read_parquet(path: Path, transpose: bool, time: str | None) -> Sheet:
    with damage_told(path, "Parquet", "Write it again."):
        with parquet.open_file(path) as file:
            parquet.check(path, file)
        frame = pd.read_parquet(path, engine="pyarrow")
    return frame_sheet(path.name, frame, transpose, time)


def frame_sheet(name: str, frame: pd.DataFrame, transpose: bool, time: str | None) -> Sheet:
    """The cells of a pandas frame."""
    try:
        labels, where, at = _frame_labels(name, frame, transpose, time)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} has labels of bytes, not text ({error}). Decode them.") from error
    places = [j for j in range(frame.shape[1]) if j != at]
    names = [str(frame.columns[j]) for j in places]
    cells, wrong = np.empty((len(frame), len(names))), Wrong()
    for j, place in enumerate(places):
        cells[:, j] = _column(frame.iloc[:, place], j, wrong)
    notes = (f"{'features' if transpose else 'times'} are in {where}",) if where else ()
    corner = str(frame.index.name or "") if at is None else str(frame.columns[at])
    sheet = Sheet(name, transpose, cells, labels, names, at=at, corner=corner, notes=notes)
    refuse_text(sheet, wrong)
    return sheet


def _frame_labels(
    name: str, frame: pd.DataFrame, transpose: bool, time: str | None
) -> tuple[list[str] | None, str, int | None]:
    """Labels of the rows, where they are, and the index of the column that holds them, if any."""
    index = frame.index
    if index.nlevels > 1:
        levels = f"{index.nlevels} levels ({', '.join(map(str, index.names))})"
        raise ValueError(f"{name} has an index of {levels}. Keep the times, unstack() the others.")
    if time is not None and time != index.name:
        at = place_of(time, "time", [str(column) for column in frame.columns], name)
        return _words(pd.Index(frame.iloc[:, at])), f"column {time!r}", at
    if time is None and starts_with_labels(name, frame, transpose):
        return _words(pd.Index(frame.iloc[:, 0])), f"column {str(frame.columns[0])!r}", 0
    return (None, "", None) if is_plain(index) else (_words(index), "the index", None)


def starts_with_labels(name: str, frame: pd.DataFrame, transpose: bool = False) -> bool:
    """Whether the first column of a pandas frame labels its rows; with times, if not transposed.

    It does if the index does not, and the column has the name of a time or does not hold numbers.
    An unnamed index of whole numbers may be years, or the row numbers of a filtered frame.
    """
    index = frame.index
    if index.nlevels > 1 or index.name is not None or not frame.shape[1]:
        return False
    column, first = str(frame.columns[0]), frame.iloc[:, 0]
    named = not transpose and is_time_name(column)
    numbers = pd.api.types.is_numeric_dtype(first) or all(
        isinstance(value, Real | Decimal) for value in first.dropna()
    )
    if is_plain(index):
        return named or not numbers
    if not (named and pd.api.types.is_integer_dtype(index)):
        return False
    if is_plain(index.sort_values()):
        return True
    if first.is_unique and len(first) > 1:
        found = f"an unnamed index of whole numbers ({index[0]}, {index[1]}, …)"
        remedy = f"Use set_index({column!r}), or rename_axis('time') if these are the times."
        raise ValueError(f"{name} has {found}, and a column {column!r}. {remedy}")
    return False


def is_plain(index: pd.Index) -> bool:
    """Whether a pandas index only numbers the rows, or columns, from 0."""
    return index.name is None and bool(index.equals(pd.RangeIndex(len(index))))


def _words(index: pd.Index) -> list[str]:
    # Weeks would be written as their first and last day.
    if isinstance(index, pd.PeriodIndex) and index.freqstr not in ("Q-DEC", "M"):
        index = index.to_timestamp()
    pairs = zip(index.astype(str), index.isna(), strict=True)
    return ["" if missing else str(word).strip() for word, missing in pairs]


def _column(column: pd.Series, j: int, wrong: Wrong) -> Array:
    if pd.api.types.is_numeric_dtype(column):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.full(len(column), np.nan)
    for i, (value, missing) in enumerate(zip(column, column.isna(), strict=True)):
        if isinstance(value, Real | Decimal):
            values[i] = float(value)
        elif not missing:
            wrong.add(i, j, value if isinstance(value, str) else str(value))
    return values


_NUMPY_REMEDY = "Save it again as plain numbers, for instance np.save(file, X.astype(float))."


def read_numpy(path: Path, transpose: bool, time: str | None) -> Sheet:
    _refuse_time(path.name, time)
    damage = damage_told(path, "NumPy arrays of numbers", _NUMPY_REMEDY)
    if path.suffix.lower() == ".npy":
        with damage, path.open("rb") as file:
            array = read_npy(file, path.stat().st_size)
        return _array_sheet(path.name, array, transpose)
    with damage, path.open("rb") as file, Archive(file) as archive:
        if {"format", "shape"} <= set(archive.arrays):
            array = _sparse({name: archive.array(name) for name in archive.arrays})
            return _array_sheet(path.name, array, transpose)
        arrays = {name: _member(archive, name) for name in archive.arrays}
    name, array = _chosen(path.name, arrays)
    unused = ", ".join(other for other in arrays if other != name)
    notes = (f"data are in array {name!r}", f"arrays not used: {unused or 'none'}")
    return _array_sheet(path.name, array, transpose, notes)


def _refuse_time(name: str, time: str | None) -> None:
    if time is not None:
        problem = f"cannot be found: {name} has no named columns."
        raise ArgumentError("time", time, problem, "Leave it out.")


def _sparse(parts: dict[str, Array]) -> sparse.sparray:
    """A matrix written by SciPy's `save_npz`."""
    kind, shape = parts["format"].item(), tuple(parts["shape"].tolist())
    kind = kind.decode() if isinstance(kind, bytes) else kind
    data = parts["data"]
    if len(shape) != 2 or any(type(length) is not int for length in shape):
        raise ValueError(f"its shape is {shape}")
    check_extent(shape, data.size)
    whole = ("indices", "indptr", "coords", "row", "col", "offsets")
    if any(parts[name].dtype.kind not in "iu" for name in whole if name in parts):
        raise ValueError("its indices are not whole numbers")
    if kind in ("csr", "csc", "bsr"):
        make = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}[kind]
        found = make((data, parts["indices"], parts["indptr"]), shape=shape)
        refuse_wild_indices(found)
        return found
    if kind == "coo":
        places = parts["coords"] if "coords" in parts else (parts["row"], parts["col"])
        return sparse.coo_array((data, tuple(places)), shape=shape)
    if kind == "dia":
        return sparse.dia_array((data, parts["offsets"]), shape=shape)
    raise ValueError(f"its format is {kind!r}")


MOST_EMPTY = 1 << 20


def check_extent(shape: tuple[int, ...], numbers: int) -> None:
    """Refuse a huge sparse table that is almost empty: empty rows and columns take memory, too."""
    if min(shape) < 0 or max(shape) > MOST_EMPTY + 100 * numbers:
        size = f"{shape[0]:,} × {shape[1]:,} with {numbers:,} numbers"
        raise ValueError(f"it is {size}: nearly all rows or columns are empty")


def _member(archive: Archive, name: str) -> Array | None:
    """One array of an archive, None if it holds Python objects."""
    try:
        return archive.array(name)
    except ObjectsError:
        return None


def _chosen(file: str, arrays: dict[str, Array | None]) -> tuple[str, Array]:
    """The only table, or the only one with a name from `ARRAY_NAMES`."""
    tables = [
        (name, array)
        for name, array in arrays.items()
        if array is not None and array.ndim == 2 and array.dtype.kind in "biuf"
    ]
    chosen = tables if len(tables) == 1 else [table for table in tables if table[0] in ARRAY_NAMES]
    if len(chosen) != 1:
        found = ", ".join(
            f"{name} ({'Python objects' if array is None else f'{array.dtype} {array.shape}'})"
            for name, array in arrays.items()
        )
        remedy = f"Keep one table of numbers, or name it one of {', '.join(ARRAY_NAMES)}."
        raise ValueError(f"{file} holds {found or 'nothing'}. {remedy}")
    return chosen[0]


def read_matrix_market(path: Path, transpose: bool, time: str | None) -> Sheet:
    _refuse_time(path.name, time)
    data = bytes_of(path)
    with damage_told(path, "Matrix Market", "Write it again with scipy.io.mmwrite."):
        matrix = _market(data)
    return _array_sheet(path.name, matrix, transpose)


_MARKET = re.compile(
    rb"%%MatrixMarket\s+matrix\s+(array|coordinate)\s+(real|double|integer|unsigned-integer|pattern)"
    rb"\s+(general|symmetric|skew-symmetric)[ \t\r]*\n(?:[ \t\r]*(?:%[^\n]*)?\n)*"
    rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+(\d{1,18}))?[ \t\r]*(?:\n|$)",
    re.IGNORECASE,
)


def _market(data: bytes) -> Cells:
    """The matrix of a Matrix Market text.

    SciPy's reader allocates whatever the header says and reads past the end of a damaged text
    (SciPy 1.17: a NUL or a truncated number crashes the process).
    """
    found = _MARKET.match(data)
    if found is None:
        raise ValueError("its first lines are not those of a matrix of real numbers")
    layout, field, symmetry = (word.lower() for word in found.groups()[:3])
    R, C, entries = (int(size or 0) for size in found.groups()[3:])
    sign = {b"general": 0.0, b"symmetric": 1.0, b"skew-symmetric": -1.0}[symmetry]
    if sign and R != C:
        raise ValueError(f"its header says symmetric and {R:,} × {C:,}")
    width = 1
    if layout == b"array":
        entries = R * (R + int(sign)) // 2 if sign else R * C
    else:
        check_extent((R, C), entries)
        width = 2 if field == b"pattern" else 3
    body = data[found.end() :]
    if 2 * width * entries > len(body) + 1:  # a number takes a digit and a blank, at least
        raise ValueError(f"its header says {entries:,} entries, in {len(body):,} bytes")
    numbers = np.empty((0, width))
    if body.strip():
        numbers = np.loadtxt(io.BytesIO(body), dtype=np.float64, comments=None, ndmin=2)
    if numbers.shape != (entries, width):
        raise ValueError(f"its header says {entries:,} lines of {width}: {numbers.shape} found")
    if layout == b"array":
        return _filled(numbers[:, 0], (R, C), sign)
    places, values = numbers[:, :2], numbers[:, 2] if width == 3 else np.ones(entries)
    if not np.all((places >= 1) & (places <= (R, C)) & (places == np.rint(places))):
        raise ValueError(f"it has entries outside of {R:,} × {C:,}")
    i, j = places.T.astype(np.int64) - 1
    if sign:
        beside = i != j
        i, j = np.concatenate([i, j[beside]]), np.concatenate([j, i[beside]])
        values = np.concatenate([values, sign * values[beside]])
    return sparse.coo_array((values, (i, j)), shape=(R, C))


def _filled(values: Array, shape: tuple[int, int], sign: float) -> Array:
    """A matrix from its columns; of a symmetric one, from the part below the diagonal."""
    if not sign:
        return values.reshape(shape[::-1]).T
    matrix = np.zeros(shape)
    j, i = np.triu_indices(shape[0], 0 if sign > 0 else 1)
    matrix[j, i] = sign * values
    matrix[i, j] = values
    return matrix


def _array_sheet(
    name: str, array: Array | sparse.sparray, transpose: bool, notes: tuple[str, ...] = ()
) -> Sheet:
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        found = f"{name} holds {array.dtype} of shape {array.shape}"
        raise ValueError(f"{found}: expected real numbers in two dimensions, times and features.")
    if not sparse.issparse(array):
        return Sheet(name, transpose, array.astype(np.float64), notes=notes)
    cells = sparse.csr_array(array, dtype=np.float64)
    cells.sum_duplicates()
    return Sheet(name, transpose, cells, notes=notes)
