"""From a table of any size to a folder of shards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..timeline.grid import time_texts
from . import data
from .console import Force, JsonVoice, Voice, busy, check_out, progress_bar

if TYPE_CHECKING:
    from ..reading.long_columns import Columns
    from ..shards import Shards


def shard(
    voice: JsonVoice,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A table of any kind that fit reads; or, with --time and --feature, a folder of "
            "Parquet files (or CSV) with a row per time and feature, of any number of rows.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    how: data.Reading,
    shards: Annotated[
        int | None,
        typer.Option(min=1, help="Number of shards.", show_default="depends on the data"),
    ] = None,
    force: Force = False,
) -> None:
    """Write a table as a folder of shards, for data larger than memory.

    A long table is sorted on disk, and may have more rows than fit into memory. The command prints
    what it understood: read it.
    """
    columns_for(how, data.source_path(source))
    _check_out(out, force, data.source_path(source))
    made = sharded(source, how, out, voice, shards, force)
    size = sum(file.stat().st_size for file in made.path.iterdir())
    voice.say(
        f"{made.nonzeros.sum():,} non-zeros in {made.n_shards:,} shards, {size / 1e6:,.1f} MB"
    )
    voice.wrote(out)
    voice.answer({"shards": str(out), "bytes": size, **_summary(made)})


def columns_for(how: data.Reading, path: Path) -> Columns | None:
    """The columns of a long table, or None for a wide one."""
    from ..reading.long_columns import Columns

    columns = Columns.of(how.time, how.feature, how.value, how.exposure, how.transpose)
    if columns is None and path.is_dir():
        remedy = (
            "name its columns with --time and --feature. A table with a row per time is one file."
        )
        raise ValueError(f"{path} is a folder: {remedy}")
    return columns


def sharded(
    source: str,
    how: data.Reading,
    out: Path,
    voice: Voice,
    n_shards: int | None = None,
    force: bool = False,
) -> Shards:
    """Write a table as shards."""
    from ..shards import shard_long, write_shards

    path = data.source_path(source)
    columns = columns_for(how, path)
    if columns is None:
        table = data.read(source, how, voice)
        with busy("writing shards"):
            return write_shards(
                out,
                table.X,
                names=table.features,
                timeline=table.timeline,
                exposure=table.sizes,
                observed=table.observed,
                notes=table.notes,
                n_shards=n_shards,
                overwrite=force,
            )
    with progress_bar("rows read") as progress:
        made = shard_long(
            path,
            out,
            columns,
            freq=how.freq,
            drop_partial=how.drop_partial,
            n_shards=n_shards,
            overwrite=force,
            progress=progress,
        )
    voice.say(f"{path}: {made.n_times} steps x {made.n_features} features")
    voice.notes(made.notes)
    return made


def _check_out(out: Path, force: bool, source: Path) -> None:
    """Refuse a path that cannot be written to, before the work begins."""
    from ..shards.folder import check_folder

    if source.is_dir() and source.resolve() in (out.resolve(), *out.resolve().parents):
        raise ValueError(f"--out {out} lies in the input folder. Choose another folder.")
    if out.is_dir():
        check_folder(out, force)
    else:
        check_out("--out", out, force=False, reads=[source])


def _summary(made: Shards) -> dict[str, object]:
    """A folder of shards as JSON."""
    texts = time_texts(made.timeline.times)
    return {
        "notes": made.notes,
        "n_steps": made.n_times,
        "n_features": made.n_features,
        "n_shards": made.n_shards,
        "nonzeros": int(made.nonzeros.sum()),
        "first": texts[0],
        "last": texts[-1],
        "every": made.timeline.every,
        "gaps": [text for text, seen in zip(texts, made.observed, strict=True) if not seen],
        "exposure": bool((made.exposure != 1.0).any()),
    }
