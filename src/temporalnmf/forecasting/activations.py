"""Activations of a series at the components of a fitted model."""

from __future__ import annotations

from typing import Any

from .._typing import Array
from ..data.series import AnySeries, Series
from ..inference.config import Factors
from ..inference.fitting import check_observed, infer_mode
from ..sampling.inference import FittedSteps, Inferred, infer_draws


def infer(model: Any, series: AnySeries, *, continue_chain: bool = False) -> Array:
    """Activations (K, N) of all steps at fixed components, missing ones filled."""
    check_observed(series, continue_chain)
    if model.posterior_ is None:
        fitted = Factors(model.components_, model.activations_, model.chain_)
        return infer_mode(model._config(), fitted, series, continue_chain=continue_chain)
    if not isinstance(series, Series):
        raise ValueError(
            "X is not in memory, and a model that was fitted by draws wants it there. Give the "
            "steps that are wanted as an array."
        )
    return draw_activations(model, series, continue_chain).expected.mean(axis=0).T


def draw_activations(model: Any, series: Series, continue_chain: bool = False) -> Inferred:
    """Activations of a series for components that were drawn."""
    fitted = FittedSteps(model._kept, len(model.activations_), model._fingerprint)
    return infer_draws(
        model._config(), model.posterior_, fitted, series, continue_chain=continue_chain
    )
