"""Hyper-parameters to try for each chain: around the defaults, from loose to tight."""

from __future__ import annotations

from itertools import product
from typing import Any

Grid = list[dict[str, Any]]

# A model without factorization: each hidden step is predicted by the observed one before it.
LAST_VALUE = "last_value"

# "100/level": in units of the mean activation, for chains that are not scale-free.
OUR_GRIDS: dict[str, Grid] = {
    "none": [{}],
    "gap": [{"alpha": a} for a in (0.1, 1.0, 10.0)],
    "rate": [{"alpha": a} for a in (10.0, 100.0, 1000.0)],
    "hier_rate": [{"alpha_z": a, "alpha_h": a} for a in (20.0, 200.0, 2000.0)],
    "shape": [{"alpha": f"{a}/level"} for a in (10, 100, 1000)],
    "hier_shape": [{"alpha": 1.0, "beta": f"{b}/level"} for b in (20, 200, 2000)],
    "bgar": [{"alpha": a, "rho": r} for a, r in product((1.0, 5.0), (0.9, 0.99))],
}


def in_units(values: dict[str, Any], level: float) -> dict[str, Any]:
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
