"""The autoregressive Gamma process."""

from __future__ import annotations

import numpy as np

from .._typing import Array
from .base import Parameter
from .poisson_gamma import PoissonGamma
from .stationary import Reverting


class ARG(Reverting, PoissonGamma):
    """A stationary chain with a Gamma distribution, correlation ρ and count-like noise.

    Density: h_1 ~ Gamma(α, β); z_n | h_{n−1} ~ Poisson(τρ h_{n−1}), h_n | z_n ~ Gamma(α + z_n, τ),
    τ = β/(1−ρ); mean ρ h_{n−1} + (1−ρ) α/β, variance (2ρ/τ) h_{n−1} + α/τ². Every h_n ~
    Gamma(α, β), corr(h_n, h_{n+r}) = ρ^r. Domain: α, β > 0, 0 < ρ < 1 (ρ = 0, independent steps,
    for simulation only); with ``map_scale="linear"`` and α < 1 the density is unbounded at zero.
    After s steps the distribution is the same with ρ^s, for any s > 0: h is the diffusion of Cox,
    Ingersoll and Ross, observed at unit times (Gouriéroux and Jasiak 2006). The counts z are
    integrated out as those of `HierShape`, its limit ρ → 1 with the same τ.

    Terms (A0)–(A3); the value is the marginal −log p(h_n | h_{n−1}). Constants dropped: none.

    Parameters
    ----------
    alpha : float, array or "learn", default=1.0
        Shape of the stationary distribution: the long-run relative spread is 1/√α.
    beta : float, array, "auto" or "learn", default="auto"
        Rate of the stationary distribution. "auto" matches its mean α/β to the level of the data.
    rho : float, array or "learn", default=0.99
        Correlation of neighbouring steps. At the mean the relative step-to-step spread is
        √((1−ρ²)/α).

    Examples
    --------
    >>> chain = ARG(alpha=2.0, beta=1.0, rho=0.5)
    >>> chain.forecast(4.0, steps=3).mean
    array([3.  , 2.5 , 2.25])
    >>> print(chain.regime().paths.value)
    every path keeps returning to the same law
    >>> float(ARG(alpha=2.0, beta=1.0, rho=0.25).transition(4.0, steps=0.5).mean())  # half a step
    3.0
    """

    name = "arg"
    grid = tuple({"alpha": 1.0, "rho": r} for r in (0.9, 0.97, 0.99, 0.999))
    draws_grid = (
        {"alpha": 1.0, "rho": 0.99},
        {"alpha": 1.0, "rho": 0.999},
        {"alpha": "learn", "rho": "learn"},
    )

    _turns = 10  # the spread of a step, √((1−ρ²)/α), is known much better than α and ρ

    def __init__(
        self, alpha: Parameter = 1.0, beta: Parameter = "auto", rho: Parameter = 0.99
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.rho = rho

    def _numbers(self, time: float = 1.0) -> tuple[Array, Array, Array]:
        alpha, beta, rho = self._values("alpha", "beta", "rho")
        with np.errstate(divide="ignore"):
            return alpha, -beta / np.expm1(time * np.log(rho)), rho**time

    def _log_density(self, h: Array, before: Array) -> Array:
        rho = np.asarray(self.rho)
        return np.where(rho > 0.0, super()._log_density(h, before), self._stationary().logpdf(h))
