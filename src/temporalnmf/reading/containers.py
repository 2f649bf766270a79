"""Tables from frames and labelled arrays in memory."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from ..messages.errors import ArgumentError
from ..timeline.grid import time_texts
from .arrays import frame_sheet, is_plain, starts_with_labels
from .cells import is_time_name, place_of
from .grid import TimeTable, table_of, with_days
from .libraries import load, pd
from .long import long_table
from .long_columns import Columns, Source
from .long_files import BLOCK_ROWS, arrow_of
from .sheet import Sheet

if TYPE_CHECKING:
    import polars as pl
    from xarray import DataArray

    Frame = pd.DataFrame | pl.DataFrame | pl.LazyFrame


def as_table(
    data: Frame | DataArray,
    *,
    time: str | None = None,
    feature: str | None = None,
    value: str | None = None,
    exposure: str | None = None,
    freq: str | None = None,
    drop_partial: bool = False,
) -> TimeTable:
    """A table over time of a pandas or polars frame, or of an xarray array.

    Parameters
    ----------
    data : pandas.DataFrame, polars.DataFrame or xarray.DataArray
        Wide, a row per time, or long, a row per time and feature. An array has two dimensions;
        the times are the one that `time` names, else the one with the name of a time, else the
        one that holds dates, else the first.
    time, feature, value, exposure, freq, drop_partial
        As in `read_table`; `time` may also name the index of a pandas frame.

    Returns
    -------
    table : TimeTable

    Examples
    --------
    >>> import pandas as pd
    >>> plays = pd.DataFrame(
    ...     {"day": ["2001-01-01", "2001-01-01", "2001-01-02", "2001-01-04"], "song": [*"abba"]}
    ... )
    >>> table = as_table(plays, time="day", feature="song")
    >>> table.X
    array([[ 1.,  1.],
           [ 0.,  1.],
           [nan, nan],
           [ 1.,  0.]])
    """
    columns = Columns.of(time, feature, value, exposure)
    if is_xarray(data):
        if columns is not None:
            problem = "is for long tables, and an xarray array is wide."
            raise ArgumentError("feature", feature, problem, "Leave it out.")
        sheet = _array_sheet(data, time)
        return with_days(lambda name: table_of(sheet, name, freq, drop_partial), exposure)
    frame = _pandas_frame(data)

    def read(exposure: str | None) -> TimeTable:
        if columns is None:
            sheet = frame_sheet("the frame", frame, False, time)
            return table_of(sheet, exposure, freq, drop_partial)
        named = columns._replace(exposure=exposure)
        return long_table(_frame_source(frame, named), named, freq, drop_partial)

    return with_days(read, exposure)


def is_xarray(data: object) -> TypeGuard[DataArray]:
    """Whether data are of xarray, without importing it."""
    return hasattr(data, "dims") and hasattr(data, "coords")


def _pandas_frame(data: object) -> pd.DataFrame:
    module = type(data).__module__.partition(".")[0]
    if module == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if module == "polars" and hasattr(data, "to_pandas") and hasattr(data, "columns"):
        load("pandas")
        return data.to_pandas()
    if module == "pandas" and isinstance(data, pd.DataFrame):
        return data
    expected = "expected a pandas or polars frame or an xarray array"
    raise TypeError(f"data is of type {type(data).__name__}: {expected}. Pass arrays to fit.")


def _frame_source(frame: pd.DataFrame, columns: Columns) -> Source:
    if frame.index.name in columns.names:
        frame = frame.reset_index()
    places = columns.places([str(name) for name in frame.columns], "the frame")
    arrays = [arrow_of(frame.iloc[:, j]) for j in places]
    blocks = (
        [array.slice(start, BLOCK_ROWS) for array in arrays]
        for start in range(0, len(frame), BLOCK_ROWS)
    )
    return Source("the frame", blocks, lambda n: f"row {n}")


class Labelled(NamedTuple):
    """Cells in memory and their labels.

    `rows` are the labels of rows, a sequence or an index with the name `corner`, or None; `columns`
    are the names of columns, or None. `column` is the name of the column that held the labels of
    rows, if one did, and `numbers` says whether it holds numbers.
    """

    cells: ArrayLike
    rows: ArrayLike | None = None
    corner: Hashable = None
    columns: list[str] | None = None
    column: str | None = None
    numbers: bool = False


def labels_of(data: object, name: str) -> Labelled | None:
    """The labels of a pandas or polars frame or series or of an xarray array, else None.

    Times are recognized as in files. Row and column numbers from 0 are not labels.
    """
    if is_xarray(data):
        return _labels_of_array(data)
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return _labels_of_frame(cast("pd.DataFrame", data), name)
    if hasattr(data, "iloc"):
        index = cast("pd.Series", data).index
        return Labelled(cast("pd.Series", data), None if is_plain(index) else index, index.name)
    if type(data).__module__.startswith("polars") and hasattr(data, "to_series"):
        return _labels_of_polars(cast("pl.DataFrame", data))
    return None


def _labels_of_array(data: DataArray) -> Labelled:
    data = data if len(data.dims) == 1 else oriented(data)
    first, *others = data.dims
    rows = data.coords[first].values if first in data.coords else None
    columns = _dimension_labels(data, others[0]) if others else None
    return Labelled(data.values, rows, first, columns)


def _labels_of_frame(data: pd.DataFrame, name: str) -> Labelled:
    column, numbers = None, False
    if starts_with_labels(name, data):
        column = str(data.columns[0])
        numbers = pd.api.types.is_numeric_dtype(data.iloc[:, 0])
        index = pd.Index(data.iloc[:, 0], name=data.columns[0])
        data = data.iloc[:, 1:].set_axis(index, axis=0)
    columns = None if is_plain(data.columns) else [str(label) for label in data.columns]
    rows = None if is_plain(data.index) else data.index
    return Labelled(data, rows, data.index.name, columns, column, numbers)


def _labels_of_polars(data: pl.DataFrame) -> Labelled:
    columns = [str(label) for label in data.columns]
    if not columns:
        return Labelled(data)
    first, kind = data.to_series(0), data.dtypes[0]
    numbers = kind.is_numeric() or str(kind) in ("Boolean", "Null", "Object")
    if not is_time_name(columns[0]) and numbers:
        return Labelled(data, columns=columns)
    return Labelled(data[:, 1:], first.to_list(), columns[0], columns[1:], columns[0], numbers)


def oriented(data: DataArray, time: str | None = None) -> DataArray:
    """An array with the times as its first dimension."""
    if not hasattr(data, "dtype") or len(data.dims) != 2:
        found = f"{type(data).__name__} with dimensions {', '.join(map(str, data.dims))}"
        expected = "expected a DataArray with two, times and features"
        raise TypeError(f"data is a {found}: {expected}. Choose a variable, as in data['counts'].")
    dims = [str(dim) for dim in data.dims]
    if time is not None:
        at = place_of(time, "time", dims, "the array")
    else:
        named = [is_time_name(dim) for dim in dims]
        dated = [dim in data.coords and data.coords[dim].dtype.kind == "M" for dim in data.dims]
        at = next((flags.index(True) for flags in (named, dated) if sum(flags) == 1), 0)
    return data.transpose(data.dims[at], data.dims[1 - at])


def _array_sheet(data: DataArray, time: str | None) -> Sheet:
    data = oriented(data, time)
    corner = str(data.dims[0])
    times, features = (_dimension_labels(data, dim) for dim in data.dims)
    return Sheet(
        "the array", False, np.array(data.values, dtype=np.float64), times, features,
        corner=corner, notes=(f"times are in dimension {corner!r}",),
    )  # fmt: skip


def _dimension_labels(data: DataArray, dim: Hashable) -> list[str] | None:
    return time_texts(data.coords[dim].values) if dim in data.coords else None
