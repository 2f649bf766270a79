"""The smoothing of components by marginal likelihood, with W integrated out.

Given the parts y of components in the counts, columns of W with the prior Dirichlet(s, …) have the
posterior mean (y + s)/Σ(y + s), which is what (W3) computes from a pseudo-count of s, and columns
of parts are Dirichlet-multinomial:

    log p(y | s) = Σ_k [log Γ(Fs) − log Γ(Fs + Σ_f y)] + Σ_fk Σ_{j<y} log(s + j)              (W4)

The parts are those that the fit expects. A part of 2.3 stands for 2 or 3 counts with this mean: in
log Γ(s + y) itself, the many parts below one would count as features that two components share.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize
from scipy.special import gammaln

from ..chains.coordinates import WIDE, Prior
from ..observations.parts import EDGES, Parts

# The prior of log s.
SMOOTHING = 0.1
PRIOR = Prior(float(np.log(SMOOTHING)), WIDE)
# Farthest log s from the centre of its prior, in spreads.
_FARTHEST = 5.0
# A change of log s that no longer matters.
SETTLED = 0.02

# The middle count of a range, and the variance of the counts in it.
_MIDDLE = 0.5 * (EDGES[:-1] + EDGES[1:] - 1.0)
_VARIANCE = (np.diff(EDGES) ** 2 - 1.0) / 12.0


def log_evidence(s: float, parts: Parts) -> float:
    """(W4)"""
    n_features, totals, tails = parts
    whole = float(n_features) * s
    columns = len(totals) * gammaln(whole) - gammaln(whole + totals).sum()
    # The mean of log(s + j) over a range, by its Taylor series.
    return float(columns + tails @ (np.log(s + _MIDDLE) - 0.5 * _VARIANCE / (s + _MIDDLE) ** 2))


def best_smoothing(parts: Parts) -> float:
    """The most probable log s: (W4) plus its prior, maximised; as s."""

    def cost(x: float) -> float:
        return -log_evidence(float(np.exp(x)), parts) - float(PRIOR.log_density(np.asarray(x)))

    width = _FARTHEST * WIDE
    bounds = PRIOR.centre - width, PRIOR.centre + width
    found = optimize.minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-5})
    return float(np.exp(found.x))
