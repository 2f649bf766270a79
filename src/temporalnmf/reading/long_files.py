"""Long tables in files, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ..runtime.files import own_text
from . import parquet, text
from .cells import RefusedError, damage_told, opened
from .libraries import load, pa, pa_csv, pc, pd
from .long_columns import Columns, Source, unknown_type

BLOCK_BYTES = 16 << 20  # of text
BLOCK_ROWS = 1 << 19  # of Parquet
SAMPLE_BYTES = 1 << 18


class _Form(NamedTuple):
    """The format of a text file."""

    encoding: str
    separator: str
    head: list[str]
    grouped: bool  # points separate thousands


def read_long_text(path: Path, columns: Columns) -> Source:
    form = _form(path)
    places = columns.places(form.head, path.name)

    def place(n: int) -> str:
        return f"line {_line(path, form, n)}"

    notes = list(text.about_encoding(form.encoding))
    blocks = (
        [_without_apostrophes(time, notes), _without_apostrophes(feature, notes), *others]
        for time, feature, *others in text_blocks(path, form, places)
    )
    thousands = "," if form.separator == "," else "." if form.grouped else ""
    return Source(path.name, blocks, place, form.separator == ";", thousands, notes)


def _without_apostrophes(column: pa.DictionaryArray, notes: list[str]) -> pa.DictionaryArray:
    labels = column.dictionary
    if not pc.any(pc.starts_with(labels, "'")).as_py():
        return column
    texts = [label.strip() for label in labels.to_pylist()]
    notes.extend(note for note in text.about_taken_off(texts) if note not in notes)
    own = pa.array([own_text(text) for text in texts], labels.type)
    return pa.DictionaryArray.from_arrays(column.indices, own)


def _form(path: Path) -> _Form:
    with opened(path) as file:
        encoding = text.encoding_of(path.name, file)
        file.seek(0)
        sample = file.read(SAMPLE_BYTES)
    start = sample.decode(encoding, errors="ignore")
    if not start.strip():
        raise ValueError(f"{path.name} is empty. Give it a row per time and feature.")
    if len(sample) == SAMPLE_BYTES:  # the last line may be incomplete
        start = start[: start.rfind("\n") + 1] or start
    data = start.encode()
    separator = text.separator_of(data)
    _, head = next(text.records(path.name, data, separator))
    names = [cell.strip() for cell in head]
    if not any(names):
        raise ValueError(f"{path.name}, line 1 is blank. Remove it: it holds the column names.")
    return _Form(encoding, separator, names, text.has_grouping_points(data, separator))


def text_blocks(path: Path, form: _Form, places: list[int]) -> Iterator[list[pa.Array]]:
    names = [f"c{j}" for j in range(len(form.head))]
    kind = pa.dictionary(pa.int32(), pa.string())
    with opened(path) as file:
        try:
            reader = pa_csv.open_csv(
                file,
                pa_csv.ReadOptions(
                    block_size=BLOCK_BYTES,
                    column_names=names,
                    skip_rows_after_names=1,
                    encoding="utf8" if form.encoding == "utf-8-sig" else form.encoding,
                ),
                pa_csv.ParseOptions(delimiter=form.separator, newlines_in_values=True),
                pa_csv.ConvertOptions(
                    include_columns=[names[j] for j in places],
                    column_types={names[j]: kind for j in places},
                ),
            )
            for batch in reader:
                yield batch.columns
        except pa.ArrowInvalid as error:
            raise _explained(path, form, str(error)) from error


def _explained(path: Path, form: _Form, error: str) -> ValueError:
    """An error of Arrow, with the line it occurred in."""
    name = path.name
    with opened(path) as file:
        try:
            for line, record in text.records(name, file, form.separator, form.encoding):
                if record and len(record) != len(form.head):
                    return text.ragged(name, line, len(record), len(form.head), form.separator)
        except ValueError as found:
            return found
    return ValueError(f"{name} cannot be read as a long table: {error}. Check its form.")


def _line(path: Path, form: _Form, n: int) -> int:
    """The line at which row n starts. Slow: for errors only."""
    with opened(path) as file:
        records = text.records(path.name, file, form.separator, form.encoding)
        lines = (line for line, record in records if record)
        return next(islice(lines, n + 1, None))  # after the header


def read_long_parquet(path: Path, columns: Columns) -> Source:
    fields = _parquet_fields(path, columns)
    if any(_EXTENSION in (field.metadata or {}) for field in fields):
        # Arrow reads periods of pandas as plain numbers until pandas has registered its types.
        load("pandas.core.arrays.arrow.extension_types")

    def blocks() -> Iterator[list[pa.Array]]:
        with damage_told(path, "Parquet", "Write it again."):
            for time, feature, *numbers in _parquet_blocks(path, columns.names):
                values = (
                    _as_text(column, name, path.name)
                    for column, name in zip(numbers, columns.names[2:], strict=True)
                )
                yield [_plain(column) for column in (time, feature, *values)]

    return Source(path.name, blocks(), lambda n: f"row {n}")


_EXTENSION = b"ARROW:extension:name"


def column_names(path: Path) -> list[str]:
    """Names of the columns of a long table."""
    if path.suffix.lower() != ".parquet":
        return _form(path).head
    with damage_told(path, "Parquet", "Write it again."), parquet.open_file(path) as file:
        return list(file.schema_arrow.names)


def _parquet_fields(path: Path, columns: Columns) -> list[pa.Field]:
    """The fields of the columns; refused if they would take too much memory."""
    with damage_told(path, "Parquet", "Write it again."), parquet.open_file(path) as file:
        meta, schema = file.metadata, file.schema_arrow
        for group in range(meta.num_row_groups):  # read one after the other
            parquet.refuse_unpacked(meta, [group])
        rows = max((meta.row_group(g).num_rows for g in range(meta.num_row_groups)), default=0)
    columns.places(schema.names, path.name)
    fields = [schema.field(name) for name in columns.names]
    for field in fields:
        if parquet.is_nested(field.type):
            raise unknown_type(f"{path.name}: column {field.name!r}", field.type)
        parquet.refuse_long_text(path.name, field.name, parquet.fixed_width(field.type))
        parquet.refuse_much_text(path, rows * parquet.fixed_width(field.type))
    return fields


def _parquet_blocks(path: Path, names: list[str]) -> Iterator[list[pa.Array]]:
    """Columns in blocks of many rows, or of few if their texts are not dictionary-encoded."""
    held: list[list[pa.Array]] = []
    rows = size = 0
    for batch in parquet.batches(path, names, BLOCK_ROWS):
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


def _compact(column: pa.Array, name: str, file: str) -> pa.Array:
    """A column of a block without the texts that only other blocks use."""
    if pa.types.is_dictionary(column.type):
        used = column.indices.unique().drop_null()
        # `take` checks the indices, which Arrow has not done before.
        texts = column.dictionary.take(used)
        column = pa.DictionaryArray.from_arrays(pc.index_in(column.indices, used), texts)
    if parquet.is_text(column.type):
        parquet.refuse_long_text(file, name, int(parquet.text_lengths(column).max(initial=0)))
    return column


def _as_text(column: pa.Array, name: str, file: str) -> pa.Array:
    """A column of bytes as text, if they are text."""
    if not (pa.types.is_dictionary(column.type) and pa.types.is_binary(column.type.value_type)):
        return column
    try:
        texts = column.dictionary.cast(pa.string())
    except pa.ArrowInvalid as error:
        found = f"{file}: column {name!r} holds bytes, not numbers"
        raise RefusedError(f"{found}. Name a column of numbers.") from error
    return pa.DictionaryArray.from_arrays(column.indices, texts)


def _plain(column: pa.Array) -> pa.Array:
    """A column without extension types."""
    return arrow_of(column.to_pandas()) if hasattr(column, "storage") else column


def arrow_of(column: pd.Series) -> pa.Array:
    """A column of pandas as an Arrow array; periods become their starts."""
    if hasattr(column.dtype, "freq") and hasattr(column, "dt"):  # periods
        column = column.dt.to_timestamp()
    try:
        array = pa.Array.from_pandas(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # of mixed types: parsed as text
        array = pa.Array.from_pandas(column.astype("string"))
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


LONG_READERS: dict[str, Callable[[Path, Columns], Source]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"), read_long_text),
    ".parquet": read_long_parquet,
}


def unknown_suffix(path: Path, tables: str, known: Iterable[str]) -> ValueError:
    found = f"{path.name} has the suffix {path.suffix!r}, which is not known for {tables}"
    return ValueError(f"{found}. Known are {', '.join(known)}; save a spreadsheet as CSV.")
