"""Dask clusters: the one place where we connect to one, start one, and give it work."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import islice
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..messages.arguments import check_choice, check_count

if TYPE_CHECKING:
    from distributed import Client, Future

# Seconds to wait for a scheduler, or for a first worker.
PATIENCE = 10.0
# A worker has taken some 325 MB after its first fits, of next to no data, and Dask gives no work to
# one that is above 80 % of its limit.
_LEAST_MEMORY = 500_000_000
# Seconds within which a worker that we can speak to answers.
_NEAR = 2.0
# How often the data may go down with all workers that hold them, as often as Dask repeats a task.
_LOSSES = 3
# Run by each worker that we start. Ctrl-C goes to all processes of a terminal, and is for the one
# that started them. Errors of tasks come back as such; what else a worker logs is about a scheduler
# that closes a moment before it.
_ASIDE = """import logging, signal
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
    """The cluster that a user asked for, or None: `connected` to a scheduler, or a `local` one.

    What does not go together is refused here, before the block is entered.
    """
    if dask is not None:
        check_choice("--dask", dask, ("local",))
    if scheduler is not None and dask is not None:
        raise ValueError(
            f"scheduler={scheduler!r} (--scheduler) and dask={dask!r} (--dask) are two clusters. "
            f"Give one of them."
        )
    if dask is None:
        for option, value in (("--workers", n_workers), ("--memory-limit", memory_limit)):
            if value is not None:
                raise ValueError(
                    f"{option} {value} is for a cluster on this machine: --dask local."
                )
        if scheduler is None:
            return nullcontext()
        _distributed()
        return connected(_check_address(scheduler))
    _distributed()
    _check_memory(memory_limit)
    return local(n_workers, memory_limit)


@contextmanager
def connected(scheduler: str, timeout: float | None = None) -> Iterator[Client]:
    """A client of a scheduler that runs somewhere.

    Parameters
    ----------
    scheduler : str
        Its address, as tcp://192.168.0.7:8786.
    timeout : float or None
        Seconds after which a scheduler that does not answer is given up; None is `PATIENCE`.
    """
    distributed = _distributed()
    timeout = PATIENCE if timeout is None else timeout
    _check_address(scheduler)
    try:
        # In a thread of its own, as a notebook has a loop in this one.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, _greet(scheduler, timeout)).result()
    except Exception as error:
        why = "" if isinstance(error, OSError | TimeoutError) else f" ({error})"
        raise ConnectionError(
            f"scheduler={scheduler!r} (--scheduler): no Dask scheduler answered within "
            f"{timeout:g} s{why}. Is it running, and can this machine reach it? "
            f"`dask scheduler` starts one and prints its address."
        ) from error
    with _silenced(), distributed.Client(scheduler, timeout=timeout) as client:
        # What goes by way of the scheduler goes twice; but it may be the only way.
        client.direct_to_workers = _reaches_workers(client)
        yield client


def _reaches_workers(client: Client) -> bool:
    """Whether this machine can speak to a worker."""
    try:
        for worker in islice(client.scheduler_info(n_workers=-1)["workers"], 1):
            with ThreadPoolExecutor(1) as pool:
                pool.submit(asyncio.run, _greet(worker, _NEAR)).result()
    except (OSError, ValueError):  # TimeoutError among them; an address of a kind of its own
        return False
    return True


def _check_address(scheduler: str) -> str:
    found = _ADDRESS.fullmatch(scheduler)
    if not found or not 0 < int(found["port"]) < 65536:
        raise ValueError(
            f"scheduler={scheduler!r} (--scheduler): expected the address that `dask scheduler` "
            f"prints when it starts, such as tcp://192.168.0.7:8786."
        )
    return scheduler


async def _greet(scheduler: str, timeout: float) -> None:
    """A handshake under a deadline: a client of Dask would wait for ever on one that is silent."""
    from distributed import Security
    from distributed.comm import connect

    security = Security().get_connection_args("client")
    comm = await asyncio.wait_for(connect(scheduler, timeout=timeout, **security), timeout)
    await comm.close()


@contextmanager
def local(
    n_workers: int | None = None,
    memory_limit: str | int | None = None,
    threads_per_worker: int = 1,
) -> Iterator[Client]:
    """A client of a cluster on this machine, which ends with the block.

    Parameters
    ----------
    n_workers : int or None
        Processes; None is one per core.
    memory_limit : str, int or None
        Of each worker, as "2GB"; one that comes close to it is started anew. None is its share of
        the machine's memory.
    threads_per_worker : int
    """
    distributed = _distributed()
    if n_workers is not None:
        check_count("n_workers", n_workers)
    limit, threads = (
        _check_memory(memory_limit),
        check_count("threads_per_worker", threads_per_worker),
    )
    with (
        TemporaryDirectory(prefix="temporalnmf-", ignore_cleanup_errors=True) as folder,
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=threads,
            memory_limit=limit,
            processes=True,
            local_directory=folder,
            # A scheduler always has an HTTP server: without pages, on any port, not for others.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False, "local_directory": folder},
            preload=[_ASIDE],
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
        raise ValueError(
            f"memory_limit={limit!r} (--memory-limit): expected a size for each worker, such as "
            f"2GB or 800MB."
        ) from error
    if size < _LEAST_MEMORY:
        raise ValueError(
            f"memory_limit={limit!r} (--memory-limit) is {format_bytes(size)}, too little for a "
            f"worker even without data. Give {_LEAST_MEMORY // 10**6}MB or more."
        )
    return size


def check_workers(client: Client, timeout: float | None = None) -> None:
    """Refuse a cluster without workers, or where some part has not our version of this package.

    The scheduler needs it, too: it looks into what it hands out.
    """

    # Not at the level of the module: by value it gets to workers that cannot import us.
    def version() -> str:
        try:
            import temporalnmf
        except ImportError as error:
            return f"no temporalnmf ({error})"
        return f"temporalnmf {temporalnmf.__version__}"

    _wait_for_a_worker(client, PATIENCE if timeout is None else timeout)
    ours = f"temporalnmf {__version__}"
    found = {f"The scheduler {_address(client)}": client.run_on_scheduler(version)}
    for worker, theirs in client.run(version, on_error="return").items():
        found[f"Worker {worker}"] = theirs
    for who, theirs in found.items():
        if theirs != ours:
            raise ValueError(
                f"{who} has {theirs}, and here it is {ours}. Install the same version everywhere, "
                f'for instance pip install "temporalnmf[dask]=={__version__}", and start it again.'
            )


def _wait_for_a_worker(client: Client, timeout: float) -> None:
    try:
        client.wait_for_workers(1, timeout)
    except TimeoutError as error:
        raise ConnectionError(
            f"The scheduler has no workers after {timeout:g} s. `dask worker {_address(client)}` "
            f"starts one."
        ) from error


def spread(
    client: Client,
    function: Callable[..., Any],
    shared: Any,
    tasks: Sequence[tuple[Any, ...]],
) -> Iterator[tuple[int, Any]]:
    """Yield (i, function(shared, *tasks[i])) for every task, in the order in which they end.

    `shared` goes to every worker once. Tasks of a worker that dies are done again; a task that
    raises does so here.

    joblib has a backend for Dask, too, but it hides the data in its batches, hands out all tasks
    at once, and cannot say whether it was the task or the cluster that failed.
    """
    if not tasks:
        return
    from distributed import KilledWorker, as_completed

    check_workers(client)
    data, losses, room = _scattered(client, shared), 0, 0
    todo = iter(range(len(tasks)))
    flying: dict[Future[Any], int] = {}
    ended = as_completed(loop=client.loop)

    def submit(i: int) -> None:
        # Not pure: keys would be hashes of the arguments, and two runs would share their results.
        future = client.submit(function, data, *tasks[i], pure=False)
        flying[future] = i
        ended.add(future)

    try:
        while True:
            # Workers are kept busy, and the scheduler does not get everything at once.
            if len(flying) <= room // 2:
                room = _room(client)
                for i in islice(todo, room - len(flying)):
                    submit(i)
            future = next(ended, None)
            if future is None:
                return
            i = flying.pop(future)
            try:
                result = future.result()
            except CancelledError:
                # Not by us: the scheduler is gone, or the last worker that had the data.
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
                raise _lost(client) from error  # while its result was on the way
            del future  # the cluster may forget it
            yield i, result
    finally:
        if client.status == "running":
            with suppress(OSError, TimeoutError):  # it may have gone just now
                client.cancel(list(flying))


def _scattered(client: Client, shared: Any) -> Any:
    """The data, on every worker; from one to the next even if it joins later."""
    _wait_for_a_worker(client, PATIENCE)
    try:
        # In a list: of a tuple each part would go on its own. A name by chance: one that is made
        # from the values could still be on its way out after a loss.
        return client.scatter([shared], broadcast=True, hash=False)[0]
    except (OSError, TimeoutError) as error:
        raise _lost(client) from error


def _room(client: Client) -> int:
    """How many tasks may be on their way: some for every thread, of workers that came later too."""
    try:
        return 64 + 4 * sum(client.nthreads().values())
    except (OSError, TimeoutError) as error:
        raise _lost(client) from error


def _lost(client: Client) -> ConnectionError:
    return ConnectionError(
        f"The connection to the scheduler {_address(client)} is lost. Start it again."
    )


def _address(client: Client) -> str:
    return str(getattr(client.scheduler, "address", "ADDRESS"))  # a closed client has none


def _killed() -> OSError:
    return OSError(
        "Workers died again and again, most likely for want of memory. Start fewer of them, with "
        "more memory each (--memory-limit)."
    )


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError('A cluster needs Dask: pip install "temporalnmf[dask]".') from error
    return distributed


@contextmanager
def _silenced() -> Iterator[None]:
    """Without Dask's own words on a scheduler that went away; ours are an error."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
