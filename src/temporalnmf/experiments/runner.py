"""Doing an experiment: one record per fit, on disk as soon as it is there."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from .. import __version__
from .._typing import Array
from ..cluster.clients import spread
from ..estimator import TemporalNMF
from ..messages.warning import without
from ..metrics import kl_error
from ..runtime.archives import json_of, refuse_links_out
from ..runtime.files import room_told, written_whole
from ..runtime.signals import raise_if_stopped, that_end_with_us
from ..selection.data import gridded
from ..selection.grids import LAST_VALUE
from ..selection.prediction import expected_steps, last_values, mean_activation, rows_of
from ..selection.splitters import Split
from .protocol import Draws, Protocol, Task

if TYPE_CHECKING:
    from distributed import Client

Record = dict[str, Any]
Progress = Callable[[int, int], None]


def fit_task(
    X: Any,
    protocol: Protocol,
    task: Task,
    W: Array,
    H: Array,
    split: Split,
    exposure: Array | None = None,
) -> Record:
    """One fit and its errors on validation steps, inner test steps and the step to forecast."""
    started = time.perf_counter()
    record: Record = {**task._asdict()}
    final = int(np.flatnonzero(split.test)[-1])
    at_origin = task.split >= protocol.n_splits
    if at_origin:  # nothing after the step to forecast exists yet
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
        # Workers share the data as read-only memory, which would be compiled for once more.
        X = X.copy() if sparse.issparse(X) else np.array(X)
        model = _fit(X, protocol, task, W, H, split, exposure)
        rows = expected_steps(model)
        params = {k: _plain(v) for k, v in model.chain_.get_params().items()}
        tried = protocol.grids[task.model][task.point]
        for name, value in (
            ("n_components", len(model.components_)),
            ("smoothing", model.smoothing_),
        ):
            if name in tried:
                params[name] = value
        record |= {"params": params, "n_iter": model.n_iter_, "stop_reason": model.stop_reason_}
    known = np.asarray(_totals(X, split.train) > 0.0)
    for name, mask in steps.items():
        record[f"kle_{name}"] = _error(X, rows, mask)
        record[f"kle_{name}_seen"] = _error(X, rows, mask, known)
    record["seconds"] = time.perf_counter() - started
    return record


def _fit(
    X: Any, protocol: Protocol, task: Task, W: Array, H: Array, split: Split, exposure: Array
) -> TemporalNMF:
    K = protocol.components_of(task)
    level = mean_activation(X, split.train, K, exposure)
    settings = protocol.settings(task, level)
    if protocol.n_components == K:
        settings["init"] = (W.T, H.T * level if protocol.at_level else H.T)
    # Else the start is one of our own, by the number of the start; draws have it for their seed.
    model = TemporalNMF(**settings, random_state=task.init)
    # Tables count the fits that did not converge; that some reach the floor on the linear scale is
    # known.
    with without(Warning):
        return model.fit(X, mask=split.train, exposure=exposure)


def _totals(X: Any, train: Array) -> Array:
    """Sums (n_features,) over the steps that a fit sees."""
    return np.nansum(rows_of(X, train), axis=0)


def _error(X: Any, rows: Array, mask: Array, known: Array | None = None) -> float:
    """Error on some steps, of all features or of those that are known."""
    if not mask.any():
        return float("nan")
    observed = rows_of(X, mask)
    seen = ~np.isnan(observed)
    if known is not None:
        seen &= known
    return kl_error(observed[seen], rows[mask][seen])


def _plain(value: Any) -> Any:
    """A hyper-parameter as JSON takes it."""
    return value if isinstance(value, bool | str) else np.asarray(value, dtype=float).tolist()


def run(
    protocol: Protocol,
    X: Any,
    folder: Path,
    *,
    mask: Any = None,
    exposure: Any = None,
    n_jobs: int = 1,
    client: Client | None = None,
    progress: Progress | None = None,
) -> list[Record]:
    """Do what of an experiment is not yet done in a folder, and return all of its records.

    Records are added to `fits.jsonl` one by one as fits end, so a run that was killed goes on where
    it stopped. `config.json` says which experiment the folder holds; another one is refused.

    Parameters
    ----------
    protocol : Protocol
    X, mask, exposure
        As in `TemporalNMF.fit`; the mask has no weights but 0 and 1. Hidden entries are not
        scored, and predictions are exposure times rate.
    folder : Path
    n_jobs : int
        Worker processes; the records do not depend on it, but for the seconds.
    client : distributed.Client or None
        A Dask cluster that makes the fits, in the place of `n_jobs`; see `temporalnmf.cluster`.
    progress : callable or None
        Called with the numbers of fits that are done and wanted.

    Returns
    -------
    list of dict
        In the order of `protocol.tasks()`, forecast origins last.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs=0: expected a number of processes, or -1 for all cores.")
    if client is not None and n_jobs != 1:
        raise ValueError(f"n_jobs={n_jobs} and client=: give one of them; a cluster has workers.")
    X, exposure = gridded(X, mask, exposure)
    draws = protocol.draw(X)  # refuses what cannot be split, first of all
    tasks = protocol.tasks(len(draws.splits) - protocol.n_splits)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    refuse_links_out(folder)
    with _alone(folder):
        log = folder / "fits.jsonl"
        _check_config(folder / "config.json", protocol, X, exposure, started=log.exists())
        done = {_task(record): record for record in read_records(log, repair=True)}
        missing = [task for task in tasks if task not in done]
        results = _results(protocol, X, exposure, draws, missing, n_jobs, client, folder)
        # Closed at once if we are stopped: a cluster takes back what waits.
        with closing(results), log.open("ab", buffering=0) as file:
            for record in results:
                with room_told(log):
                    _add(file, f"{json.dumps(record)}\n".encode())
                done[_task(record)] = record
                raise_if_stopped()
                if progress is not None:
                    progress(len(done), len(tasks))
    return [done[task] for task in tasks]


def _add(file: RawIOBase, line: bytes) -> None:
    """A line at the end of a file, on the disk, whole or not at all."""
    end = file.seek(0, os.SEEK_END)
    try:
        # Without a buffer, which would be written once more when the file is closed.
        written = 0
        while written < len(line):
            written += file.write(line[written:]) or 0
        os.fsync(file.fileno())
    except BaseException:
        file.truncate(end)
        raise


def _results(
    protocol: Protocol,
    X: Any,
    exposure: Array,
    draws: Draws,
    tasks: list[Task],
    n_jobs: int,
    client: Client | None,
    folder: Path,
) -> Generator[Record, None, None]:
    """Records as they come."""
    if not tasks:
        return
    if client is not None:
        try:
            for _, record in spread(client, _fit_shared, (X, exposure, protocol, draws), tasks):
                yield record
        except ConnectionError as error:
            raise ConnectionError(
                f"{error} What is done is in {folder}: the same command goes on from there."
            ) from error
        return
    jobs = (
        delayed(fit_task)(
            X, protocol, task, draws.W[:, :, task.init], draws.H[:, :, task.init],
            draws.splits[task.split], exposure,
        )
        for task in tasks
    )  # fmt: skip
    yield from Parallel(n_jobs, return_as="generator_unordered", **that_end_with_us())(jobs)


def _fit_shared(shared: tuple[Any, Array, Protocol, Draws], *fields: Any) -> Record:
    """A fit on a cluster, whose workers have everything but the name of the task."""
    X, exposure, protocol, draws = shared
    task = Task(*fields)
    W, H = draws.W[:, :, task.init], draws.H[:, :, task.init]
    return fit_task(X, protocol, task, W, H, draws.splits[task.split], exposure)


def _task(record: Record) -> Task:
    return Task(*(record[name] for name in Task._fields))


def read_records(log: Path, *, repair: bool = False) -> list[Record]:
    """Records of a file; a last line that was cut short by a crash is left out, or cut off."""
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
        raise ValueError(
            f"{log} is damaged: {error}. Delete the folder, or name another one."
        ) from error


# What tables are made of.
_KINDS: dict[str, tuple[type, ...]] = {
    "split": (int,), "init": (int,), "model": (str,), "point": (int,), "params": (dict,),
    "n_iter": (int,), "stop_reason": (str,), "kle_validation": (int, float),
    "kle_s": (int, float), "kle_f": (int, float), "seconds": (int, float),
    "kle_s_seen": (int, float), "kle_f_seen": (int, float), "origin": (int,),
    "n_train": (int,), "n_test": (int,),
}  # fmt: skip
# Older records do not have them; only those of forecasts have an origin.
_OPTIONAL = ("kle_s_seen", "kle_f_seen", "origin", "n_train", "n_test")


def _record(line: bytes) -> Record:
    found = json_of(line, nan=True)
    if not isinstance(found, dict):
        raise ValueError(f"{found!r:.60} is no record")
    for name, kinds in _KINDS.items():
        if name not in found and name not in _OPTIONAL:
            raise ValueError(f"{found!r:.60} is no record: it has no {name}")
        if name in found and not _is_a(found[name], kinds):
            raise ValueError(f"a record has {name} {found[name]!r:.60}")
    for name, value in found["params"].items():
        if not (name.isprintable() and _is_a(value, (bool, str, list, int, float))):
            raise ValueError(f"a record has the parameter {name!r:.60} {value!r:.60}")
    return found


def _is_a(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a value of JSON has one of some types, and can be counted with and written."""
    if type(value) is str and not value.isprintable():  # half of a character, for one
        return False
    return type(value) in kinds and not (type(value) is int and abs(value) >= 1 << 63)


def _check_config(
    path: Path, protocol: Protocol, X: Any, exposure: Array, *, started: bool
) -> None:
    """Write down which experiment a folder holds, or refuse another one."""
    data = fingerprint(X)
    if np.any(exposure != 1.0):
        data += f", exposure {fingerprint(exposure[:, None])}"
    config = {**protocol.describe(), "data": data, "temporalnmf": __version__}
    wanted = json.loads(json.dumps(config))
    if not path.exists():
        if started:
            raise ValueError(
                f"{path.parent} has records but no config.json that says of which experiment. Name "
                f"another folder, or delete this one."
            )
        with written_whole(path) as partial:
            partial.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
        return
    try:
        found = json_of(path.read_bytes(), nan=True)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Name another folder.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged: {found!r:.60} is no config. Name another folder.")
    differing = [key for key in wanted if wanted[key] != found.get(key)]
    if differing:
        key = differing[0]
        raise ValueError(
            f"{path.parent} holds another experiment: {key} was {_brief(found.get(key))}, now it "
            f"is {_brief(wanted[key])}. Name another folder, or delete this one."
        )


def _brief(value: Any) -> str:
    """Of grids, the number of points of each."""
    if isinstance(value, dict) and all(isinstance(points, list) for points in value.values()):
        value = ", ".join(f"{len(points)} of {name}" for name, points in value.items())
    return f"{value!s:.400}"


def fingerprint(X: Any) -> str:
    """Shape and a hash of the values, by which data are recognised."""
    if sparse.issparse(X):
        rows = sparse.csr_array(X)
        parts = [rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data]
    else:
        parts = [np.asarray(X)]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"{X.shape[0]} x {X.shape[1]}, sha256 {digest.hexdigest()[:16]}"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Only one run may write to a folder; the lock goes with its process, however that ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    with os.fdopen(_lock_file(folder / ".lock"), "r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ValueError(
                f"Another run is at work in {folder}. Wait for it, or name another folder."
            ) from error
        yield


def _lock_file(path: Path) -> int:
    """Opened as it is: a link would be followed, and the file behind it emptied."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ValueError(f"{path} is a link, which is not followed. Remove it.") from error
