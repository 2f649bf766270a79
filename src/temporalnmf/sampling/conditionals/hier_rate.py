"""HierRate, z_n ~ Gamma(α_z, β_z h_{n−1}) and h_n ~ Gamma(α_h, β_h z_n).

    p(z, h_n | h_{n−1}) ∝ (z h_{n−1})^α_z (z h_n)^α_h e^{−z (β_z h_{n−1} + β_h h_n)} / (z h_n),
    z_n given both steps ~ Gamma(α_z + α_h, β_z h_{n−1} + β_h h_n).

A block scaled by c takes the z inside along, z → z/c: the products z h stay, and the volume makes
up for 1/(z h). So only the z at its ends have to be drawn, and log c has from its first step
c^α_h e^{−c β_h z_n h_n}, or c^a e^{−c b h_1}; from what follows c^α_z e^{−c β_z z_{m+1} h_m}; from
the counts c^Σy e^{−c Σqh}. That makes c Gamma. A single step is a block too, so a round consists of
blocks.

Without z a transition is a beta-prime law: with x = β_z h_{n−1} and x′ = β_h h_n

    p(h_n | h_{n−1}) = Γ(α_z + α_h)/(Γ(α_z) Γ(α_h)) (x/(x + x′))^α_z (x′/(x + x′))^α_h / h_n.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from ..._typing import Array
from ...kernels.rows import seven
from .shared import blocks, counted, gamma_draw, scale


@njit(cache=True, nogil=True, error_model="numpy")
def draw(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """Blocks, from single steps on: z at their ends, then c."""
    N = H.shape[1]
    for k in range(H.shape[0]):
        alpha_z, beta_z, alpha_h, beta_h, _, _, _ = seven(rows[k])
        h, y = H[k], Y[k]
        for n, m in blocks(rng, N, held, 0):
            shape, rate = counted(h, y, q, n, m)
            if n > 0:
                z = gamma_draw(rng, alpha_z + alpha_h, beta_z * h[n - 1] + beta_h * h[n])
                shape += alpha_h
                rate += beta_h * z * h[n]
            else:
                shape += a
                rate += b * h[n]
            if m < N - 1:
                z = gamma_draw(rng, alpha_z + alpha_h, beta_z * h[m] + beta_h * h[m + 1])
                shape += alpha_z
                rate += beta_z * z * h[m]
            scale(h, n, m, rng.standard_gamma(shape) / rate)


@njit(cache=True, nogil=True, error_model="numpy")
def log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Given the first step, z integrated out."""
    for k in range(H.shape[0]):
        alpha_z, beta_z, alpha_h, beta_h, _, _, _ = seven(rows[k])
        constant = math.lgamma(alpha_z + alpha_h) - math.lgamma(alpha_z) - math.lgamma(alpha_h)
        found[k] = 0.0
        for n in range(1, H.shape[1]):
            before, after = beta_z * H[k, n - 1], beta_h * H[k, n]
            total = before + after
            found[k] += (
                constant
                + alpha_z * math.log(before / total)
                + alpha_h * math.log(after / total)
                - math.log(H[k, n])
            )
