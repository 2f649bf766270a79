"""New steps after a fit."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..chains.rate import Rate
from ..data.series import Series
from ..inference.fitting import divergence_of, fit_factors
from ..inference.gaps import fitted_steps
from ..timeline.grid import AS_GIVEN, Timeline, time_texts, timeline_of
from .activations import infer
from .predicting import data_of


def append(model: Any, new: Series, update_components: bool) -> None:
    """Add steps to the series of a model, or leave it as it was; see `TemporalNMF.append`."""
    old = data_of(model, "append")
    before = model.__dict__.copy()
    try:
        assert old.timeline is not None
        assert new.timeline is not None
        whole = old.followed_by(new, _joined(old.timeline, new.timeline))
        (_fit_again if update_components else _infer_again)(model, whole)
    except BaseException:
        model.__dict__ = before
        raise


def _infer_again(model: Any, whole: Series) -> None:
    """All activations given the whole series, at the components and the chain of the fit.

    A mode is solved from the start that `transform` has, not from the old activations: those are
    so good for all steps but the new ones that the solver would stop before these are.
    """
    if model.posterior_ is None:
        kept = fitted_steps(whole.observed, model.chain_, model.point)
        model.activations_ = np.ascontiguousarray(infer(model, whole).T)
    else:
        from ..sampling.inference import redraw
        from ..sampling.run import drawn_steps

        kept = drawn_steps(whole.observed, model.posterior_.chain)
        model.posterior_ = posterior = redraw(model._config(), model.posterior_, whole, kept)
        numbers = np.arange(posterior.n_draws)
        model.activations_ = posterior.expected_steps(numbers, kept, whole.n_steps).mean(axis=0)
    model.reconstruction_err_ = divergence_of(
        model._config(), model.components_, whole, model.activations_.T
    )
    calibration = model.calibration_  # of the components, which stay
    model._remember(whole, kept)
    model.calibration_ = calibration


def _fit_again(model: Any, whole: Series) -> None:
    """Components and activations, starting from the components of the fit."""
    mode, start = copy.copy(model), copy.copy(model)
    if model.posterior_ is not None:  # runs start at modes under the default chain
        K = model.n_components
        mode.posterior_, mode.chain_ = None, Rate().resolve(K * model.posterior_.level, K)
        mode.set_params(solver="accelerated", map_scale="log")
    start.activations_ = infer(mode, whole).T
    fitted = fit_factors(start.set_params(warm_start=True, n_init=1)._config(), whole)
    stability = model.stability_
    model._take(fitted, whole)
    if model.posterior_ is None:  # one start tells nothing of it; runs of draws do
        model.stability_ = stability


def _joined(old: Timeline, new: Timeline) -> Timeline:
    """The timeline of old steps, then new ones; its rows are the steps of both, in order."""
    labels, last = new.labels, time_texts(old.times)[-1]
    if new.numbered and old.numbered:
        labels = len(old.labels) + labels
    elif new.numbered:  # an array has no labels: its rows are the next ones
        if old.every == AS_GIVEN:
            raise ValueError(
                f"X has no times, and what follows {last!r} is not known, since the fitted steps "
                f"are not evenly spaced. Give X as a frame with times as its index."
            )
        labels = old.moments_after(len(labels))
    first = time_texts(labels)[0]
    if _KINDS[labels.dtype.kind] != _KINDS[old.labels.dtype.kind]:
        raise ValueError(
            f"X has times such as {first!r}, the fitted steps such as {last!r}. Give times of one "
            f"kind."
        )
    both = np.concatenate([old.labels, labels])
    if labels.dtype.kind == "U":
        if len(np.unique(both)) < len(both):
            again = next(text for text in labels if text in set(old.labels))
            raise ValueError(f"X has the time {str(again)!r}, which was fitted already.")
        return Timeline(both, np.arange(len(both)), old.every)
    if labels[0] <= old.labels[-1]:
        raise ValueError(
            f"X starts at {first}, and the fitted steps go on to {last}. append takes later steps "
            f"only: leave out what is known."
        )
    joined, N = timeline_of(both, style=old.style), len(old.labels)
    if joined.every != old.every or not np.array_equal(joined.labels[:N], old.labels):
        raise ValueError(
            f"X has times that are not on the grid of the fitted steps (every {old.every}), such "
            f"as {first!r}."
        )
    return joined


_KINDS = {"i": "number", "f": "number", "M": "date", "U": "text"}
