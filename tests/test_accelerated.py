"""The accelerated solver: lower at every accepted step, and the same fixed points as MM."""

from dataclasses import replace

import numpy as np
import pytest

from cases import Case, all_cases, chains, likelihoods, random_problem
from temporalnmf import TemporalNMF
from temporalnmf.solvers import Accelerated, MajorizeMinimize, Monitor, accelerated

CASES = [case for case in all_cases() if case.storage != "sparse mask"]


def _parts(problem, W, H):
    aux = problem.chain.auxiliary(H, problem.scale)
    return sum(abs(part) for part in problem.parts(W, H, aux).values())


class Recorder:
    """A callback that keeps what it sees."""

    def __init__(self):
        self.objectives = []

    def __call__(self, progress):
        self.objectives.append(progress.objective)
        assert np.isfinite(progress.components).all()
        assert np.isfinite(progress.activations).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_accepted_step_descends(case, monkeypatch):
    monkeypatch.setattr(accelerated, "_WARM_UP", 3)
    monkeypatch.setattr(accelerated, "_STAGE", 1)  # every iteration is accepted or undone
    for seed in range(2):
        problem, W, H = random_problem(case, seed)
        recorder = Recorder()
        result = Accelerated().solve(problem, W, H, Monitor(40, 0.0, callback=recorder))
        scale = _parts(problem, W, H)
        assert len(recorder.objectives) > 10
        assert np.all(np.diff(recorder.objectives) <= 1e-12 * scale)
        # What is reported is what is there.
        end = problem.objective(result.W, result.H)
        assert abs(recorder.objectives[-1] - end) <= 1e-12 * scale
        np.testing.assert_allclose(result.W.sum(axis=0), 1.0, rtol=1e-12)


# Well-posed problems with one basin near the start, where both solvers can be run to the end.
AGREEING = [
    Case(likelihood, chain, "log", mask, "dense")
    for likelihood in likelihoods()
    for chain in chains("log")
    for mask in ("none", "entries")
]


@pytest.mark.parametrize("case", AGREEING, ids=str)
def test_agrees_with_mm_where_both_end_in_the_same_optimum(case):
    problem, W, H = random_problem(case, seed=2, n_components=2, smoothing=0.3)
    slow = MajorizeMinimize().solve(problem, W, H, Monitor(20_000, 1e-12))
    fast = Accelerated().solve(problem, W, H, Monitor(2_000, 1e-12))
    ends = slow.monitor.history[-1], fast.monitor.history[-1]
    assert abs(ends[0] - ends[1]) <= 1e-6 * abs(ends[0])


@pytest.mark.parametrize("case", AGREEING, ids=str)
def test_its_end_is_a_fixed_point_of_mm(case):
    problem, W, H = random_problem(case, seed=3, smoothing=0.3)
    fast = Accelerated().solve(problem, W, H, Monitor(3_000, 0.0))
    after = MajorizeMinimize().solve(problem, fast.W, fast.H, Monitor(500, 0.0))
    scale = _parts(problem, fast.W, fast.H)
    assert fast.monitor.history[-1] - after.monitor.history[-1] <= 1e-9 * scale


def test_a_stage_that_fails_is_undone_and_mm_takes_over(monkeypatch):
    case = CASES[0]
    problem, W, H = random_problem(case, seed=0)
    uphill = []

    def wrong_way(self, n):
        uphill.append(n)
        self.W[...], self.H[...] = np.roll(self.W, 1, axis=0), 3.0 * self.H
        return True

    monkeypatch.setattr(accelerated._Path, "advance", wrong_way)
    plain = MajorizeMinimize().solve(problem, W, H, Monitor(200, 0.0))
    fooled = Accelerated().solve(problem, W, H, Monitor(200, 0.0))
    assert uphill
    # Failures in a row are tried ever more rarely: 10, 20, 40 … iterations of MM in between.
    assert len(uphill) <= 5
    np.testing.assert_array_equal(fooled.W, plain.W)
    np.testing.assert_array_equal(fooled.H, plain.H)


def test_a_stage_that_does_not_move_leaves_the_rest_to_mm(monkeypatch):
    problem, W, H = random_problem(CASES[0], seed=0)
    monkeypatch.setattr(accelerated._Path, "_step", lambda self: False)
    plain = MajorizeMinimize().solve(problem, W, H, Monitor(200, 0.0))
    stuck = Accelerated().solve(problem, W, H, Monitor(200, 0.0))
    np.testing.assert_array_equal(stuck.W, plain.W)
    np.testing.assert_array_equal(stuck.H, plain.H)


def test_a_step_that_only_shows_features_without_weight():
    """Nothing holds its activations: 0/0 in the metric once stopped the whole path."""
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(1.0, 1.0, (30, 3)) @ rng.gamma(1.0, 3.0, (3, 12))).astype(float)
    X[:, 5] = 0.0
    X[7] = np.nan
    X[7, 5] = 0.0
    params = {"chain": "none", "smoothing": 0.0, "tol": 1e-8, "random_state": 0}
    slow = TemporalNMF(3, solver="mm", max_iter=20_000, **params).fit(X)
    fast = TemporalNMF(3, **params).fit(X)
    assert fast.objective_ <= slow.objective_ + 1e-6 * abs(slow.objective_)


def test_memory_after_a_pair_was_refused():
    """The oldest pair goes first, whatever was refused before."""
    problem, W, H = random_problem(CASES[0], seed=0)
    path = accelerated._Path(problem, W, H, False, 0)
    size = len(path.S)
    for i in range(1, 3 * size):
        bent = -1.0 if i == size + 1 else 1.0  # a pair with negative curvature
        there = replace(path.here, x=path.here.x + i, slope=path.here.slope + bent * i)
        path._remember(there)
        kept = [j for j in range(1, i + 1) if j != size + 1][-size:]
        if i == size + 1:
            kept = kept[1:]  # its place was that of the oldest
        assert [path.S[row, 0] for row in path.newest] == kept[::-1]


@pytest.mark.parametrize("chain", chains("log"), ids=str)
def test_needs_a_third_of_the_passes_at_the_most(chain):
    case = Case(likelihoods()[0], chain, "log", "none", "dense")
    problem, W, H = random_problem(case, 1, n_steps=40, n_features=60, smoothing=0.3)
    passes = []
    sums = problem.observations.sums

    def counted(*arguments):
        passes.append(arguments[-1])
        return sums(*arguments)

    problem.observations.sums = counted
    slow = MajorizeMinimize().solve(problem, W, H, Monitor(1000, 0.0))
    there = len(passes)
    target = slow.monitor.history[-1] + 1e-9 * abs(slow.monitor.history[-1])
    passes.clear()
    stop = Monitor(1000, 0.0, callback=lambda progress: progress.objective <= target)
    fast = Accelerated().solve(problem, W, H, stop)
    assert fast.monitor.history[-1] <= target
    assert len(passes) <= there / 3


@pytest.mark.parametrize("chain", chains("log"), ids=str)
def test_held_steps_stay_and_components_given_are_kept(chain):
    problem, W, H = random_problem(Case(likelihoods()[0], chain, "log", "steps", "dense"), seed=5)
    result = Accelerated().solve(problem, W, H, Monitor(200, 1e-9), fixed_W=True, held=2)
    np.testing.assert_array_equal(result.W, W)
    np.testing.assert_array_equal(result.H[:, :2], H[:, :2])
    slow = MajorizeMinimize().solve(problem, W, H, Monitor(20_000, 1e-13), fixed_W=True, held=2)
    scale = _parts(problem, W, slow.H)
    assert abs(slow.monitor.history[-1] - result.monitor.history[-1]) <= 1e-7 * scale


def test_hyper_parameters_are_learned_as_by_mm():
    case = next(c for c in CASES if c.chain.name == "rate" and c.scale == "log")
    problem, W, H = random_problem(case, seed=0, smoothing=0.3)
    learner = type(problem.chain)(alpha=3.0, beta="learn").resolve(10.0, len(H))
    problem = replace(problem, chain=learner)
    slow = MajorizeMinimize().solve(problem, W, H, Monitor(20_000, 1e-13))
    fast = Accelerated().solve(problem, W, H, Monitor(3_000, 1e-13))
    assert fast.chain.beta.shape == (len(H),)
    assert abs(slow.monitor.history[-1] - fast.monitor.history[-1]) <= 1e-6 * _parts(problem, W, H)
    again = fast.chain.learn(fast.H, fast.chain.auxiliary(fast.H, "log"))
    np.testing.assert_allclose(fast.chain.beta, again.beta, rtol=1e-3)
