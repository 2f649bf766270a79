"""Words of the library about a model, for somebody who reads its report and did not make it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..predicting import NO_LAW
from .units import Unit

UNCHECKED = "These intervals take the model at its word; they were not checked against the past."
_NO_INTERVALS = (
    "This kind of model, plain NMF, does not say how sure it is: there are no intervals."
)
_LONG_RUN = " In the long run: "
_POINTS = {
    "mean": "the expected value",
    "mode": "the most probable value",
    "median": "the middle of what may come",
    "last value": "the last value, which goes on",
}


def note_text(note: str, names: Sequence[str], unit: Unit) -> str:
    """A note of a forecast without advice to its author and without the very long run.

    Examples
    --------
    >>> from temporalnmf.report.units import Unit
    >>> note_text("Checked 2 step(s) ahead. model.calibrate(steps=5) checks all.", [], Unit("day"))
    'Checked 2 days ahead.'
    >>> note_text("Component 2 explodes. In the long run: The mean grows.", ["a", "b"], Unit("day"))
    '“b” explodes.'
    """
    if note == NO_LAW:
        return _NO_INTERVALS
    if "at its word" in note:
        return UNCHECKED
    note = note.split(_LONG_RUN)[0]
    note = " ".join(s for s in re.split(r"(?<=[.!?]) +", note) if not re.search(r"\bmodel\.\w", s))
    note = re.sub(r"\b(\d+) step\(s\)", lambda found: unit.counted(int(found[1])), note)
    return re.sub(r"\bComponent (\d+)\b", lambda found: f"“{names[int(found[1]) - 1]}”", note)


def notes_text(notes: Sequence[str], names: Sequence[str], unit: Unit) -> list[str]:
    """Notes, those that become empty or alike left out."""
    said = (note_text(str(note), names, unit) for note in notes)
    return [note for note in dict.fromkeys(said) if note]


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
