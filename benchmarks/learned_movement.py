"""Bias and spread of hyper-parameters that a posterior mode learns, on simulated counts.

    python benchmarks/learned_movement.py --sets 100 --out docs/benchmarks/learned_movement.md

Each data set has two components of 150 steps, about 400 counts per step and component, a tenth of
the steps missing. The columns: the factor by which values are too large (geometric mean over data
sets and components), the standard deviation of log θ (of the log odds of ρ), and how often the 90 %
interval contains the truth.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logit

from temporalnmf import TemporalNMF
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, Rate, Shape

N, K, F, LEVEL = 150, 2, 20, 400.0


def cases() -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Chains with their true numbers, and what is learned of them."""
    yield GaP(2.0, 2.0 / LEVEL), ("alpha",)
    yield GaP(2.0, 2.0 / LEVEL), ("alpha", "beta")
    for alpha in (5.0, 50.0, 500.0):
        yield Rate(alpha), ("alpha",)
    yield Rate(50.0, 50.0), ("alpha", "beta")
    yield HierRate(100.0, "auto", 100.0), ("alpha_z", "alpha_h")
    yield HierRate(100.0, "auto", 100.0), ("alpha_z",)
    yield Shape(50.0 / LEVEL), ("alpha",)
    yield Shape(50.0 / LEVEL, 50.0 / LEVEL), ("alpha", "beta")
    yield HierShape(1.0, 100.0 / LEVEL), ("beta",)
    yield HierShape(1.0, 100.0 / LEVEL), ("alpha", "beta")
    yield BGAR(5.0, 5.0 / LEVEL, 0.8), ("beta",)
    yield BGAR(5.0, 5.0 / LEVEL, 0.8), ("rho",)
    yield BGAR(5.0, 5.0 / LEVEL, 0.8), ("alpha", "beta", "rho")
    yield ARG(5.0, 5.0 / LEVEL, 0.8), ("beta",)
    yield ARG(5.0, 5.0 / LEVEL, 0.8), ("rho",)
    yield ARG(5.0, 5.0 / LEVEL, 0.8), ("alpha", "beta", "rho")


def simulated(chain: Any, seed: int) -> np.ndarray:
    """Counts (N, F), rows of NaN where they are missing; no component has died."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(F, 0.2), size=K)
    H = chain.sample(200, N, rng, LEVEL)
    H = H[(H.mean(axis=1) > 0.1 * LEVEL) & (H.mean(axis=1) < 10.0 * LEVEL)][:K].T
    X = rng.poisson(H @ W).astype(float)
    X[rng.choice(np.arange(1, N - 1), size=N // 10, replace=False)] = np.nan
    return X


def estimates(chain: Any, names: tuple[str, ...], seed: int) -> dict[str, np.ndarray]:
    """Values and ends of intervals (K, 3)."""
    learner = type(chain)(**{**chain.get_params(), **dict.fromkeys(names, "learn")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TemporalNMF(K, chain=learner, likelihood="poisson", random_state=seed)
        return model.fit(simulated(chain, seed)).learned_


def row_of(chain: Any, names: tuple[str, ...], name: str, found: np.ndarray) -> str:
    truth = float(getattr(chain, name))
    scale = logit if name == "rho" else np.log
    errors = scale(found[:, 0]) - scale(truth)
    inside = np.mean((found[:, 1] <= truth) & (truth <= found[:, 2]))
    label = f"{chain.name}, {' and '.join(names)}"
    return (
        f"| {label} | {name} = {truth:.4g} | {np.exp(np.median(errors)):.2f} "
        f"| {np.exp(errors.mean()):.2f} | {errors.std():.2f} | {inside:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--chains", nargs="*")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    lines = ["| chain, learned | truth | median factor | mean factor | spread | inside |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    print("\n".join(lines))
    for chain, names in cases():
        if arguments.chains and chain.name not in arguments.chains:
            continue
        started = time.perf_counter()
        found = Parallel(arguments.jobs)(
            delayed(estimates)(chain, names, seed) for seed in range(arguments.sets)
        )
        seconds = (time.perf_counter() - started) * arguments.jobs / arguments.sets
        for name in names:
            lines.append(row_of(chain, names, name, np.concatenate([one[name] for one in found])))
            print(lines[-1], f" {seconds:.1f} s each", flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
