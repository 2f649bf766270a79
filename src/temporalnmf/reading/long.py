"""Long tables, a row per time and feature, are added up block by block.

Rows stay in Arrow's and NumPy's arrays: there is a Python object per label, never per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..timeline.dates import NO_TIME, as_weeks, moments_of, style_of
from ..timeline.grid import Timeline, time_texts, timeline_of
from .cells import (
    MISSING,
    Points,
    about_thousands,
    has_thousands,
    library,
    number_in,
    refuse_long_labels,
)
from .grid import TimeTable, check_steps, exposure_on_grid, plain
from .sheet import refuse_total

if TYPE_CHECKING:
    from .._typing import Array  # not at run time: it loads the compiler

DENSEST_SPARSE = 0.25  # above this share of non-zeros X is dense
MANY = 100_000  # labels that are worth Arrow's own reading of dates


class Columns(NamedTuple):
    """The names of the columns of a long table."""

    time: str
    feature: str
    value: str | None = None
    exposure: str | None = None

    @classmethod
    def of(
        cls,
        time: str | None,
        feature: str | None,
        value: str | None,
        exposure: str | None,
        transpose: bool = False,
    ) -> Columns | None:
        """None if the options are those of a wide table."""
        if transpose and (time is not None or feature is not None):
            raise ValueError(
                "time= and feature= name columns, and transpose=True says that a column is a time. "
                "Leave out one of them."
            )
        if feature is None:
            if value is not None:
                raise ValueError(
                    f"value={value!r} (--value) is for long tables: name the column of features "
                    f"with feature= (--feature) too."
                )
            return None
        if time is None:
            raise ValueError(
                f"feature={feature!r} (--feature) is for long tables: name the column of times "
                f"with time= (--time) too."
            )
        columns = cls(time, feature, value, exposure)
        if len(set(columns.names)) < len(columns.names):
            raise ValueError(
                f"time, feature, value and exposure name one column twice: "
                f"{', '.join(columns.names)}. Give each its own."
            )
        return columns

    @property
    def names(self) -> list[str]:
        return [name for name in self if name is not None]


class Source(NamedTuple):
    """Blocks of rows, Arrow arrays in the order of `Columns.names`, and what errors call them.

    `commas` says what a comma in a number is: "decimal", "thousands", or "" where there is none;
    "decimal, grouped" is decimal beside points that separate thousands. `notes` are complete when
    all blocks were read.
    """

    name: str
    blocks: Iterable[list[Any]]
    place: Callable[[int], str]
    commas: str = ""
    notes: Sequence[str] = ()


class _Labels:
    """Labels get numbers in the order in which they come."""

    def __init__(self, missing: tuple[str, ...], name: str) -> None:
        self.missing, self.name = missing, name
        self.known: Any = None

    def codes(self, column: Any) -> Array:
        """The numbers of the labels of a block, -1 for missing ones."""
        pa, _ = _arrow()
        try:
            return self._codes(column)
        except pa.ArrowException as error:
            raise self._refusal(column.type) from error

    def _refusal(self, kind: Any) -> ValueError:
        return ValueError(
            f"{self.name} holds {kind!s:.80}, which is neither text nor numbers nor dates. Name "
            f"another column, or write it as text."
        )

    def _codes(self, column: Any) -> Array:
        pa, pc = _arrow()
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        labels = self._cleaned(column.dictionary)
        new = pc.unique(labels.drop_null())
        if self.known is not None:
            if new.type != self.known.type:
                new, labels = new.cast(self.known.type), labels.cast(self.known.type)
            new = new.filter(pc.invert(pc.is_in(new, value_set=self.known)))
        self.known = new if self.known is None else pa.concat_arrays([self.known, new])
        numbers = _numpy(pc.index_in(labels, value_set=self.known).fill_null(-1))
        # One more at the end, for rows that have no label at all.
        numbers = np.append(numbers, np.int32(-1))
        return numbers[_numpy(column.indices.cast(pa.int64()).fill_null(len(numbers) - 1))]

    def _cleaned(self, labels: Any) -> Any:
        """Without blanks around them; those that are missing are null."""
        pa, pc = _arrow()
        if pa.types.is_floating(labels.type):
            return pc.if_else(pc.is_nan(labels), None, labels)
        if not _is_text(labels.type):
            return labels
        labels = pc.utf8_trim_whitespace(labels.cast(pa.large_string()))
        refuse_long_labels(self.name, pc.max(pc.utf8_length(labels)).as_py() or 0)
        # Where a block ends between the two, Arrow loses the second: line ends are written alike.
        labels = pc.replace_substring(pc.replace_substring(labels, "\r\n", "\n"), "\r", "\n")
        missing = pc.is_in(pc.utf8_lower(labels), value_set=pa.array(self.missing, labels.type))
        return pc.if_else(missing, pa.scalar(None, labels.type), labels)

    def __len__(self) -> int:
        return 0 if self.known is None else len(self.known)

    def labels(self) -> Array:
        """Those of times as NumPy's: dates as such, text and dates with a zone as objects."""
        pa, _ = _arrow()
        known = self.known
        if _is_text(known.type) and len(known) > MANY:
            try:
                return _numpy(known.cast(pa.timestamp("us")))
            except pa.ArrowInvalid:
                pass
        try:
            if _is_text(known.type) or getattr(known.type, "tz", None):
                found = np.empty(len(known), dtype=object)
                found[:] = known.to_pylist()
                return found
            return _numpy(known)
        except (pa.ArrowException, ValueError, OverflowError) as error:  # such as the year 300000
            raise self._refusal(known.type) from error


class _Values:
    """Values of blocks. What a comma means must be the same in all of them."""

    def __init__(self, source: Source, name: str) -> None:
        self.source, self.name = source, name
        self.comma = self.point = self.grouped = False
        self.points = source.commas == "decimal, grouped"  # points separate thousands
        self.doubt = Points()
        self.hundreds = False  # some whole number is at least 100

    def read(self, column: Any, first: int) -> Array:
        """float64, NaN where missing; `first` is the row at which the block starts."""
        pa, _ = _arrow()
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        if not (pa.types.is_dictionary(column.type) or _is_text(column.type)):
            values = self._numbers(column)
        else:
            column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            places = _numpy(column.indices.cast(pa.int64()).fill_null(-1))
            values = np.append(self._texts(column.dictionary, places, first), np.nan)[places]
        self._refuse(values, np.isinf(values), "is infinite", first)
        self._refuse(values, values < 0, "is negative", first)
        return values

    def _numbers(self, column: Any) -> Array:
        pa, _ = _arrow()
        try:
            return _numpy(column.cast(pa.float64(), safe=False).fill_null(np.nan))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ValueError(
                f"{self.source.name}: column {self.name!r} holds {column.type}, not numbers. Name "
                f"a column of numbers."
            ) from error

    def _texts(self, texts: Any, places: Array, first: int) -> Array:
        pa, pc = _arrow()
        if not len(texts):
            return np.empty(0)
        texts = pc.utf8_trim_whitespace(texts.cast(pa.large_string()))
        plain = self._with_points(texts) if self.source.commas.startswith("decimal") else texts
        missing = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(MISSING, texts.type))
        try:
            return _numpy(pc.if_else(missing, "nan", plain).cast(pa.float64()).fill_null(np.nan))
        except pa.ArrowInvalid:
            return self._one_by_one(texts.to_pylist(), places, first)

    def _with_points(self, texts: Any) -> Any:
        """Beside decimal commas a point is no decimal point, in whichever block they come."""
        _, pc = _arrow()
        self.comma |= pc.any(pc.match_substring(texts, ",")).as_py()
        points = pc.match_substring(texts, ".")
        if self.points:
            grouped = pc.match_substring_regex(texts, r"^[+-]?\d{1,3}(\.\d{3})+(,\d*)?$")
            self.grouped |= pc.any(grouped).as_py()
            texts = pc.if_else(grouped, pc.replace_substring(texts, ".", ""), texts)
            points = pc.match_substring(texts, ".")
        self.point |= pc.any(pc.and_(points, pc.not_equal(texts, "."))).as_py()
        if self.point and (self.comma or self.points):
            raise ValueError(
                f"{self.source.name} has numbers with decimal commas and others with decimal "
                f"points in column {self.name!r}. Write all in one way."
            )
        self._doubt_points(texts, points)
        return pc.replace_substring(texts, ",", ".")

    def _doubt_points(self, texts: Any, points: Any) -> None:
        """Notice whether points may separate thousands."""
        _, pc = _arrow()
        alike = pc.match_substring_regex(texts, Points.AS_THOUSANDS)
        examples = texts.filter(alike)
        self.doubt.example = self.doubt.example or (str(examples[0]) if len(examples) else "")
        others = pc.and_(pc.and_not(points, alike), pc.not_equal(texts, "."))
        self.doubt.decimal |= self.comma or pc.any(others).as_py()
        self.hundreds |= pc.any(pc.match_substring_regex(texts, Points.AT_LEAST_100)).as_py()

    def settle(self) -> None:
        """Refuse numbers that can be read in two ways, once all are seen."""
        if self.doubt.doubtful and self.hundreds:
            raise self.doubt.refusal(f"{self.source.name}, column {self.name!r}")

    def _one_by_one(self, texts: list[str], places: Array, first: int) -> Array:
        """Cells that Arrow does not know: 1,234, +5, and those that are no numbers."""
        thousands = self.source.commas == "thousands" or self.points
        values = np.empty(len(texts))
        for k, text in enumerate(texts):
            value = number_in(text, self.comma or self.points, thousands)
            if value is None:
                n = first + int(np.argmax(places == k))
                raise self._refusal(n, f"{text!r:.80} is not a number", "Write a plain number")
            self.grouped |= thousands and has_thousands(text, self.comma or self.points)
            values[k] = value
        return values

    def _refuse(self, values: Array, wrong: Array, what: str, first: int) -> None:
        if wrong.any():
            n = int(np.argmax(wrong))
            remedy = "The model is for finite, non-negative data: correct it"
            raise self._refusal(first + n, f"{values[n]:g} {what}", remedy)

    def _refusal(self, n: int, what: str, remedy: str) -> ValueError:
        place = f"{self.source.name}, {self.source.place(n)}, column {self.name!r}"
        return ValueError(f"{place}: {what}. {remedy}, or leave the cell empty if it is missing.")


@dataclass
class _Sums:
    """What the rows so far add up to."""

    cells: Any = None  # csr (times, features)
    zeros: Any = None  # rows of value 0, which the sum forgets, csr
    blanks: Any = None  # rows without a value, csr
    times: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # rows kept of each
    features: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    first: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # row of each time
    least: Array = field(default_factory=lambda: np.zeros(0))  # exposure of each time
    most: Array = field(default_factory=lambda: np.zeros(0))
    n_rows: int = 0
    n_blank: int = 0
    total: float = 0.0
    dropped: dict[str, tuple[int, float]] = field(default_factory=dict)

    def add(self, columns: Columns, t: Array, f: Array, v: Array, shape: tuple[int, int]) -> None:
        """Numbers of times and of features, and values, of a block; shape is what is known now."""
        unknown = np.isnan(v) if columns.value is not None else np.ones(len(v), dtype=bool)
        blank = (t < 0) & (f < 0) & unknown
        reasons = {
            columns.time: (t < 0) & ~blank,
            columns.feature: (t >= 0) & (f < 0),
            columns.value or "": (t >= 0) & (f >= 0) & np.isnan(v),
        }
        unvalued = reasons[columns.value or ""]
        kept = ~blank
        for name, without in reasons.items():
            count, total = self.dropped.get(name, (0, 0.0))
            self.dropped[name] = (count + int(without.sum()), total + float(np.nansum(v[without])))
            kept &= ~without
        n_blank = int(blank.sum())
        self._notice_first(t, self.n_rows + self.n_blank, shape[0])
        self.n_blank += n_blank
        self.n_rows += len(t) - n_blank
        self.total += float(np.nansum(v[~blank]))
        self.blanks = _piled(self.blanks, t[unvalued], f[unvalued], np.ones(unvalued.sum()), shape)
        t, f, v = t[kept], f[kept], v[kept]
        self.times = _grown(self.times, shape[0], 0) + np.bincount(t, minlength=shape[0])
        self.features = _grown(self.features, shape[1], 0) + np.bincount(f, minlength=shape[1])
        zero = v == 0
        self.zeros = _piled(self.zeros, t[zero], f[zero], np.ones(zero.sum()), shape)
        self.cells = _piled(self.cells, t, f, v, shape)

    def _notice_first(self, t: Array, start: int, n_times: int) -> None:
        n_known = len(self.first)
        self.first = _grown(self.first, n_times, -1)
        rows = np.flatnonzero(t >= n_known)[::-1]  # backwards: the first is written last
        self.first[t[rows]] = start + rows

    def add_exposure(self, t: Array, sizes: Array, n_times: int) -> None:
        self.least = _grown(self.least, n_times, np.inf)
        self.most = _grown(self.most, n_times, -np.inf)
        known = (t >= 0) & ~np.isnan(sizes)
        np.minimum.at(self.least, t[known], sizes[known])
        np.maximum.at(self.most, t[known], sizes[known])


def _piled(pile: Any, t: Array, f: Array, v: Array, shape: tuple[int, int]) -> Any:
    """The pile (times, features), grown to `shape`, with values added to it."""
    piece = sparse.coo_array((v, (t, f)), shape=shape).tocsr()
    if pile is None:
        return piece
    pile.resize(shape)
    return pile + piece if len(v) else pile


def long_table(
    source: Source, columns: Columns, freq: str | None, drop_partial: bool = False
) -> TimeTable:
    """Add up the rows of a source per time and feature."""
    times, features, sums, values = _summed(source, columns)
    if not sums.times.any():
        raise ValueError(
            f"{source.name} has no row with {', '.join(map(repr, columns.names[:3]))}. Check the "
            f"names of the columns."
        )
    # A time whose rows have no value is a time all the same: it is missing.
    kept = np.flatnonzero(sums.times + np.diff(sums.blanks.indptr))
    line, steps, moments, notes = _timeline(
        source, columns.time, times.labels()[kept], sums.first[kept], freq, drop_partial
    )
    left_out = kept[steps < 0]
    kept, moments, steps = kept[steps >= 0], moments[steps >= 0], steps[steps >= 0]
    n_steps = len(line.labels)
    if n_steps < 3:
        check_steps(n_steps, freq, source.name)
        raise ValueError(f"{source.name} has {n_steps} times, and at least 3 are needed.")
    names, order = _names(features, sums.features)
    gather = sparse.csr_array(
        (np.ones(len(kept)), (steps, np.arange(len(kept)))), shape=(n_steps, len(kept))
    )
    X, zeros, blanks = (
        sparse.csr_array(gather @ pile[kept][:, order])
        for pile in (sums.cells, sums.zeros, sums.blanks)
    )
    X.eliminate_zeros()
    X.sort_indices()
    refuse_total(X, names.tolist(), source.name)
    observed = np.zeros(n_steps, dtype=bool)
    observed[steps[sums.times[kept] > 0]] = True
    hidden = _cells_without_value(X, zeros, blanks, observed)
    sizes: Array | None = None
    interpolated: tuple[str, ...] = ()
    if columns.exposure is not None:
        sizes, interpolated = _exposure(source, columns.exposure, line, steps, moments, sums, kept)
    told = (
        *source.notes, *_about_rows(columns, sums, values, left_out), *notes, *line.notes,
        *(_about_freq(line, sums) if freq is None else ()), *interpolated, _ABOUT_ZEROS,
        *_about_missing(line, steps, observed, hidden),
    )  # fmt: skip
    if X.nnz >= DENSEST_SPARSE * observed.sum() * X.shape[1]:
        dense = X.toarray()
        dense[~observed] = np.nan
        dense[hidden] = np.nan
        return TimeTable(dense, line.times, names, told, line, sizes)
    seen = None if observed.all() else observed
    if len(hidden[0]):
        seen = _entries_seen(source, observed, hidden, X.shape)
    return TimeTable(X, line.times, names, told, line, sizes, seen)


_ABOUT_ZEROS = "cells without a row are zero; times without any row are missing"
MOST_ENTRIES = 1 << 30  # of a mask with a value per entry, which is dense

_Entries = tuple[Any, Any]  # rows and columns of single entries


def _cells_without_value(X: Any, zeros: Any, blanks: Any, observed: Array) -> _Entries:
    """Cells in observed steps that have rows, but none with a value."""
    cells = sparse.csr_array(blanks - blanks.multiply((X + zeros).astype(bool)))
    n, f = cells.nonzero()
    return n[observed[n]], f[observed[n]]


def _entries_seen(
    source: Source, observed: Array, hidden: _Entries, shape: tuple[int, int]
) -> Array:
    """The mask (n_steps, n_features) that hides steps and single entries."""
    if shape[0] * shape[1] > MOST_ENTRIES:
        raise ValueError(
            f"{source.name} has {len(hidden[0]):,} cells whose only row has no value, and is too "
            f"large to hide single cells ({shape[0]:,} × {shape[1]:,}). Remove these rows if they "
            f"stand for zeros, or take longer periods with freq= (--freq)."
        )
    seen = np.repeat(observed[:, np.newaxis], shape[1], axis=1)
    seen[hidden] = False
    return seen


def _about_missing(
    line: Timeline, steps: Array, observed: Array, hidden: _Entries
) -> tuple[str, ...]:
    """A word on what has rows but no value."""
    notes = []
    if len(hidden[0]):
        notes.append(f"cells whose only row has no value: {len(hidden[0]):,}, taken as missing")
    empty = np.setdiff1d(steps, np.flatnonzero(observed))
    if texts := time_texts(line.times[empty]):
        few = ", ".join(texts[:3]) + (", …" if len(texts) > 3 else "")
        notes.append(f"time steps without any value: {len(texts):,} ({few})")
    return tuple(notes)


def _summed(source: Source, columns: Columns) -> tuple[_Labels, _Labels, _Sums, _Values]:
    times = _Labels(NO_TIME, f"{source.name}: column {columns.time!r}")
    features = _Labels(("",), f"{source.name}: column {columns.feature!r}")
    sums = _Sums()
    values = _Values(source, columns.value or "")
    exposures = _Values(source, columns.exposure or "")
    row = 0
    for time, feature, *others in source.blocks:
        t, f = times.codes(time), features.codes(feature)
        v = np.ones(len(t)) if columns.value is None else values.read(others.pop(0), row)
        with np.errstate(over="ignore"):  # told below
            sums.add(columns, t, f, v, (len(times), len(features)))
        if columns.exposure is not None:
            sums.add_exposure(t, exposures.read(others.pop(0), row), len(times))
        row += len(t)
    values.settle()
    exposures.settle()
    if row == 0:
        raise ValueError(f"{source.name} has no rows. Add one per time and feature.")
    check_total(source.name, columns, sums.total)
    return times, features, sums, values


def check_total(name: str, columns: Columns, total: float) -> None:
    if not np.isfinite(total):
        raise ValueError(
            f"{name}: the values in column {columns.value!r} add up to infinity. The model is for "
            f"finite data: take a larger unit."
        )


def _timeline(
    source: Source,
    column: str,
    labels: Array,
    first: Array,
    freq: str | None,
    drop_partial: bool,
) -> tuple[Timeline, Array, Array, tuple[str, ...]]:
    """The grid, the step and the moment of each label, and what was understood of the labels."""

    def where(n: int) -> str:
        return source.place(int(first[n]))

    labels, weeks = as_weeks(labels, column)
    moments, notes = moments_of(labels, source.name, where)
    notes = (*weeks, *notes)
    if moments.dtype.kind == "U":
        line = timeline_of(moments, freq, drop_partial=drop_partial, name=source.name, where=where)
        return line, line.rows, np.arange(len(moments)), notes
    # The same time may be written in several ways.
    distinct, inverse = np.unique(moments, return_inverse=True)
    line = timeline_of(
        distinct, freq, drop_partial=drop_partial, name=source.name, style=style_of(labels, moments)
    )
    on_steps = replace(line, rows=line.rows[line.rows >= 0])
    return on_steps, line.rows[inverse], inverse, notes


MANY_STEPS = 1000
_LENGTHS = {
    "s": 1, "15s": 15, "min": 60, "15min": 900, "h": 3600, "D": 86400, "W": 7 * 86400,
    "M": 2629746, "Y": 31556952,
}  # fmt: skip


def _about_freq(line: Timeline, sums: _Sums) -> tuple[str, ...]:
    """Periods for times that hardly ever occur twice, so that there are about 30 to 1000."""
    n_steps = len(line.labels)
    if line.labels.dtype.kind != "M" or n_steps <= max(MANY_STEPS, sums.n_rows / 2):
        return ()
    span = np.ptp(line.labels[[0, -1]].astype("datetime64[s]").astype(np.int64))
    freq = next((freq for freq, length in _LENGTHS.items() if span / length <= MANY_STEPS), "Y")
    n_periods = int(span // _LENGTHS[freq]) + 1
    return (
        f"{n_steps:,} steps for {sums.n_rows:,} rows: --freq {freq} makes about {n_periods:,} "
        f"steps of them",
    )


def _names(features: _Labels, counts: Array) -> tuple[Array, Array]:
    """Names of the features that have a row, sorted, and their numbers."""
    names = np.array([str(name) for name in features.known.to_pylist()])
    kept = np.flatnonzero(counts)
    whole = all(name.isdecimal() for name in names[kept].tolist())
    keys = [int(name) for name in names[kept].tolist()] if whole else names[kept]
    order = kept[np.argsort(keys, kind="stable")]
    return names[order], order


def _exposure(
    source: Source,
    name: str,
    line: Timeline,
    steps: Array,
    moments: Array,
    sums: _Sums,
    kept: Array,
) -> tuple[Array, tuple[str, ...]]:
    """One exposure per moment, however it is written, added up per step, and a word on it."""
    _, first, inverse = np.unique(moments, return_index=True, return_inverse=True)
    least, most = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    np.minimum.at(least, inverse, sums.least[kept])
    np.maximum.at(most, inverse, sums.most[kept])
    valued = np.bincount(inverse, sums.times[kept]) > 0
    wrong = ~((least == most) & (most > 0)) & (valued | np.isfinite(most))
    if wrong.any():
        n = int(np.argmax(wrong))
        step = steps[first[n]]
        time = time_texts(line.times[step : step + 1])[0]
        found = f"is {least[n]:g} and {most[n]:g}"
        if least[n] == most[n]:
            found = f"is {most[n]:g}"
        elif np.isinf(most[n]):
            found = "is missing"
        raise ValueError(
            f"{source.name}: the exposure {name!r} of the time {time} {found}. Give each time one "
            f"positive exposure, the same in all of its rows."
        )
    rows = Timeline(line.labels, steps[first], line.every)
    return exposure_on_grid(np.where(np.isfinite(most), most, np.nan), rows, source.name)


def _about_rows(columns: Columns, sums: _Sums, values: _Values, left_out: Array) -> tuple[str, ...]:
    """Rows and totals: what was read, and what of it is not in the table."""
    dropped = [
        f"{count:,} without {name!r}" + (f", total {plain(total)}" if name != columns.value else "")
        for name, (count, total) in sums.dropped.items()
        if count
    ]
    if len(left_out):
        count, total = int(sums.times[left_out].sum()), float(sums.cells[left_out].sum())
        dropped.append(f"{count:,} in partial periods, total {plain(total)}")
    rows = f"rows read: {sums.n_rows:,}, total {plain(sums.total)}"
    notes = [f"{rows}; dropped: {'; '.join(dropped) or 'none'}"]
    if sums.n_blank:
        notes.append(f"empty rows left out: {sums.n_blank:,}")
    if values.comma:
        notes.append("commas are decimal commas")
    if values.grouped:
        notes.append(about_thousands(values.points))
    return (*notes, *values.doubt.about())


def _grown(array: Array, size: int, fill: float) -> Array:
    return np.concatenate([array, np.full(size - len(array), fill, dtype=array.dtype)])


def _arrow() -> tuple[Any, Any]:
    return library("pyarrow", "a long table"), library("pyarrow.compute", "a long table")


def _numpy(array: Any) -> Array:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _is_text(kind: Any) -> bool:
    pa, _ = _arrow()
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
