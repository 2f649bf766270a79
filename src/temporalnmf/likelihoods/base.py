"""Interface of likelihoods for solvers: one form of majorizer for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .._typing import Array
from ..kernels.dense import Formulas
from ..kernels.floor import LEAST_LEVEL
from ..metrics import is_error


class Majorizer(NamedTuple):
    """(M): −p log x + q x + r/x, a bound on −log p(V | WH) that is tight at the current x.

    For x = H all three are (K, N). For x = W they are (F, K), except that q and r are (1, K)
    if they do not depend on the feature.
    """

    p: Array
    q: Array
    r: Array


class Likelihood(BaseEstimator):
    """A distribution of v given λ with a majorizer of the form (M).

    Attributes
    ----------
    name : str
        Its name in the registry.
    formulas : Formulas
        Formulas of an entry, for the kernels.
    in_blocks : Formulas or None
        Formulas for passes that are not unrolled, if they differ in rounding.
    theta : array, (P,)
        Numbers that the formulas read.
    takes_zeros : bool
        Whether v = 0 is in its domain.
    takes_sparse : bool
        Whether data may be sparse: zeros are linear in λ.
    weighs : bool
        Whether the formulas take m·v for v. Otherwise they multiply by m themselves.
    takes_single : bool
        Whether sums over single-precision data may be taken in single precision.
    additive : bool
        Whether a sum of entries is distributed like an entry with the sum of their rates; see
        `split`.
    counts : bool
        Whether entries are counts, with a variance near their mean.
    own_unit : bool
        Whether the distribution fixes the unit of the data. If not, data far from one are rescaled.
    whole : bool
        Whether entries must be whole numbers.
    has_draws : bool
        Whether the Gibbs sampler supports it.
    local : bool
        Whether the majorizer holds up to a multiple of x only; see `LocalBound`.
    has_law : bool
        Whether it is a distribution. If not, there are point estimates only.
    levels : tuple of float
        Mean totals of a step, least and most, that a fit accepts.
    cost : float
        The constant b/m of `linear` formulas.
    excess : float
        Variance of counts relative to their mean, minus one.
    learns : bool
        Whether a parameter is learned from the data.
    learned : dict
        Current estimates of learned parameters, by name.
    """

    name: ClassVar[str]
    formulas: ClassVar[Formulas]
    in_blocks: ClassVar[Formulas | None] = None
    theta: Array = np.empty(0)
    takes_zeros: ClassVar[bool] = False
    weighs: ClassVar[bool] = True
    takes_single: ClassVar[bool] = False
    additive: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    own_unit: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    has_draws: ClassVar[bool] = False
    local: bool = False
    has_law: bool = True
    levels: ClassVar[tuple[float, float]] = (LEAST_LEVEL, np.inf)
    cost: float = 1.0
    excess: float = 0.0

    @property
    def takes_sparse(self) -> bool:
        return self.formulas.linear

    @property
    def learns(self) -> bool:
        return False

    @property
    def learned(self) -> dict[str, float]:
        return {}

    def check(self) -> None:
        """Refuse parameters that make no sense."""

    def check_law(self, what: str) -> None:
        """Refuse what needs a distribution if this is none."""
        if not self.has_law:
            raise ValueError(
                f"{what} needs a distribution of the data, and {self!r} is a divergence that none "
                f"has. Use a likelihood that is one, such as 'gaussian', or Tweedie with beta < 1."
            )

    def resolve(self) -> Self:
        """A copy whose parameters are numbers: starting values for those to be learned."""
        return self

    def learn(
        self, value: Callable[[Likelihood], float], present: float | None = None
    ) -> tuple[Likelihood, float]:
        """A copy with better estimates of learned parameters, and its value.

        `value` is the likelihood's term of the objective for a copy with other parameters,
        `present` that of this one, if it is known.
        """
        return self, value(self) if present is None else present

    def weigh(self, v: Array, weight: Array | float) -> Array:
        """Values for the formulas."""
        return np.multiply(weight, v) if self.weighs else v

    def leaves_values(self, weight: Array) -> bool:
        """Whether `weigh` does not change observed values."""
        return not self.weighs or bool(np.all((weight == 0.0) | (weight == 1.0)))

    def majorizer(self, A: Array, B: Array, x: Array) -> Majorizer:
        """(M) at x from the sums A and B of the `formulas`; A is overwritten."""
        raise NotImplementedError

    def error(self, observed: ArrayLike, predicted: ArrayLike) -> float:
        """Sum of the divergence of values from their predictions, in one unit for any parameter."""
        return is_error(observed, predicted)

    def log_density(self, v: Array, lam: Array) -> Array:
        """log p(v | λ) per entry, constants included; λ includes the exposure."""
        raise NotImplementedError

    def saturated(self, v: Array, weight: Array | float) -> float:
        """The smallest value of the formulas for any rates, where the divergence is zero."""
        raise NotImplementedError

    def dropped(self, v: Array, weight: Array | float, exposure: Array | float) -> float:
        """Constants in the value of the formulas that the objective leaves out."""
        return 0.0

    def slope(self, v: Array, weight: Array, lam: Array) -> Array:
        """∂/∂λ of an entry's term of the objective; λ includes the exposure."""
        raise NotImplementedError

    def curvature(self, v: Array, weight: Array, lam: Array, *, expected: bool = False) -> Array:
        """∂²/∂λ² of an entry's term of the objective, or its expectation."""
        raise NotImplementedError

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        """A draw of v for every λ; λ includes the exposure."""
        raise NotImplementedError

    def split(self, counts: Array, rates: Array, rng: np.random.Generator) -> Array:
        """Draws (S, B) of independent entries with rates (S, B), given their sums (S,).

        Only the ratios of the rates of a row matter. For likelihoods that are `additive`.
        """
        raise NotImplementedError
