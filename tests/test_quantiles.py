"""Quantiles of counts in the default check of intervals."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from temporalnmf.kernels.quantiles import fill_quantiles

MEANS = np.geomspace(1e-3, 1e5, 60)


@pytest.mark.parametrize("tail", [0.025, 0.05, 0.25, 0.75, 0.95, 0.975])
@pytest.mark.parametrize("excess", [0.0, 0.3, 5.0, 100.0])
@pytest.mark.parametrize("relative", [0.0, 0.05, 0.5])
def test_quantiles_are_those_of_the_distribution(tail, excess, relative):
    """Exactly up to a mean of 100; above, within a count or 6 % of the standard deviation."""
    variance = MEANS * (1.0 + excess + relative * MEANS)
    found = np.empty(len(MEANS))
    fill_quantiles(MEANS, variance, tail, float(ndtri(tail)), found)
    share = MEANS / np.maximum(variance, MEANS * (1.0 + 1e-9))
    exact = stats.nbinom.ppf(tail, MEANS * share / (1.0 - share), share)
    small = (MEANS <= 100.0) & (MEANS * share / (1.0 - share) * np.log(share) > -600.0)
    np.testing.assert_array_equal(found[small], exact[small])
    assert np.all(np.abs(found - exact)[~small] <= 1.0 + 0.06 * np.sqrt(variance[~small]))
