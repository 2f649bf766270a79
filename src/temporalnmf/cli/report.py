"""A model as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import data
from .console import Force, JsonVoice, Voice, busy, check_out
from .files import Model, load_model
from .models import calibrate_model, command_line, summary

if TYPE_CHECKING:
    from ..estimator import TemporalNMF
    from ..forecasting.forecast import Forecast


def report(
    ctx: typer.Context,
    voice: JsonVoice,
    model: Model,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    steps: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Steps to forecast; 0 for none.",
            show_default="depends on the length of the series",
        ),
    ] = None,
    question: Annotated[str | None, typer.Option(help="The question behind the data.")] = None,
    hold_out: Annotated[
        int, typer.Option(min=0, help="Past forecasts to check intervals with; 0 for none.")
    ] = 0,
    force: Force = False,
) -> None:
    """Write a model as one HTML file to read, print and send."""
    check_out("--out", out, force, reads=[model])
    fitted = load_model(model)
    if hold_out and fitted.calibration_ is None:
        calibrate_model(fitted, hold_out, voice, steps or 1)
    write_html(ctx, fitted, out, voice, question=question, steps=steps, force=force)
    voice.answer({"report": str(out), "bytes": out.stat().st_size, **summary(fitted)})


def write_html(
    ctx: typer.Context,
    model: TemporalNMF,
    out: Path,
    voice: Voice,
    *,
    question: str | None,
    steps: int | None = None,
    forecast: Forecast | None = None,
    force: bool,
) -> None:
    """The report, with the commands that led to it."""
    from ..report import write_report

    origin = getattr(model, "provenance_", None) or {}
    commands = dict.fromkeys([origin.get("command"), command_line(ctx)])
    with busy("writing the report"):
        write_report(
            model,
            out,
            question=question,
            command="\n".join(filter(None, commands)),
            steps=steps,
            forecast=forecast,
            source=_source(origin),
            overwrite=force,
        )
    voice.wrote(out)


def _source(origin: dict[str, str]) -> str | None:
    """The data file if it is unchanged, else its name and old checksum."""
    name = origin.get("source")
    if not name:
        return None
    path = Path(name)
    if name != data.EMBEDDED and path.is_file() and data.checksum(path) == origin.get("sha256"):
        return str(path)
    return f"{Path(name).name} (SHA-256 {origin.get('sha256', 'unknown')[:16]}…)"
