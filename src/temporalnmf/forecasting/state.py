"""A fitted model, for forecasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._typing import Array
from ..chains.base import Chain
from ..data.modulation import Exposure, exposure_of
from ..data.series import Series
from ..effects.design import Design
from ..effects.effects import Effects
from ..inference.config import Config, Factors
from ..inference.fitting import Fitted, effects_at, infer_mode
from ..inference.gaps import fitted_steps
from ..inference.laplace import DataPart, Posterior, data_part, laplace, of_levels
from ..inference.unit import unit_of
from ..likelihoods.base import Likelihood
from ..sampling.draws import PosteriorDraws
from ..summary import component_names
from ..timeline.grid import Timeline
from .checks import Calibration


def feature_labels(names: Sequence[object] | None, n_features: int) -> Array:
    """Names of the features: those of the data, or x0, x1, …"""
    if names is None:
        names = [f"x{f}" for f in range(n_features)]
    return np.array([str(name) for name in names])


@dataclass(frozen=True, eq=False)
class State:
    """The result of a fit."""

    config: Config  # the parameters of the model as they are now
    factors: Factors
    timeline: Timeline
    observed: Array  # (N,)
    exposure: Array  # (N,)
    kept: Array  # the steps that took part in the fit
    series: Series | None  # the data of the fit, if they are in memory
    fingerprint: int  # of the data when they were fitted
    draws: PosteriorDraws | None
    calibration: Calibration | None = None
    names: Sequence[object] | None = None  # of the features
    posterior: Posterior | None = None  # Laplace's approximation, once it is computed
    keep: Callable[[Posterior], None] = lambda posterior: None  # called with it once
    days: bool = False  # whether the exposure is the days in each step

    @classmethod
    def of(cls, config: Config, fitted: Fitted, series: Series) -> State:
        """The state after a fit to data in memory."""
        assert series.timeline is not None
        return cls(
            config=config,
            factors=fitted.factors,
            timeline=series.timeline,
            observed=series.observed,
            exposure=series.exposure,
            days=series.days,
            kept=fitted.kept,
            series=series,
            fingerprint=series.fingerprint(),
            draws=fitted.draws,
        )

    def on(self, series: Series, H: Array) -> State:
        """The same model on another series, with the mode H (K, N) of its activations."""
        assert series.timeline is not None
        return State(
            config=self.config,
            factors=self.factors._replace(levels=np.ascontiguousarray(H.T)),
            timeline=series.timeline,
            observed=series.observed,
            exposure=series.exposure,
            days=series.days,
            kept=fitted_steps(series.observed, self.chain, self.config.point),
            series=series,
            fingerprint=series.fingerprint(),
            draws=None,
        )

    @property
    def modulation(self) -> Exposure:
        """The factors between activations and data."""
        return exposure_of(self.exposure, self.timeline, self.days)

    @property
    def components(self) -> Any:
        return self.factors.components

    @property
    def levels(self) -> Array:
        """(N, K); activations, if there are no effects."""
        return self.factors.levels

    @property
    def effects(self) -> Effects | None:
        return self.factors.effects

    def factors_of(self, design: Design | None) -> Array | None:
        """The factors (T, K) of effects at some steps; None without effects."""
        if self.effects is None or design is None:
            return None
        return self.effects.at(design).factors.T

    def factors_by_term(self, design: Design | None) -> dict[str, Array]:
        """The factors (T, K) of each effect at some steps, by its name."""
        if self.effects is None or design is None:
            return {}
        return {name: found.T for name, found in self.effects.at(design).by_term().items()}

    @property
    def chain(self) -> Chain:
        return self.factors.chain

    @property
    def likelihood(self) -> Likelihood:
        return self.factors.likelihood

    @property
    def has_law(self) -> bool:
        """Whether the activations have a posterior distribution."""
        return self.chain.has_law and self.likelihood.has_law

    @cached_property
    def feature_names(self) -> Array:
        """(F,); x0, x1, … if the data have no names."""
        return feature_labels(self.names, self.components.shape[1])

    @cached_property
    def component_names(self) -> Array:
        """(K,), after their most characteristic features."""
        return component_names(self.components, self.levels, self.feature_names)

    @property
    def n_steps(self) -> int:
        return len(self.levels)

    @property
    def since(self) -> int:
        """Steps after the last one that took part in the fit."""
        return self.n_steps - 1 - int(self.kept[-1])

    def data(self, what: str) -> Series:
        """The data of the fit; an error if they are not available or were changed."""
        series = self.series
        if series is not None and series.fingerprint() != self.fingerprint:
            problem = "X was changed after the fit, and the model refers to it."
            raise ValueError(f"{problem} Fit again, or fit a copy: model.fit(X.copy()).")
        if series is None:
            raise ValueError(
                f"{what} needs the data of the fit, but the file of this model was saved without "
                f"them (data=False), or they were never in memory (Dask, shards). Fit again, or "
                f"save with data=True."
            )
        return series

    def laplace(self, used: Series | None = None, H: Array | None = None) -> Posterior:
        """The posterior of the steps of a series around their mode H (K, N).

        By default that of the fitted steps, which is kept; not as a `cached_property`, which
        holds a lock while it computes before Python 3.12.
        """
        fitted = used is None
        if fitted and self.posterior is not None:
            return self.posterior
        if used is None or H is None:
            used, H = self.data("this").take(self.kept), self.levels.T[:, self.kept]
        if self.config.map_scale != "log":
            # Laplace's approximation expands around the mode of log h.
            H = infer_mode(replace(self.config, map_scale="log"), self.factors, used)
        unit = unit_of(float(H.max()), self.likelihood)
        part: DataPart = partial(data_part, used.in_unit(unit), self.components.T, self.likelihood)
        part = of_levels(part, effects_at(self.effects, used))
        found = laplace(part, H / unit, self.chain.in_unit(unit)).in_unit(unit)
        if fitted:
            object.__setattr__(self, "posterior", found)
            self.keep(found)
        return found
