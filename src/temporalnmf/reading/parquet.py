"""Parquet files from untrusted sources: the size of their text is checked before it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from .._typing import Array
from ..runtime.archives import refuse_larger
from .cells import MOST_GROWTH, RefusedError
from .libraries import pa, pc, pq

HARMLESS_TEXT = 1 << 26  # bytes of text in a wide table that need no check
LONGEST_TEXT = 1 << 17  # bytes of a single cell, as in CSV
# Rows to read at once: few if Arrow copies a text for every reference to it, else many.
FEW_ROWS, MANY_ROWS = 64, 1 << 19


def open_file(path: Path, encoded: bool = True) -> pq.ParquetFile:
    """A Parquet file whose text is read dictionary-encoded.

    A few bytes can refer to a long text any number of times, and Arrow would copy it each time.
    Statistics of single columns are never read: damaged ones crash the process.
    """
    meta = pq.read_metadata(path)
    kinds = [meta.schema.column(j).physical_type for j in range(meta.num_columns)]
    texts = [j for j, kind in enumerate(kinds) if encoded and kind == "BYTE_ARRAY"]
    return pq.ParquetFile(path, metadata=meta, read_dictionary=texts)


def batches(path: Path, names: list[str], many: int) -> Iterator[pa.RecordBatch]:
    """Some columns in batches of up to `many` rows, or of few if text is not encoded."""
    done = 0
    for encoded in (True, False):
        with open_file(path, encoded) as file:
            kinds = [field.type for field in file.schema_arrow if field.name in names]
            copied = any(is_text(k) and not hasattr(_stored(k), "value_type") for k in kinds)
            rows = FEW_ROWS if copied else many
            skipped = done
            try:
                for batch in file.iter_batches(batch_size=rows, columns=names):
                    skip = min(skipped, batch.num_rows)
                    skipped -= skip
                    if skip < batch.num_rows:
                        done += batch.num_rows - skip
                        yield batch.slice(skip)
                return
            except (OSError, NotImplementedError) as error:
                # Arrow cannot encode texts that are stored as differences (delta encoding).
                if not encoded or "implemented" not in str(error):
                    raise


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds strings or bytes."""
    kind = _stored(kind)
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return str(kind).removeprefix("large_").removesuffix("_view") in ("string", "binary")


def is_nested(kind: pa.DataType) -> bool:
    """Whether a column holds lists or structs, other than intervals of pandas."""
    kind = _stored(kind)
    fields = list(kind) if pa.types.is_struct(kind) else []
    if [field.name for field in fields] == ["left", "right"]:
        return not all(pa.types.is_primitive(field.type) for field in fields)
    return bool(pa.types.is_nested(kind))


def _stored(kind: pa.DataType) -> pa.DataType:
    """The storage of an extension type."""
    return getattr(kind, "storage_type", kind)


def width_of(kind: pa.DataType) -> int:
    """Bytes of a cell, without its text."""
    try:
        return max(8, int(_stored(kind).bit_width) // 8)
    except ValueError:  # of variable width
        return 8


def fixed_width(kind: pa.DataType) -> int:
    """Bytes of each cell of fixed-width texts, which Arrow allocates all at once; else 0."""
    return width_of(kind) if pa.types.is_fixed_size_binary(_stored(kind)) else 0


def text_lengths(column: pa.Array) -> Array:
    """Bytes of each text of a column; of each distinct one if it is dictionary-encoded."""
    texts = getattr(column, "storage", column)
    texts = texts.dictionary if pa.types.is_dictionary(texts.type) else texts
    lengths = pc.binary_length(texts.cast(pa.large_binary())).fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False))


def refuse_long_text(file: str, column: str, longest: int) -> None:
    if longest > LONGEST_TEXT:
        found = f"{file}: column {shortened(column)!r} has a cell of {longest:,} bytes"
        raise RefusedError(f"{found}; at most {LONGEST_TEXT:,} are allowed. Shorten it.")


def refuse_much_text(path: Path, size: int) -> None:
    most = max(HARMLESS_TEXT, MOST_GROWTH * path.stat().st_size)
    if size > most:
        remedy = "Keep only the columns that are needed, with short labels."
        raise RefusedError(f"{path.name} has more than {most:,} bytes of text. {remedy}")


def shortened(label: object) -> str:
    """A label of a file, short enough for an error."""
    text = str(label)
    return text if len(text) <= 80 else f"{text[:80]}…"


def refuse_unpacked(meta: pq.FileMetaData, groups: Iterable[int]) -> None:
    """Refuse row groups that do not fit into memory."""
    refuse_larger(sum(meta.row_group(g).total_byte_size for g in groups), "its content")


def check(path: Path, file: pq.ParquetFile) -> None:
    """Refuse a file that would take too much memory, before it is read as a whole."""
    meta, fields = file.metadata, list(file.schema_arrow)
    for field in fields:
        if is_nested(field.type):
            found = f"{path.name}: column {shortened(field.name)!r} holds {field.type!s:.80}"
            raise RefusedError(f"{found}, not numbers. Leave it out, or split it into columns.")
    groups = range(meta.num_row_groups)
    rows = max(meta.num_rows, sum(meta.row_group(g).num_rows for g in groups))
    cells = rows * max(len(fields), 1)
    size = rows * sum(width_of(field.type) for field in fields)
    refuse_larger(size, f"a table of {cells:,} cells")
    refuse_unpacked(meta, groups)
    total = 0
    for field in fields:
        for longest, size in _texts(path, field, rows):
            refuse_long_text(path.name, field.name, longest)
            total += size
            refuse_much_text(path, total)


def _texts(path: Path, field: pa.Field, rows: int) -> Iterator[tuple[int, int]]:
    """Bytes of the longest text and of all texts of a column, batch by batch."""
    if width := fixed_width(field.type):
        yield width, rows * width
    if not is_text(field.type):
        return
    for batch in batches(path, [field.name], MANY_ROWS):
        for column in batch.columns:  # several, if they share a name
            lengths = text_lengths(column)
            if hasattr(column, "indices"):
                lengths = lengths[column.indices.drop_null().to_numpy()]
            yield int(lengths.max(initial=0)), int(lengths.sum())
