"""Positive values with a learned relative error."""

import numpy as np
import pytest
from scipy import stats

from temporalnmf import TemporalNMF, load
from temporalnmf.chains import Rate
from temporalnmf.likelihoods import Exponential, Gamma

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def simulated(seed, shape, n_steps=60, n_features=12):
    rng = np.random.default_rng(seed)
    time = np.linspace(0.0, 1.0, n_steps)[:, None]
    H = np.hstack([2.0 + np.sin(5.0 * time), 1.0 + time])
    mean = H @ rng.dirichlet(np.ones(n_features), size=2) + 1e-3
    return mean * rng.gamma(shape, 1.0 / shape, size=mean.shape)


def fitted(X, likelihood="gamma", **given):
    given = {"smoothing": 0.0, "random_state": 0, "max_iter": 500, **given}
    return TemporalNMF(2, likelihood=likelihood, **given).fit(X)


def test_the_density_is_that_of_scipy():
    v, lam = np.meshgrid([1e-3, 0.4, 2.0, 50.0], [0.01, 0.7, 5.0])
    for shape in (0.3, 1.0, 8.0):
        expected = stats.gamma.logpdf(v, shape, scale=lam / shape)
        np.testing.assert_allclose(Gamma(shape).log_density(v, lam), expected, rtol=1e-12)


def test_a_shape_of_one_is_exponential():
    """The same fit; objectives differ by Σ log v."""
    X = simulated(0, 1.0)
    given = {"solver": "mm", "max_iter": 40, "tol": 0.0}
    one, other = fitted(X, Gamma(1.0), **given), fitted(X, Exponential(), **given)
    np.testing.assert_allclose(one.components_, other.components_, rtol=1e-9)
    np.testing.assert_allclose(one.activations_, other.activations_, rtol=1e-9)
    assert one.objective_ == pytest.approx(other.objective_ - np.log(X).sum(), rel=1e-10)


@pytest.mark.parametrize("shape", [0.5, 4.0, 100.0])
def test_the_shape_is_learned(shape):
    """From 720 entries: the standard error of log a is below 0.06; components take some of them."""
    found = [fitted(simulated(seed, shape)).likelihood_.shape for seed in range(4)]
    assert np.log(np.mean(found) / shape) == pytest.approx(0.0, abs=0.25)


def test_the_learned_shape_is_the_best_one():
    X = simulated(1, 4.0)
    model = fitted(X)
    rates = model.activations_ @ model.components_
    best = model.likelihood_.shape
    values = [Gamma(best * f).log_density(X, rates).sum() for f in (0.99, 1.0, 1.01)]
    assert values[1] > max(values[0], values[2])


@pytest.mark.parametrize("solver", ["mm", "accelerated"])
def test_every_evaluation_with_a_learned_shape_descends(solver):
    history = fitted(simulated(2, 3.0), solver=solver, tol=0.0, max_iter=100).history_
    assert np.all(np.diff(history) <= 1e-10 * np.abs(history[1:]))


def test_intervals_of_the_model_hold():
    """40 series simulated from the model, one step ahead, 12 entries each."""
    inside, rng = [], np.random.default_rng(5)
    W = rng.dirichlet(np.ones(12), size=2)
    for _ in range(40):
        h = np.exp(np.cumsum(rng.normal(0.0, 0.05, size=(41, 2)), axis=0))
        X = (h @ W + 1e-6) * rng.gamma(5.0, 0.2, size=(41, 12))
        model = fitted(X[:40], chain=Rate(400.0), random_state=0)
        low, high = model.forecast(1, random_state=0).interval(0.9)
        inside.append(np.mean((low[0] <= X[40]) & (X[40] <= high[0])))
    # Entries are nearly independent: standard error of the share below 0.015; components are
    # estimated, which costs a little.
    assert np.mean(inside) == pytest.approx(0.9, abs=0.05)


def test_a_model_comes_back_from_its_file(tmp_path):
    model = fitted(simulated(3, 4.0))
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.likelihood_.get_params() == model.likelihood_.get_params()
    np.testing.assert_array_equal(
        again.forecast(2, random_state=0).samples(), model.forecast(2, random_state=0).samples()
    )


def test_the_unit_of_the_data_does_not_matter():
    X = simulated(4, 4.0)
    one, other = fitted(X), fitted(X * 2.0**-400)
    assert other.likelihood_.shape == pytest.approx(one.likelihood_.shape, rel=1e-6)
    np.testing.assert_allclose(other.components_, one.components_, rtol=1e-5, atol=1e-9)
