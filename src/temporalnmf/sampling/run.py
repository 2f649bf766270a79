"""A fit by posterior draws: several runs, each from its own start, with matched components."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .. import registry
from .._typing import Array
from ..chains.base import Chain, First
from ..chains.rate import Rate
from ..checkpoints.file import CheckpointFile, when_saved
from ..data.series import AnySeries, Series
from ..effects.design import Design
from ..effects.drawn import DrawnEffects
from ..inference.config import Config
from ..inference.fitting import (
    Fitted,
    check_counted,
    check_size,
    effects_at_start,
    identity_of,
    machinery,
)
from ..inference.matching import match, stability
from ..inference.starts import start_factors
from ..messages.errors import ArgumentError
from ..messages.warning import warn
from ..objective import Problem
from ..observations import Observations
from ..observations.features import Features
from ..runtime.archives import LARGEST
from ..runtime.interrupts import Interrupt, between_sweeps
from ..runtime.states import NON_NEGATIVE, POSITIVE, StateError, arrays_of, restore, within
from ..runtime.threads import Threads
from ..solvers.monitor import Monitor, Progress
from .draws import PosteriorDraws, used_smoothing
from .effects import LearnedEffects
from .gibbs import COEFFICIENTS, FARTHEST, LEAST, Gibbs, Sweeps, check_counts
from .learning import SMOOTHING, LearnedChain, LearnedLikelihood, LearnedSmoothing, Parameters

# Maximum bytes of the components of all draws if `thin` is chosen automatically, and the minimum
# number of draws per run.
MEMORY = 2**28
_FEWEST_KEPT = 8
# Maximum bytes of the components of all draws for data in blocks.
_MOST_MEMORY = 2**31
# A start is a roughly solved posterior mode under this chain.
START = Rate(300.0)
_START_ITER, _START_TOL = 100, 1e-4
# Sweeps between two evaluations of the log posterior while tuning.
_EVALUATE = 10


class SplitCounts(AnySeries, Protocol):
    """Counts that are not in memory."""

    def check_counts(self) -> None:
        """Raise if there are weights other than 0 and 1, or values that are not whole numbers."""

    def sweeps(
        self,
        parameters: Parameters,
        start: Features,
        H: Array,
        first: First,
        seed: np.random.SeedSequence,
    ) -> Sweeps:
        """A run; the starting weights are dropped."""


def draw_factors(config: Config, series: AnySeries) -> Fitted:
    """Draw W and H from their posterior; see `TemporalNMF(solver="gibbs")`."""
    check_size(config, series)
    chain = config.chain
    if not chain.has_draws:
        known = (name for name in registry.CHAINS if name in registry.PROCESSES)
        raise ArgumentError(
            "chain", chain, ": solver='gibbs' has no draws for it.",
            f"Choose one of {', '.join(known)}, or use solver='accelerated'.",
        )  # fmt: skip
    kept = drawn_steps(series.observed, chain)
    used = series.take(kept)
    if not used.local:
        _check_room(config, series.shape[1])
    with machinery(config) as threads:
        observations = used.observe(config.likelihood.resolve(), threads)
        if isinstance(used, Series):
            check_counts(used)
        else:
            cast(SplitCounts, used).check_counts()
        check_counted(observations)
        sampler = _Sampler(config, series, kept, used, observations, chain, threads)
        store = sampler.all_runs()
        level = observations.level / config.n_components
        draws = _side_by_side(config, store, level, sampler.learned, sampler.thin, used.design)
        W = np.array(draws.flat("components").mean(axis=0, dtype=float).T)
        W /= W.sum(axis=0)  # draws are kept in single precision
        H = draws.flat("activations").mean(axis=0).T
        observations.use(draws.likelihood)
        mean = observations.hold(np.array(W, order=observations.order))
        saturated = observations.saturated
        if draws.of_likelihood:  # it was computed with other parameters
            saturated = used.saturated(draws.likelihood)
        divergence = max(mean.value(np.ascontiguousarray(H)) - saturated, 0.0)
    monitor = _history(config, draws, sampler.n_sweeps)
    runs = [observations.hold(run.mean(axis=0, dtype=float).T) for run in draws.components]
    numbers = np.arange(draws.n_draws)
    levels = draws.expected_steps(numbers, kept, series.n_steps)
    expected, effects = None, None
    if draws.effects is not None and series.design is not None:
        expected = (levels * draws.effects.factors(numbers, series.design)).mean(axis=0)
        effects = draws.effects.mean(series.design)
    fitted = Fitted(
        W=W,
        H=levels.mean(axis=0).T,
        kept=kept,
        chain=draws.chain if not draws.parameters else _mean_chain(draws),
        likelihood=draws.likelihood,
        monitor=monitor,
        objective=-float(draws.log_posterior.mean()),
        divergence=divergence,
        stability=stability(runs[0], runs[1:]),
        smoothing=used_smoothing(config.smoothing, draws),
        draws=draws,
        effects=effects,
        expected=expected,
    )
    for features in (mean, *runs):
        features.drop()
    when_saved(sampler.checkpoint.remove)
    return fitted


def _check_room(config: Config, n_features: int) -> None:
    """Raise if the draws do not fit into the memory of this process."""
    each = config.n_chains * config.n_components * n_features * 4
    _, n_kept = kept_draws(config, each)
    if n_kept * each > _MOST_MEMORY:
        raise ValueError(
            f"n_components={config.n_components}: {n_kept} draws of each of {config.n_chains} runs "
            f"for {n_features} features take {n_kept * each / 2**30:.1f} GB, and there is room for "
            f"{_MOST_MEMORY / 2**30:.1f} GB. Take fewer components, runs or draws, or use "
            f"solver='accelerated'."
        )


def drawn_steps(observed: Array, chain: Chain) -> Array:
    """Indices of the steps whose activations are drawn.

    Missing first steps are drawn, since the first activation has a prior; trailing ones are
    simulated from the last drawn step. Without dynamics, only observed steps are drawn.
    """
    seen = np.flatnonzero(observed)
    return np.arange(seen[-1] + 1) if chain.dynamic else seen


@dataclass
class _Position:
    """Progress of the runs of a fit."""

    run: int = field(metadata=NON_NEGATIVE)
    done: int = field(metadata=NON_NEGATIVE)  # sweeps of this run
    seeds: Array = field(metadata=NON_NEGATIVE)


@dataclass
class _Store:
    """The draws of all runs, (C, D, …), with zeros for later ones."""

    components: Array = field(metadata=NON_NEGATIVE)
    activations: Array = field(metadata=POSITIVE)
    smoothing: Array = field(metadata=NON_NEGATIVE)
    log_posterior: Array = field(metadata=within(-LARGEST))
    parameter: dict[str, Array] = field(
        metadata=within(np.exp(-2.0 * FARTHEST), np.exp(2.0 * FARTHEST))
    )
    likelihood: dict[str, Array] = field(metadata=POSITIVE)
    # Of effects, if there are any.
    coefficients: Array | None = field(default=None, metadata=COEFFICIENTS)
    strengths: Array | None = field(default=None, metadata=POSITIVE)
    moved: Array | None = field(default=None, metadata=within(0.0, 1.0))

    def put(self, run: int, draw: int, gibbs: Sweeps, log_posterior: float) -> None:
        self.components[run, draw] = gibbs.weights(np.float32).T
        self.activations[run, draw] = gibbs.activations.T
        self.smoothing[run, draw] = gibbs.parameters.smoothing.value
        self.log_posterior[run, draw] = log_posterior
        for name, values in self.parameter.items():
            values[run, draw] = getattr(gibbs.chain, name)
        for name, value in gibbs.parameters.likelihood.value.learned.items():
            self.likelihood[name][run, draw] = value
        if (effects := gibbs.parameters.effects) is not None:
            drawn = effects.value.coefficients, effects.value.strengths, effects.moved
            for values, now in zip(self.of_effects, drawn, strict=True):
                values[run, draw] = now

    @property
    def of_effects(self) -> list[Array]:
        """Coefficients, strengths and shares moved, if there are effects."""
        found = (self.coefficients, self.strengths, self.moved)
        return [array for array in found if array is not None]

    def restore(self, arrays: dict[str, Array], run: int, n_draws: int) -> None:
        """Restore all draws before draw `n_draws` of a run; raises if they are invalid."""
        drawn = np.zeros(self.smoothing.shape, dtype=bool)
        drawn[:run] = drawn[run, :n_draws] = True
        restore(self, arrays, "kept", drawn)
        if not np.all(np.abs(self.components[drawn].sum(axis=-1, dtype=float) - 1.0) <= 1e-4):
            raise StateError("its components do not sum to one")

    def keep(self, n_runs: int, n_draws: int) -> None:
        """Drop all but the first draws of the first runs."""
        names = ["components", "activations", "smoothing", "log_posterior"]
        if self.of_effects:
            names += ["coefficients", "strengths", "moved"]
        for name in names:
            setattr(self, name, getattr(self, name)[:n_runs, :n_draws])
        for name in ("parameter", "likelihood"):
            kept = {n: values[:n_runs, :n_draws] for n, values in getattr(self, name).items()}
            setattr(self, name, kept)


class _Sampler:
    """The runs of a fit, in sequence, each on all threads."""

    def __init__(
        self,
        config: Config,
        series: AnySeries,
        kept: Array,
        used: AnySeries,
        observations: Observations,
        chain: Chain,
        threads: Threads,
    ) -> None:
        self.config, self.series, self.kept, self.used = config, series, kept, used
        self.observations, self.chain, self.threads = observations, chain, threads
        F, N = observations.shape
        K, C = config.n_components, config.n_chains
        self.thin, D = kept_draws(config, C * K * F * 4)
        self.n_sweeps = config.n_tune + D * self.thin
        self.learned = LearnedChain(chain, observations.level, K)
        self.store = _Store(
            components=np.zeros((C, D, K, F), dtype=np.float32),
            activations=np.zeros((C, D, N, K)),
            smoothing=np.zeros((C, D)),
            log_posterior=np.zeros((C, D)),
            parameter={name: np.zeros((C, D, K)) for name in _moving(self.learned)},
            likelihood={name: np.zeros((C, D)) for name in observations.likelihood.learned},
        )
        if used.design is not None:
            terms, P = len(used.design.terms), used.design.columns.shape[1]
            self.store.coefficients = np.zeros((C, D, K, P))
            self.store.strengths, self.store.moved = np.zeros((C, D, terms)), np.zeros((C, D, 2))
        self.seeds = check_random_state(config.random_state).randint(2**31 - 1, size=4)
        identity = identity_of(config, series, self.seeds, ("n_draws", "n_tune", "n_chains"))
        identity["thin"] = self.thin
        self.checkpoint = CheckpointFile(config.checkpoint, identity, config.checkpoint_every)

    def all_runs(self) -> _Store:
        position, before = _Position(0, 0, self.seeds), self.checkpoint.read()
        if before is None:
            self.checkpoint.begin()
        else:
            with self.checkpoint.reading():
                self._restore(position, before)
        done = position.done
        for run in range(position.run, self.config.n_chains):
            with between_sweeps() as interrupt:
                gibbs = self._start(run)
                if before is not None:
                    with self.checkpoint.reading():
                        gibbs.restore(before, "state")
                    before = None
                enough = self._one_run(run, gibbs, done, interrupt)
                gibbs.drop()
            if enough:
                self._cut(run)
                break
            done = 0
        return self.store

    def _restore(self, position: _Position, arrays: dict[str, Array]) -> None:
        """Resume after the draws of a checkpoint."""
        restore(position, arrays)
        run, done = position.run, position.done
        if run >= self.config.n_chains or not 0 < done <= self.n_sweeps:
            raise StateError(f"it is of sweep {done} of run {run}")
        self.seeds = position.seeds
        self.store.restore(arrays, run, max(done - self.config.n_tune, 0) // self.thin)

    def _start(self, run: int) -> Sweeps:
        """A run from a posterior mode under `START`, with its own random start."""
        config, observations = self.config, self.observations
        root = np.random.SeedSequence([*self.seeds, run])
        of_start, of_draws = root.spawn(2)
        smoothing = config.smoothing
        learned = isinstance(smoothing, str)
        start = LearnedSmoothing(SMOOTHING if learned else float(smoothing), learned)
        chain = START.resolve(observations.level, config.n_components)
        likelihood = LearnedLikelihood(config.likelihood.resolve())
        # A mode that learns the dispersion may stop early, where all is dispersion.
        observations.use(likelihood.known)
        effects = effects_at_start(config, self.used)
        problem = Problem(observations, chain, "log", start.value, effects)
        rng = np.random.default_rng(of_start)
        features, H = start_factors(config, problem, self.series, self.kept, rng)
        if run > 0:
            # Each run has its own start, even if starting values were given.
            features, H = features.perturbed(rng), H * rng.gamma(2.0, 0.5, size=H.shape)
        solver = registry.create(registry.SOLVERS, "accelerated", "solver")
        result = solver.solve(problem, features, H, Monitor(_START_ITER, _START_TOL))
        learned_chain = LearnedChain(self.chain, observations.level, config.n_components)
        drawn = None if result.effects is None else LearnedEffects(result.effects)
        parameters = Parameters(learned_chain, start, likelihood, drawn)
        first = First(level=observations.level / config.n_components)
        if not isinstance(self.used, Series):
            split = cast(SplitCounts, self.used)
            return split.sweeps(parameters, result.features, result.H, first, of_draws)
        W = np.maximum(result.W, LEAST) * observations.seen[:, None]
        W /= W.sum(axis=0)
        return Gibbs(
            self.used, parameters, W, result.H, first, of_draws, self.threads, observations
        )

    def _one_run(self, run: int, gibbs: Sweeps, done: int, interrupt: Interrupt) -> bool:
        """Complete a run; true if the callback stops the fit."""
        config = self.config
        self.done = done
        for sweep in range(done + 1, self.n_sweeps + 1):
            gibbs.sweep()
            self.observations.between_iterations()
            drawn, rest = divmod(sweep - config.n_tune, self.thin)
            keep = drawn > 0 and rest == 0
            if keep or (sweep <= config.n_tune and sweep % _EVALUATE == 0):
                log_posterior = gibbs.log_posterior()
                if keep:
                    self.store.put(run, drawn - 1, gibbs, log_posterior)
                self.done = sweep
                if self._told(run, sweep, log_posterior, gibbs):
                    return True
            last = interrupt.pressed or sweep == self.n_sweeps
            if self.checkpoint.due or (last and self.checkpoint.path is not None):
                draws, state = arrays_of(self.store, "kept"), gibbs.state("state")
                position = arrays_of(_Position(run, sweep, self.seeds))
                self.checkpoint.write(draws | state | position)
            if interrupt.pressed:
                raise KeyboardInterrupt
        return False

    def _told(self, run: int, sweep: int, log_posterior: float, gibbs: Sweeps) -> bool:
        config = self.config
        if config.verbose and (sweep % config.verbose == 0 or sweep == self.n_sweeps):
            phase = "tuning" if sweep <= config.n_tune else "draws"
            print(
                f"run {run + 1}/{config.n_chains}  sweep {sweep:5d}/{self.n_sweeps}  {phase}  "
                f"log posterior {log_posterior:.8e}"
            )
        if config.callback is None:
            return False
        components, activations = gibbs.weights().T.view(), gibbs.activations.T.view()
        components.flags.writeable = activations.flags.writeable = False
        at = run * self.n_sweeps + sweep
        return bool(
            config.callback(Progress(at, -log_posterior, float("nan"), components, activations))
        )

    def _cut(self, run: int) -> None:
        """Keep the complete runs, or the draws of the first one."""
        if run > 0:
            self.store.keep(run, self.store.smoothing.shape[1])
            return
        n_draws = max(self.done - self.config.n_tune, 0) // self.thin
        if n_draws == 0:
            raise ValueError(
                f"The callback stopped the fit after {self.done} sweeps, before the first draw was "
                f"kept (n_tune={self.config.n_tune}, thin={self.thin})."
            )
        self.store.keep(1, n_draws)


def kept_draws(config: Config, bytes_each: int) -> tuple[int, int]:
    """Sweeps per kept draw, and the number of kept draws per run."""
    thin = config.thin or thinning(config.n_draws, bytes_each)
    return thin, max(config.n_draws // thin, 1)


def thinning(n_draws: int, bytes_each: int) -> int:
    """Sweeps per kept draw, so that components take at most `MEMORY`."""
    wanted = -(-n_draws * bytes_each // MEMORY)
    return max(min(wanted, n_draws // _FEWEST_KEPT), 1)


def _moving(learned: LearnedChain) -> list[str]:
    """Hyper-parameters that are learned, and those that depend on them."""
    if not learned.names:
        return []
    parameters = learned.chain.get_params().items()
    return [name for name, value in parameters if not isinstance(value, bool)]


def _side_by_side(
    config: Config,
    store: _Store,
    level: float,
    learned: LearnedChain,
    thin: int,
    design: Design | None,
) -> PosteriorDraws:
    """Draws with one order of components: by total activation in the first run, others matched."""
    first = store.components[0].mean(axis=0, dtype=float).T
    # Components with their own hyper-parameters keep their order in every run.
    bound = config.own_parameters
    if config.named_by_place:
        order = np.arange(first.shape[1])
    else:
        order = np.argsort(-store.activations[0].sum(axis=(0, 1)), kind="stable")
    for run in range(len(store.components)):
        mean = store.components[run].mean(axis=0, dtype=float).T
        places = match(first, mean)[0][order] if run and not bound else order
        store.components[run] = store.components[run][:, places]
        store.activations[run] = store.activations[run][..., places]
        for values in store.parameter.values():
            values[run] = values[run][:, places]
        if store.coefficients is not None:
            store.coefficients[run] = store.coefficients[run][:, places]
    likelihood = config.likelihood.resolve()
    for name, numbers in store.likelihood.items():
        setattr(likelihood, name, float(numbers.mean()))
    return PosteriorDraws(
        store.components, store.activations, store.parameter, store.smoothing,
        store.log_posterior, learned.chain.reordered(order), level, learned.names, thin,
        likelihood, store.likelihood,
        None if design is None else DrawnEffects(design, *store.of_effects),
    )  # fmt: skip


def _mean_chain(draws: PosteriorDraws) -> Chain:
    """The chain at the posterior means of its hyper-parameters."""
    chain = draws.chain.reordered(np.arange(draws.components.shape[2]))
    for name, values in draws.parameters.items():
        setattr(chain, name, values.mean(axis=(0, 1)))
    return chain


def _history(config: Config, draws: PosteriorDraws, n_sweeps: int) -> Monitor:
    """A monitor with the history and the verdict, as a solver has it."""
    C, D = draws.smoothing.shape
    monitor = Monitor(n_sweeps, 0.0)
    monitor.history = (-draws.log_posterior[0]).tolist()
    monitor.iterations = (config.n_tune + draws.thin * np.arange(1, D + 1)).tolist()
    monitor.iteration = n_sweeps
    monitor.converged = draws.diagnosis.ok
    runs = "one run" if C == 1 else f"{C} runs"
    each = "one draw" if D == 1 else f"{D} draws"
    monitor.reason = f"{runs} of {each}. {draws.diagnosis.verdict}"
    if not monitor.converged:
        warn(draws.diagnosis.verdict, ConvergenceWarning)
    return monitor
