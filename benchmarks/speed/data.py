"""Data of the benchmarks: X (N, F), time × features."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Dataset:
    """Data with the number of components and the likelihood that go with them."""

    name: str
    X: Any
    n_components: int
    likelihood: str = "poisson"

    @property
    def loss(self) -> str:
        """What scikit-learn calls the likelihood."""
        return "kullback-leibler" if self.likelihood == "poisson" else "itakura-saito"


COMPONENTS = {"nips": 3, "lastfm": 5, "sotu": 6, "icews_2001_2003": 5, "tabla": 5, "icews14": 5}


def folder() -> Path | None:
    """Path of the data, or None."""
    name = os.environ.get("TEMPORALNMF_DATA")
    return Path(name) if name and (Path(name) / "nips.npy").exists() else None


@cache
def load(name: str, n_components: int | None = None) -> Dataset:
    """One of `COMPONENTS`, in float64 and C order, which suits all libraries."""
    data = folder()
    assert data is not None
    likelihood = "poisson"
    if name in ("nips", "lastfm"):
        X = np.load(data / f"{name}.npy").T
    elif name == "tabla":
        likelihood = "exponential"
        power = np.load(data / "tabla_power.npz")["power"].T.astype(float)
        X = np.maximum(power, 1e-11 * power.max())  # quantisation noise below
    else:
        file = {
            "sotu": "sotu_words_by_year",
            "icews_2001_2003": "icews_2001_2003_pairs_3day",
            "icews14": "icews14_pairs",
        }[name]
        X = sparse.csr_array(sparse.load_npz(data / f"{file}.npz").T, dtype=float)
        if name != "icews14":
            X = X.toarray()
    if not sparse.issparse(X):
        X = np.ascontiguousarray(X, dtype=float)
    return Dataset(name, X, n_components or COMPONENTS[name], likelihood)


def dense(n_steps: int, n_features: int, n_components: int = 5) -> Dataset:
    """Counts of Poisson(λ) with a smooth λ of full rank."""
    rng = np.random.default_rng(0)
    level = 2.0 + np.sin(np.arange(n_steps) / 20.0)
    X = rng.poisson(np.outer(level, rng.gamma(2.0, 2.0, size=n_features))).astype(float)
    return Dataset(f"dense {n_features} × {n_steps}", X, n_components)


def scattered(n_steps: int, n_features: int, nnz: int, n_components: int = 5) -> Dataset:
    """Sparse counts, as many per step, one in each of equal ranges of features.

    Built row by row in its final memory: with 1e8 non-zeros, anything else would not fit.
    """
    rng = np.random.default_rng(0)
    per_step = nnz // n_steps
    edges = np.arange(per_step + 1) * n_features // per_step
    indices = np.empty(per_step * n_steps, dtype=np.int32)
    values = np.empty(per_step * n_steps)
    widths = np.diff(edges)
    for n in range(n_steps):
        row = slice(n * per_step, (n + 1) * per_step)
        indices[row] = edges[:-1] + rng.random(per_step) * widths
        values[row] = rng.integers(1, 6, size=per_step)
    indptr = np.arange(n_steps + 1, dtype=np.int32) * np.int32(per_step)
    X = sparse.csr_array((values, indices, indptr), shape=(n_steps, n_features))
    X.has_canonical_format = True
    return Dataset(
        f"sparse {n_features} × {n_steps}, {nnz / 1e6:g} million non-zeros", X, n_components
    )
