"""The law of counts that vary less than Poisson counts."""

import numpy as np
import pytest

from temporalnmf.likelihoods.negative_binomial import dispersed
from temporalnmf.likelihoods.underdispersed import Underdispersed

MISSING = [0.2, 0.7, 0.95]


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("mean", [0.3, 4.0, 250.0])
def test_samples_have_the_mean_and_the_smaller_variance(missing, mean):
    """400,000 draws, five standard errors; rounding the trials adds p² f(1 − f)."""
    law = Underdispersed(missing)
    draws = law.sample(np.full(400_000, mean), np.random.default_rng(0))
    rest = mean / missing % 1.0
    variance = (1.0 - missing) * mean + missing**2 * rest * (1.0 - rest)
    assert draws.mean() == pytest.approx(mean, abs=5.0 * np.sqrt(variance / 400_000))
    assert draws.var() == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize("missing", MISSING)
def test_the_density_is_that_of_the_samples(missing):
    law, grid = Underdispersed(missing), np.arange(60.0)
    mass = np.exp(law.log_density(grid, np.full(60, 7.3)))
    assert mass.sum() == pytest.approx(1.0, rel=1e-12)
    draws = law.sample(np.full(200_000, 7.3), np.random.default_rng(0))
    found = np.bincount(draws.astype(int), minlength=60) / len(draws)
    # 60 values, five standard errors: false alarm below 4e-5
    assert np.all(np.abs(found - mass) <= 5.0 * np.sqrt(mass / len(draws)) + 1e-12)


@pytest.mark.parametrize("missing", MISSING)
def test_parts_of_a_count_add_up_and_have_the_law_of_parts(missing):
    law, rng, rates = Underdispersed(missing), np.random.default_rng(0), np.array([2.0, 5.0, 30.0])
    totals = law.sample(np.full(20_000, rates.sum()), rng)
    parts = law.split(totals, np.tile(rates, (20_000, 1)), rng)
    np.testing.assert_array_equal(parts.sum(axis=1), totals)
    assert np.all(parts >= 0.0)
    np.testing.assert_allclose(parts.mean(axis=0), rates, rtol=0.02)
    extra = 0.25 * missing**2  # of rounding the trials, in parts and in the total
    variance = (1.0 - missing) * rates
    assert np.all(np.abs(parts.var(axis=0) - variance) < 2.0 * extra + 0.05 * variance)


def test_a_negative_dispersion_asks_for_it():
    law = dispersed(Underdispersed(0.5), -0.3)
    assert isinstance(law, Underdispersed)
    assert law.missing == 0.3


def test_parts_of_huge_counts_add_up():
    law, rng = Underdispersed(0.9), np.random.default_rng(0)
    parts = law.split(np.array([3e9, 5.0]), np.array([[1.0, 2.0], [1.0, 2.0]]), rng)
    np.testing.assert_array_equal(parts.sum(axis=1), [3e9, 5.0])
    np.testing.assert_allclose(parts[0], [1e9, 2e9], rtol=1e-3)
