"""What tests of many modules share, and which tests `make test` leaves to `make test-long`.

Imports little: the process that only hands out tests needs no more.
"""

import gc
import os
import signal
import sys
from collections import Counter, defaultdict
from functools import cache

import pytest

from covering import PLACES, covering

# Dask gives up what takes long; on a busy machine everything does. Before Dask reads its settings,
# and for processes that tests start.
for setting in ("COMM__TIMEOUTS__CONNECT", "COMM__TIMEOUTS__TCP"):
    os.environ[f"DASK_DISTRIBUTED__{setting}"] = "300s"
# After this time Dask looks whether a lost worker was replaced, and gives up its place if it was
# killed once more at that moment.
os.environ["DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT"] = "1 day"

# A shell lets what it runs in the background ignore Ctrl-C, and children inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Which tests are run, and where


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Of tests over many cases, all but a covering array or those named quick are long.

    Files with few tests come first: their tests take longest, and two processes that begin with
    these end at the same time.
    """
    tests, named = defaultdict(list), defaultdict(set)
    for item in items:
        quick = item.get_closest_marker("quick")
        if quick:
            named[item.nodeid.partition("[")[0], quick.args].add(item.callspec.id)
            if item.callspec.id not in quick.args:
                item.add_marker(pytest.mark.long)
        if (strength := _strength(item)) and not item.get_closest_marker("long"):
            tests[item.nodeid.partition("[")[0], strength].append(item)
    for (_, strength), cases in tests.items():
        short = set(covering([_factors(item.callspec) for item in cases], strength))
        for i, item in enumerate(cases):
            if i not in short:
                item.add_marker(pytest.mark.long)
    if not any("::" in arg for arg in config.args):  # otherwise not all cases are here
        for (test, ids), found in named.items():
            if unknown := set(ids) - found:
                raise pytest.UsageError(f"{test}: quick names {unknown}, which are no cases of it")
    groups = {item: _group(item.path) for item in items}
    sizes = Counter(groups[item] for item in items if not item.get_closest_marker("long"))
    items.sort(key=lambda item: (groups[item] != "cluster", sizes[groups[item]], groups[item]))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Nothing of what is collected is garbage, and looking for some takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """Thousands of tests stay until the end: the garbage collector need not look at them."""
    gc.collect()
    gc.freeze()


def _strength(item):
    """How many parameters at a time have all of their values in `make test`; 0 is all cases."""
    given = item.callspec.params if hasattr(item, "callspec") else {}
    if item.get_closest_marker("each_value") or "anywhere" in given:
        return 1
    return 2 if item.get_closest_marker("pairwise") or given.get("place") in PLACES else 0


def _factors(callspec):
    """The values of a test's parameters, hashable or not, and the parts of a case."""
    found = []
    for value in callspec.params.values():
        found += value.factors() if hasattr(value, "factors") else [id(value)]
    return tuple(found)


def pytest_xdist_make_scheduler(config, log):
    """A file is run by one process, so that its fixtures are made once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return _group(config.rootpath / nodeid.partition("::")[0])

    config.option.loadscopereorder = False
    return ByFile(config, log)


@cache
def _group(file):
    """Files that share a cluster go to the same process."""
    return "cluster" if "a_client" in file.read_text() else str(file)


# What is left out is told at the end

_LEFT_OUT = pytest.StashKey[int]()


def pytest_deselected(items):
    if items[0].config.option.keyword:  # somebody asks for a few tests by name
        return
    found = sum(item.get_closest_marker("long") is not None for item in items)
    if found:
        config = items[0].config
        config.stash[_LEFT_OUT] = config.stash.get(_LEFT_OUT, 0) + found


def pytest_sessionfinish(session):
    if "clusters" in sys.modules:
        sys.modules["clusters"].at_end.close()
    if hasattr(session.config, "workeroutput"):  # of a process of xdist, for the one that reports
        session.config.workeroutput["left out"] = session.config.stash.get(_LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    left_out = getattr(node, "workeroutput", {}).get("left out", 0)  # nothing of one that crashed
    node.config.stash[_LEFT_OUT] = max(left_out, node.config.stash.get(_LEFT_OUT, 0))


def pytest_terminal_summary(terminalreporter, config):
    left_out = config.stash.get(_LEFT_OUT, 0)
    if left_out:
        terminalreporter.write_line(
            f"Left out: {left_out:,} long tests, which `make test-long` runs with all others."
        )


# Fixtures


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


@pytest.fixture
def ax():
    """Axes of a figure that pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure().subplots()
