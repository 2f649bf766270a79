"""CSV, TSV and their like."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from ..moments import is_date
from .cells import MISSING, bytes_of, has_thousands, is_time_name, number_in, place_of
from .sheet import Sheet, Wrong, refuse_text

_SEPARATORS = {"\t": "tabs", ";": "';'", ",": "','"}


def read_text(path: Path, transpose: bool, time: str | None) -> Sheet:
    name, text = path.name, _decoded(path)
    separator = separator_of(text)
    comma = has_decimal_commas(text, separator)
    head = [cell.strip() for cell in next(records(name, text, separator))[1]]
    at = 0 if time is None else place_of(time, "time", head, name)
    lines, margin, width, n_blank = _outline(name, text, separator, at)
    dropped = _about_blanks(len(head) - width, n_blank)
    head = head[:width]
    header = time is not None or _has_header(name, head, transpose, comma)
    lines, margin = lines[header:], margin[header:]
    if not lines:
        raise ValueError(
            f"{name} holds only a header ({head[0]!r}, …). Add a line per time step below it."
        )
    corner = head[at] if header else None
    labelled = time is not None or _holds_labels(corner, margin, transpose, comma)
    if len(head) == labelled:
        raise ValueError(
            f"{name} has no column of numbers, only lines such as {margin[0]!r}. Give it one, and "
            f"separate cells by ',', ';' or tabs."
        )
    places = [j for j in range(width) if not (labelled and j == at)]
    cells, wrong = np.empty((len(lines), len(places))), Wrong()
    numbers = _Numbers(comma, thousands=separator == ",")
    for i, (_, record) in enumerate(
        islice(records(name, text, separator), header, header + len(lines))
    ):
        cells[i] = numbers.read([record[j] for j in places], i, wrong)
    sheet = Sheet(
        name, transpose, cells,
        rows=margin if labelled else None,
        columns=[head[j] for j in places] if header else None,
        lines=lines, at=at if labelled else None, corner=corner or "", comma=comma,
        notes=(
            *_about_text(separator, comma, numbers.grouped, corner, labelled, transpose), *dropped
        ),
    )  # fmt: skip
    refuse_text(sheet, wrong)
    return sheet


def _about_text(
    separator: str,
    comma: bool,
    grouped: bool,
    corner: str | None,
    labelled: bool,
    transpose: bool,
) -> tuple[str, ...]:
    where = f"column {corner!r}" if corner else "the first column"
    told = {
        "cells are separated by ';'": separator == ";",
        "commas are decimal commas": comma,
        "commas in numbers such as 1,234 separate thousands": grouped,
        "there is no header: the first line is data": corner is None,
        "times are in the first line": transpose and corner is not None,
        f"{'features' if transpose else 'times'} are in {where}": labelled,
    }
    return tuple(note for note, holds in told.items() if holds)


def _about_blanks(n_columns: int, n_rows: int) -> tuple[str, ...]:
    found = {"columns": n_columns, "rows": n_rows}
    return tuple(f"empty {what} at the end left out: {n}" for what, n in found.items() if n)


def _decoded(path: Path) -> bytes:
    """The text of a file in UTF-8, without the blank lines at its end."""
    data = bytes_of(path)
    # Excel's "Unicode text" is UTF-16.
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if utf16 else "utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path.name}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8. Save the file "
            f"as UTF-8 (in Excel: 'CSV UTF-8')."
        ) from error
    if not text.strip():
        raise ValueError(f"{path.name} is empty. Give it a row per time step.")
    return text.encode()


def records(
    name: str, text: bytes | IO[bytes], separator: str, encoding: str = "utf-8"
) -> Iterator[tuple[int, list[str]]]:
    """The records of a text or file, each with the line it starts at."""
    file = io.BytesIO(text) if isinstance(text, bytes) else text
    source = io.TextIOWrapper(file, encoding=encoding, newline="")
    reader = csv.reader(source, delimiter=separator, strict=True, skipinitialspace=True)
    line = 1
    try:
        for record in reader:
            yield line, record
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{name}, line {line} cannot be split into cells: {error}. Check its quotation marks."
        ) from error
    finally:
        if not file.closed:
            source.detach()  # closing it is for whom opened it


def separator_of(text: bytes) -> str:
    """The first that splits all of the first lines alike, or else the one that splits most."""
    widths = {separator: _widths(text, separator) for separator in _SEPARATORS}
    alike = (separator for separator, w in widths.items() if min(w) == max(w) > 1)
    return next(alike, max(",;\t", key=lambda separator: widths[separator][0]))


def _widths(text: bytes, separator: str) -> list[int]:
    """How many cells the first lines have; 0 for one that cannot be split."""
    widths = []
    try:
        for _, record in islice(records("", text, separator), 20):
            widths.append(len(record))
    except ValueError:
        widths.append(0)
    return widths


def has_decimal_commas(text: bytes, separator: str) -> bool:
    return separator == ";" and _DECIMAL_COMMA.search(text) is not None


_DECIMAL_COMMA = re.compile(rb'(?:^|[;"\r\n]) *[+-]?\d*,\d+(?:[eE][+-]?\d+)? *(?=[;"\r\n]|$)')


def _outline(
    name: str, text: bytes, separator: str, at: int
) -> tuple[list[int], list[str], int, int]:
    """Lines and labels of the records, their width, and how many blank ones are left out after.

    Spreadsheets write columns and rows that hold nothing beyond those that do.
    """
    lines: list[int] = []
    margin: list[str] = []
    width = n_cells = n_filled = 0
    for line, record in records(name, text, separator):
        n_cells = n_cells or len(record)
        if not record:
            raise ValueError(
                f"{name}, line {line} is blank. Remove it, or write NA for missing values."
            )
        if len(record) != n_cells:
            raise ragged(name, line, len(record), n_cells, separator)
        lines.append(line)
        margin.append(record[at].strip())
        filled = next((j + 1 for j in reversed(range(n_cells)) if record[j].strip()), 0)
        width, n_filled = max(width, filled), len(lines) if filled else n_filled
    return lines[:n_filled], margin[:n_filled], width, len(lines) - n_filled


def ragged(name: str, line: int, found: int, n_cells: int, separator: str) -> ValueError:
    return ValueError(
        f"{name}, line {line} has {found} cells and the first line has {n_cells}. Give all lines "
        f"the same number of cells, separated by {_SEPARATORS[separator]}."
    )


def _has_header(name: str, head: list[str], transpose: bool, comma: bool) -> bool:
    """Whether the first line holds names. A line that may as well be data is refused."""
    corner, *others = head
    texts = [number_in(cell, comma) is None for cell in head]
    if not others or any(texts[1:]):
        return any(texts)
    if corner == "":
        return not any(cell.casefold() in MISSING for cell in others)
    if not texts[0] or transpose or is_time_name(corner):
        return texts[0]
    if is_date(corner):
        return False
    raise ValueError(
        f"{name}, line 1 may be a header or data: {corner!r} is followed by numbers ({others[0]}, "
        f"…). If it is a header, name the first column 'time'; if it is data, put a header before "
        f"it; if the numbers are times, use transpose=True (--transpose)."
    )


def _holds_labels(corner: str | None, margin: list[str], transpose: bool, comma: bool) -> bool:
    """Whether the first column holds times (features if transposed), not numbers to factorize."""
    if corner is not None and transpose:
        return not is_date(corner)  # a date is one of the times
    if corner is not None and is_time_name(corner):
        return True
    values = [number_in(cell, comma) for cell in margin]
    return None in values and all(value is None or math.isnan(value) for value in values)


class _Numbers:
    """Values of rows of cells. `grouped` says whether some had separators of thousands."""

    def __init__(self, comma: bool, thousands: bool) -> None:
        self.comma, self.thousands, self.grouped = comma, thousands, False

    def read(self, record: list[str], i: int, wrong: Wrong) -> Sequence[float | None]:
        """The values of row i; those that are not numbers are added to `wrong`."""
        if not self.comma and "_" not in "".join(record):
            try:
                return list(map(float, record))
            except ValueError:
                pass
        values = [number_in(cell, self.comma, self.thousands) for cell in record]
        for j, value in enumerate(values):
            if value is None:
                wrong.add(i, j, record[j])
            self.grouped |= self.thousands and "," in record[j] and has_thousands(record[j])
        return values
