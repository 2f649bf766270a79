"""Many fits in one process: threads, files and memory are given back. See tools/leaks.py."""

import gc
import itertools
import threading
import weakref
from collections import Counter

import leaks
import numpy as np
import psutil
import pytest

from children import in_child
from temporalnmf import TemporalNMF
from temporalnmf.runtime.threads import Pool
from temporalnmf.solvers import Gibbs

# Numbers of fits, of which tools/leaks.py draws all kinds that `seen` is asked for below.
KINDS = (1, 11, 12, 14, 22, 25, 36)


def left_behind(folder, n_rounds=1):
    """Growth of threads and of open files over all kinds, and of memory, in kB per fit."""
    seen, process = Counter(), psutil.Process()
    work = leaks.fits(folder, itertools.cycle(KINDS), seen)
    next(work)
    before = threading.active_count(), process.num_fds()
    n_fits = n_rounds * len(KINDS)
    grown, lines = leaks.traced(work, n_fits, n_fits)
    threads, files = threading.active_count() - before[0], process.num_fds() - before[1]
    for kind in (
        "accelerated saved", "mm saved", "gibbs saved", "gibbs", "dense on threads",
        "sparse on threads",
    ):  # fmt: skip
        assert seen[kind] >= 2 * n_rounds, kind
    return threads, files, grown / n_fits, "\n".join(lines)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_fits_leave_nothing_behind(tmp_path):
    """A model that is not given back takes 10 kB and more, of the smallest data that there are."""
    threads, files, grown, lines = in_child(lambda: left_behind(tmp_path, n_rounds=3))
    # The first fits may have closed files of the parent process: fewer are no leak.
    assert threads <= 0
    assert files <= 0
    assert grown < 2.0, lines


@pytest.mark.long
def test_the_leak_check_notices_models_that_are_kept(tmp_path, monkeypatch):
    kept, load = [], leaks.load

    def keeping(path):
        kept.append(load(path))
        return kept[-1]

    monkeypatch.setattr(leaks, "load", keeping)
    assert left_behind(tmp_path)[2] > 4.0
    assert kept


@pytest.mark.long
def test_the_leak_check_notices_threads_that_do_not_end(tmp_path, monkeypatch):
    pools, shut_down = [], Pool.shut_down
    monkeypatch.setattr(Pool, "shut_down", lambda pool: pools.append(pool))
    try:
        assert 0 < left_behind(tmp_path)[0] <= len(pools)
    finally:
        for pool in pools:
            shut_down(pool)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["accelerated", "gibbs"])
def test_a_deleted_model_and_its_data_are_freed_without_the_garbage_collector(solver):
    """A cycle of references would keep them until the collector runs."""
    X = np.random.default_rng(0).poisson(5.0, (12, 6)).astype(float)
    chosen = Gibbs(4, n_tune=2, n_chains=2) if solver == "gibbs" else solver
    gc.collect()
    gc.disable()
    try:
        model = TemporalNMF(2, solver=chosen, n_jobs=2, random_state=0, tol=1e-2, max_iter=50).fit(
            X
        )
        model.forecast(2)
        gone = weakref.ref(model), weakref.ref(model._series)
        del model
        assert [one() for one in gone] == [None, None]
    finally:
        gc.enable()
