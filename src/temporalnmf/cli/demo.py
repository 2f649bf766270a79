"""The whole way on the embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import data
from .console import Force, check_out, clean_errors
from .files import header_of, is_model
from .fit import calibrate_model, check_calibrate, fit_table, provenance, show_components
from .forecast import frame_of, show_forecast, tell_notes, write_frame
from .report import write_html

QUESTION = (
    "What did presidents of the United States speak of from 1790 to 2021, when did each theme rise "
    "and fall, and what comes next?"
)
_STEPS = 5
_FILES = ("model.npz", "forecast.csv", "report.html")


def demo(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for what is written.")] = Path("results/demo"),
    components: Annotated[int, typer.Option(min=1, help="Number of components.")] = 8,
    starts: Annotated[int, typer.Option(min=1, help="Random starts.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the random starts.")] = 0,
    calibrate: Annotated[
        int, typer.Option(min=0, help="Forecasts of the past to check intervals with; 0 for none.")
    ] = 20,
    force: Force = False,
) -> None:
    """Fit, forecast and report on the embedded State of the Union data.

    A former demo is replaced; other files of the same names are not, without --force.
    """
    with clean_errors() as voice:
        model_path, table_path, report_path = (out / name for name in _FILES)
        for path in (model_path, table_path, report_path):
            check_out("--out", path, force or _is_demo(model_path))
        check_calibrate(calibrate)
        table = data.read(data.EMBEDDED, data.Reading(), voice)
        settings = {
            "n_components": components, "chain": "rate", "n_init": starts, "random_state": seed,
            "n_jobs": -1,
        }  # fmt: skip
        model = fit_table(table, settings, voice)
        model.provenance_ = provenance(ctx, data.EMBEDDED)
        show_components(model, voice)
        if calibrate:
            calibrate_model(model, calibrate, voice, _STEPS)
        ahead = model.forecast(_STEPS)
        voice.say("\nThe five years after, by component (words per year):")
        show_forecast(model, ahead, "components", voice, table_path)
        tell_notes(ahead, voice)
        model.save(model_path, overwrite=True)
        voice.wrote(model_path)
        write_frame(frame_of(ahead, "features"), table_path)
        voice.wrote(table_path)
        write_html(
            ctx, model, report_path, voice, question=QUESTION, forecast=ahead, overwrite=True
        )


def _is_demo(path: Path) -> bool:
    """Whether a former demo wrote this model, and so the files beside it."""
    if not is_model(path):
        return False
    origin = header_of(path).get("provenance") or {}
    return str(origin.get("command", "")).startswith("temporalnmf demo")
