"""The first-order autoregressive Beta–Gamma process."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import betaln, gammaln

from .._typing import Array, Law
from ..kernels.floor import FLOOR
from ..kernels.roots import LAST_STEP, _barrier_root, _retained_guess, _retained_odds
from ..kernels.rows import seven
from ..kernels.transition import bgar_log_density
from ..messages.arguments import check_choice
from .base import Kernels, Parameter, Row, Scale, dominate, lost_power, rows_of
from .bgar_draws import draw, log_law, log_volume
from .process import Moments
from .stationary import Reverting

# Numbers of a component: β, κ = η − s, λ = γ − s, the powers α − s of h_1 and α − 2s = κ + λ of
# every h_{n−1}, and the constants of h_1 and of a transition; s = 1 on the linear scale.
#
# The part a = b h_{n−1} of h_{n−1} is retained in h_n. With w the smaller of the two, a transition
# is stored as the odds a/(w−a): a and its distances to both ends follow without cancellation.

# Newton steps on the profile (B5) per activation and round, at most, and the change of logarithms
# below which the next one is left to the next round.
_TRIALS = 30
_SMALL = 0.3
# At a trial point the odds need no better accuracy than the cube of this: T is flat in a.
_TRIAL_STEP = 1e-3
# Up to here, odds computed from b have nine digits.
_CLEAR = 1e6
# Rounding error of a difference of the objective, relative to its terms.
_NOISE = 2e-15
_ROUNDING = 2.3e-16


@njit(cache=True, nogil=True, error_model="numpy")
def _parts(before: float, after: float, odds: float) -> tuple[float, float, float]:
    """a, h_{n−1} − a and h_n − a."""
    near = min(before, after) / (1.0 + odds)
    far = near + abs(before - after)
    return odds * near, near if before <= after else far, far if before <= after else near


@njit(cache=True, nogil=True, error_model="numpy")
def _b(before: float, after: float, odds: float) -> float:
    """b = a / h_{n−1}, rounded to be below 1 and h_n / h_{n−1}."""
    nearer = min(1.0, after / before)
    return min(nearer * (odds / (1.0 + odds)), nearer * (1.0 - 4.0 * _ROUNDING))


@njit(cache=True, nogil=True, error_model="numpy")
def _odds(before: float, after: float, start: float, row: Row, last_step: float) -> float:
    """(B4): odds of the optimal a, searched from `start` if that is positive and finite."""
    width = min(before, after)
    rate, gap = row[0] * width, abs(before - after) / width
    if not 0.0 < start < np.inf:
        start = _retained_guess(rate, gap, row[1], row[2])
    return _retained_odds(rate, gap, row[1], row[2], start, last_step)


@njit(cache=True, nogil=True, error_model="numpy")
def _auxiliary(H: Array, Z: Array, rows: Array) -> None:
    for k in range(H.shape[0]):
        row = seven(rows[k])
        for n in range(1, H.shape[1]):
            before, after = H[k, n - 1], H[k, n]
            Z[k, n - 1] = _b(before, after, _odds(before, after, 0.0, row, LAST_STEP))


@njit(cache=True, nogil=True, error_model="numpy")
def _first(h: float, row: Row) -> float:
    """−log p(h_1)."""
    return row[5] + row[0] * h - row[3] * math.log(h)


@njit(cache=True, nogil=True, error_model="numpy")
def _cost(before: float, a: float, to_before: float, to_after: float, row: Row) -> float:
    """−log p(b, h_n | h_{n−1}), from a and its distances to both."""
    beta, kappa, lam = row[0], row[1], row[2]
    kept = kappa * math.log(a / before) + lam * math.log(to_before / before)
    return row[6] - kept - lam * math.log(to_after) + beta * to_after


@njit(cache=True, nogil=True, error_model="numpy")
def _value(H: Array, Z: Array, rows: Array) -> float:
    total = 0.0
    for k in range(H.shape[0]):
        row = seven(rows[k])
        total += _first(H[k, 0], row)
        for n in range(1, H.shape[1]):
            before, after, b = H[k, n - 1], H[k, n], Z[k, n - 1]
            a = b * before
            total += _cost(before, a, (1.0 - b) * before, after - a, row)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _terms(h: Array, b: Array, n: int, row: Row) -> tuple[float, float, float]:
    """The linear terms of (B1)–(B3); `_minimiser` adds the logarithms."""
    if n < h.size - 1:
        return 0.0, row[0] * (1.0 - b[n]), 0.0  # not β − βb: b is often close to one
    return 0.0, row[0], 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _minimiser(h: Array, b: Array, n: int, p: float, q: float, r: float, row: Row) -> float:
    """(B1)–(B3): b held, h_n between c_n and d_n."""
    lower = b[n - 1] * h[n - 1] if n > 0 else 0.0
    upper = h[n + 1] / b[n] if n < h.size - 1 else np.inf
    return _barrier_root(p, q, r, lower, upper - lower, row[2] if n > 0 else row[3], row[2], h[n])


# (B5): T(h, o) = min over a of −κ log a − λ log(h−a) − λ log(o−a) − βa. In u = log h,
#
#   ∂T/∂u = −λh/(h−a),   ∂²T/∂u² = ∂T/∂u + h² A_h (A_a + A_o)/A,   ∂²T/∂u∂u_o = −h o A_h A_o / A,
#
# with A_h = λ/(h−a)², A_o = λ/(o−a)², A_a = κ/a² and A their sum; da/dh = A_h/A.


@njit(cache=True, nogil=True, error_model="numpy")
def _end(h: float, other: float, odds: float, row: Row) -> tuple[float, float, float, float]:
    """(∂T/∂u + βh, 1) if h is the nearer end, else (∂T/∂u, 0); then ∂²T/∂u² − ∂T/∂u, da/dh.

    At the nearer end βh cancels against the linear term of the chain, so it is left out of both:
    λ/(h−a) = β + κ/a − λ/(o−a), by (B4).
    """
    kappa, lam = row[1], row[2]
    width = min(h, other)
    gap = abs(h - other) / width
    to_near = 1.0 + odds  # all three are reciprocal distances, relative to w
    to_zero = to_near / odds
    to_far = to_near / (1.0 + gap * to_near)
    nearer = h <= other
    ratio = 1.0 if nearer else 1.0 + gap
    pull_near, pull_far = lam * to_far - kappa * to_zero, -lam * ratio * to_far
    second_far, second_near, second_zero = lam * to_far**2, lam * to_near**2, kappa * to_zero**2
    second, second_other = (second_near, second_far) if nearer else (second_far, second_near)
    share = second / (second_far + second_near + second_zero)
    pull = pull_near if nearer else pull_far
    return pull, 1.0 if nearer else 0.0, ratio * ratio * share * (second_zero + second_other), share


@njit(cache=True, nogil=True, error_model="numpy")
def _coupling(h: float, other: float, odds: float, row: Row) -> float:
    """∂²T/∂u∂u_o."""
    width = min(h, other)
    to_near, ratio = 1.0 + odds, 1.0 + abs(h - other) / width
    to_far = to_near / (1.0 + (ratio - 1.0) * to_near)
    second_far, second_near = row[2] * to_far**2, row[2] * to_near**2
    return (
        -ratio
        * second_near
        * (second_far / (second_far + second_near + row[1] * (to_near / odds) ** 2))
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _around(h: Array, odds: Array, n: int, row: Row) -> tuple[float, float, float, float]:
    """Slope and curvature in log h_n of the chain, all a optimal; da/dh_n on both sides."""
    power = row[3] if n == 0 else 0.0
    linear, pull, second, share_before, share_after = 1.0, 0.0, 0.0, 0.0, 0.0
    if n > 0:
        pull, nearer, second, share_before = _end(h[n], h[n - 1], odds[n - 1], row)
        linear -= nearer
    if n < h.size - 1:
        power -= row[4]
        more_pull, nearer, more_bend, share_after = _end(h[n], h[n + 1], odds[n], row)
        linear -= nearer
        pull += more_pull
        second += more_bend
    flow = linear * row[0] * h[n] + pull
    return flow - power, flow + second, share_before, share_after


@njit(cache=True, nogil=True, error_model="numpy")
def _moved_odds(h: float, moved: float, other: float, odds: float, share: float, row: Row) -> float:
    """Odds of the optimal a after a move of h, searched from a prediction by da/dh."""
    near = min(h, other) / (1.0 + odds)
    shift = share * (moved - h)
    near_then = near + (min(moved, other) - min(h, other)) - shift
    return _odds(other, moved, (odds * near + shift) / near_then, row, _TRIAL_STEP)


@njit(cache=True, nogil=True, error_model="numpy")
def _change(
    before: float, after: float, odds: float, before_then: float, after_then: float,
    odds_then: float, row: Row,
) -> tuple[float, float]:  # fmt: skip
    """Change of T(h_{n−1}, h_n) + βh_n by a move, and of −log (h_{n−1}−a)(h_n−a)."""
    a, to_before, to_after = _parts(before, after, odds)
    a_then, to_before_then, to_after_then = _parts(before_then, after_then, odds_then)
    lost = math.log(to_before * to_after / (to_before_then * to_after_then))
    # The change of h_n − a, from the smaller of a and w − a to avoid cancellation.
    gain_before, gain_after = before_then - before, after_then - after
    beyond = max(after_then - before_then, 0.0) - max(after - before, 0.0)
    if before < after and before_then < after_then:
        beyond = gain_after - gain_before
    fresh = beyond + (min(to_before_then, to_after_then) - min(to_before, to_after))
    if odds < 1.0:
        fresh = gain_after - (a_then - a)
    return row[1] * math.log(a / a_then) + row[2] * lost + row[0] * fresh, lost


@njit(cache=True, nogil=True, error_model="numpy")
def _attempt(
    h: Array, odds: Array, n: int, moved: float, step: float, share_before: float,
    share_after: float, p: float, q: float, r: float, row: Row,
) -> float:  # fmt: skip
    """Move h_n by a step in log h, and the a on both of its sides, if the objective falls.

    Returns the largest change of a logarithm in (B5), or infinity if nothing was moved.
    """
    here = h[n]
    odds_before, odds_after, power = 0.0, 0.0, p
    lost_before, lost_after = 0.0, 0.0
    gain = q * (moved - here) + r * (1.0 / moved - 1.0 / here)
    if n > 0:
        before = h[n - 1]
        odds_before = _moved_odds(here, moved, before, odds[n - 1], share_before, row)
        more, lost_before = _change(before, here, odds[n - 1], before, moved, odds_before, row)
        gain += more
    else:
        power += row[3]
        gain += row[0] * (moved - here)
    if n < h.size - 1:
        power -= row[4]
        after = h[n + 1]
        odds_after = _moved_odds(here, moved, after, odds[n], share_after, row)
        more, lost_after = _change(here, after, odds[n], moved, after, odds_after, row)
        gain += more
    gain -= power * step
    if not gain <= _NOISE * (p + q * here + r / here + row[3]):
        return np.inf
    h[n] = moved
    if n > 0:
        odds[n - 1] = odds_before
    if n < h.size - 1:
        odds[n] = odds_after
    return max(abs(step), abs(lost_before), abs(lost_after))


@njit(cache=True, nogil=True, error_model="numpy")
def _update(
    h: Array, b: Array, odds: Array, n: int, p: float, q: float, r: float, row: Row
) -> None:
    """Newton steps on (B5), each accepted only if it lowers the objective.

    The curvature jumps where h_n passes a neighbour, the more so the smaller λ. A rejected trial
    point therefore bounds the next ones: a step beyond it goes half the way in log h.
    """
    low, high = FLOOR, np.inf
    for _ in range(_TRIALS):
        slope, curvature, share_before, share_after = _around(h, odds, n, row)
        slope += q * h[n] - p - r / h[n]
        if slope == 0.0:
            return
        curvature += q * h[n] + r / h[n]
        here, step = h[n], -slope / max(curvature, abs(slope))
        moved = here * math.exp(step)
        if not low < moved < high:
            moved = math.sqrt(here) * math.sqrt(high if step > 0.0 else low)
            step = math.log(moved / here)
        change = _attempt(h, odds, n, moved, step, share_before, share_after, p, q, r, row)
        if change <= _SMALL:
            return
        if change == np.inf and step > 0.0:
            high = moved
        elif change == np.inf:
            low = moved
    # Rounding hides any descent: fall back on (B1)–(B3).
    if n > 0:
        b[n - 1] = _b(h[n - 1], h[n], odds[n - 1])
    if n < h.size - 1:
        b[n] = _b(h[n], h[n + 1], odds[n])
    p_chain, q_chain, r_chain = _terms(h, b, n, row)
    moved = max(_minimiser(h, b, n, p + p_chain, q + q_chain, r + r_chain, row), FLOOR)
    _attempt(h, odds, n, moved, math.log(moved / h[n]), 0.0, 0.0, p, q, r, row)


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(
    H: Array, Z: Array, P: Array, Q: Array, R: Array, rows: Array, held: int, rounds: int
) -> None:
    odds = np.empty(Z.shape[1])
    for k in range(H.shape[0]):
        h, b, row = H[k], Z[k], seven(rows[k])
        for n in range(1, h.size):
            # b is optimal; solve again only if rounding has lost its distance to the end.
            a = b[n - 1] * h[n - 1]
            odds[n - 1] = a / (min(h[n - 1], h[n]) - a)
            if not 0.0 < odds[n - 1] < _CLEAR:
                odds[n - 1] = _odds(h[n - 1], h[n], 0.0, row, LAST_STEP)
        for turn in range(2 * rounds):  # neighbours are coupled: alternate even and odd steps
            for n in range(held + turn % 2, h.size, 2):
                _update(h, b, odds, n, P[k, n], Q[k, n], R[k, n], row)
        for n in range(1, h.size):
            b[n - 1] = _b(h[n - 1], h[n], odds[n - 1])


@njit(cache=True, nogil=True, error_model="numpy")
def _expand(H: Array, Z: Array, rows: Array, slope: Array, diagonal: Array, off: Array) -> float:
    total = 0.0
    for k in range(H.shape[0]):
        h, odds, row = H[k], Z[k], seven(rows[k])
        total += _first(h[0], row)
        for n in range(1, h.size):
            odds[n - 1] = _odds(h[n - 1], h[n], 0.0, row, LAST_STEP)
            off[k, n - 1] = _coupling(h[n - 1], h[n], odds[n - 1], row)
            a, to_before, to_after = _parts(h[n - 1], h[n], odds[n - 1])
            total += _cost(h[n - 1], a, to_before, to_after, row)
        for n in range(h.size):
            slope[k, n], diagonal[k, n], _, _ = _around(h, odds, n, row)
        dominate(diagonal[k], off[k])
    return total


class BGAR(Reverting):
    """A stationary chain with a Gamma distribution and correlation ρ.

    Density: h_1 ~ Gamma(α, β); h_n = b_n h_{n−1} + ε_n with b_n ~ Beta(αρ, α(1−ρ)) and
    ε_n ~ Gamma(α(1−ρ), β). Every h_n ~ Gamma(α, β), corr(h_n, h_{n+r}) = ρ^r. Domain: α, β > 0,
    0 < ρ < 1 (ρ = 0, independent steps, for simulation only); ``map_scale="linear"`` needs
    α(1−ρ) > 1 and αρ > 1.

    Terms (B1)–(B4), with η = αρ and γ = α(1−ρ). Constants dropped: none.

    Parameters
    ----------
    alpha : float, array or "learn", default=1.0
        Shape of the stationary distribution: the long-run relative spread is 1/√α.
    beta : float, array, "auto" or "learn", default="auto"
        Rate of the stationary distribution. "auto" matches its mean α/β to the level of the data.
    rho : float, array or "learn", default=0.97
        Correlation of neighbouring steps.

    Examples
    --------
    >>> chain = BGAR(alpha=2.0, beta=1.0, rho=0.5)
    >>> chain.forecast(4.0, steps=3).mean
    array([3.  , 2.5 , 2.25])
    >>> print(chain.regime().paths.value)
    every path keeps returning to the same law
    """

    name = "bgar"
    grid = tuple({"alpha": a, "rho": r} for a in (1.0, 5.0) for r in (0.9, 0.99))
    draws_grid = (
        {"alpha": 1.0, "rho": 0.97},
        {"alpha": 50.0, "rho": 0.97},
        {"alpha": "learn", "rho": "learn"},
    )
    _kernels = Kernels(_terms, _value, _sweep, _expand, draw, log_law, _auxiliary)

    def __init__(
        self, alpha: Parameter = 1.0, beta: Parameter = "auto", rho: Parameter = 0.97
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.rho = rho

    def _log_volume(self, H: Array, Z: Array) -> Array:
        return log_volume(H, Z)

    def _check_mode(self, scale: Scale) -> None:
        if not np.all(map_region(self.alpha, self.rho, scale)):
            alpha, rho = self._values("alpha", "rho")
            gamma, eta = alpha * (1.0 - rho), alpha * rho
            raise ValueError(
                f"BGAR(alpha={self.alpha}, rho={self.rho}) has no mode on the linear scale: it "
                f"needs alpha*(1-rho) > 1 and alpha*rho > 1, and they are {np.round(gamma, 6)} "
                f"and {np.round(eta, 6)}. "
                f"Use map_scale='log', which takes every alpha > 0 and 0 < rho < 1."
            )

    def _rows(self, n_components: int, scale: Scale) -> Array:
        alpha, beta, rho = map(np.asarray, (self.alpha, self.beta, self.rho))
        gamma, eta, lost = alpha * (1.0 - rho), alpha * rho, lost_power(scale)
        log_beta = np.log(beta)
        first = gammaln(alpha) - alpha * log_beta
        step = betaln(eta, gamma) + gammaln(gamma) - gamma * log_beta
        powers = alpha - lost, alpha - 2.0 * lost
        return rows_of(n_components, beta, eta - lost, gamma - lost, *powers, first, step)

    def _moments(self) -> Moments:
        alpha, beta, rho = self._values("alpha", "beta", "rho")
        fresh = alpha * (1.0 - rho)
        return Moments(
            slope=rho,
            offset=fresh / beta,
            square=rho * (1.0 - rho) / (alpha + 1.0),
            constant=fresh / beta / beta,
        )

    def _transition(self, h: Array, steps: float) -> Law | None:
        return self._independent(h) if np.all(np.asarray(self.rho) == 0.0) else None

    def _log_density(self, h: Array, before: Array) -> Array:
        """By quadrature over b; infinite at h = before for γ ≤ 1/2."""
        alpha, beta, rho = self._values("alpha", "beta", "rho")
        gamma, eta = alpha * (1.0 - rho), alpha * rho
        tied = np.where(eta > 0.0, eta, 1.0)
        constant = gamma * np.log(beta) - betaln(tied, gamma) - gammaln(gamma)
        density = bgar_log_density(h, before, tied, gamma, beta) + constant
        return np.where(eta > 0.0, density, self._stationary().logpdf(h))

    def _step(self, h: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        alpha, beta, rho = self._values("alpha", "beta", "rho")
        gamma, eta = alpha * (1.0 - rho), alpha * rho
        tied = np.where(eta > 0.0, eta, 1.0)
        b = np.where(eta > 0.0, rng.beta(tied, gamma, size=h.shape), 0.0)
        return b * h + rng.standard_gamma(gamma, size=h.shape) / beta, b


def map_region(alpha: ArrayLike, rho: ArrayLike, scale: Scale = "linear") -> Array:
    """Whether BGAR has a posterior mode: α(1−ρ) > 1 and αρ > 1 on the linear scale.

    On the log scale it has one for every α > 0 and 0 < ρ < 1.

    Examples
    --------
    >>> map_region(11.0, [0.05, 0.5, 0.9, 0.95])
    array([False,  True,  True, False])
    """
    check_choice("scale", scale, ("log", "linear"))
    alpha, rho = np.asarray(alpha, dtype=float), np.asarray(rho, dtype=float)
    inside = (alpha > 0.0) & (rho > 0.0) & (rho < 1.0)
    return inside if scale == "log" else inside & (alpha * (1.0 - rho) > 1.0) & (alpha * rho > 1.0)
