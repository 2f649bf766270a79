"""Files are written whole or not at all."""

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from .signals import stop_behind

# Of this machine: others may write to the same folder, and their processes are not seen from here.
_MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
_numbers = itertools.count()
# Files that are about to be in place, see `watched_writes`.
_Placed = list[tuple[Path, int]]
_placed: ContextVar[_Placed | None] = ContextVar("placed", default=None)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A name to write to, which becomes `path` when the block ends well and is gone if not.

    Folders that are missing are made. A link stays: the file that it points to is replaced. A file
    that is replaced hands on its permissions. Any number of writers may be at work on the same
    path: each has a name of its own, and readers always see the whole file of one of them. What
    writers that were killed have left is removed.
    """
    target = path.resolve() if path.is_symlink() else path
    if target.exists() and not target.is_file() and not target.is_dir():
        raise OSError(f"{path} is a device or a pipe, not a file. Name a file.")
    names = f".{target.name[:50]}.{_MACHINE}"  # short enough for all file systems
    own = (f"{names}-{os.getpid()}-{number}.partial{target.suffix}" for number in _numbers)
    # A name that is there already was laid out by somebody.
    partial = next(path for path in map(target.with_name, own) if not os.path.lexists(path))
    behind = sys.exc_info()[1]
    with room_told(path, partial):
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_left(target.parent, names)
        try:
            _make(partial, target)
            yield partial
            with partial.open("r+b") as file:
                os.fsync(file.fileno())  # else a power cut may leave the name without the content
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


def _make(partial: Path, target: Path) -> None:
    """An empty file for nobody else: with the permissions of what it replaces from the start."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    os.close(os.open(partial, flags, 0o666))
    if target.is_file():
        shutil.copymode(target, partial)


@contextmanager
def watched_writes() -> Iterator[Callable[[], list[Path]]]:
    """What tells which files were put in place in this block, to the very moment."""
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
    """Errors of writing to `path`, maybe under another name, say so, and what to do."""
    try:
        yield
    except OSError as error:
        if partial is not None and error.filename == str(partial):
            error.filename = str(path)
        full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        short = error.errno is None and type(error) is OSError  # of NumPy: "9 requested, 0 written"
        if not (full or short):
            raise
        told = OSError(
            f"{path} could not be written, and is as it was: {error.strerror or error}. Make room "
            f"on the disk, or name a place on another one."
        )
        told.errno = error.errno
        raise told from error


def _remove_left(folder: Path, names: str) -> None:
    """Remove what processes of this machine that are gone have left under such names."""
    for left in folder.iterdir():
        found = re.match(rf"{re.escape(names)}-(\d+)-\d+\.partial", left.name)
        if found and _gone(int(found[1])):
            with suppress(OSError):  # another user's: nothing that this write depends on
                left.unlink()


def _gone(process: int) -> bool:
    if os.name == "nt":  # there, the question would be a signal
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):  # somebody else's; no number of a process
        pass
    return False


def _sync_folder(folder: Path) -> None:
    """Put the new name on the disk, where the system can."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Rows with the same keys as a table with a header."""
    rows = list(rows)
    with (
        written_whole(path) as partial,
        partial.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writerow({name: plain_cell(name) for name in rows[0]})
        writer.writerows({name: plain_cell(cell) for name, cell in row.items()} for row in rows)
    return path


_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def plain_cell(value: Any) -> Any:
    """A cell of a CSV that no spreadsheet runs: text that would be a formula begins with ' then.

    Names come from foreign files. Numbers stay as they are, also those that are text.
    `own_text` takes the apostrophe off.

    Examples
    --------
    >>> plain_cell("=1+2"), plain_cell("war"), plain_cell("-3.5"), plain_cell(-3.5)
    ("'=1+2", 'war', '-3.5', -3.5)
    """
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def own_text(cell: str) -> str:
    """The text of which `plain_cell` made a cell.

    Examples
    --------
    >>> own_text("'=1+2"), own_text("'tis"), own_text("'-3.5")
    ('=1+2', "'tis", "'-3.5")
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet would run a text, or the text behind apostrophes at its start."""
    bare = text.lstrip("'")
    return _FORMULA.match(bare) is not None and _NUMBER.fullmatch(bare) is None


def about_apostrophes(texts: Iterable[Any]) -> tuple[str, ...]:
    """A note, if a CSV that holds such texts has apostrophes that they have not."""
    first = next((text for text in map(str, texts) if plain_cell(text) != text), None)
    if first is None:
        return ()
    return (
        f"names such as {first!r} are written as {plain_cell(first)!r}, so that no spreadsheet "
        f"runs them; temporalnmf takes the apostrophe off when it reads the file",
    )


def refuse_overwriting(path: Path, overwrite: bool) -> None:
    """A result that is there stays there, unless the user says otherwise."""
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists already. Choose another name, or replace it with overwrite=True "
            f"(--force)."
        )
