"""Every step of MM lowers the objective, and long runs end at stationary points."""

from zlib import crc32

import numpy as np
import pytest

from cases import Case, active, all_cases, chains, h_step, likelihoods, random_problem, w_step

STATIONARY = [
    Case(likelihood, chain, scale, mask, "dense")
    for likelihood in likelihoods()
    for scale in ("log", "linear")
    for chain in chains(scale)
    for mask in ("none", "entries")
]


def _slack(problem, W, H, aux):
    return 1e-10 * sum(abs(part) for part in problem.parts(W, H, aux).values())


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_no_step_increases_the_objective(case, place):
    # Even seeds have smoothing, odd ones have none.
    some = crc32(str(case).encode()) % 2
    seeds, steps = {"memory": (range(4), 12), "blocks": (range(2), 5), "dask": ([some], 2)}[place]
    for seed in seeds:
        problem, W, H = random_problem(case, seed, place=place)
        aux = problem.chain.auxiliary(H, problem.scale)
        current = problem.objective(W, H, aux)
        for _ in range(steps):
            slack = _slack(problem, W, H, aux)
            W = w_step(problem, W, H)
            after_w = problem.objective(W, H, aux)
            assert after_w <= current + slack
            aux = h_step(problem, W, H, aux)
            after_h = problem.objective(W, H, aux)
            assert after_h <= after_w + slack
            assert np.isfinite(after_h)
            current = after_h


@pytest.mark.parametrize("case", STATIONARY, ids=str)
def test_a_sweep_returns_the_auxiliary_variables_of_its_result(case, place):
    problem, W, H = random_problem(case, seed=5, place=place)
    aux = problem.chain.auxiliary(H, problem.scale)
    first = H.copy()
    for held in (0, 1):
        given = aux.copy()
        returned = h_step(problem, W, H, aux, held=held)
        np.testing.assert_array_equal(aux, given)
        # BGAR solves for b to nine digits while it moves.
        expected = problem.chain.auxiliary(H, problem.scale)
        np.testing.assert_allclose(returned, expected, rtol=1e-8)
        np.testing.assert_array_equal(H[:, :held], first[:, :held])
        aux, first = returned, H.copy()


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_components_stay_on_the_simplex_and_unseen_features_at_zero(case, place):
    other = crc32(str(case).encode()) % 2  # not what the test above has
    for smoothing in ((0.3,) if other else (0.0,)) if place == "dask" else (0.0, 0.3):
        problem, W, H = random_problem(case, seed=1, smoothing=smoothing, place=place)
        for _ in range(1 if place == "dask" else 3):
            W = w_step(problem, W, H)
        np.testing.assert_allclose(W.sum(axis=0), 1.0, rtol=1e-13)
        unseen = [0] if case.mask in ("entries", "weights") else []
        zeros = [1] if case.likelihood.takes_zeros and smoothing == 0.0 else []
        expected = np.isin(np.arange(len(W)), unseen + zeros)
        np.testing.assert_array_equal(np.all(W == 0.0, axis=1), expected)


def _slope(function, x, step):
    """Fourth-order central difference."""
    return (
        8.0 * (function(x + step) - function(x - step))
        - (function(x + 2.0 * step) - function(x - 2.0 * step))
    ) / (12.0 * step)


@pytest.mark.each_value
@pytest.mark.parametrize("case", STATIONARY, ids=str)
def test_long_runs_end_where_the_gradient_vanishes(case):
    problem, W, H = random_problem(
        case, seed=2, n_steps=6, n_features=5, n_components=2, smoothing=0.3
    )
    aux = problem.chain.auxiliary(H, problem.scale)
    for _ in range(20_000):
        before = H.copy(), W.copy()
        W = w_step(problem, W, H)
        aux = h_step(problem, W, H, aux)
        if np.allclose(H, before[0], rtol=1e-13, atol=0) and np.allclose(W, before[1], rtol=1e-13):
            break
    scale = sum(abs(part) for part in problem.parts(W, H, aux).values())

    # Entries may have slid to the floor: zeros of plain NMF, what the linear scale leaves open,
    # the first step of HierShape, whose flat prior does not hold it. The others are the interior.
    interior = H > 1e-20
    assert interior.any()
    for k, n in np.argwhere(interior):

        def moved_h(u, k=k, n=n):
            trial = H.copy()
            trial[k, n] *= np.exp(u)
            return problem.objective(W, trial)

        assert abs(_slope(moved_h, 0.0, 1e-3)) < 1e-10 * scale

    def moved_w(t, f):
        # Multiply one weight and renormalise: a direction inside the simplex.
        trial = W.copy()
        trial[f] *= np.exp(t)
        return problem.objective(trial / trial.sum(axis=0), H)

    for f in np.flatnonzero(active(problem)):
        assert abs(_slope(lambda t, f=f: moved_w(t, f), 0.0, 1e-3)) < 1e-10 * scale
