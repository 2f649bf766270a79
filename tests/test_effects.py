"""Seasons, covariates and trends: their updates, strengths and intervals."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from cases import Case, all_cases, chains, likelihoods, random_problem, update_weights
from temporalnmf import TemporalNMF
from temporalnmf.chains import GaP, HierShape, Rate, Shape
from temporalnmf.data.series import Series
from temporalnmf.effects import Season, Trend
from temporalnmf.effects.covariates import Covariates, influences
from temporalnmf.effects.design import Design
from temporalnmf.effects.effects import Effects
from temporalnmf.inference.coefficients import learned_strengths, newton_step, solve_coefficients
from temporalnmf.inference.laplace import data_part, of_levels
from temporalnmf.likelihoods import Poisson
from temporalnmf.likelihoods.base import Majorizer
from temporalnmf.solvers import mm
from temporalnmf.timeline.clock import Clock


def design_of(n_steps, seed=0):
    """A season, a covariate and a trend."""
    clock = Clock(np.arange(n_steps), "step of 1")
    values = np.random.default_rng(seed).normal(size=(n_steps, 1))
    covariates = Covariates(("x",), values)
    known = influences(covariates, np.ones(n_steps, dtype=bool))
    terms = Season(4, strength=0.5).resolve(clock), *known, Trend(0.8, 0.1).resolve(clock)
    return Design.of(terms, clock, covariates)


def with_effects(problem, K, n_steps, seed):
    rng = np.random.default_rng(seed)
    effects = Effects.start(design_of(n_steps, seed), K)
    effects.coefficients = rng.normal(0.0, 0.3, effects.coefficients.shape)
    return replace(problem, effects=effects)


WITH_LAW = [case for case in all_cases() if case.chain.has_law]


@pytest.mark.parametrize("case", WITH_LAW, ids=str)
def test_no_step_increases_the_objective_with_effects(case, place):
    seeds, steps = {"memory": (range(3), 8), "blocks": (range(1), 4), "dask": ([0], 2)}[place]
    for seed in seeds:
        problem, W, H = random_problem(case, seed, place=place)
        problem = with_effects(problem, len(H), H.shape[1], seed)
        features = problem.observations.hold(W)
        aux = problem.chain.auxiliary(H, problem.scale)
        parts = problem.parts(features, H, aux)
        slack = 1e-10 * sum(map(abs, parts.values()))
        current = sum(parts.values())
        for _ in range(steps):
            update_weights(features, problem.activations(H), float(problem.smoothing))
            after_w = problem.objective(features, H, aux)
            assert after_w <= current + slack
            aux = mm.h_step(problem, features, H, aux)
            current = problem.objective(features, H, aux)
            assert current <= after_w + slack
        assert np.any(problem.effects.coefficients != 0.0)


@pytest.mark.each_value
@pytest.mark.parametrize("chain", [c for c in chains("log") if c.has_law], ids=repr)
@pytest.mark.parametrize("likelihood", likelihoods(), ids=repr)
def test_coefficients_end_where_the_slope_of_the_objective_is_zero(likelihood, chain):
    problem, W, H = random_problem(Case(likelihood, chain, "log", "steps", "dense"), 3)
    problem = with_effects(problem, len(H), H.shape[1], 3)
    features, effects = problem.observations.hold(W), problem.effects
    aux = problem.chain.auxiliary(H, "log")
    for _ in range(3000):
        before = effects.coefficients
        aux = mm.h_step(problem, features, H, aux)
        if np.abs(effects.coefficients - before).max() < 1e-12:
            break
    best, step = effects.coefficients.copy(), 1e-4

    def at(k, j, away):
        shifted = best.copy()
        shifted[k, j] += away
        effects.coefficients = shifted
        return problem.objective(features, H, aux)

    scale = abs(at(0, 0, 0.0)) + 1.0
    for k, j in np.ndindex(best.shape):
        slope = (at(k, j, step) - at(k, j, -step)) / (2.0 * step)
        assert abs(slope) < 2e-5 * scale, (k, j)


@pytest.mark.parametrize(
    "chain", [GaP(1.5, 0.2), Rate(20.0, 20.0), Shape(0.5, 0.5), HierShape(1.0, 0.5)], ids=repr
)
def test_an_exchange_leaves_activations_and_lowers_the_priors(chain):
    rng = np.random.default_rng(0)
    H, effects = rng.gamma(5.0, 2.0, (2, 12)), Effects.start(design_of(12), 2)
    effects.coefficients = rng.normal(0.0, 0.5, effects.coefficients.shape)
    activations = H * effects.factors
    values = []
    for _ in range(8):
        values.append(chain.expansion(H, "log").value + effects.value())
        effects.exchange(H, chain, "log")
        np.testing.assert_allclose(H * effects.factors, activations, rtol=1e-12)
    assert np.all(np.diff(values) <= 0.0)
    assert values[1] < values[0] - 0.05


def test_moves_stay_within_the_reach_of_a_local_bound():
    effects = Effects.start(design_of(12), 1)
    H = np.ones((1, 12))
    bound = Majorizer(np.full((1, 12), 50.0), np.ones((1, 12)), np.zeros((1, 12)))
    effects.move(bound, H, np.full((1, 12), 1.5))
    assert 1.0 < effects.factors.max() <= 1.5


def noiseless(seed=0, n_steps=16):
    """Rates as data, so that the expected curvature is the observed one; two components."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.ones(5), 2).T
    H = rng.gamma(20.0, 2.0, (2, n_steps))
    effects = Effects.start(design_of(n_steps), 2)
    effects.coefficients = rng.normal(0.0, 0.2, effects.coefficients.shape)
    return W, H, effects


def test_covariances_are_those_of_the_joint_normal_approximation():
    """Against the inverse of a Hessian by differences, of all levels and coefficients."""
    W, H, effects = noiseless()
    V = W @ (H * effects.factors)
    part, chain = part_of(V, W, effects), Rate(30.0, 30.0)
    step = newton_step(effects, part, H, chain)
    X, size, shape = effects.design.columns, H.size, effects.coefficients.shape

    def objective(x):
        levels, b = np.exp(x[:size].reshape(H.shape)), x[size:].reshape(shape)
        mean = W @ (levels * np.exp(b @ X.T))
        value = float((mean - V * np.log(mean)).sum())
        return (
            value
            + chain.expansion(levels, "log").value
            + 0.5 * float((effects.precisions * b**2).sum())
        )

    at = np.concatenate([np.log(H).ravel(), effects.coefficients.ravel()])
    hessian, slope = differences(objective, at, 2e-3)
    joint = np.linalg.inv(hessian)
    covariance = joint[size:, size:].reshape(*shape, *shape)
    for k in range(2):
        np.testing.assert_allclose(step.covariances[k], covariance[k, :, k], rtol=2e-3, atol=1e-6)
    moved = np.concatenate([step.levels.ravel(), step.coefficients.ravel()])
    np.testing.assert_allclose(hessian @ moved, -slope, atol=2e-3 * np.abs(slope).max())
    assert step.slope == pytest.approx(slope @ moved, rel=1e-3)


def test_newton_steps_end_at_the_mode():
    W, H, effects = noiseless(1)
    V = np.random.default_rng(0).poisson(W @ (H * effects.factors)).astype(float)
    chain, levels = Rate(30.0, 30.0), H.copy()

    def objective(H):
        mean = W @ (H * effects.factors)
        value = float((mean - V * np.log(mean)).sum())
        return value + chain.expansion(H, "log").value + effects.value()

    levels = solve_coefficients(
        effects, lambda: part_of(V, W, effects), objective, levels, chain, "log"
    )
    last = newton_step(effects, part_of(V, W, effects), levels, chain)
    assert abs(last.slope) < 1e-6 * abs(objective(levels))


def part_of(V, W, effects):
    """The data terms of V (F, N) for levels."""
    series = Series(V.T, np.ones((V.shape[1], 1)), np.ones(V.shape[1]))
    return of_levels(partial(data_part, series, W, Poisson()), effects)


def differences(function, x, step):
    """A Hessian and a slope by central differences."""
    n, shifts = len(x), step * np.eye(len(x))
    hessian = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            corners = [
                s * t * function(x + s * shifts[i] + t * shifts[j])
                for s in (1, -1)
                for t in (1, -1)
            ]
            hessian[i, j] = hessian[j, i] = sum(corners) / (4.0 * step**2)
    slope = [(function(x + h) - function(x - h)) / (2.0 * step) for h in shifts]
    return hessian, np.array(slope)


def test_the_learned_strength_solves_its_fixed_point():
    """(EF4) against its definition, term by term."""
    _, _, effects = noiseless()
    effects.design = replace(
        effects.design, terms=tuple(replace(t, strength="learn") for t in effects.design.terms)
    )
    P = effects.design.columns.shape[1]
    covariance = np.array([np.diag(np.arange(1.0, P + 1.0)) * 1e-3] * 2)
    found = learned_strengths(effects, covariance)
    for t, term in enumerate(effects.design.terms):
        mine = np.flatnonzero(effects.design.term_of == t)
        total = sum(
            effects.coefficients[k, j] ** 2 + covariance[k, j, j] for k in range(2) for j in mine
        )
        n = len(mine)
        assert found[t] == pytest.approx(np.sqrt(n * (term.usual**2 + total) / (n + 2 * n)))


def counts(seed, n_steps, log_factors, level=60.0, alpha=200.0, F=12):
    """Poisson counts of two components whose activations have the log factors (2, N)."""
    rng = np.random.default_rng(seed)
    steps = rng.gamma(alpha, 1.0 / alpha, (2, n_steps))
    H = level * F * np.cumprod(steps, axis=1) * np.exp(log_factors)
    W = np.zeros((F, 2))
    W[: F // 2, 0] = W[F // 2 :, 1] = 2.0 / F
    return rng.poisson((W @ H).T)


def fitted(X, **options):
    return TemporalNMF(2, chain=Rate(200.0), random_state=0, likelihood="poisson", **options).fit(X)


def in_order(model, X):
    """Components whose features come first, first."""
    return np.argsort([np.argmax(row) for row in model.components_])


def test_a_planted_season_is_recovered():
    pattern = np.array([0.2, 0.1, 0.0, -0.1, 0.15, -0.4, 0.05]) * np.array([[1.0], [-1.0]])
    X = counts(0, 140, np.tile(pattern, 20))
    model = fitted(X, season=7)
    found = np.log(model.season_["7 steps"][in_order(model, X)])
    np.testing.assert_allclose(found, pattern, atol=0.05)


def test_intervals_of_planted_covariates_contain_them():
    """Of 60 data sets with one component, whose 90 % intervals hold: fewer than 47 or all 60 have
    a probability of 1 in 250 and of 1 in 550."""
    inside = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, true = rng.normal(3.0, 2.0, 60), 0.05
        h = 400.0 * np.cumprod(rng.gamma(200.0, 1.0 / 200.0, 60)) * np.exp(true * x)
        X = rng.poisson(np.outer(h, np.full(5, 0.2)))
        model = TemporalNMF(
            1, chain=Rate(200.0), likelihood="poisson", random_state=0, intervals="model"
        ).fit(X, covariates=x)
        _, low, high = np.log(model.effects_["covariate 1"][0])
        inside += low <= true <= high
    assert 47 <= inside < 60


def test_planted_covariates_are_recovered():
    x = np.random.default_rng(1).normal(3.0, 2.0, 60)
    true = np.array([0.05, -0.1])
    X = counts(0, 60, true[:, None] * x)
    model = TemporalNMF(2, chain=Rate(200.0), random_state=0).fit(X, covariates=x)
    found = np.log(model.effects_["covariate 1"][in_order(model, X), 0])
    np.testing.assert_allclose(found, true, atol=0.015)


def test_a_planted_trend_is_continued():
    growth = 0.05
    log_factors = np.array([growth, -growth])[:, None] * np.arange(60)
    X = counts(2, 66, np.pad(log_factors, ((0, 0), (0, 6)), mode="edge"), alpha=3000.0)
    X[60:] = counts(2, 66, np.array([growth, -growth])[:, None] * np.arange(66), alpha=3000.0)[60:]
    plain = TemporalNMF(2, chain=Rate(3000.0), random_state=0).fit(X[:60])
    model = TemporalNMF(2, chain=Rate(3000.0), trend=1.0, random_state=0).fit(X[:60])
    order = in_order(model, X)
    np.testing.assert_allclose(np.log(model.trend_[order, 0]), [growth, -growth], atol=0.02)

    def error(fitted):
        return np.abs(fitted.forecast(6).values - X[60:]).sum()

    assert error(model) < 0.5 * error(plain)
