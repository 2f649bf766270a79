"""Tables over time: rows of wide tables are put on the steps of a regular grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from .._typing import Array
from ..messages.errors import ArgumentError, Text
from ..runtime.archives import refuse_larger
from ..timeline.dates import Notes, as_weeks
from ..timeline.grid import DAYS, Timeline, first_few, time_texts, timeline_of
from .cells import NoColumnError, number_in, place_of
from .sheet import Cells, Sheet, check_sheet, features_of, numbered_names, refuse_total

_NUMBERED = "no times were found: steps are numbered from 0"


@dataclass(frozen=True, repr=False)
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
        How the table was read.
    timeline : Timeline
        The steps and their spacing.
    exposure : array, (n_times,), "days" or None
        Size behind each step, interpolated where it is absent; or the days in each step.
    observed : array of bool, (n_times,) or (n_times, n_features), or None
        Which steps of a sparse X are observed if some are not, or which of its entries if single
        ones are missing: pass it as the mask of a fit.
    """

    X: Array | sparse.csr_array
    times: Array
    features: Array
    notes: Notes
    timeline: Timeline
    exposure: Array | str | None = None
    observed: Array | None = None

    @property
    def sizes(self) -> Array | None:
        """The exposure as numbers."""
        return self.timeline.clock.days if isinstance(self.exposure, str) else self.exposure

    @property
    def numbered(self) -> bool:
        """Whether steps are only numbered, because there were no times."""
        return any(note.startswith(_NUMBERED) for note in self.notes)

    @property
    def unnamed(self) -> bool:
        """Whether features are only numbered, because they had no names."""
        return self.features.tolist() == numbered_names(len(self.features))

    def __repr__(self) -> str:
        """Size, span, share of missing or non-zero cells, and the notes."""
        n_steps, n_features = self.X.shape
        texts = time_texts(self.times)
        size = f"{n_steps:,} steps × {n_features:,} features, {texts[0]} to {texts[-1]}"
        if isinstance(self.X, np.ndarray):
            full = f"missing cells: {int(np.isnan(self.X).sum()):,} of {self.X.size:,}"
        else:
            share = len(self.X.data) / (n_steps * n_features)
            full = f"sparse, {100 * share:.2f} % of the cells are not zero{self._hidden()}"
        return "\n  ".join([f"TimeTable: {size}", full, *self.notes])

    def _hidden(self) -> str:
        """How many steps and single cells of a sparse X are missing."""
        if self.observed is None:
            return ""
        entries = self.observed.reshape(len(self.times), -1)
        steps = int(np.sum(~entries.any(axis=1)))
        cells = int(np.sum(~entries)) - steps * entries.shape[1]
        found = {"steps": steps, "cells in other steps": cells}
        return "".join(f", {n:,} {what} missing" for what, n in found.items() if n)


def with_days(read: Callable[[str | None], TimeTable], exposure: str | None) -> TimeTable:
    """The table that `read` makes with the column of an exposure.

    The exposure "days", if there is no such column, is the days in each step.
    """
    if exposure != DAYS:
        return read(exposure)
    try:
        return read(exposure)
    except NoColumnError:  # if it is another column that is absent, the next line says so
        table = read(None)
    most = table.timeline.clock.days.max()  # an error if steps are not dates
    note = f"exposure: the days in each step, up to {most:.4g}"
    return replace(table, exposure=DAYS, notes=(*table.notes, note))


def table_of(
    sheet: Sheet, exposure: str | None = None, freq: str | None = None, drop_partial: bool = False
) -> TimeTable:
    """Check a sheet and put its rows on a grid."""
    check_sheet(sheet)
    X = sheet.cells.T if sheet.transpose else sheet.cells
    X = sparse.csr_array(X) if sparse.issparse(X) else np.ascontiguousarray(X)
    features = features_of(sheet, X.shape[1])
    sizes = None
    if exposure is not None:
        X, features, sizes = _without_exposure(sheet, X, features, exposure)
    refuse_total(X, features.tolist(), sheet.name)
    line, notes = _timeline(sheet, X, freq, drop_partial)
    check_steps(len(line.labels), freq, sheet.name)
    notes = (*sheet.notes, *notes, *line.notes)
    if np.any(out := line.rows < 0):
        notes = (*notes, f"rows left out: {out.sum():,}, total {plain(np.nansum(X[out]))}")
        X, line = X[~out], replace(line, rows=line.rows[~out])
        sizes = None if sizes is None else sizes[~out]
    if isinstance(X, np.ndarray):
        _refuse_huge_grid(len(line.labels), X.shape[1], sheet.name)
    X, summed = _on_grid(X, line)
    notes = (*notes, *summed, *_missing(X, line))
    if exposure is None:
        notes = (*notes, *_about_sizes(X, features, sheet))
    if sizes is not None:
        sizes, about_sizes = exposure_on_grid(sizes, line, sheet.name)
        notes = (*notes, *about_sizes)
    return TimeTable(X, line.times, features, notes, line, sizes)


def _refuse_huge_grid(n_steps: int, n_features: int, name: str) -> None:
    """Refuse a grid that does not fit into memory: dates may be thousands of years apart."""
    try:
        refuse_larger(24 * n_steps * n_features, f"{n_steps:,} steps")
    except ValueError as error:
        reason = "{name} cannot be read as a table: {error}. Choose longer periods with {freq=}."
        raise ValueError(Text(reason, name=name, error=error)) from error


def plain(total: float) -> str:
    """A total as text: 12,345 or 12,345.6 or 0.000123."""
    if total == round(total):
        return f"{total:,.0f}"
    return f"{total:,.1f}" if total >= 1000 else f"{total:.6g}"


MOST_OF_TOTAL = 0.9  # a column with a larger share of the total
TIMES_THE_NEXT = 5  # that is at least this many times the next one may be an exposure


def _about_sizes(X: Cells, features: Array, sheet: Sheet) -> Notes:
    """A note on a feature much larger than all others, such as a population."""
    sums = np.nansum(X, axis=0) if isinstance(X, np.ndarray) else X.sum(axis=0)
    totals = np.asarray(sums).ravel()
    if len(totals) < 2:
        return ()
    f = int(np.argmax(totals))
    share, others = totals[f] / (totals.sum() or 1.0), np.delete(totals, f)
    if share <= MOST_OF_TOTAL or totals[f] < TIMES_THE_NEXT * others.max():
        return ()
    found = f"{'row' if sheet.transpose else 'column'} {str(features[f])!r}"
    question = "is it an exposure, such as a population, rather than a feature?"
    return (f"{found} holds {100 * share:.1f} % of the total: {question}",)


def check_steps(n_steps: int, freq: str | None, name: str) -> None:
    if freq is not None and n_steps < 3:
        problem = f"makes {n_steps} steps of {name}, and at least 3 are needed."
        raise ArgumentError("freq", freq, problem, "Choose shorter periods.")
    if n_steps < 3:
        raise ValueError(f"{name} has {n_steps} times, and at least 3 are needed.")


def _timeline(
    sheet: Sheet, X: Cells, freq: str | None, drop_partial: bool
) -> tuple[Timeline, Notes]:
    if sheet.times is None:
        if freq is not None or drop_partial:
            argument, value = ("drop_partial", True) if freq is None else ("freq", freq)
            remedy = Text("Name their column with {time=}.")
            raise ArgumentError(argument, value, f"needs times; {sheet.name} has none.", remedy)
        steps = np.arange(X.shape[0])
        return Timeline(steps, steps, "step of 1"), _about_numbering(X)
    written = [
        label.replace(",", ".")
        if sheet.comma and number_in(label, comma=True) is not None
        else label
        for label in sheet.times
    ]
    labels, notes = as_weeks(written, "" if sheet.transpose else sheet.corner)
    line = timeline_of(labels, freq, drop_partial=drop_partial, name=sheet.name, where=sheet.time)
    if line.labels.dtype.kind == "U":
        _refuse_totals(sheet, X, line.labels.tolist())
    return line, notes


def _refuse_totals(sheet: Sheet, X: Cells, labels: list[str]) -> None:
    """Refuse a last row that has a label of another kind and is the sum of all others."""
    numbered = [any(map(str.isdigit, label)) for label in labels]
    if numbered[-1] in numbered[:-1]:
        return
    table = X if isinstance(X, np.ndarray) else X.toarray()
    known = ~np.isnan(table[-1])
    sums = np.nansum(table[:-1], axis=0)[known]
    if sums.any() and np.allclose(table[-1][known], sums, rtol=1e-3, atol=0.0):
        found = f"{sheet.name}, {sheet.time(len(labels) - 1)}: the values of {labels[-1]!r}"
        raise ValueError(f"{found} are the sums of all others, not a time step. Remove it.")


def _about_numbering(X: Cells) -> Notes:
    """A note on a first feature that may be times: evenly rising, or whole and monotone."""
    if not isinstance(X, np.ndarray):
        return (_NUMBERED,)
    first, rise = X[:, 0], np.diff(X[:, 0])
    whole = np.array_equal(first, np.rint(first))
    if rise[0] > 0 and np.all(rise == rise[0]):
        how = "rises evenly"
    elif whole and (np.all(rise > 0) or np.all(rise < 0)):
        how = "rises in each row" if rise[0] > 0 else "falls in each row"
    else:
        return (_NUMBERED,)
    found = f"the first feature {how} ({first[0]:g}, {first[1]:g}, …)"
    return _NUMBERED, f"{found}: if these are times, label them 'time'"


def _without_exposure(
    sheet: Sheet, X: Cells, features: Array, exposure: str
) -> tuple[Cells, Array, Array]:
    """The other features, and the exposure of each row; NaN where the whole row is missing."""
    names = features.tolist()
    f = place_of(exposure, "exposure", names, sheet.name)
    if len(names) == 1:
        raise ValueError(f"{sheet.name} has no feature beside the exposure {exposure!r}. Give one.")
    kept = np.arange(len(names)) != f
    column, X = X[:, [f]], X[:, np.flatnonzero(kept)]
    sizes = (column if isinstance(column, np.ndarray) else column.toarray())[:, 0]
    unknown = np.isnan(sizes)
    if isinstance(X, np.ndarray):
        unknown &= ~np.isnan(X).all(axis=1)
    for n in np.flatnonzero(unknown | (sizes <= 0)).tolist():
        found = "is missing" if unknown[n] else f"is {sizes[n]:g}"
        place = f"{sheet.name}, {sheet.time(n)}: the exposure {exposure!r}"
        remedy = "Give each time a positive one, or leave all cells of its row empty."
        raise ValueError(f"{place} {found}. {remedy}")
    return X, features[kept], sizes


def exposure_on_grid(sizes: Array, line: Timeline, name: str) -> tuple[Array, Notes]:
    """Exposures (n_rows,) of a file by step, with notes on sums and on absent steps.

    log e_n is linear in n between known neighbours, and constant beyond the ends.
    """
    n_steps, given = len(line.labels), ~np.isnan(sizes)
    total = np.bincount(line.rows[given], sizes[given], minlength=n_steps)
    if not np.isfinite(total).all():
        raise ValueError(f"{name}: its exposures add up to infinity. Use a larger unit.")
    known = np.unique(line.rows[given])
    absent = np.setdiff1d(np.arange(n_steps), known)
    notes = _about_adding(np.bincount(line.rows[given], minlength=n_steps)[known])
    if not len(absent):
        return total, notes
    total[absent] = np.exp(np.interp(absent, known, np.log(total[known])))
    return total, (*notes, "exposure of absent periods: interpolated")


def _about_adding(counts: Array) -> Notes:
    """A note on exposures that are added up, `counts` of them per period."""
    least, most = int(counts.min()), int(counts.max())
    if most == 1:
        return ()
    number, advice = f"{most:,}", ""
    if least < most:
        number = f"{least:,} to {most:,}"
        advice = "; if it is a stock, such as a population, give one value per period"
    return (f"exposure is added up within periods: {number} times per period{advice}",)


def _on_grid(X: Cells, line: Timeline) -> tuple[Cells, Notes]:
    """Rows on their steps, added up if several share one; absent steps are NaN."""
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


def _missing(X: Cells, line: Timeline) -> Notes:
    """Notes on missing cells in steps that are not absent."""
    if not isinstance(X, np.ndarray):
        return ()
    present = np.unique(line.rows)
    gaps = np.isnan(X[present])
    if not gaps.any():
        return ()
    empty = about_empty_steps(line.times[present[gaps.all(axis=1)]])
    return (f"missing cells: {int(gaps.sum())} of {gaps.size}", *empty)


def about_empty_steps(times: Array) -> Notes:
    """A note on steps that have rows, but no value."""
    few = first_few(time_texts(times))
    return (f"time steps without any value: {len(times):,} ({few})",) if len(times) else ()
