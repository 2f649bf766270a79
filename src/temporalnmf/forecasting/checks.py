"""Results of calibration: checks of past forecasts, and the noise that widens intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import binomtest

from .._typing import Array
from ..messages.formatting import counted, level_text, percent

Checked = Literal["totals", "components", "entries", "positive entries", "sums"]
CHECKED: tuple[Checked, ...] = ("totals", "components", "entries", "positive entries", "sums")


class Unseen(NamedTuple):
    """Distances of T steps to observed ones, 0 for those that are observed themselves.

    `since` (T,) is that to the last one before, or to the first one after if there is none before,
    `until` (T,) that to the next one if there is one on both sides, else 0.
    """

    since: Array
    until: Array

    @property
    def nearest(self) -> Array:
        return np.where(self.until > 0, np.minimum(self.since, self.until), self.since)


@dataclass(frozen=True, eq=False)
class Noise:
    """Variation beyond the model, as estimated by `TemporalNMF.calibrate`.

    Activations of an unseen step are multiplied by random factors, which do not change the means
    of the samples.

    Attributes
    ----------
    level : array, (steps,)
        Variance of the factor that all components of a step share, by steps ahead; the last value
        also holds for later steps.
    own : array, (steps,)
        Variance of the separate factor of each component.
    persistence : float
        Correlation of the factors (of their logarithms) of one step and the next, 0 to 1.
    dispersion : float
        An entry with mean μ, or a sum of entries, has dispersion·μ more variance than under the
        likelihood, or less if it is negative; more than −1.
    scale : float
        Factor on the variance of log activations under the model, at most 1: below it where past
        forecasts varied less.
    keeps_totals : bool
        Whether the separate factors leave the total of the step as it is. In calibrations of
        earlier versions they are independent.
    """

    level: Array
    own: Array
    persistence: float = 1.0
    dispersion: float = 0.0
    scale: float = 1.0
    keeps_totals: bool = True

    @property
    def moves(self) -> bool:
        """Whether it changes activations."""
        return bool(self.level.any() or self.own.any() or self.scale != 1.0)

    def widen(self, activations: Array, unseen: Unseen, rng: np.random.Generator) -> Array:
        """Activations (S, T, K) times the factors."""
        if not self.moves:
            return activations
        S, _, K = activations.shape
        normals = rng.standard_normal((np.count_nonzero(unseen.since), S, 1 + K))
        return self.widen_by(activations, unseen, normals)

    def widen_by(self, activations: Array, unseen: Unseen, normals: Array) -> Array:
        """`widen`, with given standard normal variables (unseen steps, S, 1 + K)."""
        if not self.moves:
            return activations
        widened, last = activations.copy(), -2
        innovation = np.sqrt(1.0 - self.persistence**2)
        z = normals[:0]
        for fresh, t in zip(normals, np.flatnonzero(unseen.since).tolist(), strict=True):
            z = self.persistence * z + innovation * fresh if t == last + 1 else fresh
            level, own = (
                np.sqrt(self.log_variance(v, int(unseen.since[t]), int(unseen.until[t])))
                for v in (self.level, self.own)
            )
            if self.scale != 1.0:
                widened[:, t] = _scaled(widened[:, t], self.scale)
            logs = level * z[:, :1] - 0.5 * level**2
            if own > 0.0 and self.keeps_totals:
                widened[:, t] = _exchanged(widened[:, t], own * z[:, 1:])
            elif own > 0.0:
                logs = logs + own * z[:, 1:] - 0.5 * own**2
            widened[:, t] *= np.exp(logs)
            last = t
        return widened

    def log_variance(self, variances: Array, since: int, until: int = 0) -> float:
        """Variance of the logarithm of a factor with `variances` by steps ahead.

        Between two observed steps (E3): errors of the level are white noise plus a random walk.
        """
        logs = np.log1p(variances)
        one = float(logs[min(since, len(logs)) - 1])
        if until == 0 or one == 0.0:
            return one
        white = logs[0] - self.persistence * np.sqrt(logs[0] * logs[min(1, len(logs) - 1)])
        white = max(float(white), 0.0)
        walks = one - white, float(logs[min(until, len(logs)) - 1]) - white
        if min(walks) <= 0.0:
            return white
        return white + walks[0] * walks[1] / (walks[0] + walks[1])


def _exchanged(h: Array, logs: Array) -> Array:
    """Samples (S, K) times factors with these logarithms, with the totals and means of before.

    The totals are exact but for the correction of the means.
    """
    found = h * np.exp(logs)
    found *= _ratio(h.sum(axis=1, keepdims=True), found.sum(axis=1, keepdims=True))
    return found * _ratio(h.mean(axis=0), found.mean(axis=0))


def _scaled(h: Array, scale: float) -> Array:
    """Samples (S, K) whose logarithms have a scaled variance, with the same means."""
    mean = h.mean(axis=0)
    found = _ratio(h, mean) ** np.sqrt(scale)
    return mean * _ratio(found, found.mean(axis=0))


def _ratio(one: Array, other: Array) -> Array:
    """one/other, and one where both have vanished."""
    found: Array = np.divide(one, other, out=np.ones(np.shape(one)), where=other > 0.0)
    return found


@dataclass(frozen=True)
class Tally:
    """Performance of intervals.

    Attributes
    ----------
    inside : float
        The share of values inside their interval.
    score : float
        Mean interval score: width, plus 2/(1 − coverage) times the distance of values outside.
        Lower is better.
    width : float
        Mean width.
    """

    inside: float
    score: float
    width: float


@dataclass(frozen=True)
class Check:
    """Intervals of one kind at one horizon, before and after calibration.

    Attributes
    ----------
    of : {"totals", "components", "entries", "positive entries", "sums"}
        "sums" are totals added up over the steps of a forecast.
    ahead : int
        Steps ahead; of sums, how many steps are added up.
    n_origins, n_values : int
        Forecasts that were made, and values that were compared. Values of one forecast depend on
        each other.
    before, after : Tally
    """

    of: Checked
    ahead: int
    n_origins: int
    n_values: int
    before: Tally
    after: Tally

    def band(self, tally: Tally) -> tuple[float, float]:
        """95 % confidence interval of the share inside: binomial, one trial per origin."""
        n = self.n_origins
        found = binomtest(round(tally.inside * n), n).proportion_ci(0.95, "exact")
        return float(found.low), float(found.high)

    def short_of(self, coverage: float) -> bool:
        """Whether coverage is below the nominal one by more than half an origin."""
        return (coverage - self.after.inside) * self.n_origins > 0.5 + 1e-9

    def clearly_short_of(self, coverage: float) -> bool:
        """Whether that is more than chance."""
        return self.short_of(coverage) and self.band(self.after)[1] < coverage

    @property
    def change(self) -> str:
        """Effect of calibration on the intervals: widened, narrowed or unchanged."""
        if np.isclose(self.after.width, self.before.width, rtol=0.005, atol=1e-9):
            return "unchanged"
        return "widened" if self.after.width > self.before.width else "narrowed"

    @property
    def name(self) -> str:
        """Such as "totals 2 steps ahead"."""
        steps = counted(self.ahead, "step")
        return f"sums of totals over {steps}" if self.of == "sums" else f"{self.of} {steps} ahead"

    def share(self, tally: Tally) -> str:
        """As a count if there is one value per origin, otherwise in percent."""
        if self.n_values == self.n_origins:
            return f"{round(tally.inside * self.n_origins)} of {self.n_origins}"
        return percent(tally.inside)


# Of more horizons than the last of these, only these and the last are printed.
_SHOWN = (1, 2, 3, 6)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Results of comparing past forecasts with the data.

    Attributes
    ----------
    coverage : float
        Nominal coverage of the intervals.
    checks : tuple of Check
        For totals, components, entries and sums, by horizon.
    noise : Noise
        The noise that widens the intervals.
    refitted : bool
        Whether components were fitted to the steps before each origin only.
    """

    coverage: float
    checks: tuple[Check, ...]
    noise: Noise
    refitted: bool = True

    def of(self, kind: Checked) -> list[Check]:
        """The checks of one kind, by steps ahead."""
        return [check for check in self.checks if check.of == kind]

    @property
    def horizons(self) -> list[int]:
        """Steps ahead that were checked."""
        return [check.ahead for check in self.of("totals")]

    @property
    def n_origins(self) -> int:
        """Number of past forecasts, each made from earlier steps only."""
        return max(check.n_origins for check in self.checks)

    @property
    def shown(self) -> list[Check]:
        """The checks to print: of many horizons only some."""
        horizons = self.horizons
        few = horizons if len(horizons) <= max(_SHOWN) else (*_SHOWN, horizons[-1])
        return [check for check in self.checks if check.ahead in few or check.of == "sums"]

    def short(self, ahead: Iterable[int], kinds: Iterable[Checked] | None = None) -> list[Check]:
        """Checks of intervals that are too narrow even after calibration.

        Positive entries are left out: they are selected after the fact, so intervals need not
        have the nominal coverage of them.
        """
        wanted, horizons = set(CHECKED if kinds is None else kinds), set(ahead)
        return [
            check
            for check in self.checks
            if check.of in wanted - {"positive entries"}
            and check.ahead in horizons
            and (check.short_of if self.refitted else check.clearly_short_of)(self.coverage)
        ]

    def __str__(self) -> str:
        promise, n = level_text(self.coverage), self.n_origins
        fixed = "" if self.refitted else ", with components that were fitted to all steps"
        lines = [f"{n} forecasts of past steps were compared with the data{fixed}."]
        lines += [
            f"{check.name[0].upper()}{check.name[1:]}: {check.share(check.before)} inside the "
            f"{promise} interval before, {check.share(check.after)} after ({check.change})."
            for check in self.shown
        ]
        lines += [self._verdict(promise), self._noise_words()]
        if n / (n + 1) < self.coverage:
            lines.append(f"{n} forecasts can guarantee at most {percent(n / (n + 1))}.")
        return "\n".join(line for line in lines if line)

    def _verdict(self, promise: str) -> str:
        short = self.short(check.ahead for check in self.checks)
        if not short:
            kinds = [kind for kind in CHECKED if kind != "positive entries" and self.of(kind)]
            return f"On these, the {promise} intervals of {_listed(kinds)} are wide enough."
        names = _listed([check.name for check in short])
        return f"The intervals are still too narrow for {names}."

    def _noise_words(self) -> str:
        noise, words = self.noise, []
        if noise.level.any():
            words.append(f"the level of a step varies by ±{_percents(noise.level)}")
        if noise.own.any():
            words.append(f"a single component by ±{_percents(noise.own)}")
        if noise.scale < 1.0:
            words.append(f"activations vary by {percent(np.sqrt(noise.scale))} of what it expects")
        if noise.level.any() and len(noise.level) > 1:
            words.append(
                f"errors of successive steps have a correlation of {noise.persistence:.2g}"
            )
        if noise.dispersion != 0.0:
            factor = f"{1.0 + noise.dispersion:.3g}"
            words.append(f"an entry has {factor} times the variance of a Poisson count")
        return f"Beyond the model, {', '.join(words)}." if words else ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _percents(variances: Array) -> str:
    low, high = (f"{100.0 * np.sqrt(v):.0f}" for v in (variances[0], variances[-1]))
    return f"{low} %" if low == high else f"{low} to {high} %"
