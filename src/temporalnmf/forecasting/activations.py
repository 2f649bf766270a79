"""Activations of a series at the components of a fitted model."""

from __future__ import annotations

from typing import Any

from .._typing import Array
from ..data.series import AnySeries, Series
from ..inference.fitting import check_observed, infer_mode
from ..sampling.inference import infer_draws


def infer(model: Any, series: AnySeries, *, continue_chain: bool = False) -> Array:
    """Activations (K, N) of all steps at fixed components, missing ones filled."""
    check_observed(series, continue_chain)
    if model.posterior_ is None:
        return infer_mode(model, series, continue_chain=continue_chain)
    if not isinstance(series, Series):
        raise ValueError(
            "X is not in memory, and a model that was fitted by draws wants it there. Give the "
            "steps that are wanted as an array."
        )
    return infer_draws(model, series, continue_chain=continue_chain).expected.mean(axis=0).T
