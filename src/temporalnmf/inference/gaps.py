"""Missing steps: their part in a fit, and how the others are filled."""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..chains.parameters import Scale
from ..chains.prior import ActivationPrior
from ..chains.process import CEILING, Point
from .config import Gaps
from .laplace import Posterior

# A mean below this share of another one cannot be scaled to it.
_NOTHING = 1e-200


def fitted_steps(observed: Array, chain: ActivationPrior, point: Point) -> Array:
    """Indices of the steps that take part in a fit.

    Gaps inside the series are part of a chain with dynamics; leading and trailing ones do not
    affect the rest and are left out, except that `point="mode"` keeps trailing ones, as
    the paper does. Without dynamics only observed steps take part.
    """
    seen = np.flatnonzero(observed)
    if not chain.dynamic:
        return seen
    last = len(observed) - 1 if point == "mode" else seen[-1]
    return np.arange(seen[0], last + 1)


def interpolates(chain: ActivationPrior, gaps: Gaps) -> bool:
    """Whether missing steps between observed ones are interpolated.

    The mode of log h splits a fall evenly among its transitions, so at a missing step it is the
    geometric mean of both sides: components that replace each other there are all next to nothing.
    """
    return not chain.dynamic or gaps == "interpolate"


def interpolated(H: Array, observed: Array, chain: ActivationPrior) -> Array:
    """H (K, N) with missing steps between observed ones (N,) interpolated."""
    seen, H = np.flatnonzero(observed), H.copy()
    inside = np.arange(seen[0], seen[-1] + 1)
    H[:, inside] = chain.between(H[:, seen], seen, inside)
    return H


def fill_gaps(
    H: Array,
    kept: Array,
    n_steps: int,
    chain: ActivationPrior,
    point: Point,
    scale: Scale,
    unit: float = 1.0,
) -> Array:
    """Activations (K, n_steps) of all steps from those (K, len(kept)) that were fitted in a unit.

    Without dynamics gaps are interpolated; trailing steps are forecast, leading ones filled
    backwards. Values are clipped to the range of simulated paths.
    """
    first, last = int(kept[0]), int(kept[-1])
    inside = np.arange(first, last + 1)
    filled = np.empty((len(H), n_steps))
    filled[:, inside] = H if chain.dynamic else chain.between(H, kept, inside)
    filled[:, :first] = chain.backcast(filled[:, first], first)
    ahead = n_steps - 1 - last
    state = chain.state_of(filled[:, : last + 1].T)
    filled[:, last + 1 :] = chain.point_forecast(state, ahead, point, scale)
    with np.errstate(over="ignore"):
        return np.clip(unit * filled, 1.0 / CEILING, CEILING)


def draw_steps(
    posterior: Posterior,
    kept: Array,
    n_steps: int,
    chain: ActivationPrior,
    n_draws: int,
    rng: np.random.Generator,
) -> Array:
    """Draws (n_draws, n_steps, K) of the activations of all steps, with the means of `fill_gaps`.

    Fitted steps are drawn jointly from their posterior. Trailing ones, and the future, are
    simulated by the chain; so are leading ones, backwards from the first fitted step, and scaled to
    the mean of `backcast`. Without dynamics a missing step has the distribution of the chain.
    """
    first, last, K = int(kept[0]), int(kept[-1]), posterior.activations.shape[1]
    draws = np.empty((n_draws, n_steps, K))
    draws[:, kept] = posterior.draw(n_draws, rng)
    inside = np.setdiff1d(np.arange(first, last + 1), kept)
    for n in inside:  # only without dynamics
        draws[:, n] = chain.sample_ahead(draws[:, first], 1, rng)[:, 0]
    if last + 1 < n_steps:
        state = chain.state_of(draws[:, : last + 1])
        draws[:, last + 1 :] = chain.sample_ahead(state, n_steps - 1 - last, rng)
    if first > 0:
        back = chain.sample_ahead(draws[:, first], first, rng)
        start = posterior.activations[0]
        wanted = chain.backcast(start, first).T[::-1]
        expected = chain.mean_ahead(start, first) if chain.dynamic else wanted
        lost = expected < _NOTHING * wanted  # paths that vanish have no spread
        known = np.isfinite(expected) & ~lost
        back *= np.divide(wanted, expected, out=np.ones_like(wanted), where=known)
        draws[:, :first] = np.where(lost, wanted, back)[:, ::-1]
    return draws
