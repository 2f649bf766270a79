"""Posterior draws of BGAR.

h_1 ~ Gamma(α, β) and h_n = a_n + Gamma(γ, β), where a_n is the retained part of h_{n−1}:
a_n/h_{n−1} ~ Beta(η, γ), η = αρ, γ = α (1 − ρ). It is stored as its log odds z relative to w, the
smaller of both steps: a = w s, s = 1/(1 + e^−z), rest = 1 − s. With gap = h_n − h_{n−1}, the steps
exceed a by w rest and |gap| + w rest, without cancellation, and the new part of h_n is
noise = max(gap, 0) + w rest. The density of a transition is

    C a^{η−1} (w rest)^{γ−1} (|gap| + w rest)^{γ−1} h_{n−1}^{1−α} e^{−β noise},             (B6)
    C = β^γ / (B(η, γ) Γ(γ)),

and in terms of z, da = w s rest dz,

    C s^η rest^γ min(1, h_n/h_{n−1})^{α−1} (|gap| + w rest)^{γ−1} e^{−β noise}.             (B7)

For small γ it has a spike at gap = 0, so narrow that many steps are equal as doubles (with
γ = 0.03, every third). Hence gaps are stored in addition to h, and their digits beyond the
precision of h are redrawn in every round: at that scale the density depends on the gap alone.

A round draws z, then blocks (single steps included), then stretches of nearly equal steps. A block
is scaled with its first step x, its inner z fixed. By (B7) an inner transition contributes
x^{γ−1} e^{−β noise}, with noise proportional to x; times the volume, x^γ e^{−β noise}.
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

# Relative precision of doubles.
_DIGITS = 2.0**-52
# Bounds below the floor of the solvers: for α = 0.02, half of all activations are below that.
_LOWEST, _SMALLEST = 1e-200, 1e-300
# Steps are nearly equal if they differ by less than a factor between e^this and 1, relatively.
_CLOSEST = -12.0


@njit(cache=True, nogil=True, error_model="numpy")
def draw(
    rng: Generator, H: Array, Z: Array, Y: Array, Q: Array, rows: Array, first: Pair, held: int
) -> None:
    """Draw retained parts, blocks (single steps included) and stretches of nearly equal steps.

    Nearly equal steps can only move together. The threshold of near equality, `apart`, is redrawn
    in every round. A stretch must not come closer than that to its neighbours: then a move leaves
    the stretches the same, which makes it reversible.
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
            if gamma < 1.0:  # the density has spikes
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
            # A first stretch nearly equal to the held step stays where it is.
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
    """log p(z | h_{n−1}, h_n) by (B7), from the smaller of both and |gap| relative to it."""
    smaller, gap, eta, gamma, beta = p
    log_rest = _log_rest(z)
    rest = math.exp(log_rest)
    value = eta * (log_rest + z) + gamma * log_rest - beta * smaller * rest
    return value + (gamma - 1.0) * math.log(max(gap + rest, _SMALLEST))


@njit(cache=True, nogil=True, error_model="numpy")
def _gap(rng: Generator, before: float, after: float, rest: float, gamma: float) -> float:
    """h_n − h_{n−1}, with the digits beyond the precision of h drawn."""
    gap, w = after - before, min(before, after)
    if abs(gap) > _DIGITS * w:
        return gap + _DIGITS * w * (rng.random() - 0.5)
    return w * _near(rng, _DIGITS, rest, gamma)


# Spikes


@njit(cache=True, nogil=True, error_model="numpy")
def _near(rng: Generator, reach: float, rest: float, gamma: float) -> float:
    """x in (−reach, reach) with density ∝ (|x| + rest)^(γ−1), by inversion."""
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
    """The density of the scale of a block h_n … h_m; x is h_n, and x · ratio is h_m."""

    x: float
    ratio: float
    before: float  # h_{n−1}; negative if there is none
    after: float  # h_{m+1}; likewise
    gap_before: float
    gap_after: float
    rest_before: float
    rest_after: float
    power: float  # of x, and
    rate: float  # in e^{−rate x}: from counts, inner transitions and the prior of h_1
    alpha: float
    gamma: float
    beta: float
    apart: float  # least |gap| at the ends, relative to the smaller step


@njit(cache=True, nogil=True, error_model="numpy")
def _block(
    h: Array, gaps: Array, rests: Array, y: Array, q: Array, n: int, m: int, alpha: float,
    gamma: float, beta: float, apart: float,
) -> _Block:  # fmt: skip
    """The block h_n … h_m; inner transitions contribute x^{γ (length − 1)} e^{−β Σ noise}."""
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
    """Move a block; `to` has its new first step and the new gaps at its ends."""
    factor = to[0] / h[n]
    h[n] = to[0]
    gaps[n], gaps[m + 1] = to[1], to[2]
    for j in range(n + 1, m + 1):
        h[j] = max(h[j] * factor, _LOWEST)
        gaps[j] *= factor


@njit(cache=True, nogil=True, error_model="numpy")
def _value(x: float, gap_before: float, gap_after: float, p: _Block) -> float:
    """Log density of x, given the gaps that follow from it."""
    value = p.power * math.log(x) - p.rate * x
    if p.before >= 0.0:
        value += _end(p.before, x, gap_before, p.rest_before, p)
    if p.after >= 0.0:
        value += _end(x * p.ratio, p.after, gap_after, p.rest_after, p)
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _end(before: float, after: float, gap: float, rest: float, p: _Block) -> float:
    """Log density (B7) of the transition at an end of a block, up to factors of z."""
    w = min(before, after)
    if abs(gap) < p.apart * w:
        return -math.inf
    value = (p.gamma - 1.0) * (math.log(w) + math.log(max(abs(gap) / w + rest, _SMALLEST)))
    if after < before:
        value += (p.alpha - 1.0) * math.log(after / before)
    return value - p.beta * (max(gap, 0.0) + w * rest)


@njit(cache=True, nogil=True, error_model="numpy")
def _slid(rng: Generator, p: _Block) -> tuple[float, float, float]:
    """A slice step of log x: the new x and gaps."""
    width = 2.0 / math.sqrt(1.0 + max(p.power, 0.0) + p.alpha * p.alpha / p.gamma)
    shift = p.x * math.expm1(slice_step(rng, _value_of_log, 0.0, p, width))
    return p.x + shift, p.gap_before + shift, p.gap_after - shift * p.ratio


@njit(cache=True, nogil=True, error_model="numpy")
def _value_of_log(u: float, p: _Block) -> float:
    """Log density of u, where x moves to x e^u."""
    shift = p.x * math.expm1(u)
    x = p.x + shift
    if u < 0.0 and min(x, x * p.ratio) < _LOWEST:
        return -math.inf
    return u + _value(x, p.gap_before + shift, p.gap_after - shift * p.ratio, p)


@njit(cache=True, nogil=True, error_model="numpy")
def _leapt(rng: Generator, p: _Block) -> tuple[float, float, float]:
    """A Metropolis step between spikes: to one neighbour, to the other, or elsewhere.

    All three have the same probability. Near a neighbour, the proposal has the density of the
    spike; elsewhere it is Gamma, given the counts.
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
    """Log density of the proposals of `_leapt`: a Gamma, and spikes at both neighbours."""
    value = log_gamma_density(x, shape, rate, 0.0)
    edge = reach * (1.0 + 1e-9)  # allows for rounding
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


# The density of a path


@njit(cache=True, nogil=True, error_model="numpy")
def log_law(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Log density of activations and retained parts: the first step, then (B6)."""
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
    """log (gap + rest)^(γ−1); for steps equal as doubles, averaged over gaps below precision."""
    if gap > _DIGITS:
        return (gamma - 1.0) * math.log(gap + rest)
    if rest > _DIGITS:
        rise = rest**gamma * math.expm1(gamma * math.log1p(_DIGITS / rest))
    else:
        rise = (_DIGITS + rest) ** gamma - rest**gamma
    return math.log(rise / (gamma * _DIGITS))


def log_volume(H: Array, Z: Array) -> Array:
    """Σ log da/dz = Σ log(w s rest) of each path (K,), which turns (B6) into (B7)."""
    smaller = np.minimum(H[:, :-1], H[:, 1:])
    found: Array = np.sum(np.log(smaller) - np.logaddexp(0.0, Z) - np.logaddexp(0.0, -Z), axis=1)
    return found
