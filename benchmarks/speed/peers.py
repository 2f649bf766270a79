"""Plain NMF, K = 5: seconds to the objective that scikit-learn has after 1000 iterations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from speed.acceleration import ROUNDING, Watch, solve
from speed.data import COMPONENTS, Dataset, load
from speed.timing import Model, Options, ScikitLearn, alternate
from temporalnmf.runtime.threads import Threads

ITERATIONS = 1000
LONGEST = 3000


def run(options: Options) -> list[dict[str, Any]]:
    names = ("nips",) if options.quick else tuple(COMPONENTS)
    return [_race(name, options) for name in names]


def _objective(dataset: Dataset, rates: np.ndarray) -> float:
    """The likelihood's part, logarithms and quotients floored as scikit-learn does."""
    X = dataset.X.toarray() if sparse.issparse(dataset.X) else dataset.X
    floored = np.maximum(rates, np.finfo(np.float32).eps)
    if dataset.likelihood == "poisson":
        return float(np.sum(rates - X * np.log(floored)))
    return float(np.sum(X / floored + np.log(floored)))


def _race(name: str, options: Options) -> dict[str, Any]:
    iterations = 50 if options.quick else ITERATIONS
    # The linear scale stands for: no smoothing of W, so that the objective is scikit-learn's.
    model = Model(load(name, 5), "none", "linear")
    theirs = ScikitLearn(model.dataset, model.W, model.H)
    target = math.nan
    ends: list[Watch] = []

    def they() -> float:
        nonlocal target
        seconds, W, H = theirs.fit(iterations)
        with threadpool_limits(1):  # threads of BLAS that are awake would disturb what follows
            target = _objective(model.dataset, (W @ H).T)
        return seconds

    def we() -> float:
        with Threads(2) as threads:
            model.problem.observations.threads = threads
            goal = target + ROUNDING * abs(target)
            ends.append(solve(model, "accelerated", LONGEST, goal))
        return ends[-1].seconds[-1]

    # Theirs are long, so two rounds have to show the spread; the first warms up.
    measured = alternate({"scikit_learn": they, "seconds": we}, 1 if options.quick else 2)
    last = ends[-1]
    return {
        "dataset": name, "likelihood": model.dataset.likelihood, "K": 5,
        "scikit_learn_iterations": iterations, **measured, "iterations": last.iteration,
        "reached": last.first(last.target) is not None,
        "gap": (last.history[-1] - target) / abs(target),
    }  # fmt: skip
