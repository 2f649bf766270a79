"""Chaining on the shape of a Gamma law through an auxiliary count."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ..kernels.floor import FLOOR
from ..kernels.roots import _quadratic_root
from ..kernels.rows import three
from ..kernels.special import _bessel, _bessel_ratio, _log_bessel_scaled
from ..likelihoods.base import Array
from .base import Chain, Kernels, Parameter, Row, Scale, dominate, lost_power, rows_of

# Numbers of a component: α, β, and s, which is 1 on the linear scale and 0 on the log scale.


@njit(cache=True, nogil=True, error_model="numpy")
def _argument(before: float, after: float, beta: float) -> float:
    """x of the Bessel functions."""
    return 2.0 * beta * math.sqrt(before * after)


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


class HierShape(Chain):
    """A random walk with count-like noise and a slow upward drift.

    Density: z_n | h_{n−1} ~ Poisson(β h_{n−1}), h_n | z_n ~ Gamma(α + z_n, β); mean h_{n−1} + α/β,
    variance (2/β) h_{n−1} + α/β²; flat prior on h_1. Domain: α, β > 0; with ``map_scale="linear"``
    and α < 1 the density is unbounded at zero. The paper leaves this chain out of its
    algorithms; here the counts z are integrated out, and EM needs only their means, which are
    ratios of Bessel functions.

    Terms (HS0), (HS1); the value is the marginal −log p(h_n | h_{n−1}). Constants dropped: none.

    Parameters
    ----------
    alpha : float or array, default=1.0
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
    _kernels = Kernels(_terms, _value, _sweep, _expand)
    _auto = _learn = ("beta",)

    def __init__(self, alpha: Parameter = 1.0, beta: Parameter = "auto") -> None:
        self.alpha = alpha
        self.beta = beta

    def _fill_auto(self, level: float) -> None:
        if isinstance(self.beta, str):
            self.beta = 200.0 / level

    def _rows(self, n_components: int, scale: Scale) -> Array:
        return rows_of(n_components, self.alpha, self.beta, lost_power(scale))

    def auxiliary(self, H: Array, scale: Scale) -> Array:
        Z = np.empty((len(H), H.shape[1] - 1))
        _auxiliary(np.ascontiguousarray(H), Z, self._rows(len(H), scale))
        return Z

    def bottomless(self) -> bool:
        return bool(np.any(np.asarray(self.alpha) < 1.0))

    def _estimate(self, name: str, H: Array, aux: Array) -> Array:
        (alpha,) = self._columns("alpha")
        return (alpha + 2.0 * aux).sum(axis=1) / (H[:, :-1] + H[:, 1:]).sum(axis=1)

    def conditional_mean(self, h: Array) -> Array:
        alpha, beta = self._columns("alpha", "beta")
        return h + (alpha / beta)[:, 0]
