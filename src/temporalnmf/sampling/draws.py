"""The posterior draws of a fit, with forecasts and gaps by the chain."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from .._typing import Array
from ..chains.base import Chain
from ..effects.design import Design
from ..effects.drawn import DrawnEffects
from ..effects.effects import Effects
from ..inference.gaps import fill_gaps
from ..likelihoods.base import Likelihood
from ..likelihoods.poisson import Poisson
from .diagnostics import Diagnosis, diagnose

# Simulated paths for a median.
_FOR_MEDIANS = 2000


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorDraws:
    """Posterior draws of every `thin`-th sweep, by run and in order.

    Components have the same order in all runs: those of later runs are matched to the first.

    Attributes
    ----------
    components : array of single precision, (n_chains, draws, n_components, n_features)
    activations : array, (n_chains, draws, n_steps, n_components)
        Of the steps up to the last observed one; without dynamics, of the observed ones. With
        effects, levels times factors.
    parameters : dict
        Hyper-parameters of the chain by name, (n_chains, draws, n_components) each; empty if none
        was learned. Some depend on others, such as β = α of `Rate(alpha="learn")`.
    learned : tuple of str
        Names of the learned ones.
    smoothing, log_posterior : array, (n_chains, draws)
        The log posterior is up to a constant.
    chain : Chain
        With the hyper-parameters that are not learned.
    level : float
        Mean of the prior of a first level, Gamma with shape 1/2.
    thin : int
    likelihood : Likelihood
        With the posterior means of learned parameters.
    of_likelihood : dict
        Learned parameters of the likelihood by name, (n_chains, draws) each.
    effects : DrawnEffects or None
        Of seasons.
    """

    components: Array
    activations: Array
    parameters: dict[str, Array]
    smoothing: Array
    log_posterior: Array
    chain: Chain
    level: float
    learned: tuple[str, ...] = ()
    thin: int = 1
    likelihood: Likelihood = field(default_factory=Poisson)
    of_likelihood: dict[str, Array] = field(default_factory=dict)
    effects: DrawnEffects | None = None

    def __repr__(self) -> str:
        C, D, K, F = self.components.shape
        return (
            f"PosteriorDraws({C} {'run' if C == 1 else 'runs'} of {D} "
            f"{'draw' if D == 1 else 'draws'}, {K} components, {F} features, "
            f"{self.activations.shape[2]} steps, {self.nbytes / 1e6:.0f} MB)"
        )

    @property
    def nbytes(self) -> int:
        """Size of the draws in bytes."""
        effects = 0 if self.effects is None else self.effects.nbytes
        return self.components.nbytes + self.activations.nbytes + effects

    @cached_property
    def levels(self) -> Array:
        """The activations without effects, which the chain describes; of the same shape."""
        factors = self.factors(np.arange(self.n_draws), None)
        return (
            self.activations
            if factors is None
            else self.activations / factors.reshape(self.activations.shape)
        )

    def factors(self, which: Array, design: Design | None) -> Array | None:
        """Factors (S, N, K) of effects at the steps of a design; by default, at drawn steps."""
        effects = self.effects
        return None if effects is None else effects.factors(which, design or effects.design)

    @property
    def n_draws(self) -> int:
        """Number of draws of all runs together."""
        return int(self.smoothing.size)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Whether the runs agree, in numbers and in words."""
        return diagnose(self)

    def pick(self, n: int) -> Array:
        """Indices of n draws, evenly spaced, with repetition if there are fewer."""
        return (
            np.arange(n) * self.n_draws // n if n <= self.n_draws else np.arange(n) % self.n_draws
        )

    def flat(self, name: str) -> Array:
        """Components, activations or levels of all runs, concatenated."""
        array: Array = getattr(self, name)
        return array.reshape(-1, *array.shape[2:])

    def chain_at(self, which: Array) -> Chain:
        """The chain of some draws, with the components of all of them in a row."""
        K = self.activations.shape[3]
        chain = copy.copy(self.chain)
        for name, value in chain.get_params().items():
            if name in self.parameters:
                setattr(chain, name, self.parameters[name].reshape(-1, K)[which].ravel())
            elif np.ndim(value):
                setattr(chain, name, np.tile(value, len(which)))
        return chain

    def likelihood_at(self, which: Array | int) -> Likelihood:
        """The likelihood of a draw; or of several, for samples with one row per draw."""
        likelihood = copy.copy(self.likelihood)
        for name, values in self.of_likelihood.items():
            setattr(likelihood, name, values.reshape(-1)[which])
        return likelihood

    def means_ahead(self, which: Array, steps: int) -> Array:
        """Expected levels (draws, steps, K) of the steps after the last, draw by draw.

        Without dynamics the last value is repeated, as for a posterior mode. If a draw has no
        mean, all get the median of simulated paths instead, see `has_means`.
        """
        last = self.chain.state_of(self.flat("levels")[which])
        if not self.chain.dynamic or steps == 0:
            return np.repeat(last[:, None], steps, axis=1)
        ahead = self.chain_at(which).mean_ahead(last.ravel(), steps)
        if not np.isfinite(ahead).all():
            paths = self.paths_ahead(self.pick(_FOR_MEDIANS), steps, np.random.default_rng(0))
            return np.repeat(np.median(paths, axis=0)[None], len(which), axis=0)
        return np.moveaxis(ahead.reshape(steps, *last.shape), 0, 1)

    @cached_property
    def has_means(self) -> bool:
        """Whether the next step has a mean under every draw."""
        last = self.chain.state_of(self.flat("levels"))
        mean = self.chain_at(np.arange(self.n_draws)).mean_ahead(last.ravel(), 1)[0]
        return not self.chain.dynamic or bool(np.isfinite(mean).all())

    def paths_ahead(self, which: Array, steps: int, rng: np.random.Generator) -> Array:
        """Simulated levels (draws, steps, K) of the steps after the last."""
        last = self.chain.state_of(self.flat("levels")[which])
        path = self.chain_at(which).sample_ahead(last.reshape(1, -1), steps, rng)[0]
        return np.moveaxis(path.reshape(steps, *last.shape), 0, 1)

    def to_last(self, which: Array, since: int, rng: np.random.Generator) -> Array:
        """Levels (draws, K) `since` steps after the last drawn one."""
        if since == 0:
            return self.flat("levels")[which, -1]
        return self.paths_ahead(which, since, rng)[:, -1]

    def steps(self, which: Array, kept: Array, n_steps: int, rng: np.random.Generator) -> Array:
        """Levels (draws, n_steps, K) of all steps; those not drawn are simulated."""
        drawn = self.flat("levels")[which]
        found = np.empty((len(which), n_steps, drawn.shape[2]))
        found[:, kept] = drawn
        last, chain = int(kept[-1]), self.chain_at(which)
        for n in np.setdiff1d(np.arange(last + 1), kept):  # only without dynamics
            step = chain.sample_ahead(drawn[:, 0].reshape(1, -1), 1, rng)
            found[:, n] = step[0, 0].reshape(len(which), -1)
        if last + 1 < n_steps:
            found[:, last + 1 :] = self.paths_ahead(which, n_steps - 1 - last, rng)
        return found

    def expected_steps(self, which: Array, kept: Array, n_steps: int) -> Array:
        """Like `steps`, with means in place of simulated steps.

        Without dynamics gaps are interpolated, as for a posterior mode.
        """
        drawn, last = self.flat("levels")[which], int(kept[-1])
        rows = np.moveaxis(drawn, 1, 2).reshape(-1, drawn.shape[1])
        inside = fill_gaps(rows, kept, last + 1, self.chain_at(which), "mean", "log")
        inside = np.moveaxis(inside.reshape(len(drawn), -1, last + 1), 2, 1)
        return np.concatenate([inside, self.means_ahead(which, n_steps - 1 - last)], axis=1)

    def with_levels(self, levels: Array, design: Design | None) -> PosteriorDraws:
        """The same draws with other levels (n_chains, draws, steps, K)."""
        if self.effects is None or design is None:
            return replace(self, activations=levels)
        factors = self.effects.factors(np.arange(self.n_draws), design).reshape(levels.shape)
        return replace(self, activations=levels * factors, effects=self.effects.moved_to(design))

    def only(self, which: Array, levels: Array, design: Design | None) -> PosteriorDraws:
        """Some of the draws as one run, with other levels (draws, steps, K)."""
        K = self.activations.shape[3]
        effects, activations = self.effects, levels
        if effects is not None and design is not None:
            activations = levels * effects.factors(which, design)
            effects = effects.only(which, design)
        return replace(
            self,
            components=self.flat("components")[None, :0],
            activations=activations[None],
            parameters={
                name: values.reshape(-1, K)[which][None] for name, values in self.parameters.items()
            },
            smoothing=self.smoothing.reshape(-1)[which][None],
            log_posterior=self.log_posterior.reshape(-1)[which][None],
            of_likelihood={
                name: values.reshape(-1)[which][None] for name, values in self.of_likelihood.items()
            },
            effects=effects,
        )


def used_smoothing(given: float | str, draws: PosteriorDraws) -> float:
    """The smoothing of draws: as given, or the posterior mean if it was learned."""
    return float(draws.smoothing.mean()) if given == "learn" else float(given)


def cycles_of(effects: Effects | None, draws: PosteriorDraws | None) -> dict[str, Array]:
    """The factors (K, positions) of one cycle of each season; of draws, their means."""
    if draws is not None and draws.effects is not None:
        return draws.effects.cycles()
    return {} if effects is None else effects.cycles()
