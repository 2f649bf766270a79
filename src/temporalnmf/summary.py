"""Summary of a fitted model: its components, and its error at each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ._typing import Array
from .chains.parameters import letter_of
from .components import NOTHING, ShardedComponents, blocks_of, largest
from .effects import Trend
from .effects.covariates import Influence
from .effects.term import Term
from .kernels.floor import FLOOR
from .messages.formatting import number_text, percent
from .timeline.grid import time_texts
from .timeline.positions import Positions

if TYPE_CHECKING:
    from .estimator import TemporalNMF


@dataclass(frozen=True)
class ComponentSummary:
    """One component.

    Attributes
    ----------
    index : int
        Index in the arrays of the model, from 0. `number` is shown to people.
    name : str
        Its three most characteristic features.
    share : float
        Share of all activation, 0 to 1.
    peak : str
        Observed time of the largest activation.
    top : list of (str, float)
        Its most characteristic features and their weights.
    stability : float or None
        See `TemporalNMF.stability_`.
    """

    index: int
    name: str
    share: float
    peak: str
    top: list[tuple[str, float]]
    stability: float | None

    @property
    def number(self) -> int:
        """Number from 1, in tables, reports, messages and files."""
        return self.index + 1


def learned_text(model: TemporalNMF) -> str:
    """Learned hyper-parameters of each component with 90 % intervals; "" if there are none."""
    parts = []
    for name, rows in model.learned_.items():
        texts = ("{} ({} to {})".format(*map(number_text, row)) for row in rows.tolist())
        parts.append(f"{letter_of(name)} = {', '.join(texts)}")
    return "; ".join(parts)


# Stability is a cosine. Its square, the share of the squared norm that a component and its match
# have in common, is at least four fifths from 0.9 on and less than half below 0.7, about cos 45°.
FOUND_AGAIN, VARIES = 0.9, 0.7


def stability_words(stability: float, start: str = "start") -> str:
    """Stability in words; `start` is "run" for a model fitted by draws."""
    if stability >= FOUND_AGAIN:
        return "found again"
    return f"varies between {start}s" if stability >= VARIES else "not found again"


# Components with a larger cosine differ by less than a third of their norm.
_SAME = 0.95


class Alike(NamedTuple):
    """Two components, by their numbers from 1, that are nearly the same."""

    first: int
    second: int
    cosine: float

    def __str__(self) -> str:
        return (
            f"Components {self.first} and {self.second} are nearly the same (cosine "
            f"{self.cosine:.2f}): often one theme that is split in time."
        )


def alike(model: TemporalNMF) -> list[Alike]:
    """Pairs of components that are nearly the same.

    Examples
    --------
    >>> import numpy as np
    >>> from temporalnmf import TemporalNMF
    >>> start = np.array([[6.0, 3.0, 1.0]] * 2), np.ones((8, 2))
    >>> model = TemporalNMF(2, init=start).fit(np.outer(np.arange(1, 9), [6, 3, 1]))
    >>> print(alike(model)[0])
    Components 1 and 2 are nearly the same (cosine 1.00): often one theme that is split in time.
    """
    blocks = (np.asarray(block, dtype=float) for _, block in blocks_of(model.components_))
    products = sum(block @ block.T for block in blocks)
    norms = np.sqrt(np.diagonal(products))
    cosines = np.minimum(products / np.maximum(np.outer(norms, norms), FLOOR), 1.0)
    pairs = zip(*np.nonzero(np.triu(cosines, 1) > _SAME), strict=True)
    return [Alike(int(k) + 1, int(m) + 1, float(cosines[k, m])) for k, m in pairs]


# Features in the name of a component, and the coefficient of log w in a feature's relevance.
_IN_A_NAME, _BY_WEIGHT = 3, 0.6


def component_summary(model: TemporalNMF, n_features: int = 8) -> list[ComponentSummary]:
    """The components of a fitted model, in its order.

    Characteristic features have a large weight that is larger than elsewhere: they are ordered by
    relevance, 0.6 log w + 0.4 log(w/w̄), where w̄ is the weight in all components together (Sievert
    and Shirley 2014).

    Examples
    --------
    >>> import numpy as np
    >>> from temporalnmf import TemporalNMF
    >>> X = np.outer(np.arange(1, 9), [6, 3, 1]) + 1.0
    >>> component_summary(TemporalNMF(1).fit(X), n_features=2)[0].name
    'x0, x1'
    """
    names, texts = model.feature_labels(), time_texts(model.times_)
    totals = model.activations_.sum(axis=0)
    found = []
    for k, first in enumerate(_characteristic(model.components_, totals, n_features)):
        weights = model.components_[k, first]
        found.append(
            ComponentSummary(
                index=k,
                name=_name(names, first),
                share=float(totals[k] / totals.sum()),
                peak=texts[int(np.argmax(np.where(model.observed_, model.activations_[:, k], -1)))],
                top=[(str(names[f]), float(w)) for f, w in zip(first, weights, strict=True)],
                stability=None if model.stability_ is None else float(model.stability_[k]),
            )
        )
    return found


def _characteristic(
    components: Array | ShardedComponents, totals: Array, n_features: int
) -> list[Array]:
    """The most relevant features of each component, found block by block."""
    found = [NOTHING] * len(components)
    for columns, block in blocks_of(components):
        average = totals / totals.sum() @ block
        for k, weights in enumerate(block):
            w = np.maximum(weights, FLOOR)
            relevance = _BY_WEIGHT * np.log(w) + (1.0 - _BY_WEIGHT) * np.log(w / (average + FLOOR))
            found[k] = largest(found[k], columns.start, relevance, n_features)
    return [first for first, _ in found]


def component_names(
    components: Array | ShardedComponents, activations: Array, feature_names: Array
) -> Array:
    """Names of the components by their most characteristic features, (n_components,)."""
    found = _characteristic(components, activations.sum(axis=0), _IN_A_NAME)
    return np.array([_name(feature_names, first) for first in found])


def _name(feature_names: Array, first: Array) -> str:
    return ", ".join(feature_names[first[:_IN_A_NAME]])


# Factors whose ratio is below this one are all the same, in words.
_LEAST_SWING = 1.005
# From this factor on it is not written in per cent.
_TIMES = 2.0


@dataclass(frozen=True, eq=False)
class SeasonSummary:
    """One season: the factors of a cycle, and what they are factors of.

    Attributes
    ----------
    name : str
        Its key in `season_`: "week", "year", "9 steps".
    positions : Positions
        The positions of a cycle in words: `names`, and short as `labels`.
    factors : array, (n_components, positions)
        Those of `season_`.
    total : array, (positions,)
        The factors of the total: the mean of `factors`, weighted by mean levels.
    """

    name: str
    positions: Positions
    factors: Array
    total: Array

    @property
    def largest(self) -> int:
        """The index of the component whose factors differ most."""
        return int(np.argmax(np.ptp(np.log(self.factors), axis=1)))

    def words(self, component: int | None = None) -> str:
        """The lowest and the highest position of a component, or of the total."""
        factors = self.total if component is None else self.factors[component]
        low, high = int(np.argmin(factors)), int(np.argmax(factors))
        if factors[high] < _LEAST_SWING * factors[low]:
            return "nearly the same at all positions"
        lowest = f"{_against(factors[low])} the level {self.positions.when(low)}"
        the_level = " the level" if factors[high] >= _TIMES else ""
        return f"{lowest}, {_against(factors[high])}{the_level} {self.positions.when(high)}"


def _against(factor: float) -> str:
    """A factor in words: 27 % below, 3.1 times."""
    if factor >= _TIMES:
        return f"{number_text(factor, 2)} times"
    return f"{percent(abs(factor - 1.0))} {'below' if factor < 1.0 else 'above'}"


def season_summary(model: TemporalNMF) -> list[SeasonSummary]:
    """The seasons of a fitted model, in the order of `season_`; empty if it has none.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from temporalnmf import TemporalNMF
    >>> days = pd.date_range("2001-01-01", periods=70)
    >>> X = np.outer(np.where(np.arange(70) % 7 == 5, 40.0, 80.0), [0.5, 0.3, 0.2])
    >>> (week,) = season_summary(TemporalNMF(1, season="week").fit(pd.DataFrame(X, days)))
    >>> print(week.words())
    42 % below the level on Saturday, 10.0 % above on Sunday
    """
    if model._effects is None:
        return []
    level = model.levels_.mean(axis=0)
    return [
        SeasonSummary(season.name, season.positions, factors, level @ factors / level.sum())
        for season in model._effects.seasons
        for factors in [model.season_[season.name]]
    ]


def seasons_left_out(model: TemporalNMF) -> list[str]:
    """The seasons that `season="auto"` tried and left out."""
    return list(model._reasons["season"].left_out)


# From this factor down it is not written in per cent either.
_FRACTION = 0.05


@dataclass(frozen=True, eq=False)
class EffectSummary:
    """What a covariate, a holiday or an event does to each component.

    Attributes
    ----------
    name : str
        Its key in `effects_`.
    per : str
        What the factor is for: "unit" of a covariate, "day" of a holiday or an event in longer
        steps, else "".
    factors : array, (n_components, 3)
        Factors, and the ends of their 90 % intervals.
    """

    name: str
    per: str
    factors: Array

    @property
    def label(self) -> str:
        """The name, and what the factor is for: "rain, per unit"."""
        return f"{self.name}, per {self.per}" if self.per else self.name

    def words(self, component: int) -> str:
        """The change of a component with its interval: "+35 % (30 to 41 %)"."""
        return _change_with_ends(*self.factors[component].tolist())

    def change(self, component: int) -> str:
        """The change without the interval: "+35 %"."""
        return change_words(float(self.factors[component, 0]))


@dataclass(frozen=True, eq=False)
class TrendSummary(EffectSummary):
    """Growth of each component at the end of the series, per step.

    Attributes
    ----------
    name, per, factors
        As of other effects: `trend_`, per step.
    trend : Trend
        With the damping of the growth of later steps.
    """

    trend: Trend

    @property
    def course(self) -> str:
        """What becomes of the growth after the end."""
        if self.trend.damping == 1.0:
            return "continues and does not fade out"
        return f"continues and fades out with damping {self.trend.damping:g}"

    def after(self, steps: int) -> list[str]:
        """The growth of each component over some steps after the end, in words."""
        power = float(self.trend.accumulated(np.array([float(steps)]))[0])
        return [change_words(float(factor)) for factor in self.factors[:, 0] ** power]


def change_words(factor: float) -> str:
    """A factor as a change in per cent, with its sign; large and small ones as they are."""
    if not _FRACTION <= factor < _TIMES:
        return f"{number_text(factor, 2)} times"
    return f"{_signed(factor)} %"


def _change_with_ends(factor: float, low: float, high: float) -> str:
    if not np.isfinite(low + high):
        return change_words(factor)
    if not _FRACTION <= factor < _TIMES:
        return f"{change_words(factor)} ({number_text(low, 2)} to {number_text(high, 2)})"
    ends = (_signed(end).removeprefix("+") for end in (low, high))
    return f"{change_words(factor)} ({' to '.join(ends)} %)"


def _signed(factor: float) -> str:
    """A factor as a change in per cent: two digits, of small changes one decimal."""
    change = 100.0 * (factor - 1.0)
    text = f"{change:+.{0 if abs(change) >= 9.95 else 1}f}"
    return text.lstrip("+-") if float(text) == 0.0 else text.replace("-", "−")


def effect_summary(model: TemporalNMF) -> list[EffectSummary]:
    """What covariates, holidays and events do; empty without them.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from temporalnmf import TemporalNMF
    >>> days = pd.date_range("2001-01-01", periods=70)
    >>> sale = pd.DataFrame({"sale": np.arange(70) % 9 == 0}, days, dtype=float)
    >>> X = pd.DataFrame(np.outer(60.0 + 30.0 * sale["sale"], [0.5, 0.5]), days)
    >>> (effect,) = effect_summary(TemporalNMF(1, season=None).fit(X, covariates=sale))
    >>> effect.label, effect.change(0)
    ('sale, per unit', '+49 %')
    """
    if model._effects is None:
        return []
    return [
        EffectSummary(name, _per(term, model), factors)
        for term, name, factors in model._effects.readings()
    ]


def _per(term: Term, model: TemporalNMF) -> str:
    if isinstance(term, Influence):
        return "unit"
    return "day" if float(np.median(model.timeline_.clock.days)) > 1.0 else ""


def trend_summary(model: TemporalNMF) -> TrendSummary | None:
    """The trend of a fitted model; None without one."""
    if model._effects is None or model.trend_ is None:
        return None
    trend = next(term for term in model._effects.design.terms if isinstance(term, Trend))
    return TrendSummary("trend", "step", model.trend_, trend)


def trend_sought(model: TemporalNMF) -> bool:
    """Whether `trend="auto"` looked for a trend."""
    return model._reasons["trend"].code not in ("given", "not_wanted", "unknown")


class StepErrors(NamedTuple):
    """Fit and error at each step, over observed entries; NaN at gaps.

    Attributes
    ----------
    observed, expected : array, (n_times,)
        Totals of the data and of the fit.
    error : array, (n_times,)
        Divergence (Kullback–Leibler or Itakura–Saito) per entry.
    """

    observed: Array
    expected: Array
    error: Array


def step_errors(model: TemporalNMF) -> StepErrors | None:
    """Error of a fitted model at each step; None if its data are not available."""
    series = model._series
    if series is None:
        return None
    divergence = model.likelihood_.error
    observed, expected, error = np.full((3, series.n_steps), np.nan)
    for n in map(int, np.flatnonzero(series.observed)):
        x, weight = series.row(n)
        seen = weight > 0.0
        x = np.asarray(x[seen], dtype=float)
        rate = series.exposure[n] * (model.activations_[n] @ model.components_[:, seen])
        observed[n], expected[n] = x.sum(), rate.sum()
        error[n] = divergence(x, rate) / len(x)
    return StepErrors(observed, expected, error)
