"""Components larger than memory: a folder with one file per block of features.

    components.json   format, schema, n_components and bounds; written last
    00000.npy         features bounds[0] to bounds[1], one per row: little-endian float64, C order,
                      (features of the block, n_components)

File names follow from the number of a block, never from the content of a file, and nothing in a
folder is ever executed.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from numbers import Integral
from operator import index
from os import PathLike
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import __version__
from ._typing import Array
from .messages.errors import ArgumentError
from .runtime.archives import LARGEST, json_of, npy_header, path_inside
from .runtime.files import refuse_replacing, written_whole

Index = slice | ArrayLike
Largest = tuple[Array, Array]  # indices and scores
NOTHING: Largest = np.empty(0, dtype=np.intp), np.empty(0)

FORMAT = "temporalnmf components"
SCHEMA = 1  # increased when older programs can no longer read the folder
HEADER = "components.json"
_FILE = r"(components\.json|\d{5,}\.npy)"
OURS = re.compile(rf"{_FILE}|\.{_FILE}\.partial\.(json|npy)")  # or left by a killed process


@dataclass(frozen=True, eq=False, repr=False)
class ShardedComponents:
    """Components (n_components, n_features) in a folder; their numbers stay on disk.

    Used like an array: `components[:, [3, 5]]`, `activations @ components`. Only the blocks that
    are needed are read. A row spans all blocks: iterate over `blocks` rather than rows. The folder
    must stay in place.

    Attributes
    ----------
    folder : Path
    n_components : int
        Number of rows.
    bounds : tuple of int, (n_blocks + 1,)
        Block i has the features bounds[i] to bounds[i + 1].

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> W = np.array([[0.5, 0.1], [0.3, 0.0], [0.2, 0.9]])  # a row per feature
    >>> with TemporaryDirectory() as folder:
    ...     for i, block in enumerate((W[:2], W[2:])):  # each may be written by another machine
    ...         with written_whole(block_file(folder, i)) as partial:
    ...             np.save(partial, block)
    ...     write_header(folder, n_components=2, bounds=[0, 2, 3])
    ...     components = ShardedComponents.open(folder)
    ...     print(components.shape, components[:, 2], np.array([10.0, 0.0]) @ components)
    ...     print(*components.top(1))
    (2, 3) [0.2 0.9] [5. 3. 2.]
    [[0]
     [2]] [[0.5]
     [0.9]]
    """

    folder: Path
    n_components: int
    bounds: tuple[int, ...]
    # Sums of the blocks that were checked.
    _read: dict[int, Array] = field(default_factory=dict)

    ndim: ClassVar[int] = 2
    dtype: ClassVar[np.dtype[np.float64]] = np.dtype("<f8")
    __array_ufunc__ = None  # so that `array @ components` calls __rmatmul__

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> ShardedComponents:
        """Open a folder: read its header, check that its files exist and have the right size."""
        folder = Path(folder).resolve()
        components = cls(folder, *_header_of(folder))
        for i in range(components.n_blocks):
            components._mapped(i)
        return components

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_components, self.bounds[-1]

    @property
    def size(self) -> int:
        return self.n_components * self.bounds[-1]

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def n_blocks(self) -> int:
        return len(self.bounds) - 1

    @property
    def T(self) -> Array:
        """All numbers, (n_features, n_components), loaded into memory."""
        return np.asarray(self).T

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Features of each block and its numbers (n_components, …), mapped into memory."""
        for i, (first, last) in enumerate(pairwise(self.bounds)):
            yield slice(first, last), self._block(i).T

    def top(self, n: int) -> tuple[Array, Array]:
        """Indices and weights of the n largest features of each component, (n_components, n).

        Largest first, ties by index. All features, if there are fewer than n.
        """
        if not isinstance(n, Integral) or n < 1:
            raise ArgumentError("n", n, ": expected a whole number of at least 1.")
        found = [NOTHING] * self.n_components
        for columns, block in self.blocks():
            for k, weights in enumerate(np.ascontiguousarray(block)):
                found[k] = largest(found[k], columns.start, weights, int(n))
        indices, weights = zip(*found, strict=True)
        return np.array(indices), np.array(weights)

    def copy_to(self, folder: str | PathLike[str], *, overwrite: bool = False) -> ShardedComponents:
        """Copy the folder, completely or not at all, and open the copy."""
        folder = Path(folder).resolve()
        if folder == self.folder:
            return self
        refuse_replacing(folder, overwrite, OURS, "components")
        with staged_copy(self, folder) as put:
            put()
        return ShardedComponents.open(folder)

    def fingerprint(self) -> str:
        """Hash of the shape and a few numbers of each block, to tell models apart."""
        found = blake2b(repr((self.shape, self.bounds)).encode(), digest_size=16)
        for i in range(self.n_blocks):
            found.update(self._mapped(i)[[0, -1]].tobytes())
        return found.hexdigest()

    def __len__(self) -> int:
        return self.n_components

    def __iter__(self) -> Iterator[Array]:
        return (self[k] for k in range(len(self)))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """All numbers, loaded into memory, for `numpy.asarray(components)`."""
        if copy is False:
            raise ArgumentError("copy", copy, ": components on disk have to be copied.")
        out = np.empty(self.shape, dtype or self.dtype)
        for columns, block in self.blocks():
            out[:, columns] = block
        return out

    def __getitem__(self, key: Index | tuple[Index, ...]) -> Array:
        """Rows and columns by number, slice, or list of numbers or bools; in memory."""
        given = key if isinstance(key, tuple) else (key,)
        if len(given) not in (1, 2):
            raise IndexError(f"components[{key!r}]: expected components[rows, columns].")
        K, F = self.shape
        rows = _chosen(given[0], K, "rows")
        columns = _chosen(given[1] if len(given) == 2 else slice(None), F, "columns")
        if all(not isinstance(one, slice) and one.ndim for one in (rows, columns)):
            problem = "components[rows, columns] with a list of each would be read as pairs."
            raise IndexError(f"{problem} Use components[:, columns][rows].")
        wanted = range(F)[columns] if isinstance(columns, slice) else columns
        out = np.empty((np.size(wanted), *np.arange(K)[rows].shape))
        for i, place, local in self._parts(wanted):
            out[place] = self._block(i)[local][:, rows]
        return out[0] if np.ndim(wanted) == 0 else np.moveaxis(out, 0, -1)

    def __rmatmul__(self, left: ArrayLike) -> Array:
        left = np.asarray(left)
        if left.ndim == 0 or left.shape[-1] != self.n_components:
            raise _unfit(left.shape, self.shape)
        out = np.empty((*left.shape[:-1], self.shape[1]), np.result_type(left, self.dtype))
        for columns, block in self.blocks():
            out[..., columns] = left @ block
        return out

    def __matmul__(self, right: ArrayLike) -> Array:
        right = np.asarray(right)
        if right.ndim not in (1, 2) or right.shape[0] != self.shape[1]:
            raise _unfit(self.shape, right.shape)
        out = np.zeros((len(self), *right.shape[1:]), np.result_type(right, self.dtype))
        for columns, block in self.blocks():
            out += block @ right[columns]
        return out

    def __repr__(self) -> str:
        size = f"{self.n_components:,} components × {self.bounds[-1]:,} features"
        parts = f"{self.nbytes:,} bytes in {self.n_blocks:,} blocks in {self.folder}"
        return f"ShardedComponents: {size}, {parts}"

    def _parts(self, columns: range | Array) -> Iterator[tuple[int, slice | Array, slice | Array]]:
        """Blocks with any of the columns, and their indices in the result and in the block."""
        if isinstance(columns, range) and columns.step == 1:
            for i, (first, last) in enumerate(pairwise(self.bounds)):
                start, stop = max(first, columns.start), min(last, columns.stop)
                if start < stop:
                    shift = columns.start
                    yield i, slice(start - shift, stop - shift), slice(start - first, stop - first)
            return
        wanted = np.atleast_1d(np.asarray(columns, dtype=np.intp))
        order = np.argsort(wanted, kind="stable")
        cuts = np.searchsorted(wanted[order], self.bounds)
        for i in np.flatnonzero(np.diff(cuts)).tolist():
            places = order[cuts[i] : cuts[i + 1]]
            yield i, places, wanted[places] - self.bounds[i]

    def _block(self, i: int) -> Array:
        """A block; its numbers are checked on first use."""
        block = self._mapped(i)
        if i not in self._read:
            if not (block.min() >= 0.0 and block.max() <= LARGEST):  # false for NaN, too
                problem = "it has numbers that are negative or not finite"
                raise _damaged(block_file(self.folder, i), problem)
            self._read[i] = block.sum(axis=0, dtype=float)
            if len(self._read) == len(self.bounds) - 1:
                sums = np.sum([self._read[j] for j in sorted(self._read)], axis=0)
                if not np.all(np.abs(sums - 1.0) <= 1e-6):
                    raise _damaged(Path(self.folder) / HEADER, "components do not sum to one")
        return block

    def _mapped(self, i: int) -> Array:
        """A block as in its file, one row per feature; checked against header and file size."""
        shape = self.bounds[i + 1] - self.bounds[i], self.n_components
        path = path_inside(self.folder, block_file(self.folder, i).name)
        try:
            with path.open("rb") as file:
                found, fortran, kind = npy_header(file)
                start, whole = file.tell(), path.stat().st_size
        except FileNotFoundError as error:
            raise _damaged(path, "it does not exist") from error
        except ValueError as error:
            raise _damaged(path, str(error)) from error
        if kind != self.dtype or found != shape or fortran:
            held = f"{kind.str} of shape {found} in {'Fortran' if fortran else 'C'} order"
            wanted = f"{self.dtype.str} of shape {shape} in C order"
            raise _damaged(path, f"it holds {held}, and not {wanted}")
        size = start + shape[0] * shape[1] * kind.itemsize
        if whole != size:
            compared = "fewer" if whole < size else "more"
            raise _damaged(path, f"it has {whole:,} bytes, {compared} than {size:,}")
        return np.asarray(np.memmap(path, dtype=kind, mode="r", offset=start, shape=shape))


def block_file(folder: str | PathLike[str], i: int) -> Path:
    """The file of block i. Write it with `numpy.save`, through `written_whole`."""
    return Path(folder) / f"{i:05d}.npy"


def write_header(folder: str | PathLike[str], n_components: int, bounds: Iterable[int]) -> None:
    """Finish a folder whose blocks are written; see `ShardedComponents`."""
    K, bounds = _checked(index(n_components), list(map(index, bounds)))
    header = {"format": FORMAT, "schema": SCHEMA, "n_components": K, "bounds": bounds}
    with written_whole(Path(folder) / HEADER) as partial:
        partial.write_text(json.dumps(header), encoding="utf-8")


def blocks_of(components: Array | ShardedComponents) -> Iterable[tuple[slice, Array]]:
    """Features and numbers of each block; an array is one block."""
    if isinstance(components, ShardedComponents):
        return components.blocks()
    return [(slice(0, components.shape[1]), components)]


def largest(found: Largest, start: int, scores: Array, n: int) -> Largest:
    """The n largest of those found before and of `scores`, whose indices begin at `start`.

    Largest first, ties by index.
    """
    first = np.argsort(-scores, kind="stable")[:n]
    places = np.concatenate([found[0], start + first])
    values = np.concatenate([found[1], scores[first]])
    order = np.argsort(-values, kind="stable")[:n]
    return places[order], values[order]


def set_aside(folder: Path) -> Path:
    """Where a folder is kept while another replaces it, or if that was interrupted."""
    return folder.with_name(f".{folder.name}.old")


@contextmanager
def staged_copy(components: ShardedComponents, folder: Path) -> Iterator[Callable[[], None]]:
    """Make a copy beside `folder`; the function it yields puts the copy in place.

    An existing folder is set aside then. It is restored if the `with` block fails, else removed.
    """
    partial, aside = folder.with_name(f".{folder.name}.partial"), set_aside(folder)
    gone = folder.with_name(f".{folder.name}.gone")
    placed = False

    def put() -> None:
        nonlocal placed
        if aside.exists():  # an earlier process was killed: this is the valid folder
            _drop(folder)
        elif folder.exists():
            folder.rename(aside)
        partial.rename(folder)
        placed = True

    _drop(partial)
    try:
        partial.mkdir(parents=True)
        for i in range(components.n_blocks):
            shutil.copyfile(block_file(components.folder, i), block_file(partial, i))
        write_header(partial, components.n_components, components.bounds)
        ShardedComponents.open(partial)
        yield put
    except BaseException:
        if placed:
            _drop(folder)
        if aside.exists() and not folder.exists():
            aside.rename(folder)
        raise
    finally:
        _drop(partial)
    if aside.exists():
        _drop(gone)
        aside.rename(gone)  # atomic: `aside` is never partly deleted
    _drop(gone)


def _drop(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def _chosen(key: Index, size: int, what: str) -> slice | Array:
    """A slice unchanged; a number or a list of numbers as non-negative indices."""
    if isinstance(key, slice):
        return key
    found = np.asarray(key)
    if found.dtype == np.bool_ and found.shape == (size,):
        return np.flatnonzero(found)
    if found.shape != (0,) and (found.dtype.kind not in "iu" or found.ndim > 1):
        expected = f"a number, a slice, a list of numbers or {size:,} bools"
        remedy = "Otherwise use numpy.asarray(components), if it fits into memory."
        raise IndexError(f"{what}={key!r} of {size:,} {what}: expected {expected}. {remedy}")
    found = found.astype(np.intp)
    outside = found[(found < -size) | (found >= size)]
    if outside.size:
        raise IndexError(f"{what} has {outside[0]}: expected {-size} to {size - 1}.")
    return found % size


def _unfit(left: tuple[int, ...], right: tuple[int, ...]) -> ValueError:
    rule = "the last number of the first must equal the first of the second"
    return ValueError(f"Shapes {left} @ {right} do not fit: {rule}. Transpose one.")


def _checked(n_components: object, bounds: object) -> tuple[int, tuple[int, ...]]:
    """The numbers of a header, if they are valid."""
    if type(n_components) is not int or n_components < 1:
        problem = ": expected a whole number of at least 1."
        raise ArgumentError("n_components", n_components, problem)
    found = bounds if isinstance(bounds, list) else []
    whole = len(found) > 1 and all(type(bound) is int for bound in found)
    if not whole or found[0] != 0 or any(a >= b for a, b in pairwise(found)):
        raise ValueError(f"bounds={bounds!r:.60}: expected whole numbers that rise from 0.")
    return n_components, tuple(found)


def _header_of(folder: Path) -> tuple[int, tuple[int, ...]]:
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such folder. Check the path.")
    path = path_inside(folder, HEADER)
    try:
        header = json_of(path.read_bytes())
    except FileNotFoundError as error:
        raise _damaged(path, "it does not exist, and it is written last") from error
    except ValueError as error:
        raise _damaged(path, f"it is not JSON ({error})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _damaged(path, "it is not the header of components")
    if header.get("schema") != SCHEMA:
        known = f"temporalnmf {__version__} reads schema {SCHEMA}. Update temporalnmf."
        found = f"{folder.name}/{HEADER} has the schema {header.get('schema')!r}"
        raise ValueError(f"{found}, and {known}")
    try:
        return _checked(header.get("n_components"), header.get("bounds"))
    except ValueError as error:
        raise _damaged(path, str(error).rstrip(".")) from error


def _damaged(path: Path, reason: str) -> ValueError:
    remedy = "The folder of components is incomplete, damaged or foreign: copy or write it again."
    return ValueError(f"{path.parent.name}/{path.name}: {reason}. {remedy}")
