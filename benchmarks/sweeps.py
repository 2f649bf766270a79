"""Time of one sweep and one expansion of every chain, per activation, on nearly converged H.

    python benchmarks/sweeps.py

State of the Union, K = 6 and N = 231, and its beginning, K = 3 and N = 29, where what counts is the
overhead of the call. One thread; the lowest decile of the repetitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from temporalnmf import registry
from temporalnmf.datasets import load_sotu
from temporalnmf.likelihoods.poisson import Poisson
from temporalnmf.objective import Problem
from temporalnmf.observations import observe
from temporalnmf.solvers.mm import h_step

SIZES = ((6, 231), (3, 29))
FEATURES = 400
ITERATIONS = 60


def converged(
    X: np.ndarray, name: str, n_components: int
) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Problem, W and H after some iterations from a random start."""
    observations = observe(X, np.ones((len(X), 1)), np.ones(len(X)), Poisson())
    chain = registry.create(registry.CHAINS, name, "chain").resolve(
        observations.level, n_components
    )
    problem = Problem(observations, chain, "log", 0.1)
    rng = np.random.default_rng(0)
    W = rng.gamma(2.0, 0.5, size=(X.shape[1], n_components))
    W = np.array(W / W.sum(axis=0), order=observations.order)
    H = rng.gamma(2.0, 0.5, size=(n_components, len(X))) * observations.level / n_components
    aux = chain.auxiliary(H, "log")
    features = observations.hold(W)  # writes to W
    for _ in range(ITERATIONS):
        features.update(H, problem.smoothing)
        aux = h_step(problem, features, H, aux)
    return problem, W, H


def typical(run: Callable[[], object], repetitions: int = 400) -> float:
    """Lowest decile of the time of a call, in seconds."""
    times = np.empty(repetitions)
    for i in range(repetitions):
        started = time.perf_counter()
        run()
        times[i] = time.perf_counter() - started
    return float(np.quantile(times, 0.1))


def main() -> None:
    data = load_sotu().data
    X = np.asarray(data.todense() if hasattr(data, "todense") else data, dtype=float)
    X = X[np.isfinite(X).all(axis=1)]  # one year without an address
    X = X[:, np.argsort(-X.sum(axis=0))[:FEATURES]]
    print(f"{'chain':<11} {'K':>2} {'N':>4} {'sweep':>9} {'per entry':>10} "
          f"{'expansion':>10} {'per entry':>10}")  # fmt: skip
    for n_components, n_steps in SIZES:
        for name in registry.CHAINS:
            problem, W, H = converged(X[:n_steps], name, n_components)
            chain, scale = problem.chain, problem.scale
            aux = chain.auxiliary(H, scale)
            (sums,) = problem.observations.sums(W, H, "h")
            majorizer = problem.observations.likelihood.majorizer(*sums, H)
            moving = H.copy()

            def sweep(moving=moving, H=H, chain=chain, aux=aux, majorizer=majorizer, scale=scale):
                np.copyto(moving, H)
                return chain.sweep(moving, aux, majorizer, scale)

            def expand(H=H, chain=chain, scale=scale):
                return chain.expansion(H, scale)

            row = f"{name:<11} {H.shape[0]:2d} {H.shape[1]:4d}"
            for run in (sweep, expand):
                run()
                seconds = typical(run)
                row += f" {1e6 * seconds:7.1f}us {1e9 * seconds / H.size:8.1f}ns"
            print(row, flush=True)


if __name__ == "__main__":
    main()
