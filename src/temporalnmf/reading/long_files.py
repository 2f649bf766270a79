"""Long tables in files, block by block."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from .cells import damage_told, library, place_of
from .long import Columns, Source
from .text import about_encoding, encoding_of, has_grouping_points, ragged, records, separator_of

BLOCK_BYTES = 16 << 20  # of text
BLOCK_ROWS = 1 << 19  # of Parquet
SAMPLE_BYTES = 1 << 18


class _Form(NamedTuple):
    """How a text file is written."""

    encoding: str
    separator: str
    head: list[str]
    grouped: bool  # points separate thousands


def read_long_text(path: Path, columns: Columns) -> Source:
    form = _form(path)
    places = [place_of(name, option, form.head, path.name) for option, name in _options(columns)]
    commas = {";": "decimal", ",": "thousands"}.get(form.separator, "")
    commas += ", grouped" if form.grouped else ""

    def place(n: int) -> str:
        return f"line {_line(path, form, n)}"

    blocks = _text_blocks(path, form, places)
    return Source(path.name, blocks, place, commas, about_encoding(form.encoding))


def _options(columns: Columns) -> list[tuple[str, str]]:
    return [(option, name) for option, name in columns._asdict().items() if name is not None]


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    zipped = path.suffix.lower() == ".gz"
    with cast(IO[bytes], gzip.open(path) if zipped else path.open("rb")) as file:
        try:
            yield file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(
                f"{path.name} cannot be read as a gzip file: {error}. Compress it again."
            ) from error


def _form(path: Path) -> _Form:
    with _opened(path) as file:
        encoding = encoding_of(path.name, file)
        file.seek(0)
        sample = file.read(SAMPLE_BYTES)
    text = sample.decode(encoding, errors="ignore")
    if not text.strip():
        raise ValueError(f"{path.name} is empty. Give it a row per time and feature.")
    if len(sample) == SAMPLE_BYTES:  # the last line may be cut
        text = text[: text.rfind("\n") + 1] or text
    data = text.encode()
    separator = separator_of(data)
    _, head = next(records(path.name, data, separator))
    names = [cell.strip() for cell in head]
    if not any(names):
        raise ValueError(
            f"{path.name}, line 1 is blank. Remove it: the first line holds the names of the "
            f"columns."
        )
    return _Form(encoding, separator, names, has_grouping_points(data, separator))


_CSV = ("pyarrow", "pyarrow.csv")


def _text_blocks(path: Path, form: _Form, places: list[int]) -> Iterator[list[Any]]:
    pa, csv = (library(module, f"the long table {path.name}") for module in _CSV)
    names = [f"c{j}" for j in range(len(form.head))]
    text = pa.dictionary(pa.int32(), pa.string())
    with _opened(path) as file:
        try:
            reader = csv.open_csv(
                file,
                csv.ReadOptions(
                    block_size=BLOCK_BYTES,
                    column_names=names,
                    skip_rows_after_names=1,
                    encoding="utf8" if form.encoding == "utf-8-sig" else form.encoding,
                ),
                csv.ParseOptions(delimiter=form.separator, newlines_in_values=True),
                csv.ConvertOptions(
                    include_columns=[names[j] for j in places],
                    column_types={names[j]: text for j in places},
                ),
            )
            for batch in reader:
                yield batch.columns
        except pa.ArrowInvalid as error:
            raise _explained(path, form, str(error)) from error


def _explained(path: Path, form: _Form, error: str) -> ValueError:
    """What Arrow found wrong, by line."""
    name = path.name
    with _opened(path) as file:
        try:
            for line, record in records(name, file, form.separator, form.encoding):
                if record and len(record) != len(form.head):
                    return ragged(name, line, len(record), len(form.head), form.separator)
        except ValueError as found:
            return found
    return ValueError(f"{name} cannot be read as a long table: {error}. Check its form.")


def _line(path: Path, form: _Form, n: int) -> int:
    """The line at which row n starts. Slow: for errors only."""
    with _opened(path) as file:
        rows = (
            line
            for line, record in records(path.name, file, form.separator, form.encoding)
            if record
        )
        next(rows)
        return next(line for k, line in enumerate(rows) if k == n)


def read_long_parquet(path: Path, columns: Columns) -> Source:
    file = _parquet_file(path)
    names = file.schema_arrow.names
    for option, name in _options(columns):
        place_of(name, option, names, path.name)
    fields = [file.schema_arrow.field(name) for name in columns.names]
    if any(_EXTENSION in (field.metadata or {}) for field in fields):
        # Periods of pandas are plain numbers to Arrow until pandas has told it of them.
        library(_PANDAS_TYPES, f"the long table {path.name}")
        file = _parquet_file(path)

    def blocks() -> Iterator[list[Any]]:
        with damage_told(path, "Parquet", "Write it again."):
            for batch in file.iter_batches(batch_size=BLOCK_ROWS, columns=columns.names):
                yield [_plain(batch.column(name), path.name) for name in columns.names]

    return Source(path.name, blocks(), lambda n: f"row {n}")


_EXTENSION = b"ARROW:extension:name"
_PANDAS_TYPES = "pandas.core.arrays.arrow.extension_types"


def _parquet_file(path: Path) -> Any:
    parquet = library("pyarrow.parquet", f"the long table {path.name}")
    with damage_told(path, "Parquet", "Write it again."):
        return parquet.ParquetFile(path)


def _plain(column: Any, name: str) -> Any:
    """A column without types that Arrow itself cannot count with."""
    if not hasattr(column, "storage"):
        return column
    library("pandas", f"the long table {name}")
    return arrow_of(column.to_pandas())


def arrow_of(column: Any) -> Any:
    """A column of pandas as an Arrow array: periods are their first moments."""
    pa = library("pyarrow", "a long table")
    if hasattr(column.dtype, "freq") and hasattr(column, "dt"):  # periods
        column = column.dt.to_timestamp()
    try:
        array = pa.Array.from_pandas(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # of several kinds: told apart as text
        array = pa.Array.from_pandas(column.astype("string"))
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


LONG_READERS: dict[str, Callable[[Path, Columns], Source]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"), read_long_text),
    ".parquet": read_long_parquet,
}
