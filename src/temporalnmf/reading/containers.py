"""Frames and labelled arrays in memory become tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..timeline import Timeline, time_texts, timeline_of
from .arrays import frame_sheet
from .cells import is_time_name, library, place_of
from .grid import TimeTable, table_of
from .long import Columns, Source, long_table
from .long_files import BLOCK_ROWS, arrow_of
from .sheet import Sheet

if TYPE_CHECKING:
    from ..likelihoods.base import Array  # not at run time: it loads the compiler


def as_table(
    data: Any,
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
        the times are the one that `time` names, or else has the name of a time, or holds dates,
        or is the first.
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
    if hasattr(data, "dims") and hasattr(data, "coords"):
        if columns is not None:
            raise ValueError("feature= is for long tables: an xarray array is wide. Leave it out.")
        return table_of(_array_sheet(data, time), exposure, freq, drop_partial)
    frame = _pandas_frame(data)
    if columns is None:
        sheet = frame_sheet("the frame", frame, False, time)
        return table_of(sheet, exposure, freq, drop_partial)
    return long_table(_frame_source(frame, columns), columns, freq, drop_partial)


def _pandas_frame(data: Any) -> Any:
    module = type(data).__module__.partition(".")[0]
    if module == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if module == "polars" and hasattr(data, "to_pandas") and hasattr(data, "columns"):
        library("pandas", "a polars frame")
        return data.to_pandas()
    if module == "pandas" and hasattr(data, "columns"):
        return data
    raise TypeError(
        f"data is of type {type(data).__name__}: expected a pandas or polars frame or an xarray "
        f"array. Arrays without labels go to fit as they are."
    )


def _frame_source(frame: Any, columns: Columns) -> Source:
    if frame.index.name in columns.names:
        frame = frame.reset_index()
    names = [str(name) for name in frame.columns]
    places = [
        place_of(name, option, names, "the frame")
        for option, name in columns._asdict().items()
        if name is not None
    ]
    columns_as_arrow = [arrow_of(frame.iloc[:, j]) for j in places]
    blocks = (
        [column.slice(start, BLOCK_ROWS) for column in columns_as_arrow]
        for start in range(0, len(frame), BLOCK_ROWS)
    )
    return Source("the frame", blocks, lambda n: f"row {n}")


def labelled_array(data: Any) -> tuple[Array, Array, Timeline | None]:
    """Values (times, features) of an xarray array, names of the features, and its times."""
    data = oriented(data)
    time, feature = data.dims
    names = _dimension_labels(data, feature) or [f"x{f}" for f in range(data.shape[1])]
    timeline = timeline_of(data.coords[time].values, name="X") if time in data.coords else None
    return data.values, np.array(names, dtype=object), timeline


def oriented(data: Any, time: str | None = None) -> Any:
    """With the times as its first dimension."""
    if not hasattr(data, "dtype") or len(data.dims) != 2:
        raise TypeError(
            f"data is an xarray {type(data).__name__} with dimensions "
            f"{', '.join(map(str, data.dims))}: expected a DataArray with two, times and features. "
            f"Choose a variable, as in data['counts']."
        )
    dims = [str(dim) for dim in data.dims]
    at = _time_dimension(data, dims, time)
    return data.transpose(data.dims[at], data.dims[1 - at])


def _array_sheet(data: Any, time: str | None) -> Sheet:
    data = oriented(data, time)
    corner = str(data.dims[0])
    times, features = (_dimension_labels(data, dim) for dim in data.dims)
    return Sheet(
        "the array", False, np.array(data.values, dtype=np.float64), times, features,
        corner=corner, notes=(f"times are in dimension {corner!r}",),
    )  # fmt: skip


def _time_dimension(data: Any, dims: list[str], time: str | None) -> int:
    if time is not None:
        return place_of(time, "time", dims, "the array")
    named = [is_time_name(dim) for dim in dims]
    dated = [dim in data.coords and data.coords[dim].dtype.kind == "M" for dim in data.dims]
    return next((flags.index(True) for flags in (named, dated) if sum(flags) == 1), 0)


def _dimension_labels(data: Any, dim: Any) -> list[str] | None:
    return time_texts(data.coords[dim].values) if dim in data.coords else None
