"""Chaining on the rate of a Gamma distribution."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy import stats
from scipy.special import digamma

from .._typing import Array, Generator, Law, Pair
from ..kernels.floor import FLOOR
from ..kernels.roots import _quadratic_root
from ..kernels.rows import three
from ..kernels.special import gamma_constant, gamma_excess
from ..kernels.variates import gig
from ..kernels.variates.gammas import log_gamma_draws
from ..kernels.variates.paths import blocks, counted, log_gamma_density, scale
from .base import Kernels, Parameter, Row, Scale, lost_power, rows_of
from .multiplicative import Multiplicative

# Numbers of a component: α, β, and s, which is 1 on the linear scale and 0 on the log scale.


@njit(cache=True, nogil=True, error_model="numpy")
def _terms(h: Array, z: Array, n: int, row: Row) -> tuple[float, float, float]:
    """(R1)–(R3)"""
    alpha, beta, lost = row
    p, q, r = 0.0, 0.0, 0.0
    if n > 0:  # arriving at n
        p += alpha - lost
        q += beta / h[n - 1]
    if n < h.size - 1:  # leaving n
        p -= alpha
        r += beta * h[n + 1]
    return p, q, r


@njit(cache=True, nogil=True, error_model="numpy")
def _value(H: Array, Z: Array, rows: Array) -> float:
    total = 0.0
    for k in range(H.shape[0]):
        alpha, beta, lost = rows[k]
        constant = gamma_constant(alpha)
        for n in range(1, H.shape[1]):
            total += constant + gamma_excess(alpha, beta * H[k, n] / H[k, n - 1])
            total += lost * math.log(H[k, n])
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
                h[n] = max(_quadratic_root(P[k, n] + p, Q[k, n] + q, R[k, n] + r, h[n]), FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def _expand(H: Array, Z: Array, rows: Array, slope: Array, diagonal: Array, off: Array) -> float:
    for k in range(H.shape[0]):
        h, z, row = H[k], Z[k], three(rows[k])
        for n in range(h.size):
            p, q, r = _terms(h, z, n, row)
            slope[k, n] = q * h[n] - p - r / h[n]
            diagonal[k, n] = q * h[n] + r / h[n]
            if n > 0:
                off[k, n - 1] = -q * h[n]
    return _value(H, Z, rows)


# Posterior draws.
#
#     p(h_n | h_{n−1}) = (β r)^α e^{−β r} / (Γ(α) h_n),   r = h_n/h_{n−1}.
#
# Scaling a block by c keeps its inner ratios, and the volume cancels 1/h at its steps. The density
# of log c has the factors c^α e^{−c β h_n/h_{n−1}}, or c^a e^{−c b h_1}, from its first step;
# c^{−α} e^{−β h_{m+1}/(c h_m)} from the step after it; c^Σy e^{−c Σqh} from the counts. So c is
# generalised inverse Gaussian, or Gamma at the end of the path. Single steps are blocks, too.


@njit(cache=True, nogil=True, error_model="numpy")
def _draw(
    rng: Generator, H: Array, Z: Array, Y: Array, Q: Array, rows: Array, first: Pair, held: int
) -> None:
    """Move blocks, single steps included."""
    (a, b), N = first, H.shape[1]
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        h, y, q = H[k], Y[k], Q[k]
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
def _log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Log density given the first step."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(1, H.shape[1]):
            found[k] += log_gamma_density(H[k, n], alpha, beta / H[k, n - 1], FLOOR)


class Rate(Multiplicative):
    """Multiplicative noise: each step is the last one times a Gamma variable.

    Density: h_n | h_{n−1} ~ Gamma(α, β/h_{n−1}), mean (α/β) h_{n−1}, relative spread 1/√α; flat
    prior on h_1. Domain: α, β > 0; ``map_scale="linear"`` needs α ≥ 1. The chain is
    scale-free: it does not depend on the level of h.

    Terms (R1)–(R3). Constants dropped: none.

    Parameters
    ----------
    alpha : float, array or "learn", default=150.0
        Shape. Larger is smoother: the step-to-step spread is about 1/√α.
    beta : float, array, "auto" or "learn", default="auto"
        Rate. "auto" is β = α, which preserves the mean.

    Examples
    --------
    >>> chain = Rate(alpha=4.0, beta=2.0)
    >>> chain.forecast(3.0, steps=2).mean
    array([ 6., 12.])
    >>> print(chain.regime())
    The mean grows without bound, and so does the variance; almost every path grows without bound.
    """

    name = "rate"
    grid = tuple({"alpha": a} for a in (10.0, 100.0, 1000.0))
    draws_grid = ({"alpha": 300.0}, {"alpha": 10_000.0}, {"alpha": "learn"})
    sweeps = 5  # cheap, and information propagates one step per round
    _kernels = Kernels(_terms, _value, _sweep, _expand, draw=_draw, log_law=_log_law)
    _auto = _growth = ("beta",)

    def __init__(self, alpha: Parameter = 150.0, beta: Parameter = "auto") -> None:
        self.alpha = alpha
        self.beta = beta

    def _fill_auto(self, level: float) -> None:
        if isinstance(self.beta, str):
            self.beta = self.alpha

    def _check_mode(self, scale: Scale) -> None:
        if scale == "linear" and np.any(np.asarray(self.alpha) < 1.0):
            raise ValueError(
                f"Rate(alpha={self.alpha}) has no mode on the linear scale, which needs "
                f"alpha >= 1. Use map_scale='log', or a larger alpha."
            )

    def _rows(self, n_components: int, scale: Scale) -> Array:
        return rows_of(n_components, self.alpha, self.beta, lost_power(scale))

    def _factor(self) -> tuple[Array, Array, Array]:
        """φ ~ Gamma(α, β)"""
        alpha, beta = self._values("alpha", "beta")
        return alpha / beta, 1.0 / alpha, digamma(alpha) - np.log(beta)

    def _log_factors(
        self, shape: tuple[int, ...], rng: np.random.Generator
    ) -> tuple[Array, Array | None]:
        alpha, beta = self._values("alpha", "beta")
        return log_gamma_draws(alpha, shape, rng) - np.log(beta), None

    def _transition(self, h: Array, steps: float) -> Law | None:
        alpha, beta = self._values("alpha", "beta")
        return stats.gamma(alpha, scale=h / beta) if steps == 1 else None
