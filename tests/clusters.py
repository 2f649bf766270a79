"""Dask clusters for tests: one that all tests of a process share, or one that a test may harm."""

import atexit
import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from functools import cache
from pathlib import Path

import dask
import pytest

import temporalnmf
from children import HUNG
from temporalnmf.cluster import clients as cluster
from temporalnmf.cluster import dask as actors
from temporalnmf.cluster import local, sources
from temporalnmf.cluster.block_data import MemorySource

# A busy machine takes longer than a user is to wait for a cluster that is not there.
cluster.PATIENCE = cluster._NEAR = actors._NO_RESPONSE = actors._NO_WORKER = float(HUNG)


@cache
def _started():
    """Two workers with a thread each, started when a test first asks for them."""
    # In a context of its own: it is not the current client of all other tests.
    held, context = local(n_workers=2), copy_context()
    client = context.run(held.__enter__)
    atexit.register(context.run, held.__exit__, None, None, None)  # after all tests of all modules
    return client


@pytest.fixture(name="client")
def a_client():
    """Of the cluster that all tests share: they leave its two workers alive."""
    found = _started()
    with found.as_current(), dask.config.set(scheduler="dask.distributed"):
        yield found


@pytest.fixture(name="own_client")
def a_client_of_its_own():
    """Of a cluster that ends with the test, which may kill the two workers."""
    with local(n_workers=2) as found:
        yield found


@pytest.fixture(name="alone")
def without_a_client(monkeypatch):
    """No cluster, whatever other tests have started."""
    monkeypatch.setattr(sources, "current_client", lambda: None)


@cache
def inside(n_workers=2):
    """A client of workers in this process, which nobody finds by chance; for many calls."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=False,
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        silence_logs=logging.ERROR,
    )
    # What its housekeeping says when the cluster closes a moment before it.
    logging.getLogger("tornado.application").setLevel(logging.CRITICAL)
    at_end.enter_context(cluster)
    return at_end.enter_context(Client(cluster, set_as_default=False))


# What is closed when all tests have ended, while there still are threads to do so.
at_end = ExitStack()


def eventually(holds):
    """Wait until something holds; only pytest's limit on a hung test ends the wait."""
    while not (found := holds()):
        time.sleep(0.02)
    return found


def kill_one(client, rng=None):
    """Kill a worker that the scheduler knows, and that is not about to die; returns its pid.

    Others would be killed while they start, and their nanny does not start them again.
    """

    def alive():
        known = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
        found = set()
        for nanny in client.cluster.workers.values():
            process = nanny.process
            ready = process is not None and process.status.name == nanny.status.name == "running"
            if ready and nanny.worker_address in known:
                found.add(process.pid)
        return sorted(found - _killed)

    found = eventually(alive)
    pid = found[0 if rng is None else rng.integers(len(found))]
    _killed.add(pid)
    os.kill(pid, signal.SIGKILL)
    return pid


_killed: set[int] = set()


@contextmanager
def separate(folder):
    """A cluster with one worker in a process of its own, which a test may kill; its address."""
    place = folder / "address"
    text = (
        "import sys, pathlib\n"
        "from temporalnmf.cluster import local\n"
        "if __name__ == '__main__':\n"
        "    with local(1) as client:\n"
        f"        path = pathlib.Path({str(place)!r})\n"
        "        path.with_suffix('.part').write_text(client.scheduler.address)\n"
        "        path.with_suffix('.part').rename(path)\n"
        "        sys.stdin.read()\n"
    )
    script = folder / "separate.py"
    script.write_text(text)
    # Scheduler and workers import this module.
    here = Path(__file__).parent
    paths = os.pathsep.join(map(str, (here, here.parent / "src")))
    environment = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(folder)}
    streams = {"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, script], env=environment, **streams) as process:
        try:
            eventually(lambda: place.exists() or process.poll() is not None)
            yield process, place.read_text()
        finally:
            process.kill()


# Work for clusters; workers import this module.


def scaled(shared, i, gate=None):
    """Waits for a file, if one is given."""
    if gate is not None:
        eventually(gate.exists)
    return shared["factor"] * i


def process_of(shared, i):
    return os.getpid()


def fails_at_three(shared, i):
    if i == 3:
        raise ValueError(f"i={i}: three is no good.")
    return i


def finds_nothing(shared, i):
    raise FileNotFoundError(f"no file {i}")


def kills(shared, i):
    os.kill(os.getpid(), 9)


def folder_of(dask_worker):
    return dask_worker.local_directory


def limit_of(dask_worker):
    return dask_worker.memory_manager.memory_limit


def set_version(version):
    """Returns the one before."""
    before, temporalnmf.__version__ = temporalnmf.__version__, version
    return before


def hide_package():
    """As if it were not installed."""
    global _hidden
    _hidden, sys.modules["temporalnmf"] = sys.modules["temporalnmf"], None


def show_package():
    sys.modules["temporalnmf"] = _hidden


class Deadly(MemorySource):
    """Data that nobody survives to read."""

    def series(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Filed(MemorySource):
    """Data that are there as long as a file is."""

    def series(self):
        file, series = self.data
        Path(file).read_bytes()
        return series
