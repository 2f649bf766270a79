"""Fit both factors to checked data, or activations alone.

Here data are V (F, N), components W (F, K) and activations H (K, N).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .. import registry
from .._typing import Array
from ..chains.base import Chain
from ..chains.coordinates import Coordinates
from ..checkpoints.file import EVERY, CheckpointFile, when_saved
from ..checkpoints.fits import CheckpointWriter
from ..data.series import AnySeries, Series
from ..effects.effects import Effects
from ..kernels.floor import FLOOR
from ..likelihoods.base import Likelihood
from ..messages.warning import warn
from ..objective import Problem
from ..observations import Observations
from ..observations.features import Features
from ..runtime.compilation import announced, guarded
from ..runtime.interrupts import between_sweeps
from ..runtime.threads import Threads
from ..solvers.mm import FitResult
from ..solvers.monitor import Monitor
from . import matching
from .coefficients import learn_effects
from .config import AUTO, CLUMPED, Config, Factors, likelihood_of
from .gaps import fill_gaps, fitted_steps, interpolated, interpolates
from .laplace import DataPart, Posterior, data_part, laplace, of_levels
from .learning import ChainLearner, LearnedValues
from .smoothing import SETTLED, SMOOTHING, best_smoothing
from .starts import start_activations, start_factors
from .unit import unit_of

if TYPE_CHECKING:
    from ..sampling.draws import PosteriorDraws

# Fewer steps contain no information about movement in time.
_FEWEST_STEPS = 3

# Most rounds of EM for hyper-parameters of the chain, half as many after the most iterations for
# both factors that follow.
_ROUNDS, _MORE = 10, 100
# Rounds of EM for effects in a trial.
_BRIEF = 4
# Most rounds of EM for the smoothing.
_SMOOTHED = 5
# Counts with a smaller excess of their variance over their mean are Poisson; most steps to find it.
_LEAST_EXCESS, _TRIED = 0.1, 10
# Median distance of log totals from those of the data that counts which clump may have.
_FARTHEST_TOTALS = 0.15
# Share of `tol` to which activations are solved at fixed components.
_INFERENCE_TOL = 1e-1


@dataclass(frozen=True)
class Fitted:
    """The result of a fit: W (F, K), H (K, N) with all gaps filled, and its history.

    `kept` are the steps that took part; `stability` is None if there was only one start;
    `draws` is None for a posterior mode; `posterior` is set if the data cannot be read again later.
    `learned` has value and 90 % interval (K, 3) of each hyper-parameter that a mode learned.
    `smoothing` is the one that was used, or the mean of draws.
    `effects` of draws have the means of the coefficients, and `expected` are the means of the
    activations (N, K), which are not the products of means.
    W may be in files: `ShardedComponents`.
    """

    W: Any
    H: Array
    kept: Array
    chain: Chain
    likelihood: Likelihood
    monitor: Monitor
    objective: float
    divergence: float
    stability: Array | None
    smoothing: float
    draws: PosteriorDraws | None = None
    posterior: Posterior | None = None
    learned: dict[str, Array] = field(default_factory=dict)
    effects: Effects | None = None
    expected: Array | None = None

    def activations(self, levels: Array) -> Array:
        """Activations (N, K) from the levels."""
        if self.expected is not None:
            return self.expected
        return levels if self.effects is None else levels * self.effects.factors.T

    @property
    def factors(self) -> Factors:
        """Components (K, F), levels (N, K), and what belongs to them."""
        sharded = not isinstance(self.W, np.ndarray)
        components = self.W if sharded else np.ascontiguousarray(self.W.T)
        levels = np.ascontiguousarray(self.H.T)
        return Factors(components, levels, self.chain, self.likelihood, self.effects)


def fit_factors(config: Config, series: AnySeries) -> Fitted:
    """W and H: draws from their posterior, or its mode, the best of several starts."""
    if config.drawing:
        draw: Callable[[Config, AnySeries], Fitted] = registry.load(
            registry.SAMPLERS[config.solver]
        )
        return draw(config, series)
    check_size(config, series)
    kept = fitted_steps(series.observed, config.chain, config.point)
    used = series.take(kept)
    unit = _unit(used, config.likelihood)
    used = used.in_unit(unit)
    solver = registry.create(registry.SOLVERS, config.solver, "solver")
    with machinery(config) as threads:
        given, config = config, _resolved(config, used)
        problem = _problem(config, used, unit, threads)
        clumped = cache(partial(_clumped, problem, used))
        seeds = check_random_state(config.random_state).randint(2**31 - 1, size=4)
        results: list[FitResult] = []

        def problem_of(start: int) -> Problem:
            return problem if start < config.n_init else clumped()

        with _checkpoints(given, series, problem_of, seeds) as checkpoints:
            for start in _starts(config, problem, series, kept, seeds, checkpoints, unit):
                problem.observations.use(config.likelihood)
                fresh = replace(problem, effects=effects_at_start(config, used))
                with nullcontext() if checkpoints is None else checkpoints.reading():
                    results.append(solver.solve(fresh, *start, checkpoints=checkpoints))
            best, stability = _best(results)
            if config.automatic and isinstance(used, Series) and used.whole:
                problem, best = _if_clumped(config, problem, used, clumped, best, checkpoints)
        fitted = _finished(config, problem, used, best, stability, unit)
        if checkpoints is not None:
            when_saved(checkpoints.remove)
    _warn(config, fitted.monitor, fitted.chain, fitted.H)
    chain, point, scale = fitted.chain, config.point, config.map_scale
    H = fill_gaps(fitted.H, kept, series.n_steps, chain, point, scale, unit)
    effects = fitted.effects
    if effects is not None and series.design is not None:
        effects = effects.at(series.design)
    return replace(fitted, H=H, kept=kept, chain=chain.in_unit(1.0 / unit), effects=effects)


def _problem(config: Config, used: AnySeries, unit: float, threads: Threads) -> Problem:
    """The objective in a unit, with all parameters resolved to numbers."""
    observations = used.observe(config.likelihood, threads)
    check_counted(observations)
    level = unit * observations.level
    chain = config.chain.resolve(level, config.n_components)
    chain.check_level(level / config.n_components)
    chain = chain.in_unit(unit)
    chain.check("map", config.map_scale)
    observations.check_room(config.n_components)
    smoothing = SMOOTHING if config.smoothing == "learn" else float(config.smoothing)
    return Problem(observations, chain, config.map_scale, smoothing, effects_at_start(config, used))


def effects_at_start(config: Config, used: AnySeries) -> Effects | None:
    """The effects at the start of a solve: those of a warm start, if they are of the same terms."""
    if used.design is None:
        return None
    effects = Effects.start(used.design, config.n_components)
    before = None if config.previous is None else config.previous.effects
    if before is not None and before.design.terms == used.design.terms:
        effects.coefficients = before.coefficients
    return effects


def _best(results: list[FitResult]) -> tuple[FitResult, Array | None]:
    """The best of all starts, and how similar its components are to those of the others."""
    best = min(results, key=lambda result: result.monitor.history[-1])
    others = [result.features for result in results if result is not best]
    stability = matching.stability(best.features, others)
    for features in others:
        features.drop()
    return best, stability


def _resolved(config: Config, used: AnySeries) -> Config:
    """The parameters with the likelihood as an object with numbers.

    A warm start continues with the likelihood of the fit before, unless that does not suit.
    """
    likelihood, previous = config.likelihood.resolve(), config.previous
    if previous is None or not previous.likelihood.learns:
        return replace(config, likelihood=likelihood)
    kept = config.automatic and isinstance(used, Series) and used.whole
    if kept or (likelihood.learns and likelihood.name == previous.likelihood.name):
        return replace(config, likelihood=previous.likelihood, automatic=False)
    return replace(config, likelihood=likelihood)


def _clumped(problem: Problem, used: AnySeries) -> Problem:
    """The problem with a likelihood for counts that clump."""
    likelihood = likelihood_of(CLUMPED).resolve()
    observations = used.observe(likelihood, problem.observations.threads)
    return replace(problem, observations=observations)


def _excess(clumped: Problem, features: Features, H: Array) -> float:
    """How much more counts vary around their mean than Poisson counts, relative to it."""
    clumped.observations.use(likelihood_of(CLUMPED).resolve())
    value, excess, before = None, np.inf, np.inf
    for _ in range(_TRIED):
        value = clumped.learn_likelihood(features, H, value)
        before, excess = excess, clumped.likelihood.excess
        if excess < _LEAST_EXCESS or abs(excess - before) < 0.05 * excess:
            break
    return excess


def _if_clumped(
    config: Config,
    problem: Problem,
    used: Series,
    clumped: Callable[[], Problem],
    best: FitResult,
    checkpoints: CheckpointWriter | None,
) -> tuple[Problem, FitResult]:
    """A fit with a likelihood for counts that clump, from the given one; that one if they do not.

    From a random start, or an early one, such a likelihood may take all variation for dispersion.
    """
    if best.monitor.stopped:
        return problem, best
    begun = None if checkpoints is None else checkpoints.begun(config.n_init)
    other = replace(clumped(), effects=best.effects and best.effects.copy())
    features, H = begun or (other.observations.hold(best.W.copy(order="K")), best.H)
    if begun is None and _excess(other, features, H) < _LEAST_EXCESS:
        return problem, best
    if checkpoints is not None:
        checkpoints.begin(config.n_init, features)
    monitor = Monitor(config.max_iter, config.tol, config.verbose, config.callback, "clumps  ")
    solver = registry.create(registry.SOLVERS, config.solver, "solver")
    with nullcontext() if checkpoints is None else checkpoints.reading():
        found = solver.solve(other, features, H, monitor, checkpoints=checkpoints)
    # Poisson totals are those of the data. With others, single entries dominate the dispersion.
    before = replace(problem, effects=best.effects).activations(best.H)
    away = np.abs(np.log(other.activations(found.H).sum(axis=0) / before.sum(axis=0)))
    if np.median(away[used.observed]) > _FARTHEST_TOTALS and not monitor.stopped:
        return problem, best
    return other, found


def _finished(
    config: Config,
    problem: Problem,
    used: AnySeries,
    best: FitResult,
    stability: Array | None,
    unit: float,
) -> Fitted:
    """The result in the unit of the fit, components ordered by total activation."""
    problem.observations.use(best.likelihood)
    problem = replace(problem, effects=best.effects)
    learned = None
    if config.smoothing == "learn" and not best.monitor.stopped:
        problem, best = _smoothed(config, problem, best)
    if config.chain.learns:
        best, learned = _learned(config, problem, used, best, unit)
        problem = replace(problem, chain=best.chain)
    if best.effects is not None and not best.monitor.stopped:
        best = _with_effects(config, problem, used, best)
    best, order = _in_order(config, best)
    features, observations = best.features, problem.observations
    # The final H is identical to what `transform` returns for the same data.
    effects = None if best.effects is None else best.effects.copy(moving=False)
    problem = replace(problem, chain=best.chain, effects=effects)
    H = _solve_activations(config, problem, features, start_activations(used, config.n_components))
    objective = problem.objective(features, H)
    saturated = observations.saturated
    if best.likelihood.learns:  # it was computed with other parameters
        saturated = used.saturated(best.likelihood)
    divergence = max(features.value(problem.activations(H)) - saturated, 0.0)
    if interpolates(best.chain, config.gaps):
        H = interpolated(H, used.observed, best.chain)
    posterior = None
    if not observations.local:
        posterior = _posterior_now(config, problem, features, H, unit)
    return Fitted(
        W=features.result(),
        H=H,
        kept=np.arange(H.shape[1]),
        chain=best.chain,
        likelihood=observations.likelihood,
        monitor=best.monitor,
        objective=objective,
        divergence=divergence,
        stability=None if stability is None else stability[order],
        smoothing=problem.smoothing,
        posterior=posterior,
        learned={} if learned is None else learned.in_unit(1.0 / unit).reordered(order).table,
        effects=effects,
    )


def _smoothed(config: Config, problem: Problem, best: FitResult) -> tuple[Problem, FitResult]:
    """The fit with learned smoothing: EM, in rounds of a value and more iterations with it."""
    for _ in range(_SMOOTHED):
        smoothing = best_smoothing(best.features.parts(problem.activations(best.H)))
        settled = abs(np.log(smoothing / problem.smoothing)) < SETTLED
        problem = replace(problem, smoothing=smoothing)
        then = _continued(config, problem, best, "smoothed ")
        best = replace(best, H=then.H, likelihood=then.likelihood, effects=then.effects)
        if settled:
            break
    return problem, best


def _continued(config: Config, problem: Problem, best: FitResult, label: str) -> FitResult:
    """More iterations for both factors, in place, with other parameters."""
    solver = registry.create(registry.SOLVERS, config.solver, "solver")
    monitor = Monitor(min(_MORE, config.max_iter), config.tol, config.verbose, None, label)
    return solver.solve(problem, best.features, best.H, monitor)


def _learned(
    config: Config, problem: Problem, used: AnySeries, best: FitResult, unit: float
) -> tuple[FitResult, LearnedValues]:
    """The fit with learned hyper-parameters: EM at its components, more iterations, EM again."""
    level = unit * problem.observations.level
    coordinates = Coordinates(config.chain, level, config.n_components)
    features = best.features

    def part() -> DataPart:
        return _data_part(used, features, problem)

    def solve(problem: Problem, H: Array) -> Array:
        return _solve_activations(config, _still(problem), features, H)

    learner = ChainLearner(coordinates, unit, part, solve)
    H = learner.run(problem, best.H, _ROUNDS)
    if not best.monitor.stopped:
        moved = replace(best, H=H)
        then = _continued(config, replace(problem, chain=learner.chain()), moved, "learned  ")
        best = replace(best, likelihood=then.likelihood, effects=then.effects)
        H = learner.run(problem, then.H, _ROUNDS // 2)
    found = learner.result(problem, H)
    return replace(best, H=H, chain=found.chain), found


def _with_effects(config: Config, problem: Problem, used: AnySeries, best: FitResult) -> FitResult:
    """The fit with learned strengths of effects: EM at its components, more iterations, again."""
    assert best.effects is not None
    effects, features = best.effects.copy(), best.features
    problem = replace(problem, effects=effects)
    H, likelihood = best.H, best.likelihood
    if effects.learns and not config.brief:
        H = _learn_effects(problem, used, features, H, _ROUNDS)
        then = _continued(config, problem, replace(best, H=H), "effects  ")
        H, likelihood = then.H, then.likelihood
    H = _learn_effects(problem, used, features, H, _BRIEF if config.brief else 1)
    return replace(best, H=H, likelihood=likelihood, effects=effects)


def _learn_effects(
    problem: Problem, used: AnySeries, W: Features | Array, H: Array, rounds: int
) -> Array:
    """Levels at fixed components, with the mode and the strengths of effects, in place."""
    effects, observations = problem.effects, problem.observations
    if isinstance(W, np.ndarray):
        W = np.array(W, order=observations.order)
    features = observations.hold(W)
    assert effects is not None

    def part() -> DataPart:
        return _data_part(used, W, problem)

    def objective(H: Array) -> float:
        return problem.objective(features, H)

    return learn_effects(effects, part, objective, H, problem.chain, problem.scale, rounds)


def _data_part(used: AnySeries, W: Features | Array, problem: Problem) -> DataPart:
    """The data terms of (L1) for levels."""
    part: DataPart
    if isinstance(used, Series):
        W = W if isinstance(W, np.ndarray) else W.array()
        part = partial(data_part, used, W, problem.likelihood)
    else:
        assert not isinstance(W, np.ndarray)
        part = W.curvature
    return of_levels(part, problem.effects)


def _still(problem: Problem) -> Problem:
    """The problem with effects that solvers do not move."""
    effects = problem.effects
    return problem if effects is None else replace(problem, effects=effects.copy(moving=False))


def _posterior_now(
    config: Config, problem: Problem, features: Features, H: Array, unit: float
) -> Posterior | None:
    """The posterior of the levels, computed while the data are available."""
    chain = problem.chain
    if not (chain.has_law and features.observations.likelihood.has_law):
        return None
    if config.map_scale != "log":
        H = _solve_activations(config, replace(problem, scale="log"), features, H)
    return laplace(of_levels(features.curvature, problem.effects), H, chain).in_unit(unit)


def infer_mode(
    config: Config, fitted: Factors, series: AnySeries, *, continue_chain: bool = False
) -> Array:
    """The mode of the levels (K, N) of all steps at fixed components, missing ones filled."""
    chain, W = fitted.chain, fitted.components.T
    if not series.observed.any():
        state = chain.state_of(fitted.levels)
        return chain.point_forecast(state, series.n_steps, config.point, config.map_scale)
    kept = fitted_steps(series.observed, chain, config.point)
    last = fitted.levels[-1] if continue_chain and chain.dynamic else None
    if last is not None:
        kept = np.arange(kept[-1] + 1)  # the anchor precedes the first step
    used = series.take(kept)
    unit = _unit(used, fitted.likelihood)
    used, chain = used.in_unit(unit), chain.in_unit(unit)
    H = start_activations(used, W.shape[1])
    held = 0
    if last is not None:
        used, H, held = used.anchored(), np.column_stack([last / unit, H]), 1
    with machinery(config) as threads:
        observations = used.observe(fitted.likelihood, threads)
        effects = effects_at(fitted.effects, used)
        problem = Problem(observations, chain, config.map_scale, effects=effects)
        H = _solve_activations(config, problem, W, H, held=held)
    if interpolates(chain, config.gaps):
        known = np.concatenate([np.ones(held, dtype=bool), series.observed[kept]])
        H = interpolated(H, known, chain)
    H = H[:, held:]
    return fill_gaps(H, kept, series.n_steps, chain, config.point, config.map_scale, unit)


def infer_effects(
    config: Config, fitted: Factors, series: Series, rounds: int
) -> tuple[Array, Effects | None]:
    """The mode of levels (K, N) and of effects at fixed components, from a series."""
    kept = fitted_steps(series.observed, fitted.chain, config.point)
    used = series.take(kept)
    unit = _unit(used, fitted.likelihood)
    used, chain, W = used.in_unit(unit), fitted.chain.in_unit(unit), fitted.components.T
    with machinery(config) as threads:
        observations = used.observe(fitted.likelihood, threads)
        effects = None if used.design is None else Effects.start(used.design, W.shape[1])
        problem = Problem(observations, chain, config.map_scale, effects=effects)
        H = _solve_activations(config, problem, W, start_activations(used, W.shape[1]))
        if effects is not None:
            H = _learn_effects(problem, used, W, H, rounds)
    return fill_gaps(H, kept, series.n_steps, chain, config.point, config.map_scale, unit), effects


def effects_at(effects: Effects | None, series: AnySeries) -> Effects | None:
    """Fitted effects at the steps of a series."""
    if effects is None:
        return None
    assert series.design is not None, "a series for a model with effects has their columns"
    return effects.at(series.design)


def divergence_of(config: Config, fitted: Factors, series: Series, G: Array) -> float:
    """Divergence of the observed entries from fitted components times activations G (K, N)."""
    unit = _unit(series, fitted.likelihood)
    with machinery(config) as threads:
        observations = series.in_unit(unit).observe(fitted.likelihood, threads)
        features = observations.hold(np.array(fitted.components.T, order=observations.order))
        return max(features.value(np.ascontiguousarray(G / unit)) - observations.saturated, 0.0)


def _unit(series: AnySeries, likelihood: Likelihood) -> float:
    """The unit in which activations of a series are solved."""
    if likelihood.own_unit:
        return 1.0
    seen = series.observed
    return unit_of(float(np.mean(series.totals[seen] / series.exposure[seen])), likelihood)


def check_counted(observations: Observations) -> None:
    """Raise if all data are zero, or nearly so."""
    if not observations.has_counts:
        raise ValueError(
            "X is zero wherever it is observed: there is nothing to factorize. Give at least one "
            "positive value."
        )
    least, most = observations.likelihood.levels
    found = f"the mean total of a step, per unit of exposure, is {observations.level:.3g}"
    remedy = "Give X, or exposure, in another unit."
    if observations.level < least:
        raise ValueError(
            f"X is too close to zero: {found}, and anything below {least:g} counts as zero. "
            f"{remedy}"
        )
    if observations.level > most:
        name = observations.likelihood.name
        raise ValueError(f"X is too large for {name!r}: {found}, beyond {most:g}. {remedy}")


def check_observed(series: AnySeries, continue_chain: bool) -> None:
    """Raise if a new series has no data."""
    if not series.observed.any() and not continue_chain:
        raise ValueError(
            "X has no observed entry: there is nothing to infer from. If its rows follow "
            "the fitted ones, continue_chain=True forecasts them."
        )


@contextmanager
def machinery(config: Config) -> Iterator[Threads]:
    """Threads for a solve, and a message if kernels have to be compiled."""
    with guarded(), announced(bool(config.verbose)), Threads(config.n_jobs) as threads:
        yield threads


def check_size(config: Config, series: AnySeries) -> None:
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
    if config.n_components > max(n_steps, n_features):
        warn(
            f"n_components={config.n_components} is larger than both dimensions of X "
            f"{series.shape}: some components will be copies of others."
        )


@contextmanager
def _checkpoints(
    config: Config, series: AnySeries, problem_of: Callable[[int], Problem], seeds: Array
) -> Iterator[CheckpointWriter | None]:
    """The checkpoint writer, or None; `problem_of` a start."""
    store = problem_of(0).observations.store(config.checkpoint)
    if store is None:
        yield None
        return
    names = ("map_scale", "max_iter", "tol", "n_init", "point")
    identity = identity_of(config, series, seeds, names)
    every = EVERY if config.checkpoint is None else config.checkpoint_every
    file = CheckpointFile(store.file, identity, every)
    checkpoints = CheckpointWriter(file, store, problem_of, config.n_components, seeds)
    with between_sweeps() if store.waits else nullcontext(checkpoints.interrupt) as interrupt:
        checkpoints.interrupt = interrupt
        yield checkpoints


def identity_of(
    config: Config, series: AnySeries, seeds: Array, names: tuple[str, ...]
) -> dict[str, Any]:
    """Everything a fit depends on, to recognize its checkpoint; `names` are parameters."""
    names = ("n_components", "solver", *names, "smoothing")
    found = {name: np.asarray(getattr(config, name)).tolist() for name in names}
    if config.previous is not None:
        found["init"] = _checksum([config.previous.components, config.previous.levels])
    else:
        given = isinstance(config.init, tuple | list)
        found["init"] = _checksum(config.init) if given else config.init
    chain = config.chain
    numbers = {name: np.asarray(value).tolist() for name, value in chain.get_params().items()}
    found |= {"chain": chain.name, "hyper-parameters": numbers}
    likelihood = AUTO if config.automatic else config.likelihood.name
    found |= {"likelihood": likelihood, "data": series.fingerprint()}
    if series.design is not None:
        found["effects"] = ", ".join(map(repr, series.design.terms))
        found["columns of effects"] = _checksum([series.design.columns])
    if of_data := config.likelihood.get_params():
        found["parameters of the likelihood"] = of_data
    if config.random_state is not None:  # else the seeds are those of the checkpoint
        found["random_state"] = seeds.tolist()
    return found


def _checksum(arrays: Iterable[Any]) -> int:
    """Checksum of starting values."""
    found = 0
    for array in arrays:
        found = crc32(np.ascontiguousarray(array, dtype=float).view(np.uint8).data, found)
    return found


def _starts(
    config: Config,
    problem: Problem,
    series: AnySeries,
    kept: Array,
    seeds: Array,
    checkpoints: CheckpointWriter | None,
    unit: float,
) -> Iterator[tuple[Features, Array, Monitor]]:
    """Starting points W and H, each with the monitor of its solve."""
    parent = np.random.default_rng(seeds if checkpoints is None else checkpoints.seeds)
    for i in range(config.n_init):
        (rng,) = parent.spawn(1)
        label = f"start {i + 1}/{config.n_init}  " if config.n_init > 1 else ""
        monitor = Monitor(config.max_iter, config.tol, config.verbose, config.callback, label)
        begun = checkpoints.begun(i) if checkpoints is not None else None
        W, H = begun or start_factors(config, problem, series, kept, rng, unit)
        if checkpoints is not None:
            checkpoints.begin(i, W)
        yield W, H, monitor


def _in_order(config: Config, result: FitResult) -> tuple[FitResult, Array]:
    """Order components by total activation, largest first; also returns their old indices."""
    if config.named_by_place:
        return result, np.arange(len(result.H))
    effects = result.effects
    G = result.H if effects is None else result.H * effects.factors
    order = np.argsort(-G.sum(axis=1), kind="stable")
    result.features.reorder(order)
    effects = None if effects is None else effects.reordered(order)
    chain = result.chain.reordered(order)
    return replace(result, H=result.H[order], chain=chain, effects=effects), order


def _solve_activations(
    config: Config, problem: Problem, W: Array | Features, H: Array, *, held: int = 0
) -> Array:
    """H (K, N) at fixed W, to a smaller tolerance than a fit since it is cheap."""
    problem = replace(problem, smoothing=0.0)  # a constant here
    monitor = Monitor(config.max_iter, _INFERENCE_TOL * config.tol)
    solver = registry.create(registry.SOLVERS, config.solver, "solver")
    return solver.solve(problem, W, H, monitor, fixed_W=True, held=held).H


def _warn(config: Config, monitor: Monitor, chain: Chain, H: Array) -> None:
    if not monitor.converged and monitor.reason.startswith("max_iter"):
        warn(
            f"The fit did not converge: {monitor.reason}. Increase max_iter, or accept a "
            f"larger tol (now {config.tol:g}).",
            ConvergenceWarning,
        )
    if config.map_scale == "linear" and chain.bottomless() and np.any(H <= FLOOR):
        where = ", ".join(str(k + 1) for k in np.flatnonzero(np.any(H <= FLOOR, axis=1)))
        warn(
            f"Activations of component(s) {where} reached the floor {FLOOR:g}: on the linear "
            f"scale the objective is unbounded below there, and the result depends on the floor. "
            f"map_scale='log' avoids this."
        )
