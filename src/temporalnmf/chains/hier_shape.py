"""Chaining on the shape of a Gamma distribution through an auxiliary count."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy import stats

from .._typing import Array, Generator, Law, Pair
from ..kernels.floor import FLOOR
from ..kernels.roots import _quadratic_root
from ..kernels.rows import three
from ..kernels.special import _bessel, _bessel_ratio, _log_bessel_scaled, log_bessel_scaled
from ..kernels.variates import bessel, slice_step
from ..kernels.variates.paths import blocks, counted, gamma_draw, lowest, scale, surrogate
from .base import Chain, Kernels, Parameter, Row, Scale, dominate, lost_power, rows_of
from .process import CEILING, Moments
from .regime import Paths

# Numbers of a component: α, β, and s, which is 1 on the linear scale and 0 on the log scale.


@njit(cache=True, nogil=True, error_model="numpy")
def _argument(before: float, after: float, beta: float) -> float:
    """Argument x of the Bessel functions."""
    return 2.0 * beta * math.sqrt(before) * math.sqrt(after)  # their product may overflow


@njit(cache=True, nogil=True, error_model="numpy")
def _auxiliary(H: Array, Z: Array, rows: Array) -> None:
    """(HS0): E z = (x/2) I_α(x) / I_{α−1}(x)."""
    for k in range(H.shape[0]):
        alpha, beta = rows[k, 0], rows[k, 1]
        for n in range(1, H.shape[1]):
            x = _argument(H[k, n - 1], H[k, n], beta)
            Z[k, n - 1] = 0.5 * x * _bessel_ratio(alpha - 1.0, x)


@njit(cache=True, nogil=True, error_model="numpy")
def _terms(h: Array, z: Array, n: int, row: Row) -> tuple[float, float, float]:
    """(HS1)"""
    alpha, beta, lost = row
    p, q = 0.0, 0.0
    if n > 0:  # arriving at n
        p += alpha - lost + z[n - 1]
        q += beta
    if n < h.size - 1:  # leaving n
        p += z[n]
        q += beta
    return p, q, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _cost(before: float, after: float, log_bessel: float, row: Row) -> float:
    """−log p(h_n | h_{n−1}), given log(I_{α−1}(x) e^−x)."""
    alpha, beta, lost = row
    return (
        -math.log(beta)
        - 0.5 * (alpha - 1.0) * math.log(after / before)
        + beta * (math.sqrt(after) - math.sqrt(before)) ** 2  # β(h + h′) − x
        - log_bessel
        - (1.0 - lost) * math.log(after)
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _value(H: Array, Z: Array, rows: Array) -> float:
    total = 0.0
    for k in range(H.shape[0]):
        row = three(rows[k])
        for n in range(1, H.shape[1]):
            before, after = H[k, n - 1], H[k, n]
            log_bessel = _log_bessel_scaled(row[0] - 1.0, _argument(before, after, row[1]))
            total += _cost(before, after, log_bessel, row)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(
    H: Array, Z: Array, P: Array, Q: Array, R: Array, rows: Array, held: int, rounds: int
) -> None:
    for k in range(H.shape[0]):
        h, z, row = H[k], Z[k], three(rows[k])
        for n in range(held, h.size):
            p, q, r = _terms(h, z, n, row)
            h[n] = max(_quadratic_root(P[k, n] + p, Q[k, n] + q, R[k, n] + r, h[n]), FLOOR)
    _auxiliary(H, Z, rows)


@njit(cache=True, nogil=True, error_model="numpy")
def _expand(H: Array, Z: Array, rows: Array, slope: Array, diagonal: Array, off: Array) -> float:
    total = 0.0
    for k in range(H.shape[0]):
        h, z, row = H[k], Z[k], three(rows[k])
        nu = row[0] - 1.0
        for n in range(1, h.size):
            x = _argument(h[n - 1], h[n], row[1])
            ratio, log_bessel = _bessel(nu, x)
            total += _cost(h[n - 1], h[n], log_bessel, row)
            mean = 0.5 * x * ratio
            # Var z = ∂ E z / ∂u, between 0 and E z.
            variance = 0.25 * x * x * (1.0 - ratio) * (1.0 + ratio) - nu * mean
            z[n - 1] = mean
            off[k, n - 1] = -min(max(variance, 0.0), mean)
        for n in range(h.size):
            p, q, _ = _terms(h, z, n, row)
            slope[k, n] = q * h[n] - p
            diagonal[k, n] = q * h[n]
            if n > 0:
                diagonal[k, n] += off[k, n - 1]
            if n < h.size - 1:
                diagonal[k, n] += off[k, n]
        dominate(diagonal[k], off[k])
    return total


# Posterior draws.
#
#     z_n given both steps ~ Bessel(α − 1, 2β √(h_{n−1} h_n)),
#     h_n given z_n, z_{n+1}, y_n ~ Gamma(α + z_n + z_{n+1} + y_n, 2β + q_n).
#
# With z integrated out, h′ is a scaled non-central χ²: with x = 2β √(h h′)
#
#     p(h′ | h) = β (h′/h)^((α−1)/2) e^{−β (h + h′)} I_{α−1}(x)
#               = β (h′/h)^((α−1)/2) e^{−β (√h′ − √h)²} I_{α−1}(x) e^−x.
#
# Blocks move under this density; the next round starts by drawing z. For large x, √x I(x) e^−x is
# constant. All but its logarithm goes into the surrogate (`kernels/variates/paths.py`), with the
# terms
#
#     both steps inside    −½ log c − c β (√h′ − √h)²,
#     leaving the block    −¼ log c − ½ (α − 1) log c − c β h_m + √c x,
#     arriving at it       −¼ log c + ½ (α − 1) log c − c β h_n + √c x, or (a − 1) log c − c b h_1,
#     the volume           length · log c.


@njit(cache=True, nogil=True, error_model="numpy")
def _draw(
    rng: Generator, H: Array, Z: Array, Y: Array, Q: Array, rows: Array, first: Pair, held: int
) -> None:
    """Draw z and activations, then move blocks of two or more steps."""
    (a, b), N = first, H.shape[1]
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        h, y, z, q = H[k], Y[k], Z[k], Q[k]  # z[n] is of the transition from h[n] to h[n + 1]
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
    rng: Generator, h: Array, y: Array, q: Array, alpha: float, beta: float, a: float, b: float,
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
def _log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Log density given the first step, z integrated out."""
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


class HierShape(Chain):
    """A random walk with count-like noise and a slow upward drift.

    Density: z_n | h_{n−1} ~ Poisson(β h_{n−1}), h_n | z_n ~ Gamma(α + z_n, β); mean h_{n−1} + α/β,
    variance (2/β) h_{n−1} + α/β²; flat prior on h_1. Domain: α, β > 0 (α = 0, where the chain is
    absorbed at zero, for simulation only); with ``map_scale="linear"`` and α < 1 the density is
    unbounded at zero. After s steps the distribution is the same with β/s: h is a squared Bessel
    process of dimension 2α, observed at unit times. The paper has no algorithm for this chain; here
    the counts z are integrated out, and EM needs only their means, ratios of Bessel functions.

    Terms (HS0), (HS1); the value is the marginal −log p(h_n | h_{n−1}). Constants dropped: none.

    Parameters
    ----------
    alpha : float, array or "learn", default=1.0
        Drift per step in units of 1/β.
    beta : float, array, "auto" or "learn", default="auto"
        Larger is smoother: the relative step-to-step spread is √(2/(β h)). "auto" makes
        it one tenth at the level of the data; the drift is then α/200 of that level per step.

    Examples
    --------
    >>> HierShape(alpha=1.0).resolve(level=4.0, n_components=2).beta
    100.0
    """

    name = "hier_shape"
    grid = tuple({"alpha": 1.0, "beta": f"{b}/level"} for b in (20, 200, 2000))
    draws_grid = (
        {"alpha": 1.0, "beta": "200/level"},
        {"alpha": 1.0, "beta": "10000/level"},
        {"alpha": 1.0, "beta": "learn"},
    )
    _per_unit = ("beta",)
    _kernels = Kernels(
        _terms, _value, _sweep, _expand, draw=_draw, log_law=_log_law, auxiliary=_auxiliary
    )
    _auto = ("beta",)
    _zero = ("alpha",)

    def __init__(self, alpha: Parameter = 1.0, beta: Parameter = "auto") -> None:
        self.alpha = alpha
        self.beta = beta

    def _fill_auto(self, level: float) -> None:
        if isinstance(self.beta, str):
            self.beta = 200.0 / level

    def _rows(self, n_components: int, scale: Scale) -> Array:
        return rows_of(n_components, self.alpha, self.beta, lost_power(scale))

    def bottomless(self) -> bool:
        return bool(np.any(np.asarray(self.alpha) < 1.0))

    def _moments(self) -> Moments:
        alpha, beta = self._values("alpha", "beta")
        return Moments(
            slope=np.ones_like(beta),
            offset=alpha / beta,
            linear=2.0 / beta,
            constant=alpha / beta / beta,
        )

    def _transition(self, h: Array, steps: int) -> Law | None:
        """2β h_{n+s}/s is non-central χ² with 2α degrees of freedom, non-centrality 2β h_n/s."""
        alpha, beta = self._values("alpha", "beta")
        if np.any(alpha == 0.0):  # an atom at zero, which SciPy does not support
            return None
        rate = beta / steps
        return stats.ncx2(2.0 * alpha, 2.0 * rate * h, scale=0.5 / rate)

    def _log_density(self, h: Array, before: Array) -> Array:
        """For α = 0 the value at h = 0 is the log probability of absorption there, −βh_{n−1}."""
        alpha, beta = self._values("alpha", "beta")
        inside = np.where(h > 0.0, h, 1.0)
        x = 2.0 * beta * np.sqrt(before) * np.sqrt(inside)  # the product may overflow
        log_bessel = log_bessel_scaled(np.abs(alpha - 1.0), x)  # I_{−1} = I_1
        log_bessel = np.where(alpha == 0.0, log_bessel, log_bessel_scaled(alpha - 1.0, x))
        density = (
            np.log(beta)
            + 0.5 * (alpha - 1.0) * (np.log(inside) - np.log(before))
            - beta * (np.sqrt(inside) - np.sqrt(before)) ** 2
            + log_bessel
        )
        outside = np.where((h == 0.0) & (alpha == 0.0), -beta * before, -np.inf)
        return np.where(h > 0.0, density, outside)

    def _step(self, h: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        alpha, beta = self._values("alpha", "beta")
        rate = beta * h
        z = _poisson(np.minimum(rate, CEILING), rng)
        drawn = rng.standard_gamma(alpha + z) / beta
        return np.where(rate > CEILING, h, drawn), z  # the noise is negligible there

    def _paths(self) -> tuple[Paths, str]:
        """A Bessel process is recurrent in up to two dimensions."""
        (alpha,) = self._values("alpha")
        if alpha == 0.0:
            return Paths.ABSORBED, ""
        return (Paths.EXPLODE if alpha > 1.0 else Paths.WANDER), ""


# Above this rate, Poisson counts have their normal approximation, with an error of the order
# 1/√rate: NumPy draws no counts beyond 9e18.
_LARGE_RATE = 1e15


def _poisson(rate: Array, rng: np.random.Generator) -> Array:
    """Poisson counts as floats, for any rate."""
    z = rng.poisson(np.minimum(rate, _LARGE_RATE)).astype(float)
    if np.any(rate > _LARGE_RATE):
        normal = np.rint(rate + np.sqrt(rate) * rng.standard_normal(rate.shape))
        z = np.where(rate > _LARGE_RATE, normal, z)
    return z
