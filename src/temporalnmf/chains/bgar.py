"""The first-order autoregressive Beta–Gamma process."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, gammaln

from ..kernels.floor import FLOOR
from ..kernels.roots import barrier_root, profile_root
from ..likelihoods.base import Array, Majorizer
from .base import Chain, Parameter, Scale, lost_power, scalar_or_array


class BGAR(Chain):
    """A stationary chain: activations always return to a Gamma law, with correlation ρ.

    Density: h_1 ~ Gamma(α, β); h_n = b_n h_{n−1} + ε_n with b_n ~ Beta(αρ, α(1−ρ)) and
    ε_n ~ Gamma(α(1−ρ), β). Every h_n ~ Gamma(α, β), corr(h_n, h_{n+r}) = ρ^r. Domain: α, β > 0,
    0 < ρ < 1; ``map_scale="linear"`` needs α(1−ρ) > 1 and αρ > 1.

    Terms (B1)–(B4), with η = αρ and γ = α(1−ρ). Constants dropped: none.

    Parameters
    ----------
    alpha : float or array, default=1.0
        Shape of the stationary law: the spread of an activation over the long run is 1/√α.
    beta : float, array, "auto" or "learn", default="auto"
        Rate of the stationary law. "auto" matches its mean α/β to the level of the data.
    rho : float or array, default=0.97
        Correlation of neighbouring steps.

    Examples
    --------
    >>> import numpy as np
    >>> chain = BGAR(alpha=2.0, beta=1.0, rho=0.5)
    >>> chain.forecast(np.array([4.0]), steps=3, point="mean", scale="log")
    array([[3.  , 2.5 , 2.25]])
    """

    name = "bgar"
    coupled = True
    _auto = _learn = ("beta",)

    def __init__(
        self, alpha: Parameter = 1.0, beta: Parameter = "auto", rho: Parameter = 0.97
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.rho = rho

    def _fill_auto(self, level: float) -> None:
        if isinstance(self.beta, str):
            self.beta = scalar_or_array(np.divide(self.alpha, level))

    def check(self, scale: Scale) -> None:
        alpha, rho = np.asarray(self.alpha), np.asarray(self.rho)
        if np.any(rho >= 1.0):
            raise ValueError(f"BGAR(rho={self.rho}): rho must lie strictly between 0 and 1.")
        gamma, eta = alpha * (1.0 - rho), alpha * rho
        if scale == "linear" and (np.any(gamma <= 1.0) or np.any(eta <= 1.0)):
            raise ValueError(
                f"BGAR(alpha={self.alpha}, rho={self.rho}) has no mode on the linear scale: it "
                f"needs alpha*(1-rho) > 1 and alpha*rho > 1, and they are {np.round(gamma, 6)} "
                f"and {np.round(eta, 6)}. "
                f"Use map_scale='log', which takes every alpha > 0 and 0 < rho < 1."
            )

    def _shapes(self) -> tuple[Array, Array, Array, Array]:
        """α, β, γ, η as columns."""
        alpha, beta, rho = self._columns("alpha", "beta", "rho")
        return alpha, beta, alpha * (1.0 - rho), alpha * rho

    def auxiliary(self, H: Array, scale: Scale) -> Array:
        _, beta, gamma, eta = self._shapes()
        before, after = H[:, :-1], H[:, 1:]
        lost = lost_power(scale)
        # (B4): barriers at 1 and at h_n/h_{n−1}; the nearer one is the end of the interval.
        nearer = np.minimum(1.0, after / before)
        gap = np.abs(after - before) / before
        return barrier_root(
            0.0, -beta * before, 0.0, 0.0, nearer,
            eta - lost, gamma - lost, gamma - lost, gap, 0.5 * nearer,
        )  # fmt: skip

    def value(self, H: Array, aux: Array, scale: Scale) -> float:
        alpha, beta, gamma, eta = self._shapes()
        first, before, after = H[:, :1], H[:, :-1], H[:, 1:]
        lost = lost_power(scale)
        start = (
            gammaln(alpha) - alpha * np.log(beta) - (alpha - lost) * np.log(first) + beta * first
        )
        kept = betaln(eta, gamma) - (eta - lost) * np.log(aux) - (gamma - lost) * np.log1p(-aux)
        fresh = after - aux * before  # ε_n
        noise = (
            gammaln(gamma) - gamma * np.log(beta) - (gamma - lost) * np.log(fresh) + beta * fresh
        )
        return float(np.sum(start) + np.sum(kept + noise))

    def terms(self, H: Array, aux: Array, scale: Scale) -> Majorizer:
        """The linear terms; `minimise` adds the logarithms of (B1)–(B3)."""
        _, beta, _, _ = self._shapes()
        p, q, r = np.zeros((3, *H.shape))
        q[:, -1:] = beta
        q[:, :-1] = beta * (1.0 - aux)  # not β − βb: b is often close to one
        return Majorizer(p, q, r)

    def minimise(self, H: Array, aux: Array, total: Majorizer, steps: slice, scale: Scale) -> Array:
        alpha, _, gamma, _ = self._shapes()
        lost = lost_power(scale)
        lower = np.zeros_like(H)
        lower[:, 1:] = aux * H[:, :-1]  # c_n
        upper = np.full_like(H, np.inf)
        upper[:, :-1] = H[:, 1:] / aux  # d_n
        g_lower = np.broadcast_to(gamma - lost, H.shape).copy()
        g_lower[:, :1] = alpha - lost
        g_upper = np.broadcast_to(gamma - lost, H.shape).copy()
        g_upper[:, -1:] = 0.0
        p, q, r, c, d, g, gg, h = (x[:, steps] for x in (*total, lower, upper, g_lower, g_upper, H))
        return barrier_root(p, q, r, c, d - c, g, gg, 0.0, 0.0, h)

    def sweep(
        self, H: Array, aux: Array, majorizer: Majorizer, scale: Scale, *, held: int = 0
    ) -> Array:
        """(B1)–(B3) given b, then h_n with the b on both of its sides minimised out (B5).

        Given b, h_n can only move inside an interval whose width is that of the noise; where
        activations are large against α/β this takes thousands of sweeps to get anywhere.
        """
        super().sweep(H, aux, majorizer, scale, held=held)
        alpha, beta, gamma, eta = self._shapes()
        lost = lost_power(scale)
        # In a_n = b_n h_{n−1} both ends of a transition look alike, up to powers of h_{n−1}.
        p, q, r = majorizer.p.copy(), majorizer.q + beta, majorizer.r
        p[:, :1] += alpha - lost
        p[:, :-1] -= alpha - 2.0 * lost
        for turn in (0, 1):
            steps = slice(held + turn, None, 2)
            before, after = np.zeros_like(H), np.zeros_like(H)
            before[:, 1:], after[:, :-1] = H[:, :-1], H[:, 1:]
            columns = (x[:, steps] for x in (p, q, r, before, after))
            moved = profile_root(*columns, beta, eta - lost, gamma - lost, H[:, steps])
            H[:, steps] = np.maximum(moved, FLOOR)
        return self.auxiliary(H, scale)

    def _estimate(self, name: str, H: Array, aux: Array) -> Array:
        alpha, _, gamma, _ = self._shapes()
        fresh = H[:, 1:] - aux * H[:, :-1]
        power = alpha[:, 0] + fresh.shape[1] * gamma[:, 0]
        return power / (H[:, 0] + fresh.sum(axis=1))

    def conditional_mean(self, h: Array) -> Array:
        alpha, beta, rho = (column[:, 0] for column in self._columns("alpha", "beta", "rho"))
        return rho * h + (1.0 - rho) * alpha / beta

    def backcast(self, h_first: Array, steps: int) -> Array:
        """The chain is reversible in its mean: E[h_{n−s} | h_n] = ρ^s h_n + (1−ρ^s) α/β."""
        return self.forecast(h_first, steps, "mean", "log")[:, ::-1]
