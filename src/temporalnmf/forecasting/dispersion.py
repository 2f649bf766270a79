"""Dispersion of counts around given means."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlog1py, xlogy

from .._typing import Array

_LOG_DISPERSIONS = (-7.0, 14.0)


def dispersion_of(x: Array, mean: Array) -> float:
    """Maximum-likelihood dispersion of counts.

    A Poisson whose rate is Gamma with variance dμ is a negative binomial with size μ/d.
    """

    def cost(log_dispersion: float) -> float:
        dispersion = np.exp(log_dispersion)
        size = mean / dispersion
        log_density = gammaln(x + size) - gammaln(size) - size * np.log1p(dispersion)
        log_density -= xlog1py(x, 1.0 / dispersion)
        return -float(np.mean(log_density))  # log x! is a constant

    poisson_cost = -float(np.mean(xlogy(x, mean) - mean))
    found = minimize_scalar(cost, bounds=_LOG_DISPERSIONS, method="bounded")
    return 0.0 if poisson_cost <= found.fun else float(np.exp(found.x))
