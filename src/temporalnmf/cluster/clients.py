"""Connections to Dask clusters, clusters on this machine, and tasks for their workers."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import islice
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from .. import __version__
from ..messages.arguments import check_count
from ..messages.errors import Arg, ArgumentError, Text

if TYPE_CHECKING:
    from distributed import Client, Future

Shared = TypeVar("Shared")
Result = TypeVar("Result")
Task = TypeVarTuple("Task")

# Seconds to wait for a scheduler, or for a first worker.
PATIENCE = 10.0
# A worker takes about 325 MB after its first fits even of tiny data, and Dask gives no tasks to one
# above 80 % of its limit.
_LEAST_MEMORY = 500_000_000
# Seconds to wait for a worker that may not be reachable from this machine.
_NEAR = 2.0
# How often the data may be lost with all workers that hold them: as often as Dask repeats a task.
_LOSSES = 3
# Run by each worker that we start. Ctrl-C goes to all processes of a terminal, but only the main
# one should handle it. Errors of tasks are returned; other log messages of a worker are about a
# scheduler that closes just before it.
_PRELOAD = """import logging, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
"""
_ADDRESS = re.compile(r"((tcp|tls|ws|wss|ucx)://)?(\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):(?P<port>\d+)")


def serving(
    scheduler: str | None = None,
    dask: str | None = None,
    n_workers: int | None = None,
    memory_limit: str | int | None = None,
) -> AbstractContextManager[Client | None]:
    """A client of the cluster that a user asked for, `connected` or `local`, or None.

    Arguments that contradict each other are refused before the block is entered.
    """
    if dask is not None:
        if dask != "local":
            raise ArgumentError("dask", dask, "is not known.", "Choose local.")
        if scheduler is not None:
            problem = Text("and {dask} are two clusters.", dask=Arg("dask", repr(dask)))
            raise ArgumentError("scheduler", scheduler, problem, "Give one of them.")
        _distributed()
        _check_memory(memory_limit)
        return local(n_workers, memory_limit)
    for name, value in (("n_workers", n_workers), ("memory_limit", memory_limit)):
        if value is not None:
            needs = Text("is for a cluster on this machine: {dask}.", dask=Arg("dask", "'local'"))
            raise ArgumentError(name, value, needs)
    if scheduler is None:
        return nullcontext()
    _distributed()
    return connected(_check_address(scheduler))


@contextmanager
def connected(scheduler: str, timeout: float | None = None) -> Iterator[Client]:
    """A client of a running scheduler.

    Parameters
    ----------
    scheduler : str
        Its address, such as tcp://192.168.0.7:8786.
    timeout : float or None
        Seconds to wait for an answer; None is `PATIENCE`.
    """
    distributed = _distributed()
    timeout = PATIENCE if timeout is None else timeout
    _check_address(scheduler)
    try:
        _greet(scheduler, timeout)
    except Exception as error:
        why = "" if isinstance(error, OSError | TimeoutError) else f" ({error})"
        problem = (
            "{scheduler}: no Dask scheduler answered within {timeout:g} s{why}. Is it running, and "
            "can this machine reach it? `dask scheduler` starts one and prints its address."
        )
        given = Arg("scheduler", repr(scheduler))
        raise ConnectionError(Text(problem, scheduler=given, timeout=timeout, why=why)) from error
    with _silenced(), distributed.Client(scheduler, timeout=timeout) as client:
        # Otherwise data go through the scheduler, which is slower.
        client.direct_to_workers = _reaches_workers(client)
        yield client


def _reaches_workers(client: Client) -> bool:
    """Whether this machine can connect to a worker."""
    try:
        for worker in islice(client.scheduler_info(n_workers=-1)["workers"], 1):
            _greet(worker, _NEAR)
    except (OSError, ValueError):  # includes TimeoutError; unknown kinds of addresses
        return False
    return True


def _check_address(scheduler: str) -> str:
    found = _ADDRESS.fullmatch(scheduler)
    if not found or not 0 < int(found["port"]) < 65536:
        problem = ": expected the address that `dask scheduler` prints when it starts, such as"
        raise ArgumentError("scheduler", scheduler, f"{problem} tcp://192.168.0.7:8786.")
    return scheduler


def _greet(address: str, timeout: float) -> None:
    """A handshake with a timeout: a Dask client would wait forever for a silent scheduler."""
    from distributed import Security
    from distributed.comm import connect

    security = Security().get_connection_args("client")

    async def greet() -> None:
        comm = await asyncio.wait_for(connect(address, timeout=timeout, **security), timeout)
        await comm.close()

    # In another thread, since notebooks run an event loop in this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, greet()).result()


@contextmanager
def local(
    n_workers: int | None = None, memory_limit: str | int | None = None, threads_per_worker: int = 1
) -> Iterator[Client]:
    """A client of a cluster on this machine, which is closed at the end of the block.

    Parameters
    ----------
    n_workers : int or None
        Processes; None is one per core.
    memory_limit : str, int or None
        Of each worker, such as "2GB"; a worker near its limit is restarted. None is an equal share
        of the machine's memory.
    threads_per_worker : int
    """
    distributed = _distributed()
    if n_workers is not None:
        check_count("n_workers", n_workers)
    limit = _check_memory(memory_limit)
    threads = check_count("threads_per_worker", threads_per_worker)
    with (
        TemporaryDirectory(prefix="temporalnmf-", ignore_cleanup_errors=True) as folder,
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=threads,
            memory_limit=limit,
            processes=True,
            local_directory=folder,
            # The scheduler's HTTP server cannot be disabled: no pages, this machine only.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False, "local_directory": folder},
            preload=[_PRELOAD],
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, direct_to_workers=True) as client,
    ):
        yield client


def _check_memory(limit: str | int | None) -> str | int:
    if limit is None or limit == "auto":
        return "auto"
    from dask.utils import format_bytes, parse_bytes

    try:
        size = int(parse_bytes(limit))
    except (ValueError, OverflowError, TypeError) as error:
        problem = ": expected a size for each worker, such as 2GB or 800MB."
        raise ArgumentError("memory_limit", limit, problem) from error
    if size < _LEAST_MEMORY:
        problem = f"is {format_bytes(size)}, too little for a worker even without data."
        remedy = f"Give {_LEAST_MEMORY // 10**6}MB or more."
        raise ArgumentError("memory_limit", limit, problem, remedy)
    return size


def check_workers(client: Client, timeout: float | None = None) -> None:
    """Refuse a cluster without workers, or with another version of this package on some machine.

    The scheduler needs the package, too, to deserialize tasks.
    """

    # A nested function is pickled by value, for workers that cannot import this package.
    def version() -> str:
        try:
            import temporalnmf
        except ImportError as error:
            return f"no temporalnmf ({error})"
        return f"temporalnmf {temporalnmf.__version__}"

    _wait_for_a_worker(client, PATIENCE if timeout is None else timeout)
    ours = f"temporalnmf {__version__}"
    found = {f"The scheduler {address_of(client)}": client.run_on_scheduler(version)}
    for worker, theirs in client.run(version, on_error="return").items():
        found[f"Worker {worker}"] = theirs
    for who, theirs in found.items():
        if theirs != ours:
            problem = f"{who} has {theirs}, and this process has {ours}."
            remedy = f'pip install "temporalnmf[dask]=={__version__}"'
            raise ValueError(f"{problem} Install the same version everywhere: {remedy}.")


def _wait_for_a_worker(client: Client, timeout: float) -> None:
    try:
        client.wait_for_workers(1, timeout)
    except TimeoutError as error:
        remedy = f"`dask worker {address_of(client)}` starts one."
        problem = f"The scheduler has no workers after {timeout:g} s."
        raise ConnectionError(f"{problem} {remedy}") from error


def spread(
    client: Client,
    function: Callable[[Shared, *Task], Result],
    shared: Shared,
    tasks: Sequence[tuple[*Task]],
) -> Iterator[tuple[int, Result]]:
    """Yield (i, function(shared, *tasks[i])) for every task, in the order of completion.

    `shared` is sent to every worker once. Tasks of a worker that dies are repeated; an exception
    of a task is raised here.

    joblib has a Dask backend, too, but it packs the data into its batches, submits all tasks at
    once, and does not tell errors of a task from those of the cluster.
    """
    if not tasks:
        return
    from distributed import KilledWorker, as_completed

    check_workers(client)
    data, losses, room = _scattered(client, shared), 0, 0
    todo = iter(range(len(tasks)))
    pending: dict[Future[Result], int] = {}
    completed = as_completed(loop=client.loop)

    def submit(i: int) -> None:
        # Not pure: keys would be hashes of the arguments, and two runs would share their results.
        future = client.submit(function, data, *tasks[i], pure=False)
        pending[future] = i
        completed.add(future)

    try:
        while True:
            # Keep workers busy without sending all tasks to the scheduler at once.
            if len(pending) <= room // 2:
                room = _room(client)
                for i in islice(todo, room - len(pending)):
                    submit(i)
            future = next(completed, None)
            if future is None:
                return
            i = pending.pop(future)
            try:
                result = future.result()
            except CancelledError:
                # Not cancelled by us: the scheduler is lost, or the last worker with the data.
                if client.status != "running":
                    raise _lost(client) from None
                if data.status != "finished":
                    losses += 1
                    if losses > _LOSSES:
                        raise _killed() from None
                    data = _scattered(client, shared)
                submit(i)
                continue
            except KilledWorker as error:
                raise _killed() from error
            except OSError as error:
                if future.status == "error":
                    raise  # of the task
                raise _lost(client) from error  # while its result was being sent
            del future  # so that the cluster frees the result
            yield i, result
    finally:
        if client.status == "running":
            with suppress(OSError, TimeoutError):  # it may just have been lost
                client.cancel(list(pending))


def _scattered(client: Client, shared: object) -> Future[object]:
    """The data on every worker; workers that join later copy them from another one."""
    _wait_for_a_worker(client, PATIENCE)
    try:
        # In a list, since the parts of a tuple would be sent separately. With a random key, since a
        # hash of the values could still be in the process of deletion after a loss.
        return client.scatter([shared], broadcast=True, hash=False)[0]
    except (OSError, TimeoutError) as error:
        raise _lost(client) from error


def _room(client: Client) -> int:
    """How many tasks may be pending: some for every thread of the current workers."""
    try:
        return 64 + 4 * sum(client.nthreads().values())
    except (OSError, TimeoutError) as error:
        raise _lost(client) from error


def _lost(client: Client) -> ConnectionError:
    problem = f"The connection to the scheduler {address_of(client)} is lost."
    return ConnectionError(f"{problem} Start it again.")


def address_of(client: Client) -> str:
    return str(getattr(client.scheduler, "address", "ADDRESS"))  # a closed client has none


def _killed() -> OSError:
    problem = "Workers died again and again, most likely because memory ran out."
    return OSError(Text(problem + " Start fewer, with more memory each ({memory_limit=})."))


def _distributed() -> ModuleType:
    try:
        import distributed
    except ImportError as error:
        raise ImportError('A cluster needs Dask: pip install "temporalnmf[dask]".') from error
    return distributed


@contextmanager
def _silenced() -> Iterator[None]:
    """Suppress Dask's log messages about a lost scheduler: we raise an error instead."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
