"""Add new steps to a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ..messages.errors import message_of
from ..messages.formatting import counted
from ..timeline.grid import Timeline, time_texts
from . import data, models
from .console import Force, JsonVoice, Voice, busy, check_out
from .files import Model, load_model
from .spelling import as_option

if TYPE_CHECKING:
    from ..estimator import TemporalNMF
    from ..reading import TimeTable


def append(
    ctx: typer.Context,
    voice: JsonVoice,
    model: Model,
    file: data.File,
    how: data.Reading,
    out: Annotated[
        Path | None,
        typer.Option(help="Model file to write.", show_default="MODEL itself, with --force"),
    ] = None,
    update_components: Annotated[
        bool, typer.Option("--update-components", help="Also refit the components.")
    ] = False,
    covariates: data.Covariates = None,
    force: Force = False,
) -> None:
    """Append new steps from a file to a model.

    Steps of the file that the model knows already are left out. Components stay as they are,
    unless --update-components is given; the activations of all steps are inferred again from the
    whole series, so steps may be appended one by one or all at once.
    """
    target = _target(model, out, force, [data.source_path(file), covariates])
    values = data.read_covariates(covariates)
    fitted = load_model(model, refits=update_components)
    table = _only_new(_read(file, how, voice), fitted, voice)
    table = data.with_features_of(table, fitted, how.feature is not None, voice)
    before = len(fitted.times_)
    with busy("appending"), models.without_convergence_warnings():
        fitted.append(table, covariates=values, update_components=update_components)
    new = _show_added(fitted, before, update_components, voice)
    fitted.provenance_ = _provenance(ctx, fitted, file)
    fitted.save(target, overwrite=True)  # checked by `_target`
    voice.wrote(target)
    known = {"model": target, "added": new, "notes": table.notes}
    voice.answer({**known, **models.summary(fitted)})


def _target(model: Path, out: Path | None, force: bool, reads: list[Path | None]) -> Path:
    """The file to write; the model itself only with --force."""
    if out is None and not force:
        raise FileExistsError(f"--out is missing. Name a file, or replace {model} with --force.")
    target = model if out is None else out
    check_out("--out", target, force, reads=reads)
    return target


def _read(file: str, how: data.Reading, voice: Voice) -> TimeTable:
    """The table; if it has too few times, the error has a hint."""
    try:
        return data.read(file, how, voice)
    except ValueError as error:
        if "at least 3" not in str(error):
            raise
        hint = "Or keep earlier steps in the file: those that the model knows are left out."
        raise ValueError(f"{message_of(error, as_option)} {hint}") from error


def _only_new(table: TimeTable, model: TemporalNMF, voice: Voice) -> TimeTable:
    """The steps after the last one of the model, if both have times to compare."""
    labels, known_labels = table.timeline.labels, model.timeline_.labels
    if table.numbered:
        voice.say("  the file has no times: all of its steps count as new")
        return table
    if labels.dtype.kind == "U" or labels.dtype.kind != known_labels.dtype.kind:
        return table
    new = labels > known_labels[-1]
    if not new.any():
        end, known = time_texts(table.times)[-1], time_texts(model.times_)[-1]
        problem = f"ends at {end} and the model at {known}: there are no new steps."
        raise ValueError(f"The file {problem}")
    if new.all():
        return table
    voice.say(f"  in the model already, so left out: {(~new).sum()} of {len(labels)} steps")
    _show_changes(table, model, voice)
    return replace(
        table,
        X=table.X[new],
        times=table.times[new],
        timeline=Timeline(labels[new], np.arange(int(new.sum())), table.timeline.every),
        observed=None if table.observed is None else table.observed[new],
        exposure=table.exposure[new] if isinstance(table.exposure, np.ndarray) else table.exposure,
    )


def _show_changes(table: TimeTable, model: TemporalNMF, voice: Voice) -> None:
    """Print known steps that differ from the fitted ones, such as a month that was incomplete."""
    if model._series is None:
        return
    old, new = (
        {text: float(np.nansum(X[[n]].sum(axis=0))) for n, text in enumerate(time_texts(times))}
        for X, times in ((model._series.X, model.times_), (table.X, table.times))
    )
    changed = [
        f"{text}: total {old[text]:,.12g}, now {now:,.12g}"
        for text, now in new.items()
        if text in old and not np.isclose(old[text], now)
    ]
    if changed:
        more = f", and {len(changed) - 3} more" if len(changed) > 3 else ""
        shown = f"{'; '.join(changed[:3])}{more}. Fit again to use them."
        known = "steps that differ from the fitted ones are not changed"
        voice.say(f"  {known}: {shown}", style="yellow")


def _show_added(model: TemporalNMF, before: int, updated: bool, voice: Voice) -> list[str]:
    """Print what was added; returns the new times."""
    new = time_texts(model.times_)[before:]
    missing = int((~model.observed_[before:]).sum())
    span = new[0] if len(new) == 1 else f"{new[0]} to {new[-1]}"
    gaps = f", {missing} of them missing" if missing else ""
    voice.say(f"Added {counted(len(new), 'step')} ({span}{gaps}): {len(model.times_)} in total.")
    if not updated:
        voice.say("Components are unchanged; the activations of all steps were inferred again.")
    elif model.posterior_ is not None:
        voice.say(f"Everything was drawn again: {models.draws_text(model.posterior_)}.")
        models.show_diagnosis(model.posterior_, voice)
    elif model.converged_:
        voice.say("Everything was fitted again: converged.", style="green")
    else:
        voice.say(f"Fitted again, but not converged: {model.stop_reason_}.", style="bold red")
    return new


def _provenance(ctx: typer.Context, model: TemporalNMF, file: str) -> dict[str, str]:
    """The origin of the model, and what was appended."""
    new, old = models.provenance(ctx, file), getattr(model, "provenance_", None) or {}
    if not old:
        return new
    files = [old.get("appended"), f"{file} (SHA-256 {new['sha256']})"]
    return {
        **old,
        "command": f"{old.get('command', '')}\n{new['command']}".strip(),
        "date": new["date"],
        "appended": ", ".join(filter(None, files)),
    }
