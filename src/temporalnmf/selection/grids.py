"""Hyper-parameters to try for each chain: around the defaults, from loose to tight."""

from __future__ import annotations

from itertools import product

from ..chains.parameters import Parameter

Settings = dict[str, Parameter]
Grid = list[Settings]

# A baseline without factorization: a hidden step is predicted by the last observed one before it.
LAST_VALUE = "last_value"

# "100/level" is 100 over the mean activation, for chains that are not scale-free.
OUR_GRIDS: dict[str, Grid] = {
    "none": [{}],
    "gap": [{"alpha": a} for a in (0.1, 1.0, 10.0)],
    "rate": [{"alpha": a} for a in (10.0, 100.0, 1000.0)],
    "hier_rate": [{"alpha_z": a, "alpha_h": a} for a in (20.0, 200.0, 2000.0)],
    "shape": [{"alpha": f"{a}/level"} for a in (10, 100, 1000)],
    "hier_shape": [{"alpha": 1.0, "beta": f"{b}/level"} for b in (20, 200, 2000)],
    "bgar": [{"alpha": a, "rho": r} for a, r in product((1.0, 5.0), (0.9, 0.99))],
}

# For posterior draws, which can learn hyper-parameters and gain from tighter chains.
GIBBS_GRIDS: dict[str, Grid] = {
    "gap": [{"alpha": 1.0}, {"alpha": "learn"}],
    "rate": [{"alpha": a} for a in (300.0, 10_000.0, "learn")],
    "hier_rate": [{"alpha_z": a, "alpha_h": a} for a in (600.0, 20_000.0, "learn")],
    "shape": [{"alpha": a} for a in ("100/level", "5000/level", "learn")],
    "hier_shape": [{"alpha": 1.0, "beta": b} for b in ("200/level", "10000/level", "learn")],
    "bgar": [{"alpha": a, "rho": r} for a, r in ((1.0, 0.97), (50.0, 0.97), ("learn", "learn"))],
}


def in_units(values: Settings, level: float) -> Settings:
    """Hyper-parameters with values such as "100/level" computed for a mean activation.

    Examples
    --------
    >>> in_units({"alpha": 1.0, "beta": "200/level"}, level=50.0)
    {'alpha': 1.0, 'beta': 4.0}
    """
    return {
        name: float(value.removesuffix("/level")) / level
        if isinstance(value, str) and value.endswith("/level")
        else value
        for name, value in values.items()
    }
