"""Activations of one component given its counts, chain by chain (MATH.md, section 4).

Counts of data, split over the components, make y_n ~ Poisson(q_n h_n) for each component on its
own, with q_n the exposure of step n (zero where it was not observed). A round draws all h_n from
their conditional laws, with auxiliary variables z where these make the laws known ones. Every
chain starts at h_1 ~ Gamma(a, b), proper, except those that have a law of their own there.

A round of a chain that knows no scale ends with a draw of the scale of the whole path: h → c h,
z → z/c leaves the transitions as they are, so c ~ Gamma(a + Σy, b h_1 + Σ q h). Step by step the
level of a stiff chain would hardly move.

With `held` = 1 the first step is known and stays: the path goes on from there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..chains.base import Chain
from ..kernels.floor import FLOOR
from ..kernels.rows import seven, three
from ..kernels.variates import bessel, crt, gig, slice_step
from ..likelihoods.base import Array


class First(NamedTuple):
    """Gamma(shape, shape/level) law of h_1: a shape, and the level it has on average.

    With a shape of 1/2 and the level of the data: anything from 0 to a few times that.
    """

    shape: float = 0.5
    level: float = 1.0


FIRST = First()


def draw_activations(
    chain: Chain, H: Array, Z: Array, Y: Array, q: Array, rng: np.random.Generator, first: First,
    *, held: int = 0,
) -> None:  # fmt: skip
    """One round for all components, in place.

    Parameters
    ----------
    chain : Chain
        With hyper-parameters that are numbers.
    H : array, (K, N)
    Z : array, (K, N−1)
        Auxiliary variables. Only those of BGAR, the log odds of what is retained, are remembered.
    Y : array, (K, N)
        Counts of each component.
    q : array, (N,)
        Exposures.
    rng : numpy Generator
    first : First
    held : {0, 1}
        Steps at the beginning that stay as they are.
    """
    draw = _DRAWS[chain.name]
    a, b = first.shape, first.shape / first.level
    draw(rng, H, Z, Y, q, chain._rows(len(H), "log"), a, b, held)


def start_auxiliary(chain: Chain, H: Array) -> Array:
    """Auxiliary variables to start from, (K, N−1)."""
    return np.zeros((len(H), H.shape[1] - 1))


@njit(cache=True, nogil=True, error_model="numpy")
def _gamma(rng: Any, shape: float, rate: float) -> float:
    return max(rng.standard_gamma(shape) / rate, FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def _rescale(rng: Any, h: Array, y: Array, q: Array, a: float, b: float) -> None:
    """The scale of a whole path, for chains that know none."""
    shape, rate = a, b * h[0]
    for n in range(h.size):
        shape += y[n]
        rate += q[n] * h[n]
    factor = rng.standard_gamma(shape) / rate
    for n in range(h.size):
        h[n] = max(h[n] * factor, FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_gap(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """h_n ~ Gamma(α + y_n, β + q_n)."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        for n in range(held, H.shape[1]):
            H[k, n] = _gamma(rng, alpha + Y[k, n], beta + q[n])


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_rate(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """Inner h_n: generalised inverse Gaussian with index y_n, 2(q_n + β/h_{n−1}), 2β h_{n+1}."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        h, y = H[k], Y[k]
        last = h.size - 1
        for n in range(held, h.size):
            index, rate = y[n], q[n]
            if n > 0:
                rate += beta / h[n - 1]
            else:
                index += a - alpha
                rate += b
            if n < last:
                h[n] = max(gig(rng, index, 2.0 * rate, 2.0 * beta * h[n + 1]), FLOOR)
            else:
                h[n] = _gamma(rng, index + alpha, rate)
        if held == 0:
            _rescale(rng, h, y, q, a, b)


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_hier_rate(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """z_n ~ Gamma(α_z + α_h, β_z h_{n−1} + β_h h_n); h_n is Gamma given the z on both sides."""
    for k in range(H.shape[0]):
        alpha_z, beta_z, alpha_h, beta_h, _, _, _ = seven(rows[k])
        h, y, z = H[k], Y[k], Z[k]
        for n in range(1, h.size):
            z[n - 1] = _gamma(rng, alpha_z + alpha_h, beta_z * h[n - 1] + beta_h * h[n])
        for n in range(held, h.size):
            shape, rate = y[n], q[n]
            if n > 0:
                shape += alpha_h
                rate += beta_h * z[n - 1]
            else:
                shape += a
                rate += b
            if n < h.size - 1:
                shape += alpha_z
                rate += beta_z * z[n]
            h[n] = _gamma(rng, shape, rate)
        if held == 0:
            _rescale(rng, h, y, q, a, b)


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_shape(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """Backwards counts, forwards activations (Acharya et al. 2015, Schein et al. 2016).

    With h_n integrated out, m_n counts at exposure Q_n are negative binomial in α h_{n−1}; of
    these, l_n ~ CRT(m_n, α h_{n−1}) is a Poisson count of h_{n−1} at exposure α log(1 + Q_n/β).
    So h_{n−1} has m_{n−1} = y_{n−1} + l_n at Q_{n−1} = q_{n−1} + α log(1 + Q_n/β). Then
    h_n ~ Gamma(α h_{n−1} + m_n, β + Q_n), from the first on.
    """
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
            h[0] = _gamma(rng, a + counts[0], b + exposures[0])
        for n in range(1, N):
            h[n] = _gamma(rng, alpha * h[n - 1] + counts[n], beta + exposures[n])


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_hier_shape(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """z_n ~ Bessel(α − 1, 2β √(h_{n−1} h_n)); h_n is Gamma given the z on both sides."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        h, y, z = H[k], Y[k], Z[k]
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
            h[n] = _gamma(rng, shape, rate)


# BGAR. With a the part of h_{n−1} that is retained, w the smaller of h_{n−1} and h_n, and z the log
# odds of a in w, the distances of a to both ends are known without cancellation.


@njit(cache=True, nogil=True, error_model="numpy")
def _log_odds_density(z: float, p: tuple[float, float, float, float, float]) -> float:
    """log p(z | h_{n−1}, h_n): a^η (w−a)^γ (other−a)^(γ−1) e^{βa}, with a (w−a)/w for dz."""
    smaller, beyond, eta, gamma, beta = p
    # a = w s(z), w − a = w s(−z); logs of both by log1p.
    log_share = -math.log1p(math.exp(-z)) if z > 0.0 else z - math.log1p(math.exp(z))
    log_rest = -math.log1p(math.exp(z)) if z <= 0.0 else -z - math.log1p(math.exp(-z))
    other = beyond + smaller * math.exp(log_rest)
    tail = (gamma - 1.0) * math.log(max(other, FLOOR))
    return eta * log_share + gamma * log_rest + tail + beta * smaller * math.exp(log_share)


@njit(cache=True, nogil=True, error_model="numpy")
def _excess_density(x: float, p: tuple[float, ...]) -> float:
    """log p(x), x = log(h_n − m), m the larger of what comes in, a, and what goes on, c.

    (h−a)^(γ−1) e^{−βh} for the step that arrives (h^(α−1) e^{−βh} for the first), times
    (h−c)^(γ−1) h^(1−α) for the step that leaves, times h^y e^{−qh}.
    """
    arriving, leaving, larger, alpha, gamma, beta, y, q, first, last = p
    excess = math.exp(x)
    h = larger + excess
    if not h < 1e300:
        return -math.inf
    log_h = math.log(max(h, FLOOR))
    value = x + y * log_h - (beta + q) * h
    if first > 0.0:
        value += (alpha - 1.0) * log_h
    else:
        value += (gamma - 1.0) * math.log(max(larger - arriving + excess, FLOOR))
    if last == 0.0:
        value += (gamma - 1.0) * math.log(max(larger - leaving + excess, FLOOR))
        value += (1.0 - alpha) * log_h
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _retained(before: float, after: float, z: float) -> float:
    return min(before, after) / (1.0 + math.exp(-z))


@njit(cache=True, nogil=True, error_model="numpy")
def _log_odds(a: float, smaller: float) -> float:
    return math.log(max(a, FLOOR)) - math.log(max(smaller - a, FLOOR))


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_bgar(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """Slice steps for the retained parts and the activations, then the scale of all.

    h → c h and a → c a: c ~ Gamma(α + (N−1)γ + Σy, β (h_1 + Σ ε_n) + Σ q h), ε the noise.
    """
    N = H.shape[1]
    parts = np.empty(N + 1)  # what comes into step n from the one before
    for k in range(H.shape[0]):
        beta, eta, gamma, _, _, _, _ = seven(rows[k])
        alpha = eta + gamma
        h, y, z = H[k], Y[k], Z[k]
        for n in range(1, N):
            low, high = min(h[n - 1], h[n]), max(h[n - 1], h[n])
            p = (low, high - low, eta, gamma, beta)
            z[n - 1] = slice_step(rng, _log_odds_density, z[n - 1], p, 1.0)
        parts[0], parts[N] = 0.0, 0.0
        for n in range(1, N):
            parts[n] = _retained(h[n - 1], h[n], z[n - 1])
        for n in range(held, N):
            larger = max(parts[n], parts[n + 1])
            first, last = 1.0 if n == 0 else 0.0, 1.0 if n == N - 1 else 0.0
            rest = (parts[n], parts[n + 1], larger, alpha, gamma, beta, y[n], q[n], first, last)
            x = math.log(max(h[n] - larger, FLOOR))
            h[n] = max(larger + math.exp(slice_step(rng, _excess_density, x, rest, 1.0)), FLOOR)
        factor = 1.0
        if held == 0:
            noise, shape, rate = h[0], alpha, 0.0
            for n in range(N):
                if n > 0:
                    noise += h[n] - parts[n]
                    shape += gamma
                shape += y[n]
                rate += q[n] * h[n]
            factor = rng.standard_gamma(shape) / (rate + beta * noise)
            for n in range(N):
                h[n] = max(h[n] * factor, FLOOR)
        for n in range(1, N):
            z[n - 1] = _log_odds(parts[n] * factor, min(h[n - 1], h[n]))


_DRAWS = {
    "gap": _draw_gap,
    "rate": _draw_rate,
    "hier_rate": _draw_hier_rate,
    "shape": _draw_shape,
    "hier_shape": _draw_hier_shape,
    "bgar": _draw_bgar,
}
