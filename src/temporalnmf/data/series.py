"""Time series: data by time step, weights of their entries, and the exposure of each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self, TypeAlias
from zlib import crc32

import numpy as np
from scipy import sparse

from .._typing import Array
from ..effects.design import Design
from ..likelihoods.base import Likelihood
from ..observations import Observations, observe
from ..runtime.threads import Threads
from ..timeline.grid import Timeline
from .modulation import Days, Exposure, exposure_of

Matrix: TypeAlias = "Array | sparse.csr_array"


class AnySeries(Protocol):
    """A series as a fit uses it, in memory or in blocks; see `Series`."""

    local: ClassVar[bool]

    @property
    def exposure(self) -> Array: ...
    @property
    def days(self) -> bool: ...
    @property
    def timeline(self) -> Timeline | None: ...
    @property
    def design(self) -> Design | None: ...
    @property
    def observed(self) -> Array: ...
    @property
    def totals(self) -> Array: ...
    @property
    def rows(self) -> Array: ...
    @property
    def n_steps(self) -> int: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def take(self, steps: Array) -> Self: ...
    def designed(self, design: Design | None) -> Self: ...
    def in_unit(self, unit: float) -> Self: ...
    def anchored(self) -> Self: ...
    def fingerprint(self) -> int: ...
    def observe(self, likelihood: Likelihood, threads: Threads | None = None) -> Observations: ...
    def saturated(self, likelihood: Likelihood) -> float: ...


@dataclass(frozen=True, eq=False)
class Series:
    """Checked data: X (N, F) with weights (N, 1), (N, F) or sparse (N, F), and exposures (N,).

    Entries of a dense X with weight zero may hold any value. Steps are those of the timeline, in
    order; the rows that the user passed are at the steps `rows`. `features` are the names of the
    columns, if they have names; `design` has the columns of effects, if the model has any. `days`:
    the exposures are the days in each step of the timeline.
    """

    X: Matrix
    weights: Matrix
    exposure: Array
    timeline: Timeline | None = None
    features: list[str] | None = None
    design: Design | None = None
    days: bool = False

    local: ClassVar[bool] = True

    @property
    def rows(self) -> Array:
        """The step of each row that the user passed."""
        return np.arange(self.n_steps) if self.timeline is None else self.timeline.rows

    @property
    def n_steps(self) -> int:
        return int(self.X.shape[0])

    @property
    def observed(self) -> Array:
        """Steps with any observed entry, bool (N,)."""
        if isinstance(self.weights, np.ndarray):
            return np.any(self.weights > 0.0, axis=1)
        return np.asarray(np.ravel(self.weights.sum(axis=1)) > 0.0)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_steps, int(self.X.shape[1])

    @property
    def totals(self) -> Array:
        """Sum of the observed entries of each step, (N,)."""
        if isinstance(self.X, np.ndarray):
            return np.sum(self.X, axis=1, where=dense(self.weights) > 0.0, dtype=float)
        seen = self.weights > 0.0
        if sparse.issparse(seen) or seen.shape[1] > 1:
            return np.ravel(self.X.multiply(seen).sum(axis=1))
        return np.where(seen[:, 0], np.ravel(self.X.sum(axis=1)), 0.0)

    @property
    def whole(self) -> bool:
        """Whether all observed entries are whole numbers."""
        if not isinstance(self.X, np.ndarray):
            values = sparse.csr_array(self.X).data
            return bool(np.all(np.floor(values) == values))
        return bool(np.all((np.floor(self.X) == self.X) | (dense(self.weights) <= 0.0)))

    def take(self, steps: Array) -> Series:
        """The series of some steps (N′,), in order; the same object if they are all steps."""
        if len(steps) == self.n_steps:
            return self
        chosen: Array | slice = steps
        if len(steps) and not sparse.issparse(self.X) and len(steps) == steps[-1] - steps[0] + 1:
            chosen = slice(steps[0], steps[-1] + 1)
        exposure = self.modulation.take(steps).values
        design = None if self.design is None else self.design.take(steps)
        return Series(self.X[chosen], self.weights[chosen], exposure, design=design)

    def designed(self, design: Design | None) -> Series:
        """With the columns of effects."""
        return replace(self, design=design)

    @property
    def modulation(self) -> Exposure:
        """The factors between activations and data."""
        return exposure_of(self.exposure, self.timeline, self.days)

    def by_days(self, like: Timeline | None = None) -> Series:
        """With the days in each step as exposure; see `Days.of`."""
        assert self.timeline is not None
        return replace(self, exposure=Days.of(self.timeline, like).values, days=True)

    def in_unit(self, unit: float) -> Series:
        """The same data, with values counted in a unit."""
        if unit == 1.0:
            return self
        with np.errstate(over="ignore", invalid="ignore"):  # hidden entries may hold any value
            return replace(self, X=self.X / unit)

    def anchored(self) -> Series:
        """With one unobserved step in front."""
        stack = sparse.vstack if sparse.issparse(self.X) else np.vstack
        X = stack([self.X[:1] * 0.0, self.X])
        weights: Matrix
        if isinstance(self.weights, np.ndarray):
            weights = np.vstack([np.zeros_like(self.weights[:1]), self.weights])
        else:
            weights = sparse.vstack([self.weights[:1] * 0.0, self.weights], format="csr")
        design = None if self.design is None else self.design.anchored()
        return Series(X, weights, np.concatenate([[1.0], self.exposure]), design=design)

    def split(self, hidden: Array) -> tuple[Series, Series]:
        """The entries that are not hidden, and those that are; `hidden` is (N, 1) or (N, F)."""
        weights = dense(self.weights)
        known = replace(self, weights=np.where(hidden, 0.0, weights), timeline=None)
        scored = replace(self, weights=np.where(hidden, weights, 0.0), timeline=None)
        return known, scored

    def on_grid(self, timeline: Timeline) -> Series:
        """With a step for every time of the grid, in order; steps without a row are missing."""
        rows, n_steps = timeline.rows, len(timeline.labels)
        if np.array_equal(rows, np.arange(n_steps)):
            return replace(self, timeline=timeline)
        exposure = self.modulation.on_grid(rows, n_steps).values
        places = sparse.csr_array(
            (np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(n_steps, len(rows))
        )
        X, weights = (
            _spread(part, rows, n_steps)
            if isinstance(part, np.ndarray)
            else sparse.csr_array(places @ part)
            for part in (self.X, self.weights)
        )
        return Series(X, weights, exposure, timeline, self.features)

    def followed_by(self, other: Series, timeline: Timeline) -> Series:
        """Both together, on a timeline whose rows are those of the first, then of the second."""
        X: Matrix
        if isinstance(self.X, np.ndarray):
            X = np.vstack([self.X, dense(other.X)])
        else:
            X = sparse.csr_array(sparse.vstack([self.X, other._sparse_X()]))
        parts = [self.weights, other.weights]
        weights: Matrix
        if any(sparse.issparse(part) for part in parts):
            wide = [_full(part, s.shape) for part, s in zip(parts, (self, other), strict=True)]
            weights = sparse.csr_array(sparse.vstack(wide))
        else:
            width = max(part.shape[1] for part in parts)
            weights = np.vstack([np.broadcast_to(p, (p.shape[0], width)) for p in parts])
        exposure = self.modulation.followed_by(other.modulation).values
        whole = Series(X, weights, exposure).on_grid(timeline)
        return whole.by_days() if self.days and other.days else whole

    def _sparse_X(self) -> sparse.csr_array:
        """X as a sparse array; hidden entries of a dense X become zero."""
        if sparse.issparse(self.X):
            return self.X
        return sparse.csr_array(np.where(self.weights > 0.0, self.X, 0.0))

    def observe(self, likelihood: Likelihood, threads: Threads | None = None) -> Observations:
        """The data for the kernels."""
        return observe(self.X, self.weights, self.exposure, likelihood, threads)

    def saturated(self, likelihood: Likelihood) -> float:
        """The value of a perfect fit."""
        return self.observe(likelihood).saturated

    def fingerprint(self) -> int:
        """A checksum of values, indices, weights and exposure."""
        found = 0
        for part in (self.X, self.weights, self.exposure):
            for array in arrays_of("", part).values():
                found = crc32(repr((array.shape, array.dtype.str)).encode(), found)
                flat = np.ascontiguousarray(array)
                found = crc32(flat.view(np.uint8).data if flat.size else b"", found)
        return found

    def row(self, n: int) -> tuple[Array, Array]:
        """Values and weights of one step, dense (F,)."""
        x, w = (_row(part, n) for part in (self.X, self.weights))
        return x, np.broadcast_to(np.asarray(w, dtype=float), x.shape)


def arrays_of(name: str, matrix: Matrix) -> dict[str, Array]:
    """A dense matrix unchanged, a sparse one as the arrays of its compressed rows."""
    if isinstance(matrix, np.ndarray):
        return {name: matrix}
    rows = sparse.csr_array(matrix)
    return {
        f"{name}_values": rows.data,
        f"{name}_columns": rows.indices,
        f"{name}_row_starts": rows.indptr,
    }


def matrix_of(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> Matrix | None:
    """The matrix of `arrays_of`; None if it is not among the arrays."""
    if f"{name}_values" not in arrays:
        return arrays.get(name)
    parts = tuple(arrays[f"{name}_{part}"] for part in ("values", "columns", "row_starts"))
    return sparse.csr_array(parts, shape=shape)


def dense(matrix: Matrix) -> Array:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def _row(matrix: Matrix, n: int) -> Array:
    """One row, dense. SciPy takes a hundred times longer, which matters in long series."""
    if isinstance(matrix, np.ndarray):
        return matrix[n]
    part = slice(*matrix.indptr[n : n + 2])
    return np.bincount(matrix.indices[part], matrix.data[part], matrix.shape[1])


def _spread(array: Array, rows: Array, n_steps: int) -> Array:
    """The rows at their steps, zeros elsewhere."""
    spread = np.zeros((n_steps, array.shape[1]), dtype=array.dtype)
    spread[rows] = array
    return spread


def _full(weights: Matrix, shape: tuple[int, int]) -> sparse.csr_array:
    """Weights (N, F) as a sparse array."""
    if sparse.issparse(weights):
        return weights
    return sparse.csr_array(np.broadcast_to(np.asarray(weights, dtype=float), shape))
