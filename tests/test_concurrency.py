"""Fits and models in many threads and processes give what they give one after the other."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from joblib import Parallel, delayed, parallel_config
from numba import njit
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from threadpoolctl import LibController, threadpool_info, threadpool_limits

import temporalnmf
from children import in_child
from clusters import eventually
from fits_compared import bits
from temporalnmf import TemporalNMF
from temporalnmf.chains import Rate
from temporalnmf.forecasting import state
from temporalnmf.runtime.compilation import announced
from temporalnmf.runtime.threads import Threads
from temporalnmf.selection import RollingOrigin, select
from temporalnmf.solvers import Gibbs

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning"),
]

DATA = np.random.default_rng(0).poisson(3.0, (30, 3000)).astype(float)  # several shards
FEW = np.random.default_rng(1).poisson(5.0, (40, 6)).astype(float)


def _fit(n_jobs=1, X=DATA, n_components=3, **params):
    settings = {"max_iter": 12, "tol": 0.0, "random_state": 0, **params}
    return TemporalNMF(n_components, n_jobs=n_jobs, **settings).fit(X)


def _draw(n_jobs=1, seed=0):
    return _fit(n_jobs, FEW, 2, random_state=seed, solver=Gibbs(6, n_tune=3, n_chains=2))


def _at_once(jobs):
    """Results of functions that threads call at the same moment."""
    start = threading.Barrier(len(jobs))

    def work(job):
        start.wait()
        return job()

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # more chances for one to get in the way of another
    try:
        with ThreadPoolExecutor(len(jobs)) as pool:
            return [future.result() for future in [pool.submit(work, job) for job in jobs]]
    finally:
        sys.setswitchinterval(usual)


# Fits side by side


def test_eight_fits_at_once_give_the_bits_of_one_after_the_other():
    jobs = [
        lambda n_jobs=n_jobs, solver=solver, seed=seed: bits(
            _fit(n_jobs, solver=solver, random_state=seed)
        )
        for n_jobs, solver, seed in [
            (1, "mm", 0), (2, "mm", 1), (1, "accelerated", 2), (2, "accelerated", 3), (2, "mm", 0),
        ]
    ]  # fmt: skip
    jobs += [lambda n=n, seed=seed: bits(_draw(n, seed)) for n, seed in [(1, 0), (2, 0), (2, 1)]]
    alone = [job() for job in jobs]
    assert alone[0] == alone[4]  # one thread or two
    assert alone[5] == alone[6]
    assert len(set(alone)) == 6
    assert _at_once(jobs) == alone


def _answers(model, folder, name):
    """Everything that does not change a fitted model."""
    gap = FEW.copy()
    gap[10:13] = np.nan
    ahead = model.forecast(3, n_samples=50)
    past = model.smooth(n_samples=20)
    other = temporalnmf.load(model.save(folder / name, overwrite=True))
    found = [
        ahead.values, ahead.interval(0.9), ahead.samples(), past.values, past.interval(0.5),
        model.transform(FEW + 1.0), model.score(FEW), model.impute(gap),
        other.components_, other.forecast(3, n_samples=50).samples(),
    ]  # fmt: skip
    return [np.asarray(part).tobytes() for part in found]


@pytest.mark.quick("mode")
@pytest.mark.parametrize("fit", [lambda: _fit(2, FEW, 2), lambda: _draw(2)], ids=["mode", "draws"])
def test_eight_threads_that_ask_one_model_get_the_answers_of_one(fit, tmp_path):
    model = fit()
    alone = _answers(copy.deepcopy(model), tmp_path, "alone.zip")
    assert model._posterior is None  # what is made when it is first wanted is not there yet
    jobs = [lambda i=i: _answers(model, tmp_path, f"{i}.zip") for i in range(8)]
    assert _at_once(jobs) == [alone] * 8


def test_a_posterior_that_is_being_made_is_not_used_half_made(monkeypatch):
    """A thread asks while another is at it."""
    model, laplace, inside = _fit(X=FEW, n_components=2), state.laplace, []

    def ask(model):
        return model.forecast(2, n_samples=9).samples().tobytes()

    def slowly(*given):
        if not inside:
            inside.append("asked")
            inside.extend(_at_once([lambda: ask(model)]))
        return laplace(*given)

    alone = ask(copy.copy(model))
    monkeypatch.setattr(state, "laplace", slowly)
    assert ask(model) == alone
    assert inside == ["asked", alone]


def test_a_file_that_many_threads_save_to_is_always_whole(tmp_path):
    """The file is always a whole one, of one of them."""
    models = [_fit(X=FEW, random_state=seed, chain="none") for seed in range(4)]
    path, known = tmp_path / "model.zip", {bits(model) for model in models}

    def save(model):
        for _ in range(5):
            model.save(path, overwrite=True)
            assert bits(temporalnmf.load(path)) in known

    _at_once([lambda model=model: save(model) for model in models])
    assert [file.name for file in tmp_path.iterdir()] == ["model.zip"]


def test_a_forecast_leaves_blas_alone(monkeypatch):
    """Its number of threads is one for the process: of two who set it, the last restores a one."""
    asked = []
    for kind in LibController.__subclasses__():
        monkeypatch.setattr(kind, "set_num_threads", lambda self, number: asked.append(number))
    _fit(X=FEW).forecast(1, n_samples=2)
    assert asked == []


def test_a_search_in_threads_leaves_warnings_alone(monkeypatch):
    """Filters of warnings are one for the process: who leaves last must not set those inside."""
    fit, both, before = TemporalNMF.fit, threading.Barrier(2), list(warnings.filters)
    first_two = iter([True, True])

    def in_turn(self, *given, **more):
        if next(first_two, None) and both.wait() == 0:  # until the other has gone
            eventually(lambda: list(warnings.filters) == before)
        return fit(self, *given, **more)

    with warnings.catch_warnings(), parallel_config("threading", n_jobs=2):
        monkeypatch.setattr(TemporalNMF, "fit", in_turn)
        select(
            FEW,
            chains={"gap": [{}]},
            n_components=1,
            splitter=RollingOrigin(1),
            max_iter=2,
            n_jobs=2,
        )
        assert list(warnings.filters) == before


def test_fits_that_compile_side_by_side_say_so_once(capsys):
    """Numba tells all listeners of what any thread compiles."""

    def compile_something():
        with announced(True):
            njit(lambda x: x + 1.0)(1.0)
            everyone.wait()

    everyone = threading.Barrier(3)
    _at_once([compile_something] * 3)
    assert capsys.readouterr().err.count("compiling") == 1
    with announced(True):
        njit(lambda x: x + 2.0)(1.0)
    assert capsys.readouterr().err.count("compiling") == 1


@pytest.mark.parametrize("closed", [False, True])
def test_a_fit_needs_no_standard_error(closed, monkeypatch, tmp_path):
    """As under pythonw, or in a service that has closed it."""
    with (tmp_path / "log").open("w") as file:
        pass
    monkeypatch.setattr(sys, "stderr", file if closed else None)
    assert _fit(X=FEW, n_components=1).n_iter_ == 12


# Inside joblib's workers


@pytest.mark.quick("threading")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_all_cores_inside_workers_is_one_thread_each(backend):
    inside = Parallel(n_jobs=2, backend=backend)(delayed(_threads_of)(n) for n in (-1, None, 3))
    assert inside == [1, 1, 3]
    assert Parallel(n_jobs=1)([delayed(_threads_of)(-1)]) == [_threads_of(-1)]


def _threads_of(n_jobs):
    return Threads(n_jobs).n_threads


@pytest.mark.quick("threading")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_threads_of_nested_fits_are_those_asked_for(backend):
    """Two fits with two threads each: a helper each, and not for ever."""

    def one_by_one():
        return [_busiest(n_jobs, seed) for seed, n_jobs in enumerate((1, 2, 2))], _helpers()

    def nested():
        jobs = [delayed(_busiest)(2, seed) for seed in (0, 1, 2)]
        return Parallel(n_jobs=2, backend=backend)(jobs), _helpers()

    # Here threads of other tests' clusters may be at work.
    alone, left = in_child(one_by_one)
    assert [helpers for _, helpers in alone] == [0, 1, 1]
    assert left == 0
    together, left = nested() if backend == "loky" else in_child(nested)
    assert [found for found, _ in together] == [found for found, _ in alone]
    at_once = 1 if backend == "loky" else 2  # fits in a process
    assert all(1 <= helpers <= at_once for _, helpers in together)
    assert backend == "loky" or left == 0


def _busiest(n_jobs, seed):
    """Bits of a fit, and helpers in this process at the most."""
    most = []
    model = _fit(n_jobs, random_state=seed, callback=lambda p: most.append(_helpers()))
    return bits(model), max(most)


def _helpers():
    """Threads of teams."""
    return sum(thread.name.endswith("(_help)") for thread in threading.enumerate())


@pytest.mark.quick("threading")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_nested_fits_on_all_cores_keep_no_more_threads_busy_than_there_are_workers(backend):
    """Whoever has started them: BLAS is asked, too."""

    def fits():
        return Parallel(n_jobs=2, backend=backend)(delayed(_busy)(-1) for _ in range(2))

    # Here threads of other tests' clusters may be at work.
    together = fits() if backend == "loky" else in_child(fits)
    at_once = 1 if backend == "loky" else 2  # workers in a process
    for busy, blas in together:
        assert 1 <= len(busy) <= at_once, busy
        if backend == "loky":
            assert max(blas) <= max(os.cpu_count() // 2, 1)


@pytest.mark.long
def test_the_count_of_busy_threads_includes_helpers_and_blas():
    """Helpers, and those of BLAS, which are not Python's."""
    assert len(in_child(lambda: _busy(1))[0]) == 1
    assert len(in_child(lambda: _busy(2))[0]) == 2
    A = np.ones((900, 900))

    def multiplying():
        with threadpool_limits(2, "blas"):
            return _busy(1, lambda progress: A @ A)

    assert len(in_child(multiplying)[0]) == 2


def _busy(n_jobs, callback=lambda progress: None):
    """Seconds of the threads that work during a fit, native ones too, and threads of BLAS."""
    before, last = _seconds(), {}

    def look(progress):
        callback(progress)
        last.update(_seconds())  # before helpers have gone home

    _fit(n_jobs, max_iter=400, callback=look)
    spent = {thread: seconds - before.get(thread, 0.0) for thread, seconds in last.items()}
    busy = [seconds for seconds in spent.values() if seconds > 0.2 * max(spent.values())]
    return busy, [library["num_threads"] for library in threadpool_info()]


def _seconds():
    """Time that each thread of this process has had on a core."""
    return {t.id: t.user_time + t.system_time for t in psutil.Process().threads()}


@pytest.mark.long
def test_grid_search_in_processes_gives_the_same_bits():
    def search(n_jobs):
        grid = {"n_components": [1, 2], "n_jobs": [1, 2]}
        model = TemporalNMF(max_iter=12, random_state=0, chain=Rate())
        return GridSearchCV(model, grid, cv=TimeSeriesSplit(2), n_jobs=n_jobs).fit(FEW)

    one, two = search(None), search(2)
    name = "mean_test_score"
    assert np.isfinite(one.cv_results_[name]).all()
    assert two.cv_results_[name].tobytes() == one.cv_results_[name].tobytes()
    assert bits(two.best_estimator_) == bits(one.best_estimator_)


# After a fork


def test_a_forked_child_fits_forecasts_and_forks_again():
    model = _fit(2)
    here = [bits(model), bits(_fit(1)), bits(_draw(2)), model.forecast(2, n_samples=9).samples()]

    def child():
        ahead = model.forecast(2, n_samples=9).samples()
        grandchild = in_child(lambda: bits(_fit(2)))
        return [bits(_fit(2)), bits(_fit(1)), bits(_draw(2)), ahead], grandchild

    there, below = in_child(child)
    assert pickle.dumps(there) == pickle.dumps(here)
    assert below == here[0]
    assert bits(_fit(2)) == here[0]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fork_during_a_fit_gives_both_processes_the_same_bits(n_jobs):
    """Its helpers are awake, and the child has none of them."""
    alone, there = bits(_fit(n_jobs)), []

    def fork(progress):
        if not there:
            there.append(in_child(lambda: bits(_fit(n_jobs))))

    assert bits(_fit(n_jobs, callback=fork)) == alone
    assert there == [alone]


# Before anything is compiled

_COLD = """
import sys, threading
import numpy as np
from temporalnmf.chains.rate import _value
from temporalnmf.kernels.dense import dense_pass
from temporalnmf.likelihoods import Poisson

H = np.random.default_rng(0).gamma(2.0, size=(1, 9))
VT = np.ascontiguousarray(np.arange(36.0).reshape(4, 9).T)
start, found = threading.Barrier(4), {}


def work(i):
    WT, steps, bounds = np.full((1, 4), 0.25), np.arange(9), np.array([0, 4])
    WA, HA, values = np.zeros((1, 4)), np.zeros((1, 1, 9)), np.zeros(1)
    start.wait()
    flags = np.zeros(8, dtype=np.int64)
    dense_pass(1, Poisson.formulas, False, "v")(
        flags, 0, 0, 1, VT, np.ones((9, 1)), WT, H, np.empty(0), steps, bounds, WA, WA, HA, HA,
        values,
    )
    found[i] = _value(H, H, np.array([[3.0, 2.0, 1.0]])), float(values[0])


threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*{repr(found[i]) for i in range(4)}, sep="\\n")
"""

_COLD_FIT = """
import sys, threading, warnings
sys.path[:0] = [{tests!r}]
warnings.simplefilter("ignore")
import test_concurrency as case

print(*{{found.hex() for found in case._at_once([lambda: case.bits(case._fit(2))] * 4)}})
"""


def _cold(text, folder, n_processes=1):
    """What processes print that find no compiled code, at the same time."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", text]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, env=environment, **streams) for _ in range(n_processes)]
    said = []
    for process in started:
        try:
            out, errors = process.communicate()
        finally:
            process.kill()
        assert process.returncode == 0, errors
        said.append(out)
    assert list(folder.rglob("*.nbi"))
    return said


@pytest.mark.long
def test_threads_that_compile_the_same_function_share_the_cache(tmp_path):
    """Into an empty cache, which serves the next process."""
    (cold,) = _cold(_COLD, tmp_path)
    assert len(cold.splitlines()) == 1
    assert _cold(_COLD, tmp_path) == [cold]


@pytest.mark.long
def test_processes_and_threads_with_an_empty_cache_give_the_same_bits(tmp_path):
    text = _COLD_FIT.format(tests=str(Path(__file__).parent))
    expected = bits(_fit(2)).hex()
    cold = _cold(text, tmp_path, n_processes=2)
    assert [said.split() for said in cold] == [[expected], [expected]]
    assert _cold(text, tmp_path)[0].split() == [expected]
