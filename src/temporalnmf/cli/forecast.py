"""Continue a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .console import Force, Json, Voice, check_out, clean_errors, in_options
from .files import Model, load_model

if TYPE_CHECKING:
    from ..estimator import TemporalNMF
    from ..forecasting.forecast import Forecast

Of = Literal["features", "components", "totals"]
Coverage = Annotated[str, typer.Option(help="Probabilities of intervals, with commas between.")]
Samples = Annotated[
    int | None,
    typer.Option(min=1, help="Simulated futures; 1000, or more if wide intervals take it."),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")]

# Rows and columns of a printed table, and characters of a name in it, at the most.
_MOST_ROWS, _MOST_COLUMNS = 15, 12
_LONGEST_NAME = 40


def forecast(
    model: Model,
    steps: Annotated[int, typer.Option(min=1, help="Steps after the last one.")] = 5,
    of: Annotated[Of, typer.Option(help="Of what.")] = "features",
    coverage: Coverage = "0.5,0.9",
    exposure: Annotated[
        str | None,
        typer.Option(
            help="Size behind the future steps: a number, or one per step with commas between; "
            "that of the last step if not given."
        ),
    ] = None,
    sum_: Annotated[
        Literal["steps"] | None, typer.Option("--sum", help="Add up all steps, with intervals.")
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(help="CSV with the columns feature and group: add up the features of each."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV to write: a row per time and feature.")] = (
        None
    ),
    samples: Samples = None,
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Continue a model, with intervals."""
    with clean_errors(json) as voice:
        from ..runtime.files import about_apostrophes
        from ..timeline.grid import time_texts

        if out is not None:
            check_out("--out", out, force, reads=[model] if groups is None else [model, groups])
        members = None if groups is None else groups_of(groups)
        sizes = None if exposure is None else sizes_of(exposure, steps)
        levels = probabilities(coverage)
        fitted = load_model(model)
        ahead = fitted.forecast(
            steps, coverage=levels, exposure=sizes, n_samples=samples, random_state=seed
        )
        if sum_ is not None or members is not None:
            ahead = ahead.sum(sum_, groups=members)
        show_forecast(fitted, ahead, of, voice, out)
        tell_notes(ahead, voice)
        if out is not None:
            frame = frame_of(ahead, of)
            write_frame(frame, out)
            voice.wrote(out)
            texts = frame.select_dtypes(exclude="number")
            voice.notes(about_apostrophes(texts.to_numpy().ravel()))
        if json:
            rows = frame_of(ahead, of).to_dict("records")
            voice.answer(
                {
                    "of": of,
                    "sum": sum_,
                    "groups": None if members is None else list(members),
                    "times": time_texts(ahead.times),
                    "point": ahead.point,
                    "coverage": ahead.coverage,
                    "notes": ahead.notes,
                    "rows": rows,
                    "out": None if out is None else str(out),
                }
            )


def groups_of(path: Path) -> dict[str, list[str]]:
    """Of --groups: the features of each group."""
    import csv

    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        missing = {"feature", "group"} - set(reader.fieldnames or ())
        if missing:
            raise ValueError(
                f"--groups {path}: there is no column {min(missing)!r}, only "
                f"{', '.join(map(repr, reader.fieldnames or ())) or 'nothing'}. Give the columns "
                f"feature and group."
            )
        found: dict[str, list[str]] = {}
        for row in reader:
            feature, group = row["feature"], row["group"]
            if not feature or not group:
                raise ValueError(
                    f"--groups {path}: line {reader.line_num} has no feature, or no group. Fill "
                    f"it in, or leave it out."
                )
            found.setdefault(group, []).append(feature)
    if not found:
        raise ValueError(f"--groups {path}: it has no rows. Name a feature and its group in each.")
    return found


def probabilities(text: str) -> tuple[float, ...]:
    """Of --coverage."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0.0 < p < 1.0 for p in found):
        raise ValueError(
            f"--coverage {text}: expected numbers strictly between 0 and 1, with commas between, "
            f"such as 0.5,0.9."
        )
    return found


def sizes_of(text: str, steps: int) -> list[float]:
    """Of --exposure: one per step."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0.0 < size < float("inf") for size in found):
        raise ValueError(
            f"--exposure {text}: expected a positive number, or one per step with commas between."
        )
    if len(found) not in (1, steps):
        raise ValueError(
            f"--exposure {text}: these are {len(found)} numbers for {steps} steps. Give one, or "
            f"{steps}."
        )
    return found if len(found) == steps else found * steps


def show_forecast(
    model: TemporalNMF, ahead: Forecast, of: Of, voice: Voice, out: Path | None = None
) -> None:
    """Means and the widest intervals: a row per step of totals, else a column per step.

    `out` is the file that holds what is not shown.
    """
    if of == "totals":
        _show_totals(ahead, voice)
        return
    import numpy as np

    from ..messages.formatting import level_text
    from ..summary import component_summary
    from ..timeline.grid import time_texts

    if of == "components":
        names = [f"{one.number}  {one.name}" for one in component_summary(model)]
    else:
        names = ahead.feature_names.tolist()
    names = [n if len(n) <= _LONGEST_NAME else f"{n[: _LONGEST_NAME - 1]}…" for n in names]
    rows = np.arange(len(names))
    if len(names) > _MOST_ROWS:
        rows = np.argsort(-ahead.point_of(of)[0], kind="stable")[:_MOST_ROWS]
    T = len(ahead.times)
    some, wide = ahead.at(range(min(T, _MOST_COLUMNS))), max(ahead.coverage)
    point = some.point_of(of)[:, rows]
    columns = [[_number(value) for value in at_step] for at_step in point]
    if ahead.has_bands:
        low, high = (end[:, rows] for end in some.interval(wide, of))
        columns = [list(map(_with_band, *parts)) for parts in zip(point, low, high, strict=True)]
    texts, first = time_texts(some.times), [names[f] for f in rows]
    noun = "component" if of == "components" else ahead.noun
    shown = _fitting(texts, columns, voice.width - max(map(len, [noun, *first])))
    table = zip(first, *columns[:shown], strict=True)
    voice.table([noun, *texts[:shown]], list(table), left=(noun,))
    words = []
    if ahead.has_bands:
        words.append(f"In brackets: {level_text(wide)} intervals.")
    if len(rows) < len(names):
        words.append(f"The {len(rows)} largest of {len(names):,} {noun}s at the first step.")
    if shown < T:
        words.append(
            f"The first {shown} of {T} steps." if shown > 1 else f"The first of {T} steps."
        )
    if len(words) > ahead.has_bands:
        words.append(f"All are in {out}." if out else "--out FILE.csv writes all, --json shows it.")
    if words:
        voice.say(" ".join(words))


def _fitting(headings: list[str], columns: list[list[str]], width: int) -> int:
    """How many of the first columns there is room for, at least one."""
    left = width - 3
    for n, (heading, column) in enumerate(zip(headings, columns, strict=True)):
        left -= max(map(len, [heading, *column])) + 2
        if left < 0:
            return max(n, 1)
    return len(columns)


def _with_band(value: float, low: float, high: float) -> str:
    return f"{_number(value)} ({_number(low)}–{_number(high)})"


def _show_totals(ahead: Forecast, voice: Voice) -> None:
    from ..messages.formatting import level_text
    from ..timeline.grid import time_texts

    columns = [ahead.point_of("totals")]
    headings = ["total", "mean"]
    if ahead.has_bands:
        columns.append(ahead.median("totals"))
        headings += ["median", *(f"{level_text(c)} interval" for c in ahead.coverage)]
    bands = [ahead.interval(c, "totals") for c in ahead.coverage if ahead.has_bands]
    rows = [
        [
            text,
            *(_number(column[t]) for column in columns),
            *(f"{_number(low[t])}–{_number(high[t])}" for low, high in bands),
        ]
        for t, text in enumerate(time_texts(ahead.times))
    ]
    voice.table(headings, rows, left=("total",))


def _number(value: float) -> str:
    from ..messages.formatting import number_text

    return number_text(value)


def tell_notes(ahead: Forecast, voice: Voice) -> None:
    """What one should know before using the numbers, in the words of the command line."""
    for note in ahead.notes:
        voice.say(f"Note: {in_options(note.command)}", style="yellow")


def frame_of(ahead: Forecast, of: Of) -> Any:
    """The frame of a forecast with times as people write them."""
    import numpy as np

    from ..timeline.grid import time_texts

    frame = ahead.to_frame(of)
    width = len(frame) // len(ahead.times)
    frame["time"] = np.repeat(time_texts(ahead.times), width)
    return frame


def write_frame(frame: Any, path: Path) -> None:
    from ..messages.formatting import csv_number
    from ..runtime.files import plain_cell, written_whole

    texts = frame.select_dtypes(exclude="number").columns
    frame = frame.assign(**{name: frame[name].map(plain_cell) for name in texts})
    with written_whole(path) as partial:
        frame.to_csv(partial, index=False, float_format=csv_number)
