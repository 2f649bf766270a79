"""The accelerated solver: lower at every accepted step, and the same fixed points as MM."""

from dataclasses import replace

import numpy as np
import pytest

from cases import Case, all_cases, chains, likelihoods, random_problem
from temporalnmf.solvers import Accelerated, MajorizeMinimize, Monitor, accelerated

CASES = [case for case in all_cases() if case.storage != "sparse mask"]


def _parts(problem, W, H):
    aux = problem.chain.auxiliary(H, problem.scale)
    return sum(abs(part) for part in problem.parts(W, H, aux).values())


class Recorder:
    """A callback: with one, every iteration is a stage that is accepted or undone."""

    def __init__(self):
        self.objectives = []

    def __call__(self, progress):
        self.objectives.append(progress.objective)
        assert np.isfinite(progress.components).all()
        assert np.isfinite(progress.activations).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_accepted_step_descends(case, monkeypatch):
    monkeypatch.setattr(accelerated, "_WARM_UP", 3)
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
        return np.roll(self.W, 1, axis=0), 3.0 * self.H

    monkeypatch.setattr(accelerated._Path, "advance", wrong_way)
    plain = MajorizeMinimize().solve(problem, W, H, Monitor(200, 0.0))
    fooled = Accelerated().solve(problem, W, H, Monitor(200, 0.0))
    assert uphill
    # Failures in a row are tried ever more rarely: 10, 20, 40 … iterations of MM in between.
    assert len(uphill) <= 5
    np.testing.assert_array_equal(fooled.W, plain.W)
    np.testing.assert_array_equal(fooled.H, plain.H)


@pytest.mark.parametrize("chain", [c for c in chains("log") if c.dynamic], ids=str)
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
