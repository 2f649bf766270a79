"""The unit in which a fit is done.

The floor of the kernels is an absolute number, far below any data that are near one. Positive
values, as in power spectra, may have any unit: if their level is far from one, a fit is done in
a power of two near it, which rounds nothing. Counts have their own unit. The logarithm of the unit
would also be a constant of the objective, beside which its changes look small to `tol`.
"""

from __future__ import annotations

import math

from ..likelihoods.base import Likelihood

# Levels from which on a unit is taken.
_NEAR = 1e-3, 1e3


def unit_of(level: float, likelihood: Likelihood) -> float:
    """A power of two near the level of data or activations; 1 where none is needed.

    Examples
    --------
    >>> from temporalnmf.likelihoods import Exponential
    >>> unit_of(1e-150, Exponential()) * 2.0**498, unit_of(3.0, Exponential())
    (1.0, 1.0)
    """
    if likelihood.own_unit or not (0.0 < level < math.inf) or _NEAR[0] <= level <= _NEAR[1]:
        return 1.0
    return math.ldexp(1.0, round(math.log2(level)))
