"""Test cases made from the registry: registering a chain or likelihood enrols it in every test."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from clusters import inside
from temporalnmf import TemporalNMF, registry
from temporalnmf.chains import ARG, BGAR, GAR, GaP, HierRate, HierShape, NoChain, Rate, Shape
from temporalnmf.cluster.block_data import MemorySource
from temporalnmf.cluster.blocks import Blocks
from temporalnmf.cluster.executor import LocalExecutor
from temporalnmf.cluster.series import SplitSeries, even_bounds
from temporalnmf.data.series import Series
from temporalnmf.kernels.dense import UNROLLED
from temporalnmf.likelihoods import Gamma, Gaussian, NegativeBinomial, NegativeBinomial2, Tweedie
from temporalnmf.likelihoods.base import Likelihood
from temporalnmf.objective import Problem
from temporalnmf.observations import Observations, observe
from temporalnmf.solvers import mm
from temporalnmf.solvers.options import nested

SCALES = ("log", "linear")
MASKS = ("none", "steps", "entries", "weights")
STORAGES = ("dense", "csr", "sparse mask")

# Numbers of components of quick tests, so that they share compiled kernels (`kernels/dense.py`).
FEW, MANY = 2, UNROLLED + 1

# Hyper-parameters per chain: the first for both scales, the rest only well-posed on the log scale.
_SETTINGS: dict[str, list[Any]] = {
    "none": [NoChain()],
    "gap": [GaP(1.7, 0.3), GaP(0.3, 0.05)],
    "rate": [Rate(1.5, 1.3), Rate(0.7, 0.9)],
    "hier_rate": [
        HierRate(3.0, 2.0, 1.4, 1.1),
        HierRate(3.0, 2.0, 1.4, 1.1, marginal=True),
        HierRate(0.5, 0.6, 0.4, 0.3),
    ],
    "shape": [Shape(0.9, 0.8), Shape(0.2, 0.25)],
    "hier_shape": [HierShape(1.6, 0.7), HierShape(0.4, 0.3)],
    "bgar": [BGAR(4.0, 0.4, 0.6), BGAR(2.0, 0.2, 0.9)],
    "arg": [ARG(1.6, 0.2, 0.7), ARG(0.4, 0.05, 0.9)],
}
_BOTH_SCALES = {"hier_rate": 2}

# Laws to simulate, several per process. Each has a fourth moment, by which variances are tested.
_LAWS: dict[str, list[Any]] = {
    "gap": [GaP(2.0, 0.5), GaP(0.3, 1.0)],
    "rate": [Rate(1.5, 1.5), Rate(4.0, 3.0), Rate(0.6, 0.9), Rate(300.0)],
    "hier_rate": [HierRate(30.0, 6.0, 4.0, 0.8), HierRate(25.0, 25.0, 0.7, 0.9), HierRate()],
    "shape": [Shape(2.0, 2.0), Shape(0.5, 0.9), Shape(40.0, 30.0)],
    "hier_shape": [HierShape(1.5, 2.0), HierShape(0.3, 0.8), HierShape(4.0, 100.0)],
    "bgar": [BGAR(2.0, 1.0, 0.9), BGAR(6.0, 0.5, 0.5), BGAR(0.5, 1.0, 0.3), BGAR(30.0, 3.0, 0.8)],
    "arg": [ARG(2.0, 1.0, 0.9), ARG(0.5, 1.0, 0.3), ARG(30.0, 3.0, 0.8)],
    "gar": [GAR(2.0, 1.0, 0.9), GAR(0.5, 2.0, 0.4)],
}


def processes() -> list[Any]:
    """Laws with hyper-parameters, every registered process among them."""
    return [law for name in registry.PROCESSES for law in _LAWS[name]]


def named(law: Any) -> str:
    """A short name for a test."""
    return f"{law.name}({','.join(str(v) for v in law.get_params().values())})"


def chains(scale: str) -> list[Any]:
    """Chains with hyper-parameters that the scale admits, every registered one among them."""
    cases = []
    for name in registry.CHAINS:
        settings = _SETTINGS[name]
        cases += settings if scale == "log" else settings[: _BOTH_SCALES.get(name, 1)]
    return cases


# Parameters per likelihood. Those that are not listed have none.
_OF_DATA: dict[str, Likelihood] = {
    "negative_binomial": NegativeBinomial(0.8),
    "negative_binomial_2": NegativeBinomial2(3.0),
    "gamma": Gamma(2.5),
    "gaussian": Gaussian(3.0),
    "tweedie": Tweedie(0.4, 0.3),
}


def likelihoods() -> list[Likelihood]:
    """Every registered likelihood, with parameters that are numbers."""
    tables = registry.LIKELIHOODS
    return [_OF_DATA.get(name) or registry.create(tables, name, "") for name in tables]


class Case(NamedTuple):
    """One kind of problem."""

    likelihood: Likelihood
    chain: Any
    scale: str
    mask: str
    storage: str

    def __str__(self) -> str:
        return "-".join(self.factors())

    def factors(self) -> tuple[str, ...]:
        return self.likelihood.name, named(self.chain), self.scale, self.mask, self.storage


def all_cases() -> list[Case]:
    """Every likelihood × chain × scale × mask × storage that exists."""
    return [
        Case(likelihood, chain, scale, mask, storage)
        for likelihood, scale, mask, storage in product(likelihoods(), SCALES, MASKS, STORAGES)
        for chain in chains(scale)
        if storage == "dense" or likelihood.takes_sparse
        if storage != "sparse mask" or mask in ("entries", "weights")
    ]


def random_data(
    rng: np.random.Generator, likelihood: Likelihood, n_steps: int, n_features: int
) -> np.ndarray:
    """X (N, F) from a smooth two-component model; the second feature is all zeros if it may be."""
    time = np.linspace(0.0, 1.0, n_steps)
    H = 20.0 * np.column_stack([np.exp(-3.0 * (time - 0.3) ** 2), 0.2 + time])
    W = rng.dirichlet(np.full(n_features, 0.7), size=2)
    rates = H @ W + 0.05
    if not likelihood.takes_zeros:
        return rng.exponential(rates) + 1e-6
    X = rng.poisson(rates).astype(float)
    X[:, 1] = 0.0
    return X


def random_weights(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Weights (N, 1) or (N, F) of one kind; feature 0 is never observed under "entries"."""
    n_steps = shape[0]
    if kind == "none":
        return np.ones((n_steps, 1))
    if kind == "steps":
        weights = np.ones((n_steps, 1))
        weights[rng.choice(np.arange(1, n_steps - 1), size=2, replace=False)] = 0.0
        return weights
    weights = (rng.random(shape) < 0.7).astype(float)
    if kind == "weights":
        weights *= rng.uniform(0.2, 2.0, size=shape)
    weights[0, 2] = weights[-1, 2] = 1.0
    weights[:, 0] = 0.0
    return weights


def random_series(
    rng: np.random.Generator, case: Case, n_steps: int = 9, n_features: int = 7
) -> Series:
    """Data with weights and exposures."""
    X: Any = random_data(rng, case.likelihood, n_steps, n_features)
    weights: Any = random_weights(rng, case.mask, X.shape)
    exposure = rng.uniform(0.5, 2.0, size=n_steps)
    if case.storage != "dense":
        X = sparse.csr_array(X)
    if case.storage == "sparse mask":
        weights = sparse.csr_array(weights)
    return Series(X, weights, exposure)


def placed(series: Series, likelihood: Likelihood, place: str, n_blocks: int = 3) -> Observations:
    """Data as one array in memory, as blocks in this process, or on the workers of a cluster."""
    if place == "memory":
        return observe(series.X, series.weights, series.exposure, likelihood)
    bounds = even_bounds(series.shape[1], n_blocks)
    if place == "blocks":
        return split_here(series, bounds).observe(likelihood)
    assert place == "dask"
    return on_workers(inside(), series, bounds, 2).observe(likelihood)


def memory_sources(series: Series, bounds: Any) -> list[MemorySource]:
    """The blocks of data in memory."""
    thin, weights = sparse.issparse(series.X), series.weights
    X: Any = sparse.csc_array(series.X) if thin else series.X
    found = []
    for i, j in pairwise(np.asarray(bounds).tolist()):
        part = sparse.csr_array(X[:, i:j]) if thin else np.ascontiguousarray(X[:, i:j])
        own = weights[:, i:j] if weights.shape[1] > 1 else weights
        found.append(MemorySource(Series(part, own, series.exposure)))
    return found


def split_here(series: Series, bounds: Any, *, n_jobs: int = 1) -> SplitSeries:
    """Data in memory as blocks in this process: the same as one block, up to rounding."""
    bounds = np.asarray(bounds)
    blocks = Blocks(memory_sources(series, bounds), bounds[:-1].tolist(), n_jobs=n_jobs)
    return SplitSeries.of(LocalExecutor(blocks, bounds), series.exposure, series.timeline)


def on_workers(
    client: Any, series: Series, bounds: Any, n_groups: int, **options: Any
) -> SplitSeries:
    """Data as blocks on the workers of a cluster, in so many groups."""
    from temporalnmf.cluster.dask import DaskExecutor, groups_of

    groups = groups_of(memory_sources(series, bounds), bounds, n_groups)
    executor = DaskExecutor(client, groups, bounds, **options)
    return SplitSeries.of(executor, series.exposure)


def random_problem(
    case: Case,
    seed: int,
    *,
    n_steps: int = 9,
    n_features: int = 7,
    n_components: int = FEW,
    smoothing: float | None = None,
    level: float = 10.0,
    place: str = "memory",
) -> tuple[Problem, np.ndarray, np.ndarray]:
    """A problem with a feasible start (W, H), the same wherever its data are."""
    rng = np.random.default_rng(seed)
    series = random_series(rng, case, n_steps, n_features)
    if smoothing is None:
        smoothing = 0.0 if seed % 2 else 0.3
    observations = placed(series, case.likelihood, place)
    problem = Problem(observations, case.chain, case.scale, smoothing)
    W = rng.gamma(2.0, size=(n_features, n_components))
    W[~active(problem)] = 0.0
    H = rng.gamma(0.8, level, size=(n_components, n_steps)) + 1e-3
    return problem, np.array(W / W.sum(axis=0), order=observations.order), H


def active(problem):
    """Features that get weight in W, bool (F,): see `Features.only_active`."""
    observations = problem.observations
    return observations.seen if problem.smoothing else observations.counted


def estimator(*given: Any, **flat: Any) -> TemporalNMF:
    """`TemporalNMF` with the options of solver and checkpoint as arguments of their own."""
    return TemporalNMF(*given, **nested(flat))


def update_weights(features: Any, H: Any, smoothing: float) -> None:
    """The W step of MM, in place, as `Solve.iterate` does it."""
    shared = features.observations.shared
    totals = features.multiply(H, smoothing) if shared else mm.w_root(features, H, smoothing)
    features.divide(totals)


def w_step(problem: Problem, W: Any, H: np.ndarray) -> Any:
    """The W step of MM; returns the weights after it."""
    features = problem.observations.hold(W)
    update_weights(features, H, float(problem.smoothing))
    return features.array()


def h_step(problem: Problem, W: Any, H: np.ndarray, aux: np.ndarray, *, held: int = 0) -> Any:
    """The H step of MM, in place."""
    return mm.h_step(problem, problem.observations.hold(W), H, aux, held=held)
