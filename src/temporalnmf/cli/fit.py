"""From a table to a model file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import registry
from . import data
from .console import (
    Force,
    Json,
    Voice,
    busy,
    check_out,
    clean_errors,
    fit_progress,
    progress_bar,
)

if TYPE_CHECKING:
    from ..estimator import TemporalNMF
    from ..reading import TimeTable

# Where the root command keeps the words it was called with.
WORDS = "temporalnmf.words"


def fit(
    ctx: typer.Context,
    file: data.File,
    out: Annotated[Path, typer.Option(help="Model file to write.")] = Path("model.npz"),
    components: Annotated[int, typer.Option(min=1, help="Number of components.")] = 5,
    chain: Annotated[
        str, typer.Option(help=f"How activations move: {', '.join(registry.CHAINS)}.")
    ] = "rate",
    likelihood: Annotated[
        str, typer.Option(help="'poisson' for counts, 'exponential' for positive values.")
    ] = "poisson",
    starts: Annotated[
        int, typer.Option(min=1, help="Random starts; two or more tell how stable components are.")
    ] = 3,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 0,
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations per start, at the most.")] = 1000,
    tol: Annotated[
        float, typer.Option(min=0.0, help="Stop at this relative decrease per iteration.")
    ] = 1e-5,
    jobs: Annotated[int, typer.Option(min=-1, help="Threads, -1 for all cores.")] = -1,
    calibrate: Annotated[
        int, typer.Option(min=0, help="Forecasts of the past to check intervals with; 0 for none.")
    ] = 0,
    calibrate_steps: Annotated[
        int, typer.Option(min=1, help="Steps ahead that --calibrate checks.")
    ] = 1,
    time: data.Time = None,
    feature: data.Feature = None,
    value: data.Value = None,
    exposure: data.Exposure = None,
    freq: data.Freq = None,
    transpose: data.Transpose = False,
    drop_partial: data.DropPartial = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find components in a table that changes over time, and write a model file.

    Times are sorted and put on a regular grid; periods that are absent become missing steps. What
    was understood is printed: read it.
    """
    with clean_errors(json) as voice:
        check_out("--out", out, force, reads=[data.source_path(file)])
        how = data.Reading(time, feature, value, exposure, freq, transpose, drop_partial)
        settings = {
            "n_components": components, "chain": chain, "likelihood": likelihood,
            "n_init": starts, "random_state": seed, "max_iter": max_iter, "tol": tol,
            "n_jobs": jobs or 1,
        }  # fmt: skip
        with busy("starting"):
            _check_names(chain, likelihood, calibrate)
        table = data.read(file, how, voice)
        model = fit_table(table, settings, voice)
        model.provenance_ = provenance(ctx, file)
        show_components(model, voice)
        model.save(out, overwrite=force)
        voice.wrote(out)
        if calibrate:
            calibrate_model(model, calibrate, voice, calibrate_steps)
            model.save(out, overwrite=True)  # our own, of a moment ago
        voice.answer({"model": str(out), "notes": table.notes, **summary(model)})


def _check_names(chain: str, likelihood: str, calibrate: int) -> None:
    """Before a large file is read. This loads the compiler, too: what follows starts at once."""
    from ..estimator import TemporalNMF
    from ..predicting import NO_LAW
    from ..validation import check_choice

    check_choice("--chain", chain, tuple(registry.CHAINS))
    check_choice("--likelihood", likelihood, tuple(registry.LIKELIHOODS))
    if calibrate and chain == "none":
        raise ValueError(f"--calibrate {calibrate}: {NO_LAW}")
    if calibrate and not TemporalNMF(likelihood=likelihood)._likelihood().additive:
        raise ValueError(
            f"--calibrate {calibrate} is for counts, and --likelihood is {likelihood!r}. Leave it "
            f"out."
        )


def fit_table(table: TimeTable, settings: dict[str, Any], voice: Voice) -> TemporalNMF:
    """Fit, show how it goes, and say how it ended."""
    from ..estimator import TemporalNMF

    model = TemporalNMF(**settings)
    began = monotonic()
    with fit_progress(model.n_init, model.max_iter) as callback, convergence_told():
        model.set_params(callback=callback).fit(table)
    model.set_params(callback=None)
    _verdict(model, monotonic() - began, voice)
    return model


@contextmanager
def convergence_told() -> Iterator[None]:
    """No warning of what the verdict says."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _verdict(model: TemporalNMF, seconds: float, voice: Voice) -> None:
    best = f"; the best of {model.n_init} starts" if model.n_init > 1 else ""
    took = f", {seconds:.1f} s" if seconds >= 0.1 else ""
    if model.converged_:
        reason = model.stop_reason_.removeprefix("converged: ")
        voice.say(f"Converged: {reason}{best}{took}.", style="green")
    else:
        voice.say(
            f"Not converged: {model.stop_reason_}{best}{took}. Increase --max-iter, or accept a "
            f"larger --tol.",
            style="bold red",
        )


def show_components(model: TemporalNMF, voice: Voice) -> None:
    """A table: share, peak, features, stability."""
    from ..summary import component_summary

    rows = []
    for one in component_summary(model, n_features=7):
        stable = [] if one.stability is None else [f"{one.stability:.2f}"]
        top = ", ".join(name for name, _ in one.top)
        rows.append([str(one.index + 1), f"{one.share:.0%}", one.peak, *stable, top])
    stability = [] if model.stability_ is None else ["stability"]
    headings = ["", "share", "peak", *stability, "top features"]
    voice.table(headings, rows, left=("peak", "top features"))


def calibrate_model(model: TemporalNMF, n_origins: int, voice: Voice, steps: int = 1) -> None:
    """Check intervals on the past, and say what was found."""
    with progress_bar("forecasts of the past") as progress, convergence_told():
        model.calibrate(n_origins, steps=steps, progress=progress)
    voice.say(str(model.calibration_))


def command_line(ctx: typer.Context) -> str:
    """What the user typed, as a shell would take it."""
    return shlex.join(["temporalnmf", *ctx.meta.get(WORDS, [])])


def provenance(ctx: typer.Context, file: str) -> dict[str, str]:
    """Where a model comes from."""
    return {
        "command": command_line(ctx),
        "source": file,
        "sha256": data.checksum(data.source_path(file)),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def summary(model: TemporalNMF) -> dict[str, Any]:
    """A model for machines."""
    from dataclasses import asdict

    from ..summary import component_summary
    from ..timeline import time_texts

    texts = time_texts(model.times_)
    found = model.calibration_
    return {
        "n_components": len(model.components_),
        "n_steps": len(texts),
        "n_features": model.n_features_in_,
        "first": texts[0],
        "last": texts[-1],
        "every": model.timeline_.every,
        "gaps": [text for text, seen in zip(texts, model.observed_, strict=True) if not seen],
        "exposure": bool((model.exposure_ != 1.0).any()),
        "chain": model.chain_.name,
        "hyper_parameters": model.chain_.get_params(),
        "likelihood": model._likelihood().name,
        "converged": bool(model.converged_),
        "stop_reason": model.stop_reason_,
        "n_iter": model.n_iter_,
        "n_init": model.n_init,
        "objective": model.objective_,
        "reconstruction_err": model.reconstruction_err_,
        "components": [asdict(one) for one in component_summary(model)],
        "calibration": None
        if found is None
        else {
            "coverage": found.coverage,
            "n_origins": found.n_origins,
            "inside": found.inside,
            "widened_inside": found.widened_inside,
            "band": found.band,
            "entries": found.entries,
        },
        "provenance": getattr(model, "provenance_", None),
    }
