"""A bound of form (M) for 1 < β ≤ 2, where −log p grows like h^β: up to a multiple of x only.

A minimizer that lies farther is found again with a bound that reaches it. No pass over the data is
needed for that, and neither chains nor the update of W know of it.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array
from .base import Majorizer

# Bounds reach this much farther than to the minimum of the data term, so that the pull of a chain,
# or of Σ w = 1, seldom leads beyond.
ROOM = 1.05


class LocalBound:
    """(LB1) at x from the sums A and B of the `Formulas`: p = xP, q = P + B − A, r = 0.

    It bounds −log p up to xP/B if P ≥ max(A, B).
    """

    def __init__(self, A: Array, B: Array, x: Array) -> None:
        self.A, self.B, self.x = A, B, x
        self._P = ROOM * np.maximum(A, B)

    @property
    def majorizer(self) -> Majorizer:
        return Majorizer(self.x * self._P, self._P + self.B - self.A, np.zeros_like(self._P))

    @property
    def farthest(self) -> Array:
        """The largest values that are within reach."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(self.B > 0.0, self._P * self.x / self.B, np.inf))

    def beyond(self, new: Array) -> Array:
        """Where the new values are out of reach."""
        found: Array = self.B * new > self._P * self.x
        return found

    def widen(self, where: Array, new: Array, room: float) -> None:
        """(LB2): reach `room` times the new values there."""
        self._P[where] = room * self.B[where] * new[where] / self.x[where]
