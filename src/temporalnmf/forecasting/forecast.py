"""Forecasts, with intervals, of steps that were not or only partly observed.

Missing entries, missing steps and the future are treated alike: the posterior gives draws of the
activations, and the likelihood gives draws of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
from scipy import sparse

from .._typing import Array
from ..messages.arguments import check_choice
from ..messages.errors import ArgumentError
from ..messages.formatting import counted, level_text
from ..messages.warning import warn
from ..reading.libraries import pd
from ..timeline.grid import time_texts
from .checks import Calibration, Check, Checked
from .futures import Futures
from .notes import Note

Of = Literal["features", "components", "totals"]
_OF = ("features", "components", "totals")

# Columns of `Forecast.explain` other than factors.
_EXPLAINED = ("time", "component", "name", "level", "exposure", "expected")

# Names of point predictions that are means.
MEANS = ("conditional mean", "posterior mean")
# Maximum size of an array of samples.
_MOST = 2**28
# Draws of components per copy.
_AT_ONCE = 64
# Samples needed beyond the end of an interval to estimate it.
_FEWEST_BEYOND = 5


@dataclass(frozen=True, eq=False)
class DrawnComponents:
    """Draws of components, some of them with expected activations."""

    components: Array  # (M, K, F)
    numbers: Array  # (M′,), the draws that `expected` belongs to
    expected: Array  # (M′, steps, K), expected activations

    def values(self) -> Array:
        """Expected rates (steps, F)."""
        total = np.zeros((self.expected.shape[1], self.components.shape[2]))
        for at in range(0, len(self.numbers), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            W = self.components[self.numbers[part]]
            H = np.moveaxis(self.expected[part], 1, 0)  # (steps, draws, K)
            total += H.reshape(len(H), -1) @ W.reshape(-1, W.shape[2])
        return total / len(self.numbers)

    def totals(self) -> Array:
        """Expected rates of the totals (steps,)."""
        mass = self.components.sum(axis=2, dtype=float)[self.numbers]
        return np.einsum("mtk,mk->t", self.expected, mass) / len(self.numbers)

    def by_component(self) -> Array:
        """Expected rates of the totals, by component, (steps, K)."""
        mass = self.components.sum(axis=2, dtype=float)[self.numbers]
        return np.einsum("mtk,mk->tk", self.expected, mass) / len(self.numbers)

    def at(self, steps: Array) -> DrawnComponents:
        """Some of the steps only."""
        return replace(self, expected=self.expected[:, steps])


# A step, columns and their samples (S, columns); totals have one column.
_Piece = tuple[int, slice, Array]


@dataclass(frozen=True, eq=False)
class _Sum:
    """The terms of a summed forecast."""

    whole: Forecast
    over_steps: bool
    groups: dict[str, Array] | None  # the features of each group

    def of(self, values: Array, of: Of) -> Array:
        """Values (steps, features) or (steps,) added up."""
        if of == "features" and self.groups is not None:
            values = np.stack([values[:, group].sum(axis=1) for group in self.groups.values()], 1)
        return values.sum(axis=0, keepdims=True) if self.over_steps else values

    def pieces(self, of: Of) -> Iterator[_Piece]:
        if of == "features" and self.groups is not None:
            return self._by_group(list(self.groups.values()))
        return self._over_steps(of) if self.over_steps else self.whole._pieces(of)

    def _by_group(self, groups: list[Array]) -> Iterator[_Piece]:
        whole, T = self.whole, len(self.whole.times)
        found = np.zeros((1 if self.over_steps else T, whole.n_samples, len(groups)))
        for t, columns, draws in whole._pieces("features", np.unique(np.concatenate(groups))):
            for g, group in enumerate(groups):
                here = group[(group >= columns.start) & (group < columns.stop)]
                found[0 if self.over_steps else t, :, g] += draws[:, here - columns.start].sum(1)
        yield from ((t, slice(0, len(groups)), draws) for t, draws in enumerate(found))

    def _over_steps(self, of: Of) -> Iterator[_Piece]:
        """One block of features at a time: the samples of all steps may not fit into memory."""
        whole = self.whole
        weights = whole.exposure if of == "components" else np.ones(len(whole.times))
        steps = [whole.at([t])._pieces(of) for t in range(len(whole.times))]
        while True:
            total = np.zeros(0)
            for n, (weight, pieces) in enumerate(zip(weights, steps, strict=True)):
                piece = next(pieces, None)
                if piece is None:
                    return
                _, columns, draws = piece
                total = weight * draws if n == 0 else total + weight * draws
            yield 0, columns, total


@dataclass(frozen=True, repr=False, eq=False)
class Forecast:
    """Predicted steps, with intervals.

    Point predictions are in `values` and `activations`; `interval`, `quantile`, `median` and
    `samples` say how far the truth may be from them, for each feature, each component, or the
    totals of the steps. Counts are simulated, so their intervals are whole numbers and never
    negative. `numpy.asarray(forecast)` gives `values`.

    One sample is one future: its entries add up to its totals. Sums of samples over steps,
    features or groups therefore are samples of these sums; `sum` makes forecasts of them.

    Attributes
    ----------
    times : array, (steps,)
    activations : array, (steps, n_components)
    components : array, (n_components, n_features)
        Their mean, if `drawn` has draws of them.
    exposure : array, (steps,)
        1 if steps were added up: sums include it.
    observed : array of bool, (steps,)
        Whether anything of the step was observed; false in the future.
    point : str
        Name of the point prediction: conditional mean, conditional mode, last value …
    feature_names, component_names : array of str
        A component is named after its most characteristic features.
    ahead : array of int, (steps,)
        Steps since the last observed one; 0 for steps that were observed.
    coverage : tuple of float
        Coverage of the intervals in `to_frame`.
    notes : tuple of Note
        Remarks to read before using the numbers.
    futures : Futures or None
        Simulated futures; None if the model does not define any.
    calibration : Calibration or None
        Result of `TemporalNMF.calibrate`; its noise is part of `futures`.
    drawn : DrawnComponents or None
        Draws of the components, if the model was fitted by draws.
    factors : dict of arrays, (steps, n_components)
        The factors of each season and of other effects, by name; empty without any, and for sums
        over steps.
    """

    times: Array
    activations: Array
    components: Any
    exposure: Array
    observed: Array
    point: str
    feature_names: Array
    component_names: Array
    ahead: Array
    coverage: tuple[float, ...] = (0.5, 0.9)
    notes: tuple[Note, ...] = ()
    futures: Futures | None = None
    calibration: Calibration | None = None
    drawn: DrawnComponents | None = None
    factors: Mapping[str, Array] = field(default_factory=dict)
    _sum: _Sum | None = None

    def __repr__(self) -> str:
        T, F = len(self.times), len(self.feature_names)
        texts = time_texts(self.times)
        span = f" from {texts[0]} to {texts[-1]}" if T > 1 else f" {texts[0]}" if T else ""
        steps, features = counted(T, "step"), counted(F, self.noun)
        if self._sum is not None and self._sum.over_steps:
            steps, span = "sum of steps", f" {texts[0]}"
        bands = f"{self.n_samples} draws" if self.futures is not None else "no intervals"
        return f"Forecast({steps}{span}, {features}, {self.point}, {bands})\n{self._check_words()}"

    def _check_words(self) -> str:
        """One line on whether intervals were compared with past forecasts."""
        if self.futures is None:
            return "no intervals: the model does not define any"
        if self.calibration is None:
            unchecked = f"{level_text(max(self.coverage))} intervals not checked"
            remedy = "; model.calibrate() checks them" if self.futures.likelihood.counts else ""
            return f"{unchecked} against past forecasts{remedy}"
        promise = f"{level_text(self.calibration.coverage)} intervals"
        held = [f"{one.name} {one.share(one.after)}" for one in self._checks("totals")]
        if not held:
            return f"{promise} not checked so far ahead; model.calibrate(steps=…) checks them"
        beyond = "" if self.checked.all() else "; other steps were not checked"
        return f"{promise} checked against past forecasts, inside: {', '.join(held)}{beyond}"

    @property
    def checked(self) -> Array:
        """Whether `calibrate` checked intervals so many steps ahead, (steps,).

        False for observed steps: only forecasts are compared. Sums over steps are checked if all
        of their steps are, and if sums over so many steps were compared.
        """
        if self._sum is not None and self._sum.over_steps:
            return np.array([self._sum.whole.checked.all() and bool(self._checks("totals"))])
        horizons = [] if self.calibration is None else self.calibration.horizons
        return np.isin(self.ahead, horizons)

    def _checks(self, of: Of) -> list[Check]:
        """The checks of one kind of intervals at the horizons of this forecast."""
        if self.calibration is None:
            return []
        kind: Checked = "entries" if of == "features" else of
        if self._sum is not None and self._sum.over_steps:
            steps = len(self._sum.whole.times)
            return [one for one in self.calibration.of("sums") if one.ahead == steps]
        return [one for one in self.calibration.of(kind) if one.ahead in self.ahead]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    @property
    def values(self) -> Array:
        """Expected data (steps, n_features), exposure included."""
        if self._sum is not None:
            return self._sum.of(self._sum.whole.values, "features")
        if self.drawn is not None:
            return self.exposure[:, None] * self.drawn.values()
        return self.exposure[:, None] * (self.activations @ self.components)

    @property
    def factor(self) -> Array:
        """The product of all `factors`, (steps, n_components)."""
        found = np.ones_like(self.activations)
        for factors in self.factors.values():
            found = found * factors
        return found

    @property
    def levels(self) -> Array:
        """The activations without `factors`, (steps, n_components)."""
        return self.activations / self.factor

    @property
    def draws(self) -> Array | None:
        """Simulated activations (n_samples, steps, n_components), or None."""
        if self.futures is None:
            return None
        return self.futures.activations if self._sum is None else self.samples("components")

    @property
    def n_samples(self) -> int:
        """Number of simulated futures."""
        return 0 if self.futures is None else len(self.futures)

    @property
    def has_bands(self) -> bool:
        """Whether there are intervals."""
        return self.futures is not None

    def point_of(self, of: Of = "features") -> Array:
        """The point prediction of features, components or totals."""
        check_choice("of", of, _OF)
        if of == "components":
            return self.activations
        if of == "features":
            return self.values
        if self._sum is not None:
            return self._sum.of(self._sum.whole.point_of("totals"), "totals")
        if self.drawn is not None:
            return self.exposure * self.drawn.totals()
        mass = self.components @ np.ones(self.components.shape[1])
        return self.exposure * (self.activations @ mass)

    def mean(self, of: Of = "features") -> Array:
        """The mean of the forecast; also the point prediction, unless the user chose another."""
        if self.point in MEANS or self.futures is None:
            return self.point_of(of)
        return self._at_its_mean().point_of(of)

    def _at_its_mean(self) -> Forecast:
        if self._sum is not None:
            return _summed(self._sum.whole._at_its_mean(), self._sum.over_steps, self._sum.groups)
        futures, drawn = self.futures, self.drawn
        assert futures is not None
        if drawn is not None:
            assert futures.mixture.which is not None
            drawn = replace(drawn, numbers=futures.mixture.which, expected=futures.activations)
        return replace(self, activations=futures.activations.mean(axis=0), drawn=drawn)

    def at(self, steps: Any) -> Forecast:
        """Some of the steps only: indices or a mask."""
        index = steps if isinstance(steps, slice) else np.asarray(steps)
        chosen = np.atleast_1d(np.arange(len(self.times))[index])
        if self._sum is not None:
            if self._sum.over_steps:
                return self
            return _summed(self._sum.whole.at(chosen), False, self._sum.groups)
        return replace(
            self,
            times=self.times[chosen],
            activations=self.activations[chosen],
            exposure=self.exposure[chosen],
            observed=self.observed[chosen],
            futures=None if self.futures is None else self.futures.at(chosen),
            ahead=self.ahead[chosen],
            drawn=None if self.drawn is None else self.drawn.at(chosen),
            factors={name: factors[chosen] for name, factors in self.factors.items()},
        )

    def sum(
        self,
        over: Literal["steps"] | None = None,
        *,
        groups: Mapping[str, Iterable[str]] | None = None,
    ) -> Forecast:
        """The forecast of sums: over the steps, over groups of features, or both.

        Each future is added up, so intervals account for dependence between steps and features.

        Parameters
        ----------
        over : {"steps"}, default=None
            Add up all steps. Components then are amounts: activations times exposures.
        groups : dict, default=None
            Names of groups, each with the names of its features. They take the place of the
            features; features in no group are left out, and one in several groups counts in each
            of them, so that groups may overlap. Totals and components stay those of all features.

        Returns
        -------
        Forecast
            With a single step, named "first to last", if steps were added up.

        Examples
        --------
        >>> import numpy as np
        >>> from temporalnmf import TemporalNMF
        >>> counts = np.random.default_rng(0).poisson(9.0, size=(30, 4))
        >>> ahead = TemporalNMF(1, random_state=0).fit(counts).forecast(6)
        >>> both = ahead.sum(over="steps", groups={"even": ["x0", "x2"], "odd": ["x1", "x3"]})
        >>> both.times.tolist(), both.feature_names.tolist(), both.interval(0.9)[0].shape
        (['30 to 35'], ['even', 'odd'], (1, 2))
        """
        if over is None and groups is None:
            remedy = "Give over='steps', or groups={'name': [features]}."
            raise ValueError(f"sum() has nothing to add up. {remedy}")
        if over is not None:
            check_choice("over", over, ("steps",))
        members = None if groups is None else _members(groups, self.feature_names)
        return _summed(self, over is not None, members)

    def samples(self, of: Of = "features") -> Array:
        """Simulated values, (n_samples, steps, n_features or n_components), or without the last
        axis for totals.

        Sample s of features, totals and components belongs to one future.
        """
        S, T, width = self._known_size(of)
        if S * T * width > _MOST:
            raise ValueError(
                f"samples of {T} steps and {width} {of} are {S * T * width:,} numbers. Ask for "
                f"steps, forecast.at([0, 1]), for groups, forecast.sum(groups=…), or of='totals'."
            )
        found = np.empty((S, T, width))
        for t, columns, draws in self._pieces(of):
            found[:, t, columns] = draws
        return found[:, :, 0] if of == "totals" else found

    def quantile(self, levels: Any, of: Of = "features") -> Array:
        """Quantiles (levels, steps, …); the first axis is left out for a single level.

        The smallest value that is not exceeded with the given probability: a whole number where
        data are counts.
        """
        S, T, width = self._known_size(of)
        wanted = _probabilities("levels", levels)
        self._warn_of_few(wanted)
        ranks = np.ceil(np.ravel(wanted) * S - 1e-9).astype(int) - 1
        found = np.empty((len(ranks), T, width))
        for t, columns, draws in self._pieces(of):
            found[:, t, columns] = np.partition(draws, np.unique(ranks), axis=0)[ranks]
        if of == "totals":
            found = found[:, :, 0]
        return found.reshape(wanted.shape + found.shape[1:])

    def median(self, of: Of = "features") -> Array:
        """The value that is exceeded half of the time."""
        return self.quantile(0.5, of)

    def interval(self, coverage: float = 0.9, of: Of = "features") -> tuple[Array, Array]:
        """Ends (lower, upper) of the central interval of the simulated futures.

        It contains this share of the futures, at least this share for counts. If the model is
        correct, it contains the true value with this probability; `checked` says whether that was
        compared with past forecasts.
        """
        _probabilities("coverage", coverage)
        lower, upper = self.quantile([0.5 - coverage / 2.0, 0.5 + coverage / 2.0], of)
        return lower, upper

    def log_density(self, X: Any) -> Array:
        """Log predictive density (steps, n_features) of observed values.

        The logarithm of the mean over the simulated futures of p(v | future): the log score, which
        punishes intervals that are too narrow as well as those that are too wide. Forecasts of the
        same data can be compared by its sum. −inf for counts that no future has: those of series
        that vary less than Poisson counts have a largest value.

        Parameters
        ----------
        X : array, frame or sparse matrix, (steps, n_features)
            NaN is missing, and so is its density. The columns of a frame are the features, in the
            same order.

        Examples
        --------
        >>> import numpy as np
        >>> from temporalnmf import TemporalNMF
        >>> counts = np.random.default_rng(0).poisson(9.0, size=(33, 4))
        >>> ahead = TemporalNMF(1, random_state=0).fit(counts[:30]).forecast(3)
        >>> bool(-3.5 < ahead.log_density(counts[30:]).mean() < -2.0)
        True
        """
        _, T, width = self._known_size("features")
        if self._sum is not None:
            raise ValueError("log_density is for features of single steps, not for sums().")
        if hasattr(X, "columns") and list(map(str, X.columns)) != self.feature_names.tolist():
            problem = "has other columns than the forecast, or in another order."
            raise ValueError(f"X {problem} Give X[list(forecast.feature_names)].")
        values = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        if values.shape != (T, width):
            problem = f"X has shape {values.shape}, and this forecast {(T, width)}."
            raise ValueError(f"{problem} Give a row per step, a column per feature.")
        assert self.futures is not None
        found = np.full(values.shape, np.nan)
        for t, row in enumerate(values):
            seen = ~np.isnan(row)
            if seen.any():
                found[t, seen] = self.futures.log_density(t, np.where(seen, row, 1.0))[seen]
        return found

    def to_frame(self, of: Of = "features", *, wide: bool = False) -> pd.DataFrame:
        """A pandas frame in the user's times and names.

        Parameters
        ----------
        of : {"features", "components", "totals"}, default="features"
        wide : bool, default=False
            False: a row per time and feature, with mean, median and the ends of the intervals.
            True: a row per time, a column per feature, point predictions only.

        Returns
        -------
        DataFrame
            Its `attrs` say whether intervals were compared with past forecasts, and how many
            values were inside.
        """
        index = pd.Index(self.times, name="time")
        if wide:
            names = ["total"] if of == "totals" else self._names(of)
            frame = pd.DataFrame(self.point_of(of), index=index, columns=names)
        else:
            frame = pd.DataFrame(self._columns(index.to_numpy(), of))
        frame.attrs.update(self._attributes(of))
        return frame

    def explain(self) -> pd.DataFrame:
        """What the point prediction of the totals consists of.

        Returns
        -------
        DataFrame
            A row per time and component. `expected` is the product of the columns between it and
            the name: the level, a factor of each season or other effect, the exposure. Summed over
            components, it is the point prediction of the total.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from temporalnmf import TemporalNMF
        >>> days = pd.date_range("2001-01-01", periods=70)
        >>> X = np.outer(np.where(np.arange(70) % 7 == 5, 40.0, 80.0), [0.5, 0.3, 0.2])
        >>> ahead = TemporalNMF(1, season="week").fit(pd.DataFrame(X, days)).forecast(7)
        >>> parts = ahead.explain()
        >>> parts.columns.tolist()
        ['time', 'component', 'name', 'level', 'week', 'exposure', 'expected']
        >>> by_time = parts.groupby("time")["expected"].sum()
        >>> bool(np.allclose(by_time, ahead.point_of("totals")))
        True
        """
        if self._sum is not None and self._sum.over_steps:
            problem = "explain() is for single steps, and these were added up."
            raise ValueError(f"{problem} Explain the forecast before sum(over='steps').")
        T, K = self.activations.shape
        columns: dict[str, Array] = {
            "time": np.repeat(pd.Index(self.times).to_numpy(), K),
            "component": np.tile(self._names("components"), T),
            "name": np.tile(self.component_names, T),
        }
        rates = self._rates_by_component()
        numbers = {"level": rates / self.factor}
        for name, factors in self.factors.items():
            taken = name in _EXPLAINED
            numbers[f"factor of {name}" if taken else name] = factors
        numbers["exposure"] = np.repeat(self.exposure[:, None], K, axis=1)
        numbers["expected"] = self.exposure[:, None] * rates
        return pd.DataFrame(columns | {name: found.ravel() for name, found in numbers.items()})

    def _rates_by_component(self) -> Array:
        """The activations; times the sums of components, which are 1 up to rounding."""
        if self.drawn is not None:
            return self.drawn.by_component()
        return np.asarray(self.activations * (self.components @ np.ones(self.components.shape[1])))

    def _columns(self, times: Array, of: Of) -> dict[str, Array]:
        """The columns of a frame with a row per time and feature."""
        point, names = self.point_of(of), self._names(of)
        T, width = len(self.times), max(len(names), 1)
        columns = {"time": np.repeat(times, width)}
        if of != "totals":
            columns[self.noun if of == "features" else "component"] = np.tile(names, T)
        if of == "components":
            columns["name"] = np.tile(self.component_names, T)
        columns["mean" if self.point in MEANS else "point"] = point.ravel()
        if self.has_bands:
            levels = [0.5, *(0.5 + s * c / 2 for c in self.coverage for s in (-1, 1))]
            labels = [f"{end}_{100 * c:g}" for c in self.coverage for end in ("lower", "upper")]
            found = self.quantile(levels, of)
            for label, values in zip(["median", *labels], found, strict=True):
                columns[label] = values.ravel()
        return columns

    def _attributes(self, of: Of) -> dict[str, object]:
        """`attrs` of a frame: whether intervals were checked, and the result."""
        if self.futures is None:
            return {}
        inside = {one.name: one.share(one.after) for one in self._checks(of)}
        if self.calibration is None or not (inside and self.checked.any()):
            counts = self.futures.likelihood.counts
            return {
                "intervals": "not checked",
                **({"check": "model.calibrate()"} if counts else {}),
            }
        intervals = "checked" if self.checked.all() else "checked in part"
        return {"intervals": intervals, "coverage": self.calibration.coverage, "inside": inside}

    @property
    def noun(self) -> str:
        """What `feature_names` are names of: "feature" or "group"."""
        if self._sum is None:
            return "feature"
        return "group" if self._sum.groups is not None else self._sum.whole.noun

    def _names(self, of: Of) -> Array:
        if of == "features":
            return self.feature_names
        if of == "components":
            return np.arange(1, self.activations.shape[1] + 1)
        return np.empty(0, dtype=str)

    def _known_size(self, of: Of) -> tuple[int, int, int]:
        """Numbers of samples, steps and columns."""
        check_choice("of", of, _OF)
        if self.futures is None:
            why = " ".join(self.notes) or "The model does not define any."
            raise ValueError(f"This forecast has no intervals. {why}")
        return self.n_samples, len(self.times), max(len(self._names(of)), 1)

    def _pieces(self, of: Of, wanted: Array | None = None) -> Iterator[_Piece]:
        """All samples in pieces that fit into memory; for features, at least the wanted blocks."""
        if self._sum is not None:
            yield from self._sum.pieces(of)
            return
        assert self.futures is not None
        blocks = None
        if wanted is not None:
            starts = [block.start for block in self.futures.mixture.blocks]
            blocks = np.unique(np.searchsorted(starts, wanted, side="right") - 1)
        for t in range(len(self.times)):
            if of == "components":
                yield t, slice(0, self.activations.shape[1]), self.futures.activations[:, t]
            elif of == "totals":
                yield t, slice(0, 1), self.futures.totals(t)[:, None]
            else:
                yield from ((t, *piece) for piece in self.futures.features(t, blocks))

    def _warn_of_few(self, levels: Array) -> None:
        """Warn of quantiles beyond the intervals of the forecast that have few samples beyond."""
        tails = np.minimum(levels, 1.0 - levels)
        if tails.min() >= min(few_beyond(self.n_samples), (1.0 - max(self.coverage)) / 2.0) - 1e-9:
            return
        wanted = samples_for(1.0 - 2.0 * float(tails.min()))
        warn(
            f"A quantile at {float(levels.ravel()[tails.argmin()]):g} ends among the last of "
            f"{self.n_samples:,} samples, and depends on the seed. Ask for more: "
            f"n_samples={wanted} has {_FEWEST_BEYOND} beyond it."
        )


def _summed(whole: Forecast, over_steps: bool, groups: dict[str, Array] | None) -> Forecast:
    found = replace(
        whole,
        _sum=_Sum(whole, over_steps, groups),
        feature_names=whole.feature_names if groups is None else np.array(list(groups)),
    )
    if not over_steps:
        return found
    texts = time_texts(whole.times)
    return replace(
        found,
        times=np.array([f"{texts[0]} to {texts[-1]}"]) if len(texts) > 1 else whole.times,
        activations=(whole.exposure[:, None] * whole.activations).sum(axis=0, keepdims=True),
        exposure=np.ones(1),
        observed=np.array([whole.observed.any()]),
        ahead=whole.ahead.max(keepdims=True),
        factors={},
    )


def _members(groups: Any, names: Array) -> dict[str, Array]:
    """Indices of the features of each group, each once."""
    if not isinstance(groups, Mapping) or not groups:
        example = {"name": [str(names[0])]}
        problem = f": expected a dict of at least one group, such as {example}."
        raise ArgumentError("groups", groups, problem)
    places = {name: f for f, name in enumerate(names.tolist())}
    found = {}
    for group, features in groups.items():
        wanted = [features] if isinstance(features, str) else [str(name) for name in features]
        if not wanted:
            remedy = "Name some, or leave the group out."
            raise ValueError(f"groups: {str(group)!r} has no features. {remedy}")
        for name in wanted:
            if name not in places:
                near = get_close_matches(name, places, n=1) or [str(names[0])]
                problem = f"is not among the {len(places):,} features"
                remedy = f"Give names such as {near[0]!r}."
                raise ValueError(f"groups: {str(group)!r} has {name!r}, which {problem}. {remedy}")
        found[str(group)] = np.unique([places[name] for name in wanted])
    return found


def few_beyond(n_samples: int) -> float:
    """The smallest probability of a tail whose end can be estimated from samples."""
    return _FEWEST_BEYOND / n_samples


def samples_for(coverage: float) -> int:
    """Number of samples needed to estimate the ends of a central interval."""
    return int(np.ceil(2.0 * _FEWEST_BEYOND / (1.0 - coverage) - 1e-6))


def check_coverage(coverage: Any) -> tuple[float, ...]:
    """Probabilities of intervals."""
    return tuple(np.ravel(_probabilities("coverage", coverage)).tolist())


def _probabilities(name: str, value: Any) -> Array:
    try:
        found = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if not (found.size and np.all((found > 0.0) & (found < 1.0))):
        problem = ": expected probabilities strictly between 0 and 1, such as 0.9."
        raise ArgumentError(name, value, problem)
    return found
