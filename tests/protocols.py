"""A small experiment for tests: data, a protocol, and what its records have in common."""

import numpy as np

from temporalnmf.experiments import paper_protocol


def counts(n_steps=20, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    H = 80.0 * np.exp(np.cumsum(rng.normal(0.0, 0.2, size=(n_steps, 2)), axis=0))
    return rng.poisson(H @ rng.dirichlet(np.ones(n_features), size=2)).astype(float)


def small(**changes):
    """Two splits and two starts of three quick models."""
    settings = {"n_splits": 2, "n_inits": 2, "seed": 1, "max_iter": 30, **changes}
    return paper_protocol(2, **settings).only(["last_value", "gap", "rate"])


def without_seconds(records):
    return [{k: v for k, v in record.items() if k != "seconds"} for record in records]
