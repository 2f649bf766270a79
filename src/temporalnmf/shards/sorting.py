"""Long tables of any size become shards: rows are sorted on disk, in bounded memory.

Rows come in blocks, in any order. As many as memory takes are added up per feature and time, and
written as a *run*, sorted by feature. The features are then cut into ranges; those of one range
are gathered from all runs, added up, and follow each other in one sorted stream. Only now the
number of non-zeros is known, and the stream is cut into shards.

Times are few: they are kept in memory, and rows hold their numbers until the grid is known.
"""

from __future__ import annotations

import shutil
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..reading.grid import check_steps
from ..reading.long import (
    _ABOUT_ZEROS,
    Columns,
    Source,
    _about_freq,
    _about_missing,
    _about_rows,
    _arrow,
    _exposure,
    _is_text,
    _Labels,
    _numpy,
    _Sums,
    _timeline,
    _Values,
    check_total,
)
from ..reading.long_files import LONG_READERS
from ..runtime.signals import raise_if_stopped
from ..timeline.dates import NO_TIME
from ..timeline.grid import Timeline
from .folder import (
    Shards,
    ShardWriter,
    check_folder,
    cut,
    escaped,
    is_shards,
    shard_count,
    unescaped,
)

if TYPE_CHECKING:
    from .._typing import Array  # not at run time: it loads the compiler

Progress = Callable[..., None]  # what is done, what is wanted (None if unknown), and words

_BYTES = 128  # that a cell takes while it is sorted
_PER_RANGE = 64  # names that are remembered for each range, to cut it where it should be


def shard_long(
    source: str | PathLike[str],
    folder: str | PathLike[str],
    columns: Columns,
    *,
    freq: str | None = None,
    drop_partial: bool = False,
    n_shards: int | None = None,
    overwrite: bool = False,
    memory: int = 1 << 28,
    progress: Progress | None = None,
) -> Shards:
    """Write a long table of any number of rows as a folder of shards.

    Everything is as `read_table` has it: rows of the same time and feature are added up, what has
    no row is zero, a time without any row is missing, and so is a cell whose rows have no value.
    Features are sorted by name, as whole numbers if all names are such. (`read_table` does not
    look at names without any value for that, and keeps 07 and 7 in the order in which they come.)

    Parameters
    ----------
    source : path
        CSV, TSV or Parquet, or a folder of such files, which are read one after the other. Of a
        folder with Parquet files only these are read.
    folder : path
        Where to. What is made on the way lies beside it and is gone in the end.
    columns : Columns
        Names of the columns.
    freq, drop_partial
        As in `read_table`.
    n_shards, overwrite
        As in `write_shards`.
    memory : int, default=2**28
        Bytes for rows that are being sorted, about; blocks of files, names of times and one shard
        come on top.
    progress : callable, default=None
        Called with what is done, what is wanted or None, and what it is in words.

    Returns
    -------
    shards : Shards
    """
    tell = progress or (lambda *_: None)
    check_folder(Path(folder), overwrite)
    table = _Files(Path(source), columns)
    with ShardWriter(folder, overwrite=overwrite) as writer:
        place = writer.partial / "sorting"
        place.mkdir()
        runs = _Runs(place, max(memory // _BYTES, 1))
        rows = _read(table, runs, tell)
        grid = _grid(table, rows, freq, drop_partial)
        with _Stream(place) as stream:
            for part in _merged(runs, grid, tell):
                stream.append(*part)
            n_shards = shard_count(stream.n_cells, stream.n_features, n_shards)
            for shard in stream.shards(n_shards, grid.n_steps, tell):
                writer.add(*shard)
        shutil.rmtree(place)
        notes = (*grid.notes, *_about_missing(grid.line, grid.steps, grid.observed,
                                              (range(stream.n_hidden), ())))  # fmt: skip
        return writer.finish(grid.line, exposure=grid.exposure, observed=grid.observed, notes=notes)


class _Files:
    """The files of a long table, one after the other."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self.columns = path, columns
        self.files = _files_of(path)
        self.starts: list[int] = []  # first row of each file that was read
        self.sources: list[Source] = []
        self.kind: Any = None  # of the times

    def read(self) -> Iterator[Source]:
        for path in self.files:
            suffix = next(s for s in LONG_READERS if path.name.lower().endswith(s))
            source = LONG_READERS[suffix](path, self.columns)
            name = str(path.relative_to(self.path.parent))
            yield source if path == self.path else source._replace(name=name)

    def began(self, source: Source, row: int) -> None:
        self.starts.append(row)
        # Without its blocks: a file that was read is not kept open.
        self.sources.append(source._replace(blocks=()))

    def place(self, n: int) -> str:
        k = bisect_right(self.starts, n) - 1
        where = self.sources[k].place(n - self.starts[k])
        return where if self.path.is_file() else f"{self.sources[k].name}, {where}"

    def times(self, column: Any, source: Source) -> Any:
        """A column of times, of the same kind in all files."""
        pa, _ = _arrow()
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if _is_text(kind):
            kind = pa.large_string()
        elif pa.types.is_null(kind) and self.kind is not None:
            return column.cast(self.kind)
        if self.kind is None or pa.types.is_null(self.kind):
            self.kind = kind
        if kind != self.kind:
            raise ValueError(
                f"{source.name} has times of type {kind} in column {self.columns.time!r}, and "
                f"{self.sources[0].name} of type {self.kind}. Write all files in the same way."
            )
        return column


def _files_of(path: Path) -> list[Path]:
    if is_shards(path):
        raise ValueError(f"{path} is a folder of shards already. Name the table.")
    if path.is_file():
        found = [path]
    elif path.is_dir():
        found = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file() and not any(p[0] in "._" for p in file.relative_to(path).parts)
        ]
    else:
        raise FileNotFoundError(f"{path}: there is no such file or folder. Check the path.")
    for suffixes in ((".parquet",), tuple(LONG_READERS)):
        if files := [file for file in found if file.name.lower().endswith(suffixes)]:
            return files
    known = ", ".join(LONG_READERS)
    if path.is_dir():
        raise ValueError(f"{path} has no file of a known suffix ({known}). Name another folder.")
    raise ValueError(
        f"{path.name} has the suffix {path.suffix!r}, which is not known for long tables "
        f"(feature=). Known are {known}; a spreadsheet can be saved as CSV."
    )


class _Rows(NamedTuple):
    """What is known when all rows are read."""

    times: _Labels
    sums: _Sums  # as if there were one feature
    values: list[_Values]  # of each file


def _read(table: _Files, runs: _Runs, tell: Progress) -> _Rows:
    """Send the rows of all files to runs, and add up the rest."""
    columns = table.columns
    rows = _Rows(_Labels(NO_TIME, f"{table.path.name}: column {columns.time!r}"), _Sums(), [])
    n_rows = 0
    for source in table.read():
        values = _Values(source, columns.value or "")
        exposures = _Values(source, columns.exposure or "")
        table.began(source, n_rows)
        first = n_rows
        for time, feature, *others in source.blocks:
            # Of this block only: there may be more than memory takes.
            names = _Labels(("",), f"{source.name}: column {columns.feature!r}")
            t, f = rows.times.codes(table.times(time, source)), names.codes(feature)
            row = n_rows - first
            v = np.ones(len(t)) if columns.value is None else values.read(others.pop(0), row)
            with np.errstate(over="ignore"):  # told below
                rows.sums.add(columns, t, np.minimum(f, 0), v, (len(rows.times), 1))
            if columns.exposure is not None:
                sizes = exposures.read(others.pop(0), row)
                rows.sums.add_exposure(t, sizes, len(rows.times))
            kept = (t >= 0) & (f >= 0)
            runs.add(_Piece(_texts(names.known), f[kept], t[kept], v[kept]))
            n_rows += len(t)
            raise_if_stopped()
            tell(n_rows, None, "rows read")
        values.settle()
        exposures.settle()
        values.source = table.sources[-1]
        rows.values.append(values)
    if n_rows == 0:
        raise ValueError(f"{table.path.name} has no rows. Add one per time and feature.")
    if not rows.sums.times.any():
        raise ValueError(
            f"{table.path.name} has no row with {', '.join(map(repr, columns.names[:3]))}. Check "
            f"the names of the columns."
        )
    check_total(table.path.name, columns, rows.sums.total)
    runs.flush()
    return rows


def _texts(labels: Any) -> Any:
    """Labels of features as text, as Python writes them."""
    pa, _ = _arrow()
    if not (_is_text(labels.type) or pa.types.is_integer(labels.type)):
        labels = pa.array([str(label) for label in labels.to_pylist()], pa.large_string())
    return labels.cast(pa.large_string())


class _Grid(NamedTuple):
    """The steps, and where times lie on them."""

    line: Timeline
    step_of: Array  # of each time; n_steps for those that are left out
    steps: Array  # that have a row
    observed: Array
    exposure: Array | None
    notes: tuple[str, ...]

    @property
    def n_steps(self) -> int:
        return len(self.line.labels)


def _grid(table: _Files, rows: _Rows, freq: str | None, drop_partial: bool) -> _Grid:
    """As in `reading.long.long_table`."""
    columns, sums = table.columns, rows.sums
    source = Source(table.path.name, (), table.place)
    kept = np.flatnonzero(sums.times + np.diff(sums.blanks.indptr))
    line, steps, moments, notes = _timeline(
        source, columns.time, rows.times.labels()[kept], sums.first[kept], freq, drop_partial
    )
    left_out = kept[steps < 0]
    kept, moments, steps = kept[steps >= 0], moments[steps >= 0], steps[steps >= 0]
    n_steps = len(line.labels)
    if n_steps < 3:
        check_steps(n_steps, freq, source.name)
        raise ValueError(f"{source.name} has {n_steps} times, and at least 3 are needed.")
    step_of = np.full(len(rows.times), n_steps, dtype=np.int32)
    step_of[kept] = steps
    observed = np.zeros(n_steps, dtype=bool)
    observed[steps[sums.times[kept] > 0]] = True
    sizes: Array | None = None
    interpolated: tuple[str, ...] = ()
    if columns.exposure is not None:
        sizes, interpolated = _exposure(source, columns.exposure, line, steps, moments, sums, kept)
    # Files may differ in how numbers are written: each has its word, said once.
    about = (
        note for values in rows.values for note in _about_rows(columns, sums, values, left_out)
    )
    told = (
        *dict.fromkeys(note for one in table.sources for note in one.notes),
        *dict.fromkeys(about), *notes, *line.notes,
        *(_about_freq(line, sums) if freq is None else ()), *interpolated, _ABOUT_ZEROS,
    )  # fmt: skip
    return _Grid(line, step_of, steps, observed, sizes, told)


class _Piece(NamedTuple):
    """Names, and cells in any order: number of the name, of the column, value (NaN if missing)."""

    names: Any
    f: Array
    t: Array
    v: Array


def _added_up(pieces: list[_Piece], width: int, whole: bool) -> tuple[Any, sparse.csr_array]:
    """Names in their order, and cells (names, width); NaN where there are rows, but no value."""
    pa, _ = _arrow()
    encoded = pa.chunked_array([piece.names for piece in pieces]).combine_chunks()
    encoded = encoded.dictionary_encode()
    order = _order(encoded.dictionary, whole)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    place = rank[_numpy(encoded.indices)]
    starts = np.cumsum([0, *(len(piece.names) for piece in pieces)])
    f = np.concatenate(
        [place[start : start + len(p.names)][p.f] for start, p in zip(starts, pieces, strict=False)]
    )
    t, v = np.concatenate([p.t for p in pieces]), np.concatenate([p.v for p in pieces])
    blank = np.isnan(v)
    cells = _summed(f, t, np.where(blank, 0.0, v) if blank.any() else v, (len(order), width))
    if blank.any():
        valued = _summed(f, t, (~blank).astype(float), cells.shape)
        cells.data[valued.data == 0.0] = np.nan
    return encoded.dictionary.take(pa.array(order)), cells


def _summed(f: Array, t: Array, v: Array, shape: tuple[int, int]) -> sparse.csr_array:
    """Cells in canonical format, with their zeros."""
    cells = sparse.coo_array((v, (f, t)), shape=shape).tocsr()
    cells.sum_duplicates()
    return cells


def _order(names: Any, whole: bool) -> Array:
    """The order of names: as text, by code points; whole numbers by their size."""
    pa, pc = _arrow()
    if not whole:
        return _numpy(pc.sort_indices(names)).astype(np.int64)
    digits = pc.utf8_ltrim(names, characters="0")
    parts = {"size": pc.binary_length(digits), "digits": digits, "name": names}
    keys = [(part, "ascending") for part in parts]
    return _numpy(pc.sort_indices(pa.table(parts), sort_keys=keys)).astype(np.int64)


def _key(whole: bool) -> Callable[[str], Any]:
    """The same order for single names."""
    if not whole:
        return str

    def key(name: str) -> tuple[int, str, str]:
        digits = name.lstrip("0")
        return len(digits), digits, name

    return key


class _Run:
    """Cells of some rows on disk, sorted by feature."""

    def __init__(self, stem: Path, names: Any, cells: sparse.csr_array, whole: bool) -> None:
        self.stem, self.whole = stem, whole
        self.n_names = len(names)
        offsets = np.frombuffer(names.buffers()[1], dtype=np.int64)
        offsets = offsets[names.offset : names.offset + self.n_names + 1]
        text = np.frombuffer(names.buffers()[2] or b"", dtype=np.uint8)
        self._write("text", text[offsets[0] : offsets[-1]])
        self._write("offsets", offsets - offsets[0])
        self._write("indptr", cells.indptr.astype(np.int64))
        self._write("times", cells.indices.astype(np.int32))
        self._write("values", cells.data)

    def _write(self, part: str, array: Array) -> None:
        array.tofile(self.stem.with_suffix(f".{part}"))

    def _part(self, part: str, kind: Any, first: int, last: int) -> Array:
        return _numbers(self.stem.with_suffix(f".{part}"), kind, first, last)

    def names(self, first: int = 0, last: int | None = None) -> Any:
        pa, _ = _arrow()
        last = self.n_names if last is None else last
        offsets = self._part("offsets", np.int64, first, last + 1)
        text = self._part("text", np.uint8, int(offsets[0]), int(offsets[-1]))
        buffers = [None, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.large_string(), last - first, buffers)

    def piece(self, first: int = 0, last: int | None = None) -> _Piece:
        """The cells of a range of names."""
        last = self.n_names if last is None else last
        indptr = self._part("indptr", np.int64, first, last + 1)
        bounds = int(indptr[0]), int(indptr[-1])
        f = np.repeat(np.arange(last - first, dtype=np.int32), np.diff(indptr))
        t, v = self._part("times", np.int32, *bounds), self._part("values", np.float64, *bounds)
        return _Piece(self.names(first, last), f, t, v)


class _Runs:
    """Rows are gathered until there are `most`, and then written as a run."""

    def __init__(self, folder: Path, most: int) -> None:
        self.folder, self.most = folder, most
        self.found: list[_Run] = []
        self.marks: list[str] = []  # a name for so many cells
        self.every = max(most // _PER_RANGE, 1)
        self.pieces: list[_Piece] = []
        self.size = 0

    def add(self, piece: _Piece) -> None:
        self.pieces.append(piece)
        self.size += len(piece.v) + piece.names.nbytes // (_BYTES // 4)
        if self.size >= self.most:
            self.flush()

    def flush(self) -> None:
        pieces, self.pieces, self.size = self.pieces, [], 0
        if sum(len(piece.v) for piece in pieces):
            _, pc = _arrow()
            digits = (pc.match_substring_regex(piece.names, r"^\d+$") for piece in pieces)
            whole = all(pc.all(found).as_py() in (True, None) for found in digits)
            width = 1 + max(int(piece.t.max(initial=0)) for piece in pieces)
            names, cells = _added_up(pieces, width, whole)
            stem = self.folder / f"{len(self.found):05d}"
            self.found.append(_Run(stem, names, cells, whole))
            marked = np.arange(0, cells.nnz, self.every)
            marked = np.searchsorted(cells.indptr, marked, side="right") - 1
            self.marks += names.take(marked).to_pylist()

    def settled(self) -> bool:
        """Whether names are whole numbers; if some are not, all runs are in the order of text."""
        whole = all(run.whole for run in self.found)
        for k, run in enumerate(self.found):
            if run.whole and not whole:
                piece = run.piece()
                names, cells = _added_up([piece], 1 + int(piece.t.max()), whole)
                self.found[k] = _Run(run.stem, names, cells, whole)
        return whole

    def ranges(self, whole: bool) -> Array:
        """Bounds of ranges of names in each run, (n_runs, n_ranges + 1)."""
        key = _key(whole)
        marks = sorted(self.marks, key=key)
        inner = [key(mark) for mark in dict.fromkeys(marks[_PER_RANGE::_PER_RANGE])]
        bounds = []
        for run in self.found:
            names = run.names()
            cuts = (bisect_left(names, mark, key=lambda name: key(name.as_py())) for mark in inner)
            bounds.append([0, *cuts, run.n_names])
        return np.array(bounds)


_Part = tuple[list[str], Any, Any, Any, Any, Any]


def _merged(runs: _Runs, grid: _Grid, tell: Progress) -> Iterator[_Part]:
    """Ranges of features in order: names, cells and missing cells, which count from 0 in each."""
    whole = runs.settled()
    bounds = runs.ranges(whole)
    n_ranges = bounds.shape[1] - 1
    for k in range(n_ranges):
        pieces: list[_Piece] = []
        size = 0
        for run, (first, last) in zip(runs.found, bounds[:, k : k + 2].tolist(), strict=True):
            if first < last:
                piece = run.piece(first, last)
                pieces.append(piece._replace(t=grid.step_of[piece.t]))
                size += len(piece.v)
            if size > 2 * runs.most:  # one feature that is in all runs, perhaps
                pieces = [_as_piece(*_added_up(pieces, grid.n_steps + 1, whole))]
                size = 0
        if pieces:
            yield _of_range(*_added_up(pieces, grid.n_steps + 1, whole), grid)
        tell(k + 1, n_ranges, "parts sorted")


def _as_piece(names: Any, cells: sparse.csr_array) -> _Piece:
    f = np.repeat(np.arange(len(names), dtype=np.int32), np.diff(cells.indptr))
    return _Piece(names, f, cells.indices, cells.data)


def _of_range(names: Any, cells: sparse.csr_array, grid: _Grid) -> _Part:
    """Names of features that have a value; where their cells end, steps, values; the same of gaps.

    The last column holds times that were left out: they make a feature, but no cell.
    """
    pa, _ = _arrow()
    piece = _as_piece(names, cells)
    blank = np.isnan(piece.v)
    known = np.bincount(piece.f[~blank], minlength=len(names)) > 0
    number = np.cumsum(known) - 1
    shown = ~blank & (piece.v > 0.0) & (piece.t < grid.n_steps)
    hidden = blank & known[piece.f] & np.append(grid.observed, False)[piece.t]
    ends = (
        np.cumsum(np.bincount(number[piece.f[which]], minlength=int(known.sum())))
        for which in (shown, hidden)
    )
    kept = names.filter(pa.array(known)).to_pylist()
    return kept, next(ends), piece.t[shown], piece.v[shown], next(ends), piece.t[hidden]


class _Stream:
    """All features in order, on disk, until the number of shards is known."""

    _PARTS = ("names", "ends", "steps", "values", "gap_ends", "gap_steps")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.n_features = self.n_cells = self.n_hidden = 0

    def __enter__(self) -> _Stream:
        with ExitStack() as stack:
            self.files: dict[str, IO[bytes]] = {
                part: stack.enter_context((self.folder / f"all.{part}").open("w+b"))
                for part in self._PARTS
            }
            self.closing = stack.pop_all()
        for part in ("ends", "gap_ends"):
            self._write(part, np.zeros(1, dtype=np.int64))
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.close()

    def _write(self, part: str, array: Array) -> None:
        self.files[part].write(np.ascontiguousarray(array).data)

    def append(
        self, names: list[str], ends: Array, steps: Array, values: Array, gap_ends: Array,
        gap_steps: Array,
    ) -> None:  # fmt: skip
        self.files["names"].writelines(f"{escaped(name)}\n".encode() for name in names)
        self._write("ends", ends + self.n_cells)
        self._write("steps", steps.astype(np.int32))
        self._write("values", values)
        self._write("gap_ends", gap_ends + self.n_hidden)
        self._write("gap_steps", gap_steps.astype(np.int32))
        self.n_features += len(names)
        self.n_cells += len(steps)
        self.n_hidden += len(gap_steps)

    def shards(
        self, n_shards: int, n_steps: int, tell: Progress
    ) -> Iterator[tuple[Iterable[str], sparse.csr_array, sparse.csr_array]]:
        """Names, cells and missing cells of each."""
        for file in self.files.values():
            file.flush()
        ends = np.memmap(self.files["ends"].name, dtype=np.int64, mode="r")
        bounds = cut(ends, n_shards)
        del ends
        lines = self.files["names"]
        lines.seek(0)
        for i, (first, last) in enumerate(pairwise(bounds)):
            names = [unescaped(line[:-1].decode()) for line in islice(lines, last - first)]
            cells = self._rows("", first, last, n_steps)
            yield names, cells, self._rows("gap_", first, last, n_steps)
            tell(i + 1, n_shards, "shards written")

    def _rows(self, what: str, first: int, last: int, n_steps: int) -> sparse.csr_array:
        ends = self._part(f"{what}ends", np.int64, first, last + 1)
        bounds = int(ends[0]), int(ends[-1])
        steps = self._part(f"{what}steps", np.int32, *bounds)
        values = np.ones(len(steps)) if what else self._part("values", np.float64, *bounds)
        return sparse.csr_array((values, steps, ends - ends[0]), shape=(last - first, n_steps))

    def _part(self, part: str, kind: Any, first: int, last: int) -> Array:
        return _numbers(Path(self.files[part].name), kind, first, last)


def _numbers(path: Path, kind: Any, first: int, last: int) -> Array:
    """Some of the numbers of a file. Read, not mapped: pages of a map would pile up in memory."""
    start = first * np.dtype(kind).itemsize
    return np.fromfile(path, dtype=kind, count=last - first, offset=start)
