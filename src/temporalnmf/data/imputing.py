"""Filled data, in the container they came in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from .._typing import Array
from ..reading import TimeTable, labels_of
from ..reading.containers import oriented
from ..timeline.grid import Timeline, time_texts
from .series import Series


def filled(X: Any, series: Series, expected: Callable[[int], Array]) -> Any:
    """X with its missing entries replaced by `expected(step)`.

    Where rows have labels and the container can hold new ones, absent periods get a row.
    """
    assert series.timeline is not None
    table = isinstance(X, TimeTable)
    found = None if table else labels_of(X, "X")
    column = None if found is None else found.column
    if found is not None and column is not None:
        times, X = X[X.columns[0]], found.cells
    grows = hasattr(X, "iloc") or column is not None
    whole = table or (grows and len(series.timeline.absent) > 0)
    thin = sparse.issparse(X)
    rows = []
    for n in range(series.n_steps) if whole else map(int, series.rows):
        x, weight = series.row(n)
        row = np.where(weight > 0.0, x, expected(n))
        rows.append(sparse.csr_array(row[None]) if thin else row)
    if thin:
        return type(X)(sparse.vstack(rows).asformat(X.format))
    values = np.array(rows)
    if table:
        return replace(X, X=values, observed=None)
    if hasattr(X, "iloc"):
        index = _index_like(X.index, series.timeline) if whole else X.index
        frame = type(X)(values, index=index, columns=X.columns)
        return frame if column is None else frame.reset_index()
    if hasattr(X, "dims"):
        return _array_like(X, values)
    if hasattr(X, "columns"):
        frame = type(X)(values, schema=list(X.columns))
        if column is not None:
            times = _column_like(times, series.timeline) if whole else times
            frame.insert_column(0, times)
        return frame
    return values


def _column_like(times: Any, timeline: Timeline) -> Any:
    """All steps as a polars series of the kind that was given."""
    text = isinstance(times[0], str)
    dates = timeline.labels.dtype.kind == "M"
    labels = timeline.labels.astype("datetime64[us]") if dates else timeline.labels
    full = type(times)(times.name, time_texts(timeline.times) if text else labels)
    return full.cast(times.dtype)


def _array_like(X: Any, values: Array) -> Any:
    """An xarray array with the dimensions in the order they came in."""
    time = oriented(X).dims[0]
    return X.copy(data=values if X.dims[0] == time else values.T)


def _index_like(index: Any, timeline: Timeline) -> Any:
    """All steps as a pandas index of the kind that was given."""
    import pandas as pd

    labels = timeline.labels
    if isinstance(index, pd.PeriodIndex):
        return pd.PeriodIndex(labels, freq=index.freq, name=index.name)
    if isinstance(index, pd.DatetimeIndex):
        return pd.DatetimeIndex(labels, tz=index.tz, name=index.name).as_unit(index.unit)
    text = isinstance(index[0], str)
    return pd.Index(time_texts(timeline.times) if text else labels, name=index.name)
