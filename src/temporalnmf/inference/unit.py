"""The unit of a fit.

The floor of the kernels is absolute, far below any data near one. Positive values, as in power
spectra, may have any unit: if their level is far from one, the unit of the fit is a power of two
near it, which causes no rounding. Counts have their own unit. Without it, the logarithm of the
level would be a constant of the objective, relative to which `tol` would be too large.
"""

from __future__ import annotations

import math

from ..likelihoods.base import Likelihood

# Levels outside this range need a unit.
_NEAR = 1e-3, 1e3


def unit_of(level: float, likelihood: Likelihood) -> float:
    """A power of two near the level of data or activations; 1 if none is needed.

    Examples
    --------
    >>> from temporalnmf.likelihoods import Exponential
    >>> unit_of(1e-150, Exponential()) * 2.0**498, unit_of(3.0, Exponential())
    (1.0, 1.0)
    """
    if likelihood.own_unit or not (0.0 < level < math.inf) or _NEAR[0] <= level <= _NEAR[1]:
        return 1.0
    return math.ldexp(1.0, round(math.log2(level)))
