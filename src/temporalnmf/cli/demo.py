"""A tour of the commands on the embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from . import data
from .console import Force, Voice, busy, check_out
from .files import header_of, is_model
from .fit import Calibrate, check_origins, fit_table
from .forecast import Of, frame_of, show_forecast, show_notes, write_frame
from .models import calibrate_model, provenance, show_components, show_seasons
from .report import origin

if TYPE_CHECKING:
    from ..estimator import TemporalNMF


class _Part(NamedTuple):
    """What the demo shows of one set of embedded data."""

    source: str
    title: str
    question: str
    components: int
    steps: int
    of: Of
    ahead: str  # what the table of the forecast shows
    files: tuple[str, str, str]  # model, forecast and report
    season: bool = False


_PARTS = (
    _Part(
        "sotu",
        "State of the Union",
        "What did presidents of the United States talk about from 1790 to 2021, when did each "
        "theme rise and fall, and what comes next?",
        8, 5, "components",
        "The next five years, by component (words per year):",
        ("model.npz", "forecast.csv", "report.html"),
    ),
    _Part(
        "flights2001",
        "Flights",
        "Which airports of the United States share a rhythm, how did it change from January to "
        "June 2001, and how many flights leave in the next two weeks?",
        5, 14, "totals",
        "The next two weeks (departures per day, all airports):",
        ("flights_model.npz", "flights_forecast.csv", "flights_report.html"),
        season=True,
    ),
)  # fmt: skip
_COMPONENTS = ", ".join(f"{part.components} for {part.source}" for part in _PARTS)


class _Options(NamedTuple):
    """Options that hold for all parts."""

    out: Path
    components: int | None
    starts: int
    seed: int
    calibrate: int


def demo(
    ctx: typer.Context,
    voice: Voice,
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("results/demo"),
    components: Annotated[
        int | None,
        typer.Option(min=1, help="Number of components.", show_default=_COMPONENTS),
    ] = None,
    starts: Annotated[int, typer.Option(min=1, help="Random starts.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random starts.")] = 0,
    calibrate: Calibrate = 20,
    force: Force = False,
) -> None:
    """Fit, forecast and report on the embedded data.

    The words of the State of the Union addresses by year, and departures per airport and day, which
    have a weekly season. The files of an earlier demo are replaced; others of the same names only
    with --force.
    """
    for part in _PARTS:
        replaced = force or _is_demo(out / part.files[0])
        for name in part.files:
            check_out("--out", out / name, replaced)
    check_origins(calibrate)
    options = _Options(out, components, starts, seed, calibrate)
    for part in _PARTS:
        _show(ctx, part, options, voice)
    voice.say("\nOpen these reports in a browser:")
    for part in _PARTS:
        voice.say(f"  {part.title + ':':<20}{out / part.files[2]}")


def _show(ctx: typer.Context, part: _Part, options: _Options, voice: Voice) -> None:
    """Fit, forecast and report on one set of data."""
    from ..estimator import TemporalNMF

    if part is not _PARTS[0]:
        voice.say()
    voice.say(part.title, style="bold")
    table = data.read(part.source, data.Reading(), voice)
    n_components = options.components or part.components
    model = TemporalNMF(n_components, n_init=options.starts, random_state=options.seed, n_jobs=-1)
    fit_table(table, model, voice)
    model.provenance_ = provenance(ctx, part.source)
    show_components(model, voice)
    if part.season:
        show_seasons(model, voice)
    if options.calibrate:
        calibrate_model(model, options.calibrate, voice, part.steps)
    _write(ctx, part, model, options.out, voice)


def _write(ctx: typer.Context, part: _Part, model: TemporalNMF, out: Path, voice: Voice) -> None:
    """The forecast, on the terminal and as a file, the model and the report."""
    from ..report import write_report

    model_path, table_path, report_path = (out / name for name in part.files)
    ahead = model.forecast(part.steps)
    voice.say(f"\n{part.ahead}")
    show_forecast(model, ahead, part.of, voice, table_path)
    if part.of == "totals":
        voice.say("All of them together:")
        show_forecast(model, ahead.sum("steps"), part.of, voice)
    show_notes(ahead, voice)
    model.save(model_path, overwrite=True)
    voice.wrote(model_path)
    write_frame(frame_of(ahead, "features"), table_path)
    voice.wrote(table_path)
    command, source = origin(ctx, model)
    with busy("writing the report"):
        write_report(
            model, report_path, question=part.question, command=command, forecast=ahead,
            source=source, overwrite=True,
        )  # fmt: skip
    voice.wrote(report_path)


def _is_demo(path: Path) -> bool:
    """Whether an earlier demo wrote this model, and thus the files beside it."""
    origin = (header_of(path).get("provenance") if is_model(path) else None) or {}
    return str(origin.get("command", "")).startswith("temporalnmf demo")
