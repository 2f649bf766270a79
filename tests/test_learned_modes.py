"""Hyper-parameters that posterior modes learn: Laplace's approximation, EM, intervals."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from stops import StopAt, StopError
from temporalnmf import TemporalNMF, load
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.chains.coordinates import Coordinates, Prior
from temporalnmf.inference import learning
from temporalnmf.inference.laplace import Posterior
from temporalnmf.inference.learning import climb, expected_log_density, moves_of
from temporalnmf.kernels.banded import band_of_inverse, factor_upper
from temporalnmf.shards import write_shards
from temporalnmf.timeline import timeline_of

LEVEL = 400.0
# Chains, what is learned, and the factor by which an estimate may miss (benchmarks/
# learned_movement.py has bias and spread).
TRUTHS = [
    (GaP(2.0, 2.0 / LEVEL), ("alpha",), 1.4),
    (GaP(2.0, 2.0 / LEVEL), ("beta",), 1.4),
    (Rate(5.0), ("alpha",), 1.8),
    (Rate(60.0), ("alpha",), 1.8),
    (Rate(40.0, 40.0), ("alpha", "beta"), 1.8),
    (HierRate(100.0, "auto", 100.0), ("alpha_z",), 2.5),
    (Shape(50.0 / LEVEL), ("alpha",), 1.6),
    (Shape(50.0 / LEVEL, 50.0 / LEVEL), ("alpha", "beta"), 1.6),
    (HierShape(1.0, 100.0 / LEVEL), ("beta",), 1.6),
    (HierShape(2.0, 100.0 / LEVEL), ("alpha", "beta"), 2.5),
    (BGAR(5.0, 5.0 / LEVEL, 0.8), ("beta",), 1.5),
    (BGAR(5.0, 5.0 / LEVEL, 0.8), ("rho",), 2.0),
    (ARG(5.0, 5.0 / LEVEL, 0.8), ("beta",), 1.5),
    (ARG(5.0, 5.0 / LEVEL, 0.8), ("rho",), 2.0),
    (ARG(5.0, 5.0 / LEVEL, 0.8), ("alpha", "beta", "rho"), 2.0),
]


def simulated(chain, n_steps=120, n_components=2, seed=0, level=LEVEL):
    """Counts of components on features of their own, a tenth of the steps missing."""
    rng = np.random.default_rng(seed)
    H = chain.sample(200, n_steps, rng, level)
    H = H[(H.mean(axis=1) > 0.2 * level) & (H.mean(axis=1) < 5.0 * level)][:n_components]
    W = np.kron(np.eye(n_components), [[0.5, 0.3, 0.2]])
    X = rng.poisson(H.T @ W).astype(float)
    X[rng.choice(np.arange(1, n_steps - 1), n_steps // 10, replace=False)] = np.nan
    return X


def learner(chain, names):
    return type(chain)(**{**chain.get_params(), **dict.fromkeys(names, "learn")})


@pytest.mark.quick("truth0", "truth3", "truth6")
@pytest.mark.parametrize("truth", TRUTHS)
def test_learned_hyper_parameters_are_near_the_truth(truth):
    chain, names, factor = truth
    model = TemporalNMF(2, chain=learner(chain, names), random_state=0).fit(simulated(chain))
    assert list(model.learned_) == list(names)
    for name in names:
        found, true = model.learned_[name], getattr(chain, name)
        np.testing.assert_array_equal(getattr(model.chain_, name), found[:, 0])
        off = found[:, 0] / true
        if name == "rho":
            off *= (1.0 - true) / (1.0 - found[:, 0])
        assert 1.0 / factor < np.exp(np.log(off).mean()) < factor, found


@pytest.mark.parametrize("solver", ["mm", "accelerated"])
def test_both_solvers_learn_the_same(solver):
    X = simulated(Rate(20.0))
    model = TemporalNMF(2, chain=Rate("learn"), solver=solver, random_state=0).fit(X)
    other = TemporalNMF(2, chain=Rate("learn"), tol=1e-7, random_state=1).fit(X)
    np.testing.assert_allclose(np.sort(model.chain_.alpha), np.sort(other.chain_.alpha), rtol=0.05)


def test_independent_steps_learn_the_marginal_likelihood():
    """One component of GaP: counts are negative binomial, which is maximised directly."""
    rng = np.random.default_rng(1)
    alpha, beta = 2.5, 0.05
    y = rng.poisson(rng.gamma(alpha, 1.0 / beta, size=300)).astype(float)
    model = TemporalNMF(1, chain=GaP("learn", "learn"), random_state=0).fit(y[:, None])
    priors = Coordinates(GaP("learn", "learn"), y.mean(), 1).priors

    def cost(x):
        a, ratio = np.exp(x)
        law = stats.nbinom(a, ratio * a / (1.0 + ratio * a))
        # A component around a centre that has the prior: their variances add up.
        prior = [-0.5 * (v - p.centre) ** 2 / (1.25 * p.spread**2)
                 for v, p in zip(x, priors.values(), strict=True)]  # fmt: skip
        return -law.logpmf(y).sum() - sum(prior)

    best = minimize(cost, np.log([1.0, 1.0 / y.mean()]), method="BFGS")
    shape, ratio = best.x
    np.testing.assert_allclose(np.log(model.chain_.alpha[0]), shape, atol=0.01)
    np.testing.assert_allclose(np.log(model.chain_.beta[0]), shape + ratio, atol=0.01)
    deviations = np.sqrt([best.hess_inv[0, 0], best.hess_inv.sum()])
    widths = [np.log(rows[0, 2] / rows[0, 1]) for rows in model.learned_.values()]
    np.testing.assert_allclose(widths, 2.0 * 1.645 * deviations, rtol=0.25)


def random_posterior(n_steps=6, n_components=3, seed=0, scale=40.0):
    """A posterior with a random precision, diagonally dominant, and its dense covariance."""
    rng = np.random.default_rng(seed)
    n = n_steps * n_components
    band = rng.uniform(-1.0, 0.0, size=(n_components + 1, n)) * scale / 8.0
    band[-1] = scale
    P = np.zeros((n, n))
    for offset in range(n_components + 1):
        values = band[n_components - offset, offset:]
        P += np.diag(values, offset) + (np.diag(values, -offset) if offset else 0.0)
    assert factor_upper(band)
    H = rng.gamma(5.0, 2.0, size=(n_steps, n_components))
    return Posterior(H, band, band_of_inverse(band, n_components)), np.linalg.inv(P)


def test_covariances_between_steps_are_those_of_the_dense_inverse():
    posterior, dense = random_posterior()
    K = posterior.activations.shape[1]
    np.testing.assert_allclose(posterior.between_steps().ravel(), np.diagonal(dense, K), rtol=1e-10)
    blocks = dense.reshape(6, K, 6, K)[np.arange(6), :, np.arange(6), :]
    np.testing.assert_allclose(posterior.covariance, blocks, rtol=1e-10)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (GaP(2.0, 0.2), GaP(4.0, 0.3)), (Rate(5.0, 5.0), Rate(30.0, 25.0)),
        (HierRate(5.0, 4.0, 6.0, 6.0), HierRate(20.0, 20.0, 30.0, 30.0)),
        (Shape(1.0, 1.0), Shape(4.0, 3.0)), (HierShape(1.0, 0.5), HierShape(2.0, 2.0)),
        (BGAR(3.0, 0.3, 0.4), BGAR(8.0, 0.8, 0.6)), (ARG(3.0, 0.3, 0.4), ARG(8.0, 0.8, 0.6)),
    ],
    ids=lambda chain: chain.name,
)  # fmt: skip
def test_quadrature_agrees_with_monte_carlo(one, other):
    """The difference of (LE1) between two chains; a tolerance of five standard errors and 2 %."""
    posterior, dense = random_posterior()
    N, K = posterior.activations.shape
    moves = moves_of(posterior, weighted=False)
    found = expected_log_density(one, moves) - expected_log_density(other, moves)
    rng = np.random.default_rng(2)
    mean = np.log(posterior.activations).ravel() - 0.5 * np.diagonal(dense)
    n = 400 if one.name == "bgar" else 10_000
    h = np.exp(rng.multivariate_normal(mean, dense, size=n)).reshape(-1, N, K)
    drawn = [
        chain.log_density(h[:, 1:], h[:, :-1]).sum(axis=1)
        + (chain.stationary().logpdf(h[:, 0]) if chain.own_first else 0.0)
        for chain in (one, other)
    ]
    difference = drawn[0] - drawn[1]
    error = difference.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(found - difference.mean(axis=0)) < 5.0 * error + 0.02 * np.abs(found))


def test_a_stiff_chain_keeps_the_variance_of_its_changes():
    """Where the level is unknown and changes are tiny, expectations have the tiny changes."""
    n, change = 5, 1e-4
    P = np.diag(np.full(n, 2.0)) - np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1)
    P[0, 0] = P[-1, -1] = 1.0
    P = P / change + 0.02 * np.eye(n) / n
    band = np.array([np.r_[0.0, np.diagonal(P, 1)], np.diagonal(P)])
    assert factor_upper(band)
    moves = moves_of(Posterior(np.ones((n, 1)), band, band_of_inverse(band, 1)), weighted=False)
    variance = np.sum(moves.weights * np.log(moves.after / moves.before) ** 2, axis=0)
    np.testing.assert_allclose(variance, change, rtol=1e-3)


def test_parabolas_find_maxima():
    """Of functions that are far from parabolas at the start."""
    targets = np.array([0.3, -3.0, 2.0])
    found = climb(lambda x: -np.logaddexp(x - targets, 2.0 * (targets - x)), np.zeros(3))
    np.testing.assert_allclose(found - targets, np.log(2.0) / 3.0, atol=0.05)


ERAS = np.concatenate([np.kron(np.eye(3), np.ones((20, 1)))] * 2, axis=0)


def hand_over(seed=0):
    """Components that take turns and are next to nothing else, moving little in their eras."""
    rng = np.random.default_rng(seed)
    H = ERAS * 1000.0 * np.exp(0.1 * rng.standard_normal(ERAS.shape)) + 0.05
    return rng.poisson(H @ np.kron(np.eye(3), [[0.5, 0.3, 0.2]])).astype(float)


def test_hand_overs_do_not_decide_how_much_components_move(monkeypatch):
    """Within an era α is 100; all steps alike would make it less than one."""

    def alphas():
        return TemporalNMF(3, chain=Rate("learn"), random_state=0).fit(hand_over()).chain_.alpha

    weighted = alphas()
    monkeypatch.setattr(learning, "moves_of", lambda p, weighted: moves_of(p, weighted=False))
    assert np.all(weighted > 5.0 * alphas()), weighted
    assert np.all((weighted > 5.0) & (weighted < 500.0)), weighted


@pytest.mark.each_value
@pytest.mark.parametrize(
    "chain",
    [
        GaP("learn", "learn"), Rate("learn", "learn"), HierRate("learn", "learn", "learn"),
        Shape("learn", "learn"), HierShape("learn", "learn"),
        pytest.param(BGAR("learn", "learn", "learn"), marks=pytest.mark.long),
        ARG("learn", "learn", "learn"),
    ],
    ids=lambda chain: chain.name,
)  # fmt: skip
@pytest.mark.parametrize("case", ["short", "empty component", "constant", "bursts"])
def test_learned_values_are_finite_and_bounded(chain, case):
    """With almost no data, components of nothing, no movement, and nothing but movement."""
    rng = np.random.default_rng(0)
    X = {
        "short": rng.poisson(4.0, size=(3, 4)),
        "empty component": np.outer(np.arange(1, 13), [5, 2, 1]),
        "constant": np.full((20, 3), 500),
        "bursts": np.kron(rng.random((12, 3)) < 0.3, [[1000.0]]) + rng.poisson(0.2, (12, 3)),
    }[case].astype(float)
    model = TemporalNMF(3, chain=chain, random_state=0).fit(X)
    priors = Coordinates(chain, X.sum(axis=1).mean(), 3).priors
    assert list(model.learned_) == list(priors)
    for name, rows in model.learned_.items():
        assert np.all(np.isfinite(rows) & (rows > 0.0)), (name, rows)
        assert np.all((rows[:, 1] <= rows[:, 0]) & (rows[:, 0] <= rows[:, 2]))
    ahead = model.forecast(5, n_samples=50)
    assert np.all(np.isfinite(ahead.values))


def test_components_are_shrunk_towards_each_other():
    """A component of a few counts has the values of the others, and a wide interval."""
    X = simulated(Rate(20.0))
    X = np.column_stack([X, np.eye(len(X))[7] + np.eye(len(X))[70]])
    X[np.isnan(X[:, 0])] = np.nan
    start = np.kron(np.eye(3), [[0.5, 0.3, 0.2]])[:, :7]
    start /= start.sum(axis=1, keepdims=True)
    level = np.nan_to_num(X, nan=1.0) @ start.T + 0.01
    model = TemporalNMF(3, chain=Rate("learn"), init=(start + 1e-6, level), smoothing=0.0).fit(X)
    alpha = model.learned_["alpha"]
    widths = np.log(alpha[:, 2] / alpha[:, 1])
    assert widths[2] > 2.0 * widths[:2].max()
    assert alpha[:2, 0].min() / 4.0 < alpha[2, 0] < 4.0 * alpha[:2, 0].max()


def test_without_transitions_components_go_to_their_centre_and_never_beyond_bounds():
    coordinates = Coordinates(Rate("learn"), 10.0, 3)
    learner = learning.ChainLearner(coordinates, 1.0, lambda: None, lambda problem, H: H)
    moves = moves_of(random_posterior()[0], weighted=True)
    nothing = moves._replace(weights=np.zeros_like(moves.weights))
    x, prior = np.array([4.0, 6.0, 7.0]), coordinates.priors["alpha"]
    found = climb(learner._value_in("alpha", nothing, {"alpha": x}), x)
    np.testing.assert_allclose(found, learning._centre(prior, x), atol=1e-3)
    far = learner._bounded("alpha", prior.centre + np.array([-1e3, 0.0, 1e3]))
    np.testing.assert_allclose(far - prior.centre, [-10.0, 0.0, 10.0])


def test_the_centre_of_components_balances_them_and_its_prior():
    normal = Prior(1.0, 2.0)
    x = np.array([3.0, 4.0, 8.0])
    expected = (x.sum() / 1.0 + 1.0 / 4.0) / (3.0 + 1.0 / 4.0)
    assert learning._centre(normal, x) == pytest.approx(expected, abs=1e-5)
    assert abs(learning._centre(Prior(2.0, None), np.zeros(3))) < 1e-4


def test_data_on_disk_learn_the_same(tmp_path):
    X = simulated(Rate(20.0))
    X[np.isnan(X).any(axis=1)] = 0.0
    names = [f"f{i}" for i in range(X.shape[1])]
    write_shards(
        tmp_path / "data", X, names=names, timeline=timeline_of(np.arange(len(X))), n_shards=2
    )
    given = {"chain": Rate("learn"), "likelihood": "poisson", "random_state": 0, "tol": 1e-8}
    there = TemporalNMF(2, **given).fit(tmp_path / "data")
    here = TemporalNMF(2, **given).fit(X)
    np.testing.assert_allclose(there.learned_["alpha"], here.learned_["alpha"], rtol=0.01)


def test_a_fit_that_learns_resumes_with_the_same_bits(tmp_path):
    X = simulated(Rate(20.0), n_steps=40)
    given = {"chain": Rate("learn"), "random_state": 0, "max_iter": 60}
    whole = TemporalNMF(2, **given).fit(X)
    kept = {**given, "checkpoint": tmp_path / "state.npz"}
    with pytest.raises(StopError):
        TemporalNMF(2, **kept, callback=StopAt(4)).fit(X)
    again = TemporalNMF(2, **kept).fit(X)
    np.testing.assert_array_equal(again.learned_["alpha"], whole.learned_["alpha"])
    np.testing.assert_array_equal(again.activations_, whole.activations_)


def test_what_was_learned_is_kept_in_a_file(tmp_path):
    model = TemporalNMF(2, chain=Shape("learn"), random_state=0).fit(simulated(Shape(0.1)))
    again = load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.learned_["alpha"], model.learned_["alpha"])
    assert TemporalNMF(2, random_state=0).fit(np.ones((5, 3))).learned_ == {}


def test_learning_is_refused_on_the_linear_scale():
    with pytest.raises(ValueError, match=r"map_scale='linear'.*learned on the log scale.*'log'"):
        TemporalNMF(2, chain=Rate("learn"), map_scale="linear").fit(np.ones((5, 3)))


def test_a_callback_that_stops_the_fit_leaves_components_as_they_are():
    """Hyper-parameters are learned at the components of the last iteration."""
    X, seen = simulated(Rate(20.0)), []

    def stop(progress):
        seen.append(progress.components.copy())
        return len(seen) == 4

    model = TemporalNMF(2, chain=Rate("learn"), random_state=0, callback=stop).fit(X)
    assert model.learned_["alpha"].shape == (2, 3)
    np.testing.assert_allclose(
        np.sort(model.components_, axis=0), np.sort(seen[-1], axis=0), rtol=1e-12
    )
