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
from typing import TYPE_CHECKING

import numpy as np

from .cells import MISSING, bytes_of, is_time_name, moment_in, number_in
from .sheet import Sheet, Wrong, refuse_text

if TYPE_CHECKING:
    pass  # not at run time: it loads the compiler

_SEPARATORS = {"\t": "tabs", ";": "';'", ",": "','"}


def read_text(path: Path, transpose: bool) -> Sheet:
    name, text = path.name, _decoded(path)
    separator = _separator(text)
    comma = separator == ";" and _DECIMAL_COMMA.search(text) is not None
    lines, margin, head = _outline(name, text, separator)
    header = _has_header(name, head, transpose, comma)
    lines, margin = lines[header:], margin[header:]
    if not lines:
        raise ValueError(
            f"{name} holds only a header ({head[0]!r}, …). Add a line per time step below it."
        )
    corner = head[0] if header else None
    labelled = _holds_labels(corner, margin, transpose, comma)
    if len(head) == labelled:
        raise ValueError(
            f"{name} has no column of numbers, only lines such as {margin[0]!r}. Give it one, and "
            f"separate cells by ',', ';' or tabs."
        )
    body = islice(_records(name, text, separator), header, None)
    cells, wrong = np.empty((len(lines), len(head) - labelled)), Wrong()
    for i, (_, record) in enumerate(body):
        cells[i] = _numbers(record[labelled:], comma, i, wrong)
    sheet = Sheet(
        name, transpose, cells,
        rows=margin if labelled else None,
        columns=head[labelled:] if header else None,
        lines=lines, margin=1 + labelled, comma=comma,
        notes=_about_text(separator, comma, corner, labelled, transpose),
    )  # fmt: skip
    refuse_text(sheet, wrong)
    return sheet


def _about_text(
    separator: str, comma: bool, corner: str | None, labelled: bool, transpose: bool
) -> tuple[str, ...]:
    where = f"column {corner!r}" if corner else "the first column"
    told = {
        "cells are separated by ';'": separator == ";",
        "commas are decimal commas": comma,
        "there is no header: the first line is data": corner is None,
        "times are in the first line": transpose and corner is not None,
        f"{'features' if transpose else 'times'} are in {where}": labelled,
    }
    return tuple(note for note, holds in told.items() if holds)


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


def _records(name: str, text: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The records of a text, each with the line it starts at."""
    source = io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", newline="")
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


def _separator(text: bytes) -> str:
    """The first that splits all of the first lines alike, or else the one that splits most."""
    widths = {separator: _widths(text, separator) for separator in _SEPARATORS}
    alike = (separator for separator, w in widths.items() if min(w) == max(w) > 1)
    return next(alike, max(",;\t", key=lambda separator: widths[separator][0]))


def _widths(text: bytes, separator: str) -> list[int]:
    """How many cells the first lines have; 0 for one that cannot be split."""
    widths = []
    try:
        for _, record in islice(_records("", text, separator), 20):
            widths.append(len(record))
    except ValueError:
        widths.append(0)
    return widths


_DECIMAL_COMMA = re.compile(rb'(?:^|[;"\r\n]) *[+-]?\d*,\d+(?:[eE][+-]?\d+)? *(?=[;"\r\n]|$)')


def _outline(name: str, text: bytes, separator: str) -> tuple[list[int], list[str], list[str]]:
    """Line numbers and first cells of all records, and all cells of the first one."""
    lines: list[int] = []
    margin: list[str] = []
    head: list[str] = []
    for line, record in _records(name, text, separator):
        head = head or [cell.strip() for cell in record]
        if not record:
            raise ValueError(
                f"{name}, line {line} is blank. Remove it, or write NA for missing values."
            )
        if len(record) != len(head):
            raise ValueError(
                f"{name}, line {line} has {len(record)} cells and the first line has {len(head)}. "
                f"Give all lines the same number of cells, separated by {_SEPARATORS[separator]}."
            )
        lines.append(line)
        margin.append(record[0].strip())
    return lines, margin, head


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
    if moment_in(corner) is not None:
        return False
    raise ValueError(
        f"{name}, line 1 may be a header or data: {corner!r} is followed by numbers ({others[0]}, "
        f"…). If it is a header, name the first column 'time'; if it is data, put a header before "
        f"it; if the numbers are times, use transpose=True (--transpose)."
    )


def _holds_labels(corner: str | None, margin: list[str], transpose: bool, comma: bool) -> bool:
    """Whether the first column holds times (features if transposed), not numbers to factorize."""
    if corner is not None and transpose:
        return moment_in(corner) is None  # a date is one of the times
    if corner is not None and is_time_name(corner):
        return True
    values = [number_in(cell, comma) for cell in margin]
    return None in values and all(value is None or math.isnan(value) for value in values)


def _numbers(record: list[str], comma: bool, i: int, wrong: Wrong) -> Sequence[float | None]:
    """The values of row i; those that are not numbers are added to `wrong`."""
    if not comma and "_" not in "".join(record):
        try:
            return list(map(float, record))
        except ValueError:
            pass
    values = [number_in(cell, comma) for cell in record]
    for j, value in enumerate(values):
        if value is None:
            wrong.add(i, j, record[j])
    return values
