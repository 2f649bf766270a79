"""The default check: forecasts of past steps at fixed components, compared with the data.

One filter gives the forecasts from all steps, see `past_errors`; `learned_noise` learns from them.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..inference.filtering import filtered
from .checks import Calibration, Check, Checked, Noise, Tally
from .learned_noise import misses, noise_of
from .past_errors import (
    Ends,
    Entries,
    Pairs,
    Parts,
    Totals,
    compared,
    entry_ends,
    log_normal_ends,
)
from .state import State

# Observed steps up to the first origin, and least number of origins.
FEWEST_STEPS, FEWEST_ORIGINS = 8, 5
# By default: steps ahead, coverage, most origins, and most values that forecasts predict.
_STEPS, _COVERAGE, _MOST_ORIGINS, _MOST_VALUES = 12, 0.9, 100, 20_000_000
# Steps before the first origin at which the filter starts.
_BEFORE = 50


def check_of(state: State) -> Calibration | None:
    """The check of a fitted model with default settings; None if it cannot be made."""
    known = state.series is not None and state.draws is None
    if not (known and state.has_law and state.likelihood.counts):
        return None
    n_origins = max(_MOST_VALUES // (_STEPS * state.components.shape[1]), FEWEST_ORIGINS)
    n_origins = min(n_origins, _MOST_ORIGINS)
    origins = origins_of(state.observed, n_origins)
    pairs = _pairs(state.observed, origins, _STEPS)
    if min(len(origins), len(pairs)) < FEWEST_ORIGINS:
        return None
    return sequential_check(state, n_origins, _STEPS, _COVERAGE)


def sequential_check(state: State, n_origins: int, steps: int, coverage: float) -> Calibration:
    """Compare forecasts from the last `n_origins` steps with the data; widen what is too narrow."""
    series = state.data("calibrate")
    origins = origins_of(series.observed, n_origins)
    pairs = _pairs(series.observed, origins, steps)
    if len(pairs) < FEWEST_ORIGINS:
        raise ValueError(
            f"calibrate: only {len(pairs)} observed steps follow another one within {steps}, and "
            f"{FEWEST_ORIGINS} are needed. Give a larger number of steps."
        )
    # Steps long before the first origin hardly matter to it.
    first = int(max(np.flatnonzero(series.observed)[0], origins[0] - _BEFORE))
    W = np.ascontiguousarray(state.components.T)
    factors = state.factors_of(series.design)
    start = state.levels[first]
    found = filtered(series, W, state.likelihood, state.chain, start, first, factors)
    totals, entries, parts = compared(
        state.chain, state.likelihood, series, W, found, origins, pairs, factors
    )
    noise = noise_of(totals, entries, parts, steps, coverage)
    checks = (
        *_check_totals(totals, noise, coverage),
        *(() if parts is None else _check_parts(parts, noise, coverage)),
        *_check_entries(entries, noise, coverage),
    )
    return Calibration(coverage, checks, noise, refitted=False)


def origins_of(observed: Array, n_origins: int) -> Array:
    """The last steps from which a later observed step can be forecast."""
    seen = np.flatnonzero(observed)
    return np.asarray(seen[FEWEST_STEPS - 1 : -1][-n_origins:])


# Ends of intervals beyond this one are taken for it: forecasts that explode.
_FARTHEST = 1e250


def _pairs(observed: Array, origins: Array, steps: int) -> Pairs:
    """Forecasts that can be compared: an index of the origins, and steps ahead from 0."""
    return [
        (i, s)
        for i, origin in enumerate(origins.tolist())
        for s in range(min(steps, len(observed) - 1 - origin))
        if observed[origin + 1 + s]
    ]


def _check_totals(totals: Totals, noise: Noise, coverage: float) -> list[Check]:
    sides = []
    for each in (_none(noise), noise):
        low, high = log_normal_ends(totals.expected, totals.variance(each), coverage)
        sides.append((np.floor(low), np.ceil(high)))
    return _checks("totals", totals, sides, coverage)


def _check_parts(parts: Parts, noise: Noise, coverage: float) -> list[Check]:
    variances = (parts.variance(each) for each in (_none(noise), noise))
    sides = [log_normal_ends(parts.expected, variance, coverage) for variance in variances]
    return _checks("components", parts, sides, coverage)


def _check_entries(entries: Entries, noise: Noise, coverage: float) -> list[Check]:
    sides = [entry_ends(entries, each, coverage) for each in (_none(noise), noise)]
    return _checks("entries", entries, sides, coverage)


def _none(noise: Noise) -> Noise:
    return Noise(0.0 * noise.level, 0.0 * noise.own)


def _checks(
    of: Checked, found: Totals | Entries | Parts, sides: list[Ends], coverage: float
) -> list[Check]:
    """Intervals before and after widening, by steps ahead."""
    checks, x = [], found.observed
    for s in np.unique(found.ahead).tolist():
        here, tallies = found.ahead == s, []
        for low, high in (
            np.nan_to_num(np.minimum(ends, _FARTHEST), nan=_FARTHEST) for ends in sides
        ):
            miss, score = misses(x, (low, high), coverage)
            means = (float(np.mean(part[here])) for part in (miss <= 0.0, score, high - low))
            tallies.append(Tally(*means))
        n_origins = len(np.unique(found.origin[here]))
        checks.append(Check(of, s, n_origins, int(here.sum()), *tallies))
    return checks
