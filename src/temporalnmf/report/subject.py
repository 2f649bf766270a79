"""The results of a fitted model that several parts of a report share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array
from ..estimator import TemporalNMF
from ..forecasting.forecast import Forecast
from ..sampling.draws import PosteriorDraws
from ..summary import component_summary, step_errors
from ..timeline.grid import time_texts
from .texts import clean, unit_of

COVERAGE = (0.5, 0.9)

# Numbers to simulate for the past steps; each takes 8 bytes and about a microsecond.
_MOST_SIMULATED = 5_000_000
_WORST = 5

# Forecast of the totals: points (steps,), and (level, low, high) of each band.
Totals = tuple[Array, list[tuple[float, Array, Array]]]


class Subject:
    """A fitted model, its past with bands, and its forecast of `n_ahead` steps, if any."""

    def __init__(
        self,
        model: TemporalNMF,
        steps: int | None,
        forecast: Forecast | None,
        n_features: int,
        covariates: ArrayLike | None = None,
    ) -> None:
        self.model = model
        self.n_steps, self.n_components = model.activations_.shape
        self.n_features = int(model.components_.shape[1])
        self.exposed = bool(np.any(model.exposure_ != 1.0))
        n_samples = int(np.clip(_MOST_SIMULATED // model.activations_.size, 100, 1000))
        self.past = model.smooth(coverage=COVERAGE, n_samples=n_samples)
        self.unit = unit_of(model.timeline_.every, model.times_)
        if forecast is None and steps != 0:
            steps = min(max(self.n_steps // 20, 3), 12) if steps is None else steps
            forecast = model.forecast(steps, coverage=COVERAGE, covariates=covariates)
        self._forecast = forecast
        times = [] if forecast is None else time_texts(forecast.times)
        self.n_ahead = len(times)
        # Times of the steps, names of the components, steps with the largest errors, and (first
        # missing step, step after the last) of each gap.
        self.texts = [clean(text) for text in time_texts(model.times_)]
        self.texts_ahead = [clean(text) for text in times]
        self.summary = component_summary(model, n_features=n_features)
        self.names = [clean(one.name) for one in self.summary]
        self.errors = step_errors(model)
        self.worst = [] if self.errors is None else _largest(self.errors.error, _WORST)
        missing = np.concatenate([[False], ~model.observed_, [False]]).astype(int)
        self.gaps = np.flatnonzero(np.diff(missing)).reshape(-1, 2).tolist()

    @property
    def ahead(self) -> Forecast:
        """The forecast; there is one if `n_ahead` is not 0."""
        assert self._forecast is not None
        return self._forecast

    def adjusted(self, activations: Array, of: Forecast) -> Array:
        """Activations (steps, K) of all steps of a forecast, seasonally adjusted."""
        for name in self.model.season_:
            activations = activations / of.factors.get(name, 1.0)
        return activations

    @property
    def draws(self) -> PosteriorDraws:
        """The posterior draws, of a model fitted by draws."""
        assert self.model.posterior_ is not None
        return self.model.posterior_

    @property
    def start(self) -> str:
        """What stability is measured between: starts of a fit, or runs of draws."""
        return "start" if self.model.posterior_ is None else "run"

    @property
    def levels(self) -> list[float]:
        """Coverages of the bands, the widest first."""
        coverage = self.ahead.coverage if self.n_ahead else self.past.coverage
        return sorted(map(float, coverage), reverse=True)

    def totals_ahead(self) -> Totals:
        """The forecast of the totals, widest band first."""
        levels = self.levels if self.ahead.has_bands else []
        bands = [(level, *self.ahead.interval(level, of="totals")) for level in levels]
        return self.ahead.point_of("totals"), bands

    @property
    def window(self) -> int:
        """Number of past steps to show before a forecast."""
        return min(self.n_steps, max(4 * self.n_ahead, 20))


def _largest(values: Array, n: int) -> list[int]:
    """Indices of the n largest finite values, the largest first."""
    order = np.argsort(np.where(np.isfinite(values), values, -np.inf), kind="stable")[::-1]
    return [int(i) for i in order[:n] if np.isfinite(values[i])]
