"""Fixtures that tests of many modules share, and which tests `make test` leaves to `make test-long`."""

import os
import signal
import sys
from collections import defaultdict

import pytest

# Dask gives up what takes long; on a busy machine everything does. Before Dask reads its settings,
# and for processes that tests start.
for setting in ("COMM__TIMEOUTS__CONNECT", "COMM__TIMEOUTS__TCP", "DEPLOY__LOST_WORKER_TIMEOUT"):
    os.environ[f"DASK_DISTRIBUTED__{setting}"] = "300s"

import clusters
from cases import PLACES, Case
from covering import covering

# A shell lets what it runs in the background ignore Ctrl-C, and children inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of tests that are `pairwise`, or run in several places, all but a covering array is long."""
    tests = defaultdict(list)
    for item in items:
        given = item.callspec.params if hasattr(item, "callspec") else {}
        if (
            item.get_closest_marker("pairwise")
            or "anywhere" in given
            or given.get("place") in PLACES
        ):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        short = set(covering([_factors(item.callspec) for item in cases]))
        for i, item in enumerate(cases):
            if i not in short:
                item.add_marker(pytest.mark.long)


def _factors(callspec):
    """The values of a test's parameters; what one list gives is one value, unless it is a case."""
    found = []
    for name, value in callspec.params.items():
        found += value.factors() if isinstance(value, Case) else [callspec.indices[name]]
    return tuple(found)


def pytest_sessionfinish():
    clusters.at_end.close()


@pytest.fixture(autouse=True)
def _no_cluster_by_chance():
    """Fits go to the last client that was made: to that of another test, as long as it lives."""
    if "distributed" in sys.modules:
        import dask
        from distributed.client import _global_clients

        _global_clients.clear()
        dask.config.set(scheduler=None)


@pytest.fixture(params=PLACES)
def place(request):
    """Where the data of a problem are: in memory, cut into blocks, or on the workers of a cluster.

    Elsewhere than in memory a call takes longer, and tests do fewer of them.
    """
    return request.param


@pytest.fixture(scope="session")
def seeds(tmp_path_factory):
    """A folder of valid files of every kind that is read, to copy from."""
    from fuzzing import files

    return files.make_seeds(tmp_path_factory.mktemp("hostile") / "seeds")


@pytest.fixture
def model_file(seeds, tmp_path):
    """A saved model."""
    path = tmp_path / "model.npz"
    path.write_bytes((seeds / "model" / "0" / "model.npz").read_bytes())
    return path
