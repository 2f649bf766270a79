"""Masks and exposures, put into the order of the data by their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..reading.containers import labels_of
from ..timeline.grid import AS_GIVEN, Timeline, time_texts, timeline_of_labels

if TYPE_CHECKING:
    from .._typing import Array  # not at run time: it loads the compiler


def aligned(
    given: ArrayLike | None,
    name: str,
    timeline: Timeline | None,
    features: list[str] | None = None,
    of: str = "X",
) -> ArrayLike | None:
    """Exposures or a mask in the order of the rows and features of X.

    The labels of a pandas frame or series, a polars frame or an xarray array have to be those of
    X, in any order. An index that numbers rows from 0 is not a label. If X or `given` has no
    labels, `given` is returned unchanged.

    Parameters
    ----------
    given : array, frame or series, or None
    name : str
        Its name in error messages.
    timeline : Timeline or None
        The times of X, and the steps of its rows.
    features : list of str or None
        The names of the columns of X, None if they have none.
    of : str
        The name of X in error messages.
    """
    if timeline is None or (found := labels_of(given, name)) is None:
        return given
    cells = np.asarray(found.cells)
    if found.rows is not None:
        own = timeline_of_labels(found.rows, found.corner, name, timeline.style)
        cells = cells[_row_order(own, timeline, name, of)]
    if cells.ndim == 2 and cells.shape[1] == 1 and name == "exposure":
        return cells[:, 0]
    if cells.ndim == 2 and found.columns is not None and features is not None:
        names = np.array(found.columns), np.array(features), found.columns, features
        cells = np.take(cells, _order(*names, name, "feature", of), axis=1)
    return cells


def aligned_ahead(exposure: ArrayLike | None, timeline: Timeline, steps: int) -> ArrayLike | None:
    """Exposures of the steps after the end of a timeline, in order."""
    number = np.arange(steps)
    unknown = timeline.numbered or timeline.every == AS_GIVEN
    labels = number if unknown else timeline.labels_after(steps)
    ahead = Timeline(labels, number, timeline.every, style=timeline.style)
    return aligned(exposure, "exposure", ahead, of="the forecast")


def _row_order(own: Timeline, timeline: Timeline, name: str, of: str) -> Array | slice:
    """For each row of X, the row with its time in data that have the times `own`."""
    mine, wanted = own.labels[own.rows], timeline.labels[timeline.rows]
    if timeline.numbered and not np.array_equal(np.sort(mine), np.sort(wanted)):
        return slice(None)  # X has no labels
    texts, wanted_texts = (time_texts(line.times[line.rows]) for line in (own, timeline))
    kind, wanted_kind = (_KINDS[labels.dtype.kind] for labels in (mine, wanted))
    if kind != wanted_kind:
        found = f"{kind} as its times, such as {texts[0]!r}"
        wanted_times = f"{wanted_kind}, such as {wanted_texts[0]!r}"
        raise ValueError(f"{name} has {found}, and {of} has {wanted_times}. {_remedy('time', of)}")
    return _order(mine, wanted, texts, wanted_texts, name, "time", of)


_KINDS = {"i": "numbers", "f": "numbers", "M": "dates", "U": "text"}


def _remedy(what: str, of: str) -> str:
    return f"Give it the {what}s of {of}, or values without labels (np.asarray) in its order."


def _order(
    mine: Array, wanted: Array, texts: list[str], expected: list[str], name: str, what: str, of: str
) -> Array:
    """The index in `mine` of each wanted label; both must have the same labels."""
    sorter = np.argsort(mine, kind="stable")
    places = sorter[np.minimum(np.searchsorted(mine, wanted, sorter=sorter), len(mine) - 1)]
    absent = mine[places] != wanted
    surplus = np.setdiff1d(np.arange(len(mine)), places)
    if not absent.any() and not len(surplus):
        return places
    if absent.any():
        found = f"lacks the {what} {expected[int(np.argmax(absent))]!r} of {of}"
    else:
        found = f"has the {what} {texts[int(surplus[0])]!r}, which {of} does not have"
    raise ValueError(f"{name} {found}. {_remedy(what, of)}")
