"""Cost of `checkpoint=`: time of a fit with checkpoints divided by the time without.

.venv/bin/python benchmarks/checkpoints.py
"""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from scipy import sparse

from temporalnmf import TemporalNMF
from temporalnmf.solvers import Checkpoint

ROUNDS = 7
SECONDS = (None, 30.0, 1.0, 0.0)  # between two writes; None is no checkpoint


def data(n_steps: int, n_features: int, level: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    H = np.exp(np.cumsum(rng.normal(0.0, 0.1, (n_steps, 5)), axis=0))
    W = rng.dirichlet(np.full(n_features, 0.1), size=5)
    return rng.poisson(level * n_features * H @ W).astype(float)


def seconds(X: object, solver: str, every: float | None, folder: str) -> float:
    kept = None if every is None else Checkpoint(Path(folder) / "fit", every)
    model = TemporalNMF(5, solver=solver, max_iter=300, tol=0.0, random_state=0, checkpoint=kept)
    began = perf_counter()
    model.fit(X)
    return perf_counter() - began


def main() -> None:
    warnings.simplefilter("ignore")
    matrices = {
        "sparse, 50 steps of 2000 features": sparse.csr_array(data(50, 2000, 0.05)),
        "dense, 500 steps of 500 features": data(500, 500, 2.0),
    }
    with TemporaryDirectory() as folder:
        for name, X in matrices.items():
            for solver in ("mm", "accelerated"):
                seconds(X, solver, 0.0, folder)  # compiles
                rounds = [[seconds(X, solver, e, folder) for e in SECONDS] for _ in range(ROUNDS)]
                best = np.min(rounds, axis=0)
                ratios = np.median(np.array(rounds) / np.array(rounds)[:, :1], axis=0)
                shown = "  ".join(
                    f"every {e:g} s: {r:.2f} (+{1e3 * (b - best[0]):.0f} ms)"
                    for e, r, b in zip(SECONDS[1:], ratios[1:], best[1:], strict=True)
                )
                print(f"{name}, {solver}: without {best[0]:.2f} s; {shown}", flush=True)


if __name__ == "__main__":
    main()
