"""A small gappy series by month, and models drawn from it, for tests."""

import numpy as np
import pandas as pd

from cases import estimator

NAMES = list("abcdef")
# With one component all is known at once.
SETTLED = {"n_draws": 400, "n_tune": 100, "n_chains": 4}


def months():
    """30 months with two gaps; nobody has seen the last two yet."""
    rng = np.random.default_rng(0)
    level = 80.0 * np.exp(np.cumsum(rng.normal(0.0, 0.15, size=(30, 2)), axis=0))
    W = np.array([[0.5, 0.4, 0.1, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.2, 0.3, 0.5]])
    X = rng.poisson(level @ W).astype(float)
    X[[3, 4, 20, 28, 29]] = np.nan
    return pd.DataFrame(X, index=pd.date_range("2001-01", periods=30, freq="MS"), columns=NAMES)


def drawn(n_components, **parameters):
    given = {
        "likelihood": "poisson",
        "n_draws": 60,
        "n_tune": 30,
        "n_chains": 3,
        "random_state": 0,
        **parameters,
    }
    return estimator(n_components, solver="gibbs", **given).fit(months())
