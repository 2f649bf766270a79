"""From a table to a model file."""

from __future__ import annotations

import shlex
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from math import isfinite
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
    draws_progress,
    fit_progress,
    in_options,
    progress_bar,
)

if TYPE_CHECKING:
    from ..estimator import TemporalNMF
    from ..reading import TimeTable

# Where the root command keeps the words it was called with.
WORDS = "temporalnmf.words"

_PANEL = "Draws from the posterior, --solver gibbs"
# Options that belong to one way of fitting.
_OF_DRAWS = ("draws", "tune", "runs", "thin", "checkpoint")
_OF_MODES = ("starts", "max_iter", "tol")
# A hyper-parameter of a chain that cannot be learned together with another.
_NOT_WITH = {("hier_rate", "beta_h"): "beta_z"}


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
    solver: Annotated[
        str,
        typer.Option(
            help="'accelerated' or 'mm' for the most probable model, 'gibbs' for draws of all that "
            "is probable."
        ),
    ] = "accelerated",
    learn: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Learn these from the data: hyper-parameters of the chain, as alpha,beta, and "
            "smoothing; or 'all' that can be learned together. For --solver gibbs, but for a few.",
        ),
    ] = None,
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
    draws: Annotated[int, typer.Option(min=1, help="Draws per run.", rich_help_panel=_PANEL)] = 500,
    tune: Annotated[
        int,
        typer.Option(
            min=0, help="Sweeps per run before the first draw, to settle.", rich_help_panel=_PANEL
        ),
    ] = 500,
    runs: Annotated[
        int,
        typer.Option(
            min=1,
            help="Runs from starts of their own; two or more tell whether they agree.",
            rich_help_panel=_PANEL,
        ),
    ] = 4,
    thin: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep one draw of so many; else all, or what fits into 256 MB.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="File to keep the draws so far in: after a kill, the same command goes on.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
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
        settings: dict[str, Any] = {
            "n_components": components, "chain": chain, "likelihood": likelihood,
            "random_state": seed, "n_jobs": jobs or 1, "solver": solver,
        }  # fmt: skip
        with busy("starting"):
            _check_names(chain, likelihood, solver, calibrate)
            drawing = solver in registry.SAMPLERS
            _check_given(ctx, solver, drawing)
            if drawing:
                settings |= {
                    "n_draws": draws, "n_tune": tune, "n_chains": runs, "thin": thin,
                    "checkpoint": _checkpoint(checkpoint, out, data.source_path(file)),
                }  # fmt: skip
            else:
                settings |= {"n_init": starts, "max_iter": max_iter, "tol": tol}
            settings |= _learned(learn, chain, solver)
            _check_settings(settings)
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


def _check_names(chain: str, likelihood: str, solver: str, calibrate: int) -> None:
    """Before a large file is read. This loads the compiler, too: what follows starts at once."""
    from ..estimator import TemporalNMF
    from ..predicting import NO_LAW
    from ..validation import check_choice

    check_choice("--chain", chain, tuple(registry.CHAINS))
    check_choice("--likelihood", likelihood, tuple(registry.LIKELIHOODS))
    check_choice("--solver", solver, (*registry.SOLVERS, *registry.SAMPLERS))
    if solver in registry.SAMPLERS and chain == "none":
        raise ValueError(
            f"--chain none is no prior, so --solver {solver} has no posterior to draw from. Take "
            f"--chain gap for steps that are independent of each other, or another."
        )
    check_calibrate(calibrate)
    if calibrate and chain == "none":
        raise ValueError(f"--calibrate {calibrate}: {NO_LAW}")
    if calibrate and not TemporalNMF(likelihood=likelihood)._likelihood().additive:
        raise ValueError(
            f"--calibrate {calibrate} is for counts, and --likelihood is {likelihood!r}. Leave it "
            f"out."
        )


def check_calibrate(n_origins: int) -> None:
    """Refuse what would be too few after all is fitted."""
    from ..calibration import _FEWEST_ORIGINS

    if 0 < n_origins < _FEWEST_ORIGINS:
        raise ValueError(
            f"--calibrate {n_origins}: from fewer than {_FEWEST_ORIGINS} forecasts of the past "
            f"nothing is learned. Take 20, or 0 for none."
        )


def _check_given(ctx: typer.Context, solver: str, drawing: bool) -> None:
    """Refuse options that do nothing here."""
    for name in _OF_MODES if drawing else _OF_DRAWS:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = f"--{name.replace('_', '-')}"
            meant = "--draws and --tune" if drawing else "--solver gibbs"
            remedy = f"see {meant}" if drawing else f"use {meant}"
            raise ValueError(
                f"{option} {ctx.params[name]} does nothing with --solver {solver}: {remedy}, or "
                f"leave it out."
            )


def _checkpoint(path: Path | None, out: Path, source: Path) -> Path | None:
    """A place that can be written to; what is there already is a former run, or refused."""
    if path is None:
        return None
    check_out("--checkpoint", path, True, reads=[source])
    if path.resolve() == out.resolve():
        raise ValueError(f"--checkpoint {path} is the file of --out. Give each its own.")
    if not path.parent.exists():
        raise FileNotFoundError(
            f"--checkpoint {path}: there is no folder {path.parent}. Make it, or name another."
        )
    if path.exists() and not _may_be_checkpoint(path):
        raise ValueError(
            f"--checkpoint {path} is no checkpoint of a fit, or is damaged. Name another file."
        )
    return path


def _may_be_checkpoint(path: Path) -> bool:
    """Whether a file looks like one; of which fit, the library finds out."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as file:
        return "identity.npy" in file.namelist()


def _learned(learn: str | None, chain: str, solver: str) -> dict[str, Any]:
    """The settings that --learn asks for."""
    if learn is None:
        return {}
    law = registry.create(registry.CHAINS, chain, "chain")
    drawing = solver in registry.SAMPLERS
    own = [name for name in law.get_params() if name != "marginal"]
    known = [*own, "smoothing"] if drawing else list(law._learn)
    together = [name for name in known if (chain, name) not in _NOT_WITH]
    names = together if learn == "all" else [name.strip() for name in learn.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        which = ", ".join(known) or "nothing"
        more = "" if drawing else f"; --solver gibbs learns {', '.join([*own, 'smoothing'])}"
        wrong = ""
        if len(names) > 1:
            wrong = f"{unknown[0]} is not known; " if unknown[0] else "one name is empty; "
        raise ValueError(
            f"--learn {learn}: {wrong}with --chain {chain} and --solver {solver} it can be "
            f"{which}{more}."
        )
    for name in names:
        other = _NOT_WITH.get((chain, name))
        if other in names:
            raise ValueError(
                f"--learn {learn}: of {other} and {name} only the ratio matters. Learn one of them."
            )
    found = {"smoothing": "learn"} if "smoothing" in names else {}
    words = {name: "learn" for name in names if name != "smoothing"}
    return {**found, "chain": law.set_params(**words)} if words else found


def _check_settings(settings: dict[str, Any]) -> None:
    """What the library would refuse after the file was read."""
    from ..estimator import TemporalNMF
    from ..fitting import check_parameters

    check_parameters(TemporalNMF(**settings))


def fit_table(table: TimeTable, settings: dict[str, Any], voice: Voice) -> TemporalNMF:
    """Fit, show how it goes, and say how it ended."""
    from ..estimator import TemporalNMF

    model = TemporalNMF(**settings)
    voice.checkpoint = settings.get("checkpoint")
    if voice.checkpoint is not None and voice.checkpoint.exists():
        voice.say(f"Found {voice.checkpoint}: going on from it, if it is of this very fit.")
    began = monotonic()
    with _progress(model, table.X.shape[1]) as callback, convergence_told():
        model.set_params(callback=callback).fit(table)
    model.set_params(callback=None, checkpoint=None)
    voice.checkpoint = None
    _verdict(model, monotonic() - began, voice)
    return model


def _progress(model: TemporalNMF, n_features: int) -> Any:
    if model.solver not in registry.SAMPLERS:
        return fit_progress(model.n_init, model.max_iter)
    from ..sampling.run import thinning

    each = 4 * model.n_chains * model.n_components * n_features
    thin = model.thin or thinning(model.n_draws, each)
    kept = thin * max(model.n_draws // thin, 1)
    return draws_progress(model.n_chains, model.n_tune, model.n_tune + kept)


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
    if model.posterior_ is not None:
        voice.say(f"{draws_said(model)}{took}.")
        show_diagnosis(model, voice)
    elif model.converged_:
        reason = model.stop_reason_.removeprefix("converged: ")
        voice.say(f"Converged: {reason}{best}{took}.", style="green")
    else:
        voice.say(
            f"Not converged: {model.stop_reason_}{best}{took}. Increase --max-iter, or accept a "
            f"larger --tol.",
            style="bold red",
        )


def draws_said(model: TemporalNMF) -> str:
    """How many draws there are, in words."""
    draws = model.posterior_
    assert draws is not None
    n_runs, n_draws = draws.smoothing.shape
    runs = "1 run" if n_runs == 1 else f"{n_runs} runs"
    every = "" if draws.thin == 1 else f", one of {draws.thin} kept"
    draw = "draw" if n_draws == 1 else "draws"
    return f"{runs} of {n_draws} {draw}{every}"


def show_diagnosis(model: TemporalNMF, voice: Voice) -> None:
    """Whether the runs agree: a table, and the verdict."""
    assert model.posterior_ is not None
    found = model.posterior_.diagnosis
    rows = [
        [q.name, f"{q.rhat:.3f}", f"{q.ess_bulk:,.0f}", f"{q.ess_tail:,.0f}"]
        if isfinite(q.rhat)
        else [q.name, *"–––"]
        for q in found.quantities
    ]
    voice.table(["draws of", "R-hat", "bulk ESS", "tail ESS"], rows, left=("draws of",))
    good = found.ok and found.n_runs > 1
    voice.say(in_options(found.verdict), style="green" if good else "bold red")


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
        "smoothing": model.smoothing_,
        "likelihood": model._likelihood().name,
        "solver": model.solver,
        "draws": _draws_for_machines(model),
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


def _draws_for_machines(model: TemporalNMF) -> dict[str, Any] | None:
    from dataclasses import asdict

    draws = model.posterior_
    if draws is None:
        return None
    found = draws.diagnosis
    return {
        "runs": found.n_runs,
        "draws": found.n_draws,
        "thin": draws.thin,
        "settled": found.ok,
        "verdict": found.verdict,
        "quantities": [asdict(quantity) for quantity in found.quantities],
    }
