"""Shape, h_n ~ Gamma(α h_{n−1}, β): counts backwards, activations forwards, then blocks.

With h_n integrated out, m_n counts at exposure Q_n are negative binomial in α h_{n−1}; of these,
l_n ~ CRT(m_n, α h_{n−1}) is a Poisson count of h_{n−1} at exposure α log(1 + Q_n/β) (Acharya et
al. 2015, Schein et al. 2016). So from the last step back

    m_{n−1} = y_{n−1} + l_n,     Q_{n−1} = q_{n−1} + α log(1 + Q_n/β),

and from the first on h_n ~ Gamma(α h_{n−1} + m_n, β + Q_n).

Blocks: with x = α h_n and h′ = h_{n+1}

    p(h′ | h_n) = (β h′)^x e^{−β h′} / (Γ(x) h′),
    log Γ(x) = (x − ½) log x − x + ½ log 2π + error(x).

The volume makes up for 1/h at the steps of the block. All but the error goes into the surrogate
(`shared.py`), where log c has from

    both steps inside    c x (log(β h′/x) + 1) + ½ log c − c β h′, no c log c,
    leaving the block    c x (log(β h′/x) + 1) + ½ log c − c x log c,
    arriving at it       α h_{n−1} log c − c β h_n, or a log c − c b h_1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ..._typing import Array
from ...kernels.floor import FLOOR
from ...kernels.rows import three
from ...kernels.variates import crt, slice_step
from ...kernels.variates.shared import stirling_error
from .shared import blocks, counted, gamma_draw, log_gamma_density, lowest, scale, surrogate


@njit(cache=True, nogil=True, error_model="numpy")
def draw(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """Counts, activations, blocks from two steps on."""
    N = H.shape[1]
    counts, exposures = np.empty(N), np.empty(N)
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        h, y = H[k], Y[k]
        counts[N - 1], exposures[N - 1] = y[N - 1], q[N - 1]
        for n in range(N - 1, 0, -1):
            counts[n - 1] = y[n - 1] + crt(rng, counts[n], alpha * h[n - 1])
            exposures[n - 1] = q[n - 1] + alpha * math.log1p(exposures[n] / beta)
        if held == 0:
            h[0] = gamma_draw(rng, a + counts[0], b + exposures[0])
        for n in range(1, N):
            h[n] = gamma_draw(rng, alpha * h[n - 1] + counts[n], beta + exposures[n])
        for n, m in blocks(rng, N, held, 1):
            _move_block(rng, h, y, q, alpha, beta, a, b, n, m)


@njit(cache=True, nogil=True, error_model="numpy")
def _move_block(
    rng: Any, h: Array, y: Array, q: Array, alpha: float, beta: float, a: float, b: float,
    n: int, m: int,
) -> None:  # fmt: skip
    """A surrogate transition of h_n … h_m."""
    least = lowest(h, n, m)
    if least <= FLOOR:
        return
    power, rate = counted(h, y, q, n, m)
    power += alpha * h[n - 1] if n > 0 else a
    rate += beta * h[n] if n > 0 else b * h[n]
    end = min(m + 1, h.size - 1)  # transitions from h_j, n ≤ j < end, feel c in their Γ
    for j in range(n, end):
        power += 0.5
        rate += alpha * h[j] * (math.log(alpha * h[j] / (beta * h[j + 1])) - 1.0)
        if j < m:
            rate += beta * h[j + 1]
    twist = alpha * h[m] if m < end else 0.0
    p = (power, rate, 0.0, twist, least)
    u = slice_step(rng, surrogate, 0.0, p, 2.0 / math.sqrt(1.0 + power + twist))
    factor = math.exp(u)
    gained = 0.0
    for j in range(n, end):
        gained += stirling_error(alpha * h[j]) - stirling_error(alpha * h[j] * factor)
    if -rng.standard_exponential() < gained:
        scale(h, n, m, factor)


@njit(cache=True, nogil=True, error_model="numpy")
def log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Given the first step."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(1, H.shape[1]):
            found[k] += log_gamma_density(H[k, n], alpha * H[k, n - 1], beta, FLOOR)
