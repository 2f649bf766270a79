"""Writing folders of shards."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import NoReturn

import numpy as np
from scipy import sparse

from .. import __version__
from .._typing import Array
from ..messages.arguments import check_sizes
from ..messages.errors import ArgumentError, Text
from ..timeline.grid import Timeline
from .folder import (
    FORMAT,
    HEADER,
    SCHEMA,
    Header,
    Shards,
    check_folder,
    escaped,
    file_of,
    shards_of,
    starts_kind,
)

MOST_NONZEROS = 1 << 21  # of a shard, on average
FEWEST_SHARDS = 16  # enough work for many cores


class ShardWriter:
    """Writes a folder shard by shard, completely or not at all.

    Files are written to a hidden folder beside it, which `finish` renames; only then is an older
    folder replaced.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from temporalnmf.timeline import timeline_of
    >>> with TemporaryDirectory() as place, ShardWriter(Path(place, "words")) as writer:
    ...     writer.add(["war"], sparse.csr_array([[1.0, 0.0, 2.0]]))
    ...     writer.add(["peace"], sparse.csr_array([[0.0, 3.0, 0.0]]))
    ...     writer.finish(timeline_of([1999, 2000, 2001])).matrix().toarray()
    array([[1., 0.],
           [0., 3.],
           [2., 0.]])
    """

    def __init__(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        self.folder = Path(folder).resolve()
        self.overwrite = overwrite
        self.partial = self.folder.with_name(f".{self.folder.name}.partial")
        self._nonzeros: list[int] = []
        self._bounds = [0]
        self._has_missing: list[bool] = []
        self._steps: int | None = None

    def __enter__(self) -> ShardWriter:
        check_folder(self.folder, self.overwrite)
        if self.partial.exists():  # left by a process that was killed
            shutil.rmtree(self.partial)
        self.partial.mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.partial, ignore_errors=True)

    def add(
        self, names: Iterable[str], cells: sparse.csr_array, missing: sparse.csr_array | None = None
    ) -> None:
        """Add a shard.

        Parameters
        ----------
        names : iterable of str
            Names of its features, in order.
        cells : csr_array, (features, n_times)
            Positive and finite, in canonical format.
        missing : csr_array, (features, n_times), default=None
            Has an entry for each missing cell.
        """
        width, steps = cells.shape
        if self._steps not in (None, steps) or not width:
            expected = f"at least one feature × {self._steps or 'n'} steps"
            raise ValueError(f"cells has the shape {cells.shape}: expected {expected}.")
        if not (np.isfinite(cells.data).all() and (cells.data > 0.0).all()):
            raise ValueError("cells has values that are zero, negative or not finite. Remove them.")
        i, self._steps = len(self._nonzeros), steps
        lines = [f"{escaped(name)}\n" for name in names]
        _check_names(len(lines), width)
        file_of(self.partial, i, "names.txt").write_bytes("".join(lines).encode())
        self._save(i, "features", cells)
        self._save(i, "steps", cells.T.tocsr())
        gaps = missing is not None and missing.nnz > 0
        if gaps:
            self._save(i, "missing", missing)
        self._nonzeros.append(int(cells.nnz))
        self._bounds.append(self._bounds[-1] + width)
        self._has_missing.append(gaps)

    def _save(self, i: int, order: str, rows: sparse.csr_array) -> None:
        arrays = {
            "indptr": rows.indptr.astype(starts_kind(rows.nnz), copy=False),
            "indices": rows.indices.astype("<i4", copy=False),
        }
        if order != "missing":
            arrays["values"] = rows.data
        for part, array in arrays.items():
            np.save(file_of(self.partial, i, f"{order}.{part}.npy"), array, allow_pickle=False)

    def finish(
        self,
        timeline: Timeline,
        *,
        exposure: Array | None = None,
        observed: Array | None = None,
        notes: Iterable[str] = (),
    ) -> Shards:
        """Write the header, and move the folder to its place."""
        N = len(timeline.labels)
        if self._steps != N:
            raise ValueError(f"timeline has {N} steps for shards of {self._steps}. Give one each.")
        if exposure is not None:
            exposure = check_sizes(exposure, N, "give it 1, and hide it with {observed=}")
        seen = np.ones(N, dtype=bool) if observed is None else np.asarray(observed)
        # Rows of the table are not stored, only the steps that had one.
        line = replace(timeline, rows=np.unique(timeline.rows[timeline.rows >= 0]))
        header: Header = {
            "format": FORMAT,
            "schema": SCHEMA,
            "versions": {
                "temporalnmf": __version__,
                "python": platform.python_version(),
                **{name: version(name) for name in ("numpy", "scipy")},
            },
            "n_times": N,
            "n_features": self._bounds[-1],
            "bounds": self._bounds,
            "nonzeros": self._nonzeros,
            "has_missing": self._has_missing,
            "timeline": {**line.to_dict(), "absent": line.absent.tolist()},
            "exposure": None if exposure is None else exposure.tolist(),
            "observed": seen.astype(bool).tolist(),
            "notes": list(notes),
        }
        text = json.dumps(header, indent=1, allow_nan=False)
        shards_of(self.partial, json.loads(text))  # refuses a header that could not be read
        (self.partial / HEADER).write_text(text, encoding="utf-8")
        self._put_in_place()
        return Shards.open(self.folder)

    def _put_in_place(self) -> None:
        check_folder(self.folder, self.overwrite)  # it may have been created meanwhile
        old = self.folder.with_name(f".{self.folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if not self.folder.exists():
            self.partial.rename(self.folder)
            return
        self.folder.rename(old)
        try:
            self.partial.rename(self.folder)
        except OSError:
            old.rename(self.folder)
            raise
        shutil.rmtree(old, ignore_errors=True)


def write_shards(
    folder: str | PathLike[str],
    X: Array | sparse.sparray,
    *,
    names: Sequence[str] | Array,
    timeline: Timeline,
    exposure: Array | None = None,
    observed: Array | None = None,
    notes: Iterable[str] = (),
    n_shards: int | None = None,
    overwrite: bool = False,
) -> Shards:
    """Write data that are in memory as a folder of shards.

    Parameters
    ----------
    folder : path
        The folder to write. An existing one is refused without `overwrite`.
    X : array or sparse, (n_times, n_features)
        Finite and non-negative. NaN in a dense array is a missing cell.
    names : sequence of str, (n_features,)
        Names of the features.
    timeline : Timeline
        The steps.
    exposure : array, (n_times,), default=None
        Size behind each step.
    observed : array of bool, (n_times,) or (n_times, n_features), default=None
        Steps or cells that are not missing, as in `TimeTable.observed`.
    notes : iterable of str, default=()
        Texts to keep in the header.
    n_shards : int, default=None
        By default a power of two: enough for at most 2²¹ non-zeros per shard on average, and at
        least 16 if there are as many features.
    overwrite : bool, default=False
        Replace an existing folder of shards, once the new one is complete.

    Returns
    -------
    shards : Shards
    """
    check_folder(Path(folder), overwrite)
    cells, hidden, seen = _parts_of(X, observed)
    F = cells.shape[0]
    _check_names(len(names), F)
    n_shards = shard_count(cells.nnz, F, n_shards)
    with ShardWriter(folder, overwrite=overwrite) as writer:
        for first, last in pairwise(cut(cells.indptr, n_shards)):
            part = None if hidden is None else hidden[first:last]
            writer.add(map(str, names[first:last]), cells[first:last], part)
        return writer.finish(timeline, exposure=exposure, observed=seen, notes=notes)


def _check_names(count: int, width: int) -> None:
    if count != width:
        raise ValueError(f"names has {count:,} names for {width:,} features. Give one each.")


def _parts_of(
    X: Array | sparse.sparray, observed: Array | None
) -> tuple[sparse.csr_array, sparse.csr_array | None, Array]:
    """Numbers and missing cells, a row per feature, and which steps are observed."""
    hidden = None
    if sparse.issparse(X):
        cells = sparse.csr_array(X.T, dtype=np.float64, copy=True)
        cells.sum_duplicates()
    else:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X has the shape {X.shape}: expected times × features.")
        gaps = np.isnan(X)
        hidden = sparse.csr_array(gaps.T) if gaps.any() else None
        cells = sparse.csr_array(np.where(gaps, 0.0, X).T)
    F, N = cells.shape
    if not F or not N:
        raise ValueError(f"X has the shape {(N, F)}: expected at least one step and one feature.")
    seen = np.ones(N, dtype=bool)
    if observed is not None:
        observed = np.asarray(observed)
        if observed.dtype != np.bool_ or observed.shape not in ((N,), (N, F)):
            found = f"observed holds {observed.dtype} of shape {observed.shape}"
            raise ValueError(f"{found}: expected bool of shape ({N},) or ({N}, {F}).")
        if observed.ndim == 1:
            seen = observed
        else:
            more = sparse.csr_array(~observed.T)
            hidden = more if hidden is None else sparse.csr_array(hidden + more)
    if hidden is not None:
        seen = seen & (np.bincount(hidden.indices, minlength=N) < F)
        hidden = _in_steps(hidden, seen)
        cells = sparse.csr_array(cells - cells.multiply(hidden))  # x - x is 0
    cells = _in_steps(cells, seen)
    wrong = ~(np.isfinite(cells.data) & (cells.data > 0.0))
    if wrong.any():
        _refuse_value(cells, int(np.argmax(wrong)))
    return cells, hidden, seen


def _in_steps(rows: sparse.csr_array, seen: Array) -> sparse.csr_array:
    """Entries in observed steps, in canonical format."""
    rows.data = np.where(seen[rows.indices], rows.data, 0)
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows


def _refuse_value(cells: sparse.csr_array, k: int) -> NoReturn:
    feature = int(np.searchsorted(cells.indptr, k, side="right")) - 1
    problem = f"X[{cells.indices[k]}, {feature}] is {cells.data[k]:g}"
    remedy = "Correct it, or mark it as missing with {observed=}."
    raise ValueError(Text(f"{problem}. The model is for finite, non-negative data. {remedy}"))


def shard_count(nonzeros: int, n_features: int, wanted: int | None = None) -> int:
    """The number of shards: `wanted`, or one that depends on the data alone."""
    if wanted is not None:
        if not 1 <= wanted <= n_features:
            problem = f"is out of range: there are {n_features:,} features."
            raise ArgumentError("n_shards", wanted, problem, f"Choose 1 to {n_features:,}.")
        return wanted
    fewest = min(FEWEST_SHARDS, n_features).bit_length() - 1
    needed = max(-(-nonzeros // MOST_NONZEROS) - 1, 0).bit_length()
    return 1 << min(max(fewest, needed), n_features.bit_length() - 1)


def cut(indptr: Array, n_shards: int) -> list[int]:
    """Bounds of shards with about equal non-zeros and at least one feature each."""
    n_features, k = len(indptr) - 1, np.arange(1, n_shards)
    inner = np.searchsorted(indptr, k * (int(indptr[-1]) / n_shards))
    inner = np.maximum.accumulate(np.maximum(inner - k, 0)) + k
    inner = np.minimum(inner, n_features - n_shards + k)
    return [0, *map(int, inner), n_features]
