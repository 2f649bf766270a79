"""Traces and ranks of scalar quantities over the posterior draws, for plots and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import kstwobign, rankdata

from .._typing import Array
from ..kernels.floor import FLOOR
from ..messages.errors import Arg, ArgumentError, Text
from .diagnostics import FEWEST, ess_bulk, rhat
from .draws import PosteriorDraws

# Points at which ranks are evaluated, and the simultaneous coverage of the band.
_PLACES, _INSIDE = 100, 0.95


class Trace(NamedTuple):
    """A scalar quantity of every draw."""

    name: str
    values: Array  # (n_runs, n_draws)
    rhat: float  # infinite if there are too few draws to compute it
    wide: bool  # positive, perhaps with a long tail: plot its logarithm


class Ranks(NamedTuple):
    """Empirical distribution functions of the ranks of each run, minus the uniform one.

    `reach` is half the width of the band that contains all runs with a probability of 95 % if they
    have the same distribution. It is based on effective sample sizes, so that slowly mixing runs
    are not taken for wrong ones.
    """

    at: Array  # (n,), ranks as fractions of all draws, 0 to 1
    excess: Array  # (n_runs, n), positive where a run has more small values than the others
    reach: float


def required_draws(draws: PosteriorDraws | None, solver: str, what: str) -> PosteriorDraws:
    """The draws of a fitted model; raises, naming the function `what`, if it has none."""
    if draws is None:
        remedy = Text("Fit the model with {gibbs}.", gibbs=Arg("solver", "'gibbs'"))
        raise ArgumentError("solver", solver, f": {what} needs posterior draws.", remedy)
    return draws


def traces(draws: PosteriorDraws, components: Sequence[int] | None = None) -> list[Trace]:
    """Traces of the density, the activations and the learned hyper-parameters.

    `components` are the indices to show. None takes, for each quantity, the component with the
    largest R-hat: if that one has converged, all have.
    """
    amounts = draws.activations.sum(axis=2)
    found = [
        _trace("log posterior", draws.log_posterior),
        _trace("all activations", amounts.sum(axis=2)),
    ]
    by_component = {name: draws.parameters[name] for name in draws.learned}
    if amounts.shape[2] > 1:  # else it is the same as all activations
        by_component = {"activation": amounts, **by_component}
    for name, values in by_component.items():
        each = [
            _trace(f"{name} of component {k + 1}", values[:, :, k], name != "activation")
            for k in (range(values.shape[2]) if components is None else components)
        ]
        found += [max(each, key=lambda trace: trace.rhat)] if components is None else each
    if np.ptp(draws.smoothing) > 0.0:
        found.append(_trace("smoothing", draws.smoothing, wide=True))
    found += [_trace(name, values, wide=True) for name, values in draws.of_likelihood.items()]
    if (effects := draws.effects) is not None:
        found += [
            _trace(f"strength of {effects.design.terms[t].name}", effects.strengths[..., t], True)
            for t in np.flatnonzero(effects.design.learned)
        ]
    return found


def _trace(name: str, values: Array, wide: bool = False) -> Trace:
    known = float(rhat(values)) if values.shape[1] >= FEWEST else np.inf
    return Trace(name, values, known, wide)


def ranks(values: Array) -> Ranks:
    """Ranks of values (n_runs, n_draws) of two or more runs."""
    C, D = values.shape
    share = rankdata(values).reshape(C, D) / (C * D)
    at = np.linspace(0.0, 1.0, _PLACES + 1)
    below = np.array([np.searchsorted(np.sort(run), at, side="right") for run in share]) / D
    # Run by run: disagreement between runs would lower the effective sample size of all.
    alone = [float(ess_bulk(run[None])) if D >= FEWEST else 1.0 for run in values]
    worth = float(np.clip(np.mean(alone), 1.0, D))
    # Relative to the pooled draws, a run is a Brownian bridge with this scale.
    reach = float(kstwobign.isf((1.0 - _INSIDE) / C)) * np.sqrt((1.0 - 1.0 / C) / worth)
    return Ranks(at, below - at, float(reach))


def one_step_on(
    draws: PosteriorDraws, which: Array, first: Array, rng: np.random.Generator
) -> Array:
    """Levels one step after `first` (S, n, K), simulated by the chains of the draws (S,)."""
    chain = draws.chain_at(np.repeat(which, first.shape[1]))
    path = chain.sample(1, 2, rng, np.maximum(first, FLOOR).reshape(1, -1))
    return path[0, 1].reshape(first.shape)
