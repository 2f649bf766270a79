"""Draws on data in blocks of features, here and on a cluster."""

import json
import os
import signal
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import geweke as joint
from cases import FEW, estimator, memory_sources, split_here
from clusters import a_client, a_client_of_its_own, eventually  # noqa: F401
from temporalnmf.chains import Rate
from temporalnmf.chains.base import First
from temporalnmf.cluster import dask
from temporalnmf.cluster.gibbs import SplitGibbs
from temporalnmf.cluster.series import SplitSeries, even_bounds
from temporalnmf.data.series import Series
from temporalnmf.likelihoods.negative_binomial import NegativeBinomial
from temporalnmf.likelihoods.poisson import Poisson
from temporalnmf.messages.errors import ArgumentError
from temporalnmf.observations import observe
from temporalnmf.runtime.archives import read_npz, sealed, unsealed, write_npz
from temporalnmf.runtime.threads import Threads
from temporalnmf.sampling import gibbs, learning
from temporalnmf.sampling import run as runs
from temporalnmf.sampling.gibbs import Gibbs
from temporalnmf.sampling.learning import (
    LearnedChain,
    LearnedLikelihood,
    LearnedSmoothing,
    Parameters,
)
from temporalnmf.sampling.run import draw_factors

N_STEPS, N_FEATURES, N_COMPONENTS = 12, 23, FEW
BLOCKS = even_bounds(N_FEATURES, 5)
KEPT = ("components", "activations", "smoothing", "log_posterior")


def some_series(scale=1.0, storage=np.asarray):
    """Counts without two steps, an entry, and a feature; large ones, too, if they are scaled."""
    rng = np.random.default_rng(3)
    X = np.round(scale * rng.poisson(rng.gamma(0.5, 4.0, size=(N_STEPS, N_FEATURES))))
    weights = np.ones_like(X)
    weights[[3, -1]] = weights[5, 7] = weights[:, 9] = 0.0
    weights[6, BLOCKS[2] : BLOCKS[3]] = 0.0
    return Series(storage(X * weights), weights, np.linspace(0.5, 2.0, N_STEPS))


@pytest.fixture(autouse=True)
def short_starts(monkeypatch):
    """Starts need not be good ones."""
    monkeypatch.setattr(runs, "_START_ITER", 5)


def drawn(series, **settings):
    given = {"n_draws": 6, "n_tune": 4, "n_chains": 2, "random_state": 0, "smoothing": "learn"}
    model = estimator(N_COMPONENTS, solver="gibbs", **given | settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so few draws
        return draw_factors(model._config(), series)


def same(one, other):
    for name in KEPT:
        np.testing.assert_array_equal(getattr(one.draws, name), getattr(other.draws, name))
    np.testing.assert_array_equal(one.W, other.W)
    assert one.objective == other.objective
    assert one.divergence == other.divergence


def on_cluster(client, series, n_groups, **parameters):
    groups = dask.groups_of(memory_sources(series, BLOCKS), BLOCKS, n_groups)
    executor = dask.DaskExecutor(client, groups, BLOCKS, **parameters)
    return SplitSeries.of(executor, series.exposure, series.timeline)


# Bits


@pytest.mark.long
@pytest.mark.parametrize(
    "storage",
    [
        pytest.param(np.asarray, id="dense"),
        pytest.param(sparse.csr_array, id="csr"),
    ],
)
def test_draws_do_not_depend_on_who_holds_the_blocks(storage, client):
    """This process, with one thread or two; or two workers, with a group each or more."""
    series = some_series(20.0, storage)
    one = drawn(split_here(series, BLOCKS))
    assert np.ptp(one.draws.smoothing) > 0.0
    same(one, drawn(split_here(series, BLOCKS, n_jobs=2)))
    held = on_cluster(client, series, 3 if storage is np.asarray else 2)
    same(one, drawn(held))
    held.executor.close()


def test_draws_of_a_dispersion_do_not_depend_on_threads():
    series = some_series()
    one, other = (
        drawn(split_here(series, BLOCKS, n_jobs=n), likelihood="negative_binomial") for n in (1, 2)
    )
    same(one, other)
    found = one.draws.of_likelihood["dispersion"]
    assert len(np.unique(found)) == found.size
    np.testing.assert_array_equal(found, other.draws.of_likelihood["dispersion"])


@pytest.mark.long
def test_draws_of_a_dispersion_do_not_depend_on_who_holds_the_blocks(client):
    series = some_series()
    held = on_cluster(client, series, 3)
    settings = {"likelihood": "negative_binomial"}
    same(drawn(split_here(series, BLOCKS), **settings), drawn(held, **settings))
    held.executor.close()


def test_draws_of_many_features_do_not_depend_on_threads(monkeypatch):
    """Blocks of several shards each, and features that are too many to share anything."""
    rng = np.random.default_rng(3)
    X = 1.0 + rng.poisson(rng.gamma(0.5, 3.0, size=(20, 1400)))
    series = Series(X, np.ones((20, 1)), np.ones(20))
    one, other = (split_here(series, [0, 800, 1400], n_jobs=n) for n in (1, 2))
    same(drawn(one), drawn(other))
    run = started(one)
    assert run.count_active() == 1400
    blocks = one.executor._blocks._slots[run._slot.number].values()
    assert all(len(block._bounds) > 2 for block in blocks)
    monkeypatch.setattr(run, "weights", None)  # nobody brings them here
    run.sweep()


@pytest.mark.long
@pytest.mark.parametrize(
    "saved",
    [
        pytest.param(True, id="from a checkpoint"),
        pytest.param(False, id="from the beginning"),
    ],
)
def test_draws_go_on_if_a_worker_is_lost(saved, own_client, tmp_path, monkeypatch):
    """In the middle of a run."""
    monkeypatch.setattr(dask, "_PAUSE", 0.0)
    series = some_series(20.0)
    settings = {"thin": 1, "n_chains": 1}
    held = on_cluster(own_client, series, 2, folder=tmp_path if saved else None)

    def kill(progress):
        if progress.iteration == 6:
            victim = held.executor._placements[0].address
            os.kill(own_client.run(os.getpid, workers=[victim])[victim], signal.SIGKILL)
            eventually(lambda: victim not in own_client.scheduler_info()["workers"])

    same(drawn(split_here(series, BLOCKS), **settings), drawn(held, callback=kill, **settings))
    assert held.executor.losses == 1
    held.executor.close()


def started(split, smoothing=0.3, learned=True, likelihood=None):
    """A run on split data, from flat weights."""
    (n_steps, n_features), K = split.shape, 2
    law = (likelihood or Poisson()).resolve()
    observations = split.observe(law)
    start = observations.hold(np.full((n_features, K), 1.0 / n_features))
    chain = LearnedChain(Rate("learn"), 10.0, K)
    return split.sweeps(
        Parameters(chain, LearnedSmoothing(smoothing, learned), LearnedLikelihood(law)),
        start,
        np.random.default_rng(0).gamma(2.0, 5.0, size=(K, n_steps)),
        First(2.0, 3.0),
        np.random.SeedSequence(0),
    )


@pytest.mark.parametrize("way", ["of the run", "of the blocks"])
def test_a_state_that_is_restored_goes_on_to_the_bit(way, tmp_path):
    split = split_here(some_series(20.0), BLOCKS)
    blocks, run = split.executor._blocks, started(split)

    def sweeps():
        for _ in range(3):
            run.sweep()
        return run.state()

    def file_of(block):
        return tmp_path / f"{block}.npz"

    state = {name: np.array(array) for name, array in sweeps().items()}
    blocks.save(file_of)
    expected = sweeps()
    if way == "of the run":
        run.restore(state)
    else:
        blocks._slots.clear()
        blocks.load(file_of)
        run.resume = lambda where: None  # blocks are where they were
        run.restore(state)
    found = sweeps()
    assert all(np.array_equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("W", lambda a: a[:2]), ("W", lambda a: a[:, 0]), ("W", lambda a: a.astype(np.float32)),
        ("W", lambda a: a * np.nan), ("W", lambda a: -a), ("W", lambda a: None),
        ("exposure", lambda a: a[1:]), ("exposure", lambda a: -a), ("exposure", lambda a: None),
        ("streams", lambda a: np.array("[]")), ("streams", lambda a: np.array("{")),
        ("streams", lambda a: np.array(1.0)),
    ],
)  # fmt: skip
def test_states_of_blocks_that_no_run_writes_are_refused(name, change, tmp_path):
    split = split_here(some_series(), BLOCKS)
    blocks, run = split.executor._blocks, started(split)
    run.sweep()
    blocks.save(lambda block: tmp_path / f"{block}.npz")
    path = tmp_path / "1.npz"
    arrays = unsealed(read_npz(path))
    slot = next(key for key in arrays if key.endswith("streams")).removesuffix("streams")
    key = f"{slot}{name}"
    arrays[key] = change(arrays[key])
    write_npz(path, sealed({key: array for key, array in arrays.items() if array is not None}))
    with pytest.raises(ArgumentError, match=r"damaged one: 1\.npz \((it has no|its|[Wes]\w* )"):
        blocks.load(lambda block: tmp_path / f"{block}.npz")


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    series, path = some_series(), tmp_path / "state.npz"

    def split():
        return split_here(series, [0, 4, 5, N_FEATURES])

    def dies(progress):
        if progress.iteration >= 17:  # in the second run
            raise KeyError

    with pytest.raises(KeyError):
        drawn(split(), checkpoint=path, checkpoint_every=0, callback=dies)
    with np.load(path) as file:
        assert len(json.loads(str(file["state_streams"]))) == 3 * 32 + 1
    same(drawn(split(), checkpoint=path), drawn(split()))
    assert not path.exists()


# Laws


class _Held(SplitGibbs):
    """A run that lets a simulation write to its weights and counts."""

    def sweep(self):
        self._slot.hold(self.W)
        super().sweep()
        self.W = self.weights()

    def __setattr__(self, name, value):
        if name != "_counts":
            super().__setattr__(name, value)
            return
        indptr, indices, counts = value
        blocks = self._slot.executor._blocks._slots[self._slot.number]
        for b, (i, j) in enumerate(pairwise(BOUNDS)):
            part = slice(indptr[i], indptr[j])
            blocks[b]._counts = indptr[i : j + 1] - indptr[i], indices[part], counts[part]


# A feature alone, that lacks an entry; and two, of which one is never observed in "entries".
BOUNDS = [0, 1, 3, 4]


class _InBlocks(joint.Simulation):
    def observe(self, series, likelihood):
        blocks = self.run._slot.executor._blocks._slots[self.run._slot.number]
        for b, (i, j) in enumerate(pairwise(BOUNDS)):
            weights = series.weights[:, i:j]
            blocks[b]._observations = observe(
                series.X[:, i:j], weights, series.exposure, likelihood, Threads(1)
            )


def simulation(mask, learned, likelihood=None):
    """As `geweke.fixed`, in blocks."""
    likelihood = likelihood or Poisson()
    chain = LearnedChain(joint.SETTINGS["rate"], 1.0, joint.K)
    smoothing = LearnedSmoothing(joint.SMOOTHING, learned)
    parameters = Parameters(chain, smoothing, LearnedLikelihood(likelihood.resolve()))
    found = _InBlocks(parameters, joint.MASKS[mask], 0)
    series = Series(np.ones((joint.N, joint.F)), joint.MASKS[mask], found.exposure)
    split = split_here(series, BOUNDS)
    start = split.observe(likelihood.resolve()).hold(found.run.W)
    found.run = _Held(
        split.executor, found.exposure, parameters, start.slot, found.run.H, joint.FIRST_LAW,
        np.random.SeedSequence(0),
    )  # fmt: skip
    found.run.W = found.run.weights()
    return found


# Three tests of up to 15 functionals: |z| beyond 4.5 by chance once in 3000 runs of them all.
@pytest.mark.long
@pytest.mark.parametrize(
    ("mask", "learned"),
    [
        pytest.param("steps", False, marks=pytest.mark.long),
        pytest.param("entries", False, marks=pytest.mark.long),
        ("entries", True),
    ],
)
def test_sweeps_leave_the_joint_law_as_it_is(mask, learned, monkeypatch):
    """Geweke's test; with a narrow prior of the smoothing, so that its moments are known."""
    monkeypatch.setattr(learning, "_WIDE", 0.4)
    monkeypatch.setattr(learning, "SMOOTHING", 0.7)
    z = joint.geweke(simulation(mask, learned), n_chains=400, rounds=5)
    assert abs(z).max() < joint.BOUND, z


@pytest.mark.long
def test_sweeps_that_draw_the_dispersion_leave_the_joint_law_as_it_is():
    """Seventeen functionals: |z| beyond 4.5 by chance once in 8000 runs."""
    z = joint.geweke(simulation("entries", False, NegativeBinomial()), n_chains=300, rounds=5)
    assert abs(z).max() < joint.BOUND, z


@pytest.mark.long
def test_gewekes_test_finds_a_step_that_one_block_lacks_taken_for_one_that_all_lack(monkeypatch):
    """For which nothing is drawn."""
    right = gibbs._counts
    monkeypatch.setattr(gibbs, "_counts", lambda series, there: right(series, series.observed))
    z = joint.geweke(simulation("entries", False), n_chains=400, rounds=5)
    assert abs(z).max() > 2.0 * joint.BOUND, z


def numbers(run):
    """Some functionals of a run with one component."""
    path = np.log(run.H)
    return [
        run.log_posterior(), path.mean(), path[0, 3], path.std(),
        np.log(run.parameters.smoothing.value), np.sum(run.weights() ** 2),
    ]  # fmt: skip


def means_of(run):
    """Means of functionals, and their squared standard errors by batches."""
    found = []
    for _ in range(2100):
        run.sweep()
        found.append(numbers(run))
    batches = np.reshape(found[100:], (40, 50, -1)).mean(axis=1)
    return batches.mean(axis=0), batches.var(axis=0, ddof=1) / 40


@pytest.mark.long
def test_posterior_means_are_those_of_data_in_memory():
    """With large counts, of which the smoothing asks. False alarm 1 in 5000."""
    rng = np.random.default_rng(5)
    X = rng.poisson(np.exp(rng.normal(4.0, 1.5, size=(6, 5)))).astype(float)
    series = Series(X, np.ones((6, 1)), np.ones(6))
    split = split_here(series, [0, 2, 5])
    W, H, first = np.full((5, 1), 0.2), np.full((1, 6), 300.0), First(2.0, 300.0)
    chain, seed = LearnedChain(Rate(4.0, 4.0), 300.0, 1), np.random.SeedSequence(1)

    def parameters():
        return Parameters(chain, LearnedSmoothing(0.3, True), LearnedLikelihood(Poisson()))

    elsewhere, here = split.observe(Poisson()), observe(X, series.weights, np.ones(6), Poisson())
    run = split.sweeps(parameters(), elsewhere.hold(W), H, first, seed)
    found, variances = means_of(run)
    run = Gibbs(series, parameters(), W, H, first, seed, Threads(1), here)
    expected, others = means_of(run)
    z = (found - expected) / np.sqrt(variances + others)
    assert abs(z).max() < 4.5, z


@pytest.mark.parametrize("law", [Poisson(), NegativeBinomial()], ids=["poisson", "dispersed"])
def test_the_log_posterior_is_that_of_data_in_memory(law):
    series = some_series()
    split = split_here(series, BLOCKS)
    run = started(split, likelihood=law)
    for _ in range(3):
        run.sweep()
    observations = observe(series.X, series.weights, series.exposure, law.resolve())
    alone = Gibbs(
        series, run.parameters, run.weights(), run.H, run.first,
        np.random.SeedSequence(0), Threads(1), observations,
    )  # fmt: skip
    alone.Z = run.Z
    expected = alone.log_posterior()
    assert run.log_posterior() == pytest.approx(expected, rel=1e-12)
    assert run.count_active() == N_FEATURES - 1


# Refusals


def test_fractions_and_weights_are_refused_in_any_block():
    series = some_series()
    X, weights = series.X.copy(), series.weights.copy()
    X[2, 20] = 1.5
    config = estimator(N_COMPONENTS, solver="gibbs")._config()
    with pytest.raises(ValueError, match=r"X has 1\.5, and draws need counts"):
        draw_factors(config, split_here(Series(X, weights, series.exposure), [0, 8, N_FEATURES]))
    weights[2, 20] = 0.5
    with pytest.raises(ValueError, match=r"mask has the weight 0\.5: draws"):
        draw_factors(config, split_here(Series(X, weights, series.exposure), [0, 8, N_FEATURES]))


def test_draws_without_room_are_refused_before_the_start(monkeypatch):
    split = split_here(some_series(), [0, 8, N_FEATURES])
    monkeypatch.setattr(runs, "MEMORY", 1)
    monkeypatch.setattr(runs, "_MOST_MEMORY", 8 * 2 * N_COMPONENTS * N_FEATURES * 4 - 1)
    with pytest.raises(ValueError, match=r"8 draws of each of 2 runs for 23 .*'accelerated'"):
        drawn(split, n_draws=80)
    monkeypatch.setattr(runs, "_MOST_MEMORY", 8 * 2 * N_COMPONENTS * N_FEATURES * 4)
    assert drawn(split, n_draws=80, n_tune=0).draws.n_draws == 16


def test_fits_leave_nothing_in_the_blocks():
    split = split_here(some_series(), [0, 8, N_FEATURES])
    drawn(split)
    assert not any(split.executor._blocks._slots.values())
