"""What all formats have in common: orientation, values, times and names are checked here."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .cells import moment_in, number_in

if TYPE_CHECKING:
    from ..likelihoods.base import Array  # not at run time: it loads the compiler


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


@dataclass
class Wrong:
    """The first of the cells that are not as they should be, and their number."""

    count: int = 0
    first: tuple[int, int] = (0, 0)
    value: object = None

    def add(self, i: int, j: int, value: object) -> None:
        if not self.count or (i, j) < self.first:
            self.first, self.value = (i, j), value
        self.count += 1


@dataclass(frozen=True)
class Sheet:
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


def table_of(sheet: Sheet) -> TimeTable:
    _check_shape(sheet)
    _check_values(sheet)
    X = sheet.cells.T if sheet.transpose else sheet.cells
    X = sparse.csr_array(X) if sparse.issparse(X) else np.ascontiguousarray(X)
    times, about_times = _times(sheet, X)
    notes = (*sheet.notes, *about_times, *_missing(X, times))
    return TimeTable(X, times, _features(sheet, X.shape[1]), notes)


def _check_shape(sheet: Sheet) -> None:
    n_times, n_features = sheet.cells.shape[:: -1 if sheet.transpose else 1]
    found = f"{sheet.name} is {n_times} × {n_features} (times × features)"
    if n_features == 0:
        raise ValueError(f"{found}. Give it a column per feature.")
    if n_times < 3:
        order, advice = "features × times", "use"
        if sheet.transpose:
            order, advice = "times × features", "leave out"
        raise ValueError(
            f"{found}, and at least 3 times are needed. Is it {order}? Then {advice} "
            f"transpose=True (--transpose)."
        )


def _check_values(sheet: Sheet) -> None:
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


def _refuse(sheet: Sheet, wrong: Array, what: str, remedy: str) -> None:
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


def refuse_text(sheet: Sheet, wrong: Wrong) -> None:
    if not wrong.count:
        return
    number = "a number with a decimal comma (1234,5)" if sheet.comma else "a plain number (1234.5)"
    remedy = f"Write {number}, or leave the cell empty if the value is missing."
    i, j = wrong.first
    if j == 0 and sheet.rows is None and not sheet.transpose:
        remedy += " If the first column holds times, name it 'time'."
    raise _refusal(sheet, i, j, f"{wrong.value!r} is not a number", wrong.count, remedy)


def _refusal(sheet: Sheet, i: int, j: int, what: str, count: int, remedy: str) -> ValueError:
    several = f" ({count} such cells in all)" if count > 1 else ""
    return ValueError(f"{sheet.place(i, j)}: {what}{several}. {remedy}")


def _features(sheet: Sheet, n_features: int) -> Array:
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


def _times(sheet: Sheet, X: Any) -> tuple[Array, tuple[str, ...]]:
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
    kept = numbers if numbers.dtype.kind in "if" else np.array(labels)
    return kept, _about_spacing(labels, keys)


def _about_spacing(labels: Sequence[str], keys: Sequence[Any]) -> tuple[str, ...]:
    """A word on steps that are longer than most; months and leap years are even enough."""
    lengths = [after - before for before, after in pairwise(keys)]
    usual = sorted(lengths)[len(lengths) // 2]
    longer = [n for n, length in enumerate(lengths) if length > 1.5 * usual]
    if not longer:
        return ()
    n = longer[0]
    return (
        f"times are not evenly spaced, steps longer than most: {len(longer)}, the first from "
        f"{labels[n]!r} to {labels[n + 1]!r}. Steps are taken as even: give absent times a row of "
        f"empty cells",
    )


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


def _time_keys(sheet: Sheet, labels: Sequence[str]) -> tuple[str, list[Any]]:
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
    number = number_in(label, comma)
    if number is not None and math.isnan(number):
        return "missing", None
    if number is not None and math.isfinite(number):
        # Whole numbers stay exact: time stamps in nanoseconds are beyond 2^53.
        return "a number", int(label) if re.fullmatch(r"[+-]?\d+", label) else number
    moment = moment_in(label)
    return ("text", label) if moment is None else ("a date", moment)


def _missing(X: Any, times: Array) -> tuple[str, ...]:
    if sparse.issparse(X) or not (gaps := np.isnan(X)).any():
        return ()
    notes = [f"missing cells: {int(gaps.sum())} of {X.size}"]
    whole = times[gaps.all(axis=1)]
    if len(whole):
        few = ", ".join(map(str, whole[:3])) + (", …" if len(whole) > 3 else "")
        notes.append(f"time steps without any value: {len(whole)} ({few})")
    return tuple(notes)
