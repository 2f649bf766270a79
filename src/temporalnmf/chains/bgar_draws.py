"""Posterior draws of BGAR.

h_1 ~ Gamma(α, β) and h_n = a_n + Gamma(γ, β), where a_n/h_{n−1} ~ Beta(η, γ) is retained.

η = αρ, γ = α (1 − ρ). The part a is known by its log odds z in w, the smaller of both steps:
a = w s, s = 1/(1 + e^−z), rest = 1 − s. The steps are above it by w rest and |gap| + w rest, with
gap = h_n − h_{n−1}: no digits are lost where a comes close to them. What is new is
noise = max(gap, 0) + w rest. A transition is

    C a^{η−1} (w rest)^{γ−1} (|gap| + w rest)^{γ−1} h_{n−1}^{1−α} e^{−β noise},             (B6)
    C = β^γ / (B(η, γ) Γ(γ)),

and with z for a, da = w s rest dz,

    C s^η rest^γ min(1, h_n/h_{n−1})^{α−1} (|gap| + w rest)^{γ−1} e^{−β noise}.             (B7)

For small γ it has a spike at gap = 0, so narrow that steps are equal in all digits of a double:
with γ = 0.03 every third. Hence gaps are kept beside h, and their digits beyond those of h are
drawn anew in every round; there the density depends on nothing else.

A round draws z; blocks, from single steps on; runs of nearly equal steps, up to the whole path. A
block is known by x, its first step, and has z fixed inside. By (B7) a transition inside gives
x^{γ−1} e^{−β noise}, noise in proportion to x, and with the volume x^γ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from .._typing import Array, Generator, Pair
from ..kernels.rows import seven
from ..kernels.variates import slice_step
from ..kernels.variates.paths import blocks, counted, log_gamma_density

# Relative distance of neighbouring doubles: closer numbers are equal.
_DIGITS = 2.0**-52
# A law with α = 0.02 spends half of its time below the floor of the solvers: go on beyond it.
_LOWEST, _SMALLEST = 1e-200, 1e-300
# Runs are steps that differ by less than a part between e^this and one.
_CLOSEST = -12.0


@njit(cache=True, nogil=True, error_model="numpy")
def draw(
    rng: Generator, H: Array, Z: Array, Y: Array, Q: Array, rows: Array, first: Pair, held: int
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
        h, y, z, q = H[k], Y[k], Z[k], Q[k]
        for n in range(1, N):
            gaps[n] = _gap(rng, h[n - 1], h[n], _rest(z[n - 1]), gamma)
            w = min(h[n - 1], h[n])
            p = (w, abs(gaps[n]) / w, eta, gamma, beta)
            z[n - 1] = slice_step(rng, _log_odds_density, z[n - 1], p, max(1.0, 1.0 / gamma))
            rests[n] = _rest(z[n - 1])
        for n, m in blocks(rng, N, held, 0):
            if gamma < 1.0:  # there are spikes
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
            # A first run that sticks to the step that is held stays with it.
            if n == 0 or abs(gaps[n]) >= apart * min(h[n - 1], h[n]):
                block = _block(h, gaps, rests, y, q, n, m, alpha, gamma, beta, apart)
                _put(h, gaps, n, m, _slid(rng, block))
            n = m + 1


# Retained parts


@njit(cache=True, nogil=True, error_model="numpy")
def _rest(z: float) -> float:
    return max(1.0 / (1.0 + math.exp(z)), _SMALLEST)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_rest(z: float) -> float:
    """log rest, which is log s − z."""
    return -math.log1p(math.exp(-abs(z))) - max(z, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_odds_density(z: float, p: tuple[float, float, float, float, float]) -> float:
    """log p(z | h_{n−1}, h_n) by (B7); known are the smaller of both, and |gap| in its units."""
    smaller, gap, eta, gamma, beta = p
    log_rest = _log_rest(z)
    rest = math.exp(log_rest)
    value = eta * (log_rest + z) + gamma * log_rest - beta * smaller * rest
    return value + (gamma - 1.0) * math.log(max(gap + rest, _SMALLEST))


@njit(cache=True, nogil=True, error_model="numpy")
def _gap(rng: Generator, before: float, after: float, rest: float, gamma: float) -> float:
    """h_n − h_{n−1} with all its digits, given those that are known."""
    gap, w = after - before, min(before, after)
    if abs(gap) > _DIGITS * w:
        return gap + _DIGITS * w * (rng.random() - 0.5)
    return w * _near(rng, _DIGITS, rest, gamma)


# Spikes


@njit(cache=True, nogil=True, error_model="numpy")
def _near(rng: Generator, reach: float, rest: float, gamma: float) -> float:
    """x in (−reach, reach) with the density (|x| + rest)^(γ−1), by inversion."""
    low = rest**gamma
    level = low + rng.random() * ((reach + rest) ** gamma - low)
    x = min(max(level ** (1.0 / gamma) - rest, _SMALLEST), reach)
    return x if rng.random() < 0.5 else -x


@njit(cache=True, nogil=True, error_model="numpy")
def _log_spike(g: float, reach: float, rest: float, gamma: float, unit: float) -> float:
    """Log density of `_near` at ±g, in some unit."""
    mass = 2.0 * unit * ((reach + rest) ** gamma - rest**gamma) / gamma
    return (gamma - 1.0) * math.log(max(g + rest, _SMALLEST)) - math.log(mass)


# Blocks


class _Block(NamedTuple):
    """What the scale of a block h_n … h_m depends on; x is h_n, and x · ratio is h_m."""

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
    """h_n … h_m, with x^{γ (length − 1)} e^{−β Σ noise} from inside."""
    power, rate = counted(h, y, q, n, m)
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
def _put(h: Array, gaps: Array, n: int, m: int, to: tuple[float, float, float]) -> None:
    """Move a block to where its first step is `to[0]`, with the gaps at its ends."""
    factor = to[0] / h[n]
    h[n] = to[0]
    gaps[n], gaps[m + 1] = to[1], to[2]
    for j in range(n + 1, m + 1):
        h[j] = max(h[j] * factor, _LOWEST)
        gaps[j] *= factor


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
def _end(before: float, after: float, gap: float, rest: float, p: _Block) -> float:
    """Log density of the transition at an end of a block: (B7) as far as it depends on steps."""
    w = min(before, after)
    if abs(gap) < p.apart * w:
        return -math.inf
    value = (p.gamma - 1.0) * (math.log(w) + math.log(max(abs(gap) / w + rest, _SMALLEST)))
    if after < before:
        value += (p.alpha - 1.0) * math.log(after / before)
    return value - p.beta * (max(gap, 0.0) + w * rest)


@njit(cache=True, nogil=True, error_model="numpy")
def _slid(rng: Generator, p: _Block) -> tuple[float, float, float]:
    """A slice step of log x; where to, and the gaps there."""
    width = 2.0 / math.sqrt(1.0 + max(p.power, 0.0) + p.alpha * p.alpha / p.gamma)
    shift = p.x * math.expm1(slice_step(rng, _value_of_log, 0.0, p, width))
    return p.x + shift, p.gap_before + shift, p.gap_after - shift * p.ratio


@njit(cache=True, nogil=True, error_model="numpy")
def _value_of_log(u: float, p: _Block) -> float:
    """Log density of u, x → x e^u."""
    shift = p.x * math.expm1(u)
    x = p.x + shift
    if u < 0.0 and min(x, x * p.ratio) < _LOWEST:
        return -math.inf
    return u + _value(x, p.gap_before + shift, p.gap_after - shift * p.ratio, p)


@njit(cache=True, nogil=True, error_model="numpy")
def _leapt(rng: Generator, p: _Block) -> tuple[float, float, float]:
    """A Metropolis step from spike to spike: to one neighbour, to the other, or elsewhere.

    All three with the same probability. Near a neighbour x has the density of the spike; elsewhere
    it has a Gamma law that knows the counts.
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
    if not min(x, x * p.ratio) > _LOWEST:
        return stay
    gained = _value(x, gap_before, gap_after, p) - _value(p.x, p.gap_before, p.gap_after, p)
    gained += _proposed(p.x, p.gap_before, p.gap_after, reach, shape, rate, p)
    gained -= _proposed(x, gap_before, gap_after, reach, shape, rate, p)
    if -rng.standard_exponential() < gained:
        return x, gap_before, gap_after
    return stay


@njit(cache=True, nogil=True, error_model="numpy")
def _proposed(
    x: float, gap_before: float, gap_after: float, reach: float, shape: float, rate: float,
    p: _Block,
) -> float:  # fmt: skip
    """Log density of the proposals of `_leapt`: a Gamma law, and spikes at both neighbours."""
    value = log_gamma_density(x, shape, rate, 0.0)
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


# The law of a path


@njit(cache=True, nogil=True, error_model="numpy")
def log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """The first step, then (B6): a density of activations and retained parts."""
    for k in range(H.shape[0]):
        beta, eta, gamma, _, _, _, _ = seven(rows[k])
        alpha = eta + gamma
        constant = math.lgamma(alpha) - math.lgamma(eta) - math.lgamma(gamma)
        found[k] = log_gamma_density(H[k, 0], alpha, beta, _LOWEST)
        for n in range(1, H.shape[1]):
            before, after, z = H[k, n - 1], H[k, n], Z[k, n - 1]
            smaller = min(before, after)
            log_rest = _log_rest(z)
            rest = math.exp(log_rest)
            found[k] += (
                constant
                + (eta - 1.0) * (math.log(smaller) + log_rest + z)
                + (gamma - 1.0) * (math.log(smaller) + log_rest)
                + _log_far(abs(after - before) / smaller, rest, gamma)
                + (gamma - 1.0) * math.log(smaller)
                - (alpha - 1.0) * math.log(before)
                + gamma * math.log(beta)
                - math.lgamma(gamma)
                - beta * (max(after - before, 0.0) + smaller * rest)
            )


@njit(cache=True, nogil=True, error_model="numpy")
def _log_far(gap: float, rest: float, gamma: float) -> float:
    """log (gap + rest)^(γ−1); of steps equal in all digits its mean over gaps below these."""
    if gap > _DIGITS:
        return (gamma - 1.0) * math.log(gap + rest)
    if rest > _DIGITS:
        rise = rest**gamma * math.expm1(gamma * math.log1p(_DIGITS / rest))
    else:
        rise = (_DIGITS + rest) ** gamma - rest**gamma
    return math.log(rise / (gamma * _DIGITS))


def log_volume(H: Array, Z: Array) -> Array:
    """Σ log da/dz = Σ log(w s rest) of each path (K,): makes of (B6) the density (B7)."""
    smaller = np.minimum(H[:, :-1], H[:, 1:])
    found: Array = np.sum(np.log(smaller) - np.logaddexp(0.0, Z) - np.logaddexp(0.0, -Z), axis=1)
    return found
