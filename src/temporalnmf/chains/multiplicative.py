"""Chains that multiply by independent noise: h_n = h_{n−1} φ_n."""

from __future__ import annotations

import numpy as np

from .._typing import Array
from .base import Chain
from .process import CEILING, Moments
from .regime import Paths

# A smaller drift is zero up to rounding.
_ROUNDING = 1e-14


class Multiplicative(Chain):
    """h_n = h_{n−1} φ_n with independent, identically distributed φ_n: log h is a random walk.

    Subclasses define the mean of φ, its variance relative to the squared mean, the mean of log φ,
    and draws of log φ. Paths are simulated as sums of logarithms, so they can leave the range of
    doubles and return.
    """

    def _factor(self) -> tuple[Array, Array, Array]:
        """E φ, Var φ / (E φ)², E log φ."""
        raise NotImplementedError

    def _log_factors(
        self, shape: tuple[int, ...], rng: np.random.Generator
    ) -> tuple[Array, Array | None]:
        """Draws of log φ, and of log(z_n h_{n−1}) if there is an auxiliary variable z."""
        raise NotImplementedError

    def _moments(self) -> Moments:
        mean, relative, _ = self._factor()
        with np.errstate(over="ignore"):  # moments may be infinite
            return Moments(slope=mean, square=mean**2 * relative)

    def _paths(self) -> tuple[Paths, str]:
        mean, _, drift = self._factor()
        note = "" if np.isfinite(mean) else "The mean is infinite from the first step on."
        if abs(drift) < _ROUNDING:
            return Paths.WANDER, note
        return (Paths.EXPLODE if drift > 0.0 else Paths.COLLAPSE), note

    def _simulate(
        self, first: Array, n_steps: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        jumps, parts = self._log_factors((n_steps - 1, *first.shape), rng)
        walk = np.concatenate([np.zeros((1, *first.shape)), np.cumsum(jumps, axis=0)])
        logs = np.log(first) + walk
        paths = from_log(logs)
        paths[0] = first
        if parts is None:
            return paths, np.empty((0, *first.shape))
        return paths, from_log(parts - logs[:-1])


def from_log(logs: Array) -> Array:
    """exp(logs), at most `CEILING`."""
    return np.minimum(np.exp(np.minimum(logs, 700.0)), CEILING)  # CEILING < e^700 < ∞
