"""Forecasts of a model."""

from __future__ import annotations

import csv
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from typer import Option

from ..messages.formatting import csv_number, level_text, number_text
from ..runtime.files import about_apostrophes, plain_cell, written_whole
from ..timeline.grid import DAYS, time_texts
from .console import Force, JsonVoice, Voice, check_out, fitting, listed
from .data import Covariates, read_covariates
from .files import Model, load_model
from .notes import worded

if TYPE_CHECKING:
    import pandas as pd

    from ..estimator import TemporalNMF
    from ..forecasting.forecast import Forecast

Of = Literal["features", "components", "totals"]
Wanted = Literal["features", "components", "totals", "parts"]
Coverage = Annotated[str, Option(help="Probabilities of intervals, separated by commas.")]
Samples = Annotated[
    int | None,
    Option(min=1, help="Simulated futures.", show_default="1000, more for wide intervals"),
]
Seed = Annotated[int, Option(min=0, help="The same seed gives the same numbers.")]

# Largest numbers of rows and columns of a printed table, and of characters of a name.
_MOST_ROWS, _MOST_COLUMNS = 15, 12
_LONGEST_NAME = 40
# Columns of `Forecast.explain` before the numbers: time, component, name.
_BEFORE_PARTS = 3


def forecast(
    voice: JsonVoice,
    model: Model,
    steps: Annotated[int, Option(min=1, help="Steps after the last one.")] = 5,
    of: Annotated[
        Wanted,
        Option(help="What to forecast; 'parts': levels, and factors of seasons and other effects."),
    ] = "features",
    coverage: Coverage = "0.5,0.9",
    exposure: Annotated[
        str | None,
        Option(
            help="Size behind the future steps: a number, or one per step, separated by commas; or "
            "'days', the days in each.",
            show_default="that of the last step; the days, if the model has days",
        ),
    ] = None,
    covariates: Covariates = None,
    sum_: Annotated[
        Literal["steps"] | None, Option("--sum", help="Add up all steps, with intervals.")
    ] = None,
    groups: Annotated[
        Path | None,
        Option(help="CSV with the columns feature and group: add up the features of each."),
    ] = None,
    out: Annotated[Path | None, Option(help="CSV to write: a row per time and feature.")] = None,
    samples: Samples = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Forecast the next steps, with intervals."""
    if out is not None:
        check_out("--out", out, force, reads=[model, groups, covariates])
    _check_parts(of, sum_, groups)
    members = None if groups is None else _groups(groups)
    sizes = None if exposure is None else _sizes(exposure, steps)
    levels = probabilities(coverage)
    fitted = load_model(model)
    ahead = fitted.forecast(
        steps, coverage=levels, exposure=sizes, covariates=read_covariates(covariates),
        n_samples=samples, random_state=seed,
    )  # fmt: skip
    if sum_ is not None or members is not None:
        ahead = ahead.sum(sum_, groups=members)
    if of == "parts":
        show_parts(ahead, voice, out)
    else:
        show_forecast(fitted, ahead, of, voice, out)
    show_notes(ahead, voice)
    if out is not None:
        frame = frame_of(ahead, of)
        write_frame(frame, out)
        voice.wrote(out)
        voice.notes(about_apostrophes(frame.select_dtypes(exclude="number").to_numpy().ravel()))
    if voice.json:
        added = {"sum": sum_, "groups": None if members is None else list(members)}
        known = {"times": time_texts(ahead.times), "point": ahead.point, "coverage": ahead.coverage}
        rows = frame_of(ahead, of).to_dict("records")
        voice.answer(
            {"of": of, **added, **known, "notes": worded(ahead.notes), "rows": rows, "out": out}
        )


def _check_parts(of: str, sum_: str | None, groups: Path | None) -> None:
    if of == "parts" and (sum_ is not None or groups is not None):
        option = f"--sum {sum_}" if sum_ is not None else f"--groups {groups}"
        raise ValueError(f"--of parts is for single steps and all features. Leave out {option}.")


def _groups(path: Path) -> dict[str, list[str]]:
    """The features of each group, from the file of --groups."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        if not {"feature", "group"} <= set(reader.fieldnames or ()):
            columns = ", ".join(map(repr, reader.fieldnames or ())) or "none"
            raise ValueError(f"--groups {path} needs the columns feature and group, not {columns}.")
        found: dict[str, list[str]] = {}
        for row in reader:
            if not row["feature"] or not row["group"]:
                raise ValueError(f"--groups {path}: complete line {reader.line_num}, or delete it.")
            found.setdefault(row["group"], []).append(row["feature"])
    if not found:
        raise ValueError(f"--groups {path} has no rows. Give a row per feature.")
    return found


def probabilities(text: str) -> list[float]:
    """The numbers of --coverage."""
    what = "numbers strictly between 0 and 1"
    return listed("--coverage", text, float, lambda p: 0.0 < p < 1.0, what)


def _sizes(text: str, steps: int) -> list[float] | str:
    """The numbers of --exposure, one per step, or "days"."""
    if text == DAYS:
        return text
    what = "a positive number, or one per step"
    found = listed("--exposure", text, float, lambda size: 0.0 < size < inf, what)
    if len(found) not in (1, steps):
        raise ValueError(f"--exposure {text} has {len(found)} numbers. Give one, or {steps}.")
    return found if len(found) == steps else found * steps


def show_forecast(
    model: TemporalNMF, ahead: Forecast, of: Of, voice: Voice, out: Path | None = None
) -> None:
    """Print means and the widest intervals: a row per step of totals, else a column per step.

    `out` is the file with the complete forecast.
    """
    if of == "totals":
        _show_totals(ahead, voice)
        return
    from ..summary import component_summary

    if of == "components":
        noun, names = "component", [f"{c.number}  {c.name}" for c in component_summary(model)]
    else:
        noun, names = ahead.noun, ahead.feature_names.tolist()
    names = [n if len(n) <= _LONGEST_NAME else f"{n[: _LONGEST_NAME - 1]}…" for n in names]
    rows = np.arange(len(names))
    if len(names) > _MOST_ROWS:
        rows = np.argsort(-ahead.point_of(of)[0], kind="stable")[:_MOST_ROWS]
    T = len(ahead.times)
    some, wide = ahead.at(range(min(T, _MOST_COLUMNS))), max(ahead.coverage)
    bands = some.interval(wide, of) if ahead.has_bands else ()
    parts = [part[:, rows] for part in (some.point_of(of), *bands)]
    columns = [list(map(_cell, *at_step)) for at_step in zip(*parts, strict=True)]
    texts, first = time_texts(some.times), [names[f] for f in rows]
    shown = fitting(texts, columns, voice.width - max(map(len, [noun, *first])))
    table = zip(first, *columns[:shown], strict=True)
    voice.table([noun, *texts[:shown]], list(table), left=(noun,))
    left_out = []
    if len(rows) < len(names):
        left_out.append(f"The {len(rows)} largest of {len(names):,} {noun}s at the first step.")
    if shown < T:
        left_out.append(f"The first {f'{shown} ' if shown > 1 else ''}of {T} steps.")
    if left_out:
        left_out.append(f"All are in {out}." if out else "Show all with --out FILE.csv or --json.")
    if ahead.has_bands:
        left_out.insert(0, f"In brackets: {level_text(wide)} intervals.")
    if left_out:
        voice.say(" ".join(left_out))


def show_parts(ahead: Forecast, voice: Voice, out: Path | None = None) -> None:
    """Print what the expected totals of the first steps consist of, a row per component."""
    shown = max(1, _MOST_ROWS // ahead.activations.shape[1])
    frame = frame_of(ahead.at(range(min(shown, len(ahead.times)))), "parts")
    numbers = frame.columns[_BEFORE_PARTS:]
    rows = [
        [time, str(component), *map(number_text, parts)]
        for time, component, parts in zip(
            frame["time"], frame["component"], frame[numbers].to_numpy(), strict=True
        )
    ]
    voice.table(["time", "component", *numbers], rows, left=("time",))
    if shown < len(ahead.times):
        where = f"All are in {out}." if out else "Show all with --out FILE.csv or --json."
        voice.say(f"The first of {len(ahead.times)} steps. {where}")


def _cell(value: float, *band: float) -> str:
    """A number, and its interval in brackets if there is one."""
    interval = "–".join(map(number_text, band))
    return f"{number_text(value)} ({interval})" if band else number_text(value)


def _show_totals(ahead: Forecast, voice: Voice) -> None:
    columns = {"total": time_texts(ahead.times)}
    columns["mean"] = list(map(number_text, ahead.point_of("totals")))
    if ahead.has_bands:
        columns["median"] = list(map(number_text, ahead.median("totals")))
        for level in ahead.coverage:
            ends = (map(number_text, end) for end in ahead.interval(level, "totals"))
            columns[f"{level_text(level)} interval"] = list(map("–".join, zip(*ends, strict=True)))
    voice.table(list(columns), list(zip(*columns.values(), strict=True)), left=("total",))


def show_notes(ahead: Forecast, voice: Voice) -> None:
    """The notes of a forecast."""
    for note in worded(ahead.notes):
        voice.say(f"Note: {note}", style="yellow")


def frame_of(ahead: Forecast, of: Wanted) -> pd.DataFrame:
    """The frame of a forecast, with times as text."""
    frame = ahead.explain() if of == "parts" else ahead.to_frame(of)
    frame["time"] = np.repeat(time_texts(ahead.times), len(frame) // len(ahead.times))
    return frame


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a CSV file without cells that spreadsheets take as formulas."""
    texts = frame.select_dtypes(exclude="number").columns
    frame = frame.assign(**{name: frame[name].map(plain_cell) for name in texts})
    with written_whole(path) as partial:
        frame.to_csv(partial, index=False, float_format=_csv_cell)


def _csv_cell(value: object) -> str:
    return csv_number(value) if isinstance(value, float) else str(value)
