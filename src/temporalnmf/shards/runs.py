"""Cells of a long table on disk, in sorted runs, as in an external merge sort."""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from .._typing import Array
from ..reading.libraries import pa, pc
from ..reading.long_columns import to_numpy

CELL_BYTES = 128  # memory of a cell while it is sorted
_PER_RANGE = 64  # sampled names per range of features, to make ranges of equal size


class Piece(NamedTuple):
    """Names, and cells in any order: index of the name, column, value (NaN if missing)."""

    names: pa.Array
    f: Array
    t: Array
    v: Array

    @classmethod
    def of(cls, names: pa.Array, cells: sparse.csr_array) -> Piece:
        f = np.repeat(np.arange(len(names), dtype=np.int32), np.diff(cells.indptr))
        return cls(names, f, cells.indices, cells.data)


def added_up(pieces: list[Piece], width: int, whole: bool) -> tuple[pa.Array, sparse.csr_array]:
    """Sorted names, and cells (names, width) with NaN for those whose rows have no value.

    Names are sorted by code points, or by size if they are whole numbers.
    """
    encoded = pa.chunked_array([piece.names for piece in pieces]).combine_chunks()
    encoded = encoded.dictionary_encode()
    order = _order(encoded.dictionary, whole)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    place = rank[to_numpy(encoded.indices)]
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
    """Cells in canonical format, including zeros."""
    cells = sparse.coo_array((v, (f, t)), shape=shape).tocsr()
    cells.sum_duplicates()
    return cells


def _order(names: pa.Array, whole: bool) -> Array:
    if not whole:
        return to_numpy(pc.sort_indices(names)).astype(np.int64)
    digits = pc.utf8_ltrim(names, characters="0")
    parts = {"size": pc.binary_length(digits), "digits": digits, "name": names}
    keys = [(part, "ascending") for part in parts]
    return to_numpy(pc.sort_indices(pa.table(parts), sort_keys=keys)).astype(np.int64)


def _key(whole: bool, name: str) -> tuple[int, str, str]:
    """The sort key of a name, for the order of `_order`."""
    digits = name.lstrip("0") if whole else ""
    return len(digits), digits, name


class Run:
    """Cells of some rows on disk, sorted by feature."""

    def __init__(self, stem: Path, names: pa.Array, cells: sparse.csr_array, whole: bool) -> None:
        self.stem, self.whole = stem, whole
        self.n_names = len(names)
        offsets = np.frombuffer(names.buffers()[1], dtype=np.int64)
        offsets = offsets[names.offset : names.offset + self.n_names + 1]
        text = np.frombuffer(names.buffers()[2] or b"", dtype=np.uint8)
        text[offsets[0] : offsets[-1]].tofile(stem.with_suffix(".text"))
        (offsets - offsets[0]).tofile(stem.with_suffix(".offsets"))
        write_rows(stem, cells, cells.indptr, "wb")

    def names(self, first: int, last: int) -> pa.Array:
        offsets = _read_numbers(self.stem.with_suffix(".offsets"), np.int64, first, last + 1)
        text = _read_numbers(self.stem.with_suffix(".text"), np.uint8, offsets[0], offsets[-1])
        buffers = [None, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.large_string(), last - first, buffers)

    def piece(self, first: int, last: int) -> Piece:
        """The cells of a range of names."""
        v, t, indptr = read_rows(self.stem, first, last)
        f = np.repeat(np.arange(last - first, dtype=np.int32), np.diff(indptr))
        return Piece(self.names(first, last), f, t, v)


class Runs:
    """Collects cells and writes them as a run whenever there are `most`."""

    def __init__(self, folder: Path, most: int) -> None:
        self.folder, self.most = folder, most
        self.found: list[Run] = []
        self.marks: list[str] = []  # the name of every `every`-th cell
        self.every = max(most // _PER_RANGE, 1)
        self.pieces: list[Piece] = []
        self.size = 0

    def add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.size += len(piece.v) + piece.names.nbytes // (CELL_BYTES // 4)
        if self.size >= self.most:
            self.flush()

    def flush(self) -> None:
        pieces, self.pieces, self.size = self.pieces, [], 0
        if not sum(len(piece.v) for piece in pieces):
            return
        digits = (pc.match_substring_regex(piece.names, r"^\d+$") for piece in pieces)
        whole = all(pc.all(found).as_py() in (True, None) for found in digits)
        width = 1 + max(int(piece.t.max(initial=0)) for piece in pieces)
        names, cells = added_up(pieces, width, whole)
        self.found.append(Run(self.folder / f"{len(self.found):05d}", names, cells, whole))
        marked = np.arange(0, cells.nnz, self.every)
        marked = np.searchsorted(cells.indptr, marked, side="right") - 1
        self.marks += names.take(marked).to_pylist()

    def settled(self) -> bool:
        """Whether all names are whole numbers; if not, all runs are sorted as text."""
        whole = all(run.whole for run in self.found)
        for k, run in enumerate(self.found):
            if run.whole and not whole:
                piece = run.piece(0, run.n_names)
                names, cells = added_up([piece], 1 + int(piece.t.max()), whole)
                self.found[k] = Run(run.stem, names, cells, whole)
        return whole

    def ranges(self, whole: bool) -> Array:
        """Bounds of ranges of names in each run, (n_runs, n_ranges + 1)."""
        key = partial(_key, whole)
        marks = sorted(self.marks, key=key)
        inner = [key(mark) for mark in dict.fromkeys(marks[_PER_RANGE::_PER_RANGE])]
        bounds = []
        for run in self.found:
            names = run.names(0, run.n_names)
            cuts = (bisect_left(names, mark, key=lambda name: key(name.as_py())) for mark in inner)
            bounds.append([0, *cuts, run.n_names])
        return np.array(bounds)


def write_rows(
    stem: Path, rows: sparse.csr_array, indptr: Array, mode: Literal["wb", "ab"]
) -> None:
    """Write or append compressed rows to three files that are read by `read_rows`."""
    arrays = {"indptr": indptr.astype(np.int64), "indices": rows.indices.astype(np.int32)}
    for part, array in {**arrays, "values": rows.data}.items():
        with stem.with_suffix(f".{part}").open(mode) as file:
            array.tofile(file)


def read_rows(stem: Path, first: int, last: int) -> tuple[Array, Array, Array]:
    """Values, columns and row starts of some rows."""
    indptr = _read_numbers(stem.with_suffix(".indptr"), np.int64, first, last + 1)
    columns = _read_numbers(stem.with_suffix(".indices"), np.int32, indptr[0], indptr[-1])
    values = _read_numbers(stem.with_suffix(".values"), np.float64, indptr[0], indptr[-1])
    return values, columns, indptr - indptr[0]


def _read_numbers(path: Path, kind: type[np.generic], first: int, last: int) -> Array:
    """Some of the numbers of a file; not mapped, since mapped pages would accumulate in memory."""
    start = int(first) * np.dtype(kind).itemsize
    return np.fromfile(path, dtype=kind, count=int(last - first), offset=start)
