"""Parquet files that may come from anybody: what their text takes is known before it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runtime.archives import refuse_larger
from .cells import MOST_GROWTH, RefusedError, library

if TYPE_CHECKING:
    from .._typing import Array  # not at run time: it loads the compiler

# Bytes of text in a wide table, which is labels at best, that nobody has to ask about; and of a
# single cell, as in CSV.
HARMLESS_TEXT = 1 << 26
LONGEST_TEXT = 1 << 17
# Rows to read at once of text that Arrow writes out as often as a file refers to it, and of others.
FEW_ROWS, MANY_ROWS = 64, 1 << 19


def parquet_file(path: Path, places: bool = True) -> Any:
    """A Parquet file whose text is read as distinct labels and their places.

    A few bytes can refer to a long text as often as they like, and Arrow would write it out. What
    Python could ask of single columns is never asked: it ends the process if they are damaged.
    """
    parquet = library("pyarrow.parquet", path.name)
    meta = parquet.read_metadata(path)
    kinds = [meta.schema.column(j).physical_type for j in range(meta.num_columns)]
    texts = [j for j, kind in enumerate(kinds) if places and kind == "BYTE_ARRAY"]
    return parquet.ParquetFile(path, metadata=meta, read_dictionary=texts)


def parquet_batches(path: Path, names: list[str], many: int) -> Iterator[Any]:
    """Some columns of some rows each, few where text is written out."""
    done = 0
    for places in (True, False):
        with parquet_file(path, places) as file:
            kinds = [field.type for field in file.schema_arrow if field.name in names]
            written_out = any(is_text(k) and not hasattr(_stored(k), "value_type") for k in kinds)
            rows = FEW_ROWS if written_out else many
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
                # Arrow finds no places if texts are kept as their differences to the one before.
                if not places or "implemented" not in str(error):
                    raise


def is_text(kind: Any) -> bool:
    types, kind = library("pyarrow", "Parquet").types, _stored(kind)
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return str(kind).removeprefix("large_").removesuffix("_view") in ("string", "binary")


def is_nested(kind: Any) -> bool:
    """Lists and structs; intervals of pandas are none."""
    types, kind = library("pyarrow", "Parquet").types, _stored(kind)
    fields = list(kind) if types.is_struct(kind) else []
    if [field.name for field in fields] == ["left", "right"]:
        return not all(types.is_primitive(field.type) for field in fields)
    return bool(types.is_nested(kind))


def _stored(kind: Any) -> Any:
    """What an extension type is kept as."""
    return getattr(kind, "storage_type", kind)


def width_of(kind: Any) -> int:
    """Bytes of a cell, without its text."""
    try:
        return max(8, int(_stored(kind).bit_width) // 8)
    except ValueError:  # not the same in all rows
        return 8


def fixed_width(kind: Any) -> int:
    """Bytes of each cell of a column whose texts have all the same; 0 of others.

    Arrow takes the room of all cells of a group of rows at once.
    """
    fixed = library("pyarrow", "Parquet").types.is_fixed_size_binary(_stored(kind))
    return width_of(kind) if fixed else 0


def text_lengths(column: Any) -> Array:
    """Bytes of each text of a column; of each distinct one if it has places."""
    pa, pc = (library(module, "Parquet") for module in ("pyarrow", "pyarrow.compute"))
    texts = getattr(column, "storage", column)
    texts = texts.dictionary if pa.types.is_dictionary(texts.type) else texts
    lengths = pc.binary_length(texts.cast(pa.large_binary())).fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False))


def refuse_long_text(file: str, column: str, longest: int) -> None:
    if longest > LONGEST_TEXT:
        raise RefusedError(
            f"{file}: column {shortened(column)!r} has a cell of {longest:,} bytes, and labels "
            f"have at most {LONGEST_TEXT:,}. Shorten it, or leave out the column."
        )


def refuse_much_text(path: Path, size: int) -> None:
    most = max(HARMLESS_TEXT, MOST_GROWTH * path.stat().st_size)
    if size > most:
        raise RefusedError(
            f"{path.name} has more than {most:,} bytes of text in its cells, as a file does that "
            f"is made to fill the memory. Keep the columns that are needed only, and short labels."
        )


def shortened(label: object) -> str:
    """A label of a file as errors repeat it."""
    text = str(label)
    return text if len(text) <= 80 else f"{text[:80]}…"


def refuse_unpacked(meta: Any, groups: Iterable[int]) -> None:
    """Refuse groups of rows that say that they do not fit into memory."""
    refuse_larger(sum(meta.row_group(g).total_byte_size for g in groups), "what is in it")


def check_parquet(path: Path, file: Any) -> None:
    """Refuse what takes more memory than such a file can mean, before it is taken."""
    meta, fields = file.metadata, list(file.schema_arrow)
    for field in fields:
        if is_nested(field.type):
            raise RefusedError(
                f"{path.name}: column {shortened(field.name)!r} holds {field.type!s:.80}, not "
                f"numbers. Leave it out, or make columns of numbers of it."
            )
    groups = range(meta.num_row_groups)
    rows = max(meta.num_rows, sum(meta.row_group(g).num_rows for g in groups))
    cells = rows * max(len(fields), 1)
    refuse_larger(
        rows * sum(width_of(field.type) for field in fields), f"a table of {cells:,} cells"
    )
    refuse_unpacked(meta, groups)
    total = 0
    for field in fields:
        for longest, size in _texts(path, field, rows):
            refuse_long_text(path.name, field.name, longest)
            total += size
            refuse_much_text(path, total)


def _texts(path: Path, field: Any, rows: int) -> Iterator[tuple[int, int]]:
    """Bytes of the longest text and of all texts of a column, block by block."""
    if width := fixed_width(field.type):
        yield width, rows * width
    if not is_text(field.type):
        return
    for batch in parquet_batches(path, [field.name], MANY_ROWS):
        for column in batch.columns:  # several, if they share the name
            lengths = text_lengths(column)
            if hasattr(column, "indices"):
                lengths = lengths[column.indices.drop_null().to_numpy()]
            yield int(lengths.max(initial=0)), int(lengths.sum())
