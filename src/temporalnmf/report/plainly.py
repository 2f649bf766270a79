"""Words of the library about a model, for somebody who reads its report and did not make it."""

from __future__ import annotations

from typing import Any

_POINTS = {
    "mean": "the expected value",
    "mode": "the most probable value",
    "median": "the middle of what may come",
    "last value": "the last value, which goes on",
}


def point_text(point: str) -> str:
    """What the line of a forecast is.

    Examples
    --------
    >>> point_text("conditional mean"), point_text("posterior mode")
    ('the expected value', 'the most probable value')
    """
    return next((words for sign, words in _POINTS.items() if sign in point.split(" (")[0]), point)


def long_run(chain: Any) -> str:
    """What the chain does if it is left alone for ever, and what that means here; may be empty."""
    if chain.name == "none":
        return ""
    regime = chain.regime()
    regimes = dict.fromkeys(map(str, regime if isinstance(regime, list) else [regime]))
    return (
        f"{' '.join(regimes)} This is about a component that is left alone for ever, without any "
        f"data: almost every path means nearly all of the futures that could be simulated, while a "
        f"few rare ones may pull the mean elsewhere. It says little of the next few steps."
    )
