"""Counts that clump: accuracy of the sums, limits, learning of the dispersion, what is refused."""

import warnings

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import gammaln

from temporalnmf import TemporalNMF, load
from temporalnmf.kernels import clumps
from temporalnmf.kernels.clumps import (
    curvature,
    fill_inverse_sum,
    fill_log_rising,
    inverse_sum,
    log_rising,
)
from temporalnmf.kernels.logarithm import log_ratio
from temporalnmf.kernels.sparse import STORED
from temporalnmf.likelihoods import NegativeBinomial, Poisson
from temporalnmf.observations import observe
from temporalnmf.runtime.threads import Threads
from temporalnmf.solvers import Checkpoint


@pytest.mark.parametrize("v", [1.0, 2.0, 3.0, 7.0, 8.0, 9.0, 14.0, 15.0, 100.0, 123_456.0, 1e9])
def test_sums_over_the_counts_are_exact_to_rounding(v):
    """Beside 60 digits, for x and dispersions over twelve decades and more."""
    rng = np.random.default_rng(int(v))
    with mp.workdps(60):
        for _ in range(80):
            d, x = 10.0 ** rng.uniform(-8.0, 4.0), 10.0 ** rng.uniform(-12.0, 12.0)
            lam = x * d
            D, X, V = mp.mpf(d), mp.mpf(x), mp.mpf(v)
            expected = mp.digamma(X + V) - mp.digamma(X)
            assert abs(inverse_sum(v, x) - expected) < 2e-15 * expected
            X = mp.mpf(lam) / D
            expected = V * mp.log(D) + mp.loggamma(X + V) - mp.loggamma(X)
            assert abs(log_rising(v, lam, d) - expected) < 4e-15 * (abs(expected) + V)
            expected = (mp.polygamma(1, X) - mp.polygamma(1, X + V)) / D**2
            assert abs(curvature(v, lam, d) - expected) < 4e-15 * expected


def test_sums_are_the_same_in_vectorized_loops():
    """Terms are added one by one for comparison; zeros give exact zeros, huge rates no overflow."""
    rng = np.random.default_rng(0)
    v = np.append(rng.integers(0, 40, 200), rng.integers(0, 3000, 30)).astype(float)
    x = 10.0 ** rng.uniform(-12.0, 12.0, v.size)
    found, logs = np.empty((2, v.size))
    fill_inverse_sum(v, x, found)
    fill_log_rising(v, x, 1.0, logs)
    terms = [rate + np.arange(count) for count, rate in zip(v, x, strict=True)]
    np.testing.assert_allclose(found, [np.sum(1.0 / t) for t in terms], rtol=1e-13)
    expected = [np.sum(np.log(t)) for t in terms]
    np.testing.assert_allclose(logs, expected, rtol=1e-13, atol=1e-11)
    assert np.all(found[v == 0.0] == 0.0)
    assert np.all(logs[v == 0.0] == 0.0)
    far = np.full(3, 1e80)
    fill_inverse_sum(np.array([0.0, 1.0, 5.0]), far, found[:3])
    np.testing.assert_allclose(found[:3], [0.0, 1e-80, 5e-80], rtol=1e-15)


def test_the_rational_functions_are_exact_to_rounding():
    """(NB3), (NB4), evaluated with 40 digits. Relative errors of 1e-11 in any coefficient fail."""
    with mp.workdps(40):
        for w in [mp.mpf(1), *(1 + mp.mpf(10) ** (mp.mpf(k) / 10) for k in range(-60, 150))]:
            rational = clumps._digamma_top.py_func(w) / clumps._digamma_bottom.py_func(w)
            exact = mp.log(w + clumps._DIGAMMA_SHIFT) - mp.digamma(w)
            assert abs(w * (rational - exact)) < 3e-16
            w = w + 1
            rational = clumps._gamma_top.py_func(w) / clumps._gamma_bottom.py_func(w)
            exact = mp.loggamma(w) - (w - 0.5) * mp.log(w + clumps._GAMMA_SHIFT) + w
            exact -= mp.log(2 * mp.pi) / 2 - clumps._GAMMA_SHIFT
            assert abs(rational - exact) < 1.5e-16


def test_logarithms_of_ratios_are_exact_to_rounding():
    """Ratios from 1 + 1e-30 to 1e30, and at every place where the power of two changes."""
    rng = np.random.default_rng(0)
    a = 10.0 ** rng.uniform(-15.0, 15.0, 3000)
    v = a * np.append(10.0 ** rng.uniform(-30.0, 30.0, 2000), rng.uniform(0.0, 8.0, 1000))
    with mp.workdps(60):
        for low, more in zip(a, v, strict=True):
            expected = mp.log1p(mp.mpf(more) / mp.mpf(low))
            assert abs(log_ratio(low, more) - expected) < 6e-16 * expected


@pytest.mark.parametrize("n_components", [3, 11])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_non_zeros_are_those_over_dense_data(n_components, weighted):
    """With rows that are empty, short, and longer than the rates that are stored together."""
    rng, (N, F) = np.random.default_rng(0), (70, 2 * STORED)
    X = np.where(rng.random((N, F)) < rng.random((N, 1)) ** 4, rng.geometric(0.03, (N, F)), 0.0)
    X[7], X[8], X[:, 30:90] = 0.0, 1.0, 0.0
    weights = (rng.random((N, F)) < 0.8).astype(float) if weighted else np.ones((N, 1))
    W, H = rng.dirichlet(np.ones(F), n_components).T, rng.gamma(2.0, 50.0, (n_components, N))
    law, exposure = NegativeBinomial(3.0), rng.uniform(0.5, 2.0, N)
    kinds = [observe(make(X), weights, exposure, law) for make in (np.asarray, sparse.csr_array)]
    sums = [of.sums(np.array(W, order=of.order), H, "wh") for of in kinds]
    for dense, scattered in zip(*sums, strict=True):
        for ours, theirs in zip(scattered, dense, strict=True):
            ours, theirs = np.broadcast_arrays(ours, theirs)
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    values = [of.value(np.array(W, order=of.order), H) for of in kinds]
    assert values[1] == pytest.approx(values[0], rel=1e-13)
    with Threads(2) as kinds[1].threads:
        for again, before in zip(kinds[1].sums(W, H, "wh"), sums[1], strict=True):
            np.testing.assert_array_equal(again.A, before.A)
        assert kinds[1].value(W, H) == values[1]


@pytest.mark.parametrize("start", [0.3, 1.0, 5.0, 40.0])
def test_learning_takes_few_evaluations(start):
    """Three with a value that is known, one more without: the same step, which never rises."""
    v, lam = simulated(0, 5.0), np.full((40, 30), 8.0)

    def value(law):
        tried.append(law.dispersion)
        return -float(law.log_density(v, lam).sum())

    law = NegativeBinomial("learn").resolve().at(start)
    tried = []
    present = value(law)
    tried.clear()
    found, best = law.learn(value, present)
    assert len(tried) <= 3
    assert start not in tried
    tried.clear()
    again, same = law.learn(value)
    assert len(tried) <= 4
    assert (again.dispersion, same) == (found.dispersion, best)
    assert best <= present
    assert best == value(found)


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
