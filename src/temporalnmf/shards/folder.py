"""Folders of shards.

    shards.json                 the header; it is written last
    00000.features.indptr.npy   a row per feature of shard 0, a column per step, as compressed rows,
                  .indices.npy  sorted, without duplicates and zeros
                  .values.npy
    00000.steps.….npy           the same numbers with a row per step
    00000.missing.indptr.npy    a row per feature: the steps in which it is missing, if any
                 .indices.npy
    00000.names.txt             names of the features, one per line

Both orders are stored because a pass over the data needs both, and sorting in every iteration would
take longer than reading. File names follow from the number of a shard, never from the content of a
file. Nothing in a folder is ever executed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TypedDict

import numpy as np
from scipy import sparse

from .. import __version__
from .._typing import Array
from ..messages.errors import Arg, Text
from ..runtime.archives import json_of, npy_header, path_inside
from ..runtime.files import refuse_replacing
from ..timeline.grid import StoredTimeline, Timeline

FORMAT = "temporalnmf shards"
SCHEMA = 1  # raised by one whenever an older program could not read the folder
HEADER = "shards.json"
_OURS = re.compile(
    r"shards\.json|\d{5,}\.(names\.txt|((features|steps)\.(indptr|indices|values)|"
    r"missing\.(indptr|indices))\.npy)"
)


class Header(TypedDict):
    """The header of a folder, shards.json."""

    format: str
    schema: int
    versions: dict[str, str]
    n_times: int
    n_features: int
    bounds: list[int]
    nonzeros: list[int]
    has_missing: list[bool]
    timeline: StoredTimeline
    exposure: list[float] | None
    observed: list[bool]
    notes: list[str]


@dataclass(frozen=True, eq=False, repr=False)
class Shards:
    """A folder of shards. Only the header is in memory: numbers stay on disk until needed.

    Attributes
    ----------
    path : Path
        The folder.
    bounds : array of int, (n_shards + 1,)
        Shard i has the features bounds[i] to bounds[i + 1].
    nonzeros : array of int, (n_shards,)
        Non-zeros of each shard.
    has_missing : tuple of bool
        Which shards have single missing cells.
    timeline : Timeline
        The steps; its rows are the steps that are not absent.
    exposure : array, (n_times,)
        Size behind each step, 1 if none was given.
    observed : array of bool, (n_times,)
        Steps that are not missing as a whole.
    notes : tuple of str
        How the original table was read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from temporalnmf.shards import write_shards
    >>> from temporalnmf.timeline import timeline_of
    >>> X, line = np.array([[3.0, 0.0], [4.0, np.nan], [0.0, 2.0]]), timeline_of([1999, 2000, 2001])
    >>> with TemporaryDirectory() as folder:
    ...     shards = write_shards(Path(folder, "words"), X, names=["war", "peace"], timeline=line)
    ...     print(shards, shards.names(1), shards.by_feature(1)[2], shards.missing(1)[1])
    Shards: 3 steps × 2 features, 3 non-zeros in 2 shards ['peace'] [2.] [1]
    """

    path: Path
    bounds: Array
    nonzeros: Array
    has_missing: tuple[bool, ...]
    timeline: Timeline
    exposure: Array
    observed: Array
    notes: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Shards:
        """Read the header of a folder, and check that its files exist and have the right size."""
        path = Path(path).resolve()
        shards = shards_of(path, _header_of(path))
        for i in range(shards.n_shards):
            for part in shards._parts(i):
                shards._declared(i, part)
            if not (names := shards._file(i, "names.txt")).is_file():
                raise _damaged(names, "it is not there")
        return shards

    @property
    def n_times(self) -> int:
        return len(self.timeline.labels)

    @property
    def n_features(self) -> int:
        return int(self.bounds[-1])

    @property
    def n_shards(self) -> int:
        return len(self.nonzeros)

    def nbytes(self, i: int) -> int:
        """Bytes of the arrays of a shard."""
        return sum(self._file(i, f"{part}.npy").stat().st_size for part in self._parts(i))

    def by_feature(self, i: int) -> tuple[Array, Array, Array]:
        """Row starts, steps and values of a shard, a row per feature, memory-mapped."""
        return self._compressed(i, "features")

    def by_step(self, i: int) -> tuple[Array, Array, Array]:
        """Row starts, features (from 0 within the shard) and values, a row per step."""
        return self._compressed(i, "steps")

    def missing(self, i: int) -> tuple[Array, Array] | None:
        """Row starts and steps of missing cells, a row per feature."""
        if not self.has_missing[i]:
            return None
        indptr = self._mapped(i, "missing.indptr")
        return indptr, self._mapped(i, "missing.indices", int(indptr[-1]))

    def names(self, i: int) -> list[str]:
        """Names of the features of a shard."""
        path = self._file(i, "names.txt")
        try:
            found = path.read_bytes().decode().split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise _damaged(path, str(error)) from error
        if found.pop() or len(found) != self._width(i):
            raise _damaged(path, f"it has {len(found)} names instead of {self._width(i)}")
        return [unescaped(name) for name in found]

    def matrix(self) -> sparse.csr_array:
        """All cells (n_times, n_features) in memory. Missing ones are zero."""
        parts = []
        for i in range(self.n_shards):
            indptr, indices, values = self.by_step(i)
            shape = (self.n_times, self._width(i))
            parts.append(sparse.csr_array((values, indices, indptr), shape=shape))
        return sparse.csr_array(sparse.hstack(parts, format="csr"))

    def check(self, i: int) -> None:
        """Read a shard, and refuse damaged numbers, which compiled code would trust."""
        for order, columns in (("features", self.n_times), ("steps", self._width(i))):
            indptr, indices, values = self._compressed(i, order)
            _check_rows(self._file(i, f"{order}.indices.npy"), indptr, indices, columns)
            if not (np.isfinite(values).all() and (values > 0.0).all()):
                path = self._file(i, f"{order}.values.npy")
                raise _damaged(path, "it has values that are not positive")
        if (missing := self.missing(i)) is not None:
            _check_rows(self._file(i, "missing.indices.npy"), *missing, self.n_times)

    def __repr__(self) -> str:
        return (
            f"Shards: {self.n_times:,} steps × {self.n_features:,} features, "
            f"{self.nonzeros.sum():,} non-zeros in {self.n_shards:,} shards"
        )

    def _width(self, i: int) -> int:
        return int(self.bounds[i + 1] - self.bounds[i])

    def _file(self, i: int, part: str) -> Path:
        return path_inside(self.path, file_of(self.path, range(self.n_shards)[i], part).name)

    def _parts(self, i: int) -> dict[str, tuple[int | None, list[np.dtype[np.generic]]]]:
        """The lengths of the arrays of a shard, None if not known, and the types they may have."""
        nonzeros, width = int(self.nonzeros[i]), self._width(i)
        index, number, starts = np.dtype("<i4"), np.dtype("<f8"), starts_kind(nonzeros)
        parts: dict[str, tuple[int | None, list[np.dtype[np.generic]]]] = {}
        for order, rows in (("features", width), ("steps", self.n_times)):
            parts[f"{order}.indptr"] = rows + 1, [starts]
            parts[f"{order}.indices"] = nonzeros, [index]
            parts[f"{order}.values"] = nonzeros, [number]
        if self.has_missing[i]:
            parts["missing.indptr"] = width + 1, [index, np.dtype("<i8")]
            parts["missing.indices"] = None, [index]
        return parts

    def _compressed(self, i: int, order: str) -> tuple[Array, Array, Array]:
        names = (f"{order}.{part}" for part in ("indptr", "indices", "values"))
        indptr, indices, values = (self._mapped(i, name) for name in names)
        if indptr[0] != 0 or indptr[-1] != len(indices):
            raise _damaged(self._file(i, f"{order}.indptr.npy"), "its rows do not fit its numbers")
        return indptr, indices, values

    def _mapped(self, i: int, part: str, size: int | None = None) -> Array:
        path, kind, offset, length = self._declared(i, part, size)
        # Copy on write, since numba compiles separately for read-only arrays; and a plain array of
        # the same memory, since numba takes longer to recognize the type of a memmap.
        return np.asarray(np.memmap(path, dtype=kind, mode="c", offset=offset, shape=(length,)))

    def _declared(
        self, i: int, part: str, size: int | None = None
    ) -> tuple[Path, np.dtype[np.generic], int, int]:
        """The file of an array, its type, offset and length, which have to agree."""
        path = self._file(i, f"{part}.npy")
        try:
            with path.open("rb") as file:
                shape, _, kind = npy_header(file)
                offset, whole = file.tell(), path.stat().st_size
        except FileNotFoundError as error:
            raise _damaged(path, "it is not there") from error
        except ValueError as error:
            raise _damaged(path, str(error)) from error
        known, kinds = self._parts(i)[part]
        size = known if size is None else size
        if kind not in kinds:
            raise _damaged(path, f"it holds {kind}")
        if len(shape) != 1 or size not in (None, shape[0]) or offset % kind.itemsize:
            raise _damaged(path, f"its shape is {shape} instead of ({size},)")
        if whole != offset + shape[0] * kind.itemsize:
            raise _damaged(path, f"it has {whole:,} bytes, which does not fit {shape[0]:,} numbers")
        return path, kind, offset, shape[0]


def is_shards(path: str | PathLike[str]) -> bool:
    """Whether a path is a folder of shards, finished or not. `Shards.open` checks it."""
    names = HEADER, "00000.features.indptr.npy"
    return any(Path(path, name).is_file() for name in names)


def file_of(folder: Path, i: int, part: str) -> Path:
    return folder / f"{i:05d}.{part}"


def starts_kind(nonzeros: int) -> np.dtype[np.generic]:
    """The type of row starts."""
    return np.dtype("<i4" if nonzeros < 1 << 31 else "<i8")


def _damaged(path: Path, reason: str) -> ValueError:
    remedy = "The folder of shards is damaged or foreign: write it again."
    return ValueError(f"{path.parent.name}/{path.name}: {reason}. {remedy}")


def _check_rows(path: Path, indptr: Array, indices: Array, columns: int) -> None:
    starts = indptr[1:-1]
    if indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise _damaged(path, "its rows are not in order")
    if len(indices) and not (indices.min() >= 0 and indices.max() < columns):
        raise _damaged(path, f"it points outside of {columns:,} columns")
    rising = np.diff(indices) > 0
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # from one row to the next
    if not rising.all():
        raise _damaged(path, "its columns are not in order")


def _header_of(path: Path) -> Header:
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: there is no such folder. Check the path.")
    try:
        header: Header = json_of(path_inside(path, HEADER).read_bytes())
    except FileNotFoundError as error:
        problem = f"is not a folder of shards: it has no {HEADER}. Write one first."
        if is_shards(path):
            problem = f"is not finished: it has no {HEADER}. Write it again, with {{overwrite}}."
        text = Text(f"{{path}} {problem}", path=path, overwrite=Arg("overwrite", "True"))
        raise ValueError(text) from error
    except ValueError as error:
        if (path / HEADER).is_symlink():
            raise
        raise _damaged(path / HEADER, f"it is not JSON ({error})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _damaged(path / HEADER, "it is not the header of shards")
    if header.get("schema") != SCHEMA:
        found = f"{path.name}/{HEADER} has the schema {header.get('schema')!r}"
        readable = f"temporalnmf {__version__} reads schema {SCHEMA}"
        raise ValueError(f"{found}; {readable}. Update temporalnmf.")
    return header


def shards_of(path: Path, header: Header) -> Shards:
    """The shards of a header, whose numbers are checked, since compiled code trusts them."""
    try:
        timeline = Timeline.from_dict(header["timeline"])
        N, given = len(timeline.labels), header["exposure"]
        shards = Shards(
            path,
            np.array(header["bounds"], dtype=np.int64),
            np.array(header["nonzeros"], dtype=np.int64),
            tuple(map(bool, header["has_missing"])),
            timeline,
            np.ones(N) if given is None else np.array(given, dtype=np.float64),
            np.array(header["observed"], dtype=np.bool_),
            tuple(map(str, header["notes"])),
        )
        n = len(header["nonzeros"])
        widths = np.diff(shards.bounds)
        wrong = {
            "n_times": header["n_times"] != N or timeline.labels.ndim != 1,
            "n_features": header["n_features"] != int(shards.bounds[-1]),
            "bounds": len(shards.bounds) != n + 1 or shards.bounds[0] != 0 or (widths < 1).any(),
            "nonzeros": n < 1 or (shards.nonzeros < 0).any()
            or (shards.nonzeros > widths.astype(object) * N).any(),
            "has_missing": len(shards.has_missing) != n,
            "exposure": shards.exposure.shape != (N,)
            or not (np.isfinite(shards.exposure) & (shards.exposure > 0)).all(),
            "observed": shards.observed.shape != (N,),
            "timeline": ((timeline.rows < 0) | (timeline.rows >= N)).any(),
        }  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise _damaged(path / HEADER, f"it cannot be understood ({error})") from error
    if names := [name for name, found in wrong.items() if found]:
        raise _damaged(path / HEADER, f"{names[0]} cannot be right")
    return shards


def check_folder(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that may not be replaced by shards, such as one with other files."""
    refuse_replacing(folder, overwrite, _OURS, "shards")


_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
_ESCAPED = str.maketrans(_ESCAPES)
_UNESCAPES = {escape: sign for sign, escape in _ESCAPES.items()}


def escaped(name: str) -> str:
    """A name without line breaks."""
    return name.translate(_ESCAPED)


def unescaped(name: str) -> str:
    if "\\" not in name:
        return name
    return re.sub(r"\\.", lambda found: _UNESCAPES.get(found[0], found[0]), name)
