"""Checks of data that users pass in. Errors name the argument, the value and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from .._typing import Array
from ..likelihoods.base import Likelihood
from ..messages.warning import warn
from ..reading import TimeTable, labelled_array, labels_of, read_table
from ..reading.sheet import refuse_total
from ..timeline.grid import AS_GIVEN, Timeline, timeline_of, timeline_of_labels
from .aligning import aligned
from .series import Series


def check_series(
    estimator: Any, X: Any, mask: Any, exposure: Any, likelihood: Likelihood, *, reset: bool
) -> Series:
    """Check data and what comes with them.

    Parameters
    ----------
    estimator : TemporalNMF
        Receives (`reset`) or compares the number and names of features.
    X : array, frame, xarray array, sparse matrix, TimeTable or path of a table, (N, F)
        NaN is missing in dense data. Rows with labels are put on a regular grid. Times of frames
        are recognised as in files: see `reading.containers.labels_of`.
    mask : None, (N,) or (N, F)
        True or 1: observed; False or 0: missing; other positive numbers: weights. With labels, as
        in a frame, it is put into the order of X: see `aligned`.
    exposure : None or (N,)
        As `mask`.
    likelihood : Likelihood
    reset : bool
        True in fit.
    """
    name = type(estimator).__name__
    names: Array | None = None
    timeline: Timeline | None = None
    features: list[str] | None = None
    if isinstance(X, str | PathLike):
        X = read_table(X)
    if isinstance(X, TimeTable):
        exposure = X.exposure if exposure is None else exposure
        names = np.asarray(X.features, dtype=object)
        features = None if X.unnamed else X.features.tolist()
        timeline = replace(X.timeline, rows=np.arange(X.X.shape[0]))
        mask = _both(aligned(mask, "mask", timeline, features), X.observed, X.X.shape)
        X = X.X
    elif (found := labels_of(X, "X")) is not None and np.ndim(found.cells) == 2:
        style = "" if reset else estimator.timeline_.style
        features = found.columns
        if hasattr(X, "dims"):
            X, names, timeline = labelled_array(X, style)
        else:
            X = found.cells
            _check_time_index(X, found.column)
            if found.rows is not None or hasattr(X, "iloc"):
                rows = X.index if found.rows is None else found.rows
                timeline = timeline_of_labels(rows, found.corner, style=style)
            if reset:
                estimator._columns = list(X.columns)
        _tell(timeline, found.column if found.numbers else None)
        if timeline is not None and found.column is not None:
            told = f"times are in column {found.column!r}"
            timeline = replace(timeline, notes=(told, *timeline.notes))
    how: dict[str, Any] = {
        "accept_sparse": ("csr", "csc"),
        "dtype": (np.float64, np.float32),
        "ensure_all_finite": False,
    }
    try:
        if names is None:
            checked = validate_data(estimator, X, reset=reset, **how)
        else:
            checked = check_array(X, estimator=estimator, input_name="X", **how)
            _check_names(estimator, names, reset)
    except (TypeError, ValueError) as error:
        _refuse_text_and_dates(X, error)
        raise
    # polars hands out dates as numbers, without complaint.
    if any(getattr(kind, "is_temporal", bool)() for kind in getattr(X, "dtypes", ())):
        _refuse_text_and_dates(X, None)
    if reset and features is not None:
        refuse_total(checked, features, "X")
    timeline = timeline or timeline_of(np.arange(checked.shape[0]))
    weights = check_mask(aligned(mask, "mask", timeline, features), checked.shape)
    exposure = aligned(exposure, "exposure", timeline)
    if sparse.issparse(checked):
        checked = _check_sparse(sparse.csr_array(checked), weights, likelihood)
    else:
        weights = _check_dense(checked, weights, likelihood, X, name)
    size = check_exposure(exposure, checked.shape[0])
    return Series(checked, _narrow(weights), size, features=features).on_grid(timeline)


def checked_part(
    X: Any, weights: Any, exposure: Array, likelihood: Likelihood, named: Any, name: str
) -> Series:
    """Some of the features, as `check_series` would check all.

    `weights` are those of a mask that was checked; `named.columns` are the numbers of the features.
    """
    X = check_array(
        X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), ensure_all_finite=False,
        input_name="X",
    )  # fmt: skip
    weights = check_mask(weights if weights.shape[1] > 1 else weights[:, 0], X.shape)
    if sparse.issparse(X):
        X = _check_sparse(sparse.csr_array(X), weights, likelihood, named.columns[0])
    else:
        weights = _check_dense(X, weights, likelihood, named, name)
    return Series(X, _narrow(weights), exposure)


def _both(mask: Any, observed: Array | None, shape: tuple[int, int]) -> Any:
    """What the user and the table both say is there."""
    if mask is None or observed is None:
        return observed if mask is None else mask
    checked, seen = check_mask(mask, shape), check_mask(observed, shape)
    if sparse.issparse(checked):
        return checked.multiply(seen).tocsr()
    there = checked * seen
    return there[:, 0] if there.shape[1] == 1 else there


def _tell(timeline: Timeline | None, column: str | None) -> None:
    """Warn of a column of numbers that is taken as times, and of times that are not on a grid."""
    if column is not None:
        warn(
            f"X: column {column!r} is taken as the times, not as a feature. To say so, use "
            f"X.set_index({column!r}) or temporalnmf.reading.as_table(X, time={column!r}); if it "
            f"is a feature, rename it.",
        )
    if timeline is None:
        return
    uneven = timeline.every == AS_GIVEN and timeline.labels.dtype.kind != "U"
    if len(timeline.absent) or (uneven and len(timeline.labels) > 1):
        warn(
            f"X: {timeline.notes[-1]}."
            + (" They are taken as missing steps." if len(timeline.absent) else ""),
        )


def _check_names(estimator: Any, names: Array, reset: bool) -> None:
    """Names of features that did not come as the columns of a frame."""
    if reset:
        estimator.n_features_in_, estimator.feature_names_in_ = len(names), names
        return
    if len(names) != estimator.n_features_in_:
        raise ValueError(
            f"X has {len(names)} features, and the data of the fit had {estimator.n_features_in_}."
        )
    if not np.array_equal(getattr(estimator, "feature_names_in_", names), names):
        other = _first_difference(estimator, names)
        raise ValueError(
            f"X has other features than the data of the fit: {other}. Give the same features in "
            f"the same order."
        )


def _first_difference(estimator: Any, names: Array) -> str:
    pairs = zip(names, estimator.feature_names_in_, strict=True)
    return next(f"{new!r} in the place of {old!r}" for new, old in pairs if new != old)


def _check_time_index(X: Any, column: str | None) -> None:
    """Refuse times that cannot be told apart; `column` is where they were, if not in the index."""
    index = getattr(X, "index", None)
    if index is None or not hasattr(index, "is_monotonic_increasing"):
        return
    where, by = ("its index", "level=0") if column is None else (f"column {column!r}", repr(column))
    if index.nlevels == 1 and index.hasnans:
        raise ValueError(
            f"X has a missing time in {where}, at row {int(np.argmax(index.isna()))}. Fill it "
            f"in, or drop the row."
        )
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        label = " ".join(map(str, twice)) if index.nlevels > 1 else str(twice)
        raise ValueError(
            f"X has a duplicate time {label!r} in {where}. Aggregate the rows of one time, for "
            f"instance with X.groupby({by}).sum(); if there is a row per time and feature, "
            f"temporalnmf.reading.as_table(X, time=…, feature=…, value=…) adds them up."
        )
    if index.nlevels == 1 and index.inferred_type.startswith("mixed"):
        raise ValueError(
            f"X has an index of mixed types ({', '.join(map(repr, index[:3]))}, ...), which has no "
            f"order. Give all times labels of one type, or drop them with reset_index(drop=True)."
        )


def _refuse_text_and_dates(X: Any, cause: Exception | None) -> None:
    """Raise with the name and first value of the first column that holds text or dates."""
    if np.ndim(X) != 2:
        return
    for j, column in enumerate(getattr(X, "columns", range(np.shape(X)[1]))):
        if hasattr(X, "iloc"):
            values = X.iloc[:, j]
        else:
            values = X[column] if hasattr(X, "columns") else np.asarray(X, dtype=object)[:, j]
        for value in values:
            if isinstance(value, str | date | np.datetime64):
                raise ValueError(
                    f"X has something else than numbers in column {column!r} (value {value!r}). "
                    f"Drop the column, use it as the index, or turn it into numbers; "
                    f"temporalnmf.reading.as_table(X, time={column!r}) takes it as the times."
                ) from cause


_MASK_WORDS = (
    "1 or True for observed entries, 0 or False for missing ones, other positive numbers as weights"
)
_HELD_OUT_WORDS = "1 or True for entries to score, 0 or False for the others"


def check_mask(mask: Any, shape: tuple[int, int], name: str = "mask") -> Any:
    """Weights (N, 1) or (N, F), dense bool or float, or sparse float."""
    words = _MASK_WORDS if name == "mask" else _HELD_OUT_WORDS
    if mask is None:
        return np.ones((shape[0], 1), dtype=bool)
    if not sparse.issparse(mask):
        try:
            mask = np.asarray(mask)
        except ValueError as error:
            raise ValueError(
                f"{name} is ragged, its rows have different lengths: expected shape {(shape[0],)} "
                f"or {shape}."
            ) from error
    if mask.shape not in {(shape[0],), shape}:
        raise ValueError(
            f"{name} has shape {mask.shape}: expected {(shape[0],)}, one value per time step, or "
            f"{shape}, one per entry of X ({words})."
        )
    if sparse.issparse(mask):
        mask = sparse.csr_array(mask, dtype=np.float64, copy=True)
        mask.eliminate_zeros()
        values = mask.data
    else:
        if mask.dtype != bool:
            try:
                mask = mask.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"{name} has dtype {mask.dtype}: expected booleans or non-negative numbers."
                ) from error
        mask = mask.reshape(shape[0], -1)
        values = mask
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        raise ValueError(f"{name} contains {values[wrong].flat[0]}: it takes {words}.")
    return mask


def check_held_out(held_out: Any, series: Series) -> Array:
    """Which entries of a series are held out, (N, 1) or (N, F); one value per row was given."""
    rows = series.rows
    held_out = aligned(held_out, "held_out", series.timeline, series.features)
    given = check_mask(held_out, (len(rows), series.X.shape[1]), "held_out")
    given = given.toarray() > 0 if sparse.issparse(given) else given > 0
    hidden = np.zeros((series.n_steps, given.shape[1]), dtype=bool)
    hidden[rows] = given
    return hidden


def _check_dense(X: Array, weights: Any, likelihood: Likelihood, user_X: Any, name: str) -> Any:
    if sparse.issparse(weights):
        weights = weights.toarray()
    missing = np.isnan(X)
    if missing.any():
        whole = np.all(missing, axis=1, keepdims=True)
        # Weights per entry only where single entries are missing.
        only_whole = whole.sum() * X.shape[1] == missing.sum()
        weights = np.where(whole if only_whole else missing, 0.0, weights)
    seen = np.broadcast_to(weights > 0, X.shape)
    # One pass each: NaN was taken out above, hidden entries may hold anything.
    _refuse(
        np.isinf(X) & seen, X, user_X, "X has an infinite value", "replace it, or set it to NaN"
    )
    _refuse(
        (X < 0) & seen, X, user_X, f"Negative values in data passed to {name}: X has one",
        "the model is for non-negative data; set wrong entries to NaN",
    )  # fmt: skip
    if not likelihood.takes_zeros:
        _refuse(
            (X == 0) & seen, X, user_X,
            f"X has a zero, which is outside the domain of the {likelihood.name} likelihood",
            "give it a floor, for instance X = np.maximum(X, 1e-11 * np.nanmax(X)), or use "
            "likelihood='poisson'",
        )  # fmt: skip
    return weights


def _refuse(wrong: Array, X: Array, user_X: Any, what: str, remedy: str) -> None:
    if not wrong.any():
        return
    n, f = np.argwhere(wrong)[0]
    names = getattr(user_X, "columns", None)
    where = f"row {n}, column {f}" if names is None else f"row {n}, column {list(names)[f]!r}"
    raise ValueError(f"{what}: {X[n, f]} at {where} ({int(wrong.sum())} in all). Remedy: {remedy}.")


def _check_sparse(
    X: sparse.csr_array, weights: Any, likelihood: Likelihood, first: int = 0
) -> sparse.csr_array:
    """Sparse data without what is hidden."""
    if not likelihood.takes_zeros:
        raise ValueError(
            f"X is sparse, but zeros are outside the domain of the {likelihood.name} likelihood. "
            f"Remedy: make it dense and give it a floor, for instance "
            f"X = np.maximum(X.toarray(), floor), or use likelihood='poisson'."
        )
    X = _without_hidden(X, weights)
    for wrong, what, remedy in (
        (np.isnan(X.data), "NaN in sparse X", "store 0 there and hide it with mask="),
        (np.isinf(X.data), "X has an infinite value", "replace it"),
        (X.data < 0, "Negative values in data passed to TemporalNMF: X has one",
         "replace wrong entries and hide them with mask="),
    ):  # fmt: skip
        if wrong.any():
            j = int(np.argmax(wrong))
            n = int(np.searchsorted(X.indptr, j, side="right")) - 1
            raise ValueError(
                f"{what}: {X.data[j]} at row {n}, column {first + X.indices[j]} "
                f"({int(wrong.sum())} in all). Remedy: {remedy}."
            )
    return X


def _without_hidden(X: sparse.csr_array, weights: Any) -> sparse.csr_array:
    """X without stored entries of weight zero: even their number would change the order of sums."""
    if not sparse.issparse(weights) and np.all(weights):
        return X
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    if sparse.issparse(weights):
        found = weights[rows, X.indices]
        found = found.toarray() if sparse.issparse(found) else found
    else:
        found = weights[rows, 0 if weights.shape[1] == 1 else X.indices]
    seen = np.ravel(found) != 0.0
    if seen.all():
        return X
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[seen], minlength=X.shape[0]))])
    parts = X.data[seen], X.indices[seen], starts.astype(X.indptr.dtype)
    return sparse.csr_array(parts, shape=X.shape)


def _narrow(weights: Any) -> Any:
    """(N, 1) instead of (N, F) where the entries of every step share their weight.

    Row by row in memory, whatever was given: sums in another order have other bits.
    """
    if sparse.issparse(weights):
        return weights if weights.shape[1] > 1 else weights.toarray()
    if np.all(weights == weights[:, :1]):
        return weights[:, :1].copy()
    return np.ascontiguousarray(weights)


def check_exposure(exposure: Any, n_steps: int) -> Array:
    if exposure is None:
        return np.ones(n_steps)
    if isinstance(exposure, str):
        raise ValueError(
            f"exposure={exposure!r}: expected numbers, one per time step. If it is a column of a "
            f"frame, take it out: exposure=X.pop({exposure!r})."
        )
    try:
        values = np.asarray(exposure, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"exposure={exposure!r}: expected positive numbers, one per time step."
        ) from error
    if values.shape != (n_steps,):
        raise ValueError(
            f"exposure has shape {values.shape}: expected {(n_steps,)}, one value per time step."
        )
    wrong = ~(np.isfinite(values) & (values > 0.0))
    if wrong.any():
        raise ValueError(
            f"exposure contains {values[wrong][0]}: it must be positive and finite. A step without "
            f"exposure is a missing step: hide it with mask=."
        )
    return values


def check_start(
    init: Sequence[Any], n_components: int, n_steps: int, n_features: int
) -> tuple[Array, Array]:
    """Given starting values: components (K, F) and activations (N, K), positive."""
    if len(init) != 2:
        raise ValueError(
            f"init has {len(init)} parts: expected 'random', 'nndsvda' or a pair "
            f"(components, activations)."
        )
    shapes = {"components": (n_components, n_features), "activations": (n_steps, n_components)}
    checked = []
    for (what, shape), given in zip(shapes.items(), init, strict=True):
        array = np.asarray(given, dtype=float)
        if array.shape != shape:
            raise ValueError(f"init: {what} has shape {array.shape}, expected {shape}.")
        if not (np.all(np.isfinite(array)) and np.all(array > 0.0)):
            found = array[~(np.isfinite(array) & (array > 0.0))].flat[0]
            raise ValueError(
                f"init: {what} contains {found}. Starting values must be positive and finite: an "
                f"entry that starts at zero stays there. Add a small number."
            )
        checked.append(array)
    return checked[0], checked[1]
