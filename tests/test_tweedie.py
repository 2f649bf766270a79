"""Amounts with exact zeros: density, limits, learning of the dispersion, what is refused."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.integrate import quad

import oracle
from temporalnmf import TemporalNMF, load
from temporalnmf.inference.config import error_of
from temporalnmf.kernels.powers import exp, power
from temporalnmf.likelihoods import Gamma, Poisson, Tweedie
from temporalnmf.metrics import is_error, kl_error
from temporalnmf.observations import observe

LAWS = [Tweedie(0.5, 0.4), Tweedie(0.2, 1.7), Tweedie(0.8, 0.9), Tweedie(0.4, 6.0)]


def named(law):
    return f"{law.beta}-{law.dispersion}"


def simulated(seed, law, n_steps=60, n_features=20, level=40.0):
    rng = np.random.default_rng(seed)
    time = np.linspace(0.0, 1.0, n_steps)[:, None]
    H = level * np.hstack([1.5 + np.sin(6.0 * time), 1.0 + time])
    return law.sample(H @ rng.dirichlet(np.ones(n_features), size=2) + 1e-3, rng)


def fitted(X, likelihood="tweedie", **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {"random_state": 0, "smoothing": 0.0, **given}
        return TemporalNMF(2, likelihood=likelihood, **given).fit(X)


def test_the_exponential_of_the_kernels_is_exact_to_rounding():
    x = np.random.default_rng(0).uniform(-700.0, 700.0, 5000)
    np.testing.assert_allclose([exp(a) for a in x], np.exp(x), rtol=5e-16)
    assert exp(0.0) == 1.0
    assert exp(-1e300) > 0.0
    assert np.isfinite(exp(1e300))
    assert power(1e-30, -0.9) == pytest.approx(1e27, rel=2e-14)


@pytest.mark.parametrize("law", LAWS, ids=named)
def test_the_density_is_a_poisson_number_of_gamma_variables(law):
    v, lam = np.meshgrid([0.0, 1e-3, 0.4, 2.0, 50.0], [0.01, 0.7, 5.0, 80.0])
    expected = oracle.tweedie_log_density(v, lam, law.beta, law.dispersion)
    np.testing.assert_allclose(law.log_density(v, lam), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("beta", "dispersion"), [(0.01, 0.05), (0.5, 1e-4), (0.7, 2.0), (0.3, 9.0)]
)
def test_the_density_integrates_to_one_with_its_mean_and_its_variance(beta, dispersion):
    """By quadrature in log v, also where the series has 100,000 terms."""
    law, mean = Tweedie(beta, dispersion), 3.0

    def moment(power):
        def integrand(u):
            v = mean * np.exp(np.array([u]))
            return v[0] ** (1 + power) * np.exp(law.log_density(v, np.array([mean])))[0]

        ends = max(-60.0 * dispersion**0.5, -150.0), min(60.0 * dispersion**0.5, 6.0)
        marks = np.linspace(*ends, 40)
        return sum(quad(integrand, a, b, epsabs=1e-13)[0] for a, b in pairwise(marks))

    zero = np.exp(law.log_density(np.zeros(1), np.array([mean])))[0]
    assert zero + moment(0) == pytest.approx(1.0, rel=1e-8)
    assert moment(1) == pytest.approx(mean, rel=1e-8)
    variance = dispersion * mean ** (2.0 - beta)
    assert moment(2) - mean**2 == pytest.approx(variance, rel=1e-7)


@pytest.mark.parametrize("law", LAWS, ids=named)
def test_samples_have_the_mean_the_variance_and_the_share_of_zeros(law):
    """False alarm 1 in 10,000 for each number."""
    rng, n = np.random.default_rng(0), 200_000
    for lam in (0.3, 6.0, 200.0):
        drawn = law.sample(np.full(n, lam), rng)
        variance = law.dispersion * lam ** (2.0 - law.beta)
        assert abs(drawn.mean() - lam) < 3.9 * np.sqrt(variance / n)
        fourth = np.mean((drawn - drawn.mean()) ** 4)
        assert abs(drawn.var() - variance) < 3.9 * np.sqrt((fourth - variance**2) / n)
        zero = float(np.exp(law.log_density(np.zeros(1), np.array([lam])))[0])
        assert abs(np.mean(drawn == 0.0) - zero) < 3.9 * np.sqrt(zero / n) + 1e-9


def test_samples_have_the_density():
    law, lam = Tweedie(0.6, 1.3), 4.0
    drawn = law.sample(np.full(4000, lam), np.random.default_rng(1))
    grid = np.geomspace(1e-12, 60.0, 20_001)
    density = np.exp(law.log_density(grid, np.full_like(grid, lam)))
    steps = np.diff(grid) * (density[1:] + density[:-1]) / 2.0
    below = np.interp(np.sort(drawn[drawn > 0.0]), grid[1:], np.cumsum(steps) / steps.sum())
    # False alarm: one seed in a thousand.
    assert stats.kstest(below, "uniform").pvalue > 1e-3


def test_near_zero_it_is_gamma():
    """The difference is of the order of β."""
    v, lam = np.meshgrid([1e-3, 0.4, 2.0, 50.0], [0.01, 0.7, 5.0])
    weight = np.ones_like(v)
    for beta, tolerance in ((1e-4, 0.05), (1e-7, 5e-5)):
        near, limit = Tweedie(beta, 0.4), Gamma(2.5)
        found, expected = near.log_density(v, lam), limit.log_density(v, lam)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        for method in ("slope", "curvature"):
            found, expected = (getattr(x, method)(v, weight, lam) for x in (near, limit))
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        assert near.saturated(v, weight) == pytest.approx(
            limit.saturated(v, weight), abs=100.0 * tolerance
        )
        assert near.error(v, lam) == pytest.approx(is_error(v, lam), rel=tolerance)


def test_a_fit_with_beta_near_zero_is_one_of_gamma():
    X = simulated(0, Gamma(2.5)) + 1e-3
    given = {"solver": "mm", "max_iter": 40, "tol": 0.0}
    near, limit = fitted(X, Tweedie(1e-9, 0.4), **given), fitted(X, Gamma(2.5), **given)
    np.testing.assert_allclose(near.components_, limit.components_, rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(near.history_, limit.history_, rtol=1e-5)


def test_near_one_it_is_poisson_in_units_of_the_dispersion():
    """Mass near multiples of φ, gradients and divergence; the density has no limit."""
    near, limit, phi = Tweedie(1.0 - 1e-6, 0.5), Poisson(), 0.5
    for j in range(1, 5):
        grid = np.linspace((j - 0.02) * phi, (j + 0.02) * phi, 4001)
        density = np.exp(near.log_density(grid, np.full_like(grid, 1.3)))
        mass = np.sum((density[1:] + density[:-1]) / 2.0) * (grid[1] - grid[0])
        assert mass == pytest.approx(stats.poisson.pmf(j, 1.3 / phi), rel=1e-4)
    v, lam = np.meshgrid([0.0, 1e-3, 0.4, 2.0, 50.0], [0.01, 0.7, 5.0])
    weight = np.ones_like(v)
    for method in ("slope", "curvature"):
        found, expected = (getattr(x, method)(v, weight, lam) for x in (near, limit))
        np.testing.assert_allclose(phi * found, expected, rtol=1e-4, atol=2e-4)
    assert near.error(v, lam) == pytest.approx(kl_error(v, lam), rel=1e-4)


def test_no_digits_of_the_divergence_are_lost_at_either_end():
    v, lam = np.meshgrid([1e-3, 0.4, 2.0, 50.0], [0.01, 0.7, 5.0])
    assert Tweedie(1e-12).error(v, lam) == pytest.approx(is_error(v, lam), rel=1e-9)
    assert Tweedie(1.0 - 1e-12).error(v, lam) == pytest.approx(kl_error(v, lam), rel=1e-9)


def test_near_one_the_gradient_of_a_fit_is_that_of_poisson():
    X, rng = simulated(1, Poisson()), np.random.default_rng(2)
    W, H = rng.dirichlet(np.ones(20), size=2).T, rng.gamma(2.0, 20.0, size=(2, 60))
    exposure, weights = rng.uniform(0.5, 2.0, size=60), rng.uniform(0.0, 2.0, size=X.shape)
    for_law = [
        observe(X, weights, exposure, law).sums(W, H, "wh")
        for law in (Tweedie(1.0 - 1e-8, 0.5), Poisson())
    ]
    for near, limit in zip(*for_law, strict=True):
        np.testing.assert_allclose(0.5 * near.A, limit.A, rtol=1e-6)
        np.testing.assert_allclose(0.5 * near.B, limit.B, rtol=1e-6)


def test_the_saturated_value_is_the_lowest():
    law, v = Tweedie(0.3, 0.8), np.array([0.0, 1.0, 3.5, 40.0])
    weight = np.array([1.0, 0.5, 1.0, 2.0])
    rates = np.geomspace(1e-30, 1e3, 400_001)[:, None]
    constants = np.log(np.where(v > 0.0, v, 1.0))
    lowest = -(constants + law.log_density(v, rates)).max(axis=0) @ weight
    assert law.saturated(v, weight) == pytest.approx(lowest, abs=1e-6)
    assert law.saturated(v, weight) <= lowest + 1e-8


def test_the_error_is_the_divergence():
    v, lam = np.array([0.0, 1.0, 5.0]), np.array([2.0, 2.0, 2.0])
    beta = 0.3
    with np.errstate(divide="ignore"):
        terms = lam**beta / beta + v * lam ** (beta - 1) / (1 - beta) - v**beta / beta / (1 - beta)
    assert Tweedie(beta, 9.0).error(v, lam) == pytest.approx(terms.sum(), rel=1e-12)
    assert error_of("tweedie")(v, v + 1e-9) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("law", LAWS[:3], ids=named)
def test_the_dispersion_is_recovered(law):
    """From 1200 entries, on average over four data sets; components take some of the noise."""
    found = [fitted(simulated(s, law), Tweedie(law.beta)).likelihood_.dispersion for s in range(4)]
    assert np.log(np.mean(found) / law.dispersion) == pytest.approx(0.0, abs=0.15)


def test_the_learned_dispersion_is_the_best_one():
    X = simulated(1, LAWS[0])
    model = fitted(X)
    rates = model.activations_ @ model.components_
    best = model.likelihood_.dispersion
    values = [Tweedie(0.5, best * f).log_density(X, rates).sum() for f in (0.98, 1.0, 1.02)]
    assert values[1] > max(values[0], values[2])


@pytest.mark.parametrize("solver", ["mm", "accelerated"])
def test_every_evaluation_with_a_learned_dispersion_descends(solver):
    history = fitted(simulated(2, LAWS[0]), solver=solver, tol=0.0, max_iter=100).history_
    assert np.all(np.diff(history) <= 1e-10 * np.abs(history[1:]))


def test_the_unit_of_the_data_is_in_the_dispersion():
    X = simulated(4, LAWS[0])
    one, other = fitted(X, tol=1e-8), fitted(X * 1024.0, tol=1e-8)
    factor = other.likelihood_.dispersion / one.likelihood_.dispersion
    assert factor == pytest.approx(1024.0**0.5, rel=1e-2)
    np.testing.assert_allclose(other.components_, one.components_, rtol=0.05, atol=1e-3)


def test_a_fit_in_blocks_learns_what_one_in_memory_does():
    import dask.array as da

    X = simulated(6, LAWS[0])
    given = {"init": "random", "max_iter": 40, "tol": 0.0}
    here, there = fitted(X, **given), fitted(da.from_array(X, chunks=(-1, 7)), **given)
    assert there.likelihood_.dispersion == pytest.approx(here.likelihood_.dispersion, rel=1e-6)
    assert there.reconstruction_err_ == pytest.approx(here.reconstruction_err_, rel=1e-6)


def test_the_methods_of_a_model_know_the_law(tmp_path):
    X = simulated(3, LAWS[0])
    X[7], X[20, 3] = np.nan, np.nan
    model = fitted(X)
    again = load(model.save(tmp_path / "model.npz"))
    assert again.likelihood_.get_params() == model.likelihood_.get_params()
    ours, theirs = (m.forecast(2, random_state=0).samples() for m in (model, again))
    np.testing.assert_array_equal(ours, theirs)
    assert np.isfinite(model.score(X))
    assert np.isfinite(model.impute(X)).all()
    low, high = model.smooth().interval(0.9)
    seen = ~np.isnan(X)
    assert np.mean(((low <= X) & (high >= X))[seen]) == pytest.approx(0.9, abs=0.06)
    assert model.reconstruction_err_ == pytest.approx(
        model.likelihood_.error(X[seen], (model.activations_ @ model.components_)[seen])
        / model.likelihood_.dispersion,
        rel=1e-9,
    )
    with pytest.raises(ValueError, match="calibrate is for counts"):
        model.calibrate(5)


def test_sparse_data_are_refused_with_a_remedy():
    X = sparse.csr_array(simulated(0, LAWS[0]))
    with pytest.raises(ValueError, match=r"sparse.*tweedie.*X\.toarray\(\).*likelihood='poisson'"):
        fitted(X)


@pytest.mark.parametrize("beta", [0.0, 1.0, 2.0, 2.5, -1.0, np.nan, True, "learn"])
def test_a_beta_without_a_law_of_this_kind_is_refused(beta):
    with pytest.raises(ValueError, match=r"Tweedie\(beta=.*Gamma.*Poisson for 1.*Gaussian for 2"):
        fitted(simulated(0, LAWS[0]), Tweedie(beta))


def test_draws_are_refused_with_a_remedy():
    with pytest.raises(ValueError, match="accelerated"):
        fitted(simulated(0, LAWS[0]), solver="gibbs", smoothing=1.0)


@pytest.mark.parametrize(
    ("unit", "words"), [(1e-15, "X is too close to zero"), (1e15, "X is too large for 'tweedie'")]
)
def test_data_far_from_one_are_refused_with_a_remedy(unit, words):
    X = unit * np.random.default_rng(0).gamma(2.0, 1.0, size=(8, 3))
    with pytest.raises(ValueError, match=rf"{words}.*in another unit"):
        TemporalNMF(2, likelihood="tweedie").fit(X)
