"""Workers that die in the middle of a fit: it goes on, and ends with the same bits."""

import os
import threading
import warnings

import dask.array as da
import distributed  # noqa: F401  its settings, before one is changed
import numpy as np
import pytest

from cases import memory_sources, on_workers, split_here
from clusters import Deadly, Filed, a_client, a_client_of_its_own, eventually, kill_one  # noqa: F401
from temporalnmf import TemporalNMF
from temporalnmf.chains import Rate
from temporalnmf.cluster import dask as actors
from temporalnmf.cluster import sources as splitting
from temporalnmf.cluster.dask import ClusterLostError, DaskExecutor, groups_of
from temporalnmf.cluster.series import SplitSeries, even_bounds
from temporalnmf.data.series import Series
from temporalnmf.likelihoods.poisson import Poisson
from temporalnmf.objective import Problem
from temporalnmf.shards import write_shards
from temporalnmf.solvers import Accelerated, MajorizeMinimize, Monitor
from temporalnmf.timeline import timeline_of

BOUNDS = even_bounds(40, 6)
N_ITER = 60


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Look early at whether a worker is gone."""
    monkeypatch.setattr(actors, "_PATIENCE", 0.2)


def data(seed=0, n_steps=60, n_features=40):  # so that H is not sent twice
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.5, 2.0, (n_steps, 3)) @ rng.gamma(0.3, 2.0, (3, n_features)))
    weights = (rng.random(X.shape) < 0.9).astype(float)
    return Series(X.astype(float), weights, np.ones(n_steps))


def start(series, K=3):
    rng = np.random.default_rng(1)
    W = rng.gamma(2.0, size=(series.shape[1], K))
    return W / W.sum(axis=0), rng.gamma(2.0, 20.0, size=(K, series.n_steps))


def problem_of(split):
    return Problem(split.observe(Poisson()), Rate(5.0, 5.0), "log", 0.1)


def counting(executor):
    """Have an executor count its requests."""
    asked, ask = [], executor.ask

    def counted(request):
        asked.append(request.name)
        return ask(request)

    executor.ask = counted
    return asked


def undisturbed(solver, series):
    """The result of blocks in this process, and the number of questions."""
    split = split_here(series, BOUNDS)
    problem, asked = problem_of(split), counting(split.executor)
    result = solver.solve(problem, *start(series), Monitor(N_ITER, 0.0))
    return result.W, result.H, result.monitor.history, len(asked)


@pytest.mark.parametrize(
    ("solver", "kept"),
    [
        (Accelerated(), "always"),
        (Accelerated(), "never"),
        (MajorizeMinimize(), "always"),
        (MajorizeMinimize(), "never"),
    ],
    ids=lambda given: getattr(given, "name", given),
)
@pytest.mark.long  # ten restarts of a worker each, of which every one takes seconds
def test_a_fit_survives_a_worker_killed_at_ten_random_moments(
    solver, kept, own_client, tmp_path, monkeypatch
):
    """Before a question is asked, or while it is answered or the state is written."""
    monkeypatch.setattr(actors, "_PAUSE", 0.0 if kept == "always" else np.inf)
    series = data()
    W, H, history, n_questions = undisturbed(solver, series)
    rng = np.random.default_rng([len(kept), len(solver.name)])
    moments = set(rng.choice(n_questions - 5, size=10, replace=False).tolist())
    folder = tmp_path if kept == "always" else None
    split = on_workers(own_client, series, BOUNDS, 2, folder=folder)
    problem = problem_of(split)
    executor, killed, threads = split.executor, [], []
    asked, ask = [], executor.ask

    def kill():
        killed.append(kill_one(own_client, rng))

    def disturbed(question):
        if len(asked) in moments:
            if len(asked) % 2:
                kill()
            else:
                threads.append(threading.Timer(rng.uniform(0.0, 0.02), kill))
                threads[-1].start()
        if question.name != "nothing":  # asked for a checkpoint
            asked.append(question.name)
        else:
            moments.discard(len(asked))
        return ask(question)

    executor.ask = disturbed
    result = solver.solve(problem, *start(series), Monitor(N_ITER, 0.0))
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(result.W, W)
    np.testing.assert_array_equal(result.H, H)
    assert result.monitor.history == history
    assert len(set(killed)) == 10
    assert executor.losses >= 5
    assert bool(list(tmp_path.iterdir())) == (kept == "always")
    executor.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("at", [pytest.param("first", marks=pytest.mark.long), "middle"])
def test_a_fit_survives_the_loss_of_all_workers_at_once(at, own_client, tmp_path, monkeypatch):
    monkeypatch.setattr(actors, "_PAUSE", 0.0)
    series, solver = data(), Accelerated()
    W, H, history, _ = undisturbed(solver, series)
    split = on_workers(own_client, series, BOUNDS, 2, folder=tmp_path)
    problem, killed = problem_of(split), []

    def callback(progress):
        if not killed and progress.iteration >= (0 if at == "first" else 40):
            killed.extend([kill_one(own_client), kill_one(own_client)])

    result = solver.solve(problem, *start(series), Monitor(N_ITER, 0.0, callback=callback))
    assert len(set(killed)) == 2
    assert split.executor.losses >= 2
    np.testing.assert_array_equal(result.W, W)
    np.testing.assert_array_equal(result.H, H)
    assert result.monitor.history == history


@pytest.mark.long
def test_a_fit_of_a_dask_array_survives_killed_workers(own_client, tmp_path, monkeypatch):
    """Data are made again from their graph."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    X = da.from_array(data().X, chunks=(-1, 7))
    options = {"n_components": 3, "random_state": 0, "n_init": 2, "max_iter": 60, "tol": 0.0}
    killed, looks = [], []

    def callback(progress):
        looks.append(progress.iteration)
        if len(looks) in (2, 7, 11, 16):
            killed.append(kill_one(own_client))

    with warnings.catch_warnings(action="ignore"):  # not converged
        with monkeypatch.context() as alone:
            alone.setattr(splitting, "current_client", lambda: None)
            expected = TemporalNMF(**options).fit(X)
        monkeypatch.setattr(splitting, "current_client", lambda: own_client)
        found = TemporalNMF(**options, callback=callback).fit(X)
    assert len(set(killed)) == 4
    np.testing.assert_array_equal(found.components_, expected.components_)
    np.testing.assert_array_equal(found.activations_, expected.activations_)
    np.testing.assert_array_equal(found.stability_, expected.stability_)
    assert found.objective_ == expected.objective_
    assert list(tmp_path.glob("temporalnmf-*")) == []  # checkpoints


@pytest.mark.long
def test_data_that_kill_every_worker_are_named(own_client, monkeypatch):
    """What cannot be held by anybody is named, in the end."""
    monkeypatch.setattr(actors, "_MOST_LOSSES", 1)
    series = data()
    sources = memory_sources(series, BOUNDS)
    sources[4] = Deadly(sources[4].data)
    executor = DaskExecutor(own_client, groups_of(sources, BOUNDS, 2), BOUNDS)
    words = rf"2 workers in a row were lost with features {BOUNDS[3]} and"
    with pytest.raises(ClusterLostError, match=words):
        SplitSeries.of(executor, series.exposure)
    # The cluster can be used again.
    assert on_workers(own_client, series, BOUNDS, 2).totals.tolist() == series.totals.tolist()


def test_an_error_of_the_disk_is_no_lost_worker(client, tmp_path):
    series = data()
    file = tmp_path / "data"
    file.touch()
    sources = [Filed((file, source.data)) for source in memory_sources(series, BOUNDS)]
    executor = DaskExecutor(client, groups_of(sources, BOUNDS, 2), BOUNDS, resident=False)
    split = SplitSeries.of(executor, series.exposure)
    problem = problem_of(split)
    W, H = start(series)
    assert np.isfinite(problem.objective(W, H))
    file.unlink()
    with pytest.raises(OSError, match=r"FileNotFoundError.*data"):
        problem.objective(W, H)
    assert executor.losses == 0
    file.touch()
    pids = client.run(os.getpid)
    assert len(pids) == 2


def test_a_shard_that_vanishes_during_a_fit_is_named(client, tmp_path, monkeypatch):
    X = data().X
    names = [f"w{i}" for i in range(40)]
    write_shards(tmp_path / "s", X, names=names, timeline=timeline_of(np.arange(60)), n_shards=4)
    monkeypatch.setattr(splitting, "_SHARE", 0.0)  # read for every pass
    monkeypatch.setattr(splitting, "current_client", lambda: client)
    before = client.run(os.getpid)

    def callback(progress):
        for path in (tmp_path / "s").glob("00002.*"):
            path.unlink()

    model = TemporalNMF(3, random_state=0, callback=callback)
    with pytest.raises((OSError, ValueError), match="00002"):
        model.fit(tmp_path / "s")
    assert client.run(os.getpid) == before
    assert not hasattr(model, "components_")
