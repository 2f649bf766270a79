"""Learned hyper-parameters on the real line, and their priors.

A hyper-parameter that the user set to "learn" has one value per component and a weak prior around
the value it would have otherwise:

    log-normal, by default with a spread of e^2, so 95 % lie within a factor of 50;
    a rate β that determines growth (rate, hier_rate, shape): β/α log-normal, with e^(1/2);
    ρ of BGAR and ARG: uniform between 0 and 1.

Where both a shape α and its rate β are learned, the coordinate of β is that of the ratio β/α: the
ratio determines the level or the growth of a path. A β that is "auto" follows its α, as always.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from .._typing import Array
from .base import Chain

WIDE, GROWTH = 2.0, 0.5
# No data could tell odds beyond e^±30 apart: ρ stays strictly inside (0, 1).
_MOST_ODDS = 30.0


class Prior(NamedTuple):
    """Normal prior of a coordinate; a spread of None is the log odds of a uniform variable."""

    centre: float
    spread: float | None

    def log_density(self, x: Array) -> Array:
        """Log density up to a constant."""
        if self.spread is None:
            return -x - 2.0 * np.logaddexp(0.0, -x)
        return -0.5 * ((x - self.centre) / self.spread) ** 2


class Coordinates:
    """The chain as a function of the hyper-parameters to be learned, log θ or the log odds of ρ.

    Parameters
    ----------
    chain : Chain
        As the user gave it, perhaps with "auto" and "learn".
    level : float
        Level of the data: the mean of Σ_k h_kn.
    n_components : int

    Attributes
    ----------
    names : tuple of str
        Names of the learned hyper-parameters.
    priors : dict
        Priors of their coordinates.
    start : dict
        Centres of the priors, (K,) each.
    """

    def __init__(self, chain: Chain, level: float, n_components: int) -> None:
        started = chain.resolve(level, n_components, "draw")
        self._given, self._level = chain, level / n_components
        self.names = started._learned
        self.priors: dict[str, Prior] = {}
        for name in self.names:
            value = float(np.mean(np.asarray(getattr(started, name), dtype=float)))
            if name in type(chain)._fraction:
                self.priors[name] = Prior(float(logit(value)), None)
                continue
            spread = GROWTH if name in chain._growth else WIDE
            unit = self.unit_of(name)
            scale = 1.0 if unit is None else float(np.mean(getattr(started, unit)))
            self.priors[name] = Prior(float(np.log(value / scale)), spread)
        self.start = {
            name: np.full(n_components, prior.centre) for name, prior in self.priors.items()
        }

    def unit_of(self, name: str) -> str | None:
        """The learned shape in whose units a rate is measured, if any."""
        unit = self._given._measured_in.get(name)
        return unit if unit in self.names else None

    def at(self, coordinates: dict[str, Array]) -> Chain:
        """The chain with hyper-parameters at some coordinates, (K,) each."""
        chain = copy.copy(self._given)
        for name in self.names:
            x = coordinates[name]
            if name in type(chain)._fraction:
                setattr(chain, name, expit(np.clip(x, -_MOST_ODDS, _MOST_ODDS)))
                continue
            if (unit := self.unit_of(name)) is not None:
                x = x + coordinates[unit]
            setattr(chain, name, np.exp(x))
        chain._fill_auto(self._level)
        return chain
