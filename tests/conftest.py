"""Fixtures that tests of many modules share."""

import signal
import sys
from zlib import crc32

import pytest

import clusters
from cases import PLACES

# A shell lets what it runs in the background ignore Ctrl-C, and children inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of tests that are sampled, and of those that are run on a cluster, too, a quarter is short.

    Always the same quarter, by their names; `make test-long` runs all of them.
    """
    for item in items:
        given = item.callspec.params if hasattr(item, "callspec") else {}
        elsewhere = given.get("place") == "dask" or given.get("anywhere") == "client"
        sampled = elsewhere or item.get_closest_marker("sampled")
        if sampled and crc32(item.nodeid.encode()) % 4:
            item.add_marker(pytest.mark.long)


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


# On workers data are cut into blocks, too.
_IMPLIED = pytest.param("blocks", marks=pytest.mark.long)


@pytest.fixture(params=[_IMPLIED if place == "blocks" else place for place in PLACES])
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
