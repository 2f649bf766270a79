"""Time per MM iteration, compared with scikit-learn, torchnmf and plain NumPy."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import numpy_mm
from scipy import sparse
from threadpoolctl import threadpool_limits

from speed import torch
from speed.data import COMPONENTS, Dataset, load
from speed.timing import CHAINS, WARM_UP, Model, Options, ScikitLearn, alternate, child, seconds_of

# An iteration of plain NumPy may take a tenth of a second: few are enough.
NUMPY_ITERATIONS = 3
# Tolerated increase of its objective in an iteration: np.roots is not exact.
ROUNDING = 1e-9


def cases(options: Options) -> list[Dataset]:
    if options.quick:
        return [load("nips"), load("icews14")]
    return [*map(load, COMPONENTS), load("icews14", 20)]


def run(options: Options) -> list[dict[str, Any]]:
    datasets = cases(options)
    records = []
    for dataset in datasets:
        models = {chain: Model(dataset, chain, options.scale) for chain in CHAINS}
        for model in models.values():
            model.advance(WARM_UP)
        plain = models["none"]
        theirs = ScikitLearn(dataset, plain.W, plain.H)
        befores = {}
        if dataset.likelihood == "poisson" and not sparse.issparse(dataset.X):
            V = np.ascontiguousarray(dataset.X.T)  # features × time, as the files are
            befores = {chain: _Before(model, V) for chain, model in models.items()}
        # "0 threads" is the default of the other library.
        for threads, others in ((1, 1), (2, 0)):
            runs = {("temporalnmf", c): m.iteration(options, threads) for c, m in models.items()}
            runs["scikit-learn", "none"] = theirs.iteration(options)
            if threads == 1:
                runs |= {("numpy", c): b.iteration for c, b in befores.items() if b.descends}
            with threadpool_limits(others or None):
                measured = alternate(runs, options.repetitions)
            records += [
                {
                    **_about(dataset), "who": who, "chain": chain, "scale": options.scale,
                    "threads": threads if who == "temporalnmf" else others, "seconds": seconds,
                }
                for (who, chain), seconds in measured.items()
            ]  # fmt: skip
        records.append(
            {
                **_about(dataset),
                "who": "scikit-learn in a new process",
                **_untouched(dataset, options),
            }
        )
        records += [
            {**_about(dataset), "who": "numpy", "chain": chain, "descends": before.descends}
            for chain, before in befores.items()
        ]
    records += torch.run(datasets, options)
    return records


def _about(dataset: Dataset) -> dict[str, Any]:
    return {"dataset": dataset.name, "K": dataset.n_components}


def _untouched(dataset: Dataset, options: Options) -> dict[str, Any]:
    """scikit-learn on one thread in a new process."""
    argument = {"name": dataset.name, "K": dataset.n_components, "quick": options.quick}
    return child("speed.iteration", argument)


def _measure_untouched(name: str, K: int, quick: bool) -> dict[str, Any]:
    model = Model(load(name, K), "none", "linear")
    theirs = ScikitLearn(model.dataset, model.W, model.H, settled=False)
    options = Options(quick=quick)
    with threadpool_limits(1):
        measured = alternate({"seconds": theirs.iteration(options)}, 1 if quick else 3)
    return {"chain": "none", "threads": 1, **measured}


class _Before:
    """The plain NumPy version from the current state of a model."""

    def __init__(self, model: Model, V: np.ndarray) -> None:
        self.V = V
        self.problem = model.problem
        self.state = np.ascontiguousarray(model.W), model.H.copy(), model.aux.copy()
        rise = numpy_mm.largest_rise(self.problem, self.V, *self.state[:2], NUMPY_ITERATIONS)
        # A time counts only where the same objective falls; Newton without a safeguard may fail.
        self.descends = bool(rise <= ROUNDING)

    def iteration(self) -> float:
        """Seconds of an iteration."""

        def few() -> None:
            state = self.state
            for _ in range(NUMPY_ITERATIONS):
                state = numpy_mm.iterate(self.problem, self.V, *state)

        return seconds_of(few) / NUMPY_ITERATIONS


if __name__ == "__main__":
    print(json.dumps(_measure_untouched(**json.loads(sys.argv[1]))))
