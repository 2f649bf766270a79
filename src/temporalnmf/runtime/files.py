"""Files that are written whole or not at all, and CSV."""

from __future__ import annotations

import csv
import errno
import itertools
import os
import platform
import re
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

from ..messages.errors import Arg, Text
from .signals import stop_behind

# Identifies this machine: others may write to the same folder, with unrelated process ids.
_MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
_numbers = itertools.count()
T = TypeVar("T")
# Files that were written, and their inodes, see `watched_writes`.
_Placed = list[tuple[Path, int]]
_placed: ContextVar[_Placed | None] = ContextVar("placed", default=None)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file that becomes `path` if the block succeeds, and is deleted if not.

    Missing folders are created. If `path` is a link, its target is replaced. A replaced file keeps
    its permissions. Several processes may write to the same path: each has its own temporary file,
    and readers always see a whole file. Files that killed processes left behind are deleted.
    """
    target = path.resolve() if path.is_symlink() else path
    if target.exists() and not target.is_file() and not target.is_dir():
        raise OSError(f"{path} is a device or a pipe, not a file. Name a file.")
    names = f".{target.name[:50]}.{_MACHINE}"  # short enough for all file systems
    own = (f"{names}-{os.getpid()}-{number}.partial{target.suffix}" for number in _numbers)
    # An existing file of this name may be an attack, such as a link.
    partial = next(path for path in map(target.with_name, own) if not os.path.lexists(path))
    behind = sys.exc_info()[1]
    with room_told(path, partial):
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_left(target.parent, names)
        try:
            partial.touch(exist_ok=False)
            if target.is_file():
                shutil.copymode(target, partial)  # before there is any content
            yield partial
            with partial.open("r+b") as file:
                os.fsync(file.fileno())  # else a power cut may leave an empty file
            if (placed := _placed.get()) is not None:
                placed.append((path, partial.stat().st_ino))
            partial.replace(target)
            _sync_folder(target.parent)
        except ValueError as error:
            if (stop := stop_behind(error, behind)) is None:
                raise
            raise stop from None
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def watched_writes() -> Iterator[Callable[[], list[Path]]]:
    """Yield a function that lists the files written in this block so far."""
    placed: _Placed = []

    def there() -> list[Path]:
        return [path for path, number in placed if path.exists() and path.stat().st_ino == number]

    token = _placed.set(placed)
    try:
        yield there
    finally:
        _placed.reset(token)


@contextmanager
def room_told(path: Path, partial: Path | None = None) -> Iterator[None]:
    """Let errors about a full disk name `path`, not the temporary file, and a remedy."""
    try:
        yield
    except OSError as error:
        if partial is not None and error.filename == str(partial):
            error.filename = str(path)
        full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        short = error.errno is None and type(error) is OSError  # of NumPy: "9 requested, 0 written"
        if not (full or short):
            raise
        explained = OSError(
            f"{path} could not be written, and is unchanged: {error.strerror or error}. Free space "
            f"on the disk, or name a file on another one."
        )
        explained.errno = error.errno
        raise explained from error


def _remove_left(folder: Path, names: str) -> None:
    """Delete temporary files of processes of this machine that have ended."""
    for left in folder.iterdir():
        found = re.match(rf"{re.escape(names)}-(\d+)-\d+\.partial", left.name)
        if found and _gone(int(found[1])):
            with suppress(OSError):  # it may belong to another user
                left.unlink()


def _gone(process: int) -> bool:
    if os.name == "nt":  # os.kill would end the process
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):  # of another user; not a process id
        pass
    return False


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk, if the system supports it."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def write_csv(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    """Write rows with the same keys as a table with a header."""
    rows = list(rows)
    with written_whole(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writerow({name: plain_cell(name) for name in rows[0]})
        writer.writerows({name: plain_cell(cell) for name, cell in row.items()} for row in rows)
    return path


_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def plain_cell(value: T) -> T | str:
    """A cell that no spreadsheet executes: an apostrophe is put before text that is a formula.

    Names may come from untrusted files. Numbers are unchanged, even as text. `own_text` removes
    the apostrophe.

    Examples
    --------
    >>> plain_cell("=1+2"), plain_cell("war"), plain_cell("-3.5"), plain_cell(-3.5)
    ("'=1+2", 'war', '-3.5', -3.5)
    """
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def own_text(cell: str) -> str:
    """The text of a cell that `plain_cell` wrote.

    Examples
    --------
    >>> own_text("'=1+2"), own_text("'tis"), own_text("'-3.5")
    ('=1+2', "'tis", "'-3.5")
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet would execute a text, without the apostrophes at its start."""
    bare = text.lstrip("'")
    return _FORMULA.match(bare) is not None and _NUMBER.fullmatch(bare) is None


def about_apostrophes(texts: Iterable[object]) -> tuple[str, ...]:
    """A note if a CSV of these texts has additional apostrophes."""
    first = next((text for text in map(str, texts) if plain_cell(text) != text), None)
    if first is None:
        return ()
    return (
        f"names such as {first!r} are written as {plain_cell(first)!r}, so that no spreadsheet "
        f"runs them; temporalnmf removes the apostrophe when it reads the file",
    )


def refuse_replacing(folder: Path, overwrite: bool, ours: re.Pattern[str], what: str) -> None:
    """Refuse to replace a folder, unless it may be overwritten and has only files of `ours`."""
    refuse_overwriting(folder, overwrite)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, and {what} are a folder. Name another.")
    foreign = [path.name for path in folder.glob("*") if not ours.fullmatch(path.name)]
    if foreign:
        problem = f"which does not belong to a folder of {what}, so it is not replaced."
        raise FileExistsError(f"{folder} holds {min(foreign)!r}, {problem} Name another folder.")


def refuse_overwriting(path: Path, overwrite: bool) -> None:
    """Refuse to replace a result unless the user allows it."""
    if path.exists() and not overwrite:
        problem = "{path} exists already. Choose another name, or replace it with {overwrite}."
        raise FileExistsError(Text(problem, path=path, overwrite=Arg("overwrite", "True")))
