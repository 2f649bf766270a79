"""Data that are not all in memory: Dask arrays and folders of shards, as blocks of features.

With a Dask client the blocks go to its workers; without one they stay in this process, and shards
that do not fit into memory are read anew for every pass.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from .. import registry
from .._typing import Array
from ..data.aligning import aligned
from ..data.series import Series
from ..data.validation import check_exposure, check_mask, checked_part
from ..likelihoods.base import Likelihood
from ..messages.warning import warn
from ..runtime.archives import memory_of_machine, read_npz, refuse_links_out
from ..runtime.files import written_whole
from ..shards import Shards, is_shards
from ..timeline.grid import Timeline, timeline_of
from .bench import Bench
from .pieces import Piece, Slice
from .series import SplitSeries, even_bounds
from .team import LocalTeam, Team

# Blocks of a Dask array whose features are all in one chunk.
_BLOCKS = 16
# Share of a worker's memory that may be used, before Dask gives it no more work, and what the
# program takes; share of the rest that data may take: there may be a second group to take over.
_USABLE, _PROGRAM, _SHARE = 0.8, 2.5e8, 0.5
# Bytes that a solver keeps for each weight: W and its sums, and memory of L-BFGS.
_BYTES = {"mm": 32, "accelerated": 176, "gibbs": 176}
# Bytes from which on moving them between workers is worth a word.
_COSTLY = 2**28
# Folder of blocks of a Dask array, beside checkpoints.
_DATA = "temporalnmf-data"
# Names of features that are kept in memory.
_MOST_NAMES = 10**6


def is_split(X: Any) -> bool:
    """Whether these are data for this module."""
    if isinstance(X, Shards) or _is_dask(X):
        return True
    return isinstance(X, str | PathLike) and is_shards(X)


def _is_dask(X: Any) -> bool:
    return "dask" in sys.modules and sys.modules["dask"].is_dask_collection(X)


@contextmanager
def split_series(
    estimator: Any, X: Any, mask: Any, exposure: Any, likelihood: Likelihood, *, reset: bool
) -> Iterator[SplitSeries]:
    """Data as blocks, as long as they are wanted; parameters are those of `check_series`."""
    if isinstance(X, str | PathLike):
        X = Shards.open(X)
    source = _ShardSource(X, mask, exposure) if isinstance(X, Shards) else None
    found = source or _DaskSource(X, mask, exposure, likelihood, type(estimator).__name__)
    _check_features(estimator, found, reset)
    with _team(estimator, found) as team:
        series = SplitSeries.of(team, found.exposure, found.timeline)
        yield series


class _ShardSource:
    """A folder of shards."""

    def __init__(self, shards: Shards, mask: Any, exposure: Any) -> None:
        from .shard_piece import ShardPiece

        shape = shards.n_times, shards.n_features
        self.names = None
        if shards.n_features <= _MOST_NAMES:
            self.names = [name for i in range(shards.n_shards) for name in shards.names(i)]
        steps = replace(shards.timeline, rows=np.arange(shards.n_times))
        weights: Any = check_mask(aligned(mask, "mask", steps, self.names), shape)
        if weights.shape[1] == 1:
            weights = np.where(shards.observed[:, None], weights, 0.0)
        elif not shards.observed.all():
            rows = np.flatnonzero(~shards.observed)
            weights = weights.tolil() if sparse.issparse(weights) else np.array(weights, float)
            weights[rows] = 0.0
            weights = sparse.csr_array(weights) if sparse.issparse(weights) else weights
        exposure = aligned(exposure, "exposure", steps)
        self.exposure = shards.exposure if exposure is None else check_exposure(exposure, shape[0])
        self.bounds, self.timeline, self.shape = shards.bounds, shards.timeline, shape
        self.pieces = [
            ShardPiece(shards, b, weights if weights.shape[1] == 1 else weights[:, i:j],
                       self.exposure)
            for b, (i, j) in enumerate(pairwise(self.bounds.tolist()))
        ]  # fmt: skip
        self.nbytes = sum(shards.nbytes(i) for i in range(shards.n_shards))


class _DaskSource:
    """A Dask array, dense or with sparse chunks."""

    names: list[str] | None = None

    def __init__(self, X: Any, mask: Any, exposure: Any, likelihood: Likelihood, name: str) -> None:
        import dask

        if not hasattr(X, "chunks") or X.ndim != 2:
            raise ValueError(
                f"X is {type(X).__name__}: of Dask's collections only arrays with two dimensions "
                f"are taken. Turn a frame into one with X.to_dask_array(lengths=True)."
            )
        if np.isnan(sum(map(sum, X.chunks))):
            raise ValueError(
                "X has chunks of unknown size. Call X.compute_chunk_sizes() before, or "
                "to_dask_array(lengths=True) of a frame."
            )
        N, F = self.shape = tuple(map(int, X.shape))
        self.exposure = check_exposure(exposure, N)
        self.timeline: Timeline = timeline_of(np.arange(N))
        columns = np.concatenate([[0], np.cumsum(X.chunks[1])])
        self.bounds = columns if len(columns) > 2 else even_bounds(F, min(_BLOCKS, F))
        self.nbytes = int(2 * 8 * N * F)
        if len(X.chunks[0]) > 1 and X.nbytes > _COSTLY:
            warn(
                f"X has {len(X.chunks[0])} chunks in time, and a fit wants all steps of a feature "
                f"in one place: {X.nbytes / 1e9:.1f} GB are moved between workers, once. Chunks "
                f"like X.rechunk((-1, {X.chunksize[1]})) avoid it.",
            )
        if not _is_dask(mask):
            mask = check_mask(mask, (N, F))
        elif mask.shape != (N, F):
            raise ValueError(f"mask has shape {mask.shape}: expected {(N, F)}, that of X.")
        make = dask.delayed(_slice, pure=False)
        self.pieces = []
        for i, j in pairwise(self.bounds.tolist()):
            chunks = X[:, i:j].to_delayed().tolist()
            weights = mask if not _is_dask(mask) and mask.shape[1] == 1 else mask[:, i:j]
            if _is_dask(weights):
                weights = weights.to_delayed().tolist()
            self.pieces.append(make(chunks, weights, self.exposure, likelihood, i, name))

    def stored(self, client: Any, folder: Path | None) -> list[StoredSlice]:
        """Have the blocks written to files, so that any worker can take one over."""
        import dask

        if folder is None:
            raise ValueError(
                "X is a Dask array, and its blocks are written to files that all workers see, so "
                "that nothing is lost with a worker; but these do not see temporary files of this "
                "machine. Give checkpoint= a folder that all machines share."
            )
        store = dask.delayed(_store, pure=False)
        places = [folder / _DATA / f"{b:05d}.npz" for b in range(len(self.pieces))]
        tasks = [store(piece, place) for piece, place in zip(self.pieces, places, strict=True)]
        found: list[StoredSlice] = client.gather(client.compute(tasks))
        return found


@dataclass(frozen=True)
class StoredSlice(Piece):
    """Data in a file."""

    path: Path

    def series(self) -> Series:
        arrays = read_npz(self.path)
        return Series(_matrix(arrays, "X"), _matrix(arrays, "weights"), arrays["exposure"])


def _store(piece: Slice, path: Path) -> StoredSlice:
    series = piece.series()
    members: dict[str, Any] = {"exposure": series.exposure}
    for name in ("X", "weights"):
        matrix = getattr(series, name)
        if sparse.issparse(matrix):
            rows = sparse.csr_array(matrix)
            parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
            members |= {f"{name}_{part}": array for part, array in parts.items()}
            members[f"{name}_shape"] = np.array(rows.shape)
        else:
            members[name] = matrix
    with written_whole(path) as partial, partial.open("wb") as file:
        np.savez(file, **members)
    return StoredSlice(path)


def _matrix(arrays: dict[str, Array], name: str) -> Any:
    if name in arrays:
        return arrays[name]
    parts = tuple(arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_array(parts, shape=tuple(arrays[f"{name}_shape"].tolist()))


def _slice(
    chunks: list[list[Any]], weights: Any, exposure: Array, likelihood: Likelihood, first: int,
    name: str,
) -> Slice:  # fmt: skip
    """The data of some features, put together and checked."""
    X = _together(chunks)
    if isinstance(weights, list):
        weights = _together(weights)
    named = SimpleNamespace(columns=range(first, first + X.shape[1]))
    return Slice(checked_part(X, weights, exposure, likelihood, named, name))


def _together(chunks: list[list[Any]]) -> Any:
    if sparse.issparse(chunks[0][0]):
        return sparse.csr_array(sparse.block_array([[*row] for row in chunks]))
    return np.block([[np.asarray(chunk) for chunk in row] for row in chunks])


def _check_features(estimator: Any, source: Any, reset: bool) -> None:
    """Number and names of the features, as in scikit-learn."""
    n = source.shape[1]
    if reset:
        estimator.n_features_in_ = n
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        if source.names is not None:
            estimator.feature_names_in_ = np.array(source.names, dtype=object)
    elif n != estimator.n_features_in_:
        raise ValueError(
            f"X has {n} features, and the data of the fit had {estimator.n_features_in_}."
        )


@contextmanager
def _team(estimator: Any, source: Any) -> Iterator[Team]:
    """Those who hold the blocks: workers of a cluster, or this process."""
    client = _client()
    if client is None:
        yield from _local_team(estimator, source)
        return
    from .dask import DaskTeam, groups_of

    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    resident = _check_memory(estimator, source, [worker["memory_limit"] for worker in workers])
    with _folder(estimator, client) as folder:
        pieces = source.pieces
        if isinstance(source, _DaskSource):
            pieces = source.stored(client, folder)
        groups = groups_of(pieces, source.bounds, max(len(workers), 1))
        team = DaskTeam(client, groups, source.bounds, resident=resident, folder=folder)
        try:
            yield team
        finally:
            team.close()


def _check_memory(estimator: Any, source: Any, limits: list[int]) -> bool:
    """Refuse what workers cannot hold; whether they can hold the data, too."""
    known = [limit for limit in limits if limit]
    if not known:
        return True
    room = _USABLE * min(known) - _PROGRAM
    each = _BYTES.get(estimator.solver, _BYTES["mm"]) * source.shape[1] * estimator.n_components
    each /= len(limits)
    if each > room:
        others = ", solver='mm'" if estimator.solver == "accelerated" else ""
        raise ValueError(
            f"The weights of {source.shape[1]:,} features, and what solver={estimator.solver!r} "
            f"keeps of each, take {each / 1e9:.2g} GB on every one of {len(limits)} workers, which "
            f"have a limit of {min(known) / 1e9:.2g} GB, the program itself included. Take more "
            f"workers or memory, fewer components{others}."
        )
    return bool(source.nbytes / len(limits) <= _SHARE * (room - each))


def _local_team(estimator: Any, source: Any) -> Iterator[Team]:
    pieces = source.pieces
    if any(hasattr(piece, "dask") for piece in pieces):
        import dask

        pieces = list(dask.compute(*pieces))
    memory = memory_of_machine()
    bench = Bench(
        pieces, source.bounds[:-1].tolist(), resident=source.nbytes <= memory / 2,
        n_jobs=estimator.n_jobs,
    )  # fmt: skip
    given = _given_folder(estimator)
    team = LocalTeam(bench, source.bounds, given)
    try:
        yield team
    finally:
        team.close()


def _client() -> Any:
    """The Dask client that there is, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def _given_folder(estimator: Any) -> Path | None:
    """Where the user wants checkpoints of a fit by solvers; draws have a file of their own."""
    if estimator.checkpoint is None or estimator.solver in registry.SAMPLERS:
        return None
    folder = Path(estimator.checkpoint).resolve()  # workers are in folders of their own
    if folder.exists() and not folder.is_dir():
        raise ValueError(
            f"checkpoint={str(folder)!r} is a file: data in blocks want a folder. Name another."
        )
    folder.mkdir(parents=True, exist_ok=True)
    refuse_links_out(folder)
    return folder


@contextmanager
def _folder(estimator: Any, client: Any) -> Iterator[Path | None]:
    """A folder for checkpoints that all workers see; None if there is no such place.

    If it is ours it goes in the end, unless the cluster went before.
    """
    from .dask import ClusterLostError

    given = _given_folder(estimator)
    folder = given or Path(tempfile.mkdtemp(prefix="temporalnmf-"))
    sees = client.run(os.path.exists, str(folder))
    lost = False
    try:
        if given is not None and not all(sees.values()):
            hidden = next(address for address, seen in sees.items() if not seen)
            raise ValueError(
                f"checkpoint={str(folder)!r} is not seen by the worker at {hidden}. Name a folder "
                f"that all machines share."
            )
        yield folder if all(sees.values()) else None
    except ClusterLostError as error:
        lost = (folder / "fit.npz").exists()
        what = (
            f"What was done is kept: the same fit with checkpoint={str(folder)!r} goes on from "
            f"there, on any cluster that sees this folder, or on none."
            if lost
            else "Nothing was kept yet: fit again."
        )
        raise ClusterLostError(f"{error} {what}") from error
    finally:
        for data in (folder / _DATA).glob("[0-9]*.npz"):
            data.unlink(missing_ok=True)
        with suppress(OSError):  # nobody made it, or somebody put something there
            (folder / _DATA).rmdir()
        if given is None and not lost:
            shutil.rmtree(folder, ignore_errors=True)
