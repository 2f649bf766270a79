"""Counts that clump: accuracy of the sums, limits, learning of the dispersion, what is refused."""

import warnings

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import gammaln

from temporalnmf import TemporalNMF, load
from temporalnmf.kernels.clumps import (
    curvature,
    few_inverse_sum,
    few_log_rising,
    inverse_sum,
    log_rising,
)
from temporalnmf.likelihoods import NegativeBinomial, Poisson
from temporalnmf.solvers import Checkpoint


@pytest.mark.parametrize("v", [1.0, 2.0, 7.0, 8.0, 9.0, 14.0, 15.0, 100.0, 123_456.0])
def test_sums_over_the_counts_are_exact_to_rounding(v):
    """Beside 60 digits, for rates and dispersions over twelve decades."""
    rng = np.random.default_rng(int(v))
    with mp.workdps(60):
        for _ in range(60):
            d, lam = 10.0 ** rng.uniform(-8.0, 4.0), 10.0 ** rng.uniform(-6.0, 6.0)
            D, L, V = mp.mpf(d), mp.mpf(lam), mp.mpf(v)
            x = L / D
            expected = mp.digamma(x + V) - mp.digamma(x)
            assert abs(few_inverse_sum(v, lam / d) - expected) < 2e-14 * expected
            assert abs(inverse_sum(v, lam / d) - expected) < 2e-14 * expected
            expected = V * mp.log(D) + mp.loggamma(x + V) - mp.loggamma(x)
            for sum_of in (log_rising, few_log_rising):
                assert abs(sum_of(v, lam, d) - expected) < 3e-14 * (abs(expected) + V)
            expected = (mp.polygamma(1, x) - mp.polygamma(1, x + V)) / D**2
            assert abs(curvature(v, lam, d) - expected) < 4e-15 * expected


def test_the_density_is_that_of_scipy():
    v, lam = np.meshgrid(np.arange(60.0), [0.01, 0.7, 5.0, 40.0])
    for d in (0.05, 1.0, 8.0):
        expected = stats.nbinom.logpmf(v, lam / d, 1.0 / (1.0 + d))
        np.testing.assert_allclose(
            NegativeBinomial(d).log_density(v, lam), expected, rtol=1e-10, atol=1e-11
        )


def test_without_dispersion_it_is_poisson():
    """The difference is of the order of d."""
    v, lam = np.meshgrid(np.arange(60.0), [0.01, 0.7, 5.0, 40.0])
    near, limit, weight = NegativeBinomial(1e-8), Poisson(), np.ones_like(v)
    np.testing.assert_allclose(near.log_density(v, lam), limit.log_density(v, lam), atol=2e-3)
    np.testing.assert_allclose(near.slope(v, weight, lam), limit.slope(v, weight, lam), atol=2e-1)
    ordinary = lam >= 0.7
    for method in ("slope", "curvature"):
        found, expected = (getattr(x, method)(v, weight, lam) for x in (near, limit))
        np.testing.assert_allclose(found[ordinary], expected[ordinary], rtol=1e-5, atol=1e-5)


def test_the_saturated_value_is_the_lowest():
    law, v = NegativeBinomial(2.5), np.array([0.0, 1.0, 3.0, 40.0, 40.0])
    weight = np.array([1.0, 0.5, 1.0, 2.0, 1.0])
    lowest = 0.0
    for count, m in zip(v, weight, strict=True):
        rates = np.geomspace(1e-6, 1e3, 200_001)
        at = -law.log_density(np.full_like(rates, count), rates)
        lowest += m * at.min()
    lowest -= float(weight @ gammaln(v + 1.0))
    assert law.saturated(v, weight) == pytest.approx(lowest, rel=1e-6, abs=1e-4)
    assert law.saturated(v, weight) <= lowest + 1e-9


def test_samples_have_the_mean_and_the_variance():
    """False alarm 1 in 10,000 for each of the six numbers."""
    rng, n = np.random.default_rng(0), 200_000
    for lam, d in ((0.3, 2.0), (6.0, 0.5), (50.0, 9.0)):
        drawn = NegativeBinomial(d).sample(np.full(n, lam), rng)
        variance = lam * (1.0 + d)
        assert abs(drawn.mean() - lam) < 3.9 * np.sqrt(variance / n)
        fourth = np.mean((drawn - drawn.mean()) ** 4)
        assert abs(drawn.var() - variance) < 3.9 * np.sqrt((fourth - variance**2) / n)


def test_parts_of_a_sum_have_the_law_of_entries():
    """Sums of entries, split again, are such entries: means and variances. False alarm 1e-4."""
    rng, n, law = np.random.default_rng(1), 100_000, NegativeBinomial(3.0)
    rates = np.tile([0.5, 2.0, 7.5], (n, 1))
    totals = law.sample(rates.sum(axis=1), rng)
    parts = law.split(totals, rates, rng)
    np.testing.assert_array_equal(parts.sum(axis=1), totals)
    for part, lam in zip(parts.T, rates[0], strict=True):
        variance = 4.0 * lam
        assert abs(part.mean() - lam) < 4.2 * np.sqrt(variance / n)
        fourth = np.mean((part - part.mean()) ** 4)
        assert abs(part.var() - variance) < 4.2 * np.sqrt((fourth - variance**2) / n)
    assert abs(np.corrcoef(parts.T)[0, 2]) < 4.2 / np.sqrt(n)


def simulated(seed, d, n_steps=40, n_features=30, n_components=2):
    """Counts of a smooth model, with dispersion d or, for d = 0, without."""
    rng = np.random.default_rng(seed)
    time = np.arange(n_steps)[:, None]
    H = 120.0 * np.exp(0.5 * np.sin(time / 9.0 + np.arange(n_components)))
    rates = H @ rng.dirichlet(np.full(n_features, 0.6), size=n_components)
    law = NegativeBinomial(d) if d else Poisson()
    return law.sample(rates, rng)


def fitted(X, likelihood="negative_binomial", **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TemporalNMF(2, likelihood=likelihood, random_state=0, **given).fit(X)


@pytest.mark.parametrize("solver", ["mm", "accelerated"])
def test_learning_never_raises_the_objective(solver):
    model = fitted(simulated(0, 4.0), solver=solver, tol=0.0, max_iter=200)
    history = np.array(model.history_)
    assert np.all(np.diff(history) <= 1e-10 * np.abs(history[1:]))
    assert model.likelihood_.dispersion == pytest.approx(4.0, rel=0.3)


@pytest.mark.parametrize("d", [0.5, 4.0])
def test_the_dispersion_is_recovered(d):
    """Twelve data sets: the fit takes at most the share of its 140 factors in 1,200 entries from
    the variance 1 + d, and the mean of d is not more than 5 % too large; spread within 15 %."""
    found = [fitted(simulated(s, d)).likelihood_.dispersion for s in range(12)]
    assert (1.0 + d) * (1.0 - 140 / 1200) < 1.0 + np.mean(found) < 1.0 + 1.05 * d
    assert np.std(found) < 0.15 * max(d, 1.0)


def test_poisson_counts_have_next_to_no_dispersion():
    """And the fit is that of the Poisson likelihood."""
    X = simulated(3, 0.0)
    model, plain = fitted(X), fitted(X, "poisson")
    assert model.likelihood_.dispersion < 0.05
    ours, theirs = (m.activations_ @ m.components_ for m in (model, plain))
    np.testing.assert_allclose(ours, theirs, rtol=0.05, atol=0.05)


def test_both_solvers_and_both_storages_learn_the_same():
    X = simulated(5, 2.0)
    models = [
        fitted(data, solver=solver, tol=1e-9, max_iter=3000)
        for data in (X, sparse.csr_array(X))
        for solver in ("mm", "accelerated")
    ]
    found = [model.likelihood_.dispersion for model in models]
    np.testing.assert_allclose(found, found[0], rtol=3e-3)
    np.testing.assert_allclose([m.objective_ for m in models], models[0].objective_, rtol=1e-6)
    errors = [model.reconstruction_err_ for model in models]
    np.testing.assert_allclose(errors, errors[0], rtol=1e-3)


def test_a_fit_in_blocks_learns_what_one_in_memory_does():
    import dask.array as da

    X = simulated(6, 2.0)
    given = {"init": "random", "max_iter": 40, "tol": 0.0}
    here, there = fitted(X, **given), fitted(da.from_array(X, chunks=(-1, 7)), **given)
    assert there.likelihood_.dispersion == pytest.approx(here.likelihood_.dispersion, rel=1e-6)
    assert there.reconstruction_err_ == pytest.approx(here.reconstruction_err_, rel=1e-6)


def test_what_was_learned_is_saved_and_used(tmp_path):
    X = simulated(7, 3.0)
    model = fitted(X)
    again = load(model.save(tmp_path / "model.npz"))
    assert again.likelihood_.get_params() == model.likelihood_.get_params()
    assert again.likelihood == "negative_binomial"
    ours, theirs = (m.forecast(3).samples(of="totals") for m in (model, again))
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_a_stopped_fit_resumes_with_what_it_has_learned(tmp_path):
    X, file = simulated(8, 3.0), tmp_path / "fit.ckpt"
    given = {"solver": "mm", "max_iter": 60, "tol": 0.0}
    whole = fitted(X, **given)

    def stop(progress):
        if progress.iteration >= 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(X, **given, checkpoint=Checkpoint(file, every=0.0), callback=stop)
    resumed = fitted(X, **given, checkpoint=Checkpoint(file, every=0.0))
    assert resumed.likelihood_.dispersion == whole.likelihood_.dispersion
    np.testing.assert_array_equal(resumed.components_, whole.components_)


def test_intervals_are_wider_where_counts_clump():
    """Entries and totals; their means stay."""
    X = simulated(9, 6.0)
    own = {"intervals": "model"}
    clumped, plain = fitted(X, **own).forecast(1), fitted(X, "poisson", **own).forecast(1)
    low, high = clumped.interval(0.9, of="features")
    tight_low, tight_high = plain.interval(0.9, of="features")
    assert (high - low).sum() > 1.5 * (tight_high - tight_low).sum()
    assert clumped.values.sum() == pytest.approx(plain.values.sum(), rel=0.1)
