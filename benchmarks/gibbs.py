"""Milliseconds per Gibbs sweep, their growth, and a comparison with PGDS; needs TEMPORALNMF_DATA.

    python benchmarks/gibbs.py [--only PARTS]        (PARTS: threads,nonzeros,…; see --help)

Every row is the best, the median and the worst of several repetitions, each of several sweeps;
variants run alternately. Rows of one thread show processor time, others wall-clock time.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy_pgds import PGDS
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from temporalnmf import TemporalNMF
from temporalnmf.chains import ARG, BGAR, Chain, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.chains.base import First
from temporalnmf.data.series import Series
from temporalnmf.likelihoods.base import Likelihood
from temporalnmf.likelihoods.negative_binomial import NegativeBinomial
from temporalnmf.likelihoods.poisson import Poisson
from temporalnmf.runtime.threads import Threads
from temporalnmf.sampling.gibbs import Gibbs
from temporalnmf.sampling.learning import (
    LearnedChain,
    LearnedLikelihood,
    LearnedSmoothing,
    Parameters,
)

REPETITIONS = 7
RATE, POISSON = Rate(100.0, 100.0), Poisson()


def nips() -> np.ndarray:
    """Counts (years, words)."""
    return np.load(Path(os.environ["TEMPORALNMF_DATA"]) / "nips.npy").T.astype(float)


def icews(name: str) -> sparse.csr_array:
    """Counts (days, pairs)."""
    found = sparse.load_npz(Path(os.environ["TEMPORALNMF_DATA"]) / name)
    return sparse.csr_array(found.T.astype(float))


def started(X: np.ndarray | sparse.sparray, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """W and H near a mode."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = TemporalNMF(n_components, max_iter=20, tol=0.0, random_state=0).fit(X)
    return np.maximum(start.components_.T, 1e-12), np.maximum(start.activations_.T, 1e-9)


def sampler(
    X: np.ndarray | sparse.sparray, start: tuple[np.ndarray, np.ndarray], chain: Chain,
    workers: Threads, likelihood: Likelihood = POISSON,
) -> Gibbs:  # fmt: skip
    """A run with fixed hyper-parameters, some sweeps after its start."""
    N, K = X.shape[0], start[0].shape[1]
    level = float(X.sum()) / N
    series = Series(X, np.ones((N, 1)), np.ones(N))
    gibbs = Gibbs(
        series,
        Parameters(
            LearnedChain(chain, level, K), LearnedSmoothing(0.1, False),
            LearnedLikelihood(likelihood),
        ),
        *start, First(0.5, level / K), np.random.SeedSequence(0), workers,
        series.observe(likelihood, workers),
    )  # fmt: skip
    for _ in range(3):
        gibbs.sweep()
    return gibbs


def turns(
    runs: dict[str, Callable[[], object]], n_calls: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Sorted seconds per call of each function; calls alternate."""
    found = {name: np.empty(REPETITIONS) for name in runs}
    for repetition in range(REPETITIONS):
        for name, run in runs.items():
            began = clock()
            for _ in range(n_calls):
                run()
            found[name][repetition] = (clock() - began) / n_calls
    return {name: np.sort(times) for name, times in found.items()}


def shown(times: np.ndarray, unit: float = 1e3) -> str:
    """Best, median and worst."""
    return " / ".join(f"{unit * x:.3g}" for x in (times[0], np.median(times), times[-1]))


def table(head: str, rows: dict[str, str]) -> None:
    print(f"\n| {head} |\n|{' --- |' * (head.count('|') + 1)}")
    for name, row in rows.items():
        print(f"| {name} | {row} |", flush=True)


def threads() -> None:
    X = nips()
    start = started(X, 3)
    with Threads(1) as one, Threads(2) as two:
        runs = {
            f"{chain.name}, {n} thread(s)": sampler(X, start, chain, workers).sweep
            for chain in (RATE, HierRate(200.0, 199.0, 200.0, 200.0))
            for n, workers in ((1, one), (2, two))
        }
        rows = {name: shown(times) for name, times in turns(runs, 10, time.perf_counter).items()}
    table("NIPS, K = 3, wall-clock time | ms per sweep", rows)


def nonzeros() -> None:
    X = nips()
    order = np.random.default_rng(0).permutation(X.shape[1])
    parts = {part: np.ascontiguousarray(X[:, order[::part]]) for part in (8, 4, 2, 1)}
    with Threads(1) as one:
        runs = {
            f"1/{part} of the words, {np.count_nonzero(Xp)} non-zeros": sampler(
                Xp, started(Xp, 3), RATE, one
            ).sweep
            for part, Xp in parts.items()
        }
        found = turns(runs, 3)
    rows = {
        name: f"{shown(times)} | {1e9 * np.median(times) / int(name.split()[4]):.1f}"
        for name, times in found.items()
    }
    table("NIPS, K = 3, one thread | ms per sweep | ns per non-zero", rows)


def components() -> None:
    X = nips()
    nnz = np.count_nonzero(X)
    with Threads(1) as one:
        runs = {str(K): sampler(X, started(X, K), RATE, one).sweep for K in (3, 6, 12, 24)}
        found = turns(runs, 2)
    rows = {
        name: f"{shown(times)} | {1e9 * np.median(times) / nnz / int(name):.1f}"
        for name, times in found.items()
    }
    table("NIPS, K, one thread | ms per sweep | ns per non-zero and component", rows)


def counts() -> None:
    X = nips()
    W, H = started(X, 3)
    with Threads(1) as one:
        runs = {}
        for factor in (1.0, 1e2, 1e4, 1e5):
            gibbs = sampler(X * factor, (W, H * factor), RATE, one)
            runs[f"× {factor:g}, largest {factor * X.max():.2g}"] = gibbs.sweep
        rows = {name: shown(times) for name, times in turns(runs, 3).items()}
    table("NIPS, K = 3, one thread | ms per sweep", rows)


def chains() -> None:
    X = icews("icews_2001_2003_pairs_3day.npz")
    start = started(X, 5)
    beta = X.shape[0] * 5 / float(X.sum())
    laws = (GaP(1.0, beta), Rate(300.0, 300.0), HierRate(300.0, 299.0, 300.0, 300.0),
            Shape(1.0, 1.0), HierShape(1.0, 1.0), BGAR(1.0, beta, 0.97),
            ARG(1.0, beta, 0.97))  # fmt: skip
    with Threads(1) as one:
        runs = {chain.name: sampler(X, start, chain, one).sweep for chain in laws}
        rows = {name: shown(times) for name, times in turns(runs, 3).items()}
    table("ICEWS 2001–2003, K = 5, one thread | ms per sweep", rows)


def dispersion() -> None:
    X = nips()
    start = started(X, 3)
    laws = {
        "Poisson": POISSON,
        "negative binomial, d = 4.4": NegativeBinomial(4.4),
        "negative binomial, d learned": NegativeBinomial(),
    }
    with Threads(1) as one:
        runs = {
            f"{name}, {kind}": sampler(data, start, RATE, one, law.resolve()).sweep
            for kind, data in (("dense", X), ("sparse", sparse.csr_array(X)))
            for name, law in laws.items()
        }
        rows = {name: shown(times) for name, times in turns(runs, 3).items()}
    table("NIPS, K = 3, one thread | ms per sweep", rows)


def icews14() -> None:
    X = icews("icews14_pairs.npz")
    start = started(X, 20)
    rows = {}
    for n in (1, 2):
        with Threads(n) as workers:
            gibbs = sampler(X, start, RATE, workers)
            began = time.perf_counter()
            for _ in range(1000):
                gibbs.sweep()
            rows[f"{n} thread(s)"] = f"{time.perf_counter() - began:.1f}"
    table("ICEWS 2014, K = 20, wall-clock time | s per 1000 sweeps", rows)


def pgds() -> None:
    rows = {}
    data = (("NIPS", sparse.csr_array(nips()), 3), ("ICEWS 2014", icews("icews14_pairs.npz"), 20))
    for name, X, K in data:
        start = started(X, K)
        with Threads(1) as one:
            ours, theirs = sampler(X, start, RATE, one), PGDS(sparse.csr_array(X.T), *start, 0)
            theirs.sweep()
            runs: dict[str, Callable[[], object]] = {
                "ours, allocation": ours._allocate,
                "PGDS in NumPy, allocation": theirs.allocate,
                "ours, sweep": ours.sweep,
                "PGDS in NumPy, sweep": theirs.sweep,
            }
            found = turns(runs, 1)
        for what, times in found.items():
            each = 1e9 * np.median(times) / X.nnz / K
            rows[f"{name}, K = {K}, {what}"] = f"{shown(times)} | {each:.1f}"
    table("data, one thread | ms | ns per non-zero and component", rows)


PARTS = {
    part.__name__: part
    for part in (threads, nonzeros, components, counts, chains, dispersion, icews14, pgds)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", default=",".join(PARTS), help=f"parts, with commas: {','.join(PARTS)}"
    )
    for name in parser.parse_args().only.split(","):
        PARTS[name]()


if __name__ == "__main__":
    main()
