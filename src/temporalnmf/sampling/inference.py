"""Activations of other data, with components and hyper-parameters as they were drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..fitting import check_observed, machinery
from ..initialisation import start_activations
from ..kernels.floor import FLOOR
from ..likelihoods.base import Array
from ..validation import Series
from .conditionals import First
from .draws import PosteriorDraws
from .gibbs import Gibbs
from .interrupts import between_sweeps
from .learning import Learned, Smoothing
from .run import drawn_steps

# Draws of components that activations are drawn for, at the most; sweeps for each of them, after
# those for the first. The components of the next draw are much like those of the last, but the
# level of a stiff chain takes some sweeps to follow.
_MOST = 100
_SWEEPS, _FIRST_SWEEPS = 10, 50


class Inferred(NamedTuple):
    """Activations (draws, n_steps, K) of a series, and the draws that they belong to.

    `expected` differs from `draws` in steps that follow from others by the chain: it has means.
    """

    numbers: Array
    draws: Array
    expected: Array


def infer_draws(
    model: Any, series: Series, *, continue_chain: bool = False, every: bool = False
) -> Inferred:
    """Draw activations of a series for components that were drawn.

    Parameters
    ----------
    model : TemporalNMF
        Fitted by draws.
    series : Series
    continue_chain : bool
        Whether the first step follows the last fitted one.
    every : bool
        Use all draws of the fit, not up to 100 of them.

    Returns
    -------
    Inferred
        The data of the fit, seen again, have the activations that were drawn with the components.
    """
    check_observed(series, continue_chain)
    posterior: PosteriorDraws = model.posterior_
    if not continue_chain and series.fingerprint() == model._fingerprint:
        every_draw, rng = np.arange(posterior.n_draws), np.random.default_rng(0)
        steps = model._kept, series.n_steps
        return Inferred(
            every_draw,
            posterior.steps(every_draw, *steps, rng),
            posterior.expected_steps(every_draw, *steps),
        )
    n = posterior.n_draws if every else min(posterior.n_draws, _MOST)
    numbers, rng = posterior.pick(n), np.random.default_rng(0)
    anchored = continue_chain and posterior.chain.dynamic
    since = len(model.activations_) - 1 - int(model._kept[-1])
    if not series.observed.any():
        ahead = since + series.n_steps
        return Inferred(
            numbers,
            posterior.paths_ahead(numbers, ahead, rng)[:, since:],
            posterior.means_ahead(numbers, ahead)[:, since:],
        )
    kept = drawn_steps(series.observed, posterior.chain)
    used = series.take(kept)
    drawn = _draw(
        model, used, numbers, posterior.to_last(numbers, since, rng) if anchored else None
    )
    here = posterior.only(numbers, drawn)
    every_step = np.arange(n)
    return Inferred(
        numbers,
        here.steps(every_step, kept, series.n_steps, rng),
        here.expected_steps(every_step, kept, series.n_steps),
    )


def _draw(model: Any, used: Series, numbers: Array, before: Array | None) -> Array:
    """Activations (draws, N, K); `before` (draws, K) stands before the first step."""
    posterior: PosteriorDraws = model.posterior_
    components = posterior.flat("components")
    K, held = components.shape[1], 0
    # Features that play no part tell nothing, also if they are seen for the first time now.
    unknown = np.logical_not(components[numbers].any(axis=(0, 1)))
    used = replace(used, X=_without(used.X, unknown))
    H = start_activations(used, K)
    if before is not None:
        used, H, held = used.anchored(), np.column_stack([before[0], H]), 1
    found = np.empty((len(numbers), H.shape[1] - held, K))
    with machinery(model) as workers, between_sweeps() as interrupt:
        gibbs = Gibbs(
            used,
            Learned(posterior.chain, K * posterior.level, K),
            components[numbers[0]].T,
            H,
            Smoothing(1.0, False),  # components stay
            First(level=posterior.level),
            np.random.SeedSequence(0),
            workers,
            held=held,
        )
        for i, number in enumerate(numbers):
            W = np.maximum(components[number].T.astype(float), FLOOR)
            gibbs.W = np.ascontiguousarray(W / W.sum(axis=0))
            gibbs.law.chain = posterior.chain_at(numbers[i : i + 1])
            if before is not None:
                gibbs.H[:, 0] = before[i]
            for _ in range(_SWEEPS if i else _FIRST_SWEEPS):
                gibbs.sweep(fixed_W=True)
            found[i] = gibbs.H[:, held:].T
            if interrupt.pressed:
                raise KeyboardInterrupt
    return found


def _without(X: Any, features: Array) -> Any:
    """X with zeros in some of its columns."""
    if not features.any():
        return X
    if sparse.issparse(X):
        return sparse.csr_array(X.multiply(~features))
    return np.where(features, 0.0, X)
