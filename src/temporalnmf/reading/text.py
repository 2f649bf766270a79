"""CSV and TSV files."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from ..messages.errors import Arg, Text
from ..runtime.files import own_text
from ..timeline.formats import are_months, is_date
from . import cells
from .sheet import Sheet, Wrong, refuse_text

_SEPARATORS = {"\t": "tabs", ";": "';'", ",": "','"}


def read_text(path: Path, transpose: bool, time: str | None) -> Sheet:
    name, (text, encoding) = path.name, _decoded(path)
    separator = separator_of(text)
    comma = separator == ";" and _DECIMAL_COMMA.search(text) is not None
    grouped = has_grouping_points(text, separator)
    written = [cell.strip() for cell in next(records(name, text, separator))[1]]
    head = [own_text(cell) for cell in written]
    at = 0 if time is None else cells.place_of(time, "time", head, name)
    lines, margin, width, n_blank = _outline(name, text, separator, at)
    blank = {"columns": len(head) - width, "rows": n_blank}
    dropped = (f"empty {what} at the end left out: {n}" for what, n in blank.items() if n)
    taken_off = about_taken_off([*written, *margin])
    margin = [own_text(label) for label in margin]
    head = head[:width]
    if not head:
        raise ValueError(f"{name} has empty cells only. Give it a line per time step.")
    header = time is not None or _has_header(name, head, transpose, comma, grouped)
    lines, margin = lines[header:], margin[header:]
    if not lines:
        raise ValueError(f"{name} holds only a header ({head[0]!r}, …). Add a line per time step.")
    corner = head[at] if header else None
    labelled = time is not None or _holds_labels(corner, margin, transpose, comma)
    if len(head) == labelled:
        found = f"{name} has no column of numbers, only lines such as {margin[0]!r}"
        raise ValueError(f"{found}. Give it one, and separate cells by ',', ';' or tabs.")
    places = [j for j in range(width) if not (labelled and j == at)]
    values, wrong = np.empty((len(lines), len(places))), Wrong()
    numbers = _Numbers(comma, thousands=separator == "," or grouped)
    for i, (_, record) in enumerate(
        islice(records(name, text, separator), header, header + len(lines))
    ):
        values[i] = numbers.read([record[j] for j in places], i, wrong)
    sheet = Sheet(
        name, transpose, values,
        rows=margin if labelled else None,
        columns=[head[j] for j in places] if header else None,
        lines=lines, at=at if labelled else None, corner=corner or "", comma=comma,
        notes=(
            *about_encoding(encoding),
            *_about_text(separator, comma, numbers.grouped, corner, labelled, transpose),
            *taken_off, *dropped, *numbers.about_missing(),
        ),
    )  # fmt: skip
    refuse_text(sheet, wrong)
    if separator == ";" and not comma:
        rows = islice(records(name, text, separator), header, header + len(lines))
        notes = _about_points(sheet, ([record[j] for j in places] for _, record in rows))
        return replace(sheet, notes=(*sheet.notes, *notes))
    return sheet


def _about_points(sheet: Sheet, rows: Iterator[list[str]]) -> tuple[str, ...]:
    """A note on points that may separate thousands; refused if a column has integers ≥ 100, too."""
    points, hundreds = cells.Points(), set()
    firsts: dict[int, tuple[int, str]] = {}  # by column: row and text of such a number
    for i, record in enumerate(rows):
        for j, cell in enumerate(map(str.strip, record)):
            if re.match(cells.Points.AS_THOUSANDS, cell):
                points.example = points.example or cell
                firsts.setdefault(j, (i, cell))
            elif re.match(cells.Points.AT_LEAST_100, cell):
                hundreds.add(j)
            elif not re.match(cells.Points.WHOLE, cell) and cell.casefold() not in cells.MISSING:
                return ()  # certainly a decimal
    if both := sorted(hundreds & firsts.keys()):
        i, points.example = firsts[both[0]]
        raise points.refusal(sheet.place(i, both[0]))
    return points.about()


def _about_text(
    separator: str, comma: bool, grouped: bool, corner: str | None, labelled: bool, transpose: bool
) -> tuple[str, ...]:
    where = f"column {corner!r}" if corner else "the first column"
    notes = {
        "cells are separated by ';'": separator == ";",
        "commas are decimal commas": comma,
        cells.about_thousands(comma): grouped,
        "there is no header: the first line is data": corner is None,
        "times are in the first line": transpose and corner is not None,
        f"{'features' if transpose else 'times'} are in {where}": labelled,
    }
    return tuple(note for note, holds in notes.items() if holds)


def about_taken_off(labels: Iterable[str]) -> tuple[str, ...]:
    """A note on the apostrophes that protect spreadsheets from names that look like formulas."""
    first = next((label for label in labels if own_text(label) != label), None)
    if first is None:
        return ()
    return (f"the apostrophe before names such as {own_text(first)!r} is removed",)


def _decoded(path: Path) -> tuple[bytes, str]:
    """The text of a file in UTF-8 without trailing blank lines, and its encoding."""
    data = cells.bytes_of(path)
    encoding = encoding_of(path.name, io.BytesIO(data))
    with cells.damage_told(path, encoding.upper(), _AS_UTF8):
        text = data.decode(encoding).rstrip("\r\n")
    if not text.strip():
        raise ValueError(f"{path.name} is empty. Give it a row per time step.")
    return text.encode(), encoding


_AS_UTF8 = "Save the file as UTF-8 (in Excel: 'CSV UTF-8')."
# All but control characters and the five bytes that Windows-1252 does not define.
_WINDOWS = bytes({*range(256)} - {*range(9), 11, *range(14, 32), 0x81, 0x8D, 0x8F, 0x90, 0x9D})


def encoding_of(name: str, file: IO[bytes]) -> str:
    """UTF-16 (Excel's "Unicode text"), UTF-8, or else Windows-1252 if its bytes allow it."""
    if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    file.seek(0)
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 1
    try:
        while chunk := file.read(1 << 20):
            decoder.decode(chunk)
            line += chunk.count(b"\n")
        decoder.decode(b"", final=True)
        return "utf-8-sig"
    except UnicodeDecodeError as error:
        file.seek(0)
        chunks = iter(lambda: file.read(1 << 20), b"")
        if not any(chunk.translate(None, _WINDOWS) for chunk in chunks):
            return "cp1252"
        line += error.object[: error.start].count(b"\n")
        place = f"{name}, line {line}: byte 0x{error.object[error.start]:02x}"
        raise ValueError(f"{place} is not UTF-8. {_AS_UTF8}") from error


def about_encoding(encoding: str) -> tuple[str, ...]:
    return ("read as Windows-1252",) if encoding == "cp1252" else ()


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
        problem = f"{name}, line {line} cannot be split into cells: {error}"
        raise ValueError(f"{problem}. Check its quotation marks.") from error
    finally:
        if not file.closed:
            source.detach()  # the caller closes the file


def separator_of(text: bytes) -> str:
    """The first separator that gives the first lines equal widths, else the one with most cells."""
    widths = {separator: _widths(text, separator) for separator in _SEPARATORS}
    alike = (separator for separator, w in widths.items() if min(w) == max(w) > 1)
    return next(alike, max(",;\t", key=lambda separator: widths[separator][0]))


def _widths(text: bytes, separator: str) -> list[int]:
    """Numbers of cells in the first lines, 0 for a line that cannot be split."""
    widths = []
    try:
        for _, record in islice(records("", text, separator), 20):
            widths.append(len(record))
    except ValueError:
        widths.append(0)
    return widths


def has_grouping_points(text: bytes, separator: str) -> bool:
    """Whether some number is written like 1.234,5, so that 1.234 is more than a thousand."""
    return separator == ";" and _GROUPED.search(text) is not None


_CELL_START, _CELL_END = rb'(?:^|[;"\r\n]) *[+-]?', rb' *(?=[;"\r\n]|$)'
_GROUPS = rb"\d{1,3}(?:\.\d{3})+"
_DECIMAL_COMMA = re.compile(
    _CELL_START + rb"(?:\d*|" + _GROUPS + rb"),\d+(?:[eE][+-]?\d+)?" + _CELL_END
)
_GROUPED = re.compile(_CELL_START + _GROUPS + rb",\d+" + _CELL_END)


def _outline(
    name: str, text: bytes, separator: str, at: int
) -> tuple[list[int], list[str], int, int]:
    """Lines and labels of the records, their width, and the number of blank ones at the end."""
    lines: list[int] = []
    margin: list[str] = []
    width = n_cells = n_filled = 0
    for line, record in records(name, text, separator):
        n_cells = n_cells or len(record)
        if not record:
            raise ValueError(f"{name}, line {line} is blank. Remove it, or write NA for gaps.")
        if len(record) != n_cells:
            raise ragged(name, line, len(record), n_cells, separator)
        lines.append(line)
        margin.append(record[at].strip())
        filled = next((j + 1 for j in reversed(range(n_cells)) if record[j].strip()), 0)
        width, n_filled = max(width, filled), len(lines) if filled else n_filled
    return lines[:n_filled], margin[:n_filled], width, len(lines) - n_filled


def ragged(name: str, line: int, found: int, n_cells: int, separator: str) -> ValueError:
    problem = f"{name}, line {line} has {found} cells and the first line has {n_cells}"
    remedy = f"Give all lines the same number of cells, separated by {_SEPARATORS[separator]}."
    return ValueError(f"{problem}. {remedy}")


def _has_header(name: str, head: list[str], transpose: bool, comma: bool, grouped: bool) -> bool:
    """Whether the first line holds names. An ambiguous line is refused."""
    corner, *others = head
    texts = [cells.number_in(cell, comma, grouped) is None for cell in head]
    if transpose and are_months(head):
        return True
    if not others or any(texts[1:]):
        return any(texts)
    if corner == "":
        return not any(cell.casefold() in cells.MISSING for cell in others)
    if not texts[0] or transpose or cells.is_time_name(corner):
        return texts[0]
    if is_date(corner):
        return False
    found = f"{name}, line 1 may be a header or data: {corner!r} is followed by numbers"
    remedy = (
        "If it is a header, name the first column 'time'; if it is data, put a header before it; "
        "if the numbers are times, use {transpose}."
    )
    facts = {"found": f"{found} ({others[0]}, …)", "transpose": Arg("transpose", "True")}
    raise ValueError(Text("{found}. " + remedy, **facts))


def _holds_labels(corner: str | None, margin: list[str], transpose: bool, comma: bool) -> bool:
    """Whether the first column holds times (features if transposed), not data."""
    if corner is not None and transpose:
        return not is_date(corner)  # a date is one of the times
    if corner is not None and cells.is_time_name(corner):
        return True
    if are_months(margin[:-1] or margin):  # the last one may be a total, refused later
        return not transpose
    values = [cells.number_in(cell, comma) for cell in margin]
    return None in values and all(value is None or math.isnan(value) for value in values)


class _Numbers:
    """Reads rows of cells; `grouped` says whether any had thousands separators."""

    def __init__(self, comma: bool, thousands: bool) -> None:
        self.comma, self.thousands, self.grouped = comma, thousands, False
        self.missing: Counter[str] = Counter()

    def read(self, record: list[str], i: int, wrong: Wrong) -> Sequence[float | None]:
        """The values of row i; those that are not numbers are added to `wrong`."""
        if not self.comma and "_" not in "".join(record):
            try:
                return list(map(float, record))
            except ValueError:
                pass
        values = [cells.number_in(cell, self.comma, self.thousands) for cell in record]
        for j, value in enumerate(values):
            word = record[j].strip()
            if value is None:
                wrong.add(i, j, record[j])
            elif math.isnan(value) and word.casefold() not in cells.PLAINLY_MISSING:
                self.missing[word] += 1
            self.grouped |= self.thousands and cells.has_thousands(record[j], self.comma)
        return values

    def about_missing(self) -> tuple[str, ...]:
        words = ", ".join(f"{word!r} ({count:,})" for word, count in sorted(self.missing.items()))
        return (f"cells taken as missing: {words}",) if words else ()
