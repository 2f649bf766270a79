"""Missing steps between observed ones: interpolated, or the posterior mode."""

import numpy as np
import pytest

from temporalnmf import TemporalNMF, registry
from temporalnmf.chains import ARG, BGAR
from temporalnmf.messages.errors import ArgumentError

SEEN = np.array([0, 1, 4, 9, 10, 17])
DYNAMIC = [name for name in registry.CHAINS if registry.load(registry.CHAINS[name]).dynamic]
RANDOM_WALKS = [name for name in DYNAMIC if name not in ("bgar", "arg")]
reverting = pytest.mark.parametrize("kind", [BGAR, ARG])


def kriged(values, covariance, mean, seen, steps):
    """The best linear prediction from all steps seen, by the normal equations."""
    among = covariance(seen[:, None], seen)
    across = covariance(steps[:, None], seen)
    return mean + across @ np.linalg.solve(among, values - mean)


@reverting
def test_reverting_chains_interpolate_as_their_covariance_says(kind):
    alpha, beta, rho = np.array([2.0, 0.7]), np.array([0.1, 3.0]), np.array([0.6, 0.97])
    H = np.random.default_rng(0).gamma(2.0, 10.0, (2, len(SEEN)))
    steps = np.arange(SEEN[-1] + 1)
    found = kind(alpha, beta, rho).between(H, SEEN, steps)
    for k in range(2):
        mean = alpha[k] / beta[k]
        wanted = kriged(H[k], lambda n, m, r=rho[k]: r ** np.abs(n - m), mean, SEEN, steps)
        np.testing.assert_allclose(found[k], wanted, rtol=1e-11)
    np.testing.assert_allclose(found[:, SEEN], H, rtol=1e-15)


@reverting
def test_reverting_chains_near_a_random_walk_interpolate_linearly(kind):
    H = np.array([[3.0, 8.0]])
    found = kind(1.0, 0.1, 1.0 - 1e-12).between(H, np.array([0, 5]), np.arange(6))
    np.testing.assert_allclose(found[0], np.linspace(3.0, 8.0, 6), rtol=1e-10)


@pytest.mark.parametrize("name", RANDOM_WALKS)
def test_random_walks_interpolate_shares_as_a_walk_of_equal_variances_and_totals_as_growth(name):
    H = np.random.default_rng(0).gamma(2.0, 10.0, (2, len(SEEN)))
    steps = np.arange(1, SEEN[-1] + 1)
    found = registry.load(registry.CHAINS[name])().between(H, SEEN, steps)

    def walk(values):
        """From a known start, the covariance of a random walk is min(n, m)."""
        return values[0] + kriged(values[1:] - values[0], np.minimum, 0.0, SEEN[1:], steps)

    lines = np.array([walk(row) for row in H])
    np.testing.assert_allclose(found / found.sum(axis=0), lines / lines.sum(axis=0), rtol=1e-11)
    np.testing.assert_allclose(np.log(found.sum(axis=0)), walk(np.log(H.sum(axis=0))), rtol=1e-11)
    np.testing.assert_array_equal(found[:, SEEN[1:] - 1], H[:, 1:])


@pytest.mark.parametrize("name", ["none", "gap"])
def test_independent_steps_interpolate_components_linearly(name):
    H = np.random.default_rng(0).gamma(2.0, 10.0, (2, len(SEEN)))
    steps = np.arange(SEEN[-1] + 1)
    found = registry.load(registry.CHAINS[name])().between(H, SEEN, steps)
    np.testing.assert_array_equal(found, [np.interp(steps, SEEN, row) for row in H])


def series(n_steps=40):
    """Two components that replace each other, with hidden steps."""
    rng = np.random.default_rng(0)
    level = 1.0 / (1.0 + np.exp(1.5 * (np.arange(n_steps) - 19.5)))
    H = 2000.0 * np.column_stack([level, 1.0 - level])
    means = H @ rng.dirichlet(np.full(30, 0.3), 2)
    X = rng.poisson(means).astype(float)
    X[[5, 6, 15, 18, 19, 20, 33]] = np.nan
    return X, means


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_fit_interpolates_missing_steps(name):
    X, _ = series()
    model = TemporalNMF(2, chain=name, random_state=0).fit(X)
    seen = np.flatnonzero(model.observed_)
    H = model.activations_.T
    wanted = model.chain_.between(H[:, seen], seen, np.arange(len(X)))
    np.testing.assert_allclose(H, wanted, rtol=1e-12)
    np.testing.assert_array_equal(model.transform(X), model.activations_)
    smoothed = model.smooth(n_samples=200)
    assert smoothed.point == "posterior mean; missing steps interpolated"
    low, high = np.quantile(smoothed.samples(of="components")[:, 18], [0.01, 0.99], axis=0)
    assert np.all((low < H[:, 18]) & (H[:, 18] < high))


@pytest.mark.parametrize("name", DYNAMIC)
def test_how_gaps_are_filled_does_not_change_the_fit(name):
    X, _ = series()
    one, other = (
        TemporalNMF(2, chain=name, gaps=gaps, intervals="model", random_state=0).fit(X)
        for gaps in ("interpolate", "mode")
    )
    np.testing.assert_array_equal(one.components_, other.components_)
    seen = one.observed_
    np.testing.assert_allclose(one.activations_[seen], other.activations_[seen], rtol=1e-12)
    assert not np.allclose(one.activations_[~seen], other.activations_[~seen], rtol=1e-3)
    np.testing.assert_allclose(one.forecast(3).values, other.forecast(3).values, rtol=1e-12)


def test_the_mode_of_components_that_replace_each_other_is_too_small():
    X, means = series()
    hidden = np.isnan(X[:, 0])
    totals = {}
    for gaps in ("interpolate", "mode"):
        model = TemporalNMF(2, likelihood="poisson", gaps=gaps, random_state=0).fit(X)
        totals[gaps] = (model.activations_.sum(axis=1) / means.sum(axis=1))[hidden]
    assert np.abs(totals["interpolate"] - 1.0).max() < 0.1
    assert totals["mode"].min() < 0.8


def test_missing_steps_after_the_fitted_ones_are_interpolated_from_the_last():
    X, _ = series()
    model = TemporalNMF(2, random_state=0).fit(X[:25])
    H = model.transform(np.vstack([np.full((3, 30), np.nan), X[28:33]]), continue_chain=True)
    ends = np.array([model.activations_[-1], H[3]])
    wanted = model.chain_.between(ends.T, np.array([0, 4]), np.arange(1, 4)).T
    np.testing.assert_allclose(H[:3], wanted, rtol=1e-12)


def test_an_unknown_way_to_fill_gaps_is_refused():
    with pytest.raises(ArgumentError, match=r"gaps='mean'.*interpolate"):
        TemporalNMF(gaps="mean").fit(np.ones((5, 3)))
