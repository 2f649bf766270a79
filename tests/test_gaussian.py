"""Values with a constant absolute error: the local bound (LB1), density, learning, what is refused.

Divergences with 1 < β < 2 have the same bound and are tested here, too.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.decomposition import NMF

from cases import MASKS, Case, chains, h_step, random_problem, update_weights, w_step
from commands import done
from temporalnmf import TemporalNMF, load, plotting
from temporalnmf.chains import GaP, NoChain, Rate
from temporalnmf.likelihoods import Gaussian, Poisson, Tweedie
from temporalnmf.likelihoods.local import LocalBound
from temporalnmf.solvers import Gibbs, mm

NUMBERS = [0.04, 1.0, 30.0]


def rates(seed, n_steps=60, n_features=12, level=30.0):
    rng = np.random.default_rng(seed)
    time = np.linspace(0.0, 1.0, n_steps)[:, None]
    H = level * np.hstack([1.5 + np.sin(6.0 * time), 1.0 + time])
    return H @ rng.dirichlet(np.ones(n_features), size=2)


def simulated(seed, variance, **given):
    """Values below zero are cut off, which matters little at these levels."""
    drawn = Gaussian(variance).sample(rates(seed, **given) + 1.0, np.random.default_rng(seed))
    return np.maximum(drawn, 0.0)


def fitted(X, likelihood="gaussian", **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {"random_state": 0, "smoothing": 0.0, **given}
        return TemporalNMF(2, likelihood=likelihood, **given).fit(X)


# The bound


def divergence(x, A, B, beta):
    """The bound of −log p by Jensen's inequality, a function of h/h̃."""
    return B * x**beta / beta - A * x ** (beta - 1.0) / (beta - 1.0)


@pytest.mark.parametrize("beta", [1.001, 1.3, 1.7, 2.0])
def test_the_bound_touches_the_divergence_and_lies_above_it_as_far_as_it_reaches(beta):
    rng = np.random.default_rng(0)
    A, B = rng.gamma(0.5, 2.0, size=(2, 400)) + 1e-9
    bound = LocalBound(A, B, np.ones(400))
    for reach in (None, 3.0, 40.0):
        if reach is not None:
            new = np.full(400, reach)
            where = bound.beyond(new)
            bound.widen(where, new, 1.05)
            assert not bound.beyond(new).any()
        p, q, r = bound.majorizer
        assert np.all(q > 0.0)
        assert not r.any()
        for x in np.concatenate([np.geomspace(1e-9, 100.0, 300), 1.0 + np.linspace(-0.1, 0.1, 21)]):
            excess = q * x - p * np.log(x) - q - divergence(x, A, B, beta)
            excess += divergence(1.0, A, B, beta)
            near = ~bound.beyond(np.full(400, x))
            rounding = 1e-13 * (p + q) * max(x, 1.0) / (beta - 1.0)
            assert np.all(excess[near] >= -rounding[near])
    if beta > 1.5:  # It is local: far away the divergence is larger.
        assert np.all(q * 1e9 - p * np.log(1e9) < divergence(1e9, A, B, beta))


@pytest.mark.parametrize("likelihood", [Gaussian(3.0), Tweedie(1.8, 0.6)], ids=str)
def test_updates_that_are_out_of_reach_are_repeated_with_a_wider_bound(likelihood, monkeypatch):
    """Under a chain that pulls far beyond the data; without that, the objective rises."""
    case = Case(likelihood, GaP(3000.0, 1e-3), "log", "none", "dense")
    widened = []
    widen = LocalBound.widen

    def counting(bound, where, new, room):
        widened.append(where.sum())
        widen(bound, where, new, room)

    def after(n_steps):
        problem, W, H = random_problem(case, seed=0)
        aux = problem.chain.auxiliary(H, problem.scale)
        found = [problem.objective(W, H, aux)]
        for _ in range(n_steps):
            aux = h_step(problem, W, H, aux)
            found.append(problem.objective(W, H, aux))
            W = w_step(problem, W, H)
            found.append(problem.objective(W, H, aux))
        return np.diff(found) / np.abs(found[1:])

    monkeypatch.setattr(LocalBound, "widen", counting)
    assert np.all(after(30) <= 1e-12)
    assert sum(widened) > 5
    monkeypatch.setattr(LocalBound, "beyond", lambda bound, new: np.zeros(new.shape, dtype=bool))
    assert np.any(after(30) > 1e-6)


def test_a_sweep_is_repeated_from_where_it_started(monkeypatch):
    case = Case(Gaussian(3.0), GaP(3000.0, 1e-3), "log", "none", "dense")
    problem, W, H = random_problem(case, seed=0)
    starts, sweep, first = [], GaP.sweep, H.copy()

    def recording(chain, H, *given, **named):
        starts.append(H.copy())
        return sweep(chain, H, *given, **named)

    monkeypatch.setattr(GaP, "sweep", recording)
    h_step(problem, W, H, problem.chain.auxiliary(H, "log"))
    assert len(starts) > 1
    for start in starts:
        np.testing.assert_array_equal(start, first)


@pytest.mark.parametrize("likelihood", [Gaussian(0.01), Tweedie(1.6, 0.02)], ids=str)
def test_weights_that_are_out_of_reach_are_found_again(likelihood, monkeypatch):
    """Weights sum to one, so where the others shrink, one grows beyond its bound."""
    case = Case(likelihood, NoChain(), "log", "none", "dense")
    widened = []
    widen = LocalBound.widen

    def counting(bound, where, new, room):
        widened.append(where.sum())
        widen(bound, where, new, room)

    monkeypatch.setattr(LocalBound, "widen", counting)
    for seed in range(6):
        smoothing = 0.3 * (seed % 2)
        problem, W, H = random_problem(case, seed, smoothing=smoothing)
        H = 30.0 * H  # too large for the data: all weights should shrink, and cannot
        before = problem.objective(W, H)
        features = problem.observations.hold(W)
        n_before = len(widened)
        update_weights(features, H, smoothing)
        assert len(widened) > n_before
        W = features.array()
        assert problem.objective(W, H) <= before
        np.testing.assert_allclose(W.sum(axis=0), 1.0, rtol=1e-13)
        # The minimizer for the bound in the end: one multiplier per column.
        p, q, _ = features._local.majorizer
        used = W[:, 0] > 1e-20
        found = ((p + smoothing) / np.where(W > 0.0, W, 1.0) - q)[used]
        np.testing.assert_allclose(found, found[:1].repeat(len(found), axis=0), rtol=1e-9)


def test_a_bound_that_is_not_left_is_swept_once(monkeypatch):
    """No chain, no sum of weights: the minimizer is within reach."""
    case = Case(Gaussian(3.0), NoChain(), "log", "entries", "dense")
    problem, W, H = random_problem(case, seed=1)
    monkeypatch.setattr(LocalBound, "widen", None)
    h_step(problem, W, H, problem.chain.auxiliary(H, "log"))
    for weights in (0.0, 1.0):  # an activation without data stays where it is
        bound = LocalBound(np.zeros(1), np.full(1, weights), np.ones(1))
        assert bound.beyond(np.full(1, 9.0)) == (weights > 0.0)


# Other libraries


@pytest.mark.parametrize(
    ("likelihood", "loss"),
    [
        (Gaussian(1.0), 2.0),
        (Tweedie(1.5, 1.0), 1.5),
        pytest.param(Tweedie(1.1, 1.0), 1.1, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_plain_nmf_ends_in_the_same_optimum_as_scikit_learn(likelihood, loss):
    """From the same start, both converged; neither has a better continuation of the other."""
    X = rates(3, n_steps=25) + np.random.default_rng(3).uniform(0.0, 6.0, size=(25, 12))
    rng = np.random.default_rng(4)
    W, H = rng.gamma(2.0, size=(2, 12)), rng.gamma(2.0, 10.0, size=(25, 2))

    def theirs(start, max_iter):
        model = NMF(2, init="custom", solver="mu", beta_loss=loss, tol=0.0, max_iter=max_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit_transform(X, W=start[1].copy(), H=start[0].copy())
        return 0.5 * model.reconstruction_err_**2

    given = {"chain": "none", "init": (W, H), "tol": 1e-14, "max_iter": 20_000}
    for solver in ("accelerated", "mm"):
        ours = fitted(X, likelihood, solver=solver, **given)
        err = likelihood.error(X, ours.activations_ @ ours.components_)
        assert err == pytest.approx(theirs((W, H), 20_000), rel=1e-8)
        assert err == pytest.approx(theirs((ours.components_, ours.activations_), 1), rel=1e-8)
        normal = X.size * 0.5 * np.log(2.0 * np.pi) if loss == 2.0 else 0.0
        assert ours.reconstruction_err_ == pytest.approx(err, rel=1e-9)
        assert ours.objective_ == pytest.approx(err + normal, rel=1e-9)


def test_the_coordinate_descent_of_scikit_learn_ends_there_too():
    X = rates(5, n_steps=25) + np.random.default_rng(5).uniform(0.0, 6.0, size=(25, 12))
    ours = fitted(X, Gaussian(1.0), chain="none", tol=1e-14, max_iter=5000)
    start = {"W": ours.activations_ * 1.1, "H": ours.components_.copy()}
    theirs = NMF(2, init="custom", solver="cd", tol=1e-12, max_iter=5000)
    theirs.fit_transform(X, **start)
    assert ours.reconstruction_err_ == pytest.approx(0.5 * theirs.reconstruction_err_**2, rel=1e-8)


# The distribution


@pytest.mark.parametrize("variance", NUMBERS)
def test_the_density_is_that_of_scipy(variance):
    v, lam = np.meshgrid([0.0, 1e-3, 0.4, 2.0, 50.0], [0.01, 0.7, 5.0])
    expected = stats.norm.logpdf(v, lam, np.sqrt(variance))
    np.testing.assert_allclose(Gaussian(variance).log_density(v, lam), expected, rtol=1e-12)
    # Of forecasts that explode it is finite.
    far = np.array([1.0]), np.array([1e250])
    assert -1e301 < Gaussian(variance).log_density(*far)[0] < -1e299
    assert 1e299 < Gaussian(variance).error(*far) < 1e301


def test_slope_and_curvature_are_derivatives_of_the_density():
    law, v, lam, m = Gaussian(0.7), np.array([0.0, 2.0, 9.0]), np.array([1.0, 2.5, 4.0]), 0.3
    e = 1e-4
    low, mid, high = (-m * law.log_density(v, lam + d) for d in (-e, 0.0, e))
    weight = np.full(3, m)
    np.testing.assert_allclose(law.slope(v, weight, lam), (high - low) / (2 * e), rtol=1e-7)
    bent = (high - 2.0 * mid + low) / e**2
    for expected in (True, False):
        found = law.curvature(v, weight, lam, expected=expected)
        np.testing.assert_allclose(found, bent, rtol=1e-5)


def test_samples_have_the_mean_and_the_variance_and_may_be_negative():
    """False alarm 1 in 10,000 for each number."""
    n, variance = 200_000, 4.0
    drawn = Gaussian(variance).sample(np.full(n, 0.5), np.random.default_rng(0))
    assert abs(drawn.mean() - 0.5) < 3.9 * np.sqrt(variance / n)
    assert abs(drawn.var() - variance) < 3.9 * variance * np.sqrt(2.0 / n)
    assert stats.kstest(drawn, stats.norm(0.5, 2.0).cdf).pvalue > 1e-4


@pytest.mark.parametrize("variance", NUMBERS)
def test_the_variance_is_learned(variance):
    """From 720 entries: the standard error of log σ² is 0.05; components take some of them."""
    data = [simulated(s, variance, level=100.0) for s in range(4)]
    found = [fitted(X).likelihood_.variance for X in data]
    assert np.log(np.mean(found) / variance) == pytest.approx(0.0, abs=0.25)


def test_the_learned_variance_is_the_mean_squared_error_and_the_best_one():
    X = simulated(1, 4.0)
    model = fitted(X)
    fit = model.activations_ @ model.components_
    best = model.likelihood_.variance
    assert best == pytest.approx(np.mean((X - fit) ** 2), rel=1e-5)
    values = [Gaussian(best * f).log_density(X, fit).sum() for f in (0.98, 1.0, 1.02)]
    assert values[1] > max(values[0], values[2])


@pytest.mark.parametrize("unit", [1e-5, 1.0, 1e5])
def test_an_exact_fit_leaves_a_variance_above_rounding(unit):
    X = unit * np.outer(np.arange(1.0, 9.0), [3.0, 1.0, 4.0])
    model = fitted(X, chain="none", tol=0.0, max_iter=400)
    assert model.likelihood_.variance == pytest.approx(1e-12 * np.mean(X**2))
    history = model.history_
    assert np.all(np.diff(history) <= 1e-10 * np.maximum(np.abs(history[1:]), 1.0))


@pytest.mark.parametrize("solver", ["mm", "accelerated"])
def test_every_evaluation_with_a_learned_variance_descends(solver):
    history = fitted(simulated(2, 4.0), solver=solver, tol=0.0, max_iter=100).history_
    assert np.all(np.diff(history) <= 1e-10 * np.abs(history[1:]))


def test_the_unit_of_the_data_is_in_the_variance():
    X = simulated(4, 4.0)
    one, other = fitted(X, tol=1e-9), fitted(X * 1024.0, tol=1e-9)
    factor = other.likelihood_.variance / one.likelihood_.variance
    assert factor == pytest.approx(1024.0**2, rel=1e-2)
    np.testing.assert_allclose(other.components_, one.components_, rtol=0.05, atol=2e-3)


def test_intervals_of_the_model_hold_and_may_end_below_zero():
    """20 series simulated from the model, one step ahead, 40 entries each."""
    inside, lowest, rng = [], [], np.random.default_rng(5)
    W = rng.dirichlet(np.ones(40), size=2)
    for _ in range(20):
        h = 300.0 * np.exp(np.cumsum(rng.normal(0.0, 0.05, size=(41, 2)), axis=0))
        X = h @ W + rng.normal(0.0, 1.0, size=(41, 40))
        X[:40] = np.maximum(X[:40], 0.0)
        model = fitted(X[:40], chain=Rate(400.0))
        low, high = model.forecast(1, random_state=0).interval(0.9)
        inside.append(np.mean((low[0] <= X[40]) & (X[40] <= high[0])))
        lowest.append(low.min())
    # Entries are nearly independent: standard error of the share below 0.015; components are
    # estimated, which costs a little.
    assert np.mean(inside) == pytest.approx(0.9, abs=0.05)
    assert min(lowest) < 0.0


def test_a_fit_in_blocks_learns_what_one_in_memory_does():
    import dask.array as da

    X = simulated(6, 4.0)
    given = {"max_iter": 40, "tol": 0.0}
    here, there = fitted(X, **given), fitted(da.from_array(X, chunks=(-1, 5)), **given)
    assert there.likelihood_.variance == pytest.approx(here.likelihood_.variance, rel=1e-6)
    assert there.reconstruction_err_ == pytest.approx(here.reconstruction_err_, rel=1e-6)


def test_the_methods_of_a_model_know_the_law(tmp_path):
    X = simulated(3, 4.0)
    X[7], X[20, 3] = np.nan, np.nan
    model = fitted(X)
    again = load(model.save(tmp_path / "model.npz"))
    assert again.likelihood_.get_params() == model.likelihood_.get_params()
    ours, theirs = (m.forecast(2, random_state=0).samples() for m in (model, again))
    np.testing.assert_array_equal(ours, theirs)
    seen = ~np.isnan(X)
    fit = model.activations_ @ model.components_
    variance = model.likelihood_.variance
    log_p = stats.norm.logpdf(X[seen], fit[seen], np.sqrt(variance))
    assert model.score(X) == pytest.approx(log_p.mean(), rel=1e-4)
    assert np.isfinite(model.impute(X)).all()
    low, high = model.smooth().interval(0.9)
    assert np.mean(((low <= X) & (high >= X))[seen]) == pytest.approx(0.9, abs=0.06)
    half = 0.5 * np.sum((X - fit)[seen] ** 2) / variance
    assert model.reconstruction_err_ == pytest.approx(half, rel=1e-9)
    with pytest.raises(ValueError, match="calibrate is for counts"):
        model.calibrate(5)


def test_the_command_line_knows_it(tmp_path):
    table, model = tmp_path / "x.csv", tmp_path / "model.npz"
    pd.DataFrame(simulated(3, 1.0, level=3.0)).add_prefix("x").to_csv(table, index_label="n")
    done("fit", table, "--likelihood", "gaussian", "--components", 2, "--out", model)
    shown = done("forecast", model, "--steps", 1).output
    assert load(model).likelihood_.variance == pytest.approx(1.0, rel=0.4)
    assert "(-" in shown  # the lower end of an interval


def test_a_feature_of_zeros_gets_no_weight():
    X = simulated(0, 1.0)
    X[:, 4] = 0.0
    assert not fitted(X).components_[:, 4].any()
    weight = fitted(X, smoothing=0.1, chain="none").components_[:, 4]
    assert np.all((weight > 0.0) & (weight < 1e-2))


# What is refused


def test_sparse_data_are_refused_with_a_remedy():
    X = sparse.csr_array(simulated(0, 1.0))
    with pytest.raises(ValueError, match=r"sparse.*gaussian.*X\.toarray\(\).*likelihood='poisson'"):
        fitted(X)


def test_values_below_zero_are_refused():
    with pytest.raises(ValueError, match=r"negative"):
        fitted(-simulated(0, 1.0))


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf, True, "auto"])
def test_variances_that_make_no_sense_are_refused(variance):
    with pytest.raises(ValueError, match=r"Gaussian\(variance=.*give a positive number"):
        fitted(simulated(0, 1.0), Gaussian(variance))


def test_draws_are_refused_with_a_remedy():
    with pytest.raises(ValueError, match="accelerated"):
        fitted(simulated(0, 1.0), solver=Gibbs(), smoothing=1.0)


# 1 < β < 2: a divergence without a distribution


@pytest.mark.parametrize("mask", MASKS)
def test_every_step_lowers_a_divergence_without_a_law(mask):
    for i, chain in enumerate(chains("log")):
        case = Case(Tweedie((1.2, 1.5, 1.8)[i % 3], 0.4), chain, "log", mask, "dense")
        problem, W, H = random_problem(case, seed=i)
        aux = problem.chain.auxiliary(H, "log")
        current = problem.objective(W, H, aux)
        for _ in range(8):
            slack = 1e-10 * sum(abs(part) for part in problem.parts(W, H, aux).values())
            W = w_step(problem, W, H)
            after_w = problem.objective(W, H, aux)
            aux = h_step(problem, W, H, aux)
            after_h = problem.objective(W, H, aux)
            assert after_h <= after_w + slack
            assert after_w <= current + slack
            current = after_h


def test_the_sums_are_the_gradient_of_the_divergence():
    case = Case(Tweedie(1.3, 0.4), NoChain(), "log", "weights", "dense")
    problem, W, H = random_problem(case, seed=4, smoothing=0.0)
    (A, B) = problem.observations.sums(W, H, "h")[0]
    for k, n in np.ndindex(H.shape):
        values = []
        for step in (-2e-4, -1e-4, 1e-4, 2e-4):
            moved = H.copy()
            moved[k, n] *= 1.0 + step
            values.append(problem.objective(W, moved))
        slope = (8.0 * (values[2] - values[1]) - (values[3] - values[0])) / 12e-4
        expected = (H * (B - A))[k, n]
        assert slope == pytest.approx(expected, rel=1e-6, abs=1e-7 * abs(values[0]))


@pytest.mark.parametrize(
    ("near", "at"),
    [(Tweedie(1.0 + 1e-9, 1.0), Poisson()), (Tweedie(2.0 - 1e-9, 3.0), Gaussian(3.0))],
    ids=["poisson", "gaussian"],
)
def test_the_ends_are_poisson_and_gaussian(near, at):
    X = simulated(0, 9.0)
    given = {"tol": 1e-13, "max_iter": 4000}
    one, other = fitted(X, near, **given), fitted(X, at, **given)
    np.testing.assert_allclose(one.components_, other.components_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(one.activations_, other.activations_, rtol=1e-4)
    assert one.reconstruction_err_ == pytest.approx(other.reconstruction_err_, rel=1e-6)


def test_a_divergence_without_a_law_gives_points_only(tmp_path, ax):
    X = simulated(3, 4.0)
    X[7], X[20, 3] = np.nan, np.nan
    model = fitted(X, Tweedie(1.5, 0.5))
    again = load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert model._posterior is None  # not computed to be saved
    assert np.isfinite(model.impute(X)).all()
    for ahead in (model.forecast(3), again.forecast(3), model.smooth()):
        assert not ahead.has_bands
        assert np.isfinite(ahead.values).all()
        assert ahead.notes[0].code == "no_distribution"
        with pytest.raises(
            ValueError, match=r"no intervals.*Tweedie\(beta=1\.5, dispersion=0\.5\)"
        ):
            ahead.interval(0.9)
    for plot in (plotting.plot_forecast, plotting.plot_activations, plotting.plot_movement):
        assert "no distribution" in plot(model, ax=ax).get_title(loc="left")
    words = r"needs a distribution of the data, and Tweedie\(beta=1\.5, dispersion=0\.5\)"
    for refused in (model.score, model.calibrate):
        with pytest.raises(ValueError, match=f"{refused.__name__} {words}"):
            refused(*([X] if refused == model.score else [5]))
    with pytest.raises(ValueError, match=f"Learning hyper-parameters {words}"):
        fitted(X, Tweedie(1.5, 0.5), chain=Rate(alpha="learn"))
    with pytest.raises(ValueError, match=f"A density {words}"):
        model.likelihood_.log_density(X, X)
    with pytest.raises(ValueError, match=f"A sample {words}"):
        model.likelihood_.sample(X, np.random.default_rng(0))


def test_a_dispersion_without_a_law_is_not_learned():
    with pytest.raises(ValueError, match=r"Tweedie\(beta=1\.5, dispersion='learn'\): no distri"):
        fitted(simulated(0, 1.0), Tweedie(1.5))


def test_w_root_of_global_bounds_asks_for_no_second_look(monkeypatch):
    case = Case(Tweedie(0.4, 0.3), NoChain(), "log", "none", "dense")
    problem, W, H = random_problem(case, seed=1)
    features = problem.observations.hold(W)
    monkeypatch.setattr(type(features), "widen", None)
    mm.w_root(features, H, 0.0)
