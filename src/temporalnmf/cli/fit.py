"""From a table to a model file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ..messages.formatting import counted
from . import data, models
from .cluster import Cluster
from .console import Force, JsonVoice, Voice, busy, check_out, draws_progress, fit_progress
from .effects import show_effects, show_trend
from .files import archive_has
from .notes import worded
from .settings import Settings
from .shard import columns_for, sharded

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

    from ..estimator import TemporalNMF
    from ..reading import TimeTable
    from ..shards import Shards
    from ..solvers.monitor import Callback

# Options for draws only, and for modes only.
_OF_DRAWS = ("draws", "tune", "runs", "thin")
_OF_MODES = ("starts", "max_iter", "tol")
# Seconds between two requests for the state of a cluster.
_PAUSE = 1.0

_FILE_HELP = (
    f"{data.FILE_HELP} Larger than memory: a folder of shards, or of Parquet files with a row per "
    f"time and feature."
)
Calibrate = Annotated[
    int, Option(min=0, help="Past forecasts to check intervals with; 0 for none.")
]


def fit(
    ctx: typer.Context,
    voice: JsonVoice,
    file: Annotated[str, Argument(metavar="FILE", help=_FILE_HELP)],
    settings: Settings,
    how: data.Reading,
    cluster: Cluster,
    out: Annotated[Path, Option(help="Model file to write.")] = Path("model.npz"),
    calibrate: Calibrate = 0,
    calibrate_steps: Annotated[int, Option(min=1, help="Steps ahead that --calibrate checks.")] = 1,
    refit: Annotated[
        bool, Option("--refit/--no-refit", help="Fit components again for --calibrate, or not.")
    ] = True,
    force: Force = False,
) -> None:
    """Find components in a table that changes over time, and write a model file.

    Times are sorted and put on a regular grid; absent periods become missing steps. The command
    prints what it understood: read it.

    A folder of Parquet files, and any table that goes to a cluster, is first written as shards,
    which are removed at the end; `temporalnmf shard` keeps them.
    """
    source = data.source_path(file)
    reads = [source, settings.covariates]
    check_out("--out", out, force, reads=reads)
    covariates = data.read_covariates(settings.covariates)
    connection = cluster.client(settings.jobs)
    split = cluster.option is not None or source.is_dir()
    if split:
        _check_split(file, cluster.option, out, calibrate)
        how = _named_columns(source, how, voice)
    with busy("starting"):  # before a large file is read; this loads the compiler, too
        _check_given(ctx, settings)
        _check_checkpoint(settings.checkpoint, out, reads, split and not settings.drawing)
        model = settings.estimator()
        _check_calibrate(calibrate, model)
    from ..checkpoints.file import until_saved

    with until_saved():
        with connection as client, _read(file, how, out, client, voice) as table:
            fit_table(table, model, voice, client, covariates)
            model.provenance_ = models.provenance(ctx, file, getattr(table, "path", None))
        models.show_components(model, voice)
        models.show_seasons(model, voice)
        show_effects(model, voice)
        show_trend(model, voice)
        model.save(out, overwrite=force)
    voice.wrote(out)
    if calibrate:
        models.calibrate_model(model, calibrate, voice, calibrate_steps, refit)
        model.save(out, overwrite=True)  # written above
    voice.answer({"model": str(out), "notes": table.notes, **models.summary(model)})


def _check_split(file: str, cluster: str | None, out: Path, calibrate: int) -> None:
    """Refuse options that need data in memory, before anything is read."""
    path = data.source_path(file)
    if not path.exists():
        raise FileNotFoundError(f"{file}: there is no such file or folder. Check the path.")
    if path.is_dir() and path.resolve() in out.resolve().parents:
        raise ValueError(f"--out {out} lies in the input folder. Choose another folder.")
    if calibrate:
        where = f"with {cluster} they are on a cluster" if cluster else f"{file} is a folder"
        remedy = f"Leave out --calibrate or {cluster or 'give one file'}."
        raise ValueError(f"--calibrate {calibrate} needs the data in memory, and {where}. {remedy}")


def _named_columns(path: Path, how: data.Reading, voice: Voice) -> data.Reading:
    """Options with the columns of a folder of long tables; known names need no option."""
    from ..reading.long_files import column_names
    from ..shards import is_shards
    from ..shards.sorting import files_of

    if is_shards(path):
        reason = f"{path} is a folder of shards, whose times and features are fixed."
        how.refuse(f"{reason} Leave it out, or make other shards with temporalnmf shard.")
        return how
    if path.is_dir():
        there = column_names(files_of(path)[0])
        wanted = [name for name in ("time", "feature", "value") if getattr(how, name) is None]
        if taken := {name: name for name in wanted if name in there}:
            how = data.Reading(**(how._asdict() | taken))
            options = " ".join(f"--{name} {name}" for name in taken)
            voice.say(f"{path}: columns found by name, as with {options}")
    columns_for(how, path)
    return how


@contextmanager
def _read(
    file: str, how: data.Reading, out: Path, client: Client | None, voice: Voice
) -> Iterator[TimeTable | Shards]:
    """The data of a fit: a table in memory, or shards, if necessary temporary ones."""
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
        # Beside the result: there is space, and workers see it.
        place = next(parent for parent in out.absolute().parents if parent.exists())
        prefix = f".{out.name}."
        with TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True) as name:
            shards = sharded(file, how, Path(name, "shards"), voice)
            kept = "for this fit only; temporalnmf shard keeps them"
            voice.say(f"  written as {shards.n_shards} shards, {kept}")
            yield shards
    else:
        yield data.read(file, how, voice)


def _check_calibrate(n_origins: int, model: TemporalNMF) -> None:
    """Refuse a calibration that would fail after the fit."""
    from ..forecasting.notes import Note

    check_origins(n_origins)
    if n_origins and model.chain == "none":
        raise ValueError(f"--calibrate {n_origins}: {worded([Note('no_intervals')])[0]}")
    if n_origins and not model._config().likelihood.counts:
        problem = f"is for counts, and --likelihood is {model.likelihood}. Leave it out."
        raise ValueError(f"--calibrate {n_origins} {problem}")


def check_origins(n_origins: int) -> None:
    """Refuse too few past forecasts."""
    from ..forecasting.sequential import FEWEST_ORIGINS

    if 0 < n_origins < FEWEST_ORIGINS:
        problem = f"at least {FEWEST_ORIGINS} past forecasts are needed. Take 20, or 0 for none."
        raise ValueError(f"--calibrate {n_origins}: {problem}")


def _check_given(ctx: typer.Context, settings: Settings) -> None:
    """Refuse options that have no effect."""
    remedy = "see --draws and --tune" if settings.drawing else "use --solver gibbs"
    without = f"with --solver {settings.solver}: {remedy}"
    useless = dict.fromkeys(_OF_MODES if settings.drawing else _OF_DRAWS, without)
    if settings.checkpoint is None:
        useless["checkpoint_every"] = "without --checkpoint: give that too"
    for name, why in useless.items():
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            value = ctx.params[name]
            shown = f"{value:g}" if isinstance(value, float) else value
            option = f"--{name.replace('_', '-')} {shown}"
            raise ValueError(f"{option} has no effect {why}, or leave it out.")


def _check_checkpoint(
    path: Path | None, out: Path, reads: list[Path | None], in_folder: bool
) -> None:
    """Refuse a path that cannot be written to, or that holds something else."""
    if path is None:
        return
    if in_folder:  # its content is checked when the fit begins
        if path.exists() and not path.is_dir():
            problem = "is a file, and a fit of shards needs a folder. Choose another name."
            raise ValueError(f"--checkpoint {path} {problem}")
        return
    check_out("--checkpoint", path, True, reads=reads)
    if path.resolve() == out.resolve():
        raise ValueError(f"--checkpoint {path} is the file of --out. Choose another name.")
    if not path.parent.exists():
        problem = f"there is no folder {path.parent}. Make it, or choose another."
        raise FileNotFoundError(f"--checkpoint {path}: {problem}")
    if path.exists() and not archive_has(path, "identity.npy"):
        problem = "is not a checkpoint of a fit, or is damaged. Name another file."
        raise ValueError(f"--checkpoint {path} {problem}")


def fit_table(
    table: TimeTable | Shards,
    model: TemporalNMF,
    voice: Voice,
    client: Client | None = None,
    covariates: pd.DataFrame | None = None,
) -> None:
    """Fit, show the progress, and report how it ended."""
    from ..cluster.sources import is_split
    from ..shards import Shards

    config = model._config()
    if config.checkpoint is not None:
        in_folder = is_split(table) and not config.drawing
        # In a folder, this file is written last.
        voice.checkpoint = Path(config.checkpoint, "fit.npz" if in_folder else "")
        if voice.checkpoint.exists():
            voice.say(f"Found {voice.checkpoint}: continuing from it, if it is of the same fit.")
    if client is not None and isinstance(table, Shards):
        voice.say(_about_cluster(client, model, table))
    status = str if client is None else ClusterStatus(client)
    began = monotonic()
    with _progress(model, table, status) as callback, models.without_convergence_warnings():
        model.set_params(callback=callback).fit(table, covariates=covariates)
    model.set_params(callback=None, checkpoint=None)
    models.show_convergence(model, monotonic() - began, voice)


def _about_cluster(client: Client, model: TemporalNMF, shards: Shards) -> str:
    """The size of the cluster and of the data; refuses data that are too large."""
    from ..cluster.sources import check_memory

    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    threads = sum(worker["nthreads"] for worker in workers)
    limits = [worker["memory_limit"] for worker in workers]
    size = sum(shards.nbytes(i) for i in range(shards.n_shards))
    solver = model._config().solver
    resident = check_memory(solver, shards.n_features, model.n_components, size, limits)
    each = f", {_size(min(limits))} of memory each" if all(limits) else ""
    kept = "kept in their memory" if resident else "read from disk for every pass"
    return (
        f"Cluster: {counted(len(workers), 'worker')}, {counted(threads, 'thread')}{each}; "
        f"{counted(shards.n_shards, 'block')} of features, {_size(size)}, {kept}."
    )


def _size(nbytes: int) -> str:
    if nbytes >= 1e9:
        return f"{nbytes / 1e9:,.1f} GB"
    return f"{nbytes / 1e6:.0f} MB" if nbytes >= 1e7 else f"{nbytes / 1e6:.1f} MB"


class ClusterStatus:
    """Memory and losses of workers during a fit, requested at most once a second."""

    def __init__(self, client: Client, clock: Callable[[], float] = monotonic) -> None:
        self.client, self.clock = client, clock
        self.seen: set[str] = set()
        self.text, self.due = "", clock()

    def __call__(self) -> str:
        if self.clock() >= self.due:
            with suppress(OSError, ValueError):  # the fit reports a lost scheduler
                self.text = self._requested()
            self.due = self.clock() + _PAUSE
        return self.text

    def _requested(self) -> str:
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        self.seen |= set(workers)
        lost = len(self.seen) - len(workers)
        used = max((worker["metrics"].get("memory", 0) for worker in workers.values()), default=0)
        fullest = f", fullest worker {_size(used)}" if used else ""
        return fullest + (f", {counted(lost, 'worker')} lost" if lost else "")


def _progress(
    model: TemporalNMF, table: TimeTable | Shards, more: Callable[[], str]
) -> AbstractContextManager[Callback | None]:
    config = model._config()
    if not config.drawing:
        return fit_progress(config.n_init, config.max_iter, more)
    from ..sampling.run import kept_draws
    from ..shards import Shards

    n_features = table.n_features if isinstance(table, Shards) else len(table.features)
    thin, kept = kept_draws(config, 4 * config.n_chains * config.n_components * n_features)
    return draws_progress(config.n_chains, config.n_tune, config.n_tune + thin * kept, more)
