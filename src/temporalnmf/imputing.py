"""Filled data, in the container they came in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from .likelihoods.base import Array
from .reading import TimeTable
from .reading.containers import oriented
from .timeline import Timeline, time_texts
from .validation import Series


def filled(X: Any, series: Series, expected: Callable[[int], Array]) -> Any:
    """X with its missing entries replaced by `expected(step)`.

    Where rows have labels and the container can hold new ones, absent periods get a row.
    """
    assert series.timeline is not None
    table = isinstance(X, TimeTable)
    whole = table or (hasattr(X, "iloc") and len(series.timeline.absent) > 0)
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
        return type(X)(values, index=index, columns=X.columns)
    if hasattr(X, "dims"):
        return _array_like(X, values)
    if hasattr(X, "columns"):
        return type(X)(values, schema=list(X.columns))
    return values


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
        return pd.DatetimeIndex(labels, tz=index.tz, name=index.name)
    if isinstance(index[0], str):
        labels = time_texts(timeline.times)
    return pd.Index(labels, name=index.name)
