"""The MAP objective."""

from __future__ import annotations

from dataclasses import dataclass

from ._typing import Array
from .chains.base import Chain, Scale
from .effects.effects import Effects
from .likelihoods.base import Likelihood
from .observations.base import Observations, Sums
from .observations.features import Features


@dataclass(frozen=True)
class Problem:
    """What a solver minimises: data, chain, scale of the mode, smoothing of W, and effects.

    The variables are W (F, K), whose columns sum to one, and the levels H (K, N), with the
    auxiliary variables of the chain; and the coefficients of effects, if these are moving. The data
    depend on the activations, levels times the factors of effects.
    """

    observations: Observations
    chain: Chain
    scale: Scale = "log"
    smoothing: float = 0.0
    effects: Effects | None = None

    @property
    def likelihood(self) -> Likelihood:
        """That of the observations, with its present parameters."""
        return self.observations.likelihood

    def activations(self, H: Array) -> Array:
        """Levels H times the factors of effects."""
        return H if self.effects is None else H * self.effects.factors

    def sums(self, features: Features, H: Array) -> Sums:
        """The sums for levels H, (K, N)."""
        return self.of_levels(features.sums(self.activations(H)))

    def of_levels(self, sums: Sums) -> Sums:
        """Sums for activations as sums for levels."""
        if self.effects is None:
            return sums
        return Sums(sums.A * self.effects.factors, sums.B * self.effects.factors)

    def learn_likelihood(
        self, features: Features, H: Array, present: float | None = None
    ) -> float | None:
        """Give the observations better estimates of the likelihood's parameters.

        It takes several passes over the data, so solvers do it where they evaluate the objective,
        one fewer with the `present` value of the likelihood's term. Returns the new one; if nothing
        is learned, the present one.
        """
        if not self.likelihood.learns:
            return present

        def value(likelihood: Likelihood) -> float:
            self.observations.use(likelihood)
            return features.value(self.activations(H))

        learned, found = self.likelihood.learn(value, present)
        self.observations.use(learned)
        return found

    def parts(
        self, W: Array | Features, H: Array, aux: Array, value: float | None = None
    ) -> dict[str, float]:
        """The terms of the objective by name; that of the likelihood is computed if not given."""
        features = self.observations.hold(W)
        # (W3); the sum skips weights of exactly zero, those of inactive features.
        smoothing = -self.smoothing * features.log_sum() if self.smoothing else 0.0
        found = {
            "likelihood": features.value(self.activations(H)) if value is None else value,
            "chain": self.chain.value(H, aux, self.scale),
            "smoothing": float(smoothing),
        }
        return found if self.effects is None else found | {"effects": self.effects.value()}

    def objective(self, W: Array | Features, H: Array, aux: Array | None = None) -> float:
        """−log p(V | WH) − log p(H) − s Σ log w; `aux` is computed from H if not given."""
        if aux is None:
            aux = self.chain.auxiliary(H, self.scale)
        return sum(self.parts(W, H, aux).values())
