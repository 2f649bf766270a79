"""Running an experiment: one record per fit, written to disk as soon as the fit ends."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy import sparse

from .. import __version__
from .._typing import Array
from ..chains.parameters import Parameter
from ..cluster.clients import spread
from ..data.validation import Data
from ..effects.design import SeasonsLike
from ..estimator import TemporalNMF
from ..inference.config import AUTO
from ..messages.errors import ArgumentError, Text
from ..messages.warning import without
from ..metrics import kl_error
from ..runtime.archives import json_of, refuse_links_out
from ..runtime.files import room_told, written_whole
from ..runtime.signals import raise_if_stopped, that_end_with_us
from ..selection.data import Gridded, Matrix, dense, gridded
from ..selection.grids import LAST_CYCLE, LAST_VALUE, NAIVE
from ..selection.prediction import expected_steps, last_cycles, last_values, mean_activation
from ..selection.seasons import positions_in
from ..selection.splitters import Split
from ..timeline.clock import Clock
from ..timeline.grid import time_texts
from .protocol import Draws, Protocol, Task

if TYPE_CHECKING:
    from distributed import Client

Record = dict[str, Any]
Progress = Callable[[int, int], None]
Shared = tuple[Gridded, Protocol, Draws]

_REMEDY = "Choose another folder, or delete this one."
# In config.json, whether the seasons were chosen by the data.
_CHOSEN = "season_chosen"


def fit_task(
    X: Matrix | Gridded, protocol: Protocol, task: Task, W: Array, H: Array, split: Split
) -> Record:
    """One fit and its errors on validation steps, inner test steps and the step to forecast."""
    started = time.perf_counter()
    record: Record = task._asdict()
    data = X if isinstance(X, Gridded) else Gridded.undated(X)
    clock = data.timeline.clock
    final = int(np.flatnonzero(split.test)[-1])
    at_origin = task.split >= protocol.n_splits
    if at_origin:  # leave out everything after the step to forecast
        record["origin"] = final
        H, split = H[:, : final + 1], Split(*(m[: final + 1] for m in split))
        data = data.until(final + 1)
    n_steps = data.X.shape[0]
    forecast = np.zeros(n_steps, dtype=bool)
    forecast[final] = at_origin or not protocol.n_origins
    steps = {"validation": split.validation, "s": split.test & ~forecast, "f": forecast}
    record |= {"n_train": int(split.train.sum()), "n_test": int(split.test.sum())}
    if task.model in NAIVE:
        rows, params = _naive(data, protocol, task.model, split, clock)
        record |= {"params": params, "n_iter": 0, "stop_reason": "nothing to fit"}
    else:
        # A copy: processes share read-only memory, for which kernels would be compiled again.
        copied = data.X.copy() if sparse.issparse(data.X) else np.array(data.X)
        data = data._replace(X=copied)
        model = _fit(data, protocol, task, W, H, split)
        rows = expected_steps(model)
        found = {name: _for_json(value) for name, value in model.chain_.get_params().items()}
        tried = protocol.grids[task.model][task.point]
        chosen = {"n_components": len(model.components_), "smoothing": model.smoothing_}
        found |= {name: value for name, value in chosen.items() if name in tried}
        record |= {"params": found, "n_iter": model.n_iter_, "stop_reason": model.stop_reason_}
    known = np.nansum(dense(data.X[split.train]), axis=0) > 0.0  # features seen in training
    for name, mask in steps.items():
        record[f"kle_{name}"] = _error(data.X, rows, mask)
        record[f"kle_{name}_seen"] = _error(data.X, rows, mask, known)
    record["seconds"] = time.perf_counter() - started
    return record


def _naive(
    data: Gridded, protocol: Protocol, model: str, split: Split, clock: Clock
) -> tuple[Array, dict[str, str]]:
    """Predictions by the last value or the last cycle, and its name; a clock of all steps."""
    given = data.X, split.train, protocol.smoothing, data.exposure
    if model == LAST_VALUE:
        return last_values(*given), {}
    cycle = protocol.cycle(clock)
    positions = positions_in(cycle, data.timeline.clock)
    return last_cycles(*given, positions), {"cycle": cycle.name}


def _fit(
    data: Gridded, protocol: Protocol, task: Task, W: Array, H: Array, split: Split
) -> TemporalNMF:
    K = protocol.components_of(task)
    level = mean_activation(data.X, split.train, K, data.exposure)
    settings = protocol.settings(task, level, data.timeline.clock)
    if protocol.n_components == K:
        settings["init"] = (W.T, H.T * level if protocol.at_level else H.T)
    # Otherwise the number of the start is the seed.
    model = TemporalNMF(**settings, random_state=task.init)
    # Tables count the fits that did not converge; some reach the floor on the linear scale.
    with without(Warning):
        return model.fit(data.table, mask=split.train, exposure=data.exposure)


def _error(X: Matrix, rows: Array, mask: Array, known: Array | None = None) -> float:
    """Error on some steps, over all features or over the known ones."""
    if not mask.any():
        return float("nan")
    observed = dense(X[mask])
    seen = ~np.isnan(observed) & (True if known is None else known)
    return kl_error(observed[seen], rows[mask][seen])


def _for_json(value: Parameter) -> bool | str | float | list[float]:
    """A hyper-parameter as a value that JSON can hold."""
    return value if isinstance(value, bool | str) else np.asarray(value, dtype=float).tolist()


def run(
    protocol: Protocol,
    X: Data,
    folder: Path,
    *,
    mask: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    n_jobs: int = 1,
    client: Client | None = None,
    progress: Progress | None = None,
) -> list[Record]:
    """Run the fits of an experiment that a folder does not have yet, and return all records.

    Records are added to `fits.jsonl` as fits end, so a run that was killed continues where it
    stopped. `config.json` describes the experiment of the folder; another one is refused.

    Parameters
    ----------
    X, mask, exposure
        As in `TemporalNMF.fit`, but all weights of the mask are 0 or 1. Hidden entries are not
        scored, and predictions are exposure times rate.
    n_jobs : int
        Number of processes; only the seconds in the records depend on it.
    client : distributed.Client or None
        A Dask cluster for the fits, instead of `n_jobs`; see `temporalnmf.cluster`.
    progress : callable or None
        Called with the number of fits done and in total.

    Returns
    -------
    list of dict
        In the order of `protocol.tasks()`, forecast origins last.
    """
    if n_jobs == 0:
        raise ArgumentError("n_jobs", 0, ": expected a number of processes, or -1 for all cores.")
    if client is not None and n_jobs != 1:
        raise ArgumentError("n_jobs", n_jobs, Text("and {client=} exclude each other."))
    data = gridded(X, mask, exposure)
    draws = protocol.draw(data.X)  # refuses data that cannot be split
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    refuse_links_out(folder)
    with _alone(folder):
        log, config = folder / "fits.jsonl", folder / "config.json"
        automatic = protocol.season == AUTO
        protocol = protocol.of_data(data, _recorded_season(config, data))
        tasks = protocol.tasks(len(draws.splits) - protocol.n_splits)
        _check_config(config, protocol, data, automatic, started=log.exists())
        done = {_task(record): record for record in read_records(log, repair=True)}
        missing = [task for task in tasks if task not in done]
        results = _results((data, protocol, draws), missing, n_jobs, client, folder)
        # Closed immediately after an interrupt, so that a cluster cancels waiting tasks.
        with closing(results), log.open("ab", buffering=0) as file:
            for record in results:
                with room_told(log):
                    add_record(file, f"{json.dumps(record)}\n".encode())
                done[_task(record)] = record
                raise_if_stopped()
                if progress is not None:
                    progress(len(done), len(tasks))
    return [done[task] for task in tasks]


def add_record(file: RawIOBase, line: bytes) -> None:
    """Append a line and force it to disk, whole or not at all."""
    end = file.seek(0, os.SEEK_END)
    try:
        # Unbuffered: a buffer would be written again when the file is closed.
        written = 0
        while written < len(line):
            written += file.write(line[written:]) or 0
        os.fsync(file.fileno())
    except BaseException:
        file.truncate(end)
        raise


def _results(
    shared: Shared, tasks: list[Task], n_jobs: int, client: Client | None, folder: Path
) -> Generator[Record, None, None]:
    """Records as fits end."""
    if not tasks:
        return
    if client is None:
        jobs = (delayed(_fit_shared)(shared, *task) for task in tasks)
        yield from Parallel(n_jobs, return_as="generator_unordered", **that_end_with_us())(jobs)
        return
    try:
        for _, record in spread(client, _fit_shared, shared, tasks):
            yield record
    except ConnectionError as error:
        remedy = f"Finished fits are in {folder}: the same command continues from there."
        raise ConnectionError(f"{error} {remedy}") from error


def _fit_shared(shared: Shared, split: int, init: int, model: str, point: int) -> Record:
    """One fit; `shared` is sent to a worker only once."""
    data, protocol, draws = shared
    task = Task(split, init, model, point)
    return fit_task(data, protocol, task, *draws.of(task))


def _task(record: Record) -> Task:
    return Task(*(record[name] for name in Task._fields))


def read_records(log: Path, *, repair: bool = False) -> list[Record]:
    """Records of a file; a last line that a crash truncated is ignored, or removed."""
    if not log.exists():
        return []
    content = log.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if repair and len(whole) < len(content):
        with log.open("r+b") as file:
            file.truncate(len(whole))
    try:
        return [_record(line) for line in whole.splitlines()]
    except ValueError as error:
        remedy = "Delete the folder, or choose another one."
        raise ValueError(f"{log} is damaged: {error}. {remedy}") from error


# Types of the fields of a record.
_KINDS: dict[str, tuple[type, ...]] = {
    "split": (int,), "init": (int,), "model": (str,), "point": (int,), "params": (dict,),
    "n_iter": (int,), "stop_reason": (str,), "kle_validation": (int, float),
    "kle_s": (int, float), "kle_f": (int, float), "seconds": (int, float),
    "kle_s_seen": (int, float), "kle_f_seen": (int, float), "origin": (int,),
    "n_train": (int,), "n_test": (int,),
}  # fmt: skip
# Records of earlier versions lack some of them; only those of forecasts have an origin.
_OPTIONAL = ("kle_s_seen", "kle_f_seen", "origin", "n_train", "n_test")


def _record(line: bytes) -> Record:
    found = json_of(line, nan=True)
    if not isinstance(found, dict):
        raise ValueError(f"{found!r:.60} is not a record")
    for name, kinds in _KINDS.items():
        if name not in found and name not in _OPTIONAL:
            raise ValueError(f"{found!r:.60} is not a record: it has no {name}")
        if name in found and not _is_a(found[name], kinds):
            raise ValueError(f"a record has {name} {found[name]!r:.60}")
    for name, value in found["params"].items():
        if not (name.isprintable() and _is_a(value, (bool, str, list, int, float))):
            raise ValueError(f"a record has the parameter {name!r:.60} {value!r:.60}")
    return found


def _is_a(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether a JSON value has one of these types, is printable, and is not too large."""
    if type(value) is str and not value.isprintable():  # such as half of a surrogate pair
        return False
    return type(value) in kinds and not (type(value) is int and abs(value) >= 1 << 63)


def _data_text(data: Gridded) -> str:
    """Checksums of data and exposure."""
    text = fingerprint(data.X)
    if np.any(data.exposure != 1.0):
        text += f", exposure {fingerprint(data.exposure[:, None])}"
    return text


def _recorded_season(path: Path, data: Gridded) -> SeasonsLike:
    """The seasons that a run on the same data has chosen; "auto" if there was none."""
    found = _config_of(path) if path.exists() else {}
    same = str(found.get("data")).startswith(_data_text(data))
    season = found.get("season") if same and found.get(_CHOSEN) is True else AUTO
    several = isinstance(season, list) and all(isinstance(one, str | int) for one in season)
    return season if season is None or several else AUTO


def _config_of(path: Path) -> dict[str, Any]:
    """The description of the experiment of a folder."""
    try:
        found = json_of(path.read_bytes(), nan=True)
        if not isinstance(found, dict):
            raise ValueError(f"{found!r:.60} is not a config")
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Choose another folder.") from error
    return found


def _check_config(
    path: Path, protocol: Protocol, data: Gridded, automatic: bool, *, started: bool
) -> None:
    """Write the description of an experiment to its folder, or refuse another experiment."""
    about, line = _data_text(data), data.timeline
    if protocol.season is not None or LAST_CYCLE in protocol.grids:
        about += f", from {time_texts(line.times[:1])[0]}, every {line.every}"
    config = {**asdict(protocol), "data": about, "temporalnmf": __version__}
    wanted = json.loads(json.dumps(config))
    if not path.exists():
        if started:
            problem = "has records, but no config.json that describes the experiment"
            raise ValueError(f"{path.parent} {problem}. {_REMEDY}")
        if automatic:
            wanted[_CHOSEN] = True
        with written_whole(path) as partial:
            partial.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
        return
    found = _config_of(path)
    for key, value in wanted.items():
        if value != found.get(key):
            differing = f"{key} was {_brief(found.get(key))}, now it is {_brief(value)}"
            raise ValueError(f"{path.parent} holds another experiment: {differing}. {_REMEDY}")


def _brief(value: object) -> str:
    """A setting as text; of grids, the number of points of each."""
    if isinstance(value, dict) and all(isinstance(points, list) for points in value.values()):
        value = ", ".join(f"{len(points)} of {name}" for name, points in value.items())
    return f"{value!s:.400}"


def fingerprint(X: Matrix) -> str:
    """Shape and a hash of the values, to recognise data."""
    parts = [X]
    if sparse.issparse(X):
        rows = sparse.csr_array(X)
        parts = [rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"{X.shape[0]} x {X.shape[1]}, sha256 {digest.hexdigest()[:16]}"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock a folder for one process; the lock ends with the process, even if it is killed."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    with os.fdopen(_lock_file(folder / ".lock"), "r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            remedy = "Wait for it, or choose another folder."
            raise ValueError(f"Another run is using {folder}. {remedy}") from error
        yield


def _lock_file(path: Path) -> int:
    """Open a lock file without following links, and without emptying it."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ValueError(f"{path} is a link, which is not followed. Remove it.") from error
