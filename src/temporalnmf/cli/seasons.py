"""Seasons of a model, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..messages.formatting import percent
from .console import Voice

if TYPE_CHECKING:
    from .._typing import Array
    from ..estimator import TemporalNMF

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def show_seasons(model: TemporalNMF, voice: Voice) -> None:
    """Print the seasons of a model, and why it has them, or none."""
    from ..summary import component_summary

    voice.say(f"{'Season' if model.season_ else 'No season'}: {model.season_reason_}.")
    summaries = component_summary(model)
    for name, factors in model.season_.items():
        voice.say(f"Factors of the {name}, by component:")
        places = _places(name, factors.shape[1])
        for one, row in zip(summaries, factors, strict=True):
            voice.say(f"  {one.number}  {one.name}: {_extremes(row, places)}")


def _extremes(factors: Array, places: list[str]) -> str:
    """Where in the cycle the factors are largest and smallest."""
    high, low = int(factors.argmax()), int(factors.argmin())
    above, below = percent(factors[high] - 1.0), percent(1.0 - factors[low])
    return f"most {places[high]} ({above} above its level), least {places[low]} ({below} below)"


def _places(name: str, n: int) -> list[str]:
    """The positions of a cycle, as in "most on Friday"."""
    if name == "week" and n == len(_WEEKDAYS):
        return [f"on {day}" for day in _WEEKDAYS]
    if name == "year" and n == len(_MONTHS):
        return [f"in {month}" for month in _MONTHS]
    return [f"at position {number} of {n}" for number in range(1, n + 1)]
