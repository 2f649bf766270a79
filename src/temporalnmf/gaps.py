"""Missing steps: which of them take part in a fit, and how the others are filled."""

from __future__ import annotations

import numpy as np

from .chains.base import Chain, Point, Scale
from .likelihoods.base import Array


def fitted_steps(observed: Array, chain: Chain, point: Point) -> Array:
    """Indices of the steps that take part in a fit.

    Gaps inside the series are part of a chain with dynamics; leading and trailing ones say
    nothing about the rest and are left out, except that `point="mode"` keeps trailing ones, as
    the paper does. Without dynamics only observed steps take part.
    """
    seen = np.flatnonzero(observed)
    if not chain.dynamic:
        return seen
    last = len(observed) - 1 if point == "mode" else seen[-1]
    return np.arange(seen[0], last + 1)


def fill_gaps(
    H: Array, kept: Array, n_steps: int, chain: Chain, point: Point, scale: Scale
) -> Array:
    """Activations (K, n_steps) of all steps from those (K, len(kept)) that were fitted.

    Without dynamics gaps are interpolated; trailing steps are forecast, leading ones filled
    backwards.
    """
    first, last = int(kept[0]), int(kept[-1])
    inside = np.arange(first, last + 1)
    filled = np.empty((len(H), n_steps))
    filled[:, inside] = H if chain.dynamic else [np.interp(inside, kept, row) for row in H]
    filled[:, :first] = chain.backcast(filled[:, first], first)
    ahead = n_steps - 1 - last
    filled[:, last + 1 :] = chain.point_forecast(filled[:, last], ahead, point, scale)
    return filled
