"""The accelerated solver: lower at every accepted step, and the same fixed points as MM."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from cases import Case, all_cases, chains, likelihoods, random_problem
from temporalnmf import TemporalNMF
from temporalnmf.observations.features import Features
from temporalnmf.observations.lbfgs import Diagonal, Lbfgs
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
        components = progress.components
        if isinstance(components, Features):  # elsewhere
            components = components.array()
        assert np.isfinite(components).all()
        assert np.isfinite(progress.activations).all()


@pytest.mark.each_value
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_accepted_step_descends(case, monkeypatch, place):
    monkeypatch.setattr(accelerated, "_WARM_UP", 3)
    monkeypatch.setattr(accelerated, "_STAGE", 1)  # every iteration is accepted or undone
    seeds, steps = {"memory": (1, 30), "blocks": (1, 15), "dask": (1, 8)}[place]
    for seed in range(seeds):
        problem, W, H = random_problem(case, seed, place=place)
        recorder = Recorder()
        result = Accelerated().solve(problem, W, H, Monitor(steps, 0.0, callback=recorder))
        scale = _parts(problem, W, H)
        assert len(recorder.objectives) > steps // 4
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


@pytest.mark.each_value
@pytest.mark.parametrize("case", AGREEING, ids=str)
@pytest.mark.parametrize("place", ["memory", "blocks"])  # thousands of iterations
def test_accelerated_agrees_with_mm_where_both_end_in_the_same_optimum(case, place):
    options = {"n_components": 2, "smoothing": 0.3}
    problem, W, H = random_problem(case, seed=2, **options)
    slow = MajorizeMinimize().solve(problem, W, H, Monitor(20_000, 1e-12))
    problem, W, H = random_problem(case, seed=2, place=place, **options)
    fast = Accelerated().solve(problem, W, H, Monitor(2_000, 1e-12))
    ends = slow.monitor.history[-1], fast.monitor.history[-1]
    assert abs(ends[0] - ends[1]) <= 1e-6 * abs(ends[0])


@pytest.mark.each_value
@pytest.mark.parametrize("case", AGREEING, ids=str)
def test_the_end_of_an_accelerated_fit_is_a_fixed_point_of_mm(case, place):
    problem, W, H = random_problem(case, seed=3, smoothing=0.3)
    fast = Accelerated().solve(problem, W, H, Monitor(3_000, 0.0))
    end, scale = fast.monitor.history[-1], _parts(problem, fast.W, fast.H)
    problem, _, _ = random_problem(case, seed=3, smoothing=0.3, place=place)
    n_iter = {"memory": 500, "blocks": 100, "dask": 5}[place]
    after = MajorizeMinimize().solve(problem, fast.W, fast.H, Monitor(n_iter, 0.0))
    assert abs(end - after.monitor.history[-1]) <= 1e-9 * scale


def test_a_stage_that_fails_is_undone_and_mm_takes_over(monkeypatch):
    case = CASES[0]
    problem, W, H = random_problem(case, seed=0)
    uphill = []

    def wrong_way(self, n):
        uphill.append(n)
        W = self.features.W
        W[...], self.H[...] = np.roll(W, 1, axis=0), 3.0 * self.H
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


def test_a_step_that_only_shows_features_without_weight_does_not_stop_the_path():
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


def test_a_refused_pair_replaces_no_other_in_the_memory():
    """The oldest pair goes first, and one that was refused takes nobody's place."""
    problem, W, H = random_problem(CASES[0], seed=0)
    path = accelerated._Path(problem, problem.observations.hold(W), H, False, 0)
    track = path.track
    size = len(path.slopes) - 1
    for i in range(1, 3 * size):
        bent = -1.0 if i == size + 1 else 1.0  # a pair with negative curvature
        track.trial = track.x + i
        row, used = path._free_row(), path.newest
        found = track.arrive(track.gradient + bent * i, track.metric, row, used)
        _, forward, backward = found[5:].reshape(3, -1)
        path._remember(*found[2:5], forward, backward)
        kept = [j for j in range(1, i + 1) if j != size + 1][-size:]
        assert [track.S[row, 0] for row in path.newest] == kept[::-1]


def _two_loops(slope, metric, S, T, newest):
    """−(approximate inverse Hessian)·slope as the textbook has it."""
    q, shares = slope.copy(), {}
    for i in newest:
        shares[i] = S[i] @ q / (S[i] @ T[i])
        q -= shares[i] * T[i]
    scale = 1.0
    if newest:
        last = newest[0]
        scale = np.clip(S[last] @ T[last] / (T[last] @ (T[last] / metric)), 0.05, 20.0)
    r = scale * q / metric
    for i in reversed(newest):
        r += (shares[i] - T[i] @ r / (S[i] @ T[i])) * S[i]
    return -r


@pytest.mark.parametrize("n_blocks", [1, 3])
def test_the_direction_is_that_of_the_two_loops_of_l_bfgs(n_blocks):
    """From products of vectors that lie in several places."""
    rng = np.random.default_rng(0)
    size, n, head = 5, 400, 290
    problem, W, H = random_problem(CASES[0], seed=0)
    path = accelerated._Path(problem, problem.observations.hold(W), H, False, 0)
    cuts = np.linspace(0, head, n_blocks + 1).astype(int)
    parts = [slice(a, b) for a, b in pairwise(cuts)] + [slice(head, n)]
    tracks = [Lbfgs(np.zeros(part.stop - part.start), size) for part in parts]
    path.track = tracks[-1]
    path.features = SimpleNamespace(
        apply_metric=lambda *given: sum(track.apply_metric(*given) for track in tracks[:-1]),
        set_direction=lambda *given: [track.set_direction(*given) for track in tracks[:-1]],
    )
    path.products, path.curvatures = np.zeros((size + 1, size + 1)), np.zeros(size + 1)
    path.slopes = np.zeros(size + 1)
    x, slope, root = np.zeros(n), rng.normal(size=n), rng.normal(size=(n, n)) / 20.0
    metric = rng.uniform(0.5, 2.0, n)
    hessian = np.diag(metric) + root @ root.T
    for track, part in zip(tracks, parts, strict=True):
        track.gradient, track.metric = slope[part], Diagonal(metric[part])
    S, Y = {}, {}
    for _ in range(3 * size):
        used, row = path.newest, path._free_row()
        move = rng.normal(size=n)
        change = hessian @ move
        found = 0.0
        for track, part in zip(tracks, parts, strict=True):
            track.trial = track.x + move[part]
            found = found + track.arrive(slope[part] + change[part], track.metric, row, used)
        x, slope = x + move, slope + change
        slopes, forward, backward = found[5:].reshape(3, -1)
        path._remember(*found[2:5], forward, backward)
        for track in tracks:
            track.accept()
        path.slopes = slopes
        S[row] = np.concatenate([track.S[row] for track in tracks]).astype(float)
        Y[row] = np.concatenate([track.Y[row] for track in tracks]).astype(float)
        downhill = path._set_direction()
        direction = np.concatenate([track.direction for track in tracks])
        expected = _two_loops(slope, metric, S, Y, path.newest.tolist())
        # s·y of a move is not rounded to single precision as the rows are.
        np.testing.assert_allclose(direction, expected, atol=1e-5 * np.abs(expected).max())
        assert downhill == pytest.approx(direction @ slope, rel=1e-9)
        assert len(path.newest) == min(len(S), size)


@pytest.mark.quick(
    "NoChain()",
    "Rate(alpha=1.5, beta=1.3)",
    "Shape(alpha=0.9, beta=0.8)",
    "BGAR(alpha=4.0, beta=0.4, rho=0.6)",
)
@pytest.mark.parametrize("chain", chains("log"), ids=str)
def test_accelerated_needs_at_most_a_third_of_the_passes_of_mm(chain):
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


@pytest.mark.each_value
@pytest.mark.parametrize("chain", chains("log"), ids=str)
def test_accelerated_keeps_fixed_components_and_held_steps(chain, place):
    case = Case(likelihoods()[0], chain, "log", "steps", "dense")
    there, W, H = random_problem(case, seed=5, place=place)
    problem, W, H = random_problem(case, seed=5)
    result = Accelerated().solve(there, W, H, Monitor(200, 1e-9), fixed_W=True, held=2)
    np.testing.assert_array_equal(result.W, W)
    np.testing.assert_array_equal(result.H[:, :2], H[:, :2])
    slow = MajorizeMinimize().solve(problem, W, H, Monitor(20_000, 1e-13), fixed_W=True, held=2)
    scale = _parts(problem, W, slow.H)
    assert abs(slow.monitor.history[-1] - result.monitor.history[-1]) <= 1e-7 * scale
