"""Counts with a relative spread: density, limit, learning of the size, what is refused."""

import warnings

import numpy as np
import pytest
from scipy import sparse, stats

from temporalnmf import TemporalNMF, load
from temporalnmf.chains import GaP
from temporalnmf.likelihoods import NegativeBinomial, NegativeBinomial2, Poisson
from temporalnmf.likelihoods.negative_binomial import dispersed

V, RATES = np.meshgrid(np.r_[0.0:30.0, 500.0, 1e5], [0.01, 0.7, 5.0, 40.0, 1e4])


def simulated(seed, size, n_steps=40, n_features=30):
    """Counts of a smooth model."""
    rng = np.random.default_rng(seed)
    time = np.arange(n_steps)[:, None]
    H = 240.0 * np.exp(0.5 * np.sin(time / 9.0 + np.arange(2)))
    rates = H @ rng.dirichlet(np.full(n_features, 0.6), size=2)
    law = Poisson() if np.isinf(size) else NegativeBinomial2(size)
    return law.sample(rates, rng)


def fitted(X, likelihood="negative_binomial_2", **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TemporalNMF(2, likelihood=likelihood, random_state=0, **given).fit(X)


@pytest.mark.parametrize("size", [0.05, 1.0, 30.0, 1e4])
def test_the_density_is_that_of_scipy(size):
    expected = stats.nbinom.logpmf(V, size, size / (size + RATES))
    found = NegativeBinomial2(size).log_density(V, RATES)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_with_an_infinite_size_it_is_poisson():
    """The difference is of the order of 1/r, and no digits are lost on the way."""
    v, lam = V[:4, :30], RATES[:4, :30]
    limit, weight = Poisson(), np.ones_like(v)
    for size, tolerance in ((1e8, 1e-4), (1e15, 1e-10)):
        near = NegativeBinomial2(size)
        for method in ("slope", "curvature"):
            found, expected = (getattr(x, method)(v, weight, lam) for x in (near, limit))
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        found, expected = near.log_density(v, lam), limit.log_density(v, lam)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=20.0 * tolerance)
        assert near.saturated(v, weight) == pytest.approx(
            limit.saturated(v, weight), abs=1e3 * tolerance
        )


def test_a_fit_with_a_large_size_is_one_of_poisson():
    X = simulated(0, np.inf)
    given = {"solver": "mm", "max_iter": 40, "tol": 0.0, "chain": GaP(2.0, 0.01)}
    near, limit = fitted(X, NegativeBinomial2(1e8), **given), fitted(X, "poisson", **given)
    np.testing.assert_allclose(near.components_, limit.components_, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(near.history_, limit.history_, rtol=1e-6)
    assert near.reconstruction_err_ == pytest.approx(limit.reconstruction_err_, rel=1e-4)


def test_the_saturated_value_is_the_lowest():
    law, v = NegativeBinomial2(2.5), np.array([0.0, 1.0, 3.0, 40.0, 40.0])
    weight = np.array([1.0, 0.5, 1.0, 2.0, 1.0])
    rates = np.geomspace(1e-9, 1e3, 100_001)[:, None]
    constants = stats.poisson.logpmf(v, 1.0) + 1.0  # −log v!
    lowest = (constants - law.log_density(v, rates)).min(axis=0) @ weight
    assert law.saturated(v, weight) == pytest.approx(lowest, abs=1e-6)
    assert law.saturated(v, weight) <= lowest + 1e-12


def test_the_expected_curvature_is_the_mean_of_the_curvature():
    law, v = NegativeBinomial2(1.7), np.arange(4000.0)
    for lam in (0.2, 3.0, 30.0):
        chance = np.exp(law.log_density(v, np.full_like(v, lam)))
        weight, lams = np.ones_like(v), np.full_like(v, lam)
        mean = chance @ law.curvature(v, weight, lams)
        assert law.curvature(v, weight, lams, expected=True)[0] == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("dispersion", [0.0, 2.0])
def test_samples_have_the_mean_and_the_variance(dispersion):
    """With the extra variance of calibration, too. False alarm 1 in 10,000 for each number."""
    rng, n = np.random.default_rng(0), 200_000
    for lam, size in ((0.3, 2.0), (6.0, 0.5), (50.0, 9.0)):
        drawn = dispersed(NegativeBinomial2(size), dispersion).sample(np.full(n, lam), rng)
        variance = lam * (1.0 + dispersion) + lam**2 / size
        assert abs(drawn.mean() - lam) < 3.9 * np.sqrt(variance / n)
        fourth = np.mean((drawn - drawn.mean()) ** 4)
        assert abs(drawn.var() - variance) < 3.9 * np.sqrt((fourth - variance**2) / n)


@pytest.mark.parametrize("size", [0.5, 5.0])
def test_the_size_is_recovered(size):
    """Eight data sets: bias within 12 %, spread within 15 %; the fit takes a part of the noise."""
    found = [fitted(simulated(s, size)).likelihood_.size for s in range(8)]
    assert np.mean(found) == pytest.approx(size, rel=0.12)
    assert np.std(found) < 0.15 * size


def test_poisson_counts_have_a_size_without_effect():
    """The largest size is never exceeded, and the fit is that of the Poisson likelihood."""
    X = simulated(3, np.inf)
    model, plain = fitted(X, tol=1e-8), fitted(X, "poisson", tol=1e-8)
    assert 1e4 < model.likelihood_.size <= 1e8
    ours, theirs = (m.activations_ @ m.components_ for m in (model, plain))
    np.testing.assert_allclose(ours, theirs, rtol=0.02, atol=0.1)


def test_equal_counts_end_at_a_size_without_effect():
    """They vary less than Poisson counts."""
    assert fitted(np.full((9, 4), 7.0)).likelihood_.size > 1e3


@pytest.mark.parametrize("solver", ["mm", "accelerated"])
def test_learning_never_raises_the_objective(solver):
    model = fitted(simulated(0, 2.0), solver=solver, tol=0.0, max_iter=200)
    assert np.all(np.diff(model.history_) <= 1e-10 * np.abs(model.history_[1:]))


def test_each_law_fits_its_own_counts_better():
    """By the density of entries that were held out."""
    laws = NegativeBinomial2(2.0), NegativeBinomial(8.0)
    for law, other in (laws, laws[::-1]):
        rng = np.random.default_rng(2)
        time = np.arange(60)[:, None]
        H = 400.0 * np.exp(np.sin(time / 9.0 + np.arange(2)))
        X = law.sample(H @ rng.dirichlet(np.full(20, 0.4), size=2), rng)
        hidden = rng.random(X.shape) < 0.2
        own, wrong = (fitted(np.where(hidden, np.nan, X), x.name) for x in (law, other))
        assert own.score(X, held_out=hidden) > wrong.score(X, held_out=hidden)


@pytest.mark.long  # test_gamma.py has the same for amounts
def test_intervals_of_the_model_hold():
    """30 series simulated from the model, one step ahead, 12 entries each."""
    inside, rng = [], np.random.default_rng(5)
    W = rng.dirichlet(np.ones(12), size=2)
    for _ in range(30):
        h = 300.0 * np.exp(np.cumsum(rng.normal(0.0, 0.05, size=(41, 2)), axis=0))
        X = NegativeBinomial2(4.0).sample(h @ W, rng)
        low, high = fitted(X[:40]).forecast(1, random_state=0).interval(0.9)
        inside.append(np.mean((low[0] <= X[40]) & (X[40] <= high[0])))
    # 360 nearly independent entries: standard error 0.016; components are estimated.
    assert np.mean(inside) == pytest.approx(0.9, abs=0.05)


def test_calibration_adds_to_the_spread():
    """Of counts that have both: variance (1 + d) e λ + (e λ)²/r."""
    rng = np.random.default_rng(4)
    H = 300.0 * np.exp(np.cumsum(rng.normal(0.0, 0.1, size=(40, 2)), axis=0))
    mean = H @ rng.dirichlet(np.ones(12), size=2)
    X = dispersed(NegativeBinomial2(3.0), 5.0).sample(mean, rng)
    model = fitted(X, NegativeBinomial2(3.0))
    before = np.diff(model.forecast(2).interval(0.9, of="features"), axis=0)
    model.calibrate(8, refit=False)
    after = np.diff(model.forecast(2).interval(0.9, of="features"), axis=0)
    assert after.sum() >= before.sum()


def test_a_model_comes_back_from_its_file(tmp_path):
    X = simulated(7, 3.0)
    model = fitted(X)
    again = load(model.save(tmp_path / "model.npz"))
    assert again.likelihood_.get_params() == model.likelihood_.get_params()
    ours, theirs = (m.forecast(3).samples(of="totals") for m in (model, again))
    np.testing.assert_array_equal(ours, theirs)


def test_sparse_data_are_refused_with_a_remedy(tmp_path):
    X = simulated(0, 1.0)
    message = r"sparse.*negative_binomial_2.*X\.toarray\(\).*likelihood='negative_binomial'"
    with pytest.raises(ValueError, match=message):
        TemporalNMF(2, likelihood="negative_binomial_2").fit(sparse.csr_array(X))


def test_draws_are_refused_with_a_remedy():
    model = TemporalNMF(2, likelihood="negative_binomial_2", solver="gibbs")
    with pytest.raises(ValueError, match="accelerated"):
        model.fit(simulated(0, 1.0))
