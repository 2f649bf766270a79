"""HierShape, z_n ~ Poisson(β h_{n−1}) and h_n ~ Gamma(α + z_n, β).

    z_n given both steps ~ Bessel(α − 1, 2β √(h_{n−1} h_n)),
    h_n given z_n, z_{n+1}, y_n ~ Gamma(α + z_n + z_{n+1} + y_n, 2β + q_n).

Without z a transition is a non-central χ² law: with x = 2β √(h h′)

    p(h′ | h) = β (h′/h)^((α−1)/2) e^{−β (h + h′)} I_{α−1}(x)
              = β (h′/h)^((α−1)/2) e^{−β (√h′ − √h)²} I_{α−1}(x) e^−x.

Blocks feel this law; the next round begins by drawing z. For large x, √x I(x) e^−x is constant. All
but its logarithm goes into the surrogate (`shared.py`), where log c has from

    both steps inside    −½ log c − c β (√h′ − √h)²,
    leaving the block    −¼ log c − ½ (α − 1) log c − c β h_m + √c x,
    arriving at it       −¼ log c + ½ (α − 1) log c − c β h_n + √c x, or (a − 1) log c − c b h_1,
    the volume           length · log c.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from ..._typing import Array
from ...kernels.floor import FLOOR
from ...kernels.rows import three
from ...kernels.special import _log_bessel_scaled
from ...kernels.variates import bessel, slice_step
from .shared import blocks, counted, gamma_draw, lowest, scale, surrogate


@njit(cache=True, nogil=True, error_model="numpy")
def draw(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """z, activations, blocks from two steps on."""
    N = H.shape[1]
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        h, y, z = H[k], Y[k], Z[k]  # z[n] is of the transition from h[n] to h[n + 1]
        for n in range(1, h.size):
            z[n - 1] = bessel(rng, alpha - 1.0, 2.0 * beta * math.sqrt(h[n - 1] * h[n]))
        for n in range(held, h.size):
            shape, rate = y[n], q[n]
            if n > 0:
                shape += alpha + z[n - 1]
                rate += beta
            else:
                shape += a
                rate += b
            if n < h.size - 1:
                shape += z[n]
                rate += beta
            h[n] = gamma_draw(rng, shape, rate)
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
    root = 0.0
    power += m - n + 1.0
    for j in range(max(n - 1, 0), min(m + 1, h.size - 1)):
        x = 2.0 * beta * math.sqrt(h[j] * h[j + 1])
        if n <= j < m:
            power -= 0.5
            rate += beta * (h[j] + h[j + 1]) - x
        else:
            power -= 0.25
            rate += beta * (h[n] if j < n else h[m])
            root += x
    if n > 0:
        power += 0.5 * (alpha - 1.0)
    else:
        power += a - 1.0
        rate += b * h[n]
    if m < h.size - 1:
        power -= 0.5 * (alpha - 1.0)
    width = 2.0 / math.sqrt(1.0 + abs(power) + root)
    u = slice_step(rng, surrogate, 0.0, (power, rate, root, 0.0, least), width)
    factor = math.exp(u)
    gained = 0.0
    for j in range(max(n - 1, 0), min(m + 1, h.size - 1)):
        x = 2.0 * beta * math.sqrt(h[j] * h[j + 1])
        by = factor if n <= j < m else math.sqrt(factor)
        gained += _bessel_error(alpha - 1.0, x * by) - _bessel_error(alpha - 1.0, x)
    if -rng.standard_exponential() < gained:
        scale(h, n, m, factor)


@njit(cache=True, nogil=True, error_model="numpy")
def _bessel_error(nu: float, x: float) -> float:
    """log(√x I_ν(x) e^−x)."""
    return 0.5 * math.log(x) + _log_bessel_scaled(nu, x)


@njit(cache=True, nogil=True, error_model="numpy")
def log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Given the first step, z integrated out."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(1, H.shape[1]):
            before, after = math.sqrt(H[k, n - 1]), math.sqrt(H[k, n])
            found[k] += (
                math.log(beta)
                + (alpha - 1.0) * math.log(after / before)
                - beta * (after - before) ** 2
                + _log_bessel_scaled(alpha - 1.0, 2.0 * beta * before * after)
            )
