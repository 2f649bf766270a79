"""New steps after a fit."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._typing import Array
from ..data.series import Series
from ..inference.fitting import Fitted, divergence_of, fit_factors, infer_mode
from ..inference.gaps import fitted_steps
from ..sampling.draws import PosteriorDraws
from ..sampling.inference import redraw
from ..sampling.run import START, drawn_steps
from ..timeline.grid import AS_GIVEN, Timeline, time_texts, timeline_of
from .state import State


class Appended(NamedTuple):
    """A longer series and what was inferred from it."""

    series: Series
    kept: Array  # the steps that took part
    levels: Array  # (N, K)
    activations: Array  # (N, K)
    draws: PosteriorDraws | None  # None for a mode
    divergence: float  # of the whole series


def whole_series(state: State, new: Series) -> Series:
    """The data of the fit, followed by the new steps."""
    old = state.data("append")
    assert old.timeline is not None
    assert new.timeline is not None
    return old.followed_by(new, _joined(old.timeline, new.timeline))


def infer_again(state: State, whole: Series) -> Appended:
    """All activations given the whole series, with the components and the chain of the fit.

    A mode is solved from the same start as in `transform`. From the old activations, which are
    optimal at all old steps, the solver would stop before the new steps have converged.
    """
    config, draws = state.config, state.draws
    if draws is None:
        kept = fitted_steps(whole.observed, state.chain, config.point)
        levels = np.ascontiguousarray(infer_mode(config, state.factors, whole).T)
        factors = state.factors_of(whole.design)
        activations = levels if factors is None else levels * factors
    else:
        kept = drawn_steps(whole.observed, draws.chain)
        draws = redraw(config, draws, whole, kept)
        numbers = np.arange(draws.n_draws)
        expected = draws.expected_steps(numbers, kept, whole.n_steps)
        levels = activations = expected.mean(axis=0)
        if draws.effects is not None and whole.design is not None:
            activations = (expected * draws.effects.factors(numbers, whole.design)).mean(axis=0)
    divergence = divergence_of(config, state.factors, whole, activations.T)
    return Appended(whole, kept, levels, activations, draws, divergence)


def fit_again(state: State, whole: Series) -> Fitted:
    """Fit components and activations, starting from the components of the fit."""
    config, factors = state.config, state.factors
    mode = config
    if state.draws is not None:  # runs start at modes under this chain
        K = config.n_components
        factors = factors._replace(chain=START.resolve(K * state.draws.level, K))
        mode = replace(config, solver="accelerated", map_scale="log")
    start = factors._replace(levels=infer_mode(mode, factors, whole).T)
    return fit_factors(replace(config, n_init=1, previous=start), whole)


def _joined(old: Timeline, new: Timeline) -> Timeline:
    """The timeline of the old steps followed by the new ones."""
    labels, last = new.labels, time_texts(old.times)[-1]
    if new.numbered and old.numbered:
        labels = len(old.labels) + labels
    elif new.numbered:  # an array has no labels: its rows are the next ones
        if old.every == AS_GIVEN:
            problem = f"X has no times, and the fitted steps up to {last!r} are not evenly spaced."
            raise ValueError(f"{problem} Give X as a frame with times as its index.")
        labels = old.labels_after(len(labels))
    first = time_texts(labels)[0]
    if _KINDS[labels.dtype.kind] != _KINDS[old.labels.dtype.kind]:
        problem = f"X has times such as {first!r}, the fitted steps such as {last!r}."
        raise ValueError(f"{problem} Give times of one kind.")
    both = np.concatenate([old.labels, labels])
    if labels.dtype.kind == "U":
        if len(np.unique(both)) < len(both):
            again = next(text for text in labels if text in set(old.labels))
            raise ValueError(f"X has the time {str(again)!r}, which was fitted already.")
        return Timeline(both, np.arange(len(both)), old.every)
    if labels[0] <= old.labels[-1]:
        problem = f"X starts at {first}, but the fitted steps end at {last}."
        raise ValueError(f"{problem} Append later steps only.")
    joined, N = timeline_of(both, style=old.style), len(old.labels)
    if joined.every != old.every or not np.array_equal(joined.labels[:N], old.labels):
        grid = f"the grid of the fitted steps (every {old.every})"
        raise ValueError(f"X has times that are not on {grid}, such as {first!r}.")
    return joined


_KINDS = {"i": "number", "f": "number", "M": "date", "U": "text"}
