"""Rows of wide tables are put on the steps of a regular grid of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..timeline import Timeline, time_texts, timeline_of
from .cells import number_in, place_of
from .sheet import Sheet, check_shape, check_values, features_of

if TYPE_CHECKING:
    from ..likelihoods.base import Array  # not at run time: it loads the compiler


@dataclass(frozen=True)
class TimeTable:
    """A table of non-negative numbers over evenly spaced times.

    Attributes
    ----------
    X : array or sparse.csr_array, (n_times, n_features)
        NaN is missing, also in steps that were absent; in a sparse X an absent entry is a zero.
    times : array, (n_times,)
        Labels of the steps: numbers, dates (datetime64) or text; 0, 1, … if there were none.
    features : array of str, (n_features,)
        Labels of the columns; x0, x1, … if there were none.
    notes : tuple of str
        What was understood, in words.
    timeline : Timeline
        The steps and their spacing.
    exposure : array, (n_times,), or None
        Size behind each step; 1 where it is absent.
    observed : array of bool, (n_times,), or None
        Which steps of a sparse X are observed, where some are not: pass it as mask=.
    """

    X: Array | sparse.csr_array
    times: Array
    features: Array
    notes: tuple[str, ...]
    timeline: Timeline
    exposure: Array | None = None
    observed: Array | None = None


def table_of(sheet: Sheet, exposure: str | None = None, freq: str | None = None) -> TimeTable:
    check_shape(sheet)
    check_values(sheet)
    X = sheet.cells.T if sheet.transpose else sheet.cells
    X = sparse.csr_array(X) if sparse.issparse(X) else np.ascontiguousarray(X)
    features = features_of(sheet, X.shape[1])
    sizes = None
    if exposure is not None:
        X, features, sizes = _without_exposure(sheet, X, features, exposure)
    line, notes = _timeline(sheet, X, freq)
    check_steps(len(line.labels), freq, sheet.name)
    X, summed = _on_grid(X, line)
    notes = (*sheet.notes, *notes, *line.notes, *summed, *_missing(X, line))
    if sizes is not None:
        sizes = exposure_on_grid(sizes, line)
    return TimeTable(X, line.labels, features, notes, line, sizes)


def check_steps(n_steps: int, freq: str | None, name: str) -> None:
    if freq is not None and n_steps < 3:
        raise ValueError(
            f"{name} has {n_steps} steps with freq={freq!r}, and at least 3 are needed. Take "
            f"shorter periods."
        )


def _timeline(sheet: Sheet, X: Any, freq: str | None) -> tuple[Timeline, tuple[str, ...]]:
    labels = sheet.times
    if labels is None:
        if freq is not None:
            raise ValueError(
                f"freq={freq!r} needs times, and {sheet.name} has none. Name their column with "
                f"time= (--time)."
            )
        return numbered(X.shape[0]), _about_numbering(X)
    if sheet.comma:
        labels = [_with_point(label) for label in labels]
    return timeline_of(labels, freq, name=sheet.name, where=sheet.time), ()


def numbered(n_steps: int) -> Timeline:
    """Steps without labels."""
    return Timeline(np.arange(n_steps), np.arange(n_steps), "step of 1")


def _with_point(label: str) -> str:
    return label if number_in(label, comma=True) is None else label.replace(",", ".")


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


def _without_exposure(
    sheet: Sheet, X: Any, features: Array, exposure: str
) -> tuple[Any, Array, Array]:
    """The other features, and the exposure of each row; NaN where a row is wholly missing."""
    names = features.tolist()
    f = place_of(exposure, "exposure", names, sheet.name)
    if len(names) == 1:
        raise ValueError(f"{sheet.name} has no feature beside the exposure {exposure!r}. Give one.")
    sizes = np.asarray(X[:, [f]].toarray() if sparse.issparse(X) else X[:, [f]])[:, 0]
    kept = np.arange(len(names)) != f
    X = sparse.csr_array(X[:, np.flatnonzero(kept)]) if sparse.issparse(X) else X[:, kept]
    unknown = np.isnan(sizes)
    if not sparse.issparse(X):
        unknown &= ~np.isnan(X).all(axis=1)
    for n in np.flatnonzero(unknown | (sizes <= 0)).tolist():
        found = "is missing" if unknown[n] else f"is {sizes[n]:g}"
        raise ValueError(
            f"{sheet.name}, {sheet.time(n)}: the exposure {exposure!r} {found}. Give each time a "
            f"positive one, or leave all cells of its row empty."
        )
    return X, features[kept], sizes


def exposure_on_grid(sizes: Array, line: Timeline) -> Array:
    """Exposures (n_rows,) added up per step; 1 where none is known."""
    known = ~np.isnan(sizes)
    total = np.bincount(line.rows[known], sizes[known], minlength=len(line.labels))
    total[np.bincount(line.rows[known], minlength=len(line.labels)) == 0] = 1.0
    return total


def _on_grid(X: Any, line: Timeline) -> tuple[Any, tuple[str, ...]]:
    """Rows on their steps, added up where several share one; absent steps are NaN."""
    n_steps = len(line.labels)
    if np.array_equal(line.rows, np.arange(n_steps)):
        return X, ()
    known = ~np.isnan(X)
    total, count = np.zeros((n_steps, X.shape[1])), np.zeros((n_steps, X.shape[1]), dtype=np.int64)
    np.add.at(total, line.rows, np.where(known, X, 0.0))
    np.add.at(count, line.rows, known)
    total[count == 0] = np.nan
    rows = np.bincount(line.rows, minlength=n_steps)[:, np.newaxis]
    partial = int(np.sum((count > 0) & (count < rows)))
    return total, (f"sums that leave out missing cells: {partial}",) if partial else ()


def _missing(X: Any, line: Timeline) -> tuple[str, ...]:
    """A word on cells that are missing in steps that are there."""
    if sparse.issparse(X):
        return ()
    present = np.unique(line.rows)
    gaps = np.isnan(X[present])
    if not gaps.any():
        return ()
    notes = [f"missing cells: {int(gaps.sum())} of {gaps.size}"]
    whole = time_texts(line.labels[present[gaps.all(axis=1)]])
    if whole:
        few = ", ".join(whole[:3]) + (", …" if len(whole) > 3 else "")
        notes.append(f"time steps without any value: {len(whole)} ({few})")
    return tuple(notes)
