"""Imputed data, in a container of the original type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._typing import Array
from ..reading import TimeTable, labels_of
from ..reading.containers import oriented
from ..timeline.grid import Timeline, time_texts
from .series import Series

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import xarray as xr


def filled(
    X: ArrayLike | TimeTable, series: Series, expected: Callable[[int], Array]
) -> ArrayLike | TimeTable:
    """X with `expected(step)` in missing entries, and rows for absent periods if it is a frame."""
    timeline = series.timeline
    assert timeline is not None
    if isinstance(X, TimeTable):
        values = np.array(_rows(series, range(series.n_steps), expected))
        return replace(X, X=values, observed=None)
    found = labels_of(X, "X")
    in_column = found is not None and found.column is not None
    grows = (hasattr(X, "iloc") or in_column) and len(timeline.absent) > 0
    rows = _rows(series, range(series.n_steps) if grows else map(int, series.rows), expected)
    if sparse.issparse(X):
        original: sparse.csr_array = X
        thin = sparse.vstack([sparse.csr_array(row[None]) for row in rows])
        return type(original)(thin.asformat(original.format))
    values, full = np.array(rows), timeline if grows else None
    if hasattr(X, "iloc"):
        frame = found.cells if found is not None and in_column else X
        return _pandas_like(cast("pd.DataFrame", frame), values, full, in_column)
    if hasattr(X, "dims"):
        return _xarray_like(cast("xr.DataArray", X), values)
    if hasattr(X, "columns"):
        return _polars_like(cast("pl.DataFrame", X), values, full, in_column)
    return values


def _rows(series: Series, steps: Iterable[int], expected: Callable[[int], Array]) -> list[Array]:
    """Rows of some steps: observed entries, and expected values in place of the others."""
    pairs = ((n, *series.row(n)) for n in steps)
    return [np.where(weight > 0.0, x, expected(n)) for n, x, weight in pairs]


def _pandas_like(
    frame: pd.DataFrame, values: Array, full: Timeline | None, in_column: bool
) -> pd.DataFrame:
    """A pandas frame with other values, and with all steps of `full`."""
    index = frame.index if full is None else _index_like(frame.index, full)
    found = type(frame)(values, index=index, columns=frame.columns)
    return found.reset_index() if in_column else found


def _polars_like(
    frame: pl.DataFrame, values: Array, full: Timeline | None, in_column: bool
) -> pl.DataFrame:
    """A polars frame with other values; its first column may hold the times."""
    if not in_column:
        return type(frame)(values, schema=list(frame.columns))
    first, *names = frame.columns
    times = frame[first] if full is None else _column_like(frame[first], full)
    return type(frame)(values, schema=names).insert_column(0, times)


def _column_like(times: pl.Series, timeline: Timeline) -> pl.Series:
    """All steps as a polars series of the same type."""
    text = isinstance(times[0], str)
    dates = timeline.labels.dtype.kind == "M"
    labels = timeline.labels.astype("datetime64[us]") if dates else timeline.labels
    full = type(times)(times.name, time_texts(timeline.times) if text else labels)
    return full.cast(times.dtype)


def _xarray_like(X: xr.DataArray, values: Array) -> xr.DataArray:
    """An xarray array with other values, and its dimensions in the original order."""
    time = oriented(X).dims[0]
    return X.copy(data=values if X.dims[0] == time else values.T)


def _index_like(index: pd.Index, timeline: Timeline) -> pd.Index:
    """All steps as a pandas index of the same type."""
    import pandas as pd

    labels = timeline.labels
    if isinstance(index, pd.PeriodIndex):
        return pd.PeriodIndex(labels, freq=index.freq, name=index.name)
    if isinstance(index, pd.DatetimeIndex):
        return pd.DatetimeIndex(labels, tz=index.tz, name=index.name).as_unit(index.unit)
    text = isinstance(index[0], str)
    return pd.Index(time_texts(timeline.times) if text else labels, name=index.name)
