"""Expected parts of components in counts, summed up for the evidence of the smoothing (W4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import Array

# Ranges of counts: single ones, then ranges that grow by this factor.
_SINGLE, _GROWTH, _MOST = 64, 1.05, 1e18
_LARGE = _SINGLE * _GROWTH ** np.arange(np.log(_MOST / _SINGLE) / np.log(_GROWTH))
EDGES = np.concatenate([np.arange(_SINGLE), _LARGE, [_MOST]])


class Parts(NamedTuple):
    """Sums over features of expected parts y (F′, K); those of blocks add up.

    Attributes
    ----------
    n_features : array, ()
        Number of features with any observed entry, F′.
    totals : array, (K,)
        Σ_f y.
    tails : array, (R,)
        Σ_fk of what y has within each range between `EDGES`.
    """

    n_features: Array
    totals: Array
    tails: Array


def parts_of(y: Array, n_features: int) -> Parts:
    """Sums of parts.

    Examples
    --------
    >>> parts_of(np.array([[0.25, 3.5], [1.25, 0.0]]), 2).tails[:5]
    array([2.25, 1.25, 1.  , 0.5 , 0.  ])
    """
    flat = np.minimum(y.ravel(), EDGES[-1])
    last = len(EDGES) - 2
    which = np.minimum(np.searchsorted(EDGES, flat, side="right") - 1, last)
    n = np.bincount(which, minlength=last + 1)
    inside = np.bincount(which, flat - EDGES[which], minlength=last + 1)
    beyond = n.sum() - np.cumsum(n)
    tails = inside + beyond * np.diff(EDGES)
    return Parts(np.array(float(n_features)), np.asarray(y.sum(axis=0)), tails)
