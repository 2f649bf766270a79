"""What a single cell may be, and what a damaged file is called."""

from __future__ import annotations

import gzip
import math
import re
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any

TIME_NAMES = (
    "time", "date", "year", "month", "week", "day", "hour", "period", "index", "step", "t",
    "datetime", "timestamp",
    "jahr", "monat", "woche", "kw", "tag", "datum",
    "année", "annee", "an", "mois", "semaine", "jour",
    "año", "ano", "mes", "semana", "día", "dia", "fecha",
    "anno", "mese", "settimana", "giorno",
)  # fmt: skip


MISSING = ("", "na", "nan", "null", "n/a", "#n/a", "#na", "-", "–", ".", "none")
PLAINLY_MISSING = ("", "na", "nan", "null")  # the others are counted and told


def is_time_name(name: str) -> bool:
    name = unicodedata.normalize("NFC", name.strip().casefold())  # é may be two characters
    return name in ("", "unnamed: 0", *TIME_NAMES)  # pandas' name for no name


_THOUSANDS = {
    False: re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"),
    True: re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?"),
}


def has_thousands(cell: str, comma: bool = False) -> bool:
    """Whether a cell is such as 1,234,567.8, or with decimal commas such as 1.234.567,8."""
    return _THOUSANDS[comma].fullmatch(cell.strip()) is not None


def about_thousands(comma: bool) -> str:
    sign, example = ("points", "1.234") if comma else ("commas", "1,234")
    return f"{sign} in numbers such as {example} separate thousands"


@dataclass
class Points:
    """Whether points in a file separated by ';' may separate thousands as well as decimals.

    They may if each number with a point is such as 1.234, all others are whole, and there is no
    decimal comma.
    """

    example: str = ""
    decimal: bool = False  # some number can be read in one way only

    AS_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(\.\d{3})+$"
    WHOLE = r"^[+-]?\d+$"
    AT_LEAST_100 = r"^\+?[1-9]\d{2,}$"

    @property
    def doubtful(self) -> bool:
        return bool(self.example) and not self.decimal

    def about(self) -> tuple[str, ...]:
        told = f"points in numbers such as {self.example} are decimal points, not thousands"
        return (told,) if self.doubtful else ()

    def refusal(self, place: str) -> ValueError:
        whole = self.example.replace(".", "")
        return ValueError(
            f"{place}: {self.example!r} may be {whole}, with a point between thousands, or "
            f"{self.example} with three decimals, and no other number of the file tells. Write "
            f"thousands without points ({whole}), or decimals with commas "
            f"({self.example.replace('.', ',')})."
        )


def number_in(cell: str, comma: bool, thousands: bool = False) -> float | None:
    """The value of a cell, NaN if it is missing, None if it is not a number."""
    cell = cell.strip()
    if cell.casefold() in MISSING:
        return math.nan
    if thousands and has_thousands(cell, comma):
        cell = cell.replace("." if comma else ",", "")
    # 1_000 is a number to Python only; beside decimal commas, 1.234 may be a thousand or one.
    if "_" in cell or (comma and "." in cell):
        return None
    try:
        return float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return None


@contextmanager
def damage_told(path: Path | str, what: str, remedy: str) -> Iterator[None]:
    """What libraries say of a damaged or foreign file, as one kind of error."""
    try:
        yield
    except (PermissionError, RefusedError):
        raise
    except Exception as error:  # libraries have many words for damage, and many kinds of errors
        if type(error) is MemoryError:  # Arrow's is of its own kind, and about what a page says
            raise
        reason = " ".join(str(error).split()).rstrip(".")[:500] or type(error).__name__
        name = path if isinstance(path, str) else path.name
        raise ValueError(f"{name} cannot be read as {what}: {reason}. {remedy}") from error


class RefusedError(ValueError):
    """Said in full already."""


def bytes_of(path: Path) -> bytes:
    with opened(path) as file:
        return file.read()


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if it is a gzip file."""
    if path.suffix.lower() != ".gz":
        with path.open("rb") as file:
            yield file
        return
    with gzip.open(path) as packed, BufferedReader(_Unpacked(packed, path), 1 << 17) as file:
        try:
            yield file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(
                f"{path.name} cannot be read as a gzip file: {error}. Compress it again."
            ) from error


# A few bytes can be packed so that they fill all memory. Tables of text become a tenth or so, also
# those that are mostly zeros hardly less than a hundredth.
MOST_GROWTH = 200
_CHUNK = 1 << 20  # bytes unpacked at once
# Characters of a name or a time.
LONGEST_LABEL = 1000
HARMLESS = 1 << 28  # bytes that nobody has to ask about


class _Unpacked(RawIOBase):
    """What is in a gzip file, as long as it is not out of proportion."""

    def __init__(self, packed: gzip.GzipFile, path: Path) -> None:
        self.packed, self.path = packed, path
        self.most = max(HARMLESS, MOST_GROWTH * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.packed.seek(offset, whence)

    def tell(self) -> int:
        return self.packed.tell()

    def readinto(self, buffer: Any) -> int:
        data = self.packed.read(min(len(buffer), _CHUNK))
        buffer[: len(data)] = data
        if self.packed.tell() > self.most:
            raise RefusedError(
                f"{self.path.name} unpacks to more than {self.most:,} bytes, {MOST_GROWTH} times "
                f"its size, as a file does that is made to fill the memory. If it is what you "
                f"expect, unpack it with gunzip and read the plain file."
            )
        return len(data)


def refuse_long_labels(name: str, longest: int) -> None:
    """Refuse labels that are no labels: NumPy gives each one the length of the longest."""
    if longest > LONGEST_LABEL:
        raise ValueError(
            f"{name} has a label of {longest:,} characters, and names and times have at most "
            f"{LONGEST_LABEL:,}. Shorten it."
        )


def library(module: str, what: str) -> Any:
    """A module of the extra `io`; `what` is what needs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{what} needs pandas and pyarrow: pip install "temporalnmf[io]".'
        ) from error


def place_of(name: str, option: str, names: list[str], file: str) -> int:
    """Where a column stands that an option names."""
    places = [j for j, found in enumerate(names) if found == name]
    if len(places) == 1:
        return places[0]
    found = ", ".join(repr(name) for name in names[:20]) + (", …" if len(names) > 20 else "")
    problem = "names several columns" if places else "is not the name of a column"
    raise ValueError(
        f"{file}: {option}={name!r} (--{option}) {problem}. The columns are {found or 'none'}."
    )
