"""Files of NumPy and JSON that may come from anybody: sizes are checked before memory is taken.

Nothing in them is ever run: arrays of Python objects, which NumPy would unpickle, are refused.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .files import written_whole

if TYPE_CHECKING:
    from .._typing import Array  # not at run time: it loads the compiler

# The objects of JSON.
Json: TypeAlias = dict[str, Any]
# Bytes that one packed byte of a zip or gzip file can stand for, at the most. Other ways to pack
# have no such limit, and Python unpacks them whole whatever a file says of its size.
MOST_PACKED = 1032
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CHUNK = 1 << 24
# By version: bytes of a number that tells how long the header of an NPY file is, and its parser.
_HEADERS: dict[Any, Any] = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}
_LONGEST_HEADER = 10_000  # bytes; NumPy takes no longer one


def memory_left() -> int:
    """Bytes of memory that are free; that of the whole machine where nobody tells."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = dict(line.split(":") for line in file)
        return int(found["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return memory_of_machine()


def memory_of_machine() -> int:
    """Bytes of memory; more than there can be where nobody tells, as on Windows."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return sys.maxsize


def refuse_larger(size: int, what: str) -> None:
    """Refuse what does not fit into memory before anything is taken."""
    left = memory_left()
    if size > left:
        raise ValueError(
            f"{what} would take {size:,} bytes of memory, and {left:,} are left: it is damaged or "
            f"too large for this machine"
        )


def json_of(data: bytes, *, nan: bool = False) -> Any:
    """The value of a JSON text. Too deep nesting is refused, and NaN unless it is expected."""
    try:
        return json.loads(data, parse_constant=float if nan else _no_number)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def _no_number(word: str) -> Any:
    raise ValueError(f"its JSON has {word}, which is no number")


class ObjectsError(ValueError):
    """An array of Python objects, which could run code."""


_NO_NUMBERS = "it is no NPY file of numbers: it is damaged or holds Python objects"


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an NPY file, which is then at its first number."""
    try:
        version = np.lib.format.read_magic(file)
    except ValueError as error:
        raise ValueError(_NO_NUMBERS) from error
    try:
        shape, fortran, kind = _parsed_header(file, version)
    except Exception as error:  # whatever a damaged header makes Python's parser say
        # Its MemoryError is about brackets: the text of a header is short.
        cause = None if isinstance(error, MemoryError) else error
        raise ValueError(f"it is no NPY file of numbers ({_in_a_line(error)})") from cause
    if kind.hasobject:
        raise ObjectsError(_NO_NUMBERS)
    if kind.kind not in "biufcUSMm" or not kind.itemsize:
        raise ValueError(f"it holds {kind}, which is no number")
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    return shape, fortran, kind


def _parsed_header(file: IO[bytes], version: tuple[int, int]) -> Any:
    n_bytes, parse = _HEADERS[version]
    told = file.read(n_bytes)
    length = int.from_bytes(told, "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header has {length:,} bytes")
    text = file.read(length)
    if b"\\" in text:  # for Python's parser a reason to warn
        raise ValueError("its header has a backslash")
    return parse(io.BytesIO(told + text))


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def read_npy(file: IO[bytes], size: int) -> Array:
    """The array of an NPY file that has `size` bytes, no more and no less."""
    shape, fortran, kind = npy_header(file)
    wanted = math.prod(shape) * kind.itemsize
    if wanted != size - file.tell():
        raise ValueError(
            f"its shape {shape} of {kind} does not fit its {size - file.tell():,} bytes"
        )
    refuse_larger(wanted, "its array")
    flat = np.empty(math.prod(shape), kind)
    left: Any = flat.view(np.uint8).data
    while len(left):
        chunk = file.read(min(len(left), _CHUNK))
        if not chunk:
            raise ValueError("it ends before its last number")
        left[: len(chunk)] = chunk
        left = left[len(chunk) :]
    if file.read(1):  # the last read of a zip file is the one that compares checksums
        raise ValueError("it goes on after its last number")
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


class Archive:
    """An open .npz file. What it says of its sizes is checked before anything is unpacked.

    Parameters
    ----------
    file : path or file
    """

    def __init__(self, file: str | PathLike[str] | IO[bytes]) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except OSError:
            raise
        except Exception as error:  # whatever a damaged file makes zipfile say
            raise ValueError(f"it is no archive ({_in_a_line(error)})") from error
        self.members: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            if info.filename in self.members:
                raise ValueError(f"it has the member {info.filename!r} twice")
            if info.compress_type not in PACKED:
                raise ValueError(
                    f"its member {info.filename!r} is packed in a way that NumPy does not write"
                )
            if info.file_size > MOST_PACKED * (info.compress_size + 1):
                raise ValueError(
                    f"its member {info.filename!r} says that it has {info.file_size:,} bytes, which"
                    f" cannot be in {info.compress_size:,}"
                )
            self.members[info.filename] = info
        whole = sum(info.file_size for info in self.members.values())
        refuse_larger(whole, "what is in it")

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
        return self._member(name, lambda file, size: json_of(_exactly(file, size)))

    def _member(self, name: str, read: Any) -> Any:
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


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size or file.read(1):
        raise ValueError("it has another length than it says")
    return data


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
    """What `sealed` was given; refused if anything of it is not as it was.

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


def refuse_wild_indices(matrix: Any) -> None:
    """Refuse a sparse matrix in compressed form whose indices lead out of its memory.

    SciPy trusts them, and its own check looks at none where the last row says that it ends at 0.

    Examples
    --------
    >>> from scipy import sparse
    >>> refuse_wild_indices(sparse.csr_array(np.eye(3)))
    """
    matrix.check_format(full_check=True)
    starts = matrix.indptr.astype(np.int64)
    if starts[0] != 0 or np.any(np.diff(starts) < 0):
        raise ValueError("its rows do not end where the next ones begin")


class UnlikeError(ValueError):
    """Arrays of a file that are not what the program would have written there."""


def refuse_unlike(found: Mapping[str, Any], form: Mapping[str, Any]) -> None:
    """Refuse arrays whose types or shapes differ from those of other arrays.

    For what compiled code goes on from, which looks at neither.

    Examples
    --------
    >>> refuse_unlike({"H": np.ones((2, 3))}, {"H": np.zeros((2, 3))})
    >>> refuse_unlike({"h": np.ones(3)}, {"h": np.zeros(4)})
    Traceback (most recent call last):
        ...
    temporalnmf.runtime.archives.UnlikeError: h is float64 of shape (3,), not float64 of shape (4,)
    """
    for name, wanted in form.items():
        if name not in found:
            raise UnlikeError(f"it has no {name}")
        array, wanted = np.asarray(found[name]), np.asarray(wanted)
        same = array.dtype.kind == "U" if wanted.dtype.kind == "U" else array.dtype == wanted.dtype
        if not same or array.shape != wanted.shape:
            raise UnlikeError(
                f"{name} is {array.dtype} of shape {array.shape}, not {wanted.dtype} of shape "
                f"{wanted.shape}"
            )


# Numbers of a fit are between the two: what is computed with others would be no doubles.
SMALLEST, LARGEST = np.float64(1e-300), np.float64(1e300)


def refuse_negative(
    found: Mapping[str, Any], names: Iterable[str], *, positive: bool = False
) -> None:
    """Refuse numbers that are negative or not finite; zeros, too, if they have to be positive."""
    for name in names:
        array = np.asarray(found[name])
        if not ((array >= (SMALLEST if positive else 0.0)) & (array <= LARGEST)).all():
            raise UnlikeError(f"{name} has numbers that are negative or not finite")


def path_inside(folder: Path, name: str) -> Path:
    """A file of a folder. One that is a link to somewhere else is refused."""
    path = folder / name
    if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(
            f"{folder.name}/{name} is a link to a place outside of the folder, which is not "
            f"followed. Copy the file itself into the folder."
        )
    return path


def refuse_links_out(folder: Path) -> None:
    """Refuse a folder to write to in which something is a link to a place outside of it."""
    if not folder.is_dir():
        return
    whole = Path(os.path.realpath(folder))
    for entry in sorted(folder.iterdir()):
        # Links that lead in circles end somewhere in the folder here, and are an error later.
        if entry.is_symlink() and not Path(os.path.realpath(entry)).is_relative_to(whole):
            raise ValueError(
                f"{entry} is a link to a place outside of the folder, which would be written to. "
                f"Put the file itself there, or name another folder."
            )
