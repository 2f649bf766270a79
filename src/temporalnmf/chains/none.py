"""No prior: plain NMF."""

from __future__ import annotations

import numpy as np

from ..likelihoods.base import Array, Majorizer
from .base import Chain, Scale


class NoChain(Chain):
    """No prior on the activations: plain non-negative matrix factorization.

    Missing steps are interpolated and the last value is repeated in a forecast.

    Examples
    --------
    >>> import numpy as np
    >>> NoChain().forecast(np.array([2.0, 3.0]), steps=2, point="mean", scale="log")
    array([[2., 2.],
           [3., 3.]])
    """

    name = "none"
    dynamic = False

    def bottomless(self) -> bool:
        return False

    def value(self, H: Array, aux: Array, scale: Scale) -> float:
        return 0.0

    def terms(self, H: Array, aux: Array, scale: Scale) -> Majorizer:
        zero = np.zeros_like(H)
        return Majorizer(zero, zero, zero)
