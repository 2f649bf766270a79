"""Rate, h_n ~ Gamma(α, β/h_{n−1}).

    p(h_n | h_{n−1}) = (β r)^α e^{−β r} / (Γ(α) h_n),   r = h_n/h_{n−1}.

A block scaled by c keeps the ratios inside of it, and its volume makes up for 1/h at its steps. So
log c has from the first step of the block c^α e^{−c β h_n/h_{n−1}}, or c^a e^{−c b h_1}; from what
follows c^{−α} e^{−β h_{m+1}/(c h_m)}; from the counts c^Σy e^{−c Σqh}. That makes c generalised
inverse Gaussian, or Gamma where nothing follows. A single step is a block too, so a round consists
of blocks.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from ..._typing import Array
from ...kernels.floor import FLOOR
from ...kernels.rows import three
from ...kernels.variates import gig
from .shared import blocks, counted, log_gamma_density, scale


@njit(cache=True, nogil=True, error_model="numpy")
def draw(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """Blocks, from single steps on."""
    N = H.shape[1]
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        h, y = H[k], Y[k]
        for n, m in blocks(rng, N, held, 0):
            index, rate = counted(h, y, q, n, m)
            if n > 0:
                index += alpha
                rate += beta * h[n] / h[n - 1]
            else:
                index += a
                rate += b * h[n]
            if m < N - 1:
                factor = gig(rng, index - alpha, 2.0 * rate, 2.0 * beta * h[m + 1] / h[m])
            else:
                factor = rng.standard_gamma(index) / rate
            scale(h, n, m, factor)


@njit(cache=True, nogil=True, error_model="numpy")
def log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Given the first step."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(1, H.shape[1]):
            found[k] += log_gamma_density(H[k, n], alpha, beta / H[k, n - 1], FLOOR)
