"""Single numbers that are followed through the draws, for pictures and reports of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kstwobign, rankdata
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from ..kernels.floor import FLOOR
from .diagnostics import FEWEST, ess_bulk, rhat
from .draws import PosteriorDraws

# Places at which ranks are looked at, and how often all runs together stay inside their band.
_PLACES, _INSIDE = 100, 0.95


class Trace(NamedTuple):
    """One number of every draw.

    Attributes
    ----------
    name : str
    values : array, (n_runs, n_draws)
    rhat : float
        Infinite where there are too few draws to tell.
    wide : bool
        Whether it is positive and may have a long tail, so that one should look at its logarithm.
    """

    name: str
    values: Array
    rhat: float
    wide: bool


class Ranks(NamedTuple):
    """How each run lies among all: which share of it is below each rank, less what it should be.

    Attributes
    ----------
    at : array, (n,)
        Ranks as shares of all draws, 0 to 1.
    excess : array, (n_runs, n)
        Above zero where a run has more small values than the others.
    reach : float
        Half the width of the band that all runs stay in, with a probability of 95 %, if they draw
        from one law. It counts effective draws, so that slow runs are not taken for wrong ones.
    """

    at: Array
    excess: Array
    reach: float


def draws_of(model: Any, what: str) -> PosteriorDraws:
    """The draws of a fitted model, or an error that names what wants them."""
    check_is_fitted(model)
    draws: PosteriorDraws | None = model.posterior_
    if draws is None:
        raise ValueError(
            f"{what} needs posterior draws, and this model has none (solver={model.solver!r}): "
            f"fit it with solver='gibbs'."
        )
    return draws


def traces(draws: PosteriorDraws, components: Sequence[int] | None = None) -> list[Trace]:
    """What is worth following: density, level, activations and all that is learned.

    Parameters
    ----------
    draws : PosteriorDraws
    components : sequence of int, default=None
        Indices of those to follow one by one. None takes, of each kind of number, the component
        on which the runs agree least: if that one is settled, all are.
    """
    amounts = draws.activations.sum(axis=2)
    found = [
        _trace("log posterior", draws.log_posterior),
        _trace("all activations", amounts.sum(axis=2)),
    ]
    by_component = {name: draws.parameters[name] for name in draws.learned}
    if amounts.shape[2] > 1:  # one component is all there is
        by_component = {"activation": amounts, **by_component}
    for name, values in by_component.items():
        each = [
            _trace(f"{name} of component {k + 1}", values[:, :, k], name != "activation")
            for k in (range(values.shape[2]) if components is None else components)
        ]
        found += [max(each, key=lambda trace: trace.rhat)] if components is None else each
    if np.ptp(draws.smoothing) > 0.0:
        found.append(_trace("smoothing", draws.smoothing, wide=True))
    return found


def _trace(name: str, values: Array, wide: bool = False) -> Trace:
    known = float(rhat(values)) if values.shape[1] >= FEWEST else np.inf
    return Trace(name, values, known, wide)


def ranks(values: Array) -> Ranks:
    """Ranks of numbers (n_runs, n_draws), two runs or more, run by run."""
    C, D = values.shape
    share = rankdata(values).reshape(C, D) / (C * D)
    at = np.linspace(0.0, 1.0, _PLACES + 1)
    below = np.array([np.searchsorted(np.sort(run), at, side="right") for run in share]) / D
    # Each run by itself: runs that disagree would make all of them look slow.
    alone = [float(ess_bulk(run[None])) if D >= FEWEST else 1.0 for run in values]
    worth = float(np.clip(np.mean(alone), 1.0, D))
    # Against all draws, its own among them, a run is a Brownian bridge scaled by this.
    reach = float(kstwobign.isf((1.0 - _INSIDE) / C)) * np.sqrt((1.0 - 1.0 / C) / worth)
    return Ranks(at, below - at, float(reach))


def one_step_on(
    draws: PosteriorDraws, which: Array, first: Array, rng: np.random.Generator
) -> Array:
    """Simulated activations (S, n, K) one step after others, each under the chain of its draw.

    Parameters
    ----------
    draws : PosteriorDraws
    which : array of int, (S,)
    first : array, (S, n, K)
    rng : numpy Generator
    """
    chain = draws.chain_at(np.repeat(which, first.shape[1]))
    path = chain.sample(1, 2, rng, np.maximum(first, FLOOR).reshape(1, -1))
    return path[0, 1].reshape(first.shape)
