"""Chains whose steps are Gamma variables, given a Poisson count of the step before.

    z_n | h_{n−1} ~ Poisson(τ ρ h_{n−1}),   h_n | z_n ~ Gamma(α + z_n, τ):

HierShape has τ = β and ρ = 1, ARG τ = β/(1−ρ). Both are diffusions observed at unit times, so the
distribution after any time is of the same form, with another τ and ρ.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy import stats

from .._typing import Array, Generator, Law, Pair
from ..kernels.floor import FLOOR
from ..kernels.roots import _quadratic_root
from ..kernels.rows import five
from ..kernels.special import (
    _bessel,
    _bessel_ratio,
    _log_bessel_scaled,
    gamma_constant,
    gamma_excess,
    log_bessel_scaled,
)
from ..kernels.variates import bessel, slice_step
from ..kernels.variates.paths import (
    blocks,
    counted,
    gamma_draw,
    log_gamma_density,
    lowest,
    scale,
    surrogate,
)
from .base import Chain, Kernels, Parameter, Row, Scale, dominate, lost_power, rows_of
from .process import CEILING, Moments

# Numbers of a component: α, τ, ρ, s, which is 1 on the linear scale and 0 on the log scale, and the
# rate of h_1 ~ Gamma(α, rate), or 0 if its prior is flat.


@njit(cache=True, nogil=True, error_model="numpy")
def _argument(before: float, after: float, tau: float, rho: float) -> float:
    """Argument x of the Bessel functions."""
    return 2.0 * tau * math.sqrt(rho * before) * math.sqrt(after)  # their product may overflow


@njit(cache=True, nogil=True, error_model="numpy")
def _auxiliary(H: Array, Z: Array, rows: Array) -> None:
    """(HS0), (A0): E z = (x/2) I_α(x) / I_{α−1}(x)."""
    for k in range(H.shape[0]):
        alpha, tau, rho, _, _ = five(rows[k])
        for n in range(1, H.shape[1]):
            x = _argument(H[k, n - 1], H[k, n], tau, rho)
            Z[k, n - 1] = 0.5 * x * _bessel_ratio(alpha - 1.0, x)


@njit(cache=True, nogil=True, error_model="numpy")
def _terms(h: Array, z: Array, n: int, row: Row) -> tuple[float, float, float]:
    """(HS1), (A1)–(A3)"""
    alpha, tau, rho, lost, first = row
    p, q = 0.0, 0.0
    if n > 0:  # arriving at n
        p += alpha - lost + z[n - 1]
        q += tau
    elif first > 0.0:
        p += alpha - lost
        q += first
    if n < h.size - 1:  # leaving n
        p += z[n]
        q += tau * rho
    return p, q, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _first_cost(h: float, row: Row) -> float:
    """−log p(h_1)."""
    alpha, _, _, lost, first = row
    if first == 0.0:
        return 0.0
    return gamma_constant(alpha) + gamma_excess(alpha, first * h) + lost * math.log(h)


@njit(cache=True, nogil=True, error_model="numpy")
def _cost(before: float, after: float, log_bessel: float, row: Row) -> float:
    """−log p(h_n | h_{n−1}), given log(I_{α−1}(x) e^−x)."""
    alpha, tau, rho, lost, _ = row
    before *= rho
    return (
        -math.log(tau)
        - 0.5 * (alpha - 1.0) * math.log(after / before)
        + tau * (math.sqrt(after) - math.sqrt(before)) ** 2  # τ(ρh + h′) − x
        - log_bessel
        - (1.0 - lost) * math.log(after)
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _value(H: Array, Z: Array, rows: Array) -> float:
    total = 0.0
    for k in range(H.shape[0]):
        row = five(rows[k])
        total += _first_cost(H[k, 0], row)
        for n in range(1, H.shape[1]):
            before, after = H[k, n - 1], H[k, n]
            x = _argument(before, after, row[1], row[2])
            total += _cost(before, after, _log_bessel_scaled(row[0] - 1.0, x), row)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(
    H: Array, Z: Array, P: Array, Q: Array, R: Array, rows: Array, held: int, rounds: int
) -> None:
    for k in range(H.shape[0]):
        h, z, row = H[k], Z[k], five(rows[k])
        for n in range(held, h.size):
            p, q, r = _terms(h, z, n, row)
            h[n] = max(_quadratic_root(P[k, n] + p, Q[k, n] + q, R[k, n] + r, h[n]), FLOOR)
    _auxiliary(H, Z, rows)


@njit(cache=True, nogil=True, error_model="numpy")
def _expand(H: Array, Z: Array, rows: Array, slope: Array, diagonal: Array, off: Array) -> float:
    total = 0.0
    for k in range(H.shape[0]):
        h, z, row = H[k], Z[k], five(rows[k])
        nu = row[0] - 1.0
        total += _first_cost(h[0], row)
        for n in range(1, h.size):
            x = _argument(h[n - 1], h[n], row[1], row[2])
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


# Posterior draws. With x = 2τ √(ρ h_{n−1} h_n)
#
#     z_n given both steps ~ Bessel(α − 1, x),
#     h_n given z_n, z_{n+1}, y_n ~ Gamma(α + z_n + z_{n+1} + y_n, τ + τρ + q_n).
#
# With z integrated out, h′ is a scaled non-central χ²: with g = ρ h
#
#     p(h′ | h) = τ (h′/g)^((α−1)/2) e^{−τ (g + h′)} I_{α−1}(x)
#               = τ (h′/g)^((α−1)/2) e^{−τ (√h′ − √g)²} I_{α−1}(x) e^−x.
#
# Blocks move under this density; the next round starts by drawing z. For large x, √x I(x) e^−x is
# constant. All but its logarithm goes into the surrogate (`kernels/variates/paths.py`), with the
# terms
#
#     both steps inside    −½ log c − c τ (√h′ − √g)²,
#     leaving the block    −¼ log c − ½ (α − 1) log c − c τ ρ h_m + √c x,
#     arriving at it       −¼ log c + ½ (α − 1) log c − c τ h_n + √c x, or (a − 1) log c − c b h_1,
#     the volume           length · log c.


@njit(cache=True, nogil=True, error_model="numpy")
def _draw(
    rng: Generator, H: Array, Z: Array, Y: Array, Q: Array, rows: Array, first: Pair, held: int
) -> None:
    """Draw z and activations, then move blocks of two or more steps."""
    N = H.shape[1]
    for k in range(H.shape[0]):
        row = five(rows[k])
        alpha, tau, rho, _, own = row
        a, b = (alpha, own) if own > 0.0 else first
        h, y, z, q = H[k], Y[k], Z[k], Q[k]  # z[n] is of the transition from h[n] to h[n + 1]
        for n in range(1, N):
            z[n - 1] = bessel(rng, alpha - 1.0, 2.0 * tau * math.sqrt(rho * h[n - 1] * h[n]))
        for n in range(held, N):
            shape, rate = y[n], q[n]
            if n > 0:
                shape += alpha + z[n - 1]
                rate += tau
            else:
                shape += a
                rate += b
            if n < N - 1:
                shape += z[n]
                rate += tau * rho
            h[n] = gamma_draw(rng, shape, rate)
        for n, m in blocks(rng, N, held, 1):
            _move_block(rng, h, y, q, row, a, b, n, m)


@njit(cache=True, nogil=True, error_model="numpy")
def _move_block(
    rng: Generator, h: Array, y: Array, q: Array, row: Row, a: float, b: float, n: int, m: int
) -> None:
    """A surrogate transition of h_n … h_m."""
    least = lowest(h, n, m)
    if least <= FLOOR:
        return
    alpha, tau, rho, _, _ = row
    power, rate = counted(h, y, q, n, m)
    root = 0.0
    power += m - n + 1.0
    for j in range(max(n - 1, 0), min(m + 1, h.size - 1)):
        x = 2.0 * tau * math.sqrt(rho * h[j] * h[j + 1])
        if n <= j < m:
            power -= 0.5
            rate += tau * (rho * h[j] + h[j + 1]) - x
        else:
            power -= 0.25
            rate += tau * (h[n] if j < n else rho * h[m])
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
        x = 2.0 * tau * math.sqrt(rho * h[j] * h[j + 1])
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
    """Log density, z integrated out; the first step is included if its prior is not flat."""
    for k in range(H.shape[0]):
        alpha, tau, rho, _, first = five(rows[k])
        found[k] = log_gamma_density(H[k, 0], alpha, first, FLOOR) if first > 0.0 else 0.0
        for n in range(1, H.shape[1]):
            if H[k, n] <= FLOOR:  # z is zero
                found[k] += log_gamma_density(FLOOR, alpha, tau, FLOOR) - tau * rho * H[k, n - 1]
                continue
            before, after = math.sqrt(rho * H[k, n - 1]), math.sqrt(H[k, n])
            found[k] += (
                math.log(tau)
                + (alpha - 1.0) * math.log(after / before)
                - tau * (after - before) ** 2
                + _log_bessel_scaled(alpha - 1.0, 2.0 * tau * before * after)
            )


class PoissonGamma(Chain):
    """A chain of Gamma variables, given Poisson counts of the step before."""

    _kernels = Kernels(
        _terms, _value, _sweep, _expand, draw=_draw, log_law=_log_law, auxiliary=_auxiliary
    )
    _per_unit = ("beta",)
    _any_time = True

    alpha: Parameter
    beta: Parameter

    def _numbers(self, time: float = 1.0) -> tuple[Array, Array, Array]:
        """α, τ and ρ of a transition over some time."""
        raise NotImplementedError

    def _rows(self, n_components: int, scale: Scale) -> Array:
        first = self.beta if self.own_first else 0.0
        return rows_of(n_components, *self._numbers(), lost_power(scale), first)

    def bottomless(self) -> bool:
        return bool(np.any(np.asarray(self.alpha) < 1.0))

    def _moments(self) -> Moments:
        alpha, tau, rho = self._numbers()
        return Moments(
            slope=rho, offset=alpha / tau, linear=2.0 * rho / tau, constant=alpha / tau / tau
        )

    def _transition(self, h: Array, steps: float) -> Law | None:
        """2τ h_{n+s} is non-central χ² with 2α degrees of freedom, non-centrality 2τ ρ h_n."""
        alpha, tau, rho = self._numbers(steps)
        return stats.ncx2(2.0 * alpha, 2.0 * tau * rho * h, scale=0.5 / tau)

    def _log_density(self, h: Array, before: Array) -> Array:
        alpha, tau, rho = self._numbers()
        before, inside = rho * before, np.where(h > 0.0, h, 1.0)
        x = 2.0 * tau * np.sqrt(before) * np.sqrt(inside)  # the product may overflow
        order = np.where(alpha == 0.0, 1.0, alpha - 1.0)  # I_{−1} = I_1
        density = (
            np.log(tau)
            + 0.5 * (alpha - 1.0) * (np.log(inside) - np.log(before))
            - tau * (np.sqrt(inside) - np.sqrt(before)) ** 2
            + log_bessel_scaled(order, x)
        )
        return np.where(h > 0.0, density, -np.inf)

    def _step(self, h: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        alpha, tau, rho = self._numbers()
        kept = rho * h
        rate = tau * kept
        z = _poisson(np.minimum(rate, CEILING), rng)
        drawn = rng.standard_gamma(alpha + z) / tau
        return np.where(rate > CEILING, kept, drawn), z  # the noise is negligible there


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
