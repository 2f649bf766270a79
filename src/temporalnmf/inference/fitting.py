"""What the estimator does with checked data: solve for both factors, or for activations alone.

Here data are V (F, N), components W (F, K) and activations H (K, N).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .. import registry
from .._typing import Array
from ..chains.base import Chain
from ..checkpoints.file import EVERY, Checkpoint, when_saved
from ..checkpoints.fits import FitKeeper
from ..data.series import AnySeries, Series
from ..kernels.floor import FLOOR, LEAST_LEVEL
from ..likelihoods.base import Likelihood
from ..messages.arguments import check_choice
from ..messages.warning import warn
from ..objective import Problem
from ..observations import Observations
from ..observations.features import Features
from ..runtime.compilation import announced, guarded
from ..runtime.interrupts import between_sweeps
from ..runtime.threads import Workers
from ..solvers.mm import FitResult
from ..solvers.monitor import Monitor
from . import matching
from .gaps import fill_gaps, fitted_steps
from .laplace import Posterior, laplace_of
from .starts import start_activations, start_factors
from .unit import unit_of

if TYPE_CHECKING:
    from ..sampling.draws import PosteriorDraws

# Fewer steps say nothing about movement in time.
_FEWEST_STEPS = 3

# Share of `tol` to which activations are solved at fixed components.
_INFERENCE_TOL = 1e-1


@dataclass(frozen=True)
class Fitted:
    """The result of a fit: W (F, K), H (K, N) with all gaps filled, and how it went.

    `kept` are the steps that took part; `stability` is None where there was one start only;
    `draws` is None for a posterior mode; `posterior` is there where nobody can ask the data later.
    W may be what is left of it in files: `ShardedComponents`.
    """

    W: Any
    H: Array
    kept: Array
    chain: Chain
    monitor: Monitor
    objective: float
    divergence: float
    stability: Array | None
    draws: PosteriorDraws | None = None
    posterior: Posterior | None = None


def check_parameters(model: Any) -> None:
    """Refuse parameters of the estimator that make no sense, before anything is done."""
    check_choice("map_scale", model.map_scale, ("log", "linear"))
    check_choice("point", model.point, ("mean", "mode"))
    check_choice("solver", model.solver, (*registry.SOLVERS, *registry.SAMPLERS))
    drawing = model.solver in registry.SAMPLERS
    for name, kind, least in (
        ("n_components", Integral, 1), ("n_init", Integral, 1), ("max_iter", Integral, 1),
        ("tol", Real, 0), ("smoothing", Real, 0), ("n_draws", Integral, 1), ("n_tune", Integral, 0),
        ("n_chains", Integral, 1), ("thin", Integral, 1), ("checkpoint_every", Real, 0),
    ):  # fmt: skip
        value = getattr(model, name)
        if (name == "thin" and value is None) or (name == "smoothing" and value == "learn"):
            continue
        number = isinstance(value, kind) and not isinstance(value, bool)
        if not number or not least <= float(value) < np.inf:
            what = "whole number" if kind is Integral else "number"
            word = ", or 'learn' with solver='gibbs'" if name == "smoothing" else ""
            raise ValueError(f"{name}={value!r}: expected a {what} of at least {least}{word}.")
    if drawing:
        _check_drawing(model)
    elif model.smoothing == "learn":
        raise ValueError(
            f"smoothing='learn' is for draws: use solver='gibbs', or give a number "
            f"(solver={model.solver!r})."
        )
    jobs = model.n_jobs
    whole = isinstance(jobs, Integral) and not isinstance(jobs, bool)
    if jobs is not None and not (whole and jobs):
        raise ValueError(
            f"n_jobs={jobs!r}: expected a number of threads, -1 for all cores, or None."
        )


def _check_drawing(model: Any) -> None:
    """Refuse what has no posterior to draw from."""
    solver = f"solver={model.solver!r}"
    if not model._likelihood().additive:
        raise ValueError(
            f"likelihood={model._likelihood().name!r}: {solver} draws for counts only, "
            f"likelihood='poisson'. Use solver='accelerated' for this one."
        )
    if chain_of(model).name == "none":
        raise ValueError(
            f"chain='none' is no prior, so there is no posterior to draw from ({solver}). Take "
            f"'gap' for steps that are independent of each other, or another chain."
        )
    if model.smoothing == 0:
        raise ValueError(
            f"smoothing={model.smoothing!r}: {solver} needs a proper prior on components. Give a "
            f"positive number, or 'learn'."
        )
    if model.point != "mean":
        raise ValueError(f"point={model.point!r}: draws have a mean and no mode ({solver}).")
    if model.thin is not None and model.thin > model.n_draws:
        raise ValueError(
            f"thin={model.thin} is larger than n_draws={model.n_draws}: nothing would be kept."
        )


def chain_of(model: Any) -> Chain:
    """The chain that the user gave, or named."""
    if isinstance(model.chain, Chain):
        return model.chain
    chain: Chain = registry.create(registry.CHAINS, model.chain, "chain")
    return chain


def fit_factors(model: Any, series: AnySeries) -> Fitted:
    """W and H: draws from their posterior, or its mode."""
    if model.solver in registry.SAMPLERS:
        draw: Callable[[Any, AnySeries], Fitted] = registry.load(registry.SAMPLERS[model.solver])
        return draw(model, series)
    return _best_mode(model, series)


def _best_mode(model: Any, series: AnySeries) -> Fitted:
    """Solve for W and H from every start and keep the lowest objective."""
    check_size(model, series)
    chain = chain_of(model)
    kept = fitted_steps(series.observed, chain, model.point)
    used = series.take(kept)
    unit = _unit(used, model._likelihood())
    used = used.in_unit(unit)
    with machinery(model) as workers:
        observations = used.observe(model._likelihood(), workers)
        check_counted(observations)
        level = unit * observations.level
        chain = chain.resolve(level, model.n_components)
        chain.check_level(level / model.n_components)
        chain = chain.in_unit(unit)
        chain.check("map", model.map_scale)
        problem = Problem(observations, chain, model.map_scale, float(model.smoothing))
        observations.check_room(model.n_components)
        seeds = check_random_state(model.random_state).randint(2**31 - 1, size=4)
        with _keeper(model, series, problem, seeds) as keeper:
            results = list(_starts(model, problem, series, kept, seeds, keeper, unit))
        best = min(results, key=lambda result: result.monitor.history[-1])
        others = [result.features for result in results if result is not best]
        stability = matching.stability(best.features, others)
        for features in others:
            features.drop()
        best, order = _in_order(model, best)
        features = best.features
        # The last word on H is what `transform` does with the same data, to the bit.
        problem = replace(problem, chain=best.chain)
        start = start_activations(used, model.n_components)
        H = _solve_activations(model, problem, features, start)
        objective = problem.objective(features, H)
        divergence = max(features.value(H) - observations.saturated, 0.0)
        posterior = None
        if not observations.local:
            posterior = _posterior_now(model, features, H, best.chain, unit)
        W = features.result()
        if keeper is not None:
            when_saved(keeper.remove)
    _warn(model, best.monitor, best.chain, H)
    filled = fill_gaps(H, kept, series.n_steps, best.chain, model.point, model.map_scale, unit)
    chain = best.chain.in_unit(1.0 / unit)
    if stability is not None:
        stability = stability[order]
    return Fitted(
        W, filled, kept, chain, best.monitor, objective, divergence, stability,
        posterior=posterior,
    )  # fmt: skip


def _posterior_now(
    model: Any, features: Features, H: Array, chain: Chain, unit: float
) -> Posterior | None:
    """The posterior of the activations, while the data can be asked."""
    if chain.name == "none":
        return None
    if model.map_scale != "log":
        problem = Problem(features.observations, chain, "log")
        H = _solve_activations(model, problem, features, H)
    return laplace_of(features.curvature, H, chain).in_unit(unit)


def infer_mode(model: Any, series: AnySeries, *, continue_chain: bool = False) -> Array:
    """The mode of the activations (K, N) of all steps at fixed components, missing ones filled."""
    chain, W = model.chain_, model.components_.T
    if not series.observed.any():
        last = model.activations_[-1]
        return chain.point_forecast(last, series.n_steps, model.point, model.map_scale)
    kept = fitted_steps(series.observed, chain, model.point)
    last = model.activations_[-1] if continue_chain and chain.dynamic else None
    if last is not None:
        kept = np.arange(kept[-1] + 1)  # the anchor stands before the first step
    used = series.take(kept)
    unit = _unit(used, model._likelihood())
    used, chain = used.in_unit(unit), chain.in_unit(unit)
    H = start_activations(used, W.shape[1])
    held = 0
    if last is not None:
        used, H, held = used.anchored(), np.column_stack([last / unit, H]), 1
    with machinery(model) as workers:
        observations = used.observe(model._likelihood(), workers)
        problem = Problem(observations, chain, model.map_scale)
        H = _solve_activations(model, problem, W, H, held=held)
    H = H[:, held:]
    return fill_gaps(H, kept, series.n_steps, chain, model.point, model.map_scale, unit)


def divergence_of(model: Any, series: Series, H: Array) -> float:
    """Divergence of the observed entries from components times activations H (K, N)."""
    unit = _unit(series, model._likelihood())
    with machinery(model) as workers:
        observations = series.in_unit(unit).observe(model._likelihood(), workers)
        features = observations.hold(np.array(model.components_.T, order=observations.order))
        return max(features.value(np.ascontiguousarray(H / unit)) - observations.saturated, 0.0)


def _unit(series: AnySeries, likelihood: Likelihood) -> float:
    """The unit that activations of a series are solved in."""
    if likelihood.additive:
        return 1.0
    seen = series.observed
    return unit_of(float(np.mean(series.totals[seen] / series.exposure[seen])), likelihood)


def check_counted(observations: Observations) -> None:
    """Refuse data that are zero throughout, or next to it."""
    if not observations.has_counts:
        raise ValueError(
            "X is zero wherever it is observed: there is nothing to factorize. Give at least one "
            "positive value."
        )
    if observations.level < LEAST_LEVEL:
        raise ValueError(
            f"X is next to zero: the total of a step, per unit of exposure, is "
            f"{observations.level:.3g} in the mean, and the least that can be told from zero is "
            f"{LEAST_LEVEL:g}. Give X, or exposure, in another unit."
        )


def check_observed(series: AnySeries, continue_chain: bool) -> None:
    """Refuse a series of its own without any data."""
    if not series.observed.any() and not continue_chain:
        raise ValueError(
            "X has no observed entry: there is nothing to infer from. If its rows follow "
            "the fitted ones, continue_chain=True forecasts them."
        )


@contextmanager
def machinery(model: Any) -> Iterator[Workers]:
    """Threads for a solve, and a word if the kernels have to be compiled."""
    with guarded(), announced(bool(model.verbose)), Workers(model.n_jobs) as workers:
        yield workers


def check_size(model: Any, series: AnySeries) -> None:
    n_steps, n_features = series.shape
    if n_steps < _FEWEST_STEPS:
        raise ValueError(
            f"X has n_samples={n_steps} time step(s), and a series needs at least "
            f"{_FEWEST_STEPS}. Rows are time steps: is X transposed?"
        )
    if not series.observed.any():
        raise ValueError(
            "X has no observed entry: everything is NaN or hidden by the mask. Check the mask, "
            "in which 1 or True means observed."
        )
    if model.n_components > max(n_steps, n_features):
        warn(
            f"n_components={model.n_components} is larger than both dimensions of X "
            f"{series.shape}: some components will be copies of others.",
        )


@contextmanager
def _keeper(
    model: Any, series: AnySeries, problem: Problem, seeds: Array
) -> Iterator[FitKeeper | None]:
    """Who keeps a fit, where there is a place for it."""
    store = problem.observations.store(model.checkpoint)
    if store is None:
        yield None
        return
    names = ("map_scale", "max_iter", "tol", "n_init", "point")
    identity = identity_of(model, series, seeds, names)
    every = EVERY if model.checkpoint is None else model.checkpoint_every
    file = Checkpoint(store.file, identity, every)
    keeper = FitKeeper(file, store, problem, model.n_components, seeds)
    with between_sweeps() if store.waits else nullcontext(keeper.interrupt) as keeper.interrupt:
        yield keeper


def identity_of(
    model: Any, series: AnySeries, seeds: Array, names: tuple[str, ...]
) -> dict[str, Any]:
    """What a fit depends on, by which its checkpoint is known; `names` are of parameters."""
    names = ("n_components", "solver", *names, "smoothing")
    found = {name: np.asarray(getattr(model, name)).tolist() for name in names}
    if model.warm_start and hasattr(model, "components_"):
        found["init"] = _checksum([model.components_, model.activations_])
    else:
        given = isinstance(model.init, tuple | list)
        found["init"] = _checksum(model.init) if given else model.init
    chain = chain_of(model)
    numbers = {name: np.asarray(value).tolist() for name, value in chain.get_params().items()}
    found |= {"chain": chain.name, "hyper-parameters": numbers}
    found |= {"likelihood": model._likelihood().name, "data": series.fingerprint()}
    if model.random_state is not None:  # else the seeds are those of the checkpoint
        found["random_state"] = seeds.tolist()
    return found


def _checksum(arrays: Iterable[Any]) -> int:
    """A number that changes with starting values."""
    found = 0
    for array in arrays:
        found = crc32(np.ascontiguousarray(array, dtype=float).view(np.uint8).data, found)
    return found


def _starts(
    model: Any,
    problem: Problem,
    series: AnySeries,
    kept: Array,
    seeds: Array,
    keeper: FitKeeper | None,
    unit: float,
) -> Iterator[FitResult]:
    solver = registry.create(registry.SOLVERS, model.solver, "solver")
    parent = np.random.default_rng(seeds if keeper is None else keeper.seeds)
    for i in range(model.n_init):
        (rng,) = parent.spawn(1)
        label = f"start {i + 1}/{model.n_init}  " if model.n_init > 1 else ""
        monitor = Monitor(model.max_iter, model.tol, model.verbose, model.callback, label)
        begun = keeper.begun(i) if keeper is not None else None
        W, H = begun or start_factors(model, problem, series, kept, rng, unit)
        if keeper is not None:
            keeper.begin(i, W)
        with nullcontext() if keeper is None else keeper.reading():
            result = solver.solve(problem, W, H, monitor, keeper=keeper)
        yield result


def named_by_place(model: Any) -> bool:
    """Whether components have to stay in their places, since the user named them by these.

    By starting values, by a warm start, or by hyper-parameters of their own.
    """
    given = model.chain.get_params().values() if isinstance(model.chain, Chain) else ()
    named = any(np.ndim(value) for value in given) or not isinstance(model.init, str)
    return named or (model.warm_start and hasattr(model, "components_"))


def _in_order(model: Any, result: FitResult) -> tuple[FitResult, Array]:
    """Components by total activation, largest first, and their former places."""
    if named_by_place(model):
        return result, np.arange(result.W.shape[1])
    order = np.argsort(-result.H.sum(axis=1), kind="stable")
    result.features.reorder(order)
    return replace(result, H=result.H[order], chain=result.chain.reordered(order)), order


def _solve_activations(
    model: Any, problem: Problem, W: Array | Features, H: Array, *, held: int = 0
) -> Array:
    """H (K, N) at fixed W, solved more tightly than a fit since it is cheap."""
    problem = replace(problem, smoothing=0.0)  # a constant here
    monitor = Monitor(model.max_iter, _INFERENCE_TOL * model.tol)
    solver = registry.create(registry.SOLVERS, model.solver, "solver")
    return solver.solve(problem, W, H, monitor, fixed_W=True, held=held).H


def _warn(model: Any, monitor: Monitor, chain: Chain, H: Array) -> None:
    if not monitor.converged and monitor.reason.startswith("max_iter"):
        warn(
            f"The fit did not converge: {monitor.reason}. Increase max_iter, or accept a "
            f"larger tol (now {model.tol:g}).",
            ConvergenceWarning,
        )
    if model.map_scale == "linear" and chain.bottomless() and np.any(H <= FLOOR):
        where = ", ".join(str(k + 1) for k in np.flatnonzero(np.any(H <= FLOOR, axis=1)))
        warn(
            f"Activations of component(s) {where} reached the floor {FLOOR:g}: on the linear "
            f"scale this objective can be lowered without end there, and the result depends "
            f"on the floor. map_scale='log' has no such places.",
        )
