"""Evidence for the default hyper-parameters: held-out error over several datasets.

    python benchmarks/defaults.py --out docs/defaults.csv

A fifth of the inner steps and the last three are hidden; each row is one setting on one dataset,
averaged over seeds. `inside` and `ahead` are Kullback-Leibler errors on the hidden inner steps and
on the last three, divided by the best of all settings on that dataset: 1.00 is the best.
The data folder is taken from TEMPORALNMF_DATA; without it only the embedded dataset is used.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from temporalnmf import TemporalNMF
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, NoChain, Rate, Shape
from temporalnmf.datasets import load_sotu
from temporalnmf.metrics import kl_error

K = 5


def datasets() -> Iterator[tuple[str, np.ndarray]]:
    """Names and X (n_times, n_features)."""
    yield "sotu", np.delete(load_sotu().data, 143, axis=0)
    folder = os.environ.get("TEMPORALNMF_DATA")
    if folder:
        for name in ("nips", "lastfm"):
            yield name, np.load(Path(folder) / f"{name}.npy").T.astype(float)
        pairs = sparse.load_npz(Path(folder) / "icews_2001_2003_pairs_3day.npz")
        yield "icews", pairs.toarray().T.astype(float)


def settings(level: float) -> Iterator[tuple[str, Any, float]]:
    """Label, chain and smoothing of every setting; `level` is the mean activation."""
    for s in (0.0, 0.01, 0.03, 0.1, 0.3, 1.0):
        yield f"rate 100, smoothing {s:g}", Rate(100.0), s
    yield "none", NoChain(), 0.1
    for a in (0.3, 1.0, 3.0, 10.0):
        yield f"gap {a:g}", GaP(a), 0.1
    for a in (1.0, 10.0, 30.0, 300.0, 1000.0, 3000.0):
        yield f"rate {a:g}", Rate(a), 0.1
    for a in (2.0, 20.0, 60.0, 200.0, 600.0, 2000.0):
        yield f"hier_rate {a:g}", HierRate(alpha_z=a, alpha_h=a), 0.1
    for c in (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0):
        yield f"shape {c:g}/level", Shape(c / level), 0.1
    for c in (10.0, 50.0, 200.0, 1000.0):
        for a in (0.1, 1.0):
            yield f"hier_shape {a:g}, beta {c:g}/level", HierShape(a, c / level), 0.1
    for rho in (0.9, 0.97, 0.99):
        for a in (0.5, 1.0, 5.0):
            yield f"bgar {a:g}, rho {rho:g}", BGAR(a, rho=rho), 0.1
    for rho in (0.9, 0.97, 0.99, 0.999):
        for a in (0.5, 1.0, 5.0):
            yield f"arg {a:g}, rho {rho:g}", ARG(a, rho=rho), 0.1


def held_out_error(X: np.ndarray, chain: Any, smoothing: float, seed: int) -> tuple[float, float]:
    """Errors on hidden inner steps and on the last three."""
    rng = np.random.default_rng(seed)
    inner = rng.choice(np.arange(1, len(X) - 4), size=len(X) // 5, replace=False)
    ahead = np.arange(len(X) - 3, len(X))
    mask = np.ones(len(X), dtype=bool)
    mask[inner] = mask[ahead] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TemporalNMF(
            K, chain=chain, smoothing=smoothing, tol=1e-5, max_iter=300, random_state=seed
        ).fit(X, mask=mask)
    fitted = model.activations_ @ model.components_
    return kl_error(X[inner], fitted[inner]), kl_error(X[ahead], fitted[ahead])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--chains", nargs="*", help="only these; by default, all")
    arguments = parser.parse_args()
    rows = []
    for name, X in datasets():
        choices = [
            choice
            for choice in settings(X.sum(axis=1).mean() / K)
            if not arguments.chains or choice[1].name in arguments.chains
        ]
        errors = Parallel(arguments.jobs)(
            delayed(held_out_error)(X, chain, smoothing, seed)
            for _, chain, smoothing in choices
            for seed in range(arguments.seeds)
        )
        table = np.reshape(errors, (len(choices), arguments.seeds, 2)).mean(axis=1)
        for (label, *_), (inside, ahead) in zip(choices, table / table.min(axis=0), strict=True):
            rows.append({"dataset": name, "setting": label, "inside": f"{inside:.4f}",
                         "ahead": f"{ahead:.4f}"})  # fmt: skip
        print(f"{name} done", flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
