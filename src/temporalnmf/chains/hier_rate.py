"""Chaining on the rate of a Gamma law through an auxiliary variable."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from ..likelihoods.base import Array, Majorizer
from .base import Chain, Parameter, Point, Scale, lost_power, scalar_or_array


class HierRate(Chain):
    """Multiplicative noise with heavy tails: sudden jumps are cheaper than under `Rate`.

    Density: z_n | h_{n−1} ~ Gamma(α_z, β_z h_{n−1}), h_n | z_n ~ Gamma(α_h, β_h z_n); flat prior
    on h_1. Domain: all positive; ``map_scale="linear"`` needs α_h ≥ 1. The conditional mean is
    (β_z/β_h) α_h/(α_z−1) h_{n−1} and infinite for α_z ≤ 1, where forecasts are medians.

    Terms (HR0)–(HR3). Constants dropped: none.

    Parameters
    ----------
    alpha_z, alpha_h : float or array, default=200.0
        Shapes. Larger is smoother: the step-to-step spread is about √(1/α_z + 1/α_h).
    beta_z : float, array, "auto" or "learn", default="auto"
        "auto" preserves the mean, β_z/β_h = (α_z−1)/α_h (for α_z ≤ 1, where no mean exists, the
        mean of log h).
    beta_h : float, array, "auto" or "learn", default="auto"
        "auto" is α_h. Only β_z/β_h matters, so learn one of them at the most.
    marginal : bool, default=False
        Integrate z out (EM) rather than take its mode, as the paper does. The two coincide for
        ``map_scale="log"``.

    Examples
    --------
    >>> chain = HierRate(alpha_z=3.0, alpha_h=4.0).resolve(level=1.0, n_components=1)
    >>> chain.beta_z, chain.beta_h
    (2.0, 4.0)
    """

    name = "hier_rate"
    sweeps = 5  # cheap, and news travel one step per sweep
    _auto = _learn = ("beta_z", "beta_h")

    def __init__(
        self,
        alpha_z: Parameter = 200.0,
        beta_z: Parameter = "auto",
        alpha_h: Parameter = 200.0,
        beta_h: Parameter = "auto",
        marginal: bool = False,
    ) -> None:
        self.alpha_z = alpha_z
        self.beta_z = beta_z
        self.alpha_h = alpha_h
        self.beta_h = beta_h
        self.marginal = marginal

    def _fill_auto(self, level: float) -> None:
        if len(self._learned) > 1:
            raise ValueError(
                "HierRate(beta_z='learn', beta_h='learn'): only their ratio matters. Learn one and "
                "leave the other at 'auto'."
            )
        if isinstance(self.beta_h, str):
            self.beta_h = self.alpha_h
        if isinstance(self.beta_z, str):
            alpha_z, alpha_h, beta_h = map(np.asarray, (self.alpha_z, self.alpha_h, self.beta_h))
            steady = np.where(
                alpha_z > 1.0,
                beta_h * (alpha_z - 1.0) / alpha_h,
                beta_h * np.exp(digamma(alpha_z) - digamma(alpha_h)),
            )
            self.beta_z = scalar_or_array(steady)

    def check(self, scale: Scale) -> None:
        if scale == "linear" and np.any(np.asarray(self.alpha_h) < 1.0):
            raise ValueError(
                f"HierRate(alpha_h={self.alpha_h}) has no mode on the linear scale, which needs "
                f"alpha_h >= 1. Use map_scale='log', or a larger alpha_h."
            )

    def auxiliary(self, H: Array, scale: Scale) -> Array:
        alpha_z, beta_z, alpha_h, beta_h = self._columns("alpha_z", "beta_z", "alpha_h", "beta_h")
        # (HR0): the mode of z, or its mean, which on the log scale are the same.
        power = alpha_z + alpha_h - (0.0 if self.marginal else lost_power(scale))
        return power / (beta_z * H[:, :-1] + beta_h * H[:, 1:])

    def value(self, H: Array, aux: Array, scale: Scale) -> float:
        alpha_z, beta_z, alpha_h, beta_h = self._columns("alpha_z", "beta_z", "alpha_h", "beta_h")
        before, after = H[:, :-1], H[:, 1:]
        lost = lost_power(scale)
        shared = (
            gammaln(alpha_z)
            + gammaln(alpha_h)
            - alpha_z * np.log(beta_z * before)
            - alpha_h * np.log(beta_h)
            - (alpha_h - lost) * np.log(after)
        )
        rate = beta_z * before + beta_h * after
        power = alpha_z + alpha_h
        if self.marginal:
            rest = power * np.log(rate) - gammaln(power)
        else:
            rest = rate * aux - (power - lost) * np.log(aux)
        return float(np.sum(shared + rest))

    def terms(self, H: Array, aux: Array, scale: Scale) -> Majorizer:
        alpha_z, beta_z, alpha_h, beta_h = self._columns("alpha_z", "beta_z", "alpha_h", "beta_h")
        p, q, r = np.zeros((3, *H.shape))
        p[:, 1:] += alpha_h - lost_power(scale)  # arriving at n
        q[:, 1:] += beta_h * aux
        p[:, :-1] += alpha_z  # leaving n
        q[:, :-1] += beta_z * aux
        return Majorizer(p, q, r)

    def _estimate(self, name: str, H: Array, aux: Array) -> Array:
        alpha = self._columns("alpha_z" if name == "beta_z" else "alpha_h")[0][:, 0]
        ends = H[:, :-1] if name == "beta_z" else H[:, 1:]
        return alpha / np.mean(ends * aux, axis=1)

    def conditional_mean(self, h: Array) -> Array:
        alpha_z, beta_z, alpha_h, beta_h = self._columns("alpha_z", "beta_z", "alpha_h", "beta_h")
        factor = np.where(alpha_z > 1.0, beta_z / beta_h * alpha_h / (alpha_z - 1.0), np.inf)
        return factor[:, 0] * h

    def _has_mean(self) -> bool:
        return bool(np.all(np.asarray(self.alpha_z) > 1.0))

    def forecast(self, h_last: Array, steps: int, point: Point, scale: Scale) -> Array:
        if point == "mean" and not self._has_mean():
            return self._median_forecast(h_last, steps)
        return super().forecast(h_last, steps, point, scale)

    def _median_forecast(self, h_last: Array, steps: int, n_paths: int = 20_001) -> Array:
        """Medians of simulated paths: h_n = h_{n−1} (β_z/β_h) Gamma(α_h)/Gamma(α_z)."""
        columns = self._columns("alpha_z", "beta_z", "alpha_h", "beta_h")
        alpha_z, beta_z, alpha_h, beta_h = (c[:, :, None] for c in columns)
        rng = np.random.default_rng(0)
        shape = (len(h_last), steps, n_paths)
        jumps = np.log(rng.gamma(alpha_h, size=shape)) - np.log(rng.gamma(alpha_z, size=shape))
        paths = np.cumsum(jumps + np.log(beta_z / beta_h), axis=1)
        return h_last[:, None] * np.exp(np.median(paths, axis=2))

    def point_name(self, point: Point) -> str:
        if point == "mean" and not self._has_mean():
            return "conditional median (the mean is infinite for alpha_z <= 1)"
        return super().point_name(point)
