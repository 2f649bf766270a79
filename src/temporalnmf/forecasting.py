"""What the model says of steps it has not seen, or has not seen in full, and how sure it is.

A missing entry, a lost period and the future are one thing: activations with draws of what they
may be, from which draws of data follow by the likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .likelihoods.base import Array, Likelihood
from .timeline import time_texts
from .validation import check_choice

if TYPE_CHECKING:
    import pandas as pd

Of = Literal["features", "components", "totals"]
_OF = ("features", "components", "totals")

# Names of points that are the mean of the law.
MEANS = ("conditional mean", "posterior mean")
# Draws that are made at once; a step of many features is drawn alone.
_MOST = 2**28
# Draws of components that are copied at once.
_AT_ONCE = 64


class Note(str):
    """A remark on a forecast, in the words of the library.

    Attributes
    ----------
    plain : str
        For somebody who reads a report and did not make it.
    command : str
        For somebody at the command line.
    """

    plain: str
    command: str

    def __new__(cls, text: str, *, plain: str | None = None, command: str | None = None) -> Note:
        note = super().__new__(cls, text)
        note.plain, note.command = plain or text, command or text
        return note


@dataclass(frozen=True)
class Noise:
    """What data do beyond the model, as `TemporalNMF.calibrate` found it.

    Attributes
    ----------
    level : array, (steps,)
        Variance of a factor with mean one that all features of an unseen step share, by steps
        ahead; the last value goes on.
    dispersion, clumping : float
        An entry with mean μ has dispersion·μ + clumping·μ² more variance than the likelihood says.
        The total of a step has not: what entries add to it is part of `level`.
    """

    level: Array
    dispersion: float
    clumping: float

    def widen(
        self, rates: Array, ahead: int, rng: np.random.Generator, *, entries: bool = True
    ) -> Array:
        """Rates (S, F) times noise with mean one; `ahead` is 0 for a step that was observed."""
        variance = float(self.level[min(ahead, len(self.level)) - 1]) if ahead else 0.0
        if variance > 0.0:
            factor = rng.standard_gamma(1.0 / variance, size=(len(rates), 1)) * variance
            rates = rates * factor
        if entries and self.dispersion + self.clumping > 0.0:
            # A Poisson with a Gamma rate of mean μ and variance v has the variance μ + v.
            scale = self.dispersion + self.clumping * rates
            rates = rng.standard_gamma(rates / scale) * scale
        return rates


@dataclass(frozen=True, eq=False)
class DrawnComponents:
    """Components that are known by draws, each with activations of its own.

    Attributes
    ----------
    components : array, (M, K, F)
    which : array of int, (S,)
        The components that go with each draw of the activations.
    numbers : array of int, (M′,)
        Those that `expected` goes with.
    expected : array, (M′, steps, K)
        Expected activations.
    """

    components: Array
    which: Array
    numbers: Array
    expected: Array

    def values(self) -> Array:
        """Expected rates (steps, F)."""
        total = np.zeros((self.expected.shape[1], self.components.shape[2]))
        for at in range(0, len(self.numbers), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            W = self.components[self.numbers[part]]
            H = np.moveaxis(self.expected[part], 1, 0)  # (steps, draws, K)
            total += H.reshape(len(H), -1) @ W.reshape(-1, W.shape[2])
        return total / len(self.numbers)

    def rates(self, activations: Array) -> Array:
        """Rates (S, F) of draws of the activations (S, K)."""
        found = np.empty((len(activations), self.components.shape[2]))
        for at in range(0, len(activations), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            W = self.components[self.which[part]]
            np.einsum("sk,skf->sf", activations[part], W, out=found[part])
        return found

    def at(self, steps: Array) -> DrawnComponents:
        """Some of the steps only."""
        return replace(self, expected=self.expected[:, steps])


@dataclass(frozen=True, repr=False, eq=False)
class Forecast:
    """Predicted steps, with intervals.

    Point predictions are in `values` and `activations`; `interval`, `quantile`, `median` and
    `samples` say how far the truth may be from them, for each feature, each component, or the
    totals of the steps. Counts are simulated, so their intervals are whole numbers and never
    negative. `numpy.asarray(forecast)` gives `values`.

    Attributes
    ----------
    times : array, (steps,)
    activations : array, (steps, n_components)
    components : array, (n_components, n_features)
        Their mean, if `drawn` has draws of them.
    exposure : array, (steps,)
    observed : array of bool, (steps,)
        Whether anything of the step was observed; false in the future.
    point : str
        What the activations are, in words: conditional mean, conditional mode, last value …
    feature_names, component_names : array of str
        A component is named after its most characteristic features.
    coverage : tuple of float
        Of the intervals in `to_frame`.
    notes : tuple of Note
        What one should know before using the numbers, as text.
    draws : array, (n_samples, steps, n_components), or None
        Simulated activations; None where the model has no law for them.
    ahead : array of int, (steps,)
        Steps since the last observed one; 0 for steps that were observed.
    streams : array of int, (steps, 2)
        Seed of each step's random numbers: a step alone is what it was in company.
    noise : Noise or None
        What was found by `TemporalNMF.calibrate`.
    drawn : DrawnComponents or None
        Draws of the components, of a model that was fitted by draws.
    """

    times: Array
    activations: Array
    components: Array
    exposure: Array
    observed: Array
    point: str
    likelihood: Likelihood
    feature_names: Array
    component_names: Array
    ahead: Array
    streams: Array
    coverage: tuple[float, ...] = (0.5, 0.9)
    notes: tuple[Note, ...] = ()
    draws: Array | None = None
    noise: Noise | None = None
    drawn: DrawnComponents | None = None

    def __repr__(self) -> str:
        T, F = len(self.times), self.components.shape[1]
        texts = time_texts(self.times)
        span = f" from {texts[0]} to {texts[-1]}" if T else ""
        bands = f"{len(self.draws)} draws" if self.draws is not None else "no intervals"
        return f"Forecast({T} steps{span}, {F} features, {self.point}, {bands})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    @property
    def values(self) -> Array:
        """Expected data (steps, n_features), the exposure counted in."""
        if self.drawn is not None:
            return self.exposure[:, None] * self.drawn.values()
        return self.exposure[:, None] * (self.activations @ self.components)

    def rates(self, step: int) -> Array:
        """Simulated rates (n_samples, n_features) of a step, without the noise of data."""
        draws = self._known_draws("features")[:, step]
        rates = draws @ self.components if self.drawn is None else self.drawn.rates(draws)
        return self.exposure[step] * rates

    @property
    def has_bands(self) -> bool:
        """Whether there are intervals."""
        return self.draws is not None

    def point_of(self, of: Of = "features") -> Array:
        """The point prediction of features, components or totals."""
        check_choice("of", of, _OF)
        if of == "components":
            return self.activations
        return self.values if of == "features" else self.values.sum(axis=1)

    def mean(self, of: Of = "features") -> Array:
        """The mean of the simulated law; the point prediction, unless the user chose another."""
        if self.point in MEANS or self.draws is None:
            return self.point_of(of)
        drawn = self.drawn
        if drawn is not None:
            drawn = replace(drawn, numbers=drawn.which, expected=self.draws)
        return replace(self, activations=self.draws.mean(axis=0), drawn=drawn).point_of(of)

    def at(self, steps: Any) -> Forecast:
        """Some of the steps only: indices or a mask."""
        chosen = np.arange(len(self.times))[
            steps if isinstance(steps, slice) else np.asarray(steps)
        ]
        chosen = np.atleast_1d(chosen)
        return replace(
            self,
            times=self.times[chosen],
            activations=self.activations[chosen],
            exposure=self.exposure[chosen],
            observed=self.observed[chosen],
            draws=None if self.draws is None else self.draws[:, chosen],
            ahead=self.ahead[chosen],
            streams=self.streams[chosen],
            drawn=None if self.drawn is None else self.drawn.at(chosen),
        )

    def samples(self, of: Of = "features") -> Array:
        """Simulated values, (n_samples, steps, n_features or n_components), or without the last
        axis for totals.
        """
        draws = self._known_draws(of)
        if of == "components":
            return draws.copy()
        size = (
            draws.shape[0] * len(self.times) * (len(self.feature_names) if of == "features" else 1)
        )
        if size > _MOST:
            raise ValueError(
                f"samples of {len(self.times)} steps and {len(self.feature_names)} features are "
                f"{size:,} numbers. Ask for some steps, forecast.at([0, 1]).samples(), or for "
                f"of='totals'."
            )
        return np.stack([self._draw(t, of) for t in range(len(self.times))], axis=1)

    def quantile(self, levels: Any, of: Of = "features") -> Array:
        """Quantiles (levels, steps, …); the first axis is left out for a single level.

        The smallest value that is not exceeded with the given probability: a whole number where
        data are counts.
        """
        draws = self._known_draws(of)
        wanted = _probabilities("levels", levels)
        ranks = np.ceil(np.ravel(wanted) * len(draws) - 1e-9).astype(int) - 1
        found = [np.sort(self._draw(t, of), axis=0)[ranks] for t in range(len(self.times))]
        stacked = np.stack(found, axis=1)
        return stacked.reshape(wanted.shape + stacked.shape[1:])

    def median(self, of: Of = "features") -> Array:
        """The value that is exceeded half of the time."""
        return self.quantile(0.5, of)

    def interval(self, coverage: float = 0.9, of: Of = "features") -> tuple[Array, Array]:
        """Ends (lower, upper) of the central interval that holds the truth with this probability.

        Between whole numbers there is nothing, so an interval of counts holds it at least so often.
        """
        _probabilities("coverage", coverage)
        lower, upper = self.quantile([0.5 - coverage / 2.0, 0.5 + coverage / 2.0], of)
        return lower, upper

    def to_frame(self, of: Of = "features", *, wide: bool = False) -> pd.DataFrame:
        """A pandas frame in the user's times and names.

        Parameters
        ----------
        of : {"features", "components", "totals"}, default="features"
        wide : bool, default=False
            False: a row per time and feature, with mean, median and the ends of the intervals.
            True: a row per time, a column per feature, point predictions only.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                'Forecast.to_frame needs pandas: pip install "temporalnmf[io]".'
            ) from error
        point, names = self.point_of(of), self._names(of)
        index = pd.Index(self.times, name="time")
        if wide:
            return pd.DataFrame(point, index=index, columns=names if of != "totals" else ["total"])
        T, width = len(self.times), max(len(names), 1)
        columns: dict[str, Any] = {"time": np.repeat(index.to_numpy(), width)}
        if of != "totals":
            columns[of.removesuffix("s")] = np.tile(names, T)
        if of == "components":
            columns["name"] = np.tile(self.component_names, T)
        columns["mean" if self.point in MEANS else "point"] = point.ravel()
        if self.has_bands:
            levels = [0.5, *(0.5 + s * c / 2 for c in self.coverage for s in (-1, 1))]
            labels = [f"{end}_{100 * c:g}" for c in self.coverage for end in ("lower", "upper")]
            found = self.quantile(levels, of)
            for label, values in zip(["median", *labels], found, strict=True):
                columns[label] = values.ravel()
        return pd.DataFrame(columns)

    def _names(self, of: Of) -> Array:
        if of == "features":
            return self.feature_names
        if of == "components":
            return np.arange(1, self.activations.shape[1] + 1)
        return np.empty(0, dtype=str)

    def _known_draws(self, of: Of) -> Array:
        check_choice("of", of, _OF)
        if self.draws is None:
            why = " ".join(self.notes) or "The model has no law for them."
            raise ValueError(f"This forecast has no intervals. {why}")
        return self.draws

    def _draw(self, t: int, of: Of) -> Array:
        """Draws (S, …) of one step, the same whoever asks."""
        assert self.draws is not None
        if of == "components":
            return self.draws[:, t]
        rng = np.random.default_rng([*self.streams[t], _OF.index(of)])
        rates = self.rates(t)
        if of == "totals" and self.likelihood.additive:
            rates = rates.sum(axis=1, keepdims=True)
        if self.noise is not None:
            ahead, entries = int(self.ahead[t]), of == "features"
            rates = self.noise.widen(rates, ahead, rng, entries=entries)
        values = self.likelihood.sample(rates, rng)
        return values.sum(axis=1) if of == "totals" else values


def check_coverage(coverage: Any) -> tuple[float, ...]:
    """Probabilities of intervals, as a tuple."""
    return tuple(np.ravel(_probabilities("coverage", coverage)).tolist())


def _probabilities(name: str, value: Any) -> Array:
    try:
        found = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if not (found.size and np.all((found > 0.0) & (found < 1.0))):
        raise ValueError(
            f"{name}={value!r}: expected probabilities strictly between 0 and 1, such as 0.9."
        )
    return found
