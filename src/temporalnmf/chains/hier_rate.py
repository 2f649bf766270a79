"""Chaining on the rate of a Gamma distribution through an auxiliary variable."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import betaincinv, digamma, polygamma

from .._typing import Array, Generator, Law, Pair
from ..kernels.floor import FLOOR
from ..kernels.roots import _quadratic_root
from ..kernels.rows import seven
from ..kernels.special import gamma_constant, gamma_excess
from ..kernels.variates.gammas import log_gamma_draws
from ..kernels.variates.paths import blocks, counted, gamma_draw, scale
from .base import Kernels, Parameter, Point, Row, Scale, lost_power, rows_of, scalar_or_array
from .multiplicative import Multiplicative, from_log
from .outlook import Outlook

# Numbers of a component: α_z, β_z, α_h, β_h, s (1 on the linear scale, 0 on the log scale), the
# power A of z in (HR0), and whether z is integrated out.

# For smaller shapes, cumulants and medians of steps overflow.
_LEAST = 1e-40


@njit(cache=True, nogil=True, error_model="numpy")
def _z(before: float, after: float, row: Row) -> float:
    """(HR0): the mode of z, or its mean, which on the log scale are the same."""
    return row[5] / (row[1] * before + row[3] * after)


@njit(cache=True, nogil=True, error_model="numpy")
def _auxiliary(H: Array, Z: Array, rows: Array) -> None:
    for k in range(H.shape[0]):
        row = seven(rows[k])
        for n in range(1, H.shape[1]):
            Z[k, n - 1] = _z(H[k, n - 1], H[k, n], row)


@njit(cache=True, nogil=True, error_model="numpy")
def _terms(h: Array, z: Array, n: int, row: Row) -> tuple[float, float, float]:
    """(HR1)–(HR3)"""
    p, q = 0.0, 0.0
    if n > 0:  # arriving at n
        p += row[2] - row[4]
        q += row[3] * z[n - 1]
    if n < h.size - 1:  # leaving n
        p += row[0]
        q += row[1] * z[n]
    return p, q, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _value(H: Array, Z: Array, rows: Array) -> float:
    total = 0.0
    for k in range(H.shape[0]):
        alpha_z, beta_z, alpha_h, beta_h, lost, power, marginal = rows[k]
        constant = gamma_constant(alpha_z) + gamma_constant(alpha_h)
        if marginal:  # the remainder of A log z at its mean
            constant -= gamma_constant(power) + gamma_excess(power, power)
        for n in range(1, H.shape[1]):
            before, after = beta_z * H[k, n - 1], beta_h * H[k, n]
            z = power / (before + after) if marginal else Z[k, n - 1]
            total += constant + gamma_excess(alpha_z, before * z) + gamma_excess(alpha_h, after * z)
            total += lost * math.log(H[k, n] if marginal else H[k, n] * z)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(
    H: Array, Z: Array, P: Array, Q: Array, R: Array, rows: Array, held: int, rounds: int
) -> None:
    for k in range(H.shape[0]):
        h, z, row = H[k], Z[k], seven(rows[k])
        for _ in range(rounds):
            for n in range(held, h.size):
                p, q, r = _terms(h, z, n, row)
                h[n] = max(_quadratic_root(P[k, n] + p, Q[k, n] + q, R[k, n] + r, h[n]), FLOOR)
            for n in range(1, h.size):
                z[n - 1] = _z(h[n - 1], h[n], row)


@njit(cache=True, nogil=True, error_model="numpy")
def _expand(H: Array, Z: Array, rows: Array, slope: Array, diagonal: Array, off: Array) -> float:
    _auxiliary(H, Z, rows)
    diagonal[:] = 0.0
    for k in range(H.shape[0]):
        h, z, row = H[k], Z[k], seven(rows[k])
        for n in range(h.size):
            p, q, _ = _terms(h, z, n, row)
            slope[k, n] = q * h[n] - p
        for n in range(1, h.size):
            # A log(β_z h_{n−1} + β_h h_n) has the curvature A t(1−t), t the share of β_h h_n.
            curved = row[1] * h[n - 1] * z[n - 1] * (row[3] * h[n] * z[n - 1]) / row[5]
            diagonal[k, n - 1] += curved
            diagonal[k, n] += curved
            off[k, n - 1] = -curved
    return _value(H, Z, rows)


# Posterior draws.
#
#     p(z, h_n | h_{n−1}) ∝ (z h_{n−1})^α_z (z h_n)^α_h e^{−z (β_z h_{n−1} + β_h h_n)} / (z h_n),
#     z_n given both steps ~ Gamma(α_z + α_h, β_z h_{n−1} + β_h h_n).
#
# Scaling a block by c scales its inner z by 1/c: the products z h are kept, and the volume cancels
# 1/(z h). So only the z at its ends have to be drawn. The density of log c has the factors
# c^α_h e^{−c β_h z_n h_n}, or c^a e^{−c b h_1}, from its first step; c^α_z e^{−c β_z z_{m+1} h_m}
# from the step after it; c^Σy e^{−c Σqh} from the counts. So c is Gamma. Single steps are blocks,
# too.
#
# With z integrated out, h_n is beta-prime: with x = β_z h_{n−1} and x′ = β_h h_n
#
#     p(h_n | h_{n−1}) = Γ(α_z + α_h)/(Γ(α_z) Γ(α_h)) (x/(x + x′))^α_z (x′/(x + x′))^α_h / h_n.


@njit(cache=True, nogil=True, error_model="numpy")
def _draw(
    rng: Generator, H: Array, Z: Array, Y: Array, Q: Array, rows: Array, first: Pair, held: int
) -> None:
    """Move blocks, single steps included: draw z at their ends, then c."""
    (a, b), N = first, H.shape[1]
    for k in range(H.shape[0]):
        alpha_z, beta_z, alpha_h, beta_h, _, _, _ = seven(rows[k])
        h, y, q = H[k], Y[k], Q[k]
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
def _log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Log density given the first step, z integrated out."""
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


class HierRate(Multiplicative):
    """Multiplicative noise with heavy tails: sudden jumps are cheaper than under `Rate`.

    Density: z_n | h_{n−1} ~ Gamma(α_z, β_z h_{n−1}), h_n | z_n ~ Gamma(α_h, β_h z_n); flat prior
    on h_1. Domain: all positive; ``map_scale="linear"`` needs α_h ≥ 1. The conditional mean is
    (β_z/β_h) α_h/(α_z−1) h_{n−1} and infinite for α_z ≤ 1, where forecasts are medians.

    Terms (HR0)–(HR3). Constants dropped: none.

    Parameters
    ----------
    alpha_z, alpha_h : float, array or "learn", default=600.0
        Shapes. Larger is smoother: the step-to-step spread is about √(1/α_z + 1/α_h).
    beta_z : float, array, "auto" or "learn", default="auto"
        "auto" preserves the mean, β_z/β_h = (α_z−1)/α_h (for α_z ≤ 1, where no mean exists, the
        mean of log h).
    beta_h : float, array, "auto" or "learn", default="auto"
        "auto" is α_h. Only β_z/β_h matters, so learn at most one of them.
    marginal : bool, default=False
        Integrate z out (EM) rather than take its mode, as the paper does. The two coincide for
        ``map_scale="log"``.

    Examples
    --------
    >>> chain = HierRate(alpha_z=3.0, alpha_h=4.0).resolve(level=1.0, n_components=1)
    >>> chain.beta_z, chain.beta_h
    (2.0, 4.0)
    """

    name = "hier_rate"
    grid = tuple({"alpha_z": a, "alpha_h": a} for a in (20.0, 200.0, 2000.0))
    draws_grid = (
        {"alpha_z": 600.0, "alpha_h": 600.0},
        {"alpha_z": 20_000.0, "alpha_h": 20_000.0},
        {"alpha_z": "learn", "alpha_h": "learn"},
    )
    _growth = ("beta_z", "beta_h")
    _measured_in = MappingProxyType({"beta_z": "alpha_z", "beta_h": "alpha_h"})
    _exclusive = MappingProxyType({"beta_h": "beta_z"})
    sweeps = 5  # cheap, and information propagates one step per round
    _kernels = Kernels(
        _terms, _value, _sweep, _expand, draw=_draw, log_law=_log_law, auxiliary=_auxiliary
    )
    _auto = ("beta_z", "beta_h")

    def __init__(
        self,
        alpha_z: Parameter = 600.0,
        beta_z: Parameter = "auto",
        alpha_h: Parameter = 600.0,
        beta_h: Parameter = "auto",
        marginal: bool = False,
    ) -> None:
        self.alpha_z = alpha_z
        self.beta_z = beta_z
        self.alpha_h = alpha_h
        self.beta_h = beta_h
        self.marginal = marginal

    def _fill_auto(self, level: float) -> None:
        if {"beta_z", "beta_h"} <= set(self._learned):
            raise ValueError(
                "HierRate(beta_z='learn', beta_h='learn'): only their ratio matters. Learn one and "
                "leave the other at 'auto'."
            )
        if isinstance(self.beta_h, str):
            self.beta_h = self.alpha_h
        if isinstance(self.beta_z, str):
            alpha_z, alpha_h, beta_h = map(np.asarray, (self.alpha_z, self.alpha_h, self.beta_h))
            log_ratio = np.log(beta_h) + digamma(alpha_z) - digamma(alpha_h)
            steady = np.where(
                alpha_z > 1.0,
                beta_h * (alpha_z - 1.0) / alpha_h,
                np.exp(np.clip(log_ratio, -230.0, 230.0)),  # e^ψ(α) may overflow
            )
            self.beta_z = scalar_or_array(steady)

    def _check_mode(self, scale: Scale) -> None:
        if scale == "linear" and np.any(np.asarray(self.alpha_h) < 1.0):
            raise ValueError(
                f"HierRate(alpha_h={self.alpha_h}) has no mode on the linear scale, which needs "
                f"alpha_h >= 1. Use map_scale='log', or a larger alpha_h."
            )

    def _rows(self, n_components: int, scale: Scale) -> Array:
        alpha_z, alpha_h = np.asarray(self.alpha_z), np.asarray(self.alpha_h)
        lost = lost_power(scale)
        power = alpha_z + alpha_h - (0.0 if self.marginal else lost)
        return rows_of(
            n_components, alpha_z, self.beta_z, alpha_h, self.beta_h, lost, power, self.marginal
        )

    def _factor(self) -> tuple[Array, Array, Array]:
        """φ ~ BetaPrime(α_h, α_z) · β_z/β_h: no mean for α_z ≤ 1, no variance for α_z ≤ 2."""
        alpha_z, beta_z, alpha_h, beta_h = self._all()
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(alpha_z > 1.0, beta_z / beta_h * alpha_h / (alpha_z - 1.0), np.inf)
            relative = (alpha_h + alpha_z - 1.0) / (alpha_h * (alpha_z - 2.0))
        relative = np.where(alpha_z > 2.0, relative, np.where(alpha_z > 1.0, np.inf, np.nan))
        return mean, relative, digamma(alpha_h) - digamma(alpha_z) + np.log(beta_z / beta_h)

    def _log_factors(
        self, shape: tuple[int, ...], rng: np.random.Generator
    ) -> tuple[Array, Array | None]:
        """z_n h_{n−1} ~ Gamma(α_z, β_z), and h_n z_n ~ Gamma(α_h, β_h)."""
        alpha_z, beta_z, alpha_h, beta_h = self._all()
        log_zh = log_gamma_draws(alpha_z, shape, rng) - np.log(beta_z)
        return log_gamma_draws(alpha_h, shape, rng) - np.log(beta_h) - log_zh, log_zh

    def _all(self) -> list[Array]:
        return self._values("alpha_z", "beta_z", "alpha_h", "beta_h")

    def _transition(self, h: Array, steps: float) -> Law | None:
        alpha_z, beta_z, alpha_h, beta_h = self._all()
        return stats.betaprime(alpha_h, alpha_z, scale=beta_z / beta_h * h) if steps == 1 else None

    def _has_mean(self) -> Array:
        return np.asarray(self.alpha_z, dtype=float) > 1.0

    def forecast(
        self, h_last: ArrayLike, steps: int, *, point: Point = "mean", **options: Any
    ) -> Outlook:
        ahead = super().forecast(h_last, steps, point=point, **options)
        if point == "mean" and not np.all(self._has_mean()):
            medians = ahead.quantile(0.5)
            return replace(ahead, point=np.where(self._has_mean(), ahead.mean, medians))
        return ahead

    def point_forecast(
        self, h_last: Array, steps: int, point: Point = "mean", scale: Scale = "log"
    ) -> Array:
        ahead = super().point_forecast(h_last, steps, point, scale)
        if point == "mean" and not np.all(self._has_mean()):
            medians = from_log(np.log(h_last)[:, None] + self._log_medians(steps))
            return np.where(np.reshape(self._has_mean(), (-1, 1)), ahead, medians)
        return ahead

    def _log_medians(self, steps: int) -> Array:
        """Medians (K or 1, steps) of log h_{n+s} − log h_n, a sum of s independent log φ.

        For one step by the inverse of the Beta distribution, for more by the Cornish–Fisher
        expansion in the cumulants of log φ, ψ⁽ʳ⁻¹⁾(α_h) + (−1)ʳ ψ⁽ʳ⁻¹⁾(α_z): even for two steps
        of the most skewed case, the exponential, the error is a thousandth of the spread.
        """
        alpha_z, _, alpha_h, _ = (np.reshape(value, (-1, 1)) for value in self._all())
        drift = np.reshape(self._factor()[2], (-1, 1))
        s = np.arange(1.0, steps + 1.0)
        large_z, large_h = np.maximum(alpha_z, _LEAST), np.maximum(alpha_h, _LEAST)
        k2, k3, k4, k5 = (
            polygamma(r - 1, large_h) + (-1) ** r * polygamma(r - 1, large_z) for r in range(2, 6)
        )
        skew = k3 / k2
        second = k5 / k2 / k2 / 40.0 - skew * k4 / k2 / k2 / 12.0 + skew**3 / k2 * 17.0 / 324.0
        medians = s * drift - skew / 6.0 + second / s
        with np.errstate(divide="ignore"):
            odds = np.log(betaincinv(alpha_h, alpha_z, 0.5) / betaincinv(alpha_z, alpha_h, 0.5))
        first = drift - (digamma(alpha_h) - digamma(alpha_z)) + odds
        medians[:, :1] = np.where(np.isfinite(first), first, medians[:, :1])
        return medians

    def point_name(self, point: Point) -> str:
        if point == "mean" and not np.all(self._has_mean()):
            return "conditional median (the mean is infinite for alpha_z <= 1)"
        return super().point_name(point)
