"""Checks of the data that users pass in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_array

from .._typing import Array
from ..likelihoods.base import Likelihood
from ..messages.arguments import check_sizes
from ..messages.errors import Arg, ArgumentError, Text
from ..messages.warning import warn
from ..reading import TimeTable, labels_of, read_table
from ..reading.sheet import numbered_names, refuse_total
from ..timeline.grid import AS_GIVEN, DAYS, Timeline, timeline_of, timeline_of_labels
from .aligning import aligned
from .modulation import by_days
from .series import Matrix, Series, dense

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

# Types of X: arrays, frames, sparse matrices, tables, paths of tables.
Data = ArrayLike | TimeTable | PathLike[str]


class TimesWarning(UserWarning):
    """How the times of data were read."""


class Checked(NamedTuple):
    """Checked data, the cells that were passed, and feature names that these do not have."""

    series: Series
    cells: ArrayLike
    names: Array | None


def check_series(
    X: Data,
    mask: ArrayLike | None,
    exposure: ArrayLike | None,
    likelihood: Likelihood,
    *,
    like: Timeline | None = None,
) -> Checked:
    """Check data with their mask and exposures.

    Parameters
    ----------
    X : array, frame, xarray array, sparse matrix, TimeTable or path of a table, (N, F)
        NaN is missing in dense data. Rows with labels are put on a regular grid. Times of frames
        are recognised as in files: see `reading.containers.labels_of`.
    mask : None, (N,) or (N, F)
        True or 1: observed; False or 0: missing; other positive numbers: weights. A mask with
        labels, such as a frame, is put into the order of X: see `aligned`.
    exposure : None, (N,) or "days"
        Labels are treated as those of `mask`. "days" are the days in each step, by the calendar.
    likelihood : Likelihood
    like : Timeline, default=None
        Timeline of the fitted data, whose style of dates is expected. None in a fit.
    """
    given = _unwrapped(X, mask, exposure, "" if like is None else like.style)
    cells = _numbers(given.cells)
    if like is None and given.features is not None:
        refuse_total(cells, given.features, "X")
    timeline = given.timeline or timeline_of(np.arange(cells.shape[0]))
    weights = check_mask(aligned(given.mask, "mask", timeline, given.features), cells.shape)
    if given.observed is not None:
        seen = check_mask(given.observed, cells.shape)
        if isinstance(weights, np.ndarray):
            weights = weights * seen
        else:
            weights = weights.multiply(seen).tocsr()
    days = by_days(given.exposure)
    if by_days(exposure):
        _refuse_column_of_days(given.features)
    numbers = None if days else aligned(given.exposure, "exposure", timeline)
    sizes = check_exposure(numbers, cells.shape[0])
    columns = list(getattr(given.cells, "columns", range(cells.shape[1])))
    checked = _checked_entries(cells, weights, likelihood, columns)
    series = Series(*checked, sizes, features=given.features).on_grid(timeline)
    return Checked(series.by_days(like) if days else series, given.cells, given.names)


def checked_part(
    X: Matrix, weights: Matrix, exposure: Array, likelihood: Likelihood, first: int
) -> Series:
    """Check some of the features as `check_series` checks all of them.

    `weights` are those of a checked mask; `first` is the number of the first feature.
    """
    X = _numbers(X)
    weights = check_mask(weights if weights.shape[1] > 1 else weights[:, 0], X.shape)
    columns = range(first, first + X.shape[1])
    return Series(*_checked_entries(X, weights, likelihood, columns), exposure)


def check_features(names: Array | None, n: int, fitted_names: Array | None, n_fitted: int) -> None:
    """Refuse features that differ from those of the fit; names that are None are not compared."""
    remedy = "Give the same features in the same order."
    if n != n_fitted:
        raise ValueError(f"X has {n} features, and the data of the fit had {n_fitted}. {remedy}")
    if names is None or fitted_names is None:
        return
    for new, old in zip(names, fitted_names, strict=True):
        if new != old:
            found = f"X has other features than the fit: {new!r} in the place of {old!r}"
            raise ValueError(f"{found}. {remedy}")


class _Given(NamedTuple):
    """Arguments of a user, with cells and labels of X separated."""

    cells: ArrayLike
    mask: ArrayLike | None
    exposure: ArrayLike | None
    timeline: Timeline | None = None
    features: list[str] | None = None
    names: Array | None = None
    observed: Array | None = None


def _unwrapped(X: Data, mask: ArrayLike | None, exposure: ArrayLike | None, style: str) -> _Given:
    """Cells and labels of the data; `style` is that of the dates of the fit."""
    if isinstance(X, str | PathLike):
        X = read_table(X)
    if isinstance(X, TimeTable):
        timeline = replace(X.timeline, rows=np.arange(X.X.shape[0]))
        features = None if X.unnamed else X.features.tolist()
        exposure = X.exposure if exposure is None else exposure
        names = np.asarray(X.features, dtype=object)
        return _Given(X.X, mask, exposure, timeline, features, names, X.observed)
    found = labels_of(X, "X")
    if found is None or np.ndim(found.cells) != 2:
        return _Given(X, mask, exposure)
    given = _Given(found.cells, mask, exposure, features=found.columns)
    index = getattr(found.cells, "index", None)
    if index is not None:
        _check_time_index(index, found.column)
    rows = index if found.rows is None else found.rows
    if hasattr(X, "dims"):
        columns = found.columns or numbered_names(np.shape(found.cells)[1])
        times = None if rows is None else timeline_of(rows, name="X", style=style)
        given = given._replace(names=np.array(columns, dtype=object), timeline=times)
    elif rows is not None:
        given = given._replace(timeline=timeline_of_labels(rows, found.corner, style=style))
    _warn_of_times(given.timeline, found.column if found.numbers else None)
    if given.timeline is not None and found.column is not None:
        notes = f"times are in column {found.column!r}", *given.timeline.notes
        given = given._replace(timeline=replace(given.timeline, notes=notes))
    return given


def _numbers(cells: ArrayLike) -> Matrix:
    """Floating-point numbers, dense or sparse."""
    try:
        checked: Matrix = check_array(
            cells,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
            estimator="TemporalNMF",
            input_name="X",
        )
    except (TypeError, ValueError) as error:
        _refuse_text_and_dates(cells, error)
        raise
    # polars converts dates to numbers without an error.
    if any(getattr(kind, "is_temporal", bool)() for kind in getattr(cells, "dtypes", ())):
        _refuse_text_and_dates(cells, None)
    return checked


def _warn_of_times(timeline: Timeline | None, column: str | None) -> None:
    """Warn of a column of numbers that is taken as times, and of times that are not on a grid."""
    if column is not None:
        remedy = f"Use X.set_index({column!r}) to say so; if it is a feature, rename it."
        found = f"X: column {column!r} is taken as the times, not as a feature"
        warn(f"{found}. {remedy}", TimesWarning)
    if timeline is None:
        return
    uneven = timeline.every == AS_GIVEN and timeline.labels.dtype.kind != "U"
    if len(timeline.absent) or (uneven and len(timeline.labels) > 1):
        missing = " They are taken as missing steps." if len(timeline.absent) else ""
        warn(f"X: {timeline.notes[-1]}.{missing}", TimesWarning)


def _check_time_index(index: pd.Index, column: str | None) -> None:
    """Refuse missing, duplicate or mixed times; `column` held them, or the index if None."""
    where, by = ("its index", "level=0") if column is None else (f"column {column!r}", repr(column))
    if index.nlevels == 1 and index.hasnans:
        row = int(np.argmax(index.isna()))
        raise ValueError(f"X has a missing time in {where}, at row {row}. Fill it in, or drop it.")
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        label = " ".join(map(str, twice)) if index.nlevels > 1 else str(twice)
        raise ValueError(
            f"X has a duplicate time {label!r} in {where}. Add up its rows, with "
            f"X.groupby({by}).sum() or, if there is a row per time and feature, with "
            f"temporalnmf.reading.as_table(X, time=…, feature=…, value=…)."
        )
    if index.nlevels == 1 and index.inferred_type.startswith("mixed"):
        found = f"an index of mixed types ({', '.join(map(repr, index[:3]))}, ...)"
        remedy = "Give all times labels of one type, or drop them with reset_index(drop=True)."
        raise ValueError(f"X has {found}, which has no order. {remedy}")


def _refuse_text_and_dates(X: ArrayLike, cause: Exception | None) -> None:
    """Raise with the name and first value of the first column that holds text or dates."""
    if np.ndim(X) != 2:
        return
    for j, column in enumerate(getattr(X, "columns", range(np.shape(X)[1]))):
        values: Iterable[object]
        if hasattr(X, "iloc"):
            values = X.iloc[:, j]
        elif hasattr(X, "columns"):
            values = cast("pl.DataFrame", X)[column]
        else:
            values = np.asarray(X, dtype=object)[:, j]
        for value in values:
            if isinstance(value, str | date | np.datetime64):
                found = f"X has text or dates in column {column!r} (value {value!r})"
                remedy = "Drop the column, use it as the index, or turn it into numbers."
                raise ValueError(f"{found}: expected numbers. {remedy}") from cause


_MASK_VALUES = (
    "1 or True for observed entries, 0 or False for missing ones, other positive numbers as weights"
)
_HELD_OUT_VALUES = "1 or True for entries to score, 0 or False for the others"


def check_mask(mask: ArrayLike | None, shape: tuple[int, int], name: str = "mask") -> Matrix:
    """Weights (N, 1) or (N, F), dense bool or float, or sparse float."""
    values = _MASK_VALUES if name == "mask" else _HELD_OUT_VALUES
    if mask is None:
        return np.ones((shape[0], 1), dtype=bool)
    checked: Matrix
    try:
        thin = sparse.issparse(mask)
        checked = sparse.csr_array(mask, dtype=float, copy=True) if thin else np.asarray(mask)
    except ValueError as error:
        found = f"{name} is ragged, its rows have different lengths"
        raise ValueError(f"{found}: expected shape {(shape[0],)} or {shape}.") from error
    if checked.shape not in {(shape[0],), shape}:
        expected = f"{(shape[0],)}, one value per time step, or {shape}, one per entry of X"
        raise ValueError(f"{name} has shape {checked.shape}: expected {expected} ({values}).")
    if not isinstance(checked, np.ndarray):
        checked.eliminate_zeros()
        numbers = checked.data
    else:
        if checked.dtype != bool:
            try:
                checked = checked.astype(np.float64)
            except (TypeError, ValueError) as error:
                expected = "expected booleans or non-negative numbers"
                raise ValueError(f"{name} has dtype {checked.dtype}: {expected}.") from error
        numbers = checked = checked.reshape(shape[0], -1)
    wrong = ~np.isfinite(numbers) | (numbers < 0)
    if wrong.any():
        raise ValueError(f"{name} contains {numbers[wrong].flat[0]}: it takes {values}.")
    return checked


def check_held_out(held_out: ArrayLike, series: Series) -> Array:
    """The held-out entries of a series, (N, 1) or (N, F), from one value per row or entry of X."""
    rows = series.rows
    ordered = aligned(held_out, "held_out", series.timeline, series.features)
    given = dense(check_mask(ordered, (len(rows), series.shape[1]), "held_out")) > 0
    hidden = np.zeros((series.n_steps, given.shape[1]), dtype=bool)
    hidden[rows] = given
    return hidden


def _checked_entries(
    X: Matrix, weights: Matrix, likelihood: Likelihood, columns: Sequence[object]
) -> tuple[Matrix, Matrix]:
    """Data and weights; refused if an observed entry is outside the domain of the likelihood."""
    if isinstance(X, np.ndarray):
        return X, _narrow(_check_dense(X, weights, likelihood, columns))
    return _check_sparse(sparse.csr_array(X), weights, likelihood, columns), _narrow(weights)


def _check_dense(
    X: Array, weights: Matrix, likelihood: Likelihood, columns: Sequence[object]
) -> Array:
    """The weights, zero where X is NaN."""
    weights = dense(weights)
    missing = np.isnan(X)
    if missing.any():
        whole = np.all(missing, axis=1, keepdims=True)
        # Weights per entry only if single entries are missing.
        only_whole = whole.sum() * X.shape[1] == missing.sum()
        weights = np.where(whole if only_whole else missing, 0.0, weights)
    seen = np.broadcast_to(weights > 0, X.shape)
    wrong = {  # NaN was handled above, entries of weight zero may hold any value
        "X has an infinite value": (np.isinf(X), "replace it, or set it to NaN"),
        _NEGATIVE: (X < 0, "the model is for non-negative data; set wrong entries to NaN"),
    }
    if not likelihood.takes_zeros:
        remedy = (
            "give it a floor, as in X = np.maximum(X, 1e-11 * np.nanmax(X)), or use {tweedie} for "
            "amounts with zeros, {poisson} for counts"
        )
        wrong[f"X has a zero, {_outside(likelihood)}"] = X == 0, remedy
    if likelihood.whole:
        wrong[f"X has a fraction, {_outside(likelihood)}"] = np.floor(X) != X, _ROUND
    for problem, (places, remedy) in wrong.items():
        places = places & seen
        if places.any():
            n, f = np.argwhere(places)[0]
            raise _wrong_entry(problem, X[n, f], n, columns[f], places, remedy)
    return weights


def check_sparse_law(likelihood: Likelihood, dense: str, floored: str) -> None:
    """Refuse sparse data if zeros are not linear in λ; `dense` and `floored` say what to give."""
    if likelihood.takes_sparse:
        return
    if likelihood.takes_zeros:
        problem = f"and zeros of the {likelihood.name} likelihood take as long as other entries"
        remedy = f"Remedy: give {dense}, or use {{other}}."
    else:
        problem = f"so it has zeros, {_outside(likelihood)}"
        remedy = f"Remedy: give it a floor, {floored}, or use {{other}}."
    other = Arg("likelihood", "'negative_binomial'") if likelihood.whole else _POISSON
    raise ValueError(Text(f"X is sparse, {problem}. {remedy}", other=other))


def _outside(likelihood: Likelihood) -> str:
    return f"which is outside the domain of the {likelihood.name} likelihood"


def _wrong_entry(
    problem: str, value: float, row: int, column: object, places: Array, remedy: str
) -> ValueError:
    where = f"{value} at row {row}, column {column!r} ({int(places.sum())} in all)"
    template = "{problem}: {where}. Remedy: " + remedy + "."
    return ValueError(Text(template, problem=problem, where=where, **_OTHERS))


_ROUND = (
    "round it if it is a count, or use {tweedie} for amounts with zeros, {gamma} for positive "
    "ones; {poisson} takes fractions as pseudo-counts"
)
_OTHERS = {name: Arg("likelihood", f"'{name}'") for name in ("poisson", "gamma", "tweedie")}
_POISSON = _OTHERS["poisson"]
_NEGATIVE = "Negative values in data passed to TemporalNMF: X has one"  # scikit-learn's words


def _check_sparse(
    X: sparse.csr_array, weights: Matrix, likelihood: Likelihood, columns: Sequence[object]
) -> sparse.csr_array:
    """X without entries of weight zero."""
    check_sparse_law(likelihood, "X.toarray()", "np.maximum(X.toarray(), floor)")
    X = _without_hidden(X, weights)
    for wrong, problem, remedy in (
        (np.isnan(X.data), "NaN in sparse X", "store 0 there and hide it with {mask=}"),
        (np.isinf(X.data), "X has an infinite value", "replace it"),
        (X.data < 0, _NEGATIVE, "replace wrong entries and hide them with {mask=}"),
        (
            likelihood.whole & (X.data != np.floor(X.data)),
            f"X has a fraction, {_outside(likelihood)}",
            _ROUND,
        ),
    ):
        if wrong.any():
            j = int(np.argmax(wrong))
            n = int(np.searchsorted(X.indptr, j, side="right")) - 1
            raise _wrong_entry(problem, X.data[j], n, columns[X.indices[j]], wrong, remedy)
    return X


def _without_hidden(X: sparse.csr_array, weights: Matrix) -> sparse.csr_array:
    """X without stored entries of weight zero: their number would change the order of sums."""
    if isinstance(weights, np.ndarray) and np.all(weights):
        return X
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    found = weights[rows, 0 if weights.shape[1] == 1 else X.indices]
    seen = np.ravel(dense(found)) != 0.0
    if seen.all():
        return X
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[seen], minlength=X.shape[0]))])
    parts = X.data[seen], X.indices[seen], starts.astype(X.indptr.dtype)
    return sparse.csr_array(parts, shape=X.shape)


def _narrow(weights: Matrix) -> Matrix:
    """(N, 1) instead of (N, F) if the entries of every step have the same weight.

    Always in C order: sums in another order have other bits.
    """
    if not isinstance(weights, np.ndarray):
        return weights if weights.shape[1] > 1 else weights.toarray()
    if np.all(weights == weights[:, :1]):
        return weights[:, :1].copy()
    return np.ascontiguousarray(weights)


def check_exposure(exposure: ArrayLike | None, n_steps: int) -> Array:
    """Exposures (N,), all 1 if there are none."""
    if exposure is None:
        return np.ones(n_steps)
    if isinstance(exposure, str):
        problem = ": expected numbers, one per time step."
        remedy = f"If it is a column of a frame, take it out with X.pop({exposure!r})."
        raise ArgumentError("exposure", exposure, problem, remedy)
    return check_sizes(exposure, n_steps, "hide it with {mask=}")


def _refuse_column_of_days(features: list[str] | None) -> None:
    """Refuse the days of the calendar for data with a column of that name, which may be meant."""
    if features is not None and DAYS in features:
        problem = "may mean the days in each step, or the column 'days' of X."
        remedy = f"Take the column out with X.pop({DAYS!r}) and give its values, or rename it."
        raise ArgumentError("exposure", DAYS, problem, remedy)


def check_start(
    init: Sequence[ArrayLike], n_components: int, n_steps: int, n_features: int
) -> tuple[Array, Array]:
    """Starting values given by the user: components (K, F) and activations (N, K), positive."""
    if len(init) != 2:
        expected = "'random', 'nndsvda' or a pair (components, activations)"
        raise ValueError(f"init has {len(init)} parts: expected {expected}.")
    components, activations = init
    return (
        _check_factor("components", components, (n_components, n_features)),
        _check_factor("activations", activations, (n_steps, n_components)),
    )


def _check_factor(name: str, given: ArrayLike, shape: tuple[int, int]) -> Array:
    array = np.asarray(given, dtype=float)
    if array.shape != shape:
        raise ValueError(f"init: {name} has shape {array.shape}, expected {shape}.")
    wrong = ~(np.isfinite(array) & (array > 0.0))
    if wrong.any():
        found = f"init: {name} contains {array[wrong].flat[0]}"
        rule = "Starting values must be positive and finite: zeros stay zero"
        raise ValueError(f"{found}. {rule}. Add a small number.")
    return array
