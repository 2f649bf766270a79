"""Independent Gamma activations."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from ..likelihoods.base import Array, Majorizer
from .base import Chain, Parameter, Scale, lost_power, scalar_or_array


class GaP(Chain):
    """Independent Gamma prior, the paper's baseline without time.

    Density: h_n ~ Gamma(α, β), mean α/β, independent over n. Domain: α, β > 0; with
    ``map_scale="linear"`` and α < 1 activations can be driven to zero.

    Terms (G): p += α−1 (log scale: α), q += β. Constants dropped: none.

    Parameters
    ----------
    alpha : float or array, default=1.0
        Shape. Small values make activations sparse.
    beta : float, array, "auto" or "learn", default="auto"
        Rate. "auto" matches the mean α/β to the level of the data.

    Examples
    --------
    >>> GaP(alpha=2.0).resolve(level=12.0, n_components=3).beta
    0.5
    """

    name = "gap"
    dynamic = False
    _auto = _learn = ("beta",)

    def __init__(self, alpha: Parameter = 1.0, beta: Parameter = "auto") -> None:
        self.alpha = alpha
        self.beta = beta

    def _fill_auto(self, level: float) -> None:
        if isinstance(self.beta, str):
            self.beta = scalar_or_array(np.divide(self.alpha, level))

    def bottomless(self) -> bool:
        return bool(np.any(np.asarray(self.alpha) < 1.0))

    def value(self, H: Array, aux: Array, scale: Scale) -> float:
        alpha, beta = self._columns("alpha", "beta")
        constant = gammaln(alpha) - alpha * np.log(beta)
        return float(np.sum(constant + beta * H - (alpha - lost_power(scale)) * np.log(H)))

    def terms(self, H: Array, aux: Array, scale: Scale) -> Majorizer:
        alpha, beta = self._columns("alpha", "beta")
        zero = np.zeros_like(H)
        return Majorizer(p=zero + alpha - lost_power(scale), q=zero + beta, r=zero)

    def _estimate(self, name: str, H: Array, aux: Array) -> Array:
        (alpha,) = self._columns("alpha")
        return alpha[:, 0] * H.shape[1] / H.sum(axis=1)

    def conditional_mean(self, h: Array) -> Array:
        alpha, beta = self._columns("alpha", "beta")
        return np.broadcast_to((alpha / beta)[:, 0], h.shape)
