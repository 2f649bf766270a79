"""The strengths of effects by marginal likelihood: EM with Laplace's approximation.

At fixed components, levels u = log h and coefficients b have a joint normal approximation. With D
the data terms of (L1), Q the rest of its Hessian, X the columns and Λ the precisions of the prior,
the coefficients of a component have the precision, levels integrated out,

    S = XᵀDX + Λ − (DX)ᵀ (D + Q)⁻¹ (DX),                                                     (EF2)

where coefficients of different components are taken as independent. The M step for a term of P
columns in K components, with a weak prior that counts as one term of the strength σ₀:

    σ² = P (σ₀² + Σ_kj (b_kj² + (S⁻¹)_jj)) / (P + K P).                                      (EF3)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError

from .._typing import Array
from ..chains.prior import ActivationPrior
from ..effects.effects import Effects
from ..kernels.banded import factor_upper, solve_lower
from .laplace import LEAST, DataPart, band_of

# σ₀: the strength for which the prior counts as one term.
TYPICAL = 0.1
# The least strength, and the change of a logarithm that no longer matters.
_LEAST, _SETTLED = 1e-4, 0.05


def covariances(effects: Effects, part: DataPart, H: Array, chain: ActivationPrior) -> Array:
    """S⁻¹ of (EF2) for each component, (K, P, P); `part` has the data terms for levels H."""
    X, (K, N) = effects.design.columns, H.shape
    blocks, slopes = part(H, True)
    D = blocks + np.maximum(slopes, 0.0).T[:, :, None] * np.eye(K)  # (N, K, K)
    band = band_of(blocks, np.maximum(slopes, 0.0), H, chain)
    band[-1] += LEAST
    if not factor_upper(band):
        raise LinAlgError("The curvature of the posterior is not finite.")
    found = np.empty((K, X.shape[1], X.shape[1]))
    for k in range(K):
        rows = (D[:, :, k] * X.T[:, :, None]).reshape(-1, N * K)  # (DX)ᵀ
        rows = solve_lower(band, rows)
        precision = X.T @ (D[:, k, k, None] * X) + np.diag(effects.precisions) - rows @ rows.T
        values, vectors = np.linalg.eigh(0.5 * (precision + precision.T))
        values = np.maximum(values, effects.precisions.min())  # rounding
        found[k] = (vectors / values) @ vectors.T
    return found


def learned_strengths(effects: Effects, covariance: Array) -> Array:
    """(EF3) for the terms that are to be learned; the others keep theirs."""
    design, K = effects.design, len(effects.coefficients)
    second = effects.coefficients**2 + np.diagonal(covariance, axis1=1, axis2=2)
    sums = np.array([second[:, design.term_of == t].sum() for t in range(len(design.terms))])
    sizes = design.sizes
    found = np.sqrt(sizes * (TYPICAL**2 + sums) / (sizes + K * sizes))
    return np.where(design.learned, np.maximum(found, _LEAST), effects.strengths)


def learn_strengths(
    effects: Effects,
    part: Callable[[], DataPart],
    solve: Callable[[Array], Array],
    H: Array,
    chain: ActivationPrior,
    rounds: int,
) -> Array:
    """Rounds of EM from levels H, moving effects in place; returns the levels at the end.

    `solve` finds the mode of levels and effects; `part` gives the data terms for levels.
    """
    for _ in range(rounds):
        new = learned_strengths(effects, covariances(effects, part(), H, chain))
        largest = float(np.abs(np.log(new / effects.strengths)).max())
        effects.strengths = new
        H = solve(H)
        if largest < _SETTLED:
            break
    return H
