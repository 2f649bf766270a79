"""Wide tables as they are in a file, and checks of their values and names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from scipy import sparse

from .._typing import Array
from ..messages.errors import Arg, Text
from ..timeline.grid import is_total
from .cells import refuse_long_labels

Cells: TypeAlias = Array | sparse.csr_array


@dataclass
class Wrong:
    """Invalid cells: the first one, and how many there are by column."""

    count: int = 0
    first: tuple[int, int] = (0, 0)
    value: object = None
    columns: Counter[int] = field(default_factory=Counter)

    def add(self, i: int, j: int, value: object) -> None:
        if not self.count or (i, j) < self.first:
            self.first, self.value = (i, j), value
        self.count += 1
        self.columns[j] += 1


@dataclass(frozen=True)
class Sheet:
    """Cells (R, C) as they are in a file, and the labels of rows and columns, if any.

    In text files, `lines` are the line numbers of the rows, columns are counted from 1, and `comma`
    says whether there are decimal commas. In other files, rows and columns are counted from 0. `at`
    is the column that held the labels of the rows, `corner` its name.
    """

    name: str
    transpose: bool
    cells: Cells
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    lines: Sequence[int] | None = None
    at: int | None = None
    corner: str = ""
    comma: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for labels in (self.rows, self.columns):
            refuse_long_labels(self.name, max(map(len, labels or ()), default=0))

    @property
    def times(self) -> Sequence[str] | None:
        return self.columns if self.transpose else self.rows

    @property
    def features(self) -> Sequence[str] | None:
        return self.rows if self.transpose else self.columns

    def row(self, i: int) -> str:
        return f"row {i}" if self.lines is None else f"line {self.lines[i]}"

    def column(self, j: int) -> str:
        number = j if self.lines is None else j + 1
        return f"column {number + (self.at is not None and j >= self.at)}"

    def time(self, n: int) -> str:
        """The place of a time, for errors."""
        return self.column(n) if self.transpose else self.row(n)

    def feature(self, f: int) -> str:
        """The place of the name of a feature."""
        return self.row(f) if self.transpose else self.column(f)

    def place(self, i: int, j: int) -> str:
        """The place of a cell."""
        row, column = self.row(i), self.column(j)
        if self.rows is not None:
            row += f" ({'feature' if self.transpose else 'time'} {self.rows[i]!r})"
        if self.columns is not None:
            column = f"column {self.columns[j]!r}"
        base = " (counted from 0)" if self.lines is None else ""
        return f"{self.name}, {row}, {column}{base}"


def check_sheet(sheet: Sheet) -> None:
    """Refuse a sheet of the wrong shape, and values that are not finite and non-negative."""
    n_times, n_features = sheet.cells.shape[:: -1 if sheet.transpose else 1]
    found = f"{sheet.name} is {n_times} × {n_features} (times × features)"
    if n_features == 0:
        raise ValueError(f"{found}. Give it a column per feature.")
    if n_times < 3:
        remedy = "If rows and columns are swapped, {change} {transpose}."
        change, transpose = "leave out" if sheet.transpose else "use", Arg("transpose", "True")
        message = f"{{found}}, and at least 3 times are needed. {remedy}"
        raise ValueError(Text(message, found=found, change=change, transpose=transpose))
    if not isinstance(sheet.cells, np.ndarray):
        remedy = "replace it, and mask it if the value is missing."
        values = sheet.cells.data
        _refuse(sheet, np.isnan(values), "is not a number", f"Sparse data have no gaps: {remedy}")
    else:
        remedy = "correct it, or leave it out (empty, NA, NaN) if the value is missing."
        values = sheet.cells
        if np.isnan(values).all():
            raise ValueError(f"{sheet.name} has no numbers: every cell is missing. Check the file.")
    _refuse(sheet, np.isinf(values), "is infinite", f"Data must be finite: {remedy}")
    _refuse(sheet, values < 0, "is negative", f"The model is for non-negative data: {remedy}")
    with np.errstate(over="ignore"):
        total = np.nansum(values)
    if not np.isfinite(total):
        raise ValueError(f"{sheet.name}: its values add up to infinity. Use a larger unit.")


def _refuse(sheet: Sheet, wrong: Array, what: str, remedy: str) -> None:
    if not wrong.any():
        return
    k, cells = int(np.argmax(wrong)), sheet.cells
    if isinstance(cells, np.ndarray):
        i, j = divmod(k, wrong.shape[1])
    else:
        i, j = int(np.searchsorted(cells.indptr, k, side="right")) - 1, int(cells.indices[k])
    raise _refusal(sheet, i, j, f"{cells[i, j]:g} {what}", int(wrong.sum()), remedy)


def refuse_text(sheet: Sheet, wrong: Wrong) -> None:
    if not wrong.count:
        return
    _refuse_long(sheet, wrong)
    number = "a number with a decimal comma (1234,5)" if sheet.comma else "a plain number (1234.5)"
    remedy = f"Write {number}, or leave the cell empty if the value is missing."
    i, j = wrong.first
    if j == 0 and sheet.rows is None and not sheet.transpose:
        remedy += " If the first column holds times, name it 'time'."
    raise _refusal(sheet, i, j, f"{wrong.value!r:.80} is not a number", wrong.count, remedy)


def _refuse_long(sheet: Sheet, wrong: Wrong) -> None:
    """Refuse a long table read as a wide one: times repeat, and one column is text."""
    n_rows, n_columns = sheet.cells.shape
    texts = [j for j, count in wrong.columns.items() if count > n_rows / 2]
    if sheet.transpose or sheet.rows is None or sheet.columns is None or n_columns > 2:
        return
    if len(texts) != 1 or not (twice := repeated(sheet.rows)):
        return
    names = {"time": sheet.corner, "feature": sheet.columns[texts[0]]}
    if n_columns == 2:
        names["value"] = sheet.columns[1 - texts[0]]
    arguments = {argument: Arg(argument, repr(name)) for argument, name in names.items()}
    first, again = map(sheet.time, twice)
    found = f"{sheet.name} has the time {sheet.rows[twice[1]]!r} twice, in {first} and {again}"
    remedy = "Is it a long table, with a row per time and feature? Then use "
    options = ", ".join(f"{{{argument}}}" for argument in arguments)
    template = f"{{found}}, and text in column {{name!r}}. {remedy}{options}."
    raise ValueError(Text(template, found=found, name=names["feature"], **arguments))


def _refusal(sheet: Sheet, i: int, j: int, what: str, count: int, remedy: str) -> ValueError:
    several = f" ({count} such cells in all)" if count > 1 else ""
    return ValueError(f"{sheet.place(i, j)}: {what}{several}. {remedy}")


def features_of(sheet: Sheet, n_features: int) -> Array:
    labels = sheet.features
    if labels is None:
        return np.array(numbered_names(n_features))
    if "" in labels:
        place = sheet.feature(labels.index(""))
        raise ValueError(
            f"{sheet.name}: the feature in {place} has no name. Name it, or remove it."
        )
    if twice := repeated(labels):
        found = f"{sheet.name} has the feature {labels[twice[1]]!r} twice"
        first, again = map(sheet.feature, twice)
        raise ValueError(f"{found}, in {first} and {again}. Give each feature its own name.")
    return np.array(labels)


def numbered_names(n_features: int) -> list[str]:
    return [f"x{f}" for f in range(n_features)]


def refuse_total(X: Cells, names: list[str], name: str) -> None:
    """Refuse a feature that is the sum of all others, up to rounding if its name means total."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.asarray(X.sum(axis=1, dtype=float)).ravel()
        known = np.isfinite(rows)  # no cell of the row is missing
        whole = X if known.all() else X[known]
        sums = np.asarray(whole.sum(axis=0, dtype=float)).ravel()
    f = int(np.argmax(sums))
    own = whole[:, [f]]
    own = np.asarray(own if isinstance(own, np.ndarray) else own.toarray(), dtype=float).ravel()
    refuse_sum(names[f], own, rows[known], int(np.count_nonzero(sums)), name)


def refuse_sum(feature: str, own: Array, rows: Array, n_used: int, name: str) -> None:
    """Refuse the largest feature if it is the sum of all others.

    `own` and `rows` (N,) are its values and the sums of all features, `n_used` of which are not 0.
    """
    named = is_total(feature)
    # It must be as large as all others together, and there must be at least two others.
    with np.errstate(over="ignore"):
        mine, total = own.sum(), rows.sum()
    few = n_used < (2 if named else 3)
    if few or not np.isfinite(total) or not np.isclose(mine, 0.5 * total, rtol=1e-2):
        return
    others, tolerance = rows - own, 1e-3 if named else 1e-9
    if np.count_nonzero(others) < 3 or not np.allclose(own, others, rtol=tolerance, atol=0.0):
        return
    found = f"{name}: the feature {feature!r} is the sum of all others"
    remedy = "Remove it, or, if it is the size behind each step, give it as {exposure=}."
    raise ValueError(Text("{found}. " + remedy, found=found))


def repeated(keys: Sequence[str]) -> tuple[int, int] | None:
    """The indices of the first key that occurs twice."""
    seen: dict[str, int] = {}
    for n, key in enumerate(keys):
        if seen.setdefault(key, n) != n:
            return seen[key], n
    return None
