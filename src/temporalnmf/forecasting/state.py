"""A fitted model, as forecasts see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import Array
from ..chains.base import Chain
from ..data.series import Series
from ..inference.config import Config, Factors
from ..inference.fitting import Fitted, infer_mode
from ..inference.laplace import Posterior, laplace
from ..likelihoods.base import Likelihood
from ..sampling.draws import PosteriorDraws
from ..summary import component_names
from ..timeline.grid import Timeline
from .checks import Calibration


def feature_labels(names: Sequence[Any] | None, n_features: int) -> Array:
    """Names of the features: those of the data, or x0, x1, …"""
    if names is None:
        names = [f"x{f}" for f in range(n_features)]
    return np.array([str(name) for name in names])


@dataclass(frozen=True, eq=False)
class State:
    """What a fit leaves behind.

    Attributes
    ----------
    config : Config
        Parameters of the model, as they are now.
    factors : Factors
        Components (K, F), activations (N, K) and the chain.
    timeline : Timeline
    observed, exposure : array, (N,)
    kept : array of int
        The steps that took part in the fit.
    series : Series or None
        The data of the fit, where they are at hand.
    fingerprint : int
        Of these, when they were fitted.
    draws : PosteriorDraws or None
        Of a fit by draws.
    calibration : Calibration or None
    names : sequence or None
        Of the features, where the data have some.
    posterior : Posterior or None
        Laplace's approximation at the fitted steps, if it was made before.
    keep : callable
        Called with it once it is made.
    """

    config: Config
    factors: Factors
    timeline: Timeline
    observed: Array
    exposure: Array
    kept: Array
    series: Series | None
    fingerprint: int
    draws: PosteriorDraws | None
    calibration: Calibration | None
    names: Sequence[Any] | None
    posterior: Posterior | None = None
    keep: Callable[[Posterior], None] = lambda posterior: None

    @classmethod
    def of(
        cls, config: Config, fitted: Fitted, series: Series, names: Sequence[Any] | None = None
    ) -> State:
        """The state that a fit to data in memory ends in."""
        assert series.timeline is not None
        return cls(
            config=config,
            factors=fitted.factors,
            timeline=series.timeline,
            observed=series.observed,
            exposure=series.exposure,
            kept=fitted.kept,
            series=series,
            fingerprint=series.fingerprint(),
            draws=fitted.draws,
            calibration=None,
            names=names,
        )

    @property
    def components(self) -> Any:
        return self.factors.components

    @property
    def activations(self) -> Array:
        return self.factors.activations

    @property
    def chain(self) -> Chain:
        return self.factors.chain

    @property
    def likelihood(self) -> Likelihood:
        return self.factors.likelihood

    @cached_property
    def feature_names(self) -> Array:
        """(F,), x0, x1, … where the data have none."""
        return feature_labels(self.names, self.components.shape[1])

    @cached_property
    def component_names(self) -> Array:
        """(K,), after their most characteristic features."""
        return component_names(self.components, self.activations, self.feature_names)

    @property
    def n_steps(self) -> int:
        return len(self.activations)

    @property
    def since(self) -> int:
        """Steps after the last one that took part in the fit."""
        return self.n_steps - 1 - int(self.kept[-1])

    def data(self, what: str) -> Series:
        """The data of the fit; refused where they are not at hand, or were changed."""
        series = self.series
        if series is not None and series.fingerprint() != self.fingerprint:
            raise ValueError(
                "X was changed after the fit, and the model refers to it. Fit again, or fit a "
                "copy: model.fit(X.copy())."
            )
        if series is None:
            raise ValueError(
                f"{what} needs the data of the fit, and these are not at hand: the file of this "
                f"model was saved without them (data=False), or they were never in memory (Dask, "
                f"shards). Fit again, or save with data=True."
            )
        return series

    @property
    def laplace(self) -> Posterior:
        """The posterior of the fitted steps, made when it is first wanted.

        Not a `cached_property`: before Python 3.12 these hold a lock while they compute.
        """
        if self.posterior is None:
            used = self.data("this").take(self.kept)
            found = self.laplace_of(used, self.activations.T[:, self.kept])
            object.__setattr__(self, "posterior", found)
            self.keep(found)
            return found
        return self.posterior

    def laplace_of(self, used: Series, H: Array) -> Posterior:
        """The posterior of the steps of a series around their mode H (K, N)."""
        if self.config.map_scale != "log":
            # The quadratic stands at the mode of log h.
            H = infer_mode(replace(self.config, map_scale="log"), self.factors, used)
        return laplace(used, self.components.T, H, self.chain, self.likelihood)
