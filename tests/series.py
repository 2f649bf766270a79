"""A small series of two components that move, for tests of what follows a fit."""

import numpy as np
import pandas as pd

from temporalnmf import TemporalNMF

_rng = np.random.default_rng(0)
LEVELS = np.exp(np.cumsum(0.1 * _rng.standard_normal((40, 2)), axis=0)) * [60.0, 90.0]
PARTS = _rng.dirichlet(np.full(12, 0.5), size=2)
X = _rng.poisson(LEVELS @ PARTS).astype(float)
MONTHS = pd.date_range("2001-01-01", periods=40, freq="MS")
FRAME = pd.DataFrame(X, index=MONTHS, columns=[f"word{f}" for f in range(12)])


def fitted(chain="rate", data=X, **params):
    given = {"likelihood": "poisson", "random_state": 0, **params}
    return TemporalNMF(2, chain=chain, **given).fit(data)
