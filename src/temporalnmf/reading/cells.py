"""Cells of tables, names of columns, and errors about damaged files."""

from __future__ import annotations

import gzip
import math
import re
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path
from typing import IO

from ..messages.errors import ArgumentError

TIME_NAMES = (
    "time", "date", "year", "month", "week", "day", "hour", "period", "index", "step", "t",
    "datetime", "timestamp",
    "jahr", "monat", "woche", "kw", "tag", "datum",
    "année", "annee", "an", "mois", "semaine", "jour",
    "año", "ano", "mes", "semana", "día", "dia", "fecha",
    "anno", "mese", "settimana", "giorno",
)  # fmt: skip
MISSING = ("", "na", "nan", "null", "n/a", "#n/a", "#na", "-", "–", ".", "none")
PLAINLY_MISSING = ("", "na", "nan", "null")  # the others are counted and noted


def is_time_name(name: str) -> bool:
    name = unicodedata.normalize("NFC", name.strip().casefold())  # é may be two characters
    return name in ("", "unnamed: 0", *TIME_NAMES)  # the second is pandas' name for an empty one


_THOUSANDS = {
    False: re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"),
    True: re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?"),
}


def has_thousands(cell: str, comma: bool = False) -> bool:
    """Whether a cell is of the form 1,234,567.8, or 1.234.567,8 with decimal commas."""
    return _THOUSANDS[comma].fullmatch(cell.strip()) is not None


def about_thousands(comma: bool) -> str:
    sign, example = ("points", "1.234") if comma else ("commas", "1,234")
    return f"{sign} in numbers such as {example} separate thousands"


@dataclass
class Points:
    """Whether points in a file with separator ';' may separate thousands as well as decimals.

    They may if every number with a point is of the form 1.234, all others are whole, and there is
    no decimal comma.
    """

    example: str = ""
    decimal: bool = False  # some number is certainly a decimal

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
        whole, decimal = (self.example.replace(".", sign) for sign in ("", ","))
        return ValueError(
            f"{place}: {self.example!r} may be {whole}, with a point between thousands, or "
            f"{self.example} with three decimals, and no other number of the file decides. Write "
            f"thousands without points ({whole}), or decimals with commas ({decimal})."
        )


def number_in(cell: str, comma: bool, thousands: bool = False) -> float | None:
    """The value of a cell, NaN if it is missing, None if it is not a number."""
    cell = cell.strip()
    if cell.casefold() in MISSING:
        return math.nan
    if thousands and has_thousands(cell, comma):
        cell = cell.replace("." if comma else ",", "")
    # Only Python reads 1_000 as a number; with decimal commas, 1.234 is ambiguous.
    if "_" in cell or (comma and "." in cell):
        return None
    try:
        return float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return None


@contextmanager
def damage_told(path: Path | str, what: str, remedy: str) -> Iterator[None]:
    """Turn the errors of libraries about a damaged or foreign file into a ValueError."""
    try:
        yield
    except (PermissionError, ImportError, RefusedError):
        raise
    except Exception as error:  # libraries raise many kinds of errors
        if type(error) is MemoryError:  # Arrow's is a subclass, raised for a damaged page
            raise
        reason = " ".join(str(error).split()).rstrip(".")[:500] or type(error).__name__
        name = path if isinstance(path, str) else path.name
        raise ValueError(f"{name} cannot be read as {what}: {reason}. {remedy}") from error


class RefusedError(ValueError):
    """An error whose message is complete."""


def bytes_of(path: Path) -> bytes:
    with opened(path) as file:
        return file.read()


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed if it is a gzip file."""
    if path.suffix.lower() != ".gz":
        with path.open("rb") as file:
            yield file
        return
    with BufferedReader(_Unpacked(path), 1 << 17) as file:
        try:
            yield file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            problem = f"{path.name} cannot be read as a gzip file: {error}."
            raise ValueError(f"{problem} Compress it again.") from error


# A few compressed bytes can fill all memory. Text tables shrink to about a tenth, tables of zeros
# to a hundredth.
MOST_GROWTH = 200
HARMLESS = 1 << 28  # decompressed bytes that need no check
_CHUNK = 1 << 20  # bytes decompressed at once
LONGEST_LABEL = 1000  # characters of a name or a time


class _Unpacked(gzip.GzipFile):
    """The content of a gzip file in chunks, up to a size in proportion to the file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path, self.most = path, max(HARMLESS, MOST_GROWTH * path.stat().st_size)

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size if size is not None and 0 <= size < _CHUNK else _CHUNK)
        if self.tell() > self.most:
            found = f"{self.path.name} unpacks to more than {self.most:,} bytes"
            remedy = "If you trust it, unpack it with gunzip and read the plain file."
            raise RefusedError(f"{found}, {MOST_GROWTH} times its size. {remedy}")
        return data


def refuse_long_labels(name: str, longest: int) -> None:
    """Refuse very long labels: NumPy stores every label with the length of the longest."""
    if longest > LONGEST_LABEL:
        limit = f"at most {LONGEST_LABEL:,} are allowed"
        raise ValueError(f"{name} has a label of {longest:,} characters; {limit}. Shorten it.")


class NoColumnError(ArgumentError):
    """An argument names a column that a table does not have."""


def place_of(name: str, argument: str, names: list[str], file: str) -> int:
    """The position of the column that an argument names."""
    places = [j for j, found in enumerate(names) if found == name]
    if len(places) == 1:
        return places[0]
    lowered = {found.lower(): found for found in names[:1000]}
    near = get_close_matches(name.lower(), lowered, n=1, cutoff=0.7)
    if places:
        problem = "names several columns."
    else:
        hint = f": did you mean {lowered[near[0]]!r}?" if near else "."
        problem = f"is not the name of a column{hint}"
    found = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
    error = ArgumentError if places else NoColumnError
    raise error(argument, name, problem, f"The columns are {found or 'none'} ({file}).")
