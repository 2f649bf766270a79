"""Positive values may come in any unit, and results follow it."""

import numpy as np
import pytest
from scipy import sparse

from cases import placed, split_here
from temporalnmf import TemporalNMF, load, registry
from temporalnmf.chains import Shape
from temporalnmf.data.series import Series
from temporalnmf.inference.unit import unit_of
from temporalnmf.likelihoods import Exponential, Poisson

CHAINS = tuple(registry.CHAINS)


def power(n_steps=25, n_features=6):
    rng = np.random.default_rng(3)
    rates = np.outer(1.5 + np.sin(np.arange(n_steps) / 4.0), rng.dirichlet(np.ones(n_features)))
    X = rng.exponential(rates) + 1e-9
    X[5], X[7, 2] = np.nan, np.nan
    return X


@pytest.mark.each_value
@pytest.mark.parametrize("exponent", [-480, -60, 60, 480])
@pytest.mark.parametrize("solver", registry.SOLVERS)
@pytest.mark.parametrize("chain", CHAINS)
def test_results_scale_with_the_unit_of_the_data(chain, solver, exponent):
    """Fits in a power of two round as those near one do; only a shift of the objective differs."""
    given = {"likelihood": "exponential", "tol": 0.0, "max_iter": 25, "random_state": 0}
    X, unit = power(), 2.0**exponent
    with pytest.warns(UserWarning, match="did not converge"):
        plain = TemporalNMF(2, chain=chain, solver=solver, **given).fit(X)
    with pytest.warns(UserWarning, match="did not converge"):
        scaled = TemporalNMF(2, chain=chain, solver=solver, **given).fit(unit * X)
    np.testing.assert_allclose(scaled.components_, plain.components_, rtol=1e-10)
    np.testing.assert_allclose(scaled.activations_, unit * plain.activations_, rtol=1e-10)
    assert scaled.reconstruction_err_ == pytest.approx(plain.reconstruction_err_, rel=1e-9)
    new = scaled.transform(unit * X[:9])
    np.testing.assert_allclose(new, unit * plain.transform(X[:9]), rtol=1e-9)
    ahead, there = plain.forecast(2), scaled.forecast(2)
    np.testing.assert_allclose(there.values, unit * ahead.values, rtol=1e-9)
    if chain != "none":
        np.testing.assert_allclose(there.interval(0.9)[1], unit * ahead.interval(0.9)[1], rtol=1e-7)
    assert scaled.score(unit * X) == pytest.approx(plain.score(X) - np.log(unit), rel=1e-9)


def test_hyper_parameters_and_starts_given_as_numbers_are_in_the_unit_of_the_data(tmp_path):
    """Hyper-parameters and starting values that are numbers stand beside the data as given."""
    X, unit = power(), 2.0**300
    rng = np.random.default_rng(0)
    W, H = rng.dirichlet(np.ones(6), 2), rng.gamma(2.0, size=(25, 2))
    fits = []
    for size in (1.0, unit):
        chain = Shape(alpha=80.0 / size, beta=81.0 / size)
        model = TemporalNMF(2, chain=chain, likelihood="exponential", init=(W, size * H))
        model.set_params(tol=0.0, max_iter=25)
        with pytest.warns(UserWarning, match="did not converge"):
            fits.append(model.fit(size * X))
    plain, scaled = fits
    np.testing.assert_allclose(scaled.activations_, unit * plain.activations_, rtol=1e-9)
    assert scaled.chain_.alpha == 80.0 / unit
    again = load(scaled.save(tmp_path / "model.npz"))
    assert np.array_equal(again.transform(unit * X), scaled.activations_)
    longer = scaled.append(unit * X[:3]).activations_[-3:]
    np.testing.assert_allclose(longer, unit * plain.append(X[:3]).activations_[-3:], rtol=1e-9)


@pytest.mark.parametrize("place", ["memory", "blocks"])
def test_the_level_of_observations_follows_the_unit(place):
    X = power()
    series = Series(np.nan_to_num(X, nan=1.0), np.ones((25, 1)), np.full(25, 2.0))
    if place == "memory":
        found = placed(series.in_unit(0.25), Exponential(), place).level
    else:
        from temporalnmf.cluster.series import even_bounds

        found = split_here(series, even_bounds(6, 3)).in_unit(0.25).observe(Exponential()).level
    plain = placed(series, Exponential(), "memory").level
    assert found == pytest.approx(4.0 * plain, rel=1e-14)


def test_units_are_powers_of_two_near_the_level():
    for level in (1e-150, 3e-13, 2e12, 1e150):
        unit = unit_of(level, Exponential())
        assert np.frexp(unit)[0] == 0.5
        assert 0.7 < level / unit < 1.5
    assert unit_of(900.0, Exponential()) == unit_of(1e20, Poisson()) == 1.0


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weigh", ["steps", "entries", "sparse"])
def test_a_series_gives_totals_of_what_was_observed_and_rows_with_their_weights(store, weigh):
    rng = np.random.default_rng(1)
    X = rng.poisson(1.0, (7, 5)).astype(float)
    seen = rng.random((7, 5)) < 0.5 if weigh != "steps" else rng.random((7, 1)) < 0.5
    weights = seen * 2.0
    series = Series(
        store(X), sparse.csr_array(weights) if weigh == "sparse" else weights, np.ones(7)
    )
    assert np.array_equal(series.totals, (X * seen).sum(axis=1))
    for n in range(7):
        x, weight = series.row(n)
        assert np.array_equal(x, X[n])
        assert np.array_equal(weight, np.broadcast_to(weights, X.shape)[n])
