"""From a table to a model file."""

from __future__ import annotations

import shlex
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import registry
from . import data
from .cluster import Dask, MemoryLimit, Scheduler, Workers, chosen_cluster
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
    from distributed import Client

    from ..estimator import TemporalNMF
    from ..reading import TimeTable
    from ..shards import Shards
    from ..summary import ComponentSummary

# Where the root command keeps the words it was called with.
WORDS = "temporalnmf.words"

_PANEL = "Draws from the posterior, --solver gibbs"
# Options that belong to one way of fitting.
_OF_DRAWS = ("draws", "tune", "runs", "thin")
_OF_MODES = ("starts", "max_iter", "tol")
# A hyper-parameter of a chain that cannot be learned together with another.
_NOT_WITH = {("hier_rate", "beta_h"): "beta_z"}
# Seconds between two looks at the workers of a cluster.
_PAUSE = 1.0

_FILE_HELP = (
    f"{data.FILE_HELP} Larger than memory: a folder of shards, or of Parquet files with a row per "
    f"time and feature."
)


def fit(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help=_FILE_HELP)],
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
    jobs: Annotated[
        int | None,
        typer.Option(min=-1, help="Threads, -1 for all cores.", show_default="all cores"),
    ] = None,
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
            help="File to keep the fit so far in: after a kill or Ctrl-C, the same command goes "
            "on. A folder for data that are not in memory, but for --solver gibbs.",
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="Between two writes of --checkpoint.")
    ] = 30.0,
    time: data.Time = None,
    feature: data.Feature = None,
    value: data.Value = None,
    exposure: data.Exposure = None,
    freq: data.Freq = None,
    transpose: data.Transpose = False,
    drop_partial: data.DropPartial = False,
    scheduler: Scheduler = None,
    dask: Dask = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find components in a table that changes over time, and write a model file.

    Times are sorted and put on a regular grid; periods that are absent become missing steps. What
    was understood is printed: read it.

    A folder of Parquet files, and any table that goes to a cluster, is written as shards first,
    which are removed at the end; `temporalnmf shard` keeps them.
    """
    with clean_errors(json) as voice:
        source = data.source_path(file)
        check_out("--out", out, force, reads=[source])
        how = data.Reading(time, feature, value, exposure, freq, transpose, drop_partial)
        settings: dict[str, Any] = {
            "n_components": components, "chain": chain, "likelihood": likelihood,
            "random_state": seed, "n_jobs": -1 if jobs is None else jobs or 1, "solver": solver,
        }  # fmt: skip
        cluster = chosen_cluster(jobs, scheduler, dask, workers, memory_limit)
        where = "--scheduler" if scheduler else "--dask" if dask else None
        split = where is not None or source.is_dir()
        if split:
            _check_split(file, where, out, calibrate)
            how = _named_columns(source, how, voice)
        with busy("starting"):
            _check_names(chain, likelihood, solver, calibrate)
            drawing = solver in registry.SAMPLERS
            _check_given(ctx, solver, drawing)
            place = _checkpoint(checkpoint, out, source, in_folder=split and not drawing)
            settings |= {"checkpoint": place, "checkpoint_every": checkpoint_every}
            if drawing:
                settings |= {"n_draws": draws, "n_tune": tune, "n_chains": runs, "thin": thin}
            else:
                settings |= {"n_init": starts, "max_iter": max_iter, "tol": tol}
            settings |= _learned(learn, chain, solver)
            _check_settings(settings)
        from ..checkpoints.file import until_saved

        with until_saved():
            with cluster as client, _read(file, how, out, client, voice) as table:
                model = fit_table(table, settings, voice, client)
                model.provenance_ = provenance(ctx, file, table)
            show_components(model, voice)
            model.save(out, overwrite=force)
        voice.wrote(out)
        if calibrate:
            calibrate_model(model, calibrate, voice, calibrate_steps)
            model.save(out, overwrite=True)  # our own, of a moment ago
        voice.answer({"model": str(out), "notes": table.notes, **summary(model)})


def _check_split(file: str, cluster: str | None, out: Path, calibrate: int) -> None:
    """Refuse what data that are not in memory cannot do, before anything is read."""
    path = data.source_path(file)
    if not path.exists():
        raise FileNotFoundError(f"{file}: there is no such file or folder. Check the path.")
    if path.is_dir() and path.resolve() in out.resolve().parents:
        raise ValueError(f"--out {out} lies in the folder that is read. Name another place.")
    if calibrate and cluster:
        raise ValueError(
            f"--calibrate {calibrate} needs the data in memory, and with {cluster} they are on a "
            f"cluster. Leave out one of them."
        )
    if calibrate:
        raise ValueError(
            f"--calibrate {calibrate} needs the data in memory, and {file} is a folder. Leave it "
            f"out, or give one file."
        )


def _named_columns(path: Path, how: data.Reading, voice: Voice) -> data.Reading:
    """The columns of a folder of long tables, by name where they were not given."""
    from ..shards import is_shards
    from .shard import _columns

    if is_shards(path):
        for option, value in how.given().items():
            said = option if value is True else f"{option} {value}"
            raise ValueError(
                f"{said}: {path} is a folder of shards, whose times and features are settled. "
                f"Leave it out, or make other shards with temporalnmf shard."
            )
        return how
    if path.is_dir():
        there = data.columns_of(path)
        wanted = [name for name in ("time", "feature", "value") if getattr(how, name) is None]
        if taken := {name: name for name in wanted if name in there}:
            given = how._asdict()
            how = data.Reading(**(given | taken))
            said = " ".join(f"--{name} {name}" for name in taken)
            voice.say(f"{path}: columns taken by their names, as with {said}")
    _columns(how, path)
    return how


@contextmanager
def _read(
    file: str, how: data.Reading, out: Path, client: Client | None, voice: Voice
) -> Iterator[TimeTable | Shards]:
    """The data of a fit: a table in memory; or shards, if need be for this fit only."""
    from ..shards import Shards, is_shards

    path = data.source_path(file)
    if client is not None:
        from ..cluster.clients import check_workers

        check_workers(client)
    if is_shards(path):
        shards = Shards.open(path)
        voice.say(f"{file}: {shards.n_times} steps x {shards.n_features} features")
        voice.notes(shards.notes)
        yield shards
    elif path.is_dir() or client is not None:
        # Beside the result, where there is room for it, and where workers can see it.
        place = next(parent for parent in out.absolute().parents if parent.exists())
        with TemporaryDirectory(
            prefix=f".{out.name}.", dir=place, ignore_cleanup_errors=True
        ) as name:
            yield _sharded(file, how, Path(name, "shards"), voice)
    else:
        yield data.read(file, how, voice)


def _sharded(file: str, how: data.Reading, folder: Path, voice: Voice) -> Shards:
    """A table as shards."""
    from .shard import _columns, _long, _wide

    path = data.source_path(file)
    columns = _columns(how, path)
    if columns is None:
        made = _wide(file, how, folder, None, False, voice)
    else:
        made = _long(path, columns, how, folder, None, False, voice)
    voice.say(
        f"  written as {made.n_shards} shards, for this fit only; to keep them, run temporalnmf "
        f"shard"
    )
    return made


def _check_names(chain: str, likelihood: str, solver: str, calibrate: int) -> None:
    """Before a large file is read. This loads the compiler, too: what follows starts at once."""
    from ..estimator import TemporalNMF
    from ..forecasting.predicting import NO_LAW
    from ..messages.arguments import check_choice

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
    if calibrate and not TemporalNMF(likelihood=likelihood)._likelihood().counts:
        raise ValueError(
            f"--calibrate {calibrate} is for counts, and --likelihood is {likelihood!r}. Leave it "
            f"out."
        )


def check_calibrate(n_origins: int) -> None:
    """Refuse what would be too few after all is fitted."""
    from ..forecasting.calibrating import _FEWEST_ORIGINS

    if 0 < n_origins < _FEWEST_ORIGINS:
        raise ValueError(
            f"--calibrate {n_origins}: from fewer than {_FEWEST_ORIGINS} forecasts of the past "
            f"nothing is learned. Take 20, or 0 for none."
        )


def _check_given(ctx: typer.Context, solver: str, drawing: bool) -> None:
    """Refuse options that do nothing here."""
    for name in _OF_MODES if drawing else _OF_DRAWS:
        if _was_given(ctx, name):
            option = f"--{name.replace('_', '-')}"
            meant = "--draws and --tune" if drawing else "--solver gibbs"
            remedy = f"see {meant}" if drawing else f"use {meant}"
            raise ValueError(
                f"{option} {ctx.params[name]} does nothing with --solver {solver}: {remedy}, or "
                f"leave it out."
            )
    if _was_given(ctx, "checkpoint_every") and ctx.params["checkpoint"] is None:
        raise ValueError(
            f"--checkpoint-every {ctx.params['checkpoint_every']:g} does nothing without "
            f"--checkpoint: give it, too, or leave this out."
        )


def _was_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _checkpoint(path: Path | None, out: Path, source: Path, in_folder: bool) -> Path | None:
    """A place that can be written to; what is there already is a former run, or refused."""
    if path is None:
        return None
    if in_folder:  # the library looks into it
        if path.exists() and not path.is_dir():
            raise ValueError(
                f"--checkpoint {path} is a file, and a fit of shards wants a folder. Name another."
            )
        return path
    check_out("--checkpoint", path, True, reads=[source])
    if path.resolve() == out.resolve():
        raise ValueError(f"--checkpoint {path} is the file of --out. Give each its own.")
    if not path.parent.exists():
        raise FileNotFoundError(
            f"--checkpoint {path}: there is no folder {path.parent}. Make it, or name another."
        )
    if path.exists() and not _may_be_checkpoint(path):
        raise ValueError(
            f"--checkpoint {path} is not a checkpoint of a fit, or is damaged. Name another file."
        )
    return path


def _may_be_checkpoint(path: Path) -> bool:
    """Whether a file looks like one; of which fit, the library finds out."""
    from ..runtime.archives import Archive

    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with Archive(path) as file:
            return "identity.npy" in file.members
    except ValueError:  # damaged
        return False


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
    from ..inference.config import Config

    Config.of(TemporalNMF(**settings).get_params(deep=False)).check()


def fit_table(
    table: TimeTable | Shards, settings: dict[str, Any], voice: Voice, client: Client | None = None
) -> TemporalNMF:
    """Fit, show how it goes, and say how it ended."""
    from ..cluster.sources import is_split
    from ..estimator import TemporalNMF

    model = TemporalNMF(**settings)
    voice.checkpoint = settings.get("checkpoint")
    in_folder = is_split(table) and model.solver not in registry.SAMPLERS
    if voice.checkpoint is not None and in_folder:
        voice.checkpoint /= "fit.npz"  # which is written last
    if voice.checkpoint is not None and voice.checkpoint.exists():
        voice.say(f"Found {voice.checkpoint}: going on from it, if it is of this very fit.")
    if client is not None:
        voice.say(_about_cluster(client, model, table))
    more = str if client is None else Staff(client)
    began = monotonic()
    with _progress(model, table, more) as callback, convergence_told():
        model.set_params(callback=callback).fit(table)
    model.set_params(callback=None, checkpoint=None)
    _verdict(model, monotonic() - began, voice)
    return model


def _about_cluster(client: Client, model: TemporalNMF, shards: Any) -> str:
    """Who works on how much, in a line; refuses what is too much."""
    from ..cluster.sources import check_memory

    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    threads = sum(worker["nthreads"] for worker in workers)
    limits = [worker["memory_limit"] for worker in workers]
    size = sum(shards.nbytes(i) for i in range(shards.n_shards))
    resident = check_memory(model.solver, shards.n_features, model.n_components, size, limits)
    each = f", {_size(min(limits))} of memory each" if all(limits) else ""
    kept = "kept in their memory" if resident else "read from disk for every pass"
    return (
        f"Cluster: {_number(len(workers), 'worker')}, {_number(threads, 'thread')}{each}; "
        f"{_number(shards.n_shards, 'block')} of features, {_size(size)}, {kept}."
    )


def _number(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _size(nbytes: int) -> str:
    if nbytes >= 1e9:
        return f"{nbytes / 1e9:,.1f} GB"
    return f"{nbytes / 1e6:.0f} MB" if nbytes >= 1e7 else f"{nbytes / 1e6:.1f} MB"


class Staff:
    """Words on the workers of a fit that is under way, looked at once a second at the most."""

    def __init__(self, client: Any, clock: Callable[[], float] = monotonic) -> None:
        self.client, self.clock = client, clock
        self.seen: set[str] = set()
        self.words, self.due = "", clock()

    def __call__(self) -> str:
        if self.clock() >= self.due:
            with suppress(OSError, ValueError):  # a scheduler that is gone: the fit will say it
                self.words = self._look()
            self.due = self.clock() + _PAUSE
        return self.words

    def _look(self) -> str:
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        self.seen |= set(workers)
        lost = len(self.seen) - len(workers)
        used = max((worker["metrics"].get("memory", 0) for worker in workers.values()), default=0)
        said = f", fullest worker {_size(used)}" if used else ""
        return said + (f", {_number(lost, 'worker')} lost" if lost else "")


def _progress(model: TemporalNMF, table: TimeTable | Shards, more: Callable[[], str]) -> Any:
    if model.solver not in registry.SAMPLERS:
        return fit_progress(model.n_init, model.max_iter, more)
    from ..sampling.run import thinning
    from ..shards import Shards

    n_features = table.n_features if isinstance(table, Shards) else len(table.features)
    each = 4 * model.n_chains * model.n_components * n_features
    thin = model.thin or thinning(model.n_draws, each)
    kept = thin * max(model.n_draws // thin, 1)
    return draws_progress(model.n_chains, model.n_tune, model.n_tune + kept, more)


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
    from ..messages.formatting import percent
    from ..summary import FOUND_AGAIN, VARIES, component_summary, stability_words

    rows = []
    for one in component_summary(model, n_features=7):
        stable = [] if one.stability is None else [f"{one.stability:.2f}"]
        top = ", ".join(name for name, _ in one.top)
        rows.append([str(one.number), percent(one.share), one.peak, *stable, top])
    stability = [] if model.stability_ is None else ["stability"]
    headings = ["", "share", "peak", *stability, "top features"]
    voice.table(headings, rows, left=("peak", "top features"))
    if model.stability_ is not None and (model.stability_ < FOUND_AGAIN).any():
        start = "start" if model.posterior_ is None else "run"
        voice.say(
            f"Stability: from {FOUND_AGAIN} on a component is {stability_words(FOUND_AGAIN)} in "
            f"other {start}s; below {VARIES} it is {stability_words(0.0)}."
        )


def calibrate_model(model: TemporalNMF, n_origins: int, voice: Voice, steps: int = 1) -> None:
    """Check intervals on the past, and say what was found."""
    with progress_bar("forecasts of the past") as progress, convergence_told():
        model.calibrate(n_origins, steps=steps, progress=progress)
    voice.say(str(model.calibration_))


def command_line(ctx: typer.Context) -> str:
    """What the user typed, as a shell would take it."""
    return shlex.join(["temporalnmf", *ctx.meta.get(WORDS, [])])


def provenance(ctx: typer.Context, file: str, table: Any = None) -> dict[str, str]:
    """Where a model comes from; a folder is known by the shards that it is, or that were made."""
    path = data.source_path(file)
    return {
        "command": command_line(ctx),
        "source": file,
        "sha256": data.checksum(table.path if path.is_dir() else path),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def summary(model: TemporalNMF) -> dict[str, Any]:
    """A model for machines."""
    from ..persistence.models import parameters_of_fit
    from ..summary import component_summary
    from ..timeline.grid import time_texts

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
        "n_init": parameters_of_fit(model)["n_init"],
        "objective": model.objective_,
        "reconstruction_err": model.reconstruction_err_,
        "components": [_for_machines(one) for one in component_summary(model)],
        "calibration": None
        if found is None
        else {
            "coverage": found.coverage,
            "n_origins": found.n_origins,
            "checks": [asdict(check) | {"band": check.band(check.after)} for check in found.checks],
        },
        "provenance": getattr(model, "provenance_", None),
    }


def _for_machines(component: ComponentSummary) -> dict[str, Any]:
    """Its number as in a forecast of components, from 1."""
    found = asdict(component)
    del found["index"]
    return {"component": component.number, **found}


def _draws_for_machines(model: TemporalNMF) -> dict[str, Any] | None:
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
