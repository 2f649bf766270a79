"""Chaining on the shape of a Gamma distribution."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy import optimize, stats

from .._typing import Array, Generator, Law, Pair
from ..kernels.floor import FLOOR
from ..kernels.roots import _quadratic_root, _shape_equation, _shape_root
from ..kernels.rows import three
from ..kernels.special import gamma_constant, gamma_excess
from ..kernels.variates import crt, slice_step
from ..kernels.variates.paths import (
    blocks,
    counted,
    gamma_draw,
    log_gamma_density,
    lowest,
    scale,
    surrogate,
)
from ..kernels.variates.shared import stirling_error
from .base import Chain, Kernels, Parameter, Row, Scale, dominate, lost_power, rows_of
from .process import CEILING, Moments
from .regime import Paths

# Numbers of a component: α, β, and s, which is 1 on the linear scale and 0 on the log scale.


@njit(cache=True, nogil=True, error_model="numpy")
def _terms(h: Array, z: Array, n: int, row: Row) -> tuple[float, float, float]:
    """(S), (S3), without the log Γ(1 + αh) of every step but the last."""
    alpha, beta, lost = row
    p, q = 0.0, 0.0
    if n > 0:  # arriving at n
        p -= lost
        q += beta
    if n < h.size - 1:  # leaving n, log Γ(αh) = log Γ(1 + αh) − log(αh)
        p += 1.0
        q -= alpha * math.log(beta * h[n + 1])
    if n > 0:
        p += alpha * h[n - 1]  # added last, after the ±1 have cancelled: αh may be tiny
    return p, q, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _minimiser(h: Array, z: Array, n: int, p: float, q: float, r: float, row: Row) -> float:
    if n < h.size - 1:
        return _shape_root(p, q, r, row[0], h[n])
    return _quadratic_root(p, q, r, h[n])


@njit(cache=True, nogil=True, error_model="numpy")
def _value(H: Array, Z: Array, rows: Array) -> float:
    total = 0.0
    for k in range(H.shape[0]):
        alpha, beta, lost = rows[k]
        for n in range(1, H.shape[1]):
            shape, after = alpha * H[k, n - 1], H[k, n]
            total += gamma_constant(shape) + gamma_excess(shape, beta * after)
            total += lost * math.log(after)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(
    H: Array, Z: Array, P: Array, Q: Array, R: Array, rows: Array, held: int, rounds: int
) -> None:
    for k in range(H.shape[0]):
        h, z, row = H[k], Z[k], three(rows[k])
        for turn in range(2 * rounds):  # neighbours are coupled: alternate even and odd steps
            for n in range(held + turn % 2, h.size, 2):
                p, q, r = _terms(h, z, n, row)
                updated = _minimiser(h, z, n, P[k, n] + p, Q[k, n] + q, R[k, n] + r, row)
                h[n] = max(updated, FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def _expand(H: Array, Z: Array, rows: Array, slope: Array, diagonal: Array, off: Array) -> float:
    for k in range(H.shape[0]):
        h, z, row = H[k], Z[k], three(rows[k])
        for n in range(h.size):
            p, q, r = _terms(h, z, n, row)
            if n < h.size - 1:
                slope[k, n], diagonal[k, n], _ = _shape_equation(h[n], p, q, r, row[0])
                off[k, n] = -row[0] * h[n]
            else:
                slope[k, n], diagonal[k, n] = q * h[n] - p, q * h[n]
        dominate(diagonal[k], off[k])
    return _value(H, Z, rows)


# Posterior draws: counts backwards, activations forwards, then blocks.
#
# With h_n integrated out, m_n counts at exposure Q_n are negative binomial in α h_{n−1}; of these,
# l_n ~ CRT(m_n, α h_{n−1}) is a Poisson count of h_{n−1} at exposure α log(1 + Q_n/β) (Acharya et
# al. 2015, Schein et al. 2016). So from the last step backwards
#
#     m_{n−1} = y_{n−1} + l_n,     Q_{n−1} = q_{n−1} + α log(1 + Q_n/β),
#
# and from the first step forwards h_n ~ Gamma(α h_{n−1} + m_n, β + Q_n).
#
# Blocks: with x = α h_n and h′ = h_{n+1}
#
#     p(h′ | h_n) = (β h′)^x e^{−β h′} / (Γ(x) h′),
#     log Γ(x) = (x − ½) log x − x + ½ log 2π + error(x).
#
# The volume cancels 1/h at the steps of the block. All but the error goes into the surrogate
# (`kernels/variates/paths.py`), with the terms
#
#     both steps inside    c x (log(β h′/x) + 1) + ½ log c − c β h′, no c log c,
#     leaving the block    c x (log(β h′/x) + 1) + ½ log c − c x log c,
#     arriving at it       α h_{n−1} log c − c β h_n, or a log c − c b h_1.


@njit(cache=True, nogil=True, error_model="numpy")
def _draw(
    rng: Generator, H: Array, Z: Array, Y: Array, Q: Array, rows: Array, first: Pair, held: int
) -> None:
    """Draw counts and activations, then move blocks of two or more steps."""
    (a, b), N = first, H.shape[1]
    counts, exposures = np.empty(N), np.empty(N)
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        h, y, q = H[k], Y[k], Q[k]
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
    rng: Generator, h: Array, y: Array, q: Array, alpha: float, beta: float, a: float, b: float,
    n: int, m: int,
) -> None:  # fmt: skip
    """A surrogate transition of h_n … h_m."""
    least = lowest(h, n, m)
    if least <= FLOOR:
        return
    power, rate = counted(h, y, q, n, m)
    power += alpha * h[n - 1] if n > 0 else a
    rate += beta * h[n] if n > 0 else b * h[n]
    end = min(m + 1, h.size - 1)  # c is in the Γ of transitions from h_j, n ≤ j < end
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
def _log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Log density given the first step."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(1, H.shape[1]):
            found[k] += log_gamma_density(H[k, n], alpha * H[k, n - 1], beta, FLOOR)


class Shape(Chain):
    """Noise like that of a count: large activations are smooth, small ones jump or die.

    Density: h_n | h_{n−1} ~ Gamma(α h_{n−1}, β), mean (α/β) h_{n−1}, variance (α/β²) h_{n−1}; flat
    prior on h_1. Domain: α, β > 0. With ``map_scale="linear"`` the density of a small last step
    is unbounded at zero and the step is clamped there. Not scale-free: α is in units of 1/h.

    Terms (S), (S3), plus log Γ(1 + αh) at every step but the last.
    Constants dropped: none.

    Parameters
    ----------
    alpha : float, array, "auto" or "learn", default="auto"
        Larger is smoother: the relative step-to-step spread is 1/√(α h) for β = α. "auto" makes
        it one tenth at the level of the data.
    beta : float, array, "auto" or "learn", default="auto"
        Rate. "auto" is β = α, which preserves the mean.

    Examples
    --------
    >>> Shape(alpha=2.0).resolve(level=1.0, n_components=1).beta
    2.0
    """

    name = "shape"
    grid = tuple({"alpha": f"{a}/level"} for a in (10, 100, 1000))
    draws_grid = ({"alpha": "100/level"}, {"alpha": "5000/level"}, {"alpha": "learn"})
    _growth = ("beta",)
    _per_unit = ("alpha", "beta")
    _kernels = Kernels(_terms, _value, _sweep, _expand, draw=_draw, log_law=_log_law)
    _auto = ("alpha", "beta")

    def __init__(self, alpha: Parameter = "auto", beta: Parameter = "auto") -> None:
        self.alpha = alpha
        self.beta = beta

    def _fill_auto(self, level: float) -> None:
        if isinstance(self.alpha, str):
            self.alpha = 100.0 / level
        if isinstance(self.beta, str):
            self.beta = self.alpha

    def _rows(self, n_components: int, scale: Scale) -> Array:
        return rows_of(n_components, self.alpha, self.beta, lost_power(scale))

    def _moments(self) -> Moments:
        alpha, beta = self._values("alpha", "beta")
        return Moments(slope=alpha / beta, linear=alpha / beta / beta)

    def _transition(self, h: Array, steps: float) -> Law | None:
        alpha, beta = self._values("alpha", "beta")
        return stats.gamma(alpha * h, scale=1.0 / beta) if steps == 1 else None

    def _step(self, h: Array, rng: np.random.Generator) -> tuple[Array, None]:
        alpha, beta = self._values("alpha", "beta")
        shape = alpha * h
        drawn = rng.standard_gamma(np.minimum(shape, CEILING)) / beta
        return np.where(shape > CEILING, alpha / beta * h, drawn), None  # no noise there

    def _paths(self) -> tuple[Paths, str]:
        rate = float(self.extinction_rate())
        if rate == 0.0:
            return Paths.COLLAPSE, ""
        return Paths.SPLIT, f"From h_1 = 1 it dies out with probability {math.exp(-rate):.2g}."

    def extinction_rate(self) -> Array:
        """u such that a path from h_1 dies out with probability exp(−u h_1), per component.

        E[exp(−u h_n) | h_{n−1}] = exp(−α log(1 + u/β) h_{n−1}), so exp(−u h_n) is a martingale for
        the largest root of u = α log(1 + u/β): zero for α ≤ β, where every path dies out.
        """
        alpha, beta = self._concrete()._values("alpha", "beta")
        return beta * np.vectorize(_extinction_root, otypes=[float])(alpha / beta)


def _extinction_root(growth: float) -> float:
    """The largest root of x = g log(1 + x); for g > 1 it is above g − 1 and below g²."""
    if growth <= 1.0:
        return 0.0
    return optimize.brentq(
        lambda x: x - growth * math.log1p(x), growth - 1.0, growth**2, xtol=1e-15 * growth
    )
