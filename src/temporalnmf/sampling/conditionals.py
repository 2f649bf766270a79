"""Activations of one component given its counts, chain by chain (MATH.md, section 4).

Counts of data, split over the components, make y_n ~ Poisson(q_n h_n) for each component on its
own, with q_n the exposure of step n (zero where it was not observed). A round draws all h_n from
their conditional laws, with auxiliary variables z where these make the laws known ones. Every
chain starts at h_1 ~ Gamma(a, b), proper, except those that have a law of their own there.

Step by step a stiff chain would hardly move where nothing was observed, nor would its level. So a
round ends with blocks h_n … h_m → c h_n … c h_m, where c has a law with few parameters: lengths 2,
4, 8 … from random places on, and the whole path. What is inside of a block stays in proportion, so
that c only feels the ends, and the counts.

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
from ..kernels.special import _log_bessel_scaled
from ..kernels.variates import bessel, crt, gig, slice_step
from ..kernels.variates.shared import stirling_error
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
def _blocks(rng: Any, n_steps: int, held: int, shortest: int, longest: int) -> Array:
    """First and last steps (…, 2) of blocks of 2^shortest … 2^longest steps, at random offsets.

    Each length covers all steps that may move; what sticks out at the ends is cut off.
    """
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
    """Least m with 2^m ≥ N: blocks of that many steps are whole paths, or their two parts."""
    m = 0
    while 1 << m < n_steps:
        m += 1
    return m


@njit(cache=True, nogil=True, error_model="numpy")
def _counted(h: Array, y: Array, q: Array, n: int, m: int) -> tuple[float, float]:
    """Σ y and Σ q h of a block: c^Σy e^{−c Σqh} is what its scale c gets from the counts."""
    total, rate = 0.0, 0.0
    for j in range(n, m + 1):
        total += y[j]
        rate += q[j] * h[j]
    return total, rate


@njit(cache=True, nogil=True, error_model="numpy")
def _scale(h: Array, n: int, m: int, factor: float) -> None:
    for j in range(n, m + 1):
        h[j] = max(h[j] * factor, FLOOR)


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
    """Blocks, from single steps on: c is generalised inverse Gaussian.

    Transitions inside of a block give c^{1−length}, which the volume of the block takes back; those
    at its ends c^{α−1} e^{−c β h_n/h_{n−1}} and c^{−α} e^{−β h_{m+1}/(c h_m)}.
    """
    N = H.shape[1]
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        h, y = H[k], Y[k]
        for n, m in _blocks(rng, N, held, 0, _levels(N)):
            index, rate = _counted(h, y, q, n, m)
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
            _scale(h, n, m, factor)


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_hier_rate(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """Blocks, from single steps on: z at their ends, then c, which is Gamma.

    z_n ~ Gamma(α_z + α_h, β_z h_{n−1} + β_h h_n). Inside of a block z → z/c leaves everything as
    it is; at its ends c^{α_h} e^{−c β_h z_n h_n} and c^{α_z} e^{−c β_z z_{m+1} h_m}.
    """
    N = H.shape[1]
    for k in range(H.shape[0]):
        alpha_z, beta_z, alpha_h, beta_h, _, _, _ = seven(rows[k])
        h, y = H[k], Y[k]
        for n, m in _blocks(rng, N, held, 0, _levels(N)):
            shape, rate = _counted(h, y, q, n, m)
            if n > 0:
                z = _gamma(rng, alpha_z + alpha_h, beta_z * h[n - 1] + beta_h * h[n])
                shape += alpha_h
                rate += beta_h * z * h[n]
            else:
                shape += a
                rate += b * h[n]
            if m < N - 1:
                z = _gamma(rng, alpha_z + alpha_h, beta_z * h[m] + beta_h * h[m + 1])
                shape += alpha_z
                rate += beta_z * z * h[m]
            _scale(h, n, m, rng.standard_gamma(shape) / rate)


# Blocks of Shape and HierShape: c has a density with log Γ or Bessel functions of every step. With
# their expansions for large arguments instead, the density depends on four numbers only,
#
#   power u − rate c + root √c − twist c u,   u = log c:
#
# a slice step of that, accepted or not by what the expansions leave out (J. S. Liu 2001, Monte
# Carlo Strategies in Scientific Computing, 9.4.3: surrogate transitions). Steps at the floor have
# lost their size, so a block has none, and next to its end there is none.


@njit(cache=True, nogil=True, error_model="numpy")
def _surrogate(u: float, p: tuple[float, float, float, float, float]) -> float:
    power, rate, root, twist, lowest = p
    c = math.exp(u)
    if not lowest * c > FLOOR:
        return -math.inf
    return power * u - rate * c + root * math.sqrt(c) - twist * c * u


@njit(cache=True, nogil=True, error_model="numpy")
def _lowest(h: Array, n: int, m: int) -> float:
    """The least of a block and of the step behind it."""
    lowest = h[n]
    for j in range(n + 1, min(m + 2, h.size)):
        lowest = min(lowest, h[j])
    return lowest


@njit(cache=True, nogil=True, error_model="numpy")
def _move_shape_block(
    rng: Any, h: Array, y: Array, q: Array, alpha: float, beta: float, a: float, b: float,
    n: int, m: int,
) -> None:  # fmt: skip
    """h_{j+1} ~ Gamma(x, β), x = α h_j: (β h_{j+1})^x / Γ(x) e^{−β h_{j+1}}, log Γ by Stirling.

    Where both are inside, c x log(c β h_{j+1}) − c x log(c x) leaves no c log c. Of the powers of
    c, 1 − length and the volume of the block leave one.
    """
    lowest = _lowest(h, n, m)
    if lowest <= FLOOR:
        return
    power, rate = _counted(h, y, q, n, m)
    power += alpha * h[n - 1] if n > 0 else a
    rate += beta * h[n] if n > 0 else b * h[n]
    end = min(m + 1, h.size - 1)
    for j in range(n, end):
        power += 0.5
        rate += alpha * h[j] * (math.log(alpha * h[j] / (beta * h[j + 1])) - 1.0)
        if j < m:
            rate += beta * h[j + 1]
    twist = alpha * h[m] if m < end else 0.0
    p = (power, rate, 0.0, twist, lowest)
    u = slice_step(rng, _surrogate, 0.0, p, 2.0 / math.sqrt(1.0 + power + twist))
    factor = math.exp(u)
    gained = 0.0
    for j in range(n, end):
        gained += stirling_error(alpha * h[j]) - stirling_error(alpha * h[j] * factor)
    if -rng.standard_exponential() < gained:
        _scale(h, n, m, factor)


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_shape(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """Backwards counts, forwards activations (Acharya et al. 2015, Schein et al. 2016).

    With h_n integrated out, m_n counts at exposure Q_n are negative binomial in α h_{n−1}; of
    these, l_n ~ CRT(m_n, α h_{n−1}) is a Poisson count of h_{n−1} at exposure α log(1 + Q_n/β).
    So h_{n−1} has m_{n−1} = y_{n−1} + l_n at Q_{n−1} = q_{n−1} + α log(1 + Q_n/β). Then
    h_n ~ Gamma(α h_{n−1} + m_n, β + Q_n), from the first on. Then blocks.
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
        for n, m in _blocks(rng, N, held, 1, _levels(N)):
            _move_shape_block(rng, h, y, q, alpha, beta, a, b, n, m)


@njit(cache=True, nogil=True, error_model="numpy")
def _bessel_error(nu: float, x: float) -> float:
    """log(√x I_ν(x) e^−x)."""
    return 0.5 * math.log(x) + _log_bessel_scaled(nu, x)


@njit(cache=True, nogil=True, error_model="numpy")
def _move_hier_shape_block(
    rng: Any, h: Array, y: Array, q: Array, alpha: float, beta: float, a: float, b: float,
    n: int, m: int,
) -> None:  # fmt: skip
    """(h′/h)^((α−1)/2) e^{−β (√h′ − √h)²} I_{α−1}(x) e^−x, x = 2β √(h h′), where I e^−x ≈ 1/√x.

    z is integrated out; the next round begins by drawing it.
    """
    lowest = _lowest(h, n, m)
    if lowest <= FLOOR:
        return
    power, rate = _counted(h, y, q, n, m)
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
    u = slice_step(rng, _surrogate, 0.0, (power, rate, root, 0.0, lowest), width)
    factor = math.exp(u)
    gained = 0.0
    for j in range(max(n - 1, 0), min(m + 1, h.size - 1)):
        x = 2.0 * beta * math.sqrt(h[j] * h[j + 1])
        by = factor if n <= j < m else math.sqrt(factor)
        gained += _bessel_error(alpha - 1.0, x * by) - _bessel_error(alpha - 1.0, x)
    if -rng.standard_exponential() < gained:
        _scale(h, n, m, factor)


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_hier_shape(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """z_n ~ Bessel(α − 1, 2β √(h_{n−1} h_n)); h_n is Gamma given the z on both sides.

    Then blocks.
    """
    N = H.shape[1]
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
        for n, m in _blocks(rng, N, held, 1, _levels(N)):
            _move_hier_shape_block(rng, h, y, q, alpha, beta, a, b, n, m)


# BGAR. The part a of h_{n−1} that is retained is known by its log odds z in w, the smaller of both
# steps: a = w s, s = 1/(1 + e^−z), rest = 1 − s. With z for a, a transition has the density
#
#   s^η rest^γ min(1, h_n/h_{n−1})^(α−1) (|gap| + w rest)^(γ−1) e^{−β (max(gap, 0) + w rest)},
#
# gap = h_n − h_{n−1}. For small γ it has a spike at gap = 0, so narrow that steps are equal in all
# digits of a double: with γ = 0.03 every third. Hence gaps are kept beside h, and their digits
# beyond those of h are drawn anew in every round; there the density depends on nothing else.

_DIGITS = 2.0**-52
# A law with α = 0.02 spends half of its time below the floor of the solvers: go on beyond it.
LOWEST, _SMALLEST = 1e-200, 1e-300


@njit(cache=True, nogil=True, error_model="numpy")
def _gap(rng: Any, before: float, after: float, rest: float, gamma: float) -> float:
    """h_n − h_{n−1} with all its digits, given those that are known."""
    gap, w = after - before, min(before, after)
    if abs(gap) > _DIGITS * w:
        return gap + _DIGITS * w * (rng.random() - 0.5)
    return w * _near(rng, _DIGITS, rest, gamma)


@njit(cache=True, nogil=True, error_model="numpy")
def _near(rng: Any, reach: float, rest: float, gamma: float) -> float:
    """x in (−reach, reach) with the density (|x| + rest)^(γ−1), by inversion."""
    low = rest**gamma
    level = low + rng.random() * ((reach + rest) ** gamma - low)
    x = min(max(level ** (1.0 / gamma) - rest, _SMALLEST), reach)
    return x if rng.random() < 0.5 else -x


@njit(cache=True, nogil=True, error_model="numpy")
def _log_odds_density(z: float, p: tuple[float, float, float, float, float]) -> float:
    """log p(z | h_{n−1}, h_n), see above; known are the smaller of both, and |gap| in its units."""
    smaller, gap, eta, gamma, beta = p
    tail = math.log1p(math.exp(-abs(z)))
    log_rest = -tail - max(z, 0.0)
    rest = math.exp(log_rest)
    value = eta * (log_rest + z) + gamma * log_rest - beta * smaller * rest
    return value + (gamma - 1.0) * math.log(max(gap + rest, _SMALLEST))


class _Block(NamedTuple):
    """What the scale of a block h_n … h_m feels; x stands for h_n, and x ratio for h_m."""

    x: float
    ratio: float
    before: float  # h_{n−1}; negative: there is none
    after: float  # h_{m+1}; likewise
    gap_before: float
    gap_after: float
    rest_before: float
    rest_after: float
    power: float  # of x, and
    rate: float  # in e^{−rate x}: counts, transitions inside of the block, the law of h_1
    alpha: float
    gamma: float
    beta: float
    apart: float  # gaps at the ends, in units of the smaller neighbour, are at least that


@njit(cache=True, nogil=True, error_model="numpy")
def _block(
    h: Array, gaps: Array, rests: Array, y: Array, q: Array, n: int, m: int, alpha: float,
    gamma: float, beta: float, apart: float,
) -> _Block:  # fmt: skip
    """A block: h, z fixed inside give x^(γ (length−1)) e^{−β Σ noise}, its volume included."""
    power, rate = _counted(h, y, q, n, m)
    power += gamma * (m - n)
    for j in range(n + 1, m + 1):
        rate += beta * (max(gaps[j], 0.0) + min(h[j - 1], h[j]) * rests[j])
    before, after = -1.0, -1.0
    if n > 0:
        before = h[n - 1]
    else:
        power += alpha - 1.0
        rate += beta * h[n]
    if m < h.size - 1:
        after = h[m + 1]
    return _Block(
        h[n], h[m] / h[n], before, after, gaps[n], gaps[m + 1], rests[n], rests[m + 1],
        power, rate / h[n], alpha, gamma, beta, apart,
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _end(before: float, after: float, gap: float, rest: float, p: _Block) -> float:
    """Log density of the transition at an end of a block."""
    w = min(before, after)
    if abs(gap) < p.apart * w:
        return -math.inf
    value = (p.gamma - 1.0) * (math.log(w) + math.log(max(abs(gap) / w + rest, _SMALLEST)))
    if after < before:
        value += (p.alpha - 1.0) * math.log(after / before)
    return value - p.beta * (max(gap, 0.0) + w * rest)


@njit(cache=True, nogil=True, error_model="numpy")
def _value(x: float, gap_before: float, gap_after: float, p: _Block) -> float:
    """Log density of x, with the gaps that it makes."""
    value = p.power * math.log(x) - p.rate * x
    if p.before >= 0.0:
        value += _end(p.before, x, gap_before, p.rest_before, p)
    if p.after >= 0.0:
        value += _end(x * p.ratio, p.after, gap_after, p.rest_after, p)
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _value_of_log(u: float, p: _Block) -> float:
    """Log density of u, x → x e^u."""
    shift = p.x * math.expm1(u)
    x = p.x + shift
    if u < 0.0 and min(x, x * p.ratio) < LOWEST:
        return -math.inf
    return u + _value(x, p.gap_before + shift, p.gap_after - shift * p.ratio, p)


@njit(cache=True, nogil=True, error_model="numpy")
def _slid(rng: Any, p: _Block) -> tuple[float, float, float]:
    """A slice step of log x; where to, and the gaps there."""
    width = 2.0 / math.sqrt(1.0 + max(p.power, 0.0) + p.alpha * p.alpha / p.gamma)
    shift = p.x * math.expm1(slice_step(rng, _value_of_log, 0.0, p, width))
    return p.x + shift, p.gap_before + shift, p.gap_after - shift * p.ratio


@njit(cache=True, nogil=True, error_model="numpy")
def _proposed(
    x: float, gap_before: float, gap_after: float, reach: float, shape: float, rate: float,
    p: _Block,
) -> float:  # fmt: skip
    """Log density of the proposals of `_leapt`: a Gamma law, and spikes at both neighbours."""
    value = shape * math.log(rate) - math.lgamma(shape) + (shape - 1.0) * math.log(x) - rate * x
    edge = reach * (1.0 + 1e-9)  # for what rounding puts there
    if p.before >= 0.0:
        g = abs(gap_before) / p.before
        if g < edge:
            value = _log_add(value, _log_spike(g, reach, p.rest_before, p.gamma, p.before))
    if p.after >= 0.0:
        g = abs(gap_after) / p.after
        if g < edge:
            value = _log_add(value, _log_spike(g, reach, p.rest_after, p.gamma, p.after / p.ratio))
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _log_add(a: float, b: float) -> float:
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@njit(cache=True, nogil=True, error_model="numpy")
def _log_spike(g: float, reach: float, rest: float, gamma: float, unit: float) -> float:
    """Log density of `_near` at ±g, in some unit."""
    mass = 2.0 * unit * ((reach + rest) ** gamma - rest**gamma) / gamma
    return (gamma - 1.0) * math.log(max(g + rest, _SMALLEST)) - math.log(mass)


@njit(cache=True, nogil=True, error_model="numpy")
def _leapt(rng: Any, p: _Block) -> tuple[float, float, float]:
    """A Metropolis step from spike to spike: to one neighbour, to the other, or elsewhere.

    All three with the same probability. Near a neighbour x has the density of the spike.
    """
    stay = (p.x, p.gap_before, p.gap_after)
    shape, rate = p.power + 1.0, p.rate + p.beta
    if p.before < 0.0:
        shape, rate = p.power + p.gamma, p.rate
    shape = max(shape, 0.1)
    reach = min(0.9, 4.0 / math.sqrt(shape))
    n_ways = 1 + (p.before >= 0.0) + (p.after >= 0.0)
    way = int(n_ways * rng.random())
    if way == 0:
        x = rng.standard_gamma(shape) / rate
        gap_before = p.gap_before + (x - p.x)
        gap_after = p.gap_after - (x - p.x) * p.ratio
    elif way == 1 and p.before >= 0.0:
        gap_before = p.before * _near(rng, reach, p.rest_before, p.gamma)
        x = p.before + gap_before
        gap_after = p.gap_after - (gap_before - p.gap_before) * p.ratio
    else:
        gap_after = p.after * _near(rng, reach, p.rest_after, p.gamma)
        x = (p.after - gap_after) / p.ratio
        gap_before = p.gap_before - (gap_after - p.gap_after) / p.ratio
    if not min(x, x * p.ratio) > LOWEST:
        return stay
    gained = _value(x, gap_before, gap_after, p) - _value(p.x, p.gap_before, p.gap_after, p)
    gained += _proposed(p.x, p.gap_before, p.gap_after, reach, shape, rate, p)
    gained -= _proposed(x, gap_before, gap_after, reach, shape, rate, p)
    if -rng.standard_exponential() < gained:
        return x, gap_before, gap_after
    return stay


@njit(cache=True, nogil=True, error_model="numpy")
def _put(h: Array, gaps: Array, n: int, m: int, to: tuple[float, float, float]) -> None:
    """Move a block to where its first step is `to[0]`, with the gaps at its ends."""
    factor = to[0] / h[n]
    h[n] = to[0]
    gaps[n], gaps[m + 1] = to[1], to[2]
    for j in range(n + 1, m + 1):
        h[j] = max(h[j] * factor, LOWEST)
        gaps[j] *= factor


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_bgar(
    rng: Any, H: Array, Z: Array, Y: Array, q: Array, rows: Array, a: float, b: float, held: int
) -> None:
    """Retained parts; blocks, from single steps on; runs of nearly equal steps; the whole path.

    Steps stick together, and a run of them only moves as one. What counts as nearly equal, `apart`,
    is drawn anew in every round, and a run must not come closer than that to its neighbours: then
    the runs are the same after a move, and the way back is as likely.
    """
    N = H.shape[1]
    gaps, rests = np.zeros(N + 1), np.ones(N + 1)  # of the transition to step n
    for k in range(H.shape[0]):
        beta, eta, gamma, _, _, _, _ = seven(rows[k])
        alpha = eta + gamma
        h, y, z = H[k], Y[k], Z[k]
        for n in range(1, N):
            rests[n] = max(1.0 / (1.0 + math.exp(z[n - 1])), _SMALLEST)
            gaps[n] = _gap(rng, h[n - 1], h[n], rests[n], gamma)
            w = min(h[n - 1], h[n])
            p = (w, abs(gaps[n]) / w, eta, gamma, beta)
            z[n - 1] = slice_step(rng, _log_odds_density, z[n - 1], p, max(1.0, 1.0 / gamma))
            rests[n] = max(1.0 / (1.0 + math.exp(z[n - 1])), _SMALLEST)
        for n, m in _blocks(rng, N, held, 0, _levels(N)):
            if gamma < 1.0:
                block = _block(h, gaps, rests, y, q, n, m, alpha, gamma, beta, 0.0)
                _put(h, gaps, n, m, _leapt(rng, block))
            if gamma >= 1.0 or n == m:
                block = _block(h, gaps, rests, y, q, n, m, alpha, gamma, beta, 0.0)
                _put(h, gaps, n, m, _slid(rng, block))
        apart = math.exp(_CLOSEST * rng.random())
        n = held
        while n < N:
            m = n
            while m < N - 1 and abs(gaps[m + 1]) < apart * min(h[m], h[m + 1]):
                m += 1
            if n == 0 or abs(gaps[n]) >= apart * min(h[n - 1], h[n]):
                block = _block(h, gaps, rests, y, q, n, m, alpha, gamma, beta, apart)
                _put(h, gaps, n, m, _slid(rng, block))
            n = m + 1


# Runs are steps that differ by less than a part between e^this and one.
_CLOSEST = -12.0


_DRAWS = {
    "gap": _draw_gap,
    "rate": _draw_rate,
    "hier_rate": _draw_hier_rate,
    "shape": _draw_shape,
    "hier_shape": _draw_hier_shape,
    "bgar": _draw_bgar,
}
