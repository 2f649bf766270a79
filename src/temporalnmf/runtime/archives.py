"""Untrusted NumPy and JSON files: sizes are checked before memory is allocated.

Nothing in them is ever run: arrays of Python objects, which NumPy would unpickle, are refused.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from .files import written_whole

if TYPE_CHECKING:
    from scipy import sparse

    from .._typing import Array  # not at run time: it loads the compiler

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]
# Largest compression ratio of zip and gzip. Other methods have no limit, and Python decompresses
# them completely whatever size a file declares.
MOST_PACKED = 1032
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CHUNK = 1 << 24
_Header = tuple[tuple[int, ...], bool, np.dtype[Any]]  # shape, Fortran order, type
# By version of an NPY file: bytes of the length of its header, and the parser of the header.
_HEADERS: dict[tuple[int, int], tuple[int, Callable[[IO[bytes]], _Header]]] = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}
_LONGEST_HEADER = 10_000  # bytes, as in NumPy
# Largest number of a fit, and the inverse of the smallest: computations with others may overflow.
LARGEST = np.float64(1e300)


def memory_left() -> int:
    """Bytes of free memory; all memory of the machine if it is not known."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = dict(line.split(":") for line in file)
        return int(found["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return memory_of_machine()


def memory_of_machine() -> int:
    """Bytes of memory; `sys.maxsize` if it is not known, as on Windows."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return sys.maxsize


def refuse_larger(size: int, what: str) -> None:
    """Refuse data that do not fit into memory, before allocating any."""
    left = memory_left()
    if size > left:
        raise ValueError(
            f"{what} would take {size:,} bytes of memory, and {left:,} are left: it is damaged or "
            f"too large for this machine"
        )


def json_of(data: bytes, *, nan: bool = False) -> Any:
    """The value of a JSON text. Too deep nesting is refused, and NaN unless `nan` is true."""
    try:
        return json.loads(data, parse_constant=float if nan else _no_number)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def _no_number(word: str) -> float:
    raise ValueError(f"its JSON has {word}, which is not a number")


class ObjectsError(ValueError):
    """An array of Python objects, which could run code."""


_NO_NUMBERS = "it is not an NPY file of numbers: it is damaged or holds Python objects"


def npy_header(file: IO[bytes]) -> _Header:
    """Shape, Fortran order and type of an NPY file, which is left at its first number."""
    try:
        version = np.lib.format.read_magic(file)
    except ValueError as error:
        raise ValueError(_NO_NUMBERS) from error
    try:
        shape, fortran, kind = _parsed_header(file, version)
    except Exception as error:  # any error of Python's parser for a damaged header
        # A MemoryError comes from nested brackets, not from a lack of memory.
        cause = None if isinstance(error, MemoryError) else error
        raise ValueError(f"it is not an NPY file of numbers ({_in_a_line(error)})") from cause
    if kind.hasobject:
        raise ObjectsError(_NO_NUMBERS)
    if kind.kind not in "biufcUSMm" or not kind.itemsize:
        raise ValueError(f"it holds {kind}, which is not a number")
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    return shape, fortran, kind


def _parsed_header(file: IO[bytes], version: tuple[int, int]) -> _Header:
    n_bytes, parse = _HEADERS[version]
    prefix = file.read(n_bytes)
    length = int.from_bytes(prefix, "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header has {length:,} bytes")
    text = file.read(length)
    if b"\\" in text:  # Python's parser would warn
        raise ValueError("its header has a backslash")
    return parse(io.BytesIO(prefix + text))


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def read_npy(file: IO[bytes], size: int) -> Array:
    """The array of an NPY file of exactly `size` bytes."""
    shape, fortran, kind = npy_header(file)
    wanted = math.prod(shape) * kind.itemsize
    if wanted != size - file.tell():
        raise ValueError(
            f"its shape {shape} of {kind} does not fit its {size - file.tell():,} bytes"
        )
    refuse_larger(wanted, "its array")
    flat = np.empty(math.prod(shape), kind)
    left = flat.view(np.uint8).data
    while len(left):
        chunk = file.read(min(len(left), _CHUNK))
        if not chunk:
            raise ValueError("it ends before its last number")
        left[: len(chunk)] = chunk
        left = left[len(chunk) :]
    if file.read(1):  # the last read of a zip file compares checksums
        raise ValueError("it continues after its last number")
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


class Archive:
    """An open .npz file. The sizes that it declares are checked before decompression."""

    def __init__(self, file: str | PathLike[str] | IO[bytes]) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except OSError:
            raise
        except Exception as error:  # any error of zipfile for a damaged file
            raise ValueError(f"it is not an archive ({_in_a_line(error)})") from error
        self.members: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            if info.filename in self.members:
                raise ValueError(f"it has the member {info.filename!r} twice")
            if info.compress_type not in PACKED:
                raise ValueError(
                    f"its member {info.filename!r} is compressed in a way that NumPy does not use"
                )
            if info.file_size > MOST_PACKED * (info.compress_size + 1):
                raise ValueError(
                    f"its member {info.filename!r} declares {info.file_size:,} bytes, which cannot "
                    f"be compressed to {info.compress_size:,}"
                )
            self.members[info.filename] = info
        refuse_larger(sum(info.file_size for info in self.members.values()), "its content")

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @property
    def arrays(self) -> list[str]:
        """Names of the arrays."""
        return [name.removesuffix(".npy") for name in self.members if name.endswith(".npy")]

    def array(self, name: str) -> Array:
        return self._member(f"{name}.npy", read_npy)

    def json(self, name: str) -> Any:
        return self._member(name, _read_json)

    def _member(self, name: str, read: Callable[[IO[bytes], int], T]) -> T:
        if name not in self.members:
            raise ValueError(f"it has no {name}")
        info = self.members[name]
        try:
            with self._zip.open(info) as file:
                return read(file, info.file_size)
        except (PermissionError, MemoryError, ObjectsError):
            raise
        except Exception as error:  # of zipfile, zlib or lzma too
            raise ValueError(f"its member {name!r} is damaged: {_in_a_line(error)}") from error


def _read_json(file: IO[bytes], size: int) -> Any:
    data = file.read(size)
    if len(data) < size or file.read(1):
        raise ValueError("it does not have the length that it declares")
    return json_of(data)


def read_npz(file: str | PathLike[str] | IO[bytes]) -> dict[str, Array]:
    """All arrays of an .npz file.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> np.savez(file, a=np.arange(3))
    >>> read_npz(file)
    {'a': array([0, 1, 2])}
    """
    with Archive(file) as archive:
        return {name: archive.array(name) for name in archive.arrays}


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file, whole or not at all."""
    save: Callable[..., None] = np.savez
    with written_whole(path) as partial, partial.open("wb") as file:
        save(file, **arrays)


def sealed(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays with a checksum of all of them, for files that compiled code resumes from."""
    return {**arrays, "seal": np.array(_seal(arrays))}


def unsealed(found: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays that were `sealed`; refused if any of them was changed.

    Examples
    --------
    >>> sorted(unsealed(sealed({"H": np.ones(3)})))
    ['H']
    """
    arrays = {name: array for name, array in found.items() if name != "seal"}
    if "seal" not in found or str(found["seal"]) != _seal(arrays):
        raise ValueError("its arrays are not as they were written")
    return arrays


def _seal(arrays: Mapping[str, Array]) -> str:
    found = blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        found.update(repr((name, array.dtype.str, array.shape)).encode())
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def refuse_wild_indices(matrix: sparse.csr_array) -> None:
    """Refuse a sparse matrix in compressed form whose indices point outside of its memory.

    SciPy trusts them, and its own check skips them if the last row pointer is 0.

    Examples
    --------
    >>> from scipy import sparse
    >>> refuse_wild_indices(sparse.csr_array(np.eye(3)))
    """
    matrix.check_format(full_check=True)
    starts = matrix.indptr.astype(np.int64)
    if starts[0] != 0 or np.any(np.diff(starts) < 0):
        raise ValueError("its rows do not end where the next ones begin")


def path_inside(folder: Path, name: str) -> Path:
    """A file in a folder; refused if it is a link to a path outside."""
    path = folder / name
    if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(
            f"{folder.name}/{name} is a link to a place outside of the folder, which is not "
            f"followed. Copy the file itself into the folder."
        )
    return path


def refuse_links_out(folder: Path) -> None:
    """Refuse a folder to write to that contains a link to a path outside of it."""
    if not folder.is_dir():
        return
    whole = Path(os.path.realpath(folder))
    for entry in sorted(folder.iterdir()):
        # Circular links resolve to a path in the folder, and raise an error later.
        if entry.is_symlink() and not Path(os.path.realpath(entry)).is_relative_to(whole):
            raise ValueError(
                f"{entry} is a link to a place outside of the folder, which would be written to. "
                f"Put the file itself there, or name another folder."
            )
