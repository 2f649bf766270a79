"""Is the last step complete? A forecast starts from it."""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..messages.formatting import number_text
from .subject import Subject

# Steps before the last one that it is compared with; fewer than some tell nothing.
_BEFORE, _FEWEST = 10, 3
# Of their median, below which a total is far below; of the next largest error, above which a step
# is by far the worst.
_FAR_BELOW, _BY_FAR = 0.5, 2.0


def last_step_words(subject: Subject) -> str:
    """A question to the reader if the last step looks half full; empty if it does not."""
    if subject.errors is None:
        return ""
    seen = np.flatnonzero(np.isfinite(subject.errors.error))
    last, before = int(seen[-1]), seen[-1 - _BEFORE : -1]
    if len(before) < _FEWEST:
        return ""
    unit = subject.unit
    which = f"The last {unit.noun} ({subject.texts[last]})"
    starts = " The forecast starts from it." if subject.n_ahead else ""
    total, usual = _last_and_usual(subject, last, before)
    if total < _FAR_BELOW * usual:
        return (
            f"{which} has a total of {number_text(total)}, far below the {unit.plural} before "
            f"(about {number_text(usual)}): is it complete?{starts}"
        )
    error = subject.errors.error[seen]
    if error[-1] > _BY_FAR * error[:-1].max():
        return f"{which} is by far the one that the model describes worst: is it complete?{starts}"
    return ""


def _last_and_usual(subject: Subject, last: int, before: Array) -> tuple[float, float]:
    """Total of the last step, and the median of those before at its exposure and its entries."""
    assert subject.errors is not None
    size = np.asarray(subject.model.exposure_)
    # Single entries that are missing do not count against a step.
    series = subject.model._series
    assert series is not None
    _, weight = series.row(last)
    expected = subject.model.activations_[last] @ subject.model.components_
    part = float(expected[weight > 0.0].sum() / expected.sum())
    usual = np.median(subject.errors.observed[before] / size[before]) * size[last] * part
    return float(subject.errors.observed[last]), float(usual)
