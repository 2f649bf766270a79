"""Curves of the charts: rounded, and thinned for a small file."""

from __future__ import annotations

import numpy as np

from .._typing import Array
from .runs import run_charts
from .seasons import adjusted_curves, season_charts
from .subject import Subject
from .texts import Content, number, numbers, thinned

# Largest numbers of values in a chart, about nine bytes each, and of points of a line.
_MOST_NUMBERS, _MOST_POINTS = 90_000, 2_000
# Digits of a position on the axis, which may be in milliseconds.
_EXACT = 15


def charts(subject: Subject) -> Content:
    """All curves, for report.js."""
    model, kept = subject.model, _kept(subject)
    most = min(_MOST_POINTS, _MOST_NUMBERS // (6 * subject.n_components))
    ahead = np.arange(0, subject.n_ahead, max(1, -(-subject.n_ahead // most)))
    kind, places = _axis(subject)
    drawn = np.concatenate([kept, subject.n_steps + ahead]).astype(int)
    texts = [*subject.texts, *subject.texts_ahead]
    some = f"{len(kept):,} of {subject.unit.counted(subject.n_steps)} are drawn."
    errors = subject.errors
    return {
        "kind": kind,
        "noun": subject.unit.noun,
        "x": numbers(places[drawn], _EXACT),
        "text": [texts[n] for n in drawn],
        "past": len(kept),
        "window": min(subject.window, len(kept)),
        "divide": number(_edge(places, subject.n_steps), _EXACT) if subject.n_ahead else None,
        "gaps": [numbers([_edge(places, n) for n in gap], _EXACT) for gap in subject.gaps],
        "thinned": some if len(kept) < subject.n_steps else None,
        "components": _component_curves(subject, kept, ahead),
        "seasons": season_charts(subject),
        "adjusted": adjusted_curves(subject, kept, ahead),
        "totals": _total_curves(subject, kept, ahead) if subject.n_ahead else None,
        "errors": None if errors is None else numbers(errors.error[kept]),
        "worst": np.searchsorted(kept, sorted(subject.worst)).tolist(),
        "runs": run_charts(subject),
        # Posterior draws have traces of their runs instead.
        "trace": None
        if model.posterior_ is not None
        else {
            "x": numbers(thinned(model.history_iterations_, 500), _EXACT),
            "y": numbers(thinned(model.history_, 500), 6),
        },
    }


def _axis(subject: Subject) -> tuple[str, Array]:
    """Kind of the axis, and positions of all steps, those ahead included."""
    times = subject.model.times_
    if subject.n_ahead:
        ahead = subject.ahead.times
        if ahead.dtype.kind != times.dtype.kind:  # uneven times continue as "+1", "+2", …
            return "text", np.arange(len(times) + len(ahead), dtype=float)
        times = np.concatenate([times, ahead])
    kind, places = "text", np.arange(len(times), dtype=float)
    if times.dtype.kind == "M":
        kind, places = "date", times.astype("datetime64[ms]").astype(np.int64).astype(float)
    elif times.dtype.kind in "iuf":
        kind, places = "number", times.astype(float)
    # If times do not increase, steps are drawn evenly spaced.
    return (kind, places) if np.all(np.diff(places) > 0) else ("text", np.arange(len(times)))


def _kept(subject: Subject) -> Array:
    """Past steps to draw: recent ones, some earlier ones, peaks, and the largest errors."""
    lines = 4 if subject.model.season_ else 3  # ends of the band, activations, adjusted ones
    most = min(_MOST_POINTS, _MOST_NUMBERS // (lines * subject.n_components))
    recent = min(subject.window, most // 2)
    older = subject.n_steps - recent
    stride = max(1, -(-older // max(most - recent, 1)))
    peaks = np.argmax(subject.model.activations_, axis=0)
    parts = [np.arange(0, older, stride), np.arange(older, subject.n_steps), peaks, subject.worst]
    return np.unique(np.concatenate(parts).astype(int))


def _edge(places: Array, n: int) -> float:
    """Position half-way between steps n − 1 and n; half a step outside at the ends."""
    if n <= 0:
        return float(places[0] - (places[1] - places[0]) / 2)
    if n >= len(places):
        return float(places[-1] + (places[-1] - places[-2]) / 2)
    return float((places[n - 1] + places[n]) / 2)


def _component_curves(subject: Subject, kept: Array, ahead: Array) -> list[Content]:
    H = subject.model.activations_[kept]
    if subject.n_ahead:
        H = np.concatenate([H, subject.ahead.activations[ahead]])
    bands = []
    for i, level in enumerate(subject.levels):
        # Narrower bands are drawn for the steps ahead only.
        past = kept if i == 0 and subject.past.has_bands else kept[:0]
        low, high = _ends(subject, level, past, ahead)
        if len(low):
            bands.append((level, len(kept) - len(past), low, high))
    return [
        {
            "name": name,
            "y": numbers(H[:, k]),
            "bands": [_band(level, n, low[:, k], high[:, k]) for level, n, low, high in bands],
        }
        for k, name in enumerate(subject.names)
    ]


def _ends(subject: Subject, level: float, past: Array, ahead: Array) -> tuple[Array, Array]:
    """Lower and upper ends (steps, K) of a band at some past steps, then at some ahead."""
    ends = [np.empty((2, 0, subject.n_components))]
    if len(past):
        ends.append(np.stack(subject.past.interval(level, of="components"))[:, past])
    if subject.n_ahead and subject.ahead.has_bands:
        ends.append(np.stack(subject.ahead.interval(level, of="components"))[:, ahead])
    low, high = np.concatenate(ends, axis=1)
    return low, high


def _band(level: float, start: int, low: Array, high: Array) -> Content:
    """A band that begins at the drawn step `start`."""
    return {"level": level, "from": start, "low": numbers(low), "high": numbers(high)}


def _total_curves(subject: Subject, kept: Array, ahead: Array) -> Content:
    model, errors = subject.model, subject.errors
    fitted = model.exposure_ * model.activations_.sum(axis=1)
    point, bands = subject.totals_ahead()
    return {
        "observed": None if errors is None else numbers(errors.observed[kept]),
        "model": numbers(fitted[kept]) + numbers(point[ahead]),
        "bands": [_band(level, len(kept), low[ahead], high[ahead]) for level, low, high in bands],
    }
