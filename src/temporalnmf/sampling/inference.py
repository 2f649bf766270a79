"""Draws of the levels of other data, or more steps, given drawn components and parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from .._typing import Array
from ..chains.base import First
from ..data.series import Series
from ..inference.config import Config
from ..inference.fitting import check_observed, machinery
from ..inference.starts import start_activations
from ..kernels.floor import FLOOR
from ..runtime.interrupts import between_sweeps
from ..runtime.threads import Threads
from .draws import PosteriorDraws
from .effects import LearnedEffects
from .gibbs import Gibbs
from .learning import LearnedChain, LearnedLikelihood, LearnedSmoothing, Parameters
from .run import drawn_steps

# For other data: maximum number of draws of components; sweeps for each, and for the first. The
# next components are similar, but the level of a stiff chain takes some sweeps to follow.
_MOST = 100
_SWEEPS, _FIRST_SWEEPS = 10, 50
# Sweeps for each draw of a longer series, whose start is nearly a posterior draw.
_FEW_SWEEPS = 5
_TINY = float(np.finfo(float).tiny)


class Inferred(NamedTuple):
    """Levels of the activations of a series, and the indices of their draws."""

    numbers: Array  # (draws,)
    draws: Array  # (draws, n_steps, K)
    expected: Array  # the same, with means in place of simulated steps


class FittedSteps(NamedTuple):
    """The steps of a fit."""

    kept: Array  # those that were drawn
    n_steps: int
    fingerprint: int  # of the data


def infer_draws(
    config: Config,
    posterior: PosteriorDraws,
    fitted: FittedSteps,
    series: Series,
    *,
    continue_chain: bool = False,
) -> Inferred:
    """Draw the levels of a series, given draws of the components and effects.

    With `continue_chain` the first step follows the last fitted one, whose drawn levels are
    fixed. For the data of the fit, the levels of the fit are returned.
    """
    check_observed(series, continue_chain)
    rng = np.random.default_rng(0)
    if not continue_chain and series.fingerprint() == fitted.fingerprint:
        return _all_steps(posterior, np.arange(posterior.n_draws), fitted.kept, series.n_steps, rng)
    numbers = posterior.pick(min(posterior.n_draws, _MOST))
    since = fitted.n_steps - 1 - int(fitted.kept[-1])
    if not series.observed.any():
        ahead = since + series.n_steps
        paths = posterior.paths_ahead(numbers, ahead, rng)[:, since:]
        return Inferred(numbers, paths, posterior.means_ahead(numbers, ahead)[:, since:])
    kept = drawn_steps(series.observed, posterior.chain)
    anchored = continue_chain and posterior.chain.dynamic
    before = posterior.to_last(numbers, since, rng) if anchored else None
    used = series.take(kept)
    drawn = posterior.only(numbers, _draw(config, posterior, used, numbers, before), used.design)
    return _all_steps(drawn, numbers, kept, series.n_steps, rng)


def _all_steps(
    draws: PosteriorDraws, numbers: Array, kept: Array, n_steps: int, rng: np.random.Generator
) -> Inferred:
    """All steps from draws of the steps `kept`; `numbers` are the indices of their components."""
    which = np.arange(draws.n_draws)
    paths = draws.steps(which, kept, n_steps, rng)
    return Inferred(numbers, paths, draws.expected_steps(which, kept, n_steps))


def redraw(config: Config, posterior: PosteriorDraws, whole: Series, kept: Array) -> PosteriorDraws:
    """The draws of a fit with activations of a longer series, drawn given all of its data.

    Draws of components W, effects and hyper-parameters θ are kept. Levels of a draw start at the
    old path, the last step repeated, times E[h | new data] / E[h | old data] over the previous
    draws of the run, and are updated in five sweeps (50 for the first draw of a run). Where new
    data carry no information, the start is a draw of p(H | W, θ, data) already; elsewhere it has
    about its mean and spread. `kept` are the steps to draw, see `drawn_steps`.
    """
    C, D, N, K = posterior.activations.shape
    if len(kept) == N:  # new steps without data do not change the others
        return posterior
    found = np.empty((C, D, len(kept), K))
    seed = np.random.SeedSequence(whole.n_steps)  # repeated appends must not reuse a stream
    used = _of_known_features(posterior, whole.take(kept))
    with machinery(config) as threads, between_sweeps() as interrupt:
        gibbs = _gibbs(posterior, used, start_activations(used, K), seed, threads)
        for run, draws in enumerate(posterior.levels):
            after, before = np.zeros((2, len(kept), K))
            for i, old in enumerate(draws):
                start = np.concatenate([old, np.repeat(old[-1:], len(kept) - N, axis=0)])
                factor = after / before if i else 1.0
                gibbs.H[:] = np.maximum(start * factor, _TINY).T
                _sweep(gibbs, posterior, run * D + i, _FEW_SWEEPS if i else _FIRST_SWEEPS)
                found[run, i] = gibbs.H.T
                after, before = after + found[run, i], before + start
                if interrupt.pressed:
                    raise KeyboardInterrupt
    return posterior.with_levels(found, used.design)


def _draw(
    config: Config, posterior: PosteriorDraws, used: Series, numbers: Array, before: Array | None
) -> Array:
    """Levels (draws, N, K); `before` (draws, K) are those before the first step."""
    K, held = posterior.activations.shape[3], 0
    used = _of_known_features(posterior, used)
    H = start_activations(used, K)
    if before is not None:
        used, H, held = used.anchored(), np.column_stack([before[0], H]), 1
    found = np.empty((len(numbers), H.shape[1] - held, K))
    with machinery(config) as threads, between_sweeps() as interrupt:
        gibbs = _gibbs(posterior, used, H, np.random.SeedSequence(0), threads, held=held)
        for i, number in enumerate(numbers):
            if before is not None:
                gibbs.H[:, 0] = before[i]
            _sweep(gibbs, posterior, int(number), _SWEEPS if i else _FIRST_SWEEPS)
            found[i] = gibbs.H[:, held:].T
            if interrupt.pressed:
                raise KeyboardInterrupt
    return found


def _gibbs(
    posterior: PosteriorDraws,
    series: Series,
    H: Array,
    seed: np.random.SeedSequence,
    threads: Threads,
    *,
    held: int = 0,
) -> Gibbs:
    """A sampler of levels, with the components and effects of the first draw."""
    W, K = posterior.flat("components")[0].T, len(H)
    chain = LearnedChain(posterior.chain, K * posterior.level, K)
    smoothing = LearnedSmoothing(1.0, False)  # components are fixed
    effects = None
    if posterior.effects is not None:
        assert series.design is not None, "a series for a model with effects has their columns"
        effects = LearnedEffects(posterior.effects.at(0, series.design))
    parameters = Parameters(chain, smoothing, LearnedLikelihood(posterior.likelihood), effects)
    first = First(level=posterior.level)
    return Gibbs(series, parameters, W, H, first, seed, threads, held=held)


def _sweep(gibbs: Gibbs, posterior: PosteriorDraws, number: int, sweeps: int) -> None:
    """Sweep levels, given the components, effects and hyper-parameters of one draw."""
    W = np.maximum(posterior.flat("components")[number].T.astype(float), FLOOR)
    gibbs.W = np.ascontiguousarray(W / W.sum(axis=0))
    gibbs.parameters.chain.chain = posterior.chain_at(np.array([number]))
    gibbs.parameters.likelihood.value = posterior.likelihood_at(number)
    effects = gibbs.parameters.effects
    if effects is not None and posterior.effects is not None:
        effects.value = posterior.effects.at(number, effects.design)
    for _ in range(sweeps):
        gibbs.sweep(fixed_W=True)


def _of_known_features(posterior: PosteriorDraws, series: Series) -> Series:
    """The series without counts of features that have no weight in any draw."""
    known = posterior.flat("components").any(axis=(0, 1))
    if known.all():
        return series
    if isinstance(series.X, np.ndarray):
        return replace(series, X=np.where(known, series.X, 0.0))
    return replace(series, X=sparse.csr_array(series.X.multiply(known)))
