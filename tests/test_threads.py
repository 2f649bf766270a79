"""Threads change the time a fit takes and nothing else."""

import os
import threading

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from scipy import sparse

from children import in_child
from fits_compared import bits
from temporalnmf import TemporalNMF
from temporalnmf.kernels.handoff import begin, end
from temporalnmf.likelihoods import Exponential, Poisson
from temporalnmf.observations import observe
from temporalnmf.runtime.threads import Pool, Threads

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def _data():
    """Large enough for several shards, dense and sparse."""
    rng = np.random.default_rng(0)
    level = np.exp(0.1 * rng.standard_normal((60, 4)).cumsum(axis=0))
    return rng.poisson(30.0 * level @ rng.dirichlet(np.full(3000, 0.3), size=4) * 10).astype(float)


DATA = _data()


def _fit(n_jobs=None, *, store=np.asarray, **params):
    settings = {"solver": "accelerated", "max_iter": 45, "random_state": 0, **params}
    return TemporalNMF(3, n_jobs=n_jobs, **settings).fit(store(DATA))


@pytest.mark.quick("csr_array-mm")
@pytest.mark.parametrize("solver", ["mm", "accelerated"])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array, np.float32])
def test_fits_have_the_same_bits_for_any_number_of_threads(solver, store):
    one = bits(_fit(1, store=store, solver=solver))
    for n_jobs in (1, 2, 3, None):
        assert bits(_fit(n_jobs, store=store, solver=solver)) == one


@pytest.mark.parametrize("n_components", [2, 11])
@pytest.mark.parametrize("likelihood", [Poisson(), Exponential()])
def test_sums_with_weights_per_entry_have_the_same_bits_for_any_number_of_threads(
    likelihood, n_components
):
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.0, 2.0, DATA.shape)
    W, H = rng.dirichlet(np.ones(3000), n_components).T, rng.gamma(2.0, 9.0, (n_components, 60))
    results = []
    for n_threads in (1, 2, 3, 7):
        with Threads(n_threads) as threads:
            data = observe(DATA + 0.5, weights, np.ones(60), likelihood, threads)
            sums = [x.tobytes() for pair in data.sums(W, H, "wh") for x in pair]
            results.append((*sums, data.value(W, H)))
    assert len(set(results)) == 1


def test_all_threads_take_part():
    seen = {}

    def kernel(flags, thread, first, last):
        begin(flags, thread)
        seen[thread] = (threading.get_ident(), range(first, last))
        end(flags, thread)

    with Threads(3) as threads:
        for _ in range(20):
            seen.clear()
            threads.run(kernel, 10)
            assert sorted(seen) == [0, 1, 2]
            assert len({ident for ident, _ in seen.values()}) == 3
            assert sorted(n for _, part in seen.values() for n in part) == list(range(10))


def test_threads_end_with_the_fit():
    before = threading.active_count()
    _fit(3)
    assert threading.active_count() == before


def test_helpers_that_fell_asleep_wake_up():
    """Between two passes a helper watches for about a millisecond, then sleeps."""
    counts = np.zeros(2)

    def kernel(flags, thread, first, last):
        begin(flags, thread)
        counts[thread] += 1
        end(flags, thread)

    with Threads(2) as threads:
        threads.run(kernel, 2)
        pool = threads.pool
        while not pool.asleep[1]:
            os.sched_yield()
        threads.run(kernel, 2)
    assert counts.tolist() == [2.0, 2.0]


def test_an_error_in_a_helper_reaches_the_caller_and_the_team_goes_on():
    def kernel(flags, thread, first, last, fail):
        begin(flags, thread)
        if fail and thread == 1:
            raise RuntimeError("in the helper")
        end(flags, thread)

    with Threads(2) as threads:
        with pytest.raises(RuntimeError, match="in the helper"):
            threads.run(kernel, 2, True)
        threads.run(kernel, 2, False)


def test_two_fits_in_two_threads_have_the_bits_of_each_alone():
    alone = [bits(_fit(2, random_state=seed)) for seed in (0, 1)]
    together = [None, None]

    def work(seed):
        together[seed] = bits(_fit(2, random_state=seed))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


@pytest.mark.quick("None-threading", "2-threading")
@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_fits_inside_joblib_have_the_bits_of_each_alone(backend, n_jobs):
    alone = [bits(_fit(random_state=seed)) for seed in (0, 1)]
    with parallel_config(backend, n_jobs=2):
        together = Parallel()(delayed(_fit)(n_jobs, random_state=seed) for seed in (0, 1))
    assert [bits(model) for model in together] == alone


def test_parallel_config_sets_the_number_of_threads():
    with parallel_config("threading", n_jobs=3):
        assert Threads(None).n_threads == 3
    assert Threads(None).n_threads == 1


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_fit_after_fork_has_the_same_bits():
    assert bits(_fit(2)) == in_child(lambda: bits(_fit(2)))


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_child_forked_during_a_fit_makes_its_own_threads():
    """The child has the parent's pool on its hands but none of its threads."""
    done = np.zeros(2)

    def kernel(flags, thread, first, last):
        begin(flags, thread)
        done[thread] += 1
        end(flags, thread)

    def again():
        threads.run(kernel, 2)
        threads.__exit__(None, None, None)
        return done.tolist()

    with Threads(2) as threads:
        threads.run(kernel, 2)
        assert in_child(again) == [2.0, 2.0]
        threads.run(kernel, 2)
    assert done.tolist() == [2.0, 2.0]


def test_errors_of_one_job_are_not_raised_by_the_next():
    def kernel(flags, thread, first, last, fail):
        if fail:
            raise RuntimeError(f"in thread {thread}")
        begin(flags, thread)
        end(flags, thread)

    with Threads(2) as threads:
        for _ in range(3):
            with pytest.raises(RuntimeError, match="in thread"):
                threads.run(kernel, 2, True)
            threads.run(kernel, 2, False)
            assert threads.pool.flags[0] == threads.pool.posted


def test_threads_without_a_shard_take_part_in_a_job():
    ranges = {}

    def kernel(flags, thread, first, last):
        begin(flags, thread)
        ranges[thread] = (first, last)
        end(flags, thread)

    with Threads(4) as threads:
        threads.run(kernel, 2)
    assert ranges == {0: (0, 1), 1: (1, 2), 2: (2, 2), 3: (2, 2)}


def test_a_job_posted_while_a_helper_falls_asleep_is_not_lost():
    pool = Pool(2)
    done = threading.Event()

    class Falling(list):
        """Posts a job at the worst moment: just before the helper says that it is asleep."""

        armed = True

        def __setitem__(self, thread, value):
            if value and self.armed:
                self.armed = False
                pool.post(lambda thread: done.set())
            super().__setitem__(thread, value)

    pool.asleep = Falling(pool.asleep)
    pool.post(lambda thread: None)  # it wakes up, and goes to sleep again
    assert done.wait()
    pool.shut_down()
