"""Seconds per iteration of fits here and at an older commit, measured in turn on one machine.

    python benchmarks/two_commits.py COMMIT

Fits have a fixed number of iterations. Each side runs in processes of its own, twice, alternating;
the best of three fits of each process counts. A ratio above one means slower than the commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROUNDS, REPETITIONS = 2, 3


def measured() -> dict[str, float]:
    """Microseconds per iteration, by case, of the package that is imported."""
    import numpy as np
    from scipy import sparse

    from temporalnmf import TemporalNMF

    rng = np.random.default_rng(0)

    def counts(n_times: int, n_features: int, level: float) -> np.ndarray:
        H = np.exp(np.cumsum(rng.normal(0.0, 0.1, (n_times, 5)), axis=0))
        W = rng.dirichlet(np.full(n_features, 0.1), 5)
        return rng.poisson(level * n_features * (H @ W) / H.mean()).astype(float)

    large = counts(300, 3000, 0.2)
    cases = {
        "60 x 20": counts(60, 20, 3.0),
        "17 x 14036": counts(17, 14036, 0.05),
        "300 x 3000": large,
        "300 x 3000 sparse": sparse.csr_array(large),
    }
    found = {}
    for name, X in cases.items():
        for solver in ("mm", "accelerated"):
            for threads in (1, 2):
                model = TemporalNMF(
                    3, likelihood="poisson", solver=solver,
                    max_iter=2000 if name == "60 x 20" else 60, tol=0.0, random_state=0,
                    n_jobs=threads,
                ).fit(X)  # fmt: skip
                seconds = []
                for _ in range(REPETITIONS):
                    began = time.perf_counter()
                    model.fit(X)
                    seconds.append(time.perf_counter() - began)
                found[f"{name}, {solver}, threads: {threads}"] = 1e6 * min(seconds) / model.n_iter_
    return found


def main(commit: str) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    from side_by_side.__main__ import cloned

    sources = {"then": cloned(commit), "now": ROOT}
    best: dict[str, dict[str, float]] = {side: {} for side in sources}
    for _ in range(ROUNDS):
        for side, source in sources.items():
            run = subprocess.run(
                [sys.executable, __file__], env=os.environ | {"PYTHONPATH": str(source / "src")},
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            for case, value in json.loads(run.stdout).items():
                best[side][case] = min(value, best[side].get(case, value))
    for case, now in best["now"].items():
        then = best["then"][case]
        print(f"{case:42} {then:8.0f} µs then, {now:8.0f} µs now, ratio {now / then:.2f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        print(json.dumps(measured()))
