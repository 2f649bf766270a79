"""Shards from long tables of any size, by an external merge sort in bounded memory.

Rows come in blocks, in any order. As many as fit into memory are added up per feature and time and
written as a *run*, sorted by feature. The features are then cut into ranges; the cells of a range
are collected from all runs, added up, and appended to one sorted stream. Now the number of
non-zeros is known, and the stream is cut into shards.

Times are few: they stay in memory, and rows refer to them by their codes until the grid is known.
"""

from __future__ import annotations

import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path

import numpy as np
from scipy import sparse

from .._typing import Array
from ..reading.libraries import pa
from ..reading.long import LongGrid, LongRows
from ..reading.long_columns import Columns, Labels, Source, is_string
from ..reading.long_files import LONG_READERS, unknown_suffix
from ..reading.sheet import refuse_sum
from ..runtime.signals import raise_if_stopped
from .folder import Shards, check_folder, escaped, is_shards, unescaped
from .runs import CELL_BYTES, Piece, Runs, added_up, read_rows, write_rows
from .writing import ShardWriter, cut, shard_count

Progress = Callable[[int, int | None, str], None]  # done, total (None if unknown), description
Part = tuple[list[str], sparse.csr_array, sparse.csr_array]  # names, cells, missing cells


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

    The table is that of `read_table`: rows of the same time and feature are added up, a cell
    without a row is zero, a time without any row is missing, and so is a cell whose rows have no
    value. Features are sorted by name, or by size if all names are whole numbers. (`read_table`
    ignores names without any value for that, and keeps 07 and 7 in the order of the rows.)

    Parameters
    ----------
    source : path
        CSV, TSV or Parquet, or a folder of such files, which are read one after the other. If a
        folder has Parquet files, only these are read.
    folder : path
        The folder to write. Temporary files are written beside it.
    columns : Columns
        Names of the columns.
    freq, drop_partial
        As in `read_table`.
    n_shards, overwrite
        As in `write_shards`.
    memory : int, default=2**28
        Approximate number of bytes for rows that are being sorted, in addition to blocks of files,
        names of times and one shard.
    progress : callable, default=None
        Called with the work done, the total or None, and a description.

    Returns
    -------
    shards : Shards
    """
    tell = progress or (lambda *_: None)
    check_folder(Path(folder), overwrite)
    files = _Files(Path(source), columns)
    rows = LongRows(files.path.name, columns, files.place)
    with ShardWriter(folder, overwrite=overwrite) as writer:
        place = writer.partial / "sorting"
        place.mkdir()
        runs = Runs(place, max(memory // CELL_BYTES, 1))
        for file in files.sources():
            _read(file, rows, runs, tell)
        grid = rows.grid(freq, drop_partial)
        runs.flush()
        stream = _Stream(place)
        largest = _Largest(len(grid.observed))
        for part in _merged(runs, grid, len(rows.times), tell):
            stream.append(*part)
            largest.add(*part[:2])
        refuse_sum(largest.name, largest.own, largest.rows, largest.n_used, files.path.name)
        n_cells, n_hidden = stream.sizes.values()
        n_shards = shard_count(n_cells, stream.n_features, n_shards)
        for shard in stream.shards(n_shards, len(grid.observed), tell):
            writer.add(*shard)
        shutil.rmtree(place)
        notes = grid.all_notes(n_hidden)
        return writer.finish(grid.line, exposure=grid.exposure, observed=grid.observed, notes=notes)


class _Files:
    """The files of a long table, read one after the other."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self.columns = path, columns
        self.paths = files_of(path)
        self.starts: list[int] = []  # first row of each file
        self.names: list[str] = []
        self.places: list[Callable[[int], str]] = []
        self.n_rows = 0
        self.kind: pa.DataType | None = None  # of the times

    def sources(self) -> Iterator[Source]:
        for path in self.paths:
            suffix = next(s for s in LONG_READERS if path.name.lower().endswith(s))
            source = LONG_READERS[suffix](path, self.columns)
            if path != self.path:
                source = source._replace(name=str(path.relative_to(self.path.parent)))
            self.starts.append(self.n_rows)
            self.names.append(source.name)
            self.places.append(source.place)
            yield source._replace(blocks=self._blocks(source))

    def _blocks(self, source: Source) -> Iterator[list[pa.Array]]:
        for time, *others in source.blocks:
            yield [self._times(time, source.name), *others]
            self.n_rows += len(time)

    def _times(self, column: pa.Array, name: str) -> pa.Array:
        """A column of times, of the same type in all files."""
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if is_string(kind):
            kind = pa.large_string()
        elif pa.types.is_null(kind) and self.kind is not None:
            return column.cast(self.kind)
        if self.kind is None or pa.types.is_null(self.kind):
            self.kind = kind
        if kind != self.kind:
            other = f"{self.names[0]} of type {self.kind}. Write all files in the same way."
            column = f"in column {self.columns.time!r}"
            raise ValueError(f"{name} has times of type {kind} {column}, and {other}")
        return column

    def place(self, n: int) -> str:
        """The place of row n in errors."""
        k = bisect_right(self.starts, n) - 1
        where = self.places[k](n - self.starts[k])
        return where if self.path.is_file() else f"{self.names[k]}, {where}"


def files_of(path: Path) -> list[Path]:
    """The files of a long table, which may be a folder."""
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
    if path.is_dir():
        known = ", ".join(LONG_READERS)
        raise ValueError(f"{path} has no file of a known suffix ({known}). Name another folder.")
    raise unknown_suffix(path, "long tables", LONG_READERS)


def _read(source: Source, rows: LongRows, runs: Runs, tell: Progress) -> None:
    """Add the cells of a file to the runs, and their sums over all features to `rows`."""
    for t, feature, v in rows.read(source):
        # Labels of this block only: those of all blocks may not fit into memory.
        names = Labels(("",), f"{source.name}: column {rows.columns.feature!r}")
        f = names.codes(feature)
        rows.add(t, np.minimum(f, 0), v, 1)
        kept = (t >= 0) & (f >= 0)
        runs.add(Piece(_texts(names.known), f[kept], t[kept], v[kept]))
        raise_if_stopped()
        tell(rows.sums.n_rows + rows.sums.n_blank, None, "rows read")


def _texts(labels: pa.Array) -> pa.Array:
    """Labels of features as text, as `str` writes them."""
    if not (is_string(labels.type) or pa.types.is_integer(labels.type)):
        labels = pa.array([str(label) for label in labels.to_pylist()], pa.large_string())
    return labels.cast(pa.large_string())


def _merged(runs: Runs, grid: LongGrid, n_times: int, tell: Progress) -> Iterator[Part]:
    """The features in order, in ranges."""
    n_steps = len(grid.observed)
    step_of = np.full(n_times, n_steps, dtype=np.int32)  # n_steps for times that are left out
    step_of[grid.kept] = grid.steps
    whole = runs.settled()
    bounds = runs.ranges(whole)
    n_ranges = bounds.shape[1] - 1
    for k in range(n_ranges):
        pieces: list[Piece] = []
        size = 0
        for run, (first, last) in zip(runs.found, bounds[:, k : k + 2].tolist(), strict=True):
            if first < last:
                piece = run.piece(first, last)
                pieces.append(piece._replace(t=step_of[piece.t]))
                size += len(piece.v)
            if size > 2 * runs.most:  # such as a feature that is in all runs
                pieces = [Piece.of(*added_up(pieces, n_steps + 1, whole))]
                size = 0
        if pieces:
            yield _part(*added_up(pieces, n_steps + 1, whole), grid.observed)
        tell(k + 1, n_ranges, "parts sorted")


def _part(names: pa.Array, cells: sparse.csr_array, observed: Array) -> Part:
    """The features of a range of names that have a value.

    The last column holds times that were left out: a feature with values there is kept, too.
    """
    piece = Piece.of(names, cells)
    blank = np.isnan(piece.v)
    known = np.bincount(piece.f[~blank], minlength=len(names)) > 0
    shown = ~blank & (piece.v > 0.0) & (piece.t < len(observed))
    hidden = blank & known[piece.f] & np.append(observed, False)[piece.t]

    def chosen(which: Array) -> sparse.csr_array:
        ends = np.cumsum(np.bincount(piece.f[which], minlength=len(names))[known])
        parts = piece.v[which], piece.t[which], np.append(0, ends)
        return sparse.csr_array(parts, shape=(len(ends), len(observed)))

    return names.filter(pa.array(known)).to_pylist(), chosen(shown), chosen(hidden)


class _Largest:
    """The feature with the largest sum, and the sums of all features, found part by part."""

    def __init__(self, n_steps: int) -> None:
        self.name, self.n_used = "", 0
        self.own, self.rows = np.zeros((2, n_steps))

    def add(self, names: list[str], cells: sparse.csr_array) -> None:
        sums = cells.sum(axis=1)
        self.rows += cells.sum(axis=0)
        self.n_used += int(np.count_nonzero(sums))
        if len(names) and sums.max() > self.own.sum():
            f = int(np.argmax(sums))
            self.name, self.own = names[f], cells[[f]].toarray()[0]


class _Stream:
    """All features in order, on disk, until the number of shards is known."""

    def __init__(self, folder: Path) -> None:
        self.names = folder / "all.names"
        self.sizes = {folder / "cells": 0, folder / "gaps": 0}  # entries by stem
        self.n_features = 0
        for stem in self.sizes:
            np.zeros(1, dtype=np.int64).tofile(stem.with_suffix(".indptr"))

    def append(self, names: list[str], *matrices: sparse.csr_array) -> None:
        with self.names.open("ab") as file:
            file.writelines(f"{escaped(name)}\n".encode() for name in names)
        self.n_features += len(names)
        for stem, rows in zip(self.sizes, matrices, strict=True):
            write_rows(stem, rows, rows.indptr[1:] + self.sizes[stem], "ab")
            self.sizes[stem] += rows.nnz

    def shards(self, n_shards: int, n_steps: int, tell: Progress) -> Iterator[Part]:
        cells, gaps = self.sizes
        bounds = cut(np.memmap(cells.with_suffix(".indptr"), dtype=np.int64, mode="r"), n_shards)
        with self.names.open("rb") as lines:
            for i, (first, last) in enumerate(pairwise(bounds)):
                names = [unescaped(line[:-1].decode()) for line in islice(lines, last - first)]
                shape = len(names), n_steps
                shown, hidden = (
                    sparse.csr_array(read_rows(stem, first, last), shape=shape)
                    for stem in (cells, gaps)
                )
                yield names, shown, hidden
                tell(i + 1, n_shards, "shards written")
