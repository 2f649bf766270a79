"""What a report is about: a fitted model, its past with bands, and its forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Array
from ..summary import component_summary, step_errors
from ..timeline.grid import time_texts
from .texts import clean
from .units import unit_of

if TYPE_CHECKING:
    from ..estimator import TemporalNMF

COVERAGE = (0.5, 0.9)

# Simulated numbers of the past, 8 bytes and about a microsecond each.
_MOST_SIMULATED = 5_000_000
_WORST = 5


class Subject:
    """A fitted model with all that several parts of a report need of it.

    Attributes
    ----------
    past, ahead : Forecast
        Of the fitted steps, and of those after them; the latter may be None.
    texts, texts_ahead : list of str
        Their times.
    names : list of str
        Of the components.
    worst : list of int
        The steps with the largest errors, the largest first.
    unit : Unit
        What a step is called.
    """

    def __init__(
        self, model: TemporalNMF, steps: int | None, forecast: Any, n_features: int
    ) -> None:
        self.model = model
        self.n_steps, self.n_components = model.activations_.shape
        self.n_features = int(model.components_.shape[1])
        self.exposed = bool(np.any(np.asarray(model.exposure_) != 1.0))
        n_samples = int(np.clip(_MOST_SIMULATED // model.activations_.size, 100, 1000))
        self.past = model.smooth(coverage=COVERAGE, n_samples=n_samples)
        self.unit = unit_of(model.timeline_.every, model.times_)
        if forecast is None and steps != 0:
            steps = _default_steps(self.n_steps) if steps is None else steps
            forecast = model.forecast(steps, coverage=COVERAGE)
        self.ahead = forecast
        self.n_ahead = 0 if forecast is None else len(forecast.times)
        self.texts = [clean(text) for text in time_texts(model.times_)]
        self.texts_ahead = [clean(t) for t in time_texts(forecast.times)] if self.n_ahead else []
        self.summary = component_summary(model, n_features=n_features)
        self.names = [clean(one.name) for one in self.summary]
        self.errors = step_errors(model)
        self.worst = [] if self.errors is None else _largest(self.errors.error, _WORST)
        self.gaps = _runs(~np.asarray(model.observed_))

    @property
    def levels(self) -> list[float]:
        """Coverages of the bands, the widest first."""
        coverage = self.ahead.coverage if self.n_ahead else self.past.coverage
        return sorted(map(float, coverage), reverse=True)

    @property
    def checked(self) -> Array:
        """Whether intervals of each step ahead were checked on forecasts of the past, (steps,)."""
        return self.ahead.checked

    @property
    def window(self) -> int:
        """How many of the last steps stand before a forecast."""
        return min(self.n_steps, max(4 * self.n_ahead, 20))


def _default_steps(n_steps: int) -> int:
    """A twentieth of the series, at least three steps and at most twelve."""
    return min(max(n_steps // 20, 3), 12)


def _largest(values: Array, n: int) -> list[int]:
    """Where the n largest finite values are, the largest first."""
    order = np.argsort(np.where(np.isfinite(values), values, -np.inf), kind="stable")[::-1]
    return [int(i) for i in order[:n] if np.isfinite(values[i])]


def _runs(flags: Array) -> list[tuple[int, int]]:
    """Stretches of true values as (start, stop)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
