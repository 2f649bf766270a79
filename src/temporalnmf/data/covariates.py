"""Covariates as users give them, put at the steps of a series."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array
from ..effects.covariates import Covariates, check_size, missing_values
from ..messages.errors import ArgumentError
from ..reading import labels_of
from ..reading.containers import Labelled
from ..timeline.grid import Timeline, time_texts, timeline_of_labels


class Wanted(NamedTuple):
    """Steps whose covariates are needed: `texts` are their times as the user writes them.

    Values without labels belong to the steps `rows`, those of the rows of X.
    """

    labels: Array
    rows: Array
    texts: list[str]
    style: str
    where: str  # as in "values are missing for {where} 2001-01-01, …"

    @classmethod
    def of(cls, timeline: Timeline, first: int = 0) -> Wanted:
        """The steps of a timeline from a step on."""
        rows = timeline.rows[timeline.rows >= first] - first
        texts = time_texts(timeline.times[first:])
        where = "the steps" if first == 0 else "the appended steps"
        return cls(timeline.labels[first:], rows, texts, timeline.style, where)

    @classmethod
    def ahead(cls, timeline: Timeline, steps: int) -> Wanted:
        """The steps after the end of a timeline."""
        texts = time_texts(timeline.following(steps))
        labels, rows = timeline.labels_after(steps), np.arange(steps)
        return cls(labels, rows, texts, timeline.style, "the forecast of")


def covariates_at(
    given: ArrayLike | None, wanted: Wanted, names: tuple[str, ...] | None = None
) -> Covariates | None:
    """The covariates of the wanted steps, None if there are none.

    Parameters
    ----------
    given : array, frame, series or None
        (rows,) or (rows, C). With labels, rows are found by their time, and others are left out.
    wanted : Wanted
    names : tuple of str, default=None
        The covariates of the fit; None in a fit.
    """
    if given is None:
        if names:
            raise missing_values(names, wanted.texts, wanted.where)
        return None
    if names == ():
        problem = "was given, and the model was fitted without covariates."
        raise ArgumentError("covariates", _Short(given), problem, "Leave it out, or fit with it.")
    found = labels_of(given, "covariates") or Labelled(given)
    cells, own = _numbers(found), _names(found, given, names)
    values = np.full((len(wanted.labels), cells.shape[1]), np.nan)
    if found.rows is None:
        if len(cells) != len(wanted.rows):
            found_rows, n = "1 row" if len(cells) == 1 else f"{len(cells)} rows", len(wanted.rows)
            needed = "1 is" if n == 1 else f"{n} are"
            of = wanted.where if wanted.where != "the forecast of" else "the forecast"
            raise ValueError(
                f"covariates has {found_rows}, and {needed} needed for {of}. Give one row for "
                f"each step, or a frame with times as its index."
            )
        values[wanted.rows] = cells
    else:
        line = timeline_of_labels(found.rows, found.corner, "covariates", wanted.style)
        _fill(values, cells, line, wanted)
    if names is not None:
        values = values[:, _order(own, names)]
    known = own if names is None else names
    absent = np.flatnonzero(np.isnan(values).any(axis=1)).tolist()
    if absent:
        raise missing_values(known, [wanted.texts[n] for n in absent], wanted.where)
    check_size(known, values, wanted.texts)
    return Covariates(known, values)


def _fill(values: Array, cells: Array, line: Timeline, wanted: Wanted) -> None:
    """Set the values of the steps that have a row; those of others stay NaN."""
    labels = line.labels[line.rows]
    if labels.dtype.kind != wanted.labels.dtype.kind:
        found, expected = time_texts(line.times)[0], wanted.texts[0]
        remedy = "Give it the times of X, or values without labels (np.asarray) in its order."
        raise ValueError(
            f"covariates has times such as {found!r}, X such as {expected!r}. {remedy}"
        )
    order = np.argsort(labels, kind="stable")
    places = np.searchsorted(labels, wanted.labels, sorter=order)
    places = order[np.minimum(places, len(labels) - 1)]
    there = labels[places] == wanted.labels
    values[there] = cells[places[there]]


def _numbers(found: Labelled) -> Array:
    """The cells as numbers (rows, C)."""
    if isinstance(found.cells, str | PathLike | Mapping):
        expected = "expected a frame with times as its index, or an array with a row per step"
        raise ValueError(f"covariates is of type {type(found.cells).__name__}: {expected}.")
    raw = np.asarray(found.cells)
    if raw.dtype.kind == "c":
        raise ValueError("covariates has complex numbers among its values: expected real ones.")
    if raw.dtype.kind == "O":  # pandas.NA is not a number, and not text either
        absent = np.frompyfunc(lambda cell: type(cell).__name__ == "NAType", 1, 1)(raw)
        raw = np.where(absent.astype(bool), np.nan, raw)
    try:
        cells = np.asarray(raw, dtype=float)
    except (TypeError, ValueError) as error:
        expected = "expected numbers; turn categories into columns of 0 and 1 (pandas.get_dummies)"
        raise ValueError(f"covariates has text or dates among its values: {expected}.") from error
    cells = cells[:, None] if cells.ndim == 1 else cells
    if cells.ndim != 2 or not cells.size:
        raise ValueError(f"covariates has shape {cells.shape}: expected (rows, covariates).")
    return cells


def _names(found: Labelled, given: object, names: tuple[str, ...] | None) -> tuple[str, ...]:
    """The names of the columns."""
    n = 1 if np.ndim(found.cells) == 1 else np.shape(found.cells)[1]
    if found.columns is not None:
        own = tuple(found.columns)
        if len(set(own)) < len(own):
            twice = next(name for name in own if own.count(name) > 1)
            raise ValueError(f"covariates has two columns {twice!r}. Rename one of them.")
        return own
    if names is not None:
        if n != len(names):
            raise ValueError(f"covariates has {n} columns, and the fit had {', '.join(names)}.")
        return names
    name = getattr(given, "name", None)
    if n == 1 and isinstance(name, str):
        return (name,)
    return tuple(f"covariate {j + 1}" for j in range(n))


def _order(own: tuple[str, ...], names: tuple[str, ...]) -> list[int]:
    """The columns of the covariates of the fit."""
    for name in names:
        if name not in own:
            remedy = f"Give the covariates of the fit: {', '.join(names)}."
            raise ValueError(f"covariates lacks the column {name!r}. {remedy}")
    return [own.index(name) for name in names]


class _Short:
    """A value in a message, by its type."""

    def __init__(self, given: object) -> None:
        self.given = given

    def __repr__(self) -> str:
        return f"<{type(self.given).__name__}>"
