"""The posterior of the activations of a fitted model: by Laplace's approximation, or by draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._typing import Array
from ..chains.base import Point
from ..data.series import AnySeries, Series
from ..effects.design import Design
from ..inference.fitting import check_observed, infer_mode
from ..inference.gaps import draw_steps, fitted_steps, interpolates
from ..messages.errors import ArgumentError
from ..sampling.draws import PosteriorDraws
from ..sampling.inference import FittedSteps, Inferred, infer_draws
from .forecast import DrawnComponents
from .state import State

# Maximum size of the draws of a smoothed series.
MOST = 20_000_000
# Appended to the name of a point prediction.
_MEDIANS = "; of the missing last steps the median (the mean is infinite)"
Rows = Callable[[int], Array]  # the data (F,) of a step, by its number


class Steps(NamedTuple):
    """Steps of the past or of the future."""

    levels: Array  # (T, K), the point prediction; activations once they have factors of effects
    point: str  # its name
    draws: Array | None  # (S, T, K); None if chain or likelihood is no distribution
    drawn: DrawnComponents | None = None
    which: Array | None = None  # (S,), the draw of the components of each draw
    start: Array = np.empty(0)  # (K,), the levels from which futures start


class ModePosterior:
    """The levels of the activations around a posterior mode."""

    def __init__(self, state: State) -> None:
        self._state = state

    def mean(self, series: AnySeries, *, continue_chain: bool = False) -> Array:
        """Levels (K, N) of all steps, missing ones included, at fixed components."""
        check_observed(series, continue_chain)
        state = self._state
        return infer_mode(state.config, state.factors, series, continue_chain=continue_chain)

    def sample(self, series: Series | None, n_samples: int, rng: np.random.Generator) -> Steps:
        """All steps of a series, of the fitted one by default."""
        state, chain = self._state, self._state.chain
        if series is None:
            H, kept, observed = state.levels.T, state.kept, state.observed
        else:
            H, observed = self.mean(series), series.observed
            kept = fitted_steps(observed, chain, state.config.point)
        draws = None
        if state.has_law:
            used = None if series is None else series.take(kept)
            posterior = state.laplace(used, H[:, kept])
            n_samples = min(n_samples, max(100, MOST // H.size))
            draws = draw_steps(posterior, kept, H.shape[1], chain, n_samples, rng)
        mean = state.config.map_scale == "log" and chain.dynamic
        point = "posterior mean" if mean else "posterior mode"
        inside = interpolates(chain, state.config.gaps)
        point = _smoothed(point, inside, observed)
        filled = chain.dynamic and kept[-1] < H.shape[1] - 1
        if filled and not np.isfinite(chain.mean_ahead(np.ones(len(H)), 1)).all():
            point += _MEDIANS
        return Steps(np.ascontiguousarray(H.T), point, draws)

    def ahead(self, steps: int, point: Point, n_samples: int, rng: np.random.Generator) -> Steps:
        """The steps after the last."""
        state, chain = self._state, self._state.chain
        scale = state.config.map_scale
        H = chain.point_forecast(chain.state_of(state.levels), steps, point, scale)
        draws, start = None, np.empty(0)
        if state.has_law:
            before, last = state.since + 1, state.laplace().last
            start = last.activations[0]
            draws = draw_steps(last, np.zeros(1, int), before + steps, chain, n_samples, rng)
            draws = draws[:, before:]
        name = chain.point_name(point)
        if scale == "linear" and chain.dynamic:
            # The draws start from the mode of log h instead.
            name = f"{name} from the mode of h"
        return Steps(np.ascontiguousarray(H.T), name, draws, start=start)

    def activations(self, series: AnySeries, *, continue_chain: bool = False) -> Array:
        """Activations (N, K) of all steps: levels times the factors of effects."""
        levels, factors = (
            self.mean(series, continue_chain=continue_chain).T,
            self._state.factors_of(series.design),
        )
        return levels if factors is None else levels * factors

    def expected_rows(self, series: Series, *, continue_chain: bool = False) -> Rows:
        """The expected data (F,) of each step of a series, as a function of the step."""
        G = self.activations(series, continue_chain=continue_chain)
        components = self._state.components
        return lambda n: series.exposure[n] * (G[n] @ components)

    def with_factors(self, steps: Steps, design: Design | None) -> Steps:
        """Activations at the steps of a design."""
        factors = self._state.factors_of(design)
        if factors is None:
            return steps
        draws = None if steps.draws is None else steps.draws * factors
        return steps._replace(levels=steps.levels * factors, draws=draws)


class DrawnPosterior:
    """The activations by posterior draws, with the methods of `ModePosterior`."""

    def __init__(self, state: State, draws: PosteriorDraws) -> None:
        self._state, self._draws = state, draws

    def _inferred(self, series: Series, continue_chain: bool) -> Inferred:
        state = self._state
        fitted = FittedSteps(state.kept, state.n_steps, state.fingerprint)
        return infer_draws(state.config, self._draws, fitted, series, continue_chain=continue_chain)

    def activations(self, series: AnySeries, *, continue_chain: bool = False) -> Array:
        """The means of the products of levels and factors."""
        check_observed(series, continue_chain)
        if not isinstance(series, Series):
            problem = "X is not in memory, as a model that was fitted by draws needs it."
            raise ValueError(f"{problem} Give the steps you need as an array.")
        return self._expected(series, continue_chain).expected.mean(axis=0)

    def _expected(self, series: Series, continue_chain: bool) -> DrawnComponents:
        """Draws of components, with expected activations."""
        numbers, _, levels = self._inferred(series, continue_chain)
        factors = self._factors(numbers, series.design)
        expected = levels if factors is None else levels * factors
        return DrawnComponents(self._draws.flat("components"), numbers, expected)

    def _factors(self, which: Array, design: Design | None) -> Array | None:
        return None if design is None else self._draws.factors(which, design)

    def with_factors(self, steps: Steps, design: Design | None) -> Steps:
        """Activations at the steps of a design: each draw has its own factors."""
        assert steps.drawn is not None
        factors = self._factors(steps.drawn.numbers, design)
        if factors is None:
            return steps
        expected = steps.drawn.expected * factors
        draws = steps.draws
        if draws is not None and steps.which is not None:
            draws = draws * self._factors(steps.which, design)
        drawn = replace(steps.drawn, expected=expected)
        return steps._replace(levels=expected.mean(axis=0), draws=draws, drawn=drawn)

    def sample(self, series: Series | None, n_samples: int, rng: np.random.Generator) -> Steps:
        state, posterior = self._state, self._draws
        if series is None:
            N, K = state.levels.shape
            # The expected activations must not depend on n_samples.
            most = min(max(100, MOST // (N * K)), posterior.n_draws)
            which, numbers = posterior.pick(min(n_samples, most)), posterior.pick(most)
            draws = posterior.steps(which, state.kept, N, rng)
            expected, observed = posterior.expected_steps(numbers, state.kept, N), state.observed
        else:
            numbers, draws, expected = self._inferred(series, continue_chain=False)
            which, observed = numbers, series.observed
        point = _smoothed("posterior mean", not posterior.chain.dynamic, observed)
        if not observed[-1] and not posterior.has_means:
            point += _MEDIANS
        drawn = DrawnComponents(posterior.flat("components"), numbers, expected)
        return Steps(expected.mean(axis=0), point, draws, drawn, which)

    def ahead(self, steps: int, point: Point, n_samples: int, rng: np.random.Generator) -> Steps:
        posterior, since = self._draws, self._state.since
        if point != "mean":
            raise ArgumentError("point", point, ": draws have a mean, but no mode.", "Take 'mean'.")
        which, numbers = posterior.pick(n_samples), np.arange(posterior.n_draws)
        draws = posterior.paths_ahead(which, since + steps, rng)[:, since:]
        expected = posterior.means_ahead(numbers, since + steps)[:, since:]
        name = "posterior mean"
        if not posterior.chain.dynamic:
            name = "last value (posterior mean of the last observed step)"
        elif not posterior.has_means:
            name = "median of the draws (the mean is infinite)"
        start = posterior.flat("levels")[:, -1].mean(axis=0)
        drawn = DrawnComponents(posterior.flat("components"), numbers, expected)
        return Steps(expected.mean(axis=0), name, draws, drawn, which, start)

    def expected_rows(self, series: Series, *, continue_chain: bool = False) -> Rows:
        drawn = self._expected(series, continue_chain)
        return lambda n: series.exposure[n] * drawn.at(np.array([n])).values()[0]


ActivationPosterior = ModePosterior | DrawnPosterior


def posterior_of(state: State) -> ActivationPosterior:
    """The posterior of the activations: from draws if the model was fitted by draws."""
    return ModePosterior(state) if state.draws is None else DrawnPosterior(state, state.draws)


def _smoothed(name: str, interpolated: bool, observed: Array) -> str:
    """Name of the smoothed point."""
    return f"{name}; missing steps interpolated" if interpolated and not observed.all() else name
