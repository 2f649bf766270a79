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
from ..kernels.banded import factor_upper, inverse_of, solve_lower, solve_upper
from ..kernels.curvature import coupling, marginal_precision
from ..kernels.floor import FLOOR
from .laplace import LEAST, DataPart, band_of

# The least strength, and the change of its logarithm that no longer matters.
_LEAST, _SETTLED = 1e-4, 0.1
# Most Newton steps, longest move of a logarithm in one, and most halvings.
_STEPS, _LONGEST, _HALVINGS = 20, 2.0, 20
# Decreases of the objective, in nats, that end Newton's method: between rounds of EM, in the end.
_CLOSE, _ENOUGH = 0.1, 1e-4
# Most multiplications for the joint covariance of all coefficients; with more, components are taken
# as independent of each other.
_MOST = 10**9


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
    together = (K * P) ** 2 * K * N <= _MOST
    for group in [np.arange(K)] if together else np.arange(K)[:, None]:
        n = len(group)
        rows = solve_lower(band, coupling(D[:, :, group], X, K))
        inside = np.ascontiguousarray(D[:, group][:, :, group])
        S = marginal_precision(inside, X, rows, effects.precisions)
        inverse = _inverse(S, float(effects.precisions.min()))
        found = -inverse @ (of_coefficients[group].ravel() - rows @ upper)
        moved += rows.T @ found
        step[group] = found.reshape(n, P)
        blocks = inverse.reshape(n, P, n, P)
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
    inverse, sound = inverse_of(S)
    if sound:
        return np.asarray(inverse)
    values, vectors = np.linalg.eigh(S)
    return np.asarray((vectors / np.maximum(values, least)) @ vectors.T)


def solve_coefficients(
    effects: Effects,
    part: Callable[[], DataPart],
    objective: Callable[[Array], float],
    H: Array,
    chain: ActivationPrior,
    scale: Scale,
    enough: float = _ENOUGH,
) -> Array:
    """The levels at the mode of levels and coefficients, which move in place.

    `objective` is that of levels at the present coefficients, `part` has its data terms. Ends with
    a step that lowers it by less than `enough`; covariances are those before it.
    """
    value = objective(H)
    for _ in range(_STEPS):
        step, before = newton_step(effects, part(), H, chain, scale), effects.coefficients
        effects.covariances = step.covariances
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
            return H
        H, gained, value = levels, value - new, new
        if gained < enough and length == 1.0:
            break
    return H


def learned_strengths(effects: Effects, covariances: Array) -> Array:
    """(EF4) for the terms that are to be learned; the others keep theirs."""
    design, K = effects.design, len(effects.coefficients)
    second = effects.coefficients**2 + np.diagonal(covariances, axis1=1, axis2=2)
    sums = np.array([second[:, design.term_of == t].sum() for t in range(len(design.terms))])
    found = np.sqrt(design.sizes * (design.usual**2 + sums) / (design.sizes * (1.0 + K)))
    return np.where(design.learned, np.maximum(found, _LEAST), effects.strengths)


def learn_effects(
    effects: Effects,
    part: Callable[[], DataPart],
    objective: Callable[[Array], float],
    H: Array,
    chain: ActivationPrior,
    scale: Scale,
    rounds: int,
) -> Array:
    """Rounds of EM, in place; returns the levels at the mode. See `solve_coefficients`."""
    how = effects, part, objective
    for _ in range(rounds if effects.learns else 0):
        H = solve_coefficients(*how, H, chain, scale, _CLOSE)
        assert effects.covariances is not None
        new = learned_strengths(effects, effects.covariances)
        largest = float(np.abs(np.log(new / effects.strengths)).max())
        effects.strengths = new
        if largest < _SETTLED:
            break
    return solve_coefficients(*how, H, chain, scale)
