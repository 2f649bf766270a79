"""A model as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import data
from .console import Force, Json, Voice, busy, check_out, clean_errors
from .files import Model, load_model
from .fit import calibrate_model, command_line, summary

if TYPE_CHECKING:
    from ..estimator import TemporalNMF


def report(
    ctx: typer.Context,
    model: Model,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    steps: Annotated[
        int | None, typer.Option(min=0, help="Steps to forecast; 0 for none, else by the length.")
    ] = None,
    question: Annotated[str | None, typer.Option(help="What was asked, in words.")] = None,
    hold_out: Annotated[
        int, typer.Option(min=0, help="Forecasts of the past to check intervals with.")
    ] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a model as one HTML file to read, print and send."""
    with clean_errors(json) as voice:
        check_out("--out", out, force, reads=[model])
        fitted = load_model(model)
        if hold_out and fitted.calibration_ is None:
            calibrate_model(fitted, hold_out, voice, steps or 1)
        write_html(ctx, fitted, out, voice, question=question, steps=steps, overwrite=force)
        voice.answer({"report": str(out), "bytes": out.stat().st_size, **summary(fitted)})


def write_html(
    ctx: typer.Context, model: TemporalNMF, out: Path, voice: Voice, **options: Any
) -> None:
    """The report, with the commands that led to it."""
    from ..report import write_report

    origin = getattr(model, "provenance_", None) or {}
    commands = dict.fromkeys([origin.get("command"), command_line(ctx)])
    text = "\n".join(command for command in commands if command)
    with busy("writing the report"):
        write_report(model, out, command=text, source=_source(origin), **options)
    voice.wrote(out)


def _source(origin: dict[str, str]) -> str | None:
    """The file of the data, if it is what it was; else its name and what it was."""
    name = origin.get("source")
    if not name:
        return None
    path = Path(name)
    if name != data.EMBEDDED and path.is_file() and data.checksum(path) == origin.get("sha256"):
        return str(path)
    return f"{Path(name).name} (SHA-256 {origin.get('sha256', 'unknown')[:16]}…)"
