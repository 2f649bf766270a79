"""log p(path | hyper-parameters) of each component, chain by chain: what hyper-parameters feel.

Auxiliary variables that a round of `conditionals.py` begins by drawing anew are integrated out
here. BGAR's are not drawn from scratch, so its law is that of activations and retained parts.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ..chains.base import Chain
from ..chains.stationary import Stationary
from ..kernels.floor import FLOOR
from ..kernels.rows import seven, three
from ..kernels.special import _log_bessel_scaled
from ..likelihoods.base import Array
from .conditionals import LOWEST, First


class Paths:
    """The law of paths under a chain with hyper-parameters that are numbers.

    Parameters
    ----------
    chain : Chain
    n_paths : int
        K: one path for each component of the chain.
    """

    def __init__(self, chain: Chain, n_paths: int) -> None:
        self._law, self._rows = _LAWS[chain.name], chain._rows(n_paths, "log")
        self._log_odds = chain.name == "bgar"
        self._first = not isinstance(chain, Stationary)

    def given_first(self, H: Array, Z: Array) -> Array:
        """Log density (K,) of each path (N,), as hyper-parameters feel it.

        The first step counts for chains that have a law of their own there.
        """
        found = np.empty(len(H))
        self._law(H, Z, self._rows, found)
        return found

    def __call__(self, H: Array, Z: Array, first: First) -> Array:
        """The same as a density of (h, z), first step included; BGAR's parts by their log odds."""
        found = self.given_first(H, Z)
        if self._log_odds:  # da = a (w − a)/w dz
            smaller = np.minimum(H[:, :-1], H[:, 1:])
            found += np.sum(np.log(smaller) - np.logaddexp(0.0, Z) - np.logaddexp(0.0, -Z), axis=1)
        if self._first:
            a, level = first
            found += (a - 1.0) * np.log(H[:, 0]) - a * H[:, 0] / level
        return found


def log_law(chain: Chain, H: Array, Z: Array) -> Array:
    """Log density (K,) of paths (K, N); see `Paths.given_first`."""
    return Paths(chain, len(H)).given_first(H, Z)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_gamma(h: float, shape: float, rate: float, floor: float) -> float:
    """Log density of Gamma(shape, rate); at the floor, which holds all below it, a probability."""
    if h <= floor:
        return shape * math.log(rate * floor) - math.lgamma(1.0 + shape)
    return shape * math.log(rate) - math.lgamma(shape) + (shape - 1.0) * math.log(h) - rate * h


@njit(cache=True, nogil=True, error_model="numpy")
def _gap(H: Array, Z: Array, rows: Array, found: Array) -> None:
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(H.shape[1]):
            found[k] += _log_gamma(H[k, n], alpha, beta, FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def _rate(H: Array, Z: Array, rows: Array, found: Array) -> None:
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(1, H.shape[1]):
            found[k] += _log_gamma(H[k, n], alpha, beta / H[k, n - 1], FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def _hier_rate(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """∫ Gamma(z; α_z, β_z h) Gamma(h′; α_h, β_h z) dz, a beta-prime law of β_h h′/(β_z h)."""
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


@njit(cache=True, nogil=True, error_model="numpy")
def _shape(H: Array, Z: Array, rows: Array, found: Array) -> None:
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(1, H.shape[1]):
            found[k] += _log_gamma(H[k, n], alpha * H[k, n - 1], beta, FLOOR)


@njit(cache=True, nogil=True, error_model="numpy")
def _hier_shape(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """Non-central χ²: β (h′/h)^((α−1)/2) e^{−β(h+h′)} I_{α−1}(2β√(h h′))."""
    for k in range(H.shape[0]):
        alpha, beta, _ = three(rows[k])
        found[k] = 0.0
        for n in range(1, H.shape[1]):
            before, after = math.sqrt(H[k, n - 1]), math.sqrt(H[k, n])
            found[k] += (
                math.log(beta)
                + (alpha - 1.0) * math.log(after / before)
                - beta * (after - before) ** 2
                + _log_bessel_scaled(alpha - 1.0, 2.0 * beta * before * after)
            )


# Relative distance of neighbouring doubles: what is nearer to each other is equal.
_DIGITS = 2.0**-52


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


@njit(cache=True, nogil=True, error_model="numpy")
def _bgar(H: Array, Z: Array, rows: Array, found: Array) -> None:
    """h_1 ~ Gamma(α, β); a/h ~ Beta(η, γ) is retained, h′ − a ~ Gamma(γ, β) is new."""
    for k in range(H.shape[0]):
        beta, eta, gamma, _, _, _, _ = seven(rows[k])
        alpha = eta + gamma
        constant = math.lgamma(alpha) - math.lgamma(eta) - math.lgamma(gamma)
        found[k] = _log_gamma(H[k, 0], alpha, beta, LOWEST)
        for n in range(1, H.shape[1]):
            before, after, z = H[k, n - 1], H[k, n], Z[k, n - 1]
            smaller = min(before, after)
            # As in `conditionals.py`: the distances of a to both ends without cancellation.
            log_rest = -math.log1p(math.exp(-abs(z))) - max(z, 0.0)
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


_LAWS = {
    "gap": _gap,
    "rate": _rate,
    "hier_rate": _hier_rate,
    "shape": _shape,
    "hier_shape": _hier_shape,
    "bgar": _bgar,
}
