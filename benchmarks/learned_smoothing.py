"""Bias and spread of the smoothing that a posterior mode learns, and held-out errors.

    python benchmarks/learned_smoothing.py

Simulated counts of components with weights from Dirichlet(s): the factor by which s is too large
(geometric mean over data sets), the standard deviation of log s, and the KL error on a tenth of the
entries, hidden, relative to that of the default smoothing. With TEMPORALNMF_DATA, also the error on
hidden steps of last.fm and NIPS. Some of the data are fitted by draws, too.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_sotu
from temporalnmf.metrics import kl_error
from temporalnmf.solvers import Gibbs

SETS, N, K = 8, 60, 4
DEFAULT = 0.1


def simulated(s: float, n_features: int, level: float, turns: bool, seed: int) -> np.ndarray:
    """Counts (N, F) of K components, on average `level` per step and component at the start."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(n_features, s), size=K)
    H = level * np.exp(np.cumsum(rng.normal(0.0, 0.15, size=(N, K)), axis=0))
    if turns:
        H *= 0.02 + (np.arange(N)[:, None] * K // N == np.arange(K))
    return rng.poisson(H @ W).astype(float)


def error(X: np.ndarray, seen: np.ndarray, K: int, smoothing: float | str, seed: int) -> float:
    model = TemporalNMF(K, likelihood="poisson", smoothing=smoothing, random_state=seed)
    predicted = model.fit(X, mask=seen)
    hidden = ~np.broadcast_to(seen if seen.ndim == 2 else seen[:, None], X.shape)
    return kl_error(X[hidden], (predicted.activations_ @ predicted.components_)[hidden])


def row_of(s: float, n_features: int, level: float, turns: bool) -> str:
    found, errors = [], []
    for seed in range(SETS):
        X = simulated(s, n_features, level, turns, seed)
        model = TemporalNMF(
            K, likelihood="poisson", smoothing="learn", n_init=2, random_state=seed
        ).fit(X)
        found.append(np.log(model.smoothing_ / s))
        seen = np.random.default_rng(seed).random(X.shape) > 0.1
        errors.append(error(X, seen, K, "learn", seed) / error(X, seen, K, DEFAULT, seed))
    kind = "turns" if turns else "overlap"
    return (
        f"| {s:g} | {n_features} | {level:g} | {kind} | {np.exp(np.mean(found)):.2f} "
        f"| {np.std(found):.2f} | {np.mean(errors):.3f} |"
    )


def real() -> dict[str, tuple[np.ndarray, int]]:
    found = {"State of the Union, 6": (load_sotu().data, 6)}
    if folder := os.environ.get("TEMPORALNMF_DATA"):
        for name, file, n_components in (("NIPS", "nips", 6), ("last.fm", "lastfm", 5)):
            if (path := Path(folder, f"{file}.npy")).exists():
                X = np.load(path)
                found[f"{name}, {n_components}"] = (X.T if len(X) > X.shape[1] else X, n_components)
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    print("| s | features | counts | components | factor | spread | error |")
    print("|---|---|---|---|---|---|---|")
    for turns in (True, False):
        for s, n_features, level in (
            (0.02, 300, 100.0), (0.1, 300, 100.0), (0.5, 300, 100.0), (2.0, 300, 100.0),
            (0.1, 300, 10.0), (0.5, 300, 10.0), (0.1, 3000, 300.0),
        ):  # fmt: skip
            print(row_of(s, n_features, level, turns), flush=True)
    drawn = []
    for seed in range(3):
        X = simulated(0.1, 300, 100.0, False, seed)
        given = {"likelihood": "poisson", "smoothing": "learn", "random_state": seed}
        draws = TemporalNMF(K, solver=Gibbs(200, n_tune=200, n_chains=1), **given).fit(X)
        drawn.append(draws.smoothing_)
    print(f"\nOverlap, s = 0.1, 100 counts, by draws: {min(drawn):.2f} to {max(drawn):.2f}")
    print("\n| data, K | error | learned s |\n|---|---|---|")
    for name, (X, n_components) in real().items():
        X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=float)
        errors, found = [], []
        for seed in range(2):
            seen = np.ones(len(X), dtype=bool)
            inner = np.arange(1, len(X) - 1)
            seen[np.random.default_rng(seed).choice(inner, len(X) // 10, replace=False)] = False
            found.append(
                TemporalNMF(
                    n_components, likelihood="poisson", smoothing="learn", random_state=seed
                ).fit(X, mask=seen).smoothing_
            )  # fmt: skip
            errors.append(
                error(X, seen, n_components, "learn", seed)
                / error(X, seen, n_components, DEFAULT, seed)
            )
        print(f"| {name} | {np.mean(errors):.3f} | {min(found):.2f} to {max(found):.2f} |")


if __name__ == "__main__":
    main()
