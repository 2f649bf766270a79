"""Long tables, with a row per time and feature, added up block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from .._typing import Array
from ..messages.errors import Text
from ..timeline.dates import NO_TIME, Notes, as_weeks, parse_times, style_of
from ..timeline.grid import Timeline, time_texts, timeline_of
from .grid import TimeTable, about_empty_steps, check_steps, exposure_on_grid, plain
from .libraries import pa
from .long_columns import Columns, Labels, Source, Values
from .sheet import refuse_total

DENSEST_SPARSE = 0.25  # above this share of non-zeros X is dense
MOST_ENTRIES = 1 << 30  # of a mask with a value per entry, which is dense


class Sums:
    """Sums over the rows read so far, by the codes of the labels of times and features."""

    def __init__(self) -> None:
        # Sums of values, numbers of rows of value 0 and of rows without a value: (times, features)
        self.cells, self.zeros, self.blanks = (sparse.csr_array((0, 0)) for _ in range(3))
        # Rows with a value by time and by feature, and the first row of each time
        self.times, self.features, self.first = (np.zeros(0, dtype=np.int64) for _ in range(3))
        self.least, self.most = np.zeros(0), np.zeros(0)  # exposure of each time
        self.n_rows = self.n_blank = 0
        self.total = 0.0
        # By column: number of rows without a time, a feature or a value, and their total
        self.dropped: dict[str, tuple[int, float]] = {}

    def add(self, columns: Columns, t: Array, f: Array, v: Array, shape: tuple[int, int]) -> None:
        """Add a block: codes of times and features, and values; `shape` counts the labels."""
        unknown = np.isnan(v) if columns.value is not None else np.ones(len(v), dtype=bool)
        blank = (t < 0) & (f < 0) & unknown
        unvalued = (t >= 0) & (f >= 0) & np.isnan(v)
        reasons = {
            columns.time: (t < 0) & ~blank,
            columns.feature: (t >= 0) & (f < 0),
            columns.value or "": unvalued,
        }
        kept = ~blank
        for name, without in reasons.items():
            count, total = self.dropped.get(name, (0, 0.0))
            self.dropped[name] = (count + int(without.sum()), total + float(np.nansum(v[without])))
            kept &= ~without
        new = np.flatnonzero(t >= len(self.first))[::-1]  # in reverse: the first row wins
        self.first = _grown(self.first, shape[0], -1)
        self.first[t[new]] = self.n_rows + self.n_blank + new
        self.n_blank += int(blank.sum())
        self.n_rows += int((~blank).sum())
        self.total += float(np.nansum(v[~blank]))
        self.blanks = _piled(self.blanks, t[unvalued], f[unvalued], np.ones(unvalued.sum()), shape)
        t, f, v = t[kept], f[kept], v[kept]
        self.times = _grown(self.times, shape[0], 0) + np.bincount(t, minlength=shape[0])
        self.features = _grown(self.features, shape[1], 0) + np.bincount(f, minlength=shape[1])
        zero = v == 0
        self.zeros = _piled(self.zeros, t[zero], f[zero], np.ones(zero.sum()), shape)
        self.cells = _piled(self.cells, t, f, v, shape)

    def add_exposure(self, t: Array, sizes: Array, n_times: int) -> None:
        self.least = _grown(self.least, n_times, np.inf)
        self.most = _grown(self.most, n_times, -np.inf)
        known = (t >= 0) & ~np.isnan(sizes)
        np.minimum.at(self.least, t[known], sizes[known])
        np.maximum.at(self.most, t[known], sizes[known])

    def notes(self, columns: Columns, left_out: Array) -> Notes:
        """Rows and totals: those read, and those that are not in the table."""
        dropped = [
            f"{count:,} without {name!r}"
            + (f", total {plain(total)}" if name != columns.value else "")
            for name, (count, total) in self.dropped.items()
            if count
        ]
        if len(left_out):
            count, total = int(self.times[left_out].sum()), float(self.cells[left_out].sum())
            dropped.append(f"{count:,} in partial periods, total {plain(total)}")
        rows = f"rows read: {self.n_rows:,}, total {plain(self.total)}"
        blank = (f"empty rows left out: {self.n_blank:,}",) if self.n_blank else ()
        return (f"{rows}; dropped: {'; '.join(dropped) or 'none'}", *blank)


def _piled(
    pile: sparse.csr_array, t: Array, f: Array, v: Array, shape: tuple[int, int]
) -> sparse.csr_array:
    """The sums (times, features), grown to `shape`, with values added."""
    piece = sparse.coo_array((v, (t, f)), shape=shape).tocsr()
    if not pile.nnz:
        return piece
    pile.resize(shape)
    return pile + piece if len(v) else pile


def _grown(array: Array, size: int, fill: float) -> Array:
    return np.concatenate([array, np.full(size - len(array), fill, dtype=array.dtype)])


class LongGrid(NamedTuple):
    """The steps of a long table.

    `kept` are the codes of the times on the grid, `steps` their steps; `observed` (n_steps,) says
    which steps have a value.
    """

    line: Timeline
    kept: Array
    steps: Array
    observed: Array
    exposure: Array | None
    notes: Notes

    def all_notes(self, n_hidden: int) -> Notes:
        """All notes, with those on cells and steps that have rows but no value."""
        cells = f"cells whose only row has no value: {n_hidden:,}, taken as missing"
        empty = np.setdiff1d(self.steps, np.flatnonzero(self.observed))
        steps = about_empty_steps(self.line.times[empty])
        return (*self.notes, *((cells,) if n_hidden else ()), *steps)


class LongRows:
    """The rows of a long table, from one or more sources; `place` names a row in errors."""

    def __init__(self, name: str, columns: Columns, place: Callable[[int], str]) -> None:
        self.name, self.columns, self.place = name, columns, place
        self.times = Labels(NO_TIME, f"{name}: column {columns.time!r}")
        self.sums = Sums()
        self.values: list[Values] = []  # of each source
        self.source_notes: list[Sequence[str]] = []

    def read(self, source: Source) -> Iterator[tuple[Array, pa.Array, Array]]:
        """Codes of times, the column of features, and values of each block, to be added."""
        columns, row = self.columns, 0
        values, exposures = Values(source, columns.value), Values(source, columns.exposure)
        for time, feature, *others in source.blocks:
            t = self.times.codes(time)
            v = np.ones(len(t)) if columns.value is None else values.read(others.pop(0), row)
            if columns.exposure is not None:
                self.sums.add_exposure(t, exposures.read(others.pop(0), row), len(self.times))
            yield t, feature, v
            row += len(t)
        values.settle()
        exposures.settle()
        self.values.append(values)
        self.source_notes.append(source.notes)

    def add(self, t: Array, f: Array, v: Array, n_features: int) -> None:
        with np.errstate(over="ignore"):  # reported by `_check`
            self.sums.add(self.columns, t, f, v, (len(self.times), n_features))

    def _check(self) -> None:
        sums = self.sums
        if sums.n_rows + sums.n_blank == 0:
            raise ValueError(f"{self.name} has no rows. Add one per time and feature.")
        if not sums.times.any():
            names = ", ".join(map(repr, self.columns.names[:3]))
            raise ValueError(
                f"{self.name} has no row with {names}. Check the names of the columns."
            )
        if not np.isfinite(sums.total):
            found = f"{self.name}: the values in column {self.columns.value!r}"
            raise ValueError(f"{found} add up to infinity. Use a larger unit.")

    def grid(self, freq: str | None, drop_partial: bool) -> LongGrid:
        """The steps, when all rows have been added."""
        self._check()
        sums = self.sums
        # A time whose rows have no value is a missing step.
        kept = np.flatnonzero(sums.times + np.diff(sums.blanks.indptr))
        line, steps, same, notes = self._timeline(kept, freq, drop_partial)
        left_out = kept[steps < 0]
        kept, same, steps = kept[steps >= 0], same[steps >= 0], steps[steps >= 0]
        check_steps(len(line.labels), freq, self.name)
        observed = np.zeros(len(line.labels), dtype=bool)
        observed[steps[sums.times[kept] > 0]] = True
        sizes: Array | None = None
        about_sizes: Notes = ()
        if self.columns.exposure is not None:
            sizes, about_sizes = self._exposure(line, kept, steps, same)
        # Files may differ in format; each note is given once.
        notes = (
            *dict.fromkeys(note for found in self.source_notes for note in found),
            *sums.notes(self.columns, left_out),
            *dict.fromkeys(note for values in self.values for note in values.notes()),
            *notes, *line.notes, *(_about_freq(line, sums) if freq is None else ()), *about_sizes,
            "cells without a row are zero; times without any row are missing",
        )  # fmt: skip
        return LongGrid(line, kept, steps, observed, sizes, notes)

    def _timeline(
        self, kept: Array, freq: str | None, drop_partial: bool
    ) -> tuple[Timeline, Array, Array, Notes]:
        """The grid, the step of each label, the index of its distinct time, and notes."""
        first = self.sums.first[kept]

        def where(n: int) -> str:
            return self.place(int(first[n]))

        labels, weeks = as_weeks(self.times.to_numpy()[kept], self.columns.time)
        times, notes = parse_times(labels, self.name, where)
        notes = (*weeks, *notes)
        if times.dtype.kind == "U":
            line = timeline_of(times, freq, drop_partial=drop_partial, name=self.name, where=where)
            return line, line.rows, np.arange(len(times)), notes
        # The same time may be written in several ways.
        distinct, same = np.unique(times, return_inverse=True)
        style = style_of(labels, times)
        line = timeline_of(distinct, freq, drop_partial=drop_partial, name=self.name, style=style)
        on_steps = replace(line, rows=line.rows[line.rows >= 0])
        return on_steps, line.rows[same], same, notes

    def _exposure(
        self, line: Timeline, kept: Array, steps: Array, same: Array
    ) -> tuple[Array, Notes]:
        """One exposure per distinct time, added up per step."""
        _, first, inverse = np.unique(same, return_index=True, return_inverse=True)
        least, most = np.full(len(first), np.inf), np.full(len(first), -np.inf)
        np.minimum.at(least, inverse, self.sums.least[kept])
        np.maximum.at(most, inverse, self.sums.most[kept])
        valued = np.bincount(inverse, self.sums.times[kept]) > 0
        wrong = ~((least == most) & (most > 0)) & (valued | np.isfinite(most))
        if wrong.any():
            n = int(np.argmax(wrong))
            time = time_texts(line.times[[steps[first[n]]]])[0]
            found = f"is {least[n]:g} and {most[n]:g}"
            if least[n] == most[n]:
                found = f"is {most[n]:g}"
            elif np.isinf(most[n]):
                found = "is missing"
            what = f"the exposure {self.columns.exposure!r} of the time {time}"
            remedy = "Give each time one positive exposure, the same in all of its rows."
            raise ValueError(f"{self.name}: {what} {found}. {remedy}")
        rows = Timeline(line.labels, steps[first], line.every)
        return exposure_on_grid(np.where(np.isfinite(most), most, np.nan), rows, self.name)


def long_table(
    source: Source, columns: Columns, freq: str | None, drop_partial: bool = False
) -> TimeTable:
    """Add up the rows of a source per time and feature."""
    rows = LongRows(source.name, columns, source.place)
    features = Labels(("",), f"{source.name}: column {columns.feature!r}")
    for t, feature, v in rows.read(source):
        f = features.codes(feature)
        rows.add(t, f, v, len(features))
    grid = rows.grid(freq, drop_partial)
    line, kept, observed = grid.line, grid.kept, grid.observed
    names, order = _names(features, rows.sums.features)
    gather = sparse.csr_array(
        (np.ones(len(kept)), (grid.steps, np.arange(len(kept)))), shape=(len(observed), len(kept))
    )
    X, zeros, blanks = (
        sparse.csr_array(gather @ pile[kept][:, order])
        for pile in (rows.sums.cells, rows.sums.zeros, rows.sums.blanks)
    )
    X.eliminate_zeros()
    X.sort_indices()
    refuse_total(X, names.tolist(), source.name)
    # Cells in observed steps that have rows, but none with a value.
    n, f = sparse.csr_array(blanks - blanks.multiply((X + zeros).astype(bool))).nonzero()
    hidden = n[observed[n]], f[observed[n]]
    notes = grid.all_notes(len(hidden[0]))
    if X.nnz >= DENSEST_SPARSE * observed.sum() * X.shape[1]:
        dense = X.toarray()
        dense[~observed] = np.nan
        dense[hidden] = np.nan
        return TimeTable(dense, line.times, names, notes, line, grid.exposure)
    seen = None if observed.all() else observed
    if len(hidden[0]):
        if X.shape[0] * X.shape[1] > MOST_ENTRIES:
            found = f"{source.name} has {len(hidden[0]):,} cells whose only row has no value"
            size = f"too large to mask single cells ({X.shape[0]:,} × {X.shape[1]:,})"
            remedy = "Remove these rows if they are zeros, or choose longer periods with {freq=}."
            raise ValueError(Text(f"{{found}}, and is {size}. {remedy}", found=found))
        seen = np.repeat(observed[:, np.newaxis], X.shape[1], axis=1)
        seen[hidden] = False
    return TimeTable(X, line.times, names, notes, line, grid.exposure, seen)


def _names(features: Labels, counts: Array) -> tuple[Array, Array]:
    """Names of the features that have a row, sorted, and their codes."""
    names = np.array([str(name) for name in features.known.to_pylist()])
    kept = np.flatnonzero(counts)
    whole = all(name.isdecimal() for name in names[kept].tolist())
    keys = [int(name) for name in names[kept].tolist()] if whole else names[kept]
    order = kept[np.argsort(keys, kind="stable")]
    return names[order], order


MANY_STEPS = 1000
_LENGTHS = {
    "s": 1, "15s": 15, "min": 60, "15min": 900, "h": 3600, "D": 86400, "W": 7 * 86400,
    "M": 2629746, "Y": 31556952,
}  # fmt: skip


def _about_freq(line: Timeline, sums: Sums) -> Notes:
    """A note that suggests periods, up to 1000, if there are fewer than two rows per step."""
    n_steps = len(line.labels)
    if line.labels.dtype.kind != "M" or n_steps <= max(MANY_STEPS, sums.n_rows / 2):
        return ()
    span = np.ptp(line.labels[[0, -1]].astype("datetime64[s]").astype(np.int64))
    freq = next((freq for freq, length in _LENGTHS.items() if span / length <= MANY_STEPS), "Y")
    n_periods = int(span // _LENGTHS[freq]) + 1
    found = f"{n_steps:,} steps for {sums.n_rows:,} rows"
    return (f"{found}: a freq of {freq} makes about {n_periods:,} steps of them",)
