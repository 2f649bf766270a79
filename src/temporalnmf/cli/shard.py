"""From a table of any size to a folder of shards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import data
from .console import Force, Json, Voice, busy, check_out, clean_errors, progress_bar

if TYPE_CHECKING:
    from ..reading.long_columns import Columns
    from ..shards import Shards


def shard(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A table of any kind that fit reads; or, with --time and --feature, a folder of "
            "Parquet files (or CSV) with a row per time and feature, of any number of rows.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    shards: Annotated[
        int | None,
        typer.Option(min=1, help="Number of shards; else as many as suit the data."),
    ] = None,
    time: data.Time = None,
    feature: data.Feature = None,
    value: data.Value = None,
    exposure: data.Exposure = None,
    freq: data.Freq = None,
    transpose: data.Transpose = False,
    drop_partial: data.DropPartial = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a table as a folder of shards, for data larger than memory.

    A long table is sorted on disk, so it may have more rows than memory takes. What was understood
    is printed: read it.
    """
    with clean_errors(json) as voice:
        how = data.Reading(time, feature, value, exposure, freq, transpose, drop_partial)
        path = data.source_path(source)
        columns = _columns(how, path)
        _check_out(out, force, path)
        if columns is None:
            made = _wide(source, how, out, shards, force, voice)
        else:
            made = _long(path, columns, how, out, shards, force, voice)
        size = sum(file.stat().st_size for file in made.path.iterdir())
        nonzeros = int(made.nonzeros.sum())
        voice.say(f"{nonzeros:,} non-zeros in {made.n_shards:,} shards, {size / 1e6:,.1f} MB")
        voice.wrote(out)
        voice.answer({"shards": str(out), "bytes": size, **_summary(made)})


def _columns(how: data.Reading, path: Path) -> Columns | None:
    from ..reading.long_columns import Columns

    columns = Columns.of(how.time, how.feature, how.value, how.exposure, how.transpose)
    if columns is None and path.is_dir():
        raise ValueError(
            f"{path} is a folder: name its columns with --time and --feature. A table with a row "
            f"per time is one file."
        )
    return columns


def _check_out(out: Path, force: bool, source: Path) -> None:
    """Refuse a place to write to before the long work, not after it."""
    from ..shards.folder import check_folder

    places = [out.resolve(), *out.resolve().parents]
    if source.is_dir() and source.resolve() in places:
        raise ValueError(f"--out {out} lies in the folder that is read. Name another place.")
    if out.is_dir():
        check_folder(out, force)
    else:
        check_out("--out", out, force=False, reads=[source])


def _wide(
    source: str, how: data.Reading, out: Path, n_shards: int | None, force: bool, voice: Voice
) -> Shards:
    from ..shards import write_shards

    table = data.read(source, how, voice)
    with busy("writing shards"):
        return write_shards(
            out,
            table.X,
            names=table.features,
            timeline=table.timeline,
            exposure=table.exposure,
            observed=table.observed,
            notes=table.notes,
            n_shards=n_shards,
            overwrite=force,
        )


def _long(
    path: Path,
    columns: Columns,
    how: data.Reading,
    out: Path,
    n_shards: int | None,
    force: bool,
    voice: Voice,
) -> Shards:
    from ..shards import shard_long

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


def _summary(made: Shards) -> dict[str, Any]:
    """A folder for machines."""
    from ..timeline.grid import time_texts

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
