"""No prior: plain NMF."""

from __future__ import annotations

from typing import Self

import numpy as np

from .._typing import Array
from .base import Chain, Scale
from .gap import GaP


class NoChain(Chain):
    """No prior on the activations: plain non-negative matrix factorization.

    Missing steps are interpolated and the last value is repeated in a forecast.

    Examples
    --------
    >>> import numpy as np
    >>> NoChain().point_forecast(np.array([2.0, 3.0]), steps=2)
    array([[2., 2.],
           [3., 3.]])
    """

    name = "none"
    grid = ({},)
    dynamic = False
    has_law = False
    _kernels = GaP._kernels._replace(draw=None)  # a power and a rate of zero

    def _concrete(self) -> Self:
        raise ValueError(
            "NoChain is plain NMF: it has no distribution to simulate, and no moments. Use GaP for "
            "steps that are independent of each other, or another chain."
        )

    def check_level(self, level: float) -> None:
        """Do nothing: there is no distribution to check."""

    def bottomless(self) -> bool:
        return False

    def _rows(self, n_components: int, scale: Scale) -> Array:
        return np.zeros((n_components, 3))
