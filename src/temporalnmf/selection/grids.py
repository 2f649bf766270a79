"""Hyper-parameters to try, which every chain has: around the defaults, from loose to tight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import registry
from ..chains.base import Grid

# A model without factorization: each hidden step is predicted by the observed one before it.
LAST_VALUE = "last_value"


def _grids(of: str) -> dict[str, Grid]:
    """The attribute `of` of all chains in the registry that have it."""
    found = {name: getattr(registry.load(path), of) for name, path in registry.CHAINS.items()}
    return {name: grid for name, grid in found.items() if grid}


OUR_GRIDS = _grids("grid")
# Posterior draws can learn what a mode cannot, and gain from tighter chains.
GIBBS_GRIDS = _grids("draws_grid")


def in_units(values: Mapping[str, Any], level: float) -> dict[str, Any]:
    """Hyper-parameters with "100/level" turned into numbers.

    Examples
    --------
    >>> in_units({"alpha": 1.0, "beta": "200/level"}, level=50.0)
    {'alpha': 1.0, 'beta': 4.0}
    """
    return {name: _in_units(value, level) for name, value in values.items()}


def _in_units(value: Any, level: float) -> Any:
    if isinstance(value, str) and value.endswith("/level"):
        return float(value.removesuffix("/level")) / level
    return value
