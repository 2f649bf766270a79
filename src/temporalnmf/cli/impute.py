"""Fill missing entries of a table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from typer import Argument, Option

from ..messages.formatting import csv_number
from ..runtime.files import about_apostrophes, plain_cell, written_whole
from ..timeline.grid import time_texts
from . import data
from .console import Force, JsonVoice, check_out
from .files import Model, load_model
from .forecast import Coverage, Samples, Seed, frame_of, probabilities, show_notes, write_frame
from .notes import worded

if TYPE_CHECKING:
    import pandas as pd

    from .._typing import Array
    from ..data.series import Series
    from ..forecasting.forecast import Forecast


def impute(
    voice: JsonVoice,
    model: Model,
    how: data.Reading,
    file: Annotated[
        str | None,
        Argument(
            metavar="[FILE]", help="Another table of the same features.", show_default="the fitted"
        ),
    ] = None,
    out: Annotated[Path, Option(help="CSV to write: a row per time.")] = Path("filled.csv"),
    bands: Annotated[Path | None, Option(help="CSV of the filled entries with intervals.")] = None,
    covariates: data.Covariates = None,
    coverage: Coverage = "0.5,0.9",
    samples: Samples = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Fill missing entries and missing periods.

    Observed entries are written unchanged.
    """
    if file is None:
        how.refuse("this is for a FILE after MODEL. Name one, or leave it out.")
    source = None if file is None else data.source_path(file)
    _check_out([model, source, covariates], out, bands, force)
    known = data.read_covariates(covariates)
    levels = probabilities(coverage)
    fitted = load_model(model)
    table = None
    if file is None:
        series = fitted._state().data("impute")
    else:
        table = data.read(file, how, voice)
        table = data.with_features_of(table, fitted, how.feature is not None, voice)
        series = fitted._series_of(table, None, None)
    n_samples = samples if bands else 1
    smoothed = fitted.smooth(
        table, covariates=known, coverage=levels, n_samples=n_samples,
        random_state=seed,
    )  # fmt: skip
    missing = _missing_per_step(series)
    filled = {
        "entries_filled": int(missing.sum()),
        "steps_filled": int((missing > 0).sum()),
        "steps_wholly_missing": int((missing == series.X.shape[1]).sum()),
    }
    _write_filled(series, smoothed, out)
    entries, steps, wholly = filled.values()
    voice.say(
        f"Filled {entries:,} of {series.n_steps * series.X.shape[1]:,} entries, in {steps} of "
        f"{series.n_steps} steps ({wholly} of them wholly missing)."
        if entries
        else "Nothing is missing: the table is written unchanged."
    )
    voice.wrote(out)
    voice.notes(about_apostrophes([*smoothed.feature_names, *time_texts(smoothed.times)]))
    if bands is not None:
        write_frame(_bands(series, smoothed, missing), bands)
        show_notes(smoothed, voice)
        voice.wrote(bands)
    voice.answer({"out": out, "bands": bands, **filled, "notes": worded(smoothed.notes)})


def _check_out(reads: list[Path | None], out: Path, bands: Path | None, force: bool) -> None:
    check_out("--out", out, force, reads=reads)
    if bands is not None:
        check_out("--bands", bands, force, reads=[*reads, out])
        if bands.resolve() == out.resolve():
            raise ValueError(f"--bands {bands} is the file of --out. Choose another name.")


def _missing_per_step(series: Series) -> Array:
    """Numbers of missing entries (n_steps,)."""
    from scipy import sparse

    seen = series.weights > 0.0
    if sparse.issparse(seen):
        return series.X.shape[1] - np.ravel(seen.sum(axis=1))
    return (~np.broadcast_to(seen, series.X.shape)).sum(axis=1)


def _write_filled(series: Series, smoothed: Forecast, path: Path) -> None:
    """A row per time: observed entries with all digits, integers without a decimal point."""
    with written_whole(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["time", *map(plain_cell, smoothed.feature_names.tolist())])
        for n, text in enumerate(time_texts(smoothed.times)):
            x, weight = series.row(n)
            seen = weight > 0.0
            # The mean over many draws is slow: only if it is needed.
            expected = x if seen.all() else smoothed.at([n]).values[0]
            observed = (int(c) if float(c).is_integer() else c for c in x.tolist())
            cells = (
                c if known else csv_number(filled)
                for c, known, filled in zip(observed, seen, expected, strict=True)
            )
            writer.writerow([plain_cell(text), *cells])


def _bands(series: Series, smoothed: Forecast, missing: Array) -> pd.DataFrame:
    """The missing entries with intervals; step by step, to save memory."""
    import pandas as pd

    frames = []
    for n in np.flatnonzero(missing).tolist():
        frame = frame_of(smoothed.at([n]), "features")
        frames.append(frame[series.row(n)[1] <= 0.0])
    if not frames:
        return frame_of(smoothed.at([0]), "features")[:0]
    return pd.concat(frames, ignore_index=True)
