"""Independent Gamma activations."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .._typing import Array, Generator, Law, Pair
from ..kernels.floor import FLOOR
from ..kernels.roots import _quadratic_root
from ..kernels.rows import three
from ..kernels.special import gamma_constant, gamma_excess
from ..kernels.variates.paths import gamma_draw, log_gamma_density
from .base import Chain, Kernels, Parameter, Row, Scale, lost_power, rows_of
from .process import Moments
from .stationary import Stationary

# Numbers of a component: α − s, β, and s, which is 1 on the linear scale and 0 on the log scale.


@njit(cache=True, nogil=True, error_model="numpy")
def _terms(h: Array, z: Array, n: int, row: Row) -> tuple[float, float, float]:
    """(G)"""
    return row[0], row[1], 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _value(H: Array, Z: Array, rows: Array) -> float:
    total = 0.0
    for k in range(H.shape[0]):
        power, beta, lost = rows[k]
        alpha = power + lost
        if alpha == 0.0:
            continue  # no prior, see NoChain
        constant = gamma_constant(alpha)
        for n in range(H.shape[1]):
            total += constant + gamma_excess(alpha, beta * H[k, n]) + lost * math.log(H[k, n])
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


@njit(cache=True, nogil=True, error_model="numpy")
def _expand(H: Array, Z: Array, rows: Array, slope: Array, diagonal: Array, off: Array) -> float:
    off[:] = 0.0
    for k in range(H.shape[0]):
        h, z, row = H[k], Z[k], three(rows[k])
        for n in range(h.size):
            p, q, _ = _terms(h, z, n, row)
            slope[k, n] = q * h[n] - p
            diagonal[k, n] = q * h[n]
    return _value(H, Z, rows)


# Posterior draws: steps are independent, so there are no blocks to move.


@njit(cache=True, nogil=True, error_model="numpy")
def _draw(
    rng: Generator, H: Array, Z: Array, Y: Array, Q: Array, rows: Array, first: Pair, held: int
) -> None:
    """h_n ~ Gamma(α + y_n, β + q_n)."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        for n in range(held, H.shape[1]):
            H[k, n] = gamma_draw(rng, alpha + Y[k, n], beta + Q[k, n])


@njit(cache=True, nogil=True, error_model="numpy")
def _log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Log density of a path, first step included."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(H.shape[1]):
            found[k] += log_gamma_density(H[k, n], alpha, beta, FLOOR)


class GaP(Stationary, Chain):
    """Independent Gamma prior, the paper's baseline without time.

    Density: h_n ~ Gamma(α, β), mean α/β, independent over n. Domain: α, β > 0; with
    ``map_scale="linear"`` and α < 1 activations can be driven to zero.

    Terms (G): p += α−1 (log scale: α), q += β. Constants dropped: none.

    Parameters
    ----------
    alpha : float, array or "learn", default=1.0
        Shape. Small values make activations sparse.
    beta : float, array, "auto" or "learn", default="auto"
        Rate. "auto" matches the mean α/β to the level of the data.

    Examples
    --------
    >>> GaP(alpha=2.0).resolve(level=12.0, n_components=3).beta
    0.5
    """

    name = "gap"
    grid = tuple({"alpha": a} for a in (0.1, 1.0, 10.0))
    draws_grid = ({"alpha": 1.0}, {"alpha": "learn"})
    _per_unit = ("beta",)
    dynamic = False
    _kernels = Kernels(_terms, _value, _sweep, _expand, draw=_draw, log_law=_log_law)
    _auto = ("beta",)

    def __init__(self, alpha: Parameter = 1.0, beta: Parameter = "auto") -> None:
        self.alpha = alpha
        self.beta = beta

    def bottomless(self) -> bool:
        return bool(np.any(np.asarray(self.alpha) < 1.0))

    def _rows(self, n_components: int, scale: Scale) -> Array:
        alpha, beta = np.asarray(self.alpha), np.asarray(self.beta)
        lost = lost_power(scale)
        return rows_of(n_components, alpha - lost, beta, lost)

    def _moments(self) -> Moments:
        alpha, beta = self._values("alpha", "beta")
        return Moments(slope=np.zeros_like(beta), offset=alpha / beta, constant=alpha / beta / beta)

    def _transition(self, h: Array, steps: float) -> Law | None:
        return self._independent(h)

    def _step(self, h: Array, rng: np.random.Generator) -> tuple[Array, None]:
        alpha, beta = self._values("alpha", "beta")
        return rng.standard_gamma(alpha, size=h.shape) / beta, None
