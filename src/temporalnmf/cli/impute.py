"""Fill what is missing in a table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import data
from .console import Force, Json, check_out, clean_errors
from .files import Model, load_model
from .forecast import Coverage, Samples, Seed, frame_of, probabilities, tell_notes, write_frame

if TYPE_CHECKING:
    from ..data.series import Series
    from ..forecasting.forecast import Forecast


def impute(
    model: Model,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            show_default=False,
            help="Another table with the features of the model; the fitted one if not given.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="CSV to write: a row per time.")] = Path("filled.csv"),
    bands: Annotated[
        Path | None, typer.Option(help="CSV to write: the filled entries with intervals.")
    ] = None,
    coverage: Coverage = "0.5,0.9",
    samples: Samples = None,
    seed: Seed = 0,
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
    """Fill what is missing: single entries, and whole periods.

    What was observed is written as it was.
    """
    with clean_errors(json) as voice:
        from ..runtime.files import about_apostrophes
        from ..timeline.grid import time_texts

        how = data.Reading(time, feature, value, exposure, freq, transpose, drop_partial)
        if file is None and how != data.Reading():
            option = next(iter(how.given()))
            raise ValueError(f"{option} is for a FILE after MODEL: name one, or leave it out.")
        reads = [model] if file is None else [model, data.source_path(file)]
        check_out("--out", out, force, reads=reads)
        if bands is not None:
            check_out("--bands", bands, force, reads=[*reads, out])
            if bands.resolve() == out.resolve():
                raise ValueError(f"--bands {bands} is the file of --out. Give each its own.")
        levels = probabilities(coverage)
        fitted = load_model(model)
        table = None
        if file is not None:
            table = data.read(file, how, voice)
            table = data.with_features_of(table, fitted, feature is not None, voice)
        series = (
            fitted._state().data("impute")
            if table is None
            else fitted._series_of(table, None, None)
        )
        smoothed = fitted.smooth(
            table, coverage=levels, n_samples=samples if bands else 1, random_state=seed
        )
        missing = _missing_per_step(series)
        n_entries, n_steps = int(missing.sum()), int((missing > 0).sum())
        whole = int((missing == series.X.shape[1]).sum())
        _write_filled(series, smoothed, out)
        voice.say(
            f"Filled {n_entries:,} of {series.n_steps * series.X.shape[1]:,} entries, in {n_steps} "
            f"of {series.n_steps} steps ({whole} of them wholly missing)."
            if n_entries
            else "Nothing is missing: the table is written as it was."
        )
        voice.wrote(out)
        voice.notes(about_apostrophes([*smoothed.feature_names, *time_texts(smoothed.times)]))
        if bands is not None:
            write_frame(_bands(series, smoothed, missing), bands)
            tell_notes(smoothed, voice)
            voice.wrote(bands)
        voice.answer(
            {
                "out": str(out),
                "bands": None if bands is None else str(bands),
                "entries_filled": n_entries,
                "steps_filled": n_steps,
                "steps_wholly_missing": whole,
                "notes": smoothed.notes,
            }
        )


def _missing_per_step(series: Series) -> Any:
    """Numbers of missing entries (n_steps,)."""
    import numpy as np
    from scipy import sparse

    seen = series.weights > 0.0
    if sparse.issparse(seen):
        return series.X.shape[1] - np.ravel(seen.sum(axis=1))
    return (~np.broadcast_to(seen, series.X.shape)).sum(axis=1)


def _write_filled(series: Series, smoothed: Forecast, path: Path) -> None:
    """A row per time; what was observed to the last digit, whole numbers without a point."""
    from ..messages.formatting import csv_number
    from ..runtime.files import plain_cell, written_whole
    from ..timeline.grid import time_texts

    with (
        written_whole(path) as partial,
        partial.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(["time", *map(plain_cell, smoothed.feature_names.tolist())])
        for n, text in enumerate(time_texts(smoothed.times)):
            x, weight = series.row(n)
            seen = weight > 0.0
            # Over many draws, what is expected takes a while: only where it is wanted.
            expected = x if seen.all() else smoothed.at([n]).values[0]
            observed = (int(c) if float(c).is_integer() else c for c in x.tolist())
            cells = (
                c if known else csv_number(filled)
                for c, known, filled in zip(observed, seen, expected, strict=True)
            )
            writer.writerow([plain_cell(text), *cells])


def _bands(series: Series, smoothed: Forecast, missing: Any) -> Any:
    """The missing entries only, with intervals; a step at a time, since all may be too many."""
    import numpy as np
    import pandas as pd

    frames = []
    for n in np.flatnonzero(missing).tolist():
        frame = frame_of(smoothed.at([n]), "features")
        frames.append(frame[series.row(n)[1] <= 0.0])
    if not frames:
        return frame_of(smoothed.at([0]), "features")[:0]
    return pd.concat(frames, ignore_index=True)
