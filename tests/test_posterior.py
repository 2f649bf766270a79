"""How sure activations are: Laplace on the log scale, against slow and obvious matrices."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse, stats

import cases
from temporalnmf import TemporalNMF
from temporalnmf.chains import GaP, Rate
from temporalnmf.data.series import Series
from temporalnmf.inference import laplace as module
from temporalnmf.inference.unit import unit_of
from temporalnmf.likelihoods import Exponential, Poisson

K, F, N = 3, 9, 7
LIKELIHOODS = cases.likelihoods()


def laplace(series, W, H, chain, likelihood):
    """As a fitted model does it."""
    unit = unit_of(float(H.max()), likelihood)
    part = partial(module.data_part, series.in_unit(unit), W, likelihood)
    return module.laplace(part, H / unit, chain.in_unit(unit)).in_unit(unit)


def problem(seed=0, dispersion=0.0, whole=False):
    """Components, activations, and data near their rates, with a lost step and lost entries."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.ones(F), size=K).T
    H = rng.gamma(20.0, 2.0, size=(K, N))
    exposure = rng.uniform(0.5, 2.0, size=N)
    X = exposure[:, None] * (W @ H).T * np.exp(dispersion * rng.standard_normal((N, F)))
    if whole:
        X = np.rint(X)
    weights = np.ones((N, F))
    weights[3] = 0.0
    weights[5, :4] = 0.0
    weights[1, 2] = 0.5
    return Series(X, weights, exposure), W, H


def objective(series, W, chain, likelihood, u):
    """−log p(V | WH) − log p(H) on the log scale, entry by entry."""
    H = np.exp(u.reshape(N, K).T)
    lam = series.exposure[:, None] * (W @ H).T
    data = -np.sum(series.weights * likelihood.log_density(series.X, lam))
    return data + chain.value(H, chain.auxiliary(H, "log"), "log")


def hessian(function, u, step=2e-3):
    n, eye = len(u), step * np.eye(len(u))
    return np.array(
        [
            [
                function(u + eye[i] + eye[j])
                - function(u + eye[i] - eye[j])
                - function(u - eye[i] + eye[j])
                + function(u - eye[i] - eye[j])
                for j in range(n)
            ]
            for i in range(n)
        ]
    ) / (4.0 * step**2)


def precision_of(posterior):
    U = np.zeros((N * K, N * K))
    for j in range(N * K):
        for i in range(max(0, j - K), j + 1):
            U[i, j] = posterior.factor[K + i - j, j]
    return U.T @ U


EXACT = [c for c in cases.chains("log") if c.name in ("gap", "rate", "hier_rate")]


@pytest.mark.each_value
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda x: x.name)
@pytest.mark.parametrize("chain", EXACT, ids=cases.named)
def test_precision_is_the_hessian_of_the_objective(chain, likelihood):
    """Where no diagonal is raised: by differences of the objective itself."""
    series, W, H = problem(dispersion=0.02, whole=likelihood.whole)
    posterior = laplace(series, W, H, chain, likelihood)
    u = np.log(H.T).ravel()
    expected = hessian(lambda x: objective(series, W, chain, likelihood, x), u)
    found = precision_of(posterior)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-4 * abs(expected).max())
    # Only what couples: one step, or one component of neighbouring steps.
    for i, j in np.argwhere(abs(expected) > 1e-3 * abs(expected).max()):
        assert i // K == j // K or (abs(i - j) == K)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda x: x.name)
@pytest.mark.parametrize("chain", cases.chains("log"), ids=cases.named)
def test_covariance_is_the_inverse_of_the_precision(chain, likelihood):
    series, W, H = problem(1, dispersion=0.3, whole=likelihood.whole)
    posterior = laplace(series, W, H, chain, likelihood)
    inverse = np.linalg.inv(precision_of(posterior))
    blocks = inverse.reshape(N, K, N, K)[np.arange(N), :, np.arange(N)]
    np.testing.assert_allclose(posterior.covariance, blocks, rtol=1e-9, atol=1e-12)
    last = posterior.last
    np.testing.assert_array_equal(last.covariance[0], posterior.covariance[-1])
    corner = np.array([[last.factor[K + i - j, j] if i <= j else 0.0 for j in range(K)]
                       for i in range(K)])  # fmt: skip
    np.testing.assert_allclose(np.linalg.inv(corner.T @ corner), last.covariance[0], rtol=1e-9)


def test_sparse_data_have_the_posterior_of_dense_ones():
    series, W, H = problem(2, dispersion=0.4)
    counts = np.round(series.X)
    thin = Series(sparse.csr_array(counts), series.weights, series.exposure)
    dense = Series(counts, series.weights, series.exposure)
    for one, other in zip(
        *(vars(laplace(s, W, H, Rate(9.0, 9.0), Poisson())).values() for s in (thin, dense)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_one_component_with_a_gamma_prior_is_exact():
    """Gamma prior and Poisson counts: the posterior is Gamma(α + Σv, β + e), draws and all."""
    alpha, beta, exposure = 2.5, 0.3, 1.7
    v = np.array([[3.0, 1.0, 4.0]])
    W = np.array([[0.2], [0.3], [0.5]])
    law = stats.gamma(alpha + v.sum(), scale=1.0 / (beta + exposure))
    series = Series(v, np.ones((1, 1)), np.array([exposure]))
    posterior = laplace(series, W, np.array([[law.mean()]]), GaP(alpha, beta), Poisson())
    assert posterior.covariance[0, 0, 0] == pytest.approx(1.0 / (alpha + v.sum()), rel=1e-12)
    draws = posterior.draw(4000, np.random.default_rng(0)).ravel()
    # False alarm: one seed in a thousand.
    assert stats.kstest(draws, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("chain", cases.chains("log"), ids=cases.named)
def test_draws_have_the_mode_as_their_mean_and_the_correlation_asked_for(chain):
    series, W, H = problem(3, dispersion=0.2)
    posterior = laplace(series, W, H, chain, Poisson())
    n = 8_000
    draws = posterior.draw(n, np.random.default_rng(4))
    variances = np.diagonal(posterior.covariance, axis1=1, axis2=2)
    # Five standard errors of a mean of Gamma variables, 21 of them: false alarm below 2e-5.
    error = 5.0 * np.sqrt(variances / n)
    assert (abs(draws.mean(axis=0) / posterior.activations - 1.0) < error).all()
    expected = posterior.covariance[0] / np.sqrt(np.outer(variances[0], variances[0]))
    ranks = stats.spearmanr(draws[:, 0]).statistic
    # Spearman's of a Gaussian dependence r is 6/π asin(r/2), standard error below 1/√n.
    np.testing.assert_allclose(ranks, 6 / np.pi * np.arcsin(expected / 2), atol=5.0 / np.sqrt(n))


def test_neighbouring_steps_are_drawn_with_their_correlation():
    """A stiff chain with hardly any data: steps move together, and less so the farther apart."""
    series, W, H = problem(4, dispersion=0.1)
    posterior = laplace(series, W, H, Rate(400.0, 400.0), Poisson())
    inverse = np.linalg.inv(precision_of(posterior))
    deviations = np.sqrt(np.diag(inverse))
    expected = (inverse / np.outer(deviations, deviations))[0::K, 0::K]
    n = 20_000
    draws = posterior.draw(n, np.random.default_rng(5))[:, :, 0]
    ranks = stats.spearmanr(draws).statistic
    assert expected[0, 1] > 0.3
    np.testing.assert_allclose(ranks, 6 / np.pi * np.arcsin(expected / 2), atol=5.0 / np.sqrt(n))


def test_a_point_that_is_no_mode_still_has_a_posterior():
    """Far from the mode the Hessian is indefinite: the data's expected part takes its place."""
    series, W, H = problem(5)
    far = H * np.exp(3.0 * np.random.default_rng(6).standard_normal(H.shape))
    for likelihood in LIKELIHOODS:
        series, _, _ = problem(5, whole=likelihood.whole)
        found = precision_of(laplace(series, W, far, Rate(5.0, 5.0), likelihood))
        assert np.linalg.eigvalsh(found).min() > 0.0
    indefinite = hessian(
        lambda x: objective(series, W, Rate(5.0, 5.0), Exponential(), x), np.log(far.T).ravel()
    )
    assert np.linalg.eigvalsh(indefinite).min() < 0.0


def test_bands_cover_the_truth_as_often_as_they_say():
    """Activations drawn from the chain lie in their 80 % bands about as often as they say."""
    rng = np.random.default_rng(7)
    inside, total = 0, 0
    W = rng.dirichlet(np.full(40, 0.3), size=2)
    for seed in range(12):
        H = Rate(50.0, 50.0).sample(2, 30, seed, np.array([80.0, 120.0])).T
        X = rng.poisson(H @ W).astype(float)
        model = TemporalNMF(
            2, chain=Rate(50.0, 50.0), init=(np.maximum(W, 1e-9), H), smoothing=0.0, max_iter=1
        )
        with pytest.warns(UserWarning, match="not converge"):
            model.fit(X)
        model.components_ = W
        bands = model.set_params(max_iter=1000).smooth(X)
        low, high = bands.interval(0.8, of="components")
        inside += int(((low <= H) & (high >= H)).sum())
        total += H.size
    # 720 dependent values; about 200 independent ones give a standard error of 0.03, times four.
    assert abs(inside / total - 0.8) < 0.12
