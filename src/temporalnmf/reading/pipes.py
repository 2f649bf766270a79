"""Plain files from pipes, and from files whose name does not show their format."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_FORMATS = {
    b"PAR1": ".parquet", b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"%%MatrixMarket": ".mtx",
}  # fmt: skip
_GZIP = b"\x1f\x8b"
_DEVICES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


@contextmanager
def plain_file(path: Path) -> Iterator[Path]:
    """A file with a suffix that can be read repeatedly: `path` itself, or a copy."""
    if path.is_file() and path.suffix and path.parent not in _DEVICES:
        yield path
        return
    with TemporaryDirectory(prefix="temporalnmf-pipe-") as folder:
        yield copied(path, Path(folder))


def is_stream(path: Path) -> bool:
    """Whether a path can be read only once: a pipe, or an open file such as /dev/stdin."""
    return path.is_fifo() or (path.parent in _DEVICES and path.is_file())


def copied(path: Path, folder: Path) -> Path:
    """A copy in a folder, with the suffix of its format."""
    if not path.exists() or path.is_dir():
        raise FileNotFoundError(f"{path}: there is no such file. Check the path.")
    if not (path.is_file() or path.is_fifo()):
        raise ValueError(f"{path} is a device, not a file or a pipe. Name a file.")
    raw = folder / "raw"
    with path.open("rb") as source, raw.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return raw.rename(folder / f"{_name(path)}{_suffix(raw)}")


def _name(path: Path) -> str:
    if path.is_file() and path.parent not in _DEVICES:
        return path.name
    return "stdin" if path.name in ("stdin", "0") else "pipe"


def _suffix(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(1 << 16)
    packed = ""
    if start.startswith(_GZIP):
        packed = ".gz"
        try:
            start = zlib.decompressobj(wbits=31).decompress(start, 1 << 10)
        except zlib.error:  # reported by the reader
            start = b""
    known = (suffix for magic, suffix in _FORMATS.items() if start.startswith(magic))
    return next(known, ".csv") + packed
