"""Paths of activations given their counts, and the law of a path, a file per chain.

Counts of data, split over the components, make y_n ~ Poisson(q_n h_n) for each component on its
own, with q_n the exposure of step n (zero where it was not observed). Every chain starts at
h_1 ~ Gamma(a, b), proper, except those that have a law of their own there (docs/math.md).
The file of a chain has two compiled functions:

`draw` is a round, which draws all h_n from their conditional laws, with auxiliary variables z where
these make the laws known ones. Step by step a stiff chain would hardly move where nothing was
observed, nor would its level. So a round moves blocks as well, h_n … h_m → c h_n … c h_m: lengths
2, 4, 8 … from random places on, and the whole path. What is inside of a block stays in proportion,
so that c only feels the ends, and the counts. The density of log c is that of the moved path times
the volume c^length of the move (generalised Gibbs; Liu and Sabatti 2000).

`log_law` is log p(path | hyper-parameters), which hyper-parameters feel. Auxiliary variables that
a round begins by drawing anew are integrated out there. BGAR's are not drawn from scratch, so its
law is that of activations and retained parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._typing import Array
from ...chains.base import Chain
from ...chains.stationary import Stationary
from . import bgar, gap, hier_rate, hier_shape, rate, shape

# By the name of the chain.
LAWS = {
    "gap": gap,
    "rate": rate,
    "hier_rate": hier_rate,
    "shape": shape,
    "hier_shape": hier_shape,
    "bgar": bgar,
}


class First(NamedTuple):
    """Gamma(shape, shape/level) law of h_1: a shape, and the level it has on average.

    With a shape of 1/2 and the level of the data: anything from 0 to a few times that.
    """

    shape: float = 0.5
    level: float = 1.0


def draw_activations(
    chain: Chain, H: Array, Z: Array, Y: Array, q: Array, rng: np.random.Generator, first: First,
    *, held: int = 0,
) -> None:  # fmt: skip
    """One round for all components, in place.

    Parameters
    ----------
    chain : Chain
        With hyper-parameters that are numbers.
    H : array, (K, N)
    Z : array, (K, N−1)
        Auxiliary variables. Only those of BGAR, the log odds of what is retained, are remembered.
    Y : array, (K, N)
        Counts of each component.
    q : array, (N,)
        Exposures.
    rng : numpy Generator
    first : First
    held : {0, 1}
        Steps at the beginning that are known and stay: the path goes on from there.
    """
    a, b = first.shape, first.shape / first.level
    LAWS[chain.name].draw(rng, H, Z, Y, q, chain._rows(len(H), "log"), a, b, held)


def start_auxiliary(chain: Chain, H: Array) -> Array:
    """Auxiliary variables to start from, (K, N−1)."""
    return np.zeros((len(H), H.shape[1] - 1))


class Paths:
    """The law of paths under a chain with hyper-parameters that are numbers.

    Parameters
    ----------
    chain : Chain
    n_paths : int
        K: one path for each component of the chain.
    """

    def __init__(self, chain: Chain, n_paths: int) -> None:
        self._log_law, self._rows = LAWS[chain.name].log_law, chain._rows(n_paths, "log")
        self._log_odds = chain.name == "bgar"
        self._first = not isinstance(chain, Stationary)

    def given_first(self, H: Array, Z: Array) -> Array:
        """Log density (K,) of each path (N,), as hyper-parameters feel it.

        The first step counts for chains that have a law of their own there.
        """
        found = np.empty(len(H))
        self._log_law(H, Z, self._rows, found)
        return found

    def __call__(self, H: Array, Z: Array, first: First) -> Array:
        """The same as a density of (h, z), first step included; BGAR's parts by their log odds."""
        found = self.given_first(H, Z)
        if self._log_odds:
            found += bgar.log_volume(H, Z)
        if self._first:
            a, level = first
            found += (a - 1.0) * np.log(H[:, 0]) - a * H[:, 0] / level
        return found


def log_law(chain: Chain, H: Array, Z: Array) -> Array:
    """Log density (K,) of paths (K, N); see `Paths.given_first`."""
    return Paths(chain, len(H)).given_first(H, Z)
