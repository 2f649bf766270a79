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
from ..estimator import TemporalNMF
from ..messages.errors import ArgumentError, Text
from ..messages.warning import without
from ..metrics import kl_error
from ..runtime.archives import json_of, refuse_links_out
from ..runtime.files import room_told, written_whole
from ..runtime.signals import raise_if_stopped, that_end_with_us
from ..selection.data import Matrix, dense, gridded
from ..selection.grids import LAST_VALUE
from ..selection.prediction import expected_steps, last_values, mean_activation
from ..selection.splitters import Split
from .protocol import Draws, Protocol, Task

if TYPE_CHECKING:
    from distributed import Client

Record = dict[str, Any]
Progress = Callable[[int, int], None]
Shared = tuple[Matrix, Array, Protocol, Draws]  # with the exposure

_REMEDY = "Choose another folder, or delete this one."


def fit_task(
    X: Matrix,
    protocol: Protocol,
    task: Task,
    W: Array,
    H: Array,
    split: Split,
    exposure: Array | None = None,
) -> Record:
    """One fit and its errors on validation steps, inner test steps and the step to forecast."""
    started = time.perf_counter()
    record: Record = task._asdict()
    final = int(np.flatnonzero(split.test)[-1])
    at_origin = task.split >= protocol.n_splits
    if at_origin:  # leave out everything after the step to forecast
        record["origin"] = final
        X, H, split = X[: final + 1], H[:, : final + 1], Split(*(m[: final + 1] for m in split))
    n_steps = X.shape[0]
    exposure = np.ones(n_steps) if exposure is None else exposure[:n_steps]
    forecast = np.zeros(n_steps, dtype=bool)
    forecast[final] = at_origin or not protocol.n_origins
    steps = {"validation": split.validation, "s": split.test & ~forecast, "f": forecast}
    record |= {"n_train": int(split.train.sum()), "n_test": int(split.test.sum())}
    if task.model == LAST_VALUE:
        rows = last_values(X, split.train, protocol.smoothing, exposure)
        record |= {"params": {}, "n_iter": 0, "stop_reason": "nothing to fit"}
    else:
        # A copy: processes share read-only memory, for which kernels would be compiled again.
        X = X.copy() if sparse.issparse(X) else np.array(X)
        model = _fit(X, protocol, task, W, H, split, exposure)
        rows = expected_steps(model)
        params = {name: _for_json(value) for name, value in model.chain_.get_params().items()}
        tried = protocol.grids[task.model][task.point]
        chosen = {"n_components": len(model.components_), "smoothing": model.smoothing_}
        params |= {name: value for name, value in chosen.items() if name in tried}
        record |= {"params": params, "n_iter": model.n_iter_, "stop_reason": model.stop_reason_}
    known = np.nansum(dense(X[split.train]), axis=0) > 0.0  # features seen in training
    for name, mask in steps.items():
        record[f"kle_{name}"] = _error(X, rows, mask)
        record[f"kle_{name}_seen"] = _error(X, rows, mask, known)
    record["seconds"] = time.perf_counter() - started
    return record


def _fit(
    X: Matrix, protocol: Protocol, task: Task, W: Array, H: Array, split: Split, exposure: Array
) -> TemporalNMF:
    K = protocol.components_of(task)
    level = mean_activation(X, split.train, K, exposure)
    settings = protocol.settings(task, level)
    if protocol.n_components == K:
        settings["init"] = (W.T, H.T * level if protocol.at_level else H.T)
    # Otherwise the number of the start is the seed.
    model = TemporalNMF(**settings, random_state=task.init)
    # Tables count the fits that did not converge; some reach the floor on the linear scale.
    with without(Warning):
        return model.fit(X, mask=split.train, exposure=exposure)


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
    data, sizes = gridded(X, mask, exposure)
    draws = protocol.draw(data)  # refuses data that cannot be split
    tasks = protocol.tasks(len(draws.splits) - protocol.n_splits)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    refuse_links_out(folder)
    with _alone(folder):
        log = folder / "fits.jsonl"
        _check_config(folder / "config.json", protocol, data, sizes, started=log.exists())
        done = {_task(record): record for record in read_records(log, repair=True)}
        missing = [task for task in tasks if task not in done]
        results = _results((data, sizes, protocol, draws), missing, n_jobs, client, folder)
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
    X, exposure, protocol, draws = shared
    task = Task(split, init, model, point)
    return fit_task(X, protocol, task, *draws.of(task), exposure)


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


def _check_config(
    path: Path, protocol: Protocol, X: Matrix, exposure: Array, *, started: bool
) -> None:
    """Write the description of an experiment to its folder, or refuse another experiment."""
    data = fingerprint(X)
    if np.any(exposure != 1.0):
        data += f", exposure {fingerprint(exposure[:, None])}"
    config = {**asdict(protocol), "data": data, "temporalnmf": __version__}
    wanted = json.loads(json.dumps(config))
    if not path.exists():
        if started:
            problem = "has records, but no config.json that describes the experiment"
            raise ValueError(f"{path.parent} {problem}. {_REMEDY}")
        with written_whole(path) as partial:
            partial.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
        return
    try:
        found = json_of(path.read_bytes(), nan=True)
        if not isinstance(found, dict):
            raise ValueError(f"{found!r:.60} is not a config")
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Choose another folder.") from error
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
