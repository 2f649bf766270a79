"""Folders of shards: how they are written and read.

    shards.json                 what the folder holds; it is written last
    00000.features.indptr.npy   a row per feature of shard 0, a column per step, as compressed rows,
                  .indices.npy  sorted, without duplicates and zeros
                  .values.npy
    00000.steps.….npy           the same numbers with a row per step
    00000.missing.indptr.npy    a row per feature: steps of which its cell is missing, if any are
                 .indices.npy
    00000.names.txt             names of the features, one a line

Both orders are there because a pass over the data needs both, and sorting anew in every iteration
would take longer than reading. Names of files follow from the number of a shard, never from what a
file says. Nothing in a folder is ever run.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import sparse

from .. import __version__
from ..runtime.archives import ObjectsError, json_of, npy_header, path_inside
from ..runtime.files import refuse_overwriting
from ..timeline.grid import Timeline

if TYPE_CHECKING:
    from .._typing import Array  # not at run time: it loads the compiler

FORMAT = "temporalnmf shards"
SCHEMA = 1  # raised by one whenever an older program could not read the folder
HEADER = "shards.json"
MOST_NONZEROS = 1 << 21  # of a shard, on average
FEWEST_SHARDS = 16  # so that there is work for many cores
_OURS = re.compile(
    r"shards\.json|\d{5,}\.(names\.txt|((features|steps)\.(indptr|indices|values)|"
    r"missing\.(indptr|indices))\.npy)"
)


@dataclass(frozen=True, eq=False, repr=False)
class Shards:
    """A folder of shards. Holds its header only: numbers stay on disk until they are asked for.

    Attributes
    ----------
    path : Path
        The folder.
    bounds : array of int, (n_shards + 1,)
        Shard i has the features bounds[i] to bounds[i + 1].
    nonzeros : array of int, (n_shards,)
        Non-zeros of each shard.
    has_missing : tuple of bool
        Which shards have single cells that are missing.
    timeline : Timeline
        The steps; its rows are the steps that are not absent.
    exposure : array, (n_times,)
        Size behind each step, 1 where none was given.
    observed : array of bool, (n_times,)
        Steps that are not missing as a whole.
    notes : tuple of str
        What was understood of the table the folder was made of.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
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
        """Read the header of a folder, and check that its files are there and of the right size."""
        path = Path(path).resolve()
        shards = _shards_of(path, _header_of(path))
        for i in range(shards.n_shards):
            shards._check_files(i)
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
        """Row starts, steps and values of a shard, a row per feature, mapped into memory."""
        return self._compressed(i, "features", self._width(i))

    def by_step(self, i: int) -> tuple[Array, Array, Array]:
        """Row starts, features (from 0 within the shard) and values, a row per step."""
        return self._compressed(i, "steps", self.n_times)

    def missing(self, i: int) -> tuple[Array, Array] | None:
        """Row starts and steps of the cells that are missing, a row per feature."""
        if not self.has_missing[i]:
            return None
        indptr = self._mapped(i, "missing.indptr", self._width(i) + 1)
        return indptr, self._mapped(i, "missing.indices", int(indptr[-1]))

    def names(self, i: int) -> list[str]:
        """Names of the features of a shard."""
        path = self._file(i, "names.txt")
        try:
            found = path.read_bytes().decode().split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise _damaged(path, str(error)) from error
        if found.pop() or len(found) != self._width(i):
            raise _damaged(path, f"it has {len(found)} names, and not {self._width(i)}")
        return [unescaped(name) for name in found]

    def matrix(self) -> sparse.csr_array:
        """All of it (n_times, n_features) in memory. What is missing is zero."""
        parts = []
        for i in range(self.n_shards):
            indptr, indices, values = self.by_step(i)
            parts.append(
                sparse.csr_array((values, indices, indptr), shape=(self.n_times, self._width(i)))
            )
        return sparse.csr_array(sparse.hstack(parts, format="csr"))

    def check(self, i: int) -> None:
        """Read a shard and refuse it if compiled code could not rely on it.

        Opening a folder reads sizes only; this finds numbers that are damaged.
        """
        for order, rows, columns in (
            ("features", self._width(i), self.n_times),
            ("steps", self.n_times, self._width(i)),
        ):
            indptr, indices, values = self._compressed(i, order, rows)
            _check_rows(self._file(i, f"{order}.indices.npy"), indptr, indices, columns)
            if not (np.isfinite(values).all() and (values > 0.0).all()):
                raise _damaged(
                    self._file(i, f"{order}.values.npy"), "it has values that are not positive"
                )
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

    def _parts(self, i: int) -> dict[str, int | None]:
        """The arrays of a shard and their lengths, None where the array itself tells."""
        nonzeros, width = int(self.nonzeros[i]), self._width(i)
        parts: dict[str, int | None] = {}
        for order, rows in (("features", width), ("steps", self.n_times)):
            parts[f"{order}.indptr"] = rows + 1
            parts |= dict.fromkeys((f"{order}.indices", f"{order}.values"), nonzeros)
        if self.has_missing[i]:
            parts |= {"missing.indptr": width + 1, "missing.indices": None}
        return parts

    def _check_files(self, i: int) -> None:
        for part, size in self._parts(i).items():
            self._declared(i, part, size)
        if not self._file(i, "names.txt").is_file():
            raise _damaged(self._file(i, "names.txt"), "it is not there")

    def _compressed(self, i: int, order: str, rows: int) -> tuple[Array, Array, Array]:
        nonzeros = int(self.nonzeros[i])
        indptr = self._mapped(i, f"{order}.indptr", rows + 1)
        if indptr[0] != 0 or indptr[-1] != nonzeros:
            raise _damaged(self._file(i, f"{order}.indptr.npy"), "its rows do not fit its numbers")
        indices = self._mapped(i, f"{order}.indices", nonzeros)
        return indptr, indices, self._mapped(i, f"{order}.values", nonzeros)

    def _mapped(self, i: int, part: str, size: int) -> Array:
        offset, kind, _ = self._declared(i, part, size)
        # Copy on write: nobody writes, but numba compiles once more for arrays that are read-only.
        # A plain array of the same memory, since numba is slower to tell the type of others.
        path = self._file(i, f"{part}.npy")
        return np.asarray(np.memmap(path, dtype=kind, mode="c", offset=offset, shape=(size,)))

    def _declared(self, i: int, part: str, size: int | None) -> tuple[int, np.dtype[Any], int]:
        """Where the numbers of an array start, their type and how many there are.

        What the array says of itself has to agree with the header, and with the size of its file.
        """
        path = self._file(i, f"{part}.npy")
        try:
            with path.open("rb") as file:
                shape, _, kind = npy_header(file)
                offset, whole = file.tell(), path.stat().st_size
        except FileNotFoundError as error:
            raise _damaged(path, "it is not there") from error
        except ObjectsError as error:
            raise _damaged(path, "it holds objects") from error
        except ValueError as error:
            raise _damaged(path, str(error)) from error
        if kind not in _kinds(part, int(self.nonzeros[i])):
            raise _damaged(path, f"it holds {kind}")
        if len(shape) != 1 or size not in (None, shape[0]) or offset % kind.itemsize:
            raise _damaged(path, f"its shape is {shape}, and not ({size},)")
        if whole != offset + shape[0] * kind.itemsize:
            raise _damaged(path, f"it has {whole:,} bytes, which does not fit {shape[0]:,} numbers")
        return offset, kind, shape[0]


def is_shards(path: str | PathLike[str]) -> bool:
    """Whether a path is a folder of shards, finished or not; whether it is sound, `open` says."""
    folder = Path(path)
    return folder.is_dir() and any(
        (folder / name).is_file() for name in (HEADER, "00000.features.indptr.npy")
    )


def file_of(folder: Path, i: int, part: str) -> Path:
    return folder / f"{i:05d}.{part}"


def _kinds(part: str, nonzeros: int) -> tuple[np.dtype[Any], ...]:
    """The types an array may have."""
    what = part.split(".")[1]
    if what != "indptr":
        return (np.dtype("<f8" if what == "values" else "<i4"),)
    if part.startswith("missing"):  # how many there are is not known yet
        return np.dtype("<i4"), np.dtype("<i8")
    return (_starts_kind(nonzeros),)


def _starts_kind(nonzeros: int) -> np.dtype[Any]:
    return np.dtype("<i4" if nonzeros < 1 << 31 else "<i8")


def _damaged(path: Path, reason: str) -> ValueError:
    return ValueError(
        f"{path.parent.name}/{path.name}: {reason}. The folder of shards is damaged or foreign: "
        f"make it again with write_shards, or with temporalnmf shard."
    )


def _check_rows(path: Path, indptr: Array, indices: Array, columns: int) -> None:
    starts = indptr[1:-1]
    if indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise _damaged(path, "its rows are not in order")
    if len(indices) and not (indices.min() >= 0 and indices.max() < columns):
        raise _damaged(path, f"it points outside of {columns:,} columns")
    rising = np.diff(indices) > 0
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # from a row to the next
    if not rising.all():
        raise _damaged(path, "its columns are not in order")


def _header_of(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: there is no such folder. Check the path.")
    try:
        header = json_of(path_inside(path, HEADER).read_bytes())
    except FileNotFoundError as error:
        if not is_shards(path):
            raise ValueError(
                f"{path} is no folder of shards: it has no {HEADER}. Make one with write_shards, "
                f"or with temporalnmf shard."
            ) from error
        raise ValueError(
            f"{path} is not finished: its last file, {HEADER}, is not there. Whoever wrote or "
            f"copied it was stopped: do it again, with overwrite=True (--force)."
        ) from error
    except ValueError as error:
        if (path / HEADER).is_symlink():
            raise
        raise _damaged(path / HEADER, f"it is no JSON ({error})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _damaged(path / HEADER, "it is not the header of shards")
    if header.get("schema") != SCHEMA:
        raise ValueError(
            f"{path.name}/{HEADER} has the schema {header.get('schema')!r}, and this is "
            f"temporalnmf {__version__}, which reads schema {SCHEMA}. Update temporalnmf."
        )
    return header


def _shards_of(path: Path, header: dict[str, Any]) -> Shards:
    """Refuses what does not fit together: compiled code trusts these numbers."""
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


class ShardWriter:
    """Writes a folder shard by shard, whole or not at all.

    Files go to a hidden folder beside it, which `finish` gives the name of the folder; a former
    one is replaced only then.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from temporalnmf.timeline import timeline_of
    >>> with TemporaryDirectory() as place, ShardWriter(Path(place, "words")) as writer:
    ...     writer.add(["war"], sparse.csr_array([[1.0, 0.0, 2.0]]))
    ...     writer.add(["peace"], sparse.csr_array([[0.0, 3.0, 0.0]]))
    ...     writer.finish(timeline_of([1999, 2000, 2001])).matrix().toarray()
    array([[1., 0.],
           [0., 3.],
           [2., 0.]])
    """

    def __init__(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        self.folder = Path(folder).resolve()
        self.overwrite = overwrite
        self.partial = self.folder.with_name(f".{self.folder.name}.partial")
        self._nonzeros: list[int] = []
        self._bounds = [0]
        self._has_missing: list[bool] = []
        self._steps: int | None = None

    def __enter__(self) -> ShardWriter:
        check_folder(self.folder, self.overwrite)
        if self.partial.exists():  # of a process that was killed
            shutil.rmtree(self.partial)
        self.partial.mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.partial, ignore_errors=True)

    def add(
        self, names: Iterable[str], cells: sparse.csr_array, missing: sparse.csr_array | None = None
    ) -> None:
        """One more shard.

        Parameters
        ----------
        names : iterable of str
            Names of its features, in order.
        cells : csr_array, (features, n_times)
            Positive and finite, in canonical format.
        missing : csr_array, (features, n_times), default=None
            Stores an entry for each cell that is missing.
        """
        width, steps = cells.shape
        if self._steps not in (None, steps) or not width:
            raise ValueError(
                f"cells has the shape {cells.shape}: expected features × {self._steps} steps, and "
                f"at least one feature."
            )
        if not (np.isfinite(cells.data).all() and (cells.data > 0.0).all()):
            raise ValueError("cells has values that are zero, negative or not finite. Remove them.")
        i, self._steps = len(self._nonzeros), steps
        count = 0
        with file_of(self.partial, i, "names.txt").open("wb") as file:
            for name in names:
                count += 1
                file.write(f"{escaped(name)}\n".encode())
        if count != width:
            raise ValueError(f"names has {count:,} names for {width:,} features. Give one each.")
        self._save(i, "features", cells)
        self._save(i, "steps", cells.T.tocsr())
        gaps = missing is not None and missing.nnz > 0
        if gaps:
            self._save(i, "missing", missing, parts=("indptr", "indices"))
        self._nonzeros.append(int(cells.nnz))
        self._bounds.append(self._bounds[-1] + width)
        self._has_missing.append(gaps)

    def _save(
        self, i: int, order: str, rows: Any, parts: Sequence[str] = ("indptr", "indices", "values")
    ) -> None:
        arrays = {
            "indptr": rows.indptr.astype(_starts_kind(rows.nnz), copy=False),
            "indices": rows.indices.astype("<i4", copy=False),
            "values": rows.data,
        }
        for part in parts:
            path = file_of(self.partial, i, f"{order}.{part}.npy")
            np.save(path, arrays[part], allow_pickle=False)

    def finish(
        self,
        timeline: Timeline,
        *,
        exposure: Array | None = None,
        observed: Array | None = None,
        notes: Iterable[str] = (),
    ) -> Shards:
        """Write the header, and put the folder in its place."""
        N = len(timeline.labels)
        if self._steps != N:
            raise ValueError(f"timeline has {N} steps for shards of {self._steps}. Give one each.")
        seen = np.ones(N, dtype=bool) if observed is None else np.asarray(observed)
        # Rows of a table are gone: what is left is which steps had one.
        line = replace(timeline, rows=np.unique(timeline.rows[timeline.rows >= 0]))
        header = {
            "format": FORMAT,
            "schema": SCHEMA,
            "versions": {
                "temporalnmf": __version__,
                "python": platform.python_version(),
                **{name: version(name) for name in ("numpy", "scipy")},
            },
            "n_times": N,
            "n_features": self._bounds[-1],
            "bounds": self._bounds,
            "nonzeros": self._nonzeros,
            "has_missing": self._has_missing,
            "timeline": {**line.to_dict(), "absent": line.absent.tolist()},
            "exposure": None if exposure is None else np.asarray(exposure, dtype=float).tolist(),
            "observed": seen.astype(bool).tolist(),
            "notes": list(notes),
        }
        text = json.dumps(header, indent=1, allow_nan=False)
        _shards_of(self.partial, json.loads(text))  # what it could not read is not written
        (self.partial / HEADER).write_text(text, encoding="utf-8")
        self._put_in_place()
        return Shards.open(self.folder)

    def _put_in_place(self) -> None:
        check_folder(self.folder, self.overwrite)  # it may have come meanwhile
        old = self.folder.with_name(f".{self.folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if not self.folder.exists():
            self.partial.rename(self.folder)
            return
        self.folder.rename(old)
        try:
            self.partial.rename(self.folder)
        except OSError:
            old.rename(self.folder)
            raise
        shutil.rmtree(old, ignore_errors=True)


def check_folder(folder: Path, overwrite: bool) -> None:
    """Refuse a place for shards; what is not ours is not replaced, whatever the user says."""
    refuse_overwriting(folder, overwrite)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, and shards are a folder. Name another.")
    foreign = [path.name for path in folder.iterdir() if not _OURS.fullmatch(path.name)]
    if foreign:
        raise FileExistsError(
            f"{folder} holds {min(foreign)!r}, which is no part of a folder of shards, so it is "
            f"not replaced. Name another folder."
        )


def write_shards(
    folder: str | PathLike[str],
    X: Any,
    *,
    names: Sequence[str] | Array,
    timeline: Timeline,
    exposure: Array | None = None,
    observed: Array | None = None,
    notes: Iterable[str] = (),
    n_shards: int | None = None,
    overwrite: bool = False,
) -> Shards:
    """Write data that are in memory as a folder of shards.

    Parameters
    ----------
    folder : path
        Where to. A folder that is there already is refused without `overwrite`.
    X : array or sparse, (n_times, n_features)
        Finite and not negative. NaN in an array is a missing cell.
    names : sequence of str, (n_features,)
        Names of the features.
    timeline : Timeline
        The steps.
    exposure : array, (n_times,), default=None
        Size behind each step.
    observed : array of bool, (n_times,) or (n_times, n_features), default=None
        What is not missing: as `TimeTable.observed`, or mask= of a fit.
    notes : iterable of str, default=()
        What to keep beside it, for people.
    n_shards : int, default=None
        Else a power of two: as few as have 2²¹ non-zeros on average, but 16 if there are as many
        features.
    overwrite : bool, default=False
        Replace a former folder of shards, once the new one is complete.

    Returns
    -------
    shards : Shards
    """
    check_folder(Path(folder), overwrite)
    cells, hidden, seen = _parts_of(X, observed)
    F = cells.shape[0]
    if len(names) != F:
        raise ValueError(f"names has {len(names):,} names for {F:,} features. Give one each.")
    n_shards = shard_count(cells.nnz, F, n_shards)
    with ShardWriter(folder, overwrite=overwrite) as writer:
        for first, last in pairwise(cut(cells.indptr, n_shards)):
            part = None if hidden is None else hidden[first:last]
            writer.add(map(str, names[first:last]), cells[first:last], part)
        return writer.finish(timeline, exposure=exposure, observed=seen, notes=notes)


def _parts_of(
    X: Any, observed: Array | None
) -> tuple[sparse.csr_array, sparse.csr_array | None, Array]:
    """Numbers and missing cells, a row per feature, and which steps are observed."""
    hidden = None
    if sparse.issparse(X):
        cells = sparse.csr_array(X.T, dtype=np.float64, copy=True)
        cells.sum_duplicates()
    else:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X has the shape {X.shape}: expected times × features.")
        gaps = np.isnan(X)
        hidden = sparse.csr_array(gaps.T) if gaps.any() else None
        cells = sparse.csr_array(np.where(gaps, 0.0, X).T)
    F, N = cells.shape
    if not F or not N:
        raise ValueError(f"X has the shape {(N, F)}: expected at least one step and one feature.")
    seen = np.ones(N, dtype=bool)
    if observed is not None:
        observed = np.asarray(observed)
        if observed.dtype != np.bool_ or observed.shape not in ((N,), (N, F)):
            raise ValueError(
                f"observed holds {observed.dtype} of shape {observed.shape}: expected bool, one "
                f"per step, ({N},), or one per entry, ({N}, {F})."
            )
        if observed.ndim == 1:
            seen = observed
        else:
            more = sparse.csr_array(~observed.T)
            hidden = more if hidden is None else sparse.csr_array(hidden + more)
    if hidden is not None:
        seen = seen & (np.bincount(hidden.indices, minlength=N) < F)
        hidden = _in_steps(hidden, seen)
        cells = sparse.csr_array(cells - cells.multiply(hidden))  # x - x is 0
    cells = _in_steps(cells, seen)
    wrong = ~(np.isfinite(cells.data) & (cells.data > 0.0))
    if wrong.any():
        _refuse_value(cells, int(np.argmax(wrong)))
    return cells, hidden, seen


def _in_steps(rows: sparse.csr_array, seen: Array) -> sparse.csr_array:
    """Entries of steps that are observed, in canonical format."""
    rows.data = np.where(seen[rows.indices], rows.data, 0)
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows


def _refuse_value(cells: sparse.csr_array, k: int) -> NoReturn:
    feature = int(np.searchsorted(cells.indptr, k, side="right")) - 1
    raise ValueError(
        f"X[{cells.indices[k]}, {feature}] is {cells.data[k]:g}. The model is for finite, "
        f"non-negative data: correct it, or mark it as missing with observed=."
    )


def shard_count(nonzeros: int, n_features: int, wanted: int | None = None) -> int:
    """How many shards there are: what is wanted, or what follows from the data alone.

    Examples
    --------
    >>> shard_count(1000, 3), shard_count(1000, 500), shard_count(100_000_000, 500)
    (2, 16, 64)
    """
    if wanted is not None:
        if not 1 <= wanted <= n_features:
            raise ValueError(
                f"n_shards={wanted} (--shards) is out of range: there are {n_features:,} features, "
                f"and each shard has at least one. Take 1 to {n_features:,}."
            )
        return wanted
    fewest = min(FEWEST_SHARDS, n_features).bit_length() - 1
    needed = max(-(-nonzeros // MOST_NONZEROS) - 1, 0).bit_length()
    return 1 << min(max(fewest, needed), n_features.bit_length() - 1)


def cut(indptr: Array, n_shards: int) -> list[int]:
    """Bounds of shards with about equal non-zeros and at least one feature each.

    Examples
    --------
    >>> cut(np.array([0, 8, 9, 10, 11, 12]), 3)
    [0, 1, 2, 5]
    """
    n_features, k = len(indptr) - 1, np.arange(1, n_shards)
    inner = np.searchsorted(indptr, k * (int(indptr[-1]) / n_shards))
    inner = np.maximum.accumulate(np.maximum(inner - k, 0)) + k
    inner = np.minimum(inner, n_features - n_shards + k)
    return [0, *map(int, inner), n_features]


_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
_UNESCAPES = {escape: sign for sign, escape in _ESCAPES.items()}


def escaped(name: str) -> str:
    """A name in one line.

    Examples
    --------
    >>> escaped("new\\nline"), unescaped(escaped("new\\nline"))
    ('new\\\\nline', 'new\\nline')
    """
    for sign, escape in _ESCAPES.items():
        name = name.replace(sign, escape)
    return name


def unescaped(name: str) -> str:
    if "\\" not in name:
        return name
    return re.sub(r"\\.", lambda found: _UNESCAPES.get(found[0], found[0]), name)
