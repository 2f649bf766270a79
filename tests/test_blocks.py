"""Data cut into blocks: the same answer wherever the blocks are, and however they are grouped."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from cases import (
    Case,
    all_cases,
    chains,
    likelihoods,
    on_workers,
    placed,
    random_problem,
    random_series,
    split_here,
    w_step,
)
from clusters import inside
from temporalnmf.cluster import dask as actors
from temporalnmf.cluster.requests import combined, result
from temporalnmf.cluster.series import even_bounds
from temporalnmf.data.series import Series
from temporalnmf.observations import observe, starts
from temporalnmf.observations.starts import random_rows, skip_rows
from temporalnmf.solvers import Accelerated, MajorizeMinimize, Monitor, accelerated

SOLVERS = [MajorizeMinimize(), Accelerated()]
SHAPE = {"n_steps": 12, "n_features": 17}
# One of every kind that blocks treat differently.
FEW = [
    Case(likelihood, chain, "log", mask, storage)
    for likelihood in likelihoods()
    for mask, storage in (("none", "dense"), ("entries", "dense"), ("weights", "sparse mask"))
    for chain in chains("log")[2:4]
    if storage == "dense" or likelihood.takes_sparse
]


def named(solver):
    return solver.name


def of_case(case, seed=0, smoothing=0.3):
    """A problem in memory with its start, and its data."""
    problem, W, H = random_problem(case, seed, smoothing=smoothing, **SHAPE)
    series = random_series(np.random.default_rng(seed), case, **SHAPE)
    return problem, W, H, series


def solved(solver, problem, observations, W, H, n_iter):
    problem = replace(problem, observations=observations)
    return solver.solve(problem, W, H, Monitor(n_iter, 0.0))


def same_bits(one, other):
    """Two results, to the last bit."""
    np.testing.assert_array_equal(one.W, other.W, strict=True)
    np.testing.assert_array_equal(one.H, other.H, strict=True)
    assert one.monitor.history == other.monitor.history


@pytest.fixture
def short(monkeypatch):
    """A few iterations are enough to see all that the accelerated solver does."""
    monkeypatch.setattr(accelerated, "_WARM_UP", 3)
    monkeypatch.setattr(accelerated, "_STAGE", 3)


# Sums over blocks


def numbered(answers, first=0):
    """Answers of neighbouring blocks by their places in the tree of pairs."""
    return {(0, first + i): answer for i, answer in enumerate(answers)}


def paired(values):
    """The sum of neighbours, then of neighbouring sums, and so on; an odd last one is passed on."""
    if len(values) == 1:
        return values[0]
    pairs = [values[i] + values[i + 1] for i in range(0, len(values) - 1, 2)]
    return paired(pairs + values[len(values) - len(values) % 2 :])


@pytest.mark.parametrize("seed", range(60))
def test_sums_have_the_same_bits_however_blocks_are_grouped(seed):
    """Groups, groups of groups, in any order of arrival."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    values = list(np.exp(rng.normal(0.0, 12.0, size=(n, 3))) * rng.choice([-1.0, 1.0], (n, 1)))
    expected = paired(values)
    cuts = np.unique(np.concatenate([[0, n], rng.integers(0, n + 1, size=5)]))
    parts = [combined(numbered(values[i:j], i), n, "add") for i, j in pairwise(cuts.tolist())]
    while len(parts) > 1:
        rng.shuffle(parts)
        parts = [combined({**parts[0], **parts[1]}, n, "add"), *parts[2:]]
    np.testing.assert_array_equal(result(parts[0], n, "add"), expected)
    np.testing.assert_array_equal(result(numbered(values), n, "add"), expected)


def test_answers_of_blocks_are_added_compared_or_listed():
    answers = [(np.array([float(i), -i]), 2.0**i) for i in range(7)]
    array, number = result(numbered(answers), 7, "add")
    assert array.tolist() == [21.0, -21.0]
    assert number == 127.0
    values = [np.array([3.0, 1.0]), np.array([2.0, np.inf]), np.array([5.0, -1.0])]
    assert result(numbered(values), 3, "min").tolist() == [2.0, -1.0]
    assert result(numbered(values), 3, "max").tolist() == [5.0, np.inf]
    assert result(numbered(values), 3, "each") == values


@pytest.mark.parametrize("chunk", [1, 4, 7, 100])
def test_random_weights_are_the_same_for_any_cut(chunk, monkeypatch):
    monkeypatch.setattr(starts, "_CHUNK", chunk)
    rng = np.random.default_rng(3)
    rng.random(5)  # a stream that has been used
    state = rng.bit_generator.state
    every = random_rows(rng, 0, 23, 4)
    assert rng.bit_generator.state == state
    assert len(np.unique(every)) == every.size
    for n_blocks in (1, 2, 5, 23):
        cuts = even_bounds(23, n_blocks)
        parts = [random_rows(rng, i, j, 4) for i, j in pairwise(cuts)]
        np.testing.assert_array_equal(np.concatenate(parts), every)
    # The first chunk is the stream itself, and the next numbers are those after it.
    copy = np.random.default_rng(3)
    copy.random(5)
    np.testing.assert_array_equal(every[:chunk], copy.gamma(2.0, 0.5, size=(min(chunk, 23), 4)))
    skip_rows(rng, 23, 4)
    assert rng.random() == copy.random()


# Solvers


@pytest.mark.each_value
@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_one_block_gives_the_same_bits_as_data_in_memory(case):
    problem, W, H, series = of_case(case)
    there = split_here(series, [0, 17]).observe(case.likelihood)
    for name in ("level", "saturated", "shared", "has_counts", "shape"):
        assert getattr(there, name) == getattr(problem.observations, name)
    for solver in SOLVERS:
        expected = solved(solver, problem, problem.observations, W, H, 50)
        same_bits(expected, solved(solver, problem, there, W, H, 50))


@pytest.mark.each_value
@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_several_blocks_give_the_result_of_data_in_memory_up_to_rounding(case):
    problem, W, H, series = of_case(case)
    expected = solved(MajorizeMinimize(), problem, problem.observations, W, H, 100)
    aux = problem.chain.auxiliary(expected.H, problem.scale)
    scale = sum(map(abs, problem.parts(expected.W, expected.H, aux).values()))
    there = split_here(series, even_bounds(17, 5)).observe(case.likelihood)
    found = solved(MajorizeMinimize(), problem, there, W, H, 100)
    assert abs(found.monitor.history[-1] - expected.monitor.history[-1]) <= 1e-12 * scale
    np.testing.assert_array_equal(there.seen, problem.observations.seen)
    np.testing.assert_array_equal(there.counted, problem.observations.counted)


@pytest.mark.each_value
@pytest.mark.parametrize("n_groups", [1, 2, 5])
@pytest.mark.parametrize("case", FEW, ids=str)
def test_blocks_on_workers_give_the_same_bits_as_blocks_here(case, n_groups, short):
    problem, W, H, series = of_case(case)
    bounds = even_bounds(17, 6)
    here = split_here(series, bounds).observe(case.likelihood)
    there = on_workers(inside(), series, bounds, n_groups).observe(case.likelihood)
    for solver in SOLVERS:
        expected = solved(solver, problem, here, W, H, 12)
        same_bits(expected, solved(solver, problem, there, W, H, 12))


@pytest.mark.parametrize("fan", [2, 3])
def test_groups_asked_as_a_tree_give_the_same_bits(fan, monkeypatch, short):
    """Each has a worker of its own, as in a fit."""
    case = FEW[1]
    problem, W, H, series = of_case(case)
    bounds = even_bounds(17, 7)
    here = split_here(series, bounds).observe(case.likelihood)
    monkeypatch.setattr(actors, "_FAN", fan)
    levels = []
    tree = actors._tree
    monkeypatch.setattr(actors, "_tree", lambda *given: levels.append(given) or tree(*given))
    there = on_workers(inside(5), series, bounds, 5).observe(case.likelihood)
    assert any(len(members) < 5 for members, _ in levels)  # someone asks others
    for solver in SOLVERS:
        expected = solved(solver, problem, here, W, H, 12)
        same_bits(expected, solved(solver, problem, there, W, H, 12))


@pytest.mark.parametrize("storage", ["dense", "csr", "sparse mask"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("mask", ["entries", "weights", "none"])
def test_the_w_step_is_the_same_with_blocks_of_one_feature(mask, smoothing, storage):
    """A feature shares its weights with itself: that is not what the whole does."""
    if storage == "sparse mask" and mask == "none":
        mask = "entries"
    case = Case(likelihoods()[0], chains("log")[2], "log", mask, storage)
    problem, W, H = random_problem(case, 4, smoothing=smoothing)
    series = random_series(np.random.default_rng(4), case)
    there = split_here(series, np.arange(8)).observe(case.likelihood)
    assert there.shared == (mask == "none")
    one = w_step(problem, W.copy(), H)
    other = w_step(replace(problem, observations=there), W.copy(), H)
    np.testing.assert_allclose(other, one, rtol=1e-13, atol=0.0)
    np.testing.assert_allclose(other.sum(axis=0), 1.0, rtol=1e-14)


@pytest.mark.parametrize("place", ["blocks", "dask"])
def test_weights_that_differ_between_blocks_are_not_shared(place):
    """Every feature has weights of its own in time, the same for all of its block."""
    case = Case(likelihoods()[0], chains("log")[2], "log", "none", "dense")
    problem, W, H, series = of_case(case)
    weights = np.ones((12, 17))
    weights[5, :5] = 0.0  # the first of three blocks
    series = replace(series, weights=weights)
    memory = observe(series.X, series.weights, series.exposure, case.likelihood)
    there = placed(series, case.likelihood, place)
    assert not memory.shared
    assert not there.shared
    expected = solved(MajorizeMinimize(), problem, memory, W, H, 30)
    found = solved(MajorizeMinimize(), problem, there, W, H, 30)
    np.testing.assert_allclose(found.W, expected.W, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(found.H, expected.H, rtol=1e-10)


@pytest.mark.quick("0.0-blocks", "0.3-blocks")
@pytest.mark.parametrize("place", ["blocks", "dask"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_block_that_was_never_observed_has_no_weight(place, smoothing, short):
    case = Case(likelihoods()[0], chains("log")[2], "log", "entries", "dense")
    problem, W, H, series = of_case(case, smoothing=smoothing)
    series.weights[:, :6] = 0.0  # the first of three blocks, and a part of the second
    memory = observe(series.X, series.weights, series.exposure, case.likelihood)
    W[:6] = 0.0
    W /= W.sum(axis=0)
    there = placed(series, case.likelihood, place)
    np.testing.assert_array_equal(there.seen, np.arange(17) >= 6)
    for solver in SOLVERS:
        n_iter = 20 if solver.name == "accelerated" else 40
        expected = solved(solver, problem, memory, W, H, n_iter)
        found = solved(solver, problem, there, W, H, n_iter)
        assert np.all(found.W[:6] == 0.0)
        np.testing.assert_allclose(found.W.sum(axis=0), 1.0, rtol=1e-13)
        ends = found.monitor.history[-1], expected.monitor.history[-1]
        assert abs(ends[0] - ends[1]) <= 1e-9 * abs(ends[1])


@pytest.mark.quick("False-blocks", "True-blocks")
@pytest.mark.parametrize("place", ["blocks", "dask"])
@pytest.mark.parametrize("thin", [False, True])
def test_single_precision_blocks_are_fitted_as_data_in_memory(place, thin):
    case = Case(likelihoods()[0], chains("log")[2], "log", "none", "dense")
    problem, W, H, series = of_case(case)
    X = (series.X * 1.1).astype(np.float32)
    single, double = (
        Series(sparse.csr_array(x) if thin else x, series.weights, series.exposure)
        for x in (X, X.astype(float))
    )
    one, other = (placed(s, case.likelihood, place) for s in (single, double))
    memory = observe(single.X, single.weights, single.exposure, case.likelihood)
    expected = solved(MajorizeMinimize(), problem, memory, W, H, 50)
    found = solved(MajorizeMinimize(), problem, one, W, H, 50)
    rtol = 1e-12 if thin else 1e-6  # a dense pass in single precision
    np.testing.assert_allclose(found.monitor.history, expected.monitor.history, rtol=rtol)
    wide = solved(MajorizeMinimize(), problem, other, W, H, 50)
    np.testing.assert_allclose(found.monitor.history, wide.monitor.history, rtol=rtol)


# Several W at a time


@pytest.mark.parametrize("place", ["blocks", "dask"])
def test_blocks_hold_several_weights_at_once(place):
    case = FEW[0]
    there = placed(of_case(case)[-1], case.likelihood, place)
    rng = np.random.default_rng(0)
    W, other = rng.dirichlet(np.ones(17), size=3).T, rng.random((17, 4))
    one, two = there.hold(W), there.hold(other)
    np.testing.assert_allclose(one.cross(two), W.T @ other, rtol=1e-14)
    one.reorder(np.array([2, 0, 1]))
    np.testing.assert_array_equal(one.array(), W[:, [2, 0, 1]])
    np.testing.assert_array_equal(two.array(), other)
    two.drop()
    third = there.blank()
    third.randomise(np.random.default_rng(7), 3)
    rows = random_rows(np.random.default_rng(7), 0, 17, 3)
    np.testing.assert_allclose(third.array(), rows / rows.sum(axis=0), rtol=1e-15)
    np.testing.assert_array_equal(one.array(), W[:, [2, 0, 1]])
    assert two.array().size == 0  # forgotten


@pytest.mark.parametrize("place", ["blocks", "dask"])
def test_an_array_that_changes_later_is_sent_as_it_was(place):
    """Messages may wait, and the array that they speak of may change meanwhile."""
    case = FEW[0]
    _, W, _, series = of_case(case)
    there = placed(series, case.likelihood, place)
    given = np.repeat(W, 60, axis=1)  # large enough to be sent once only
    expected = given.copy()
    features = there.hold(given)
    given[...] = 0.0
    np.testing.assert_array_equal(features.array(), expected)


@pytest.mark.parametrize("n_steps", [12, 200], ids=["small", "large"])
@pytest.mark.parametrize("place", ["blocks", "dask"])
def test_an_array_that_changes_in_place_is_sent_again(place, n_steps):
    """Large ones are sent once, and never in the place of what they have become."""
    case = FEW[0]
    rng = np.random.default_rng(0)
    there = placed(random_series(rng, case, n_steps, 17), case.likelihood, place)
    features = there.hold(rng.dirichlet(np.ones(17), size=3).T)
    H = rng.gamma(2.0, size=(3, n_steps))
    values = [features.value(H), features.value(2.0 * H)]
    assert values[0] != values[1]
    H *= 2.0
    assert features.value(H) == values[1]
    assert features.value(H) == values[1]
    H *= 0.5
    assert features.value(H) == values[0]
    np.testing.assert_array_equal(features.sums(H).A, features.sums(H.copy()).A)
