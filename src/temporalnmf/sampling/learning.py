"""Hyper-parameters drawn together with components and activations.

Those of the chain have the priors of `chains/coordinates.py`. The smoothing of W is log-normal
around 0.1, the dispersion of counts around 1, each with a spread of e^2 and one value for all. All
are drawn by slice steps on the real line, log θ or the log odds of ρ, but for the dispersion
log(1 + d) (R. M. Neal, 2003).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .._typing import Array
from ..chains.base import Chain
from ..chains.coordinates import WIDE, Coordinates, Prior
from ..inference.smoothing import SMOOTHING
from ..likelihoods.base import Likelihood
from ..likelihoods.parametric import OneParameter
from .effects import LearnedEffects

_WIDE = WIDE
# Counts from here on are summed one by one.
_TABLE = 256


class LearnedChain(Coordinates):
    """The chain with its current hyper-parameters, and draws of them.

    Parameters are those of `Coordinates`.

    Attributes
    ----------
    coordinates : dict
        Current coordinates of the learned hyper-parameters, (K,) each.
    chain : Chain
        The chain at these values.
    """

    def __init__(self, chain: Chain, level: float, n_components: int) -> None:
        super().__init__(chain, level, n_components)
        self.coordinates = self.start
        self.chain = self.at(self.coordinates)

    def move(self, coordinates: dict[str, Array]) -> None:
        """Set other coordinates."""
        self.coordinates, self.chain = coordinates, self.at(coordinates)

    def log_prior(self) -> float:
        """Log prior of the current values, up to a constant."""
        return sum(
            float(np.sum(p.log_density(self.coordinates[n]))) for n, p in self.priors.items()
        )

    def draw(self, H: Array, Z: Array, rng: np.random.Generator) -> None:
        """Draw all hyper-parameters given paths H (K, N) and auxiliary variables."""
        for name, prior in self.priors.items():

            def density(x: Array, name: str = name, prior: Prior = prior) -> Array:
                at = self.at({**self.coordinates, name: x})
                return prior.log_density(x) + at.path_law(len(H)).given_first(H, Z)

            self.move({**self.coordinates, name: slice_steps(rng, density, self.coordinates[name])})


@dataclass
class LearnedSmoothing:
    """Pseudo-count of the Dirichlet prior on columns of W, known or learned."""

    value: float
    learned: bool

    def log_prior(self) -> float:
        """Log prior of log s, up to a constant."""
        if not self.learned:
            return 0.0
        return float(-0.5 * (np.log(self.value / SMOOTHING) / _WIDE) ** 2)

    def draw(self, counts: Array, rng: np.random.Generator) -> None:
        """Draw it given the counts (F′, K) of active features, weights integrated out."""
        if not self.learned:
            return
        tally, large = tallied(counts)
        self.draw_given(tally, lambda s: float(gammaln(s + large).sum()), rng)

    def draw_given(
        self, tally: Tally, of_large: Callable[[float], float], rng: np.random.Generator
    ) -> None:
        """Draw it given sums of the counts, and Σ log Γ(s + y) of large ones.

        Columns of counts are Dirichlet-multinomial, (W4).
        """
        F, totals, table, n_large = tally
        K, steps = len(totals), np.arange(_TABLE)

        def density(x: Array) -> Array:
            s = float(np.exp(x[0]))
            value = K * gammaln(F * s) - gammaln(F * s + totals).sum()
            large = of_large(s) if n_large else 0.0
            value += table @ gammaln(s + steps) + large - F * K * gammaln(s)
            return np.array([value]) - 0.5 * ((x - np.log(SMOOTHING)) / _WIDE) ** 2

        self.value = float(np.exp(slice_steps(rng, density, np.log([self.value]))[0]))


class LearnedLikelihood:
    """The likelihood with its current parameter, and draws of it.

    Attributes
    ----------
    value : Likelihood
        All of its parameters are numbers; `value.learned` has the learned one.
    """

    def __init__(self, likelihood: Likelihood) -> None:
        self.value = likelihood

    @property
    def known(self) -> Likelihood:
        """The same likelihood with its parameter taken as given."""
        return type(self.value)(**self.value.get_params())

    def move(self, learned: dict[str, float]) -> None:
        """Set another value of the learned parameter."""
        for number in learned.values():
            assert isinstance(self.value, OneParameter)
            self.value = self.value.at(number)

    def log_prior(self) -> float:
        """Log prior of log d, up to a constant."""
        return sum(-0.5 * (math.log(d) / _WIDE) ** 2 for d in self.value.learned.values())

    def draw(
        self, value: Callable[[Likelihood], float], n_positive: int, rng: np.random.Generator
    ) -> None:
        """Draw the dispersion d of counts given their rates, with clumps integrated out.

        `value` is −log p(V | WH) at other parameters. The step is for log(1 + d), the log of the
        ratio of variance and mean, which n positive counts determine up to about 1.5/√n,
        whatever d is.
        """
        law = self.value
        assert isinstance(law, OneParameter)
        least, most = law.bounds

        def density(x: float) -> float:
            d = math.expm1(x)
            if not least <= d <= most:
                return -math.inf
            # The prior is that of log d: d log d / dx = (1 + d)/d.
            return -0.5 * (math.log(d) / _WIDE) ** 2 + x - math.log(d) - value(law.at(d))

        width = min(1.0, 5.0 / math.sqrt(max(n_positive, 1)))
        self.value = law.at(math.expm1(slice_step(rng, density, math.log1p(law.number), width)))


class Parameters(NamedTuple):
    """The unknowns of a run besides components and activations.

    The sampler's counterpart of `Problem`. Each is drawn given the other unknowns if the user has
    set it to "learn", else it is constant. Effects are always drawn.
    """

    chain: LearnedChain
    smoothing: LearnedSmoothing
    likelihood: LearnedLikelihood
    effects: LearnedEffects | None = None


class Tally(NamedTuple):
    """Sums over features of counts (F′, K), for the density of the smoothing."""

    n_features: int
    totals: Array  # Σ_f y, (K,)
    table: Array  # frequencies of small counts 0, 1, 2 …
    n_large: int


def tallied(counts: Array) -> tuple[Tally, Array]:
    """The `Tally` of counts, and the large counts."""
    small = counts < _TABLE
    large = counts[~small]
    table = np.bincount(counts[small].astype(np.int64), minlength=_TABLE)
    return Tally(len(counts), counts.sum(axis=0), table, len(large)), large


# Maximum number of widths of an interval, and of trials within it.
_GROWN, _TRIALS = 32, 200


def slice_steps(
    rng: np.random.Generator, log_density: Callable[[Array], Array], x: Array, width: float = 1.0
) -> Array:
    """A slice step for each of several independent unknowns x (K,), vectorized.

    Intervals grow by stepping out and the draw is by shrinkage (Neal's figures 3 and 5).

    Parameters
    ----------
    rng : numpy Generator
    log_density : callable
        Log densities of x, (K,), up to constants.
    x : array, (K,)
    width : float
        Approximate width of the distributions. Any is valid.
    """
    level = log_density(x) - rng.standard_exponential(len(x))
    left = x - width * rng.random(len(x))
    right = left + width
    to_left = np.floor(_GROWN * rng.random(len(x)))
    to_right = _GROWN - 1.0 - to_left
    for end, quota, step in ((left, to_left, -width), (right, to_right, width)):
        grows = quota > 0.0
        while grows.any():
            grows = grows & (log_density(end) > level)
            end[grows] += step
            quota[grows] -= 1.0
            grows = grows & (quota > 0.0)
    moved, open_ = x.copy(), np.ones(len(x), dtype=bool)
    for _ in range(_TRIALS):
        new = left + rng.random(len(x)) * (right - left)
        inside = log_density(np.where(open_, new, moved)) > level
        taken = open_ & inside
        moved[taken] = new[taken]
        open_ &= ~taken
        if not open_.any():
            break
        left = np.where(open_ & (new < x), new, left)
        right = np.where(open_ & (new >= x), new, right)
    return moved


def slice_step(
    rng: np.random.Generator, log_density: Callable[[float], float], x: float, width: float = 1.0
) -> float:
    """`slice_steps` for a single unknown, with the same random numbers and the same result."""
    level = log_density(x) - rng.standard_exponential()
    left = x - width * rng.random()
    right = left + width
    to_left = math.floor(_GROWN * rng.random())
    to_right = _GROWN - 1 - to_left
    while to_left > 0 and log_density(left) > level:
        left, to_left = left - width, to_left - 1
    while to_right > 0 and log_density(right) > level:
        right, to_right = right + width, to_right - 1
    for _ in range(_TRIALS):
        new = left + rng.random() * (right - left)
        if log_density(new) > level:
            return new
        left, right = (new, right) if new < x else (left, new)
    return x
