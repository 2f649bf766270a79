"""GaP, h_n ~ Gamma(α, β) with independent steps: known laws, and nothing to move in blocks."""

from __future__ import annotations

from typing import Any

from numba import njit

from ..._typing import Array
from ...kernels.floor import FLOOR
from ...kernels.rows import three
from .shared import gamma_draw, log_gamma_density


@njit(cache=True, nogil=True, error_model="numpy")
def draw(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """h_n ~ Gamma(α + y_n, β + q_n)."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        for n in range(held, H.shape[1]):
            H[k, n] = gamma_draw(rng, alpha + Y[k, n], beta + q[n])


@njit(cache=True, nogil=True, error_model="numpy")
def log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """The first step as all others."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(H.shape[1]):
            found[k] += log_gamma_density(H[k, n], alpha, beta, FLOOR)
