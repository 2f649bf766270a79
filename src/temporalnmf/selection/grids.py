"""Hyper-parameters to try: each chain has a grid around its defaults, from loose to tight."""

from __future__ import annotations

from collections.abc import Mapping

from .. import registry
from ..chains.base import Grid
from ..chains.parameters import Parameter

Settings = Mapping[str, Parameter]

# A baseline without factorization: a hidden step is predicted by the last observed one before it.
LAST_VALUE = "last_value"
# The same, by the last observed step of the same position in a cycle, such as the same weekday.
LAST_CYCLE = "last_cycle"
NAIVE = (LAST_VALUE, LAST_CYCLE)


def _grids(of: str) -> dict[str, Grid]:
    """The attribute `of` of all chains in the registry that have it."""
    found = {name: getattr(registry.load(path), of) for name, path in registry.CHAINS.items()}
    return {name: grid for name, grid in found.items() if grid}


OUR_GRIDS = _grids("grid")
# Posterior draws can learn more than a mode can, and gain from tighter chains.
GIBBS_GRIDS = _grids("draws_grid")


def in_units(values: Settings, level: float) -> dict[str, Parameter]:
    """Hyper-parameters with values such as "100/level" computed for a mean activation."""
    found = dict(values)
    for name, value in values.items():
        if isinstance(value, str) and value.endswith("/level"):
            found[name] = float(value.removesuffix("/level")) / level
    return found
