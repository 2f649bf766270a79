"""Parquet, NumPy and Matrix Market."""

from __future__ import annotations

import io
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .cells import bytes_of, damage_told, is_time_name, library, place_of
from .sheet import Sheet, Wrong, refuse_text

if TYPE_CHECKING:
    from ..likelihoods.base import Array  # not at run time: it loads the compiler

ARRAY_NAMES = ("X", "data", "counts", "power")


def read_parquet(path: Path, transpose: bool, time: str | None) -> Sheet:
    pandas = library("pandas", path.name)
    library("pyarrow", path.name)
    with damage_told(path, "Parquet", "Write it again."):
        frame = pandas.read_parquet(path, engine="pyarrow")
    return frame_sheet(path.name, frame, transpose, time)


def frame_sheet(name: str, frame: Any, transpose: bool, time: str | None) -> Sheet:
    """The cells of a pandas frame."""
    labels, where, at = _frame_labels(name, frame, transpose, time)
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
    name: str, frame: Any, transpose: bool, time: str | None
) -> tuple[list[str] | None, str, int | None]:
    """Labels of the rows, where they are, and the column that holds them if one does."""
    import pandas as pd

    index = frame.index
    if index.nlevels > 1:
        raise ValueError(
            f"{name} has an index of {index.nlevels} levels ({', '.join(map(str, index.names))}). "
            f"Keep one level, the times, and make the others columns with unstack()."
        )
    if time is not None and time != index.name:
        at = place_of(time, "time", [str(column) for column in frame.columns], name)
        return _words(pd.Index(frame.iloc[:, at])), f"column {time!r}", at
    if index.name is not None or not index.equals(pd.RangeIndex(len(frame))):
        return _words(index), "the index", None
    if frame.shape[1]:
        column, first = str(frame.columns[0]), frame.iloc[:, 0]
        named = not transpose and is_time_name(column)
        decimals = first.dropna().map(lambda value: isinstance(value, Decimal)).all()
        if named or not (pd.api.types.is_numeric_dtype(first) or decimals):
            return _words(pd.Index(first)), f"column {column!r}", 0
    return None, "", None


def _words(index: Any) -> list[str]:
    if hasattr(index, "to_timestamp"):  # a week as text is its first and last day
        index = index.to_timestamp()
    pairs = zip(index.astype(str), index.isna(), strict=True)
    return ["" if missing else str(word).strip() for word, missing in pairs]


def _column(column: Any, j: int, wrong: Wrong) -> Array:
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


_NUMPY_REMEDY = "Save it again as plain numbers, for instance np.save(file, X.astype(float))."


def read_numpy(path: Path, transpose: bool, time: str | None) -> Sheet:
    _refuse_time(path.name, time)
    notes: tuple[str, ...] = ()
    damage = damage_told(path, "NumPy arrays of numbers", _NUMPY_REMEDY)
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


def _refuse_time(name: str, time: str | None) -> None:
    if time is not None:
        raise ValueError(
            f"{name} has no columns with names, so time={time!r} (--time) cannot be found. Leave "
            f"it out."
        )


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


def read_matrix_market(path: Path, transpose: bool, time: str | None) -> Sheet:
    _refuse_time(path.name, time)
    from scipy.io import mmread

    data = bytes_of(path)
    with damage_told(path, "Matrix Market", "Write it again with scipy.io.mmwrite."):
        matrix = mmread(io.BytesIO(data))
    return _array_sheet(path.name, matrix, transpose)


def _array_sheet(name: str, array: Any, transpose: bool, notes: tuple[str, ...] = ()) -> Sheet:
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} holds an array of {array.dtype} with shape {array.shape}: expected real "
            f"numbers with two dimensions, times and features."
        )
    if not sparse.issparse(array):
        return Sheet(name, transpose, array.astype(np.float64), notes=notes)
    cells = sparse.csr_array(array, dtype=np.float64)
    cells.sum_duplicates()
    return Sheet(name, transpose, cells, notes=notes)
