"""The first-order autoregressive Gamma process of Gaver and Lewis, for simulation."""

from __future__ import annotations

import numpy as np

from .._typing import Array
from .parameters import Parameter, Scale
from .process import Moments
from .stationary import Stationary

_MOST_JUMPS = 1e6


class GAR(Stationary):
    """A stationary chain with a Gamma distribution that falls by a fixed share between jumps.

    h_1 ~ Gamma(α, β); h_n = ρ h_{n−1} + ε_n, where ε_n = Σ_{i ≤ M} ρ^{U_i} E_i with
    M ~ Poisson(−α log ρ), U_i uniform on (0, 1) and E_i ~ Exponential(β). Every h_n ~ Gamma(α, β),
    corr(h_n, h_{n+r}) = ρ^r, as with `BGAR` and `ARG`; but with probability ρ^α nothing is added
    and h_n is exactly ρ h_{n−1}. A step therefore has no density, and this chain cannot be fitted:
    the paper sets it aside for that reason.

    Domain: α, β > 0, 0 ≤ ρ < 1 (ρ = 0: independent steps).

    Parameters
    ----------
    alpha : float or array, default=1.0
        Shape of the stationary distribution.
    beta : float, array or "auto", default="auto"
        Its rate; "auto" is α, a mean of 1.
    rho : float or array, default=0.9
        Correlation of neighbouring steps.

    Examples
    --------
    >>> paths = GAR(alpha=2.0, beta=1.0, rho=0.9).sample(n_paths=3, n_steps=5, rng=0)
    >>> paths.shape
    (3, 5)
    """

    name = "gar"
    _auto = ("beta",)
    _zero = _fraction = ("rho",)

    def __init__(
        self, alpha: Parameter = 1.0, beta: Parameter = "auto", rho: Parameter = 0.9
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.rho = rho

    def _check_mode(self, scale: Scale) -> None:
        raise ValueError("GAR is for simulation only. BGAR and ARG have the same stationary law.")

    def _moments(self) -> Moments:
        alpha, beta, rho = self._values("alpha", "beta", "rho")
        return Moments(
            slope=rho,
            offset=(1.0 - rho) * alpha / beta,
            constant=(1.0 - rho) * (1.0 + rho) * alpha / beta / beta,
        )

    def _log_density(self, h: Array, before: Array) -> Array:
        raise ValueError(
            "GAR has no transition density: with probability rho**alpha a step is exactly rho "
            "times the one before. BGAR and ARG have one, and the same stationary law."
        )

    def _step(self, h: Array, rng: np.random.Generator) -> tuple[Array, None]:
        alpha, beta, rho = self._values("alpha", "beta", "rho")
        moving = np.where(rho > 0.0, rho, 0.5)
        expected = float(np.max(-alpha * np.log(moving)))
        if expected > _MOST_JUMPS:
            raise ValueError(
                f"GAR(alpha={self.alpha}, rho={self.rho}) makes {expected:.2g} jumps per step, "
                f"which would take too long; {_MOST_JUMPS:.0e} are the limit. BGAR has the same "
                f"stationary law and no jumps."
            )
        jumps = rng.poisson(-alpha * np.log(moving), size=h.shape).ravel()
        # All jumps in one array; each is added to its own path.
        owner = np.repeat(np.arange(h.size), jumps)
        share = np.broadcast_to(moving, h.shape).ravel()[owner] ** rng.random(owner.size)
        fresh = np.bincount(owner, share * rng.standard_exponential(owner.size), minlength=h.size)
        renewed = rng.standard_gamma(alpha, size=h.shape)
        return rho * h + np.where(rho > 0.0, fresh.reshape(h.shape), renewed) / beta, None
