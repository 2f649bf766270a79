"""A model as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import data
from .console import Force, JsonVoice, busy, check_out
from .files import Model, load_model
from .fit import Calibrate
from .models import calibrate_model, command_line, summary

if TYPE_CHECKING:
    from ..estimator import TemporalNMF


def report(
    ctx: typer.Context,
    voice: JsonVoice,
    model: Model,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    steps: Annotated[
        int | None,
        typer.Option(min=0, help="Steps to forecast; 0 for none.", show_default="by the length"),
    ] = None,
    covariates: data.Covariates = None,
    question: Annotated[str | None, typer.Option(help="The question behind the data.")] = None,
    hold_out: Calibrate = 0,
    force: Force = False,
) -> None:
    """Write a model as one HTML file to read, print and send."""
    from ..report import write_report

    check_out("--out", out, force, reads=[model, covariates])
    known = data.read_covariates(covariates)
    fitted = load_model(model)
    done = fitted.calibration_
    if hold_out and (done is None or not done.refitted):
        calibrate_model(fitted, hold_out, voice, steps or 1)
    command, source = origin(ctx, fitted)
    with busy("writing the report"):
        write_report(
            fitted, out, question=question, command=command, steps=steps, source=source,
            covariates=known, overwrite=force,
        )  # fmt: skip
    voice.wrote(out)
    voice.answer({"report": str(out), "bytes": out.stat().st_size, **summary(fitted)})


def origin(ctx: typer.Context, model: TemporalNMF) -> tuple[str, str | None]:
    """The commands that led to a report, and the file of the data.

    The file is described by its old checksum if it has changed.
    """
    known = getattr(model, "provenance_", None) or {}
    commands = dict.fromkeys(filter(None, [known.get("command"), command_line(ctx)]))
    name, old = known.get("source"), known.get("sha256", "unknown")
    if name and (
        name in data.EMBEDDED or not Path(name).is_file() or data.checksum(Path(name)) != old
    ):
        name = f"{Path(name).name} (SHA-256 {old[:16]}…)"
    return "\n".join(commands), name or None
