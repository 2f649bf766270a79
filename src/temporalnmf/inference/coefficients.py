"""Effects at fixed components: their coefficients by Newton's method, their strengths by EM.

With D the data terms of (L1), Q the chain's part of the Hessian, X the columns and Λ the precisions
of the prior, the coefficients have the precision, levels integrated out by Laplace's approximation,

    S = XᵀDX + Λ − (DX)ᵀ (D + Q)⁻¹ (DX),                                                     (EF3)

and the M step for a term of P columns in K components, with a weak prior that counts as one
component of the usual strength σ₀, is

    σ² = P (σ₀² + Σ_kj (b_kj² + (S⁻¹)_jj)) / (P + K P).                                      (EF4)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from .._typing import Array
from ..chains.parameters import Scale
from ..chains.prior import ActivationPrior
from ..effects.effects import Effects
from ..kernels.banded import factor_upper, solve_lower, solve_upper
from ..kernels.floor import FLOOR
from .laplace import LEAST, DataPart, band_of

# The least strength, and the change of its logarithm that no longer matters.
_LEAST, _SETTLED = 1e-4, 0.05
# Most Newton steps, longest move of a logarithm in one, most halvings, and the decrease of the
# objective that ends them.
_STEPS, _LONGEST, _HALVINGS, _ENOUGH = 20, 2.0, 20, 1e-4
# Most numbers in memory for the coupling of coefficients and levels; with more, components are
# taken as independent of each other.
_MOST = 2 * 10**7


class Step(NamedTuple):
    """A Newton step, its slope, and the covariances (K, P, P) of the coefficients."""

    levels: Array  # (K, N), of their logarithms
    coefficients: Array  # (K, P)
    slope: float
    covariances: Array


def newton_step(
    effects: Effects, part: DataPart, H: Array, chain: ActivationPrior, scale: Scale = "log"
) -> Step:
    """The step for levels H and coefficients; `part` has the data terms for levels."""
    X, (K, N) = effects.design.columns, H.shape
    P, slopes, D, band = X.shape[1], *_factored(part, H, chain)
    of_levels = slopes + chain.expansion(H, scale).slope
    of_coefficients = slopes @ X + effects.precisions * effects.coefficients
    upper = solve_lower(band, of_levels.T.reshape(1, -1).copy())[0]
    step, covariances, moved = np.empty((K, P)), np.empty((K, P, P)), upper.copy()
    together = K * P * K * N <= _MOST
    for group in [np.arange(K)] if together else np.arange(K)[:, None]:
        rows = np.einsum("nlk,nj->kjnl", D[:, :, group], X).reshape(len(group) * P, -1)
        rows = solve_lower(band, np.ascontiguousarray(rows))
        S = np.einsum("nkl,ni,nj->kilj", D[:, group][:, :, group], X, X, optimize=True)
        S = S.reshape(len(rows), len(rows)) + np.diag(np.tile(effects.precisions, len(group)))
        inverse = _inverse(S - rows @ rows.T, float(effects.precisions.min()))
        found = -inverse @ (of_coefficients[group].ravel() - rows @ upper)
        moved += rows.T @ found
        step[group] = found.reshape(len(group), P)
        blocks = inverse.reshape(len(group), P, len(group), P)
        covariances[group] = np.einsum("kikj->kij", blocks)
    moved = -solve_upper(band, moved[None])[0].reshape(N, K).T
    slope = float(np.sum(of_levels * moved) + np.sum(of_coefficients * step))
    return Step(moved, step, slope, covariances)


def _factored(part: DataPart, H: Array, chain: ActivationPrior) -> tuple[Array, Array, Array]:
    """The slopes of the data terms in log levels, D (N, K, K), and the factor of D + Q.

    Far from the mode D is the expected curvature, and where neither data nor chain determine a
    level, a small precision is added.
    """
    K, nothing = len(H), np.zeros_like(H)
    for expected in (False, True):
        blocks, slopes = part(H, expected)
        diagonal = nothing if expected else slopes
        for ridge in (0.0, LEAST):
            band = band_of(blocks, diagonal, H, chain)
            band[-1] += ridge
            if factor_upper(band):
                return slopes, blocks + diagonal.T[:, :, None] * np.eye(K), band
    raise LinAlgError("The curvature of the posterior is not finite.")


def _inverse(S: Array, least: float) -> Array:
    """The inverse of a precision matrix that is at least that of the prior, up to rounding."""
    values, vectors = np.linalg.eigh(0.5 * (S + S.T))
    return np.asarray((vectors / np.maximum(values, least)) @ vectors.T)


def solve_coefficients(
    effects: Effects,
    part: Callable[[], DataPart],
    objective: Callable[[Array], float],
    H: Array,
    chain: ActivationPrior,
    scale: Scale,
) -> tuple[Array, Array]:
    """The mode of levels and of coefficients, which move in place, and their covariances.

    `objective` is that of levels at the present coefficients, `part` has its data terms.
    """
    value = objective(H)
    for _ in range(_STEPS):
        step, before = newton_step(effects, part(), H, chain, scale), effects.coefficients
        shift = (
            np.abs(step.levels).max(),
            np.abs(step.coefficients @ effects.design.columns.T).max(),
        )
        length = min(1.0, _LONGEST / max(*shift, _LONGEST))
        for _ in range(_HALVINGS):
            levels = np.maximum(H * np.exp(length * step.levels), FLOOR)
            effects.coefficients = before + length * step.coefficients
            new = objective(levels)
            if new < value:
                break
            length *= 0.5
        else:
            effects.coefficients = before
            return H, step.covariances
        H, gained, value = levels, value - new, new
        if gained < _ENOUGH:
            break
    return H, newton_step(effects, part(), H, chain, scale).covariances


def learned_strengths(effects: Effects, covariances: Array) -> Array:
    """(EF4) for the terms that are to be learned; the others keep theirs."""
    design, K = effects.design, len(effects.coefficients)
    second = effects.coefficients**2 + np.diagonal(covariances, axis1=1, axis2=2)
    sums = np.array([second[:, design.term_of == t].sum() for t in range(len(design.terms))])
    usual = np.array([term.usual for term in design.terms])
    found = np.sqrt(design.sizes * (usual**2 + sums) / (design.sizes * (1.0 + K)))
    given = np.array([term.strength != "learn" for term in design.terms])
    return np.where(given, effects.strengths, np.maximum(found, _LEAST))


def learn_effects(
    effects: Effects,
    part: Callable[[], DataPart],
    objective: Callable[[Array], float],
    H: Array,
    chain: ActivationPrior,
    scale: Scale,
    rounds: int,
) -> Array:
    """Rounds of EM, in place; returns the levels at the end. See `solve_coefficients`."""
    H, effects.covariances = solve_coefficients(effects, part, objective, H, chain, scale)
    for _ in range(rounds if effects.learns else 0):
        new = learned_strengths(effects, effects.covariances)
        largest = float(np.abs(np.log(new / effects.strengths)).max())
        effects.strengths = new
        H, effects.covariances = solve_coefficients(effects, part, objective, H, chain, scale)
        if largest < _SETTLED:
            break
    return H
