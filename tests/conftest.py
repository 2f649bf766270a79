"""Fixtures that tests of many modules share."""

import signal
import sys

import pytest

import clusters
from cases import PLACES

# A shell lets what it runs in the background ignore Ctrl-C, and children inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish():
    clusters.at_end.close()


@pytest.fixture(autouse=True)
def _no_cluster_by_chance():
    """Fits go to the last client that was made: to that of another test, as long as it lives."""
    if "distributed" in sys.modules:
        from distributed.client import _global_clients

        _global_clients.clear()


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
