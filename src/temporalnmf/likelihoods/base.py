"""The seam between data and solver: one majorizer for every likelihood."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from .._typing import Array


class Majorizer(NamedTuple):
    """(M): −p log x + q x + r/x, a bound on −log p(V | WH) that is tight at the current x.

    For x = H all three are (K, N). For x = W they are (F, K), except that q and r are (1, K)
    where they do not depend on the feature.
    """

    p: Array
    q: Array
    r: Array

    def plus(self, other: Majorizer) -> Majorizer:
        """Both bounds together."""
        return Majorizer(self.p + other.p, self.q + other.q, self.r + other.r)


class Likelihood:
    """A law of v given λ that has a majorizer of the form (M).

    Attributes
    ----------
    name : str
        Its name in the registry.
    power : int
        Exponent of the β-divergence behind it, which selects the kernel: 1 or 0.
    takes_zeros : bool
        Whether v = 0 lies in its domain. Sparse data need it.
    additive : bool
        Whether a sum of entries has the same law, with the sum of their rates.
    """

    name: ClassVar[str]
    power: ClassVar[int]
    takes_zeros: ClassVar[bool]
    additive: ClassVar[bool] = False

    def weigh(
        self, v: Array, weight: Array | float, exposure: Array | float
    ) -> tuple[Array, Array]:
        """Fold weights and exposures into what the kernels read: (m·v, m) in the plain case."""
        raise NotImplementedError

    def majorizer(self, A: Array, B: Array, x: Array) -> Majorizer:
        """(M) at x from the sums A of m v λ^(power−2) and B of m λ^(power−1); A is used up."""
        raise NotImplementedError

    def log_density(self, v: Array, lam: Array) -> Array:
        """log p(v | λ) per entry, every constant included; λ counts the exposure already."""
        raise NotImplementedError

    def saturated(self, v: Array, weight: Array | float, exposure: Array | float) -> float:
        """The objective's value at a perfect fit, e λ = v: what a divergence is measured from."""
        raise NotImplementedError

    def slope(self, v: Array, weight: Array, exposure: float, lam: Array) -> Array:
        """∂/∂λ of an entry's part in the objective, λ not counting the exposure."""
        raise NotImplementedError

    def curvature(
        self, v: Array, weight: Array, exposure: float, lam: Array, *, expected: bool = False
    ) -> Array:
        """∂²/∂λ² of an entry's part in the objective, or what the law expects it to be."""
        raise NotImplementedError

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        """A draw of v for every λ; λ counts the exposure already."""
        raise NotImplementedError

    def split(self, counts: Array, rates: Array, rng: np.random.Generator) -> Array:
        """Draws (S, B) of independent entries with rates (S, B), given their sums (S,).

        Only the ratios of the rates of a row matter. For likelihoods that are `additive`.
        """
        raise NotImplementedError
