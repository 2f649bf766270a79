"""Timers, and the time of an iteration of ours and of scikit-learn's."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import NMF

from speed.data import Dataset
from temporalnmf import TemporalNMF, registry
from temporalnmf.chains import BGAR, Chain
from temporalnmf.inference.starts import start_factors
from temporalnmf.objective import Problem
from temporalnmf.observations import observe
from temporalnmf.observations.features import Features
from temporalnmf.runtime.threads import Threads
from temporalnmf.solvers.mm import h_step, w_root

CHAINS = tuple(registry.CHAINS)
SMOOTHING = {"log": 0.1, "linear": 0.0}  # our default, and the paper's
WARM_UP = 30


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    quick: bool = False
    repetitions: int = 7
    scale: str = "linear"
    seeds: int = 5
    linear_seeds: int = 2

    @property
    def seconds(self) -> float:
        """What one repetition of an iteration should take at least."""
        return 0.01 if self.quick else 0.1


def seconds_of(call: Callable[..., object], *arguments: Any) -> float:
    started = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - started


def alternate(runs: Mapping[Any, Callable[[], float]], repetitions: int) -> dict[Any, list[float]]:
    """What each run returns, once per round: a slow spell of the machine hits all of them.

    The first round warms up and is left out.
    """
    results: dict[Any, list[float]] = {name: [] for name in runs}
    for turn in range(repetitions + 1):
        for name, run in runs.items():
            measured = run()
            if turn > 0:
                results[name].append(measured)
    return results


def child(module: str, argument: Any, **environment: str) -> Any:
    """What a module prints as JSON when run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", module, json.dumps(argument)],
        cwd=Path(__file__).parents[1], env={**os.environ, **environment},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def chain_for(name: str, scale: str) -> Chain:
    """A chain with its defaults; BGAR's have no mode on the linear scale."""
    if name == "bgar" and scale == "linear":
        return BGAR(alpha=110.0, rho=0.9)
    return registry.create(registry.CHAINS, name, "chain")


def iterate(problem: Problem, features: Features, H: np.ndarray, aux: np.ndarray) -> np.ndarray:
    """One iteration of MM, as `Solve.iterate` makes it; returns the auxiliary variables."""
    s = float(problem.smoothing)
    shared = problem.observations.shared
    features.divide(features.multiply(H, s) if shared else w_root(features, H, s))
    return h_step(problem, features, H, aux)


class Model:
    """A problem and the current state of its fit."""

    def __init__(self, dataset: Dataset, chain: str, scale: str, seed: int = 0) -> None:
        N, K = dataset.X.shape[0], dataset.n_components
        likelihood = registry.create(registry.LIKELIHOODS, dataset.likelihood, "likelihood")
        observations = observe(dataset.X, np.ones((N, 1)), np.ones(N), likelihood)
        resolved = chain_for(chain, scale).resolve(observations.level, K)
        resolved.check("map", scale)
        self.dataset = dataset
        self.problem = Problem(observations, resolved, scale, SMOOTHING[scale])
        rng = np.random.default_rng(seed)
        self.features, self.H = start_factors(
            TemporalNMF(K)._config(), self.problem, None, np.arange(N), rng
        )
        self.W = self.features.array()
        self.aux = resolved.auxiliary(self.H, scale)

    def advance(self, iterations: int) -> None:
        """Some iterations of MM, without evaluating the objective."""
        for _ in range(iterations):
            self.aux = iterate(self.problem, self.features, self.H, self.aux)

    def iteration(self, options: Options, threads: int = 1) -> Callable[[], float]:
        """A run that measures the seconds of an iteration, each time from where it is now."""
        start = self.W.copy(order="K"), self.H.copy(), self.aux.copy()
        n = 10

        def run() -> float:
            nonlocal n
            with Threads(threads) as helpers:
                self.problem.observations.threads = helpers
                self.advance(1)  # wakes the threads
                while True:
                    self.W[...], self.H[...], self.aux = start[0], start[1], start[2].copy()
                    seconds = seconds_of(self.advance, n)
                    if seconds >= 0.7 * options.seconds:
                        return seconds / n
                    n = math.ceil(n * options.seconds / seconds)

        return run


class ScikitLearn:
    """Its multiplicative updates on the same data, from the same start.

    With tol=0 it never evaluates the objective. Its start-up is measured by runs of a single
    iteration and subtracted.

    It allocates arrays of the size of the data in every iteration. glibc gives such memory back to
    the system at each release, and new pages cost up to four times the arithmetic, until
    something larger was released; from then on it keeps them. `settled` ensures this, so that
    every run is at its best.
    """

    def __init__(
        self, dataset: Dataset, W: np.ndarray, H: np.ndarray, *, settled: bool = True
    ) -> None:
        self.dataset = dataset
        self.start = np.ascontiguousarray(H.T), np.ascontiguousarray(W.T)
        if settled:
            large = np.ones(31 * 2**17)  # 31 MB; from 32 MB on glibc learns nothing from it
            del large

    def fit(self, iterations: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Seconds of a fit, and the W (F, K) and H (K, N) it ends with."""
        activations, components = (factor.copy() for factor in self.start)
        model = NMF(
            self.dataset.n_components, init="custom", solver="mu", beta_loss=self.dataset.loss,
            tol=0.0, max_iter=iterations,
        )  # fmt: skip
        started = time.perf_counter()
        activations = model.fit_transform(self.dataset.X, W=activations, H=components)
        seconds = time.perf_counter() - started
        # The threads of its BLAS keep spinning, on a core that the next measurement needs.
        time.sleep(0.1)
        return seconds, model.components_.T, activations.T

    def iteration(self, options: Options) -> Callable[[], float]:
        """A run that measures the seconds of an iteration."""
        extra = 0

        def run() -> float:
            nonlocal extra
            shortest = min(self.fit(1)[0] for _ in range(3))
            if not extra:
                once = max((self.fit(6)[0] - shortest) / 5, 1e-5)
                extra = max(math.ceil(options.seconds / once), 5)
            return (self.fit(1 + extra)[0] - shortest) / extra

        return run
