"""What a single cell may be, and what a damaged file is called."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from zipfile import BadZipFile

TIME_NAMES = (
    "time", "date", "year", "month", "week", "day", "hour", "period", "index", "step", "t",
    "datetime", "timestamp",
)  # fmt: skip


MISSING = ("", "na", "nan", "null")


def is_time_name(name: str) -> bool:
    return name.strip().casefold() in ("", "unnamed: 0", *TIME_NAMES)  # pandas' name for no name


def number_in(cell: str, comma: bool) -> float | None:
    """The value of a cell, NaN if it is missing, None if it is not a number."""
    cell = cell.strip()
    if cell.casefold() in MISSING:
        return math.nan
    # 1_000 is a number to Python only; beside decimal commas, 1.234 may be a thousand or one.
    if "_" in cell or (comma and "." in cell):
        return None
    try:
        return float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return None


def moment_in(label: str) -> datetime | None:
    """An ISO date, also without its day."""
    try:
        moment = datetime.fromisoformat(f"{label}-01" if _YEAR_MONTH.fullmatch(label) else label)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_YEAR_MONTH = re.compile(r"\d{4}-\d{2}")


@contextmanager
def damage_told(path: Path, what: str, remedy: str) -> Iterator[None]:
    """What libraries say of a damaged or foreign file, as one kind of error."""
    try:
        yield
    except PermissionError:
        raise
    except (ValueError, OSError, EOFError, OverflowError, zlib.error, BadZipFile) as error:
        # NumPy suggests to unpickle, also what is no array at all. That would run foreign code.
        pickled = "pickle" in str(error)
        reason = "it is damaged or holds Python objects" if pickled else str(error).rstrip(".")
        raise ValueError(f"{path.name} cannot be read as {what}: {reason}. {remedy}") from error


def bytes_of(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix.lower() == ".gz":
        with damage_told(path, "a gzip file", "Compress it again."):
            data = gzip.decompress(data)
    return data
