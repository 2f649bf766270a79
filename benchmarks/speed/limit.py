"""Share of the bare divisions, and of the chain's sweep, in the time of an iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from speed.data import COMPONENTS, load
from speed.timing import CHAINS, WARM_UP, Model, Options, alternate, seconds_of


def run(options: Options) -> list[dict[str, Any]]:
    with threadpool_limits(1):
        return [*_divisions(options), *_sweeps(options)]


def _divisions(options: Options) -> list[dict[str, Any]]:
    dataset = load("nips")

    models = {chain: Model(dataset, chain, "log") for chain in ("none", "rate")}
    for model in models.values():
        model.advance(WARM_UP)
    V, rates = dataset.X, (models["none"].W @ models["none"].H).T.copy()
    out = np.empty_like(V)
    n = 5 if options.quick else 100

    def divide() -> float:
        return seconds_of(lambda: [np.divide(V, rates, out=out) for _ in range(2 * n)]) / n

    runs: dict[str, Callable[[], float]] = {"divisions": divide}
    runs |= {chain: model.iteration(options) for chain, model in models.items()}
    measured = alternate(runs, 2 * options.repetitions)
    return [{"what": "limit", "run": name, "seconds": s} for name, s in measured.items()]


def _sweeps(options: Options) -> list[dict[str, Any]]:
    records = []
    for name in ("nips", "icews14") if options.quick else COMPONENTS:
        for scale in ("log", "linear"):
            for chain in CHAINS:
                model = Model(load(name), chain, scale)
                model.advance(WARM_UP)
                runs = {"sweep": _sweep(model, options), "iteration": model.iteration(options)}
                measured = alternate(runs, 1 if options.quick else 3)
                records.append(
                    {"what": "share", "dataset": name, "chain": chain, "scale": scale, **measured}
                )
    return records


def _sweep(model: Model, options: Options) -> Callable[[], float]:
    """A run that measures a sweep from the current state, with the majorizer fixed."""
    problem, H, aux = model.problem, model.H.copy(), model.aux.copy()
    (sums,) = problem.observations.sums(model.W, H, "h")
    majorizer = problem.observations.likelihood.majorizer(*sums, H)
    moving = H.copy()
    n = 5 if options.quick else 50

    def sweeps() -> None:
        for _ in range(n):
            np.copyto(moving, H)  # a second sweep from the same place would have less to do
            problem.chain.sweep(moving, aux, majorizer, problem.scale)

    return lambda: seconds_of(sweeps) / n
