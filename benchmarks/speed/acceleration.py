"""Seconds to the objective that MM has after 2000 iterations, MM against accelerated."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from speed.data import COMPONENTS, load
from speed.timing import CHAINS, Model, Options
from temporalnmf import registry
from temporalnmf.solvers.monitor import Monitor

ITERATIONS = 2000
# Relative tolerance of the target: differences below it are rounding errors.
ROUNDING = 1e-12
# A run that gains no more than rounding in this many iterations is in another optimum.
PATIENCE = 200


class Watch(Monitor):
    """Records the time of every evaluation; stops at a target or if nothing changes."""

    def __init__(self, max_iter: int, target: float = -math.inf) -> None:
        super().__init__(max_iter, tol=-math.inf)
        self.target = target
        self.seconds: list[float] = []
        self._began = time.perf_counter()

    def record(self, objective: float, W: np.ndarray, H: np.ndarray, iterations: int) -> None:
        super().record(objective, W, H, iterations)
        self.seconds.append(time.perf_counter() - self._began)
        if objective <= self.target or (self.target > -math.inf and self._settled()):
            self.running = False

    def _settled(self) -> bool:
        looks = PATIENCE // 10
        if len(self.history) <= looks:
            return False
        gained = self.history[-1 - looks] - self.history[-1]
        return gained <= ROUNDING * abs(self.history[-1])

    def first(self, target: float) -> int | None:
        """Index of the first evaluation at which the target was reached."""
        there = [i for i, objective in enumerate(self.history) if objective <= target]
        return there[0] if there else None


class Passes:
    """Counts the passes over the data of a model."""

    def __init__(self, model: Model) -> None:
        self.count = 0
        observations = model.problem.observations
        for name in ("sums", "value"):
            setattr(observations, name, self._counted(getattr(observations, name)))

    def _counted(self, method: Any) -> Any:
        def call(*arguments: Any) -> Any:
            self.count += 1
            return method(*arguments)

        return call


def solve(model: Model, solver: str, max_iter: int, target: float = -math.inf) -> Watch:
    """Run a solver from the start of the model."""
    watch = Watch(max_iter, target)
    registry.create(registry.SOLVERS, solver, "solver").solve(
        model.problem, model.W, model.H, watch
    )
    return watch


def run(options: Options) -> list[dict[str, Any]]:
    names = ("nips", "sotu") if options.quick else tuple(COMPONENTS)
    chains = ("none", "rate", "bgar") if options.quick else CHAINS
    records = []
    with threadpool_limits(1):
        for scale, seeds in (("log", options.seeds), ("linear", options.linear_seeds)):
            for name in names:
                for chain in chains:
                    for seed in range(seeds):
                        records.append(_race(name, chain, scale, seed, options))
    return records


def _race(name: str, chain: str, scale: str, seed: int, options: Options) -> dict[str, Any]:
    iterations = ITERATIONS // (20 if options.quick else 1)
    model = Model(load(name), chain, scale, seed)
    if seed == 0:  # everything is compiled and in its caches
        for solver in ("mm", "accelerated"):
            solve(model, solver, 45)
    passes = Passes(model)
    mm = solve(model, "mm", iterations)
    mm_passes, passes.count = passes.count, 0
    target = mm.history[-1] + ROUNDING * abs(mm.history[-1])
    fast = solve(model, "accelerated", iterations, target)
    there = mm.first(target)
    assert there is not None
    reached = fast.first(target) is not None
    return {
        "dataset": name, "chain": chain, "scale": scale, "seed": seed,
        "mm_seconds": mm.seconds[-1], "mm_iterations": iterations, "mm_passes": mm_passes,
        # MM may have reached it, up to rounding, long before its last iteration.
        "mm_seconds_there": mm.seconds[there], "mm_iterations_there": mm.iterations[there],
        "seconds": fast.seconds[-1], "iterations": fast.iteration, "passes": passes.count,
        "reached": reached, "gap": (fast.history[-1] - mm.history[-1]) / abs(mm.history[-1]),
    }  # fmt: skip
