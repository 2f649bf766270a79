"""Long tables in files, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..runtime.files import own_text
from .cells import RefusedError, damage_told, library, opened, place_of
from .long import Columns, Source
from .parquet import (
    fixed_width,
    is_nested,
    is_text,
    parquet_batches,
    parquet_file,
    refuse_long_text,
    refuse_much_text,
    refuse_unpacked,
    text_lengths,
)
from .text import (
    about_encoding,
    about_taken_off,
    encoding_of,
    has_grouping_points,
    ragged,
    records,
    separator_of,
)

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

    notes = list(about_encoding(form.encoding))
    blocks = _own_labels(_text_blocks(path, form, places), notes)
    return Source(path.name, blocks, place, commas, notes)


def _own_labels(blocks: Iterable[list[Any]], notes: list[str]) -> Iterator[list[Any]]:
    """Blocks whose times and features, the first two columns, have no apostrophes of ours."""
    for time, feature, *others in blocks:
        yield [_without_apostrophes(time, notes), _without_apostrophes(feature, notes), *others]


def _without_apostrophes(column: Any, notes: list[str]) -> Any:
    pa, pc = (library(module, "a long table") for module in _COMPUTE)
    labels = column.dictionary
    if not pc.any(pc.starts_with(labels, "'")).as_py():
        return column
    texts = [label.strip() for label in labels.to_pylist()]
    notes.extend(note for note in about_taken_off(texts) if note not in notes)
    own = pa.array([own_text(text) for text in texts], labels.type)
    return pa.DictionaryArray.from_arrays(column.indices, own)


def _options(columns: Columns) -> list[tuple[str, str]]:
    return [(option, name) for option, name in columns._asdict().items() if name is not None]


def _form(path: Path) -> _Form:
    with opened(path) as file:
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
_COMPUTE = ("pyarrow", "pyarrow.compute")


def _text_blocks(path: Path, form: _Form, places: list[int]) -> Iterator[list[Any]]:
    pa, csv = (library(module, f"the long table {path.name}") for module in _CSV)
    names = [f"c{j}" for j in range(len(form.head))]
    text = pa.dictionary(pa.int32(), pa.string())
    with opened(path) as file:
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
    with opened(path) as file:
        try:
            for line, record in records(name, file, form.separator, form.encoding):
                if record and len(record) != len(form.head):
                    return ragged(name, line, len(record), len(form.head), form.separator)
        except ValueError as found:
            return found
    return ValueError(f"{name} cannot be read as a long table: {error}. Check its form.")


def _line(path: Path, form: _Form, n: int) -> int:
    """The line at which row n starts. Slow: for errors only."""
    with opened(path) as file:
        rows = (
            line
            for line, record in records(path.name, file, form.separator, form.encoding)
            if record
        )
        next(rows)
        return next(line for k, line in enumerate(rows) if k == n)


def read_long_parquet(path: Path, columns: Columns) -> Source:
    fields = _parquet_fields(path, columns)
    if any(_EXTENSION in (field.metadata or {}) for field in fields):
        # Periods of pandas are plain numbers to Arrow until pandas has told it of them.
        library(_PANDAS_TYPES, f"the long table {path.name}")

    def blocks() -> Iterator[list[Any]]:
        with damage_told(path, "Parquet", "Write it again."):
            for time, feature, *numbers in _parquet_blocks(path, columns.names):
                labels = (_plain(column, path.name) for column in (time, feature))
                values = (
                    _plain(_as_text(column, name, path.name), path.name)
                    for column, name in zip(numbers, columns.names[2:], strict=True)
                )
                yield [*labels, *values]

    return Source(path.name, blocks(), lambda n: f"row {n}")


_EXTENSION = b"ARROW:extension:name"
_PANDAS_TYPES = "pandas.core.arrays.arrow.extension_types"


def _parquet_file(path: Path) -> Any:
    library("pyarrow.parquet", f"the long table {path.name}")
    with damage_told(path, "Parquet", "Write it again."):
        return parquet_file(path)


def _parquet_fields(path: Path, columns: Columns) -> list[Any]:
    """Names and types of columns. What takes more memory than they can mean is refused."""
    with _parquet_file(path) as file, damage_told(path, "Parquet", "Write it again."):
        meta, schema = file.metadata, file.schema_arrow
        for group in range(meta.num_row_groups):  # one after the other is read
            refuse_unpacked(meta, [group])
        rows = max((meta.row_group(g).num_rows for g in range(meta.num_row_groups)), default=0)
    for option, name in _options(columns):
        place_of(name, option, schema.names, path.name)
    fields = [schema.field(name) for name in columns.names]
    for field in fields:
        if is_nested(field.type):
            raise ValueError(
                f"{path.name}: column {field.name!r} holds {field.type!s:.80}, which is neither "
                f"text nor numbers nor dates. Name another column, or write it as text."
            )
        refuse_long_text(path.name, field.name, fixed_width(field.type))
        refuse_much_text(path, rows * fixed_width(field.type))
    return fields


def _parquet_blocks(path: Path, names: list[str]) -> Iterator[list[Any]]:
    """Columns of many rows. Texts are distinct ones and their places, or they are not much."""
    pa = library("pyarrow", f"the long table {path.name}")
    held: list[list[Any]] = []
    rows = size = 0
    for batch in parquet_batches(path, names, BLOCK_ROWS):
        block = [_compact(batch.column(name), name, path.name) for name in names]
        full = rows >= BLOCK_ROWS or size >= BLOCK_BYTES
        if held and (full or any(a.type != b.type for a, b in zip(held[-1], block, strict=True))):
            yield [pa.concat_arrays(parts) for parts in zip(*held, strict=True)]
            held, rows, size = [], 0, 0
        held.append(block)
        rows += batch.num_rows
        size += sum(column.nbytes for column in block)
    if held:
        yield [pa.concat_arrays(parts) for parts in zip(*held, strict=True)]


def _compact(column: Any, name: str, file: str) -> Any:
    """A column of a block without the texts of other blocks, which would be read with each."""
    pa, pc = (library(module, f"the long table {file}") for module in _COMPUTE)
    if pa.types.is_dictionary(column.type):
        used = column.indices.unique().drop_null()
        # Takes nothing from beyond the end, which Arrow has not looked at so far.
        texts = column.dictionary.take(used)
        column = pa.DictionaryArray.from_arrays(pc.index_in(column.indices, used), texts)
    if is_text(column.type):
        refuse_long_text(file, name, int(text_lengths(column).max(initial=0)))
    return column


def _as_text(column: Any, name: str, file: str) -> Any:
    """Bytes in the place of numbers as text, if that is what they are."""
    pa = library("pyarrow", f"the long table {file}")
    if not (pa.types.is_dictionary(column.type) and pa.types.is_binary(column.type.value_type)):
        return column
    try:
        texts = column.dictionary.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise RefusedError(
            f"{file}: column {name!r} holds bytes, not numbers. Name a column of numbers."
        ) from error
    return pa.DictionaryArray.from_arrays(column.indices, texts)


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
