"""Do the intervals and the words of `temporalnmf compare` hold? Data sets drawn from the default chain.

python benchmarks/compare_simulation.py --datasets 200 --jobs 2 --out results/compare_simulation
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from temporalnmf.chains import Rate
from temporalnmf.experiments import our_protocol
from temporalnmf.experiments.runner import fit_task
from temporalnmf.files import written_whole

N, F, K, LEVEL = 60, 40, 2, 150.0
MODELS = ("last_value", "none", "gap", "rate")
SPLITS, STARTS, ORIGINS = 5, 2, 20


def drawn(seed: int) -> tuple[Any, Any]:
    """Counts (N, F) and their true forecasts (N, F): the rates expected one step before."""
    rng = np.random.default_rng([seed, 18])
    W = rng.dirichlet(np.ones(F), size=K)
    first = LEVEL * rng.gamma(5.0, 0.2, size=K)
    H = np.stack([Rate(300.0).sample(1, N, rng, h1=h)[0] for h in first], axis=1)
    expected = np.vstack([H[:1], H[:-1]]) @ W  # the chain preserves the mean
    return rng.poisson(H @ W).astype(float), expected


def fits(seed: int, folder: Path) -> None:
    """All fits of one comparison; a data set that is done is not done again."""
    path = folder / f"{seed:04d}.json"
    if path.exists():
        return
    X, _ = drawn(seed)
    protocol = our_protocol(K, n_splits=SPLITS, n_inits=STARTS, n_origins=ORIGINS, seed=seed).only(
        MODELS
    )
    draws = protocol.draw(X)
    records = [
        fit_task(X, protocol, task, draws.W[:, :, task.init], draws.H[:, :, task.init],
                 draws.splits[task.split])
        for task in protocol.tasks(len(draws.splits) - SPLITS)
    ]  # fmt: skip
    with written_whole(path) as partial:
        partial.write_text(json.dumps(records), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/compare_simulation"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    Parallel(given.jobs)(delayed(fits)(seed, given.out) for seed in range(given.datasets))


if __name__ == "__main__":
    main()
