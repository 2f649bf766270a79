"""Shared by draws of paths: Gamma variables with a floor, blocks of steps, a surrogate density."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ..._typing import Array, Generator
from ..floor import FLOOR


@njit(cache=True, nogil=True, error_model="numpy")
def gamma_draw(rng: Generator, shape: float, rate: float) -> float:
    """Draw from Gamma(shape, rate), clipped at the floor."""
    return max(rng.standard_gamma(shape) / rate, FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def log_gamma_density(h: float, shape: float, rate: float, floor: float) -> float:
    """Log density of Gamma(shape, rate) clipped at the floor; there, a log probability.

    P(h ≤ ε) = (rate ε)^shape / Γ(1 + shape) if e^{−rate ε} is 1 up to rounding.
    """
    if h <= floor:
        return shape * math.log(rate * floor) - math.lgamma(1.0 + shape)
    return shape * math.log(rate) - math.lgamma(shape) + (shape - 1.0) * math.log(h) - rate * h


@njit(cache=True, nogil=True, error_model="numpy")
def blocks(rng: Generator, n_steps: int, held: int, shortest: int) -> Array:
    """First and last steps (…, 2) of blocks of 2^shortest, … 2^m ≥ N steps, at random offsets.

    Blocks of each length cover all steps that may move, and are cut off at the ends.
    """
    longest = _levels(n_steps)
    # There are fewer than N/length + 2 blocks of a length.
    found = np.empty((2 * n_steps + 2 * longest + 2, 2), dtype=np.int64)
    count = 0
    for power in range(shortest, longest + 1):
        size = 1 << power
        start = held - int(rng.random() * size)
        while start < n_steps:
            found[count, 0] = max(start, held)
            found[count, 1] = min(start + size, n_steps) - 1
            start += size
            count += 1
    return found[:count]


@njit(cache=True, nogil=True, error_model="numpy")
def _levels(n_steps: int) -> int:
    """Least m with 2^m ≥ N: a block of so many steps is the path, or one of two parts of it."""
    m = 0
    while 1 << m < n_steps:
        m += 1
    return m


@njit(cache=True, nogil=True, error_model="numpy")
def counted(h: Array, y: Array, q: Array, n: int, m: int) -> tuple[float, float]:
    """Σ y and Σ q h of a block: the counts contribute c^Σy e^{−c Σqh} to its scale c."""
    total, rate = 0.0, 0.0
    for j in range(n, m + 1):
        total += y[j]
        rate += q[j] * h[j]
    return total, rate


@njit(cache=True, nogil=True, error_model="numpy")
def scale(h: Array, n: int, m: int, factor: float) -> None:
    """Multiply a block by a factor."""
    for j in range(n, m + 1):
        h[j] = max(h[j] * factor, FLOOR)


# Blocks of Shape, HierShape and ARG: the density of c has Γ or Bessel functions of every step. With
# their expansions for large arguments instead, its logarithm depends on four numbers only,
#
#   power u − rate c + root √c − twist c u,   u = log c:
#
# A slice step of this surrogate is accepted or rejected by the error of the expansions (J. S. Liu
# 2001, Monte Carlo Strategies in Scientific Computing, 9.4.3: surrogate transitions). Clipped steps
# cannot be scaled, so there is none in a block, nor right after it.


@njit(cache=True, nogil=True, error_model="numpy")
def surrogate(u: float, p: tuple[float, float, float, float, float]) -> float:
    """The log density above; the last parameter, the least step, must stay above the floor."""
    power, rate, root, twist, least = p
    c = math.exp(u)
    if not least * c > FLOOR:
        return -math.inf
    return power * u - rate * c + root * math.sqrt(c) - twist * c * u


@njit(cache=True, nogil=True, error_model="numpy")
def lowest(h: Array, n: int, m: int) -> float:
    """The least step of a block and the step after it."""
    least = h[n]
    for j in range(n + 1, min(m + 2, h.size)):
        least = min(least, h[j])
    return least
