"""A tour of the commands on the embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import data
from .console import Force, Voice, busy, check_out
from .files import header_of, is_model
from .fit import Calibrate, check_origins, fit_table
from .forecast import frame_of, show_forecast, show_notes, write_frame
from .models import calibrate_model, provenance, show_components
from .report import origin
from .settings import Components

QUESTION = (
    "What did presidents of the United States talk about from 1790 to 2021, when did each theme "
    "rise and fall, and what comes next?"
)
_STEPS = 5
_FILES = ("model.npz", "forecast.csv", "report.html")


def demo(
    ctx: typer.Context,
    voice: Voice,
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("results/demo"),
    components: Components = 8,
    starts: Annotated[int, typer.Option(min=1, help="Random starts.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random starts.")] = 0,
    calibrate: Calibrate = 20,
    force: Force = False,
) -> None:
    """Fit, forecast and report on the embedded State of the Union data.

    The files of an earlier demo are replaced; others of the same names only with --force.
    """
    model_path, table_path, report_path = (out / name for name in _FILES)
    for path in (model_path, table_path, report_path):
        check_out("--out", path, force or _is_demo(model_path))
    check_origins(calibrate)
    table = data.read(data.EMBEDDED, data.Reading(), voice)
    from ..estimator import TemporalNMF
    from ..report import write_report

    model = TemporalNMF(components, n_init=starts, random_state=seed, n_jobs=-1)
    fit_table(table, model, voice)
    model.provenance_ = provenance(ctx, data.EMBEDDED)
    show_components(model, voice)
    if calibrate:
        calibrate_model(model, calibrate, voice, _STEPS)
    ahead = model.forecast(_STEPS)
    voice.say("\nThe next five years, by component (words per year):")
    show_forecast(model, ahead, "components", voice, table_path)
    show_notes(ahead, voice)
    model.save(model_path, overwrite=True)
    voice.wrote(model_path)
    write_frame(frame_of(ahead, "features"), table_path)
    voice.wrote(table_path)
    command, source = origin(ctx, model)
    with busy("writing the report"):
        write_report(
            model, report_path, question=QUESTION, command=command, forecast=ahead, source=source,
            overwrite=True,
        )  # fmt: skip
    voice.wrote(report_path)


def _is_demo(path: Path) -> bool:
    """Whether an earlier demo wrote this model, and thus the files beside it."""
    origin = (header_of(path).get("provenance") if is_model(path) else None) or {}
    return str(origin.get("command", "")).startswith("temporalnmf demo")
