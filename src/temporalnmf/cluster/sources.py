"""Data that are not in memory, Dask arrays and folders of shards, as blocks of features.

With a Dask client the blocks are on its workers; without one they are in this process, and shards
that do not fit into memory are read again for every pass.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._typing import Array
from ..data.aligning import aligned
from ..data.modulation import Days, by_days
from ..data.series import Matrix, Series, arrays_of, matrix_of
from ..data.validation import check_exposure, check_mask, check_sparse_law, checked_part
from ..inference.config import Config
from ..likelihoods.base import Likelihood
from ..messages.errors import Arg, ArgumentError, Text
from ..messages.warning import warn
from ..runtime.archives import memory_of_machine, read_npz, refuse_links_out, write_npz
from ..shards import Shards, is_shards
from ..timeline.grid import Timeline, timeline_of
from .block_data import BlockSource, MemorySource
from .blocks import Blocks
from .executor import Executor, LocalExecutor
from .series import SplitSeries, even_bounds
from .shard_source import ShardSource

if TYPE_CHECKING:
    import dask.array
    from dask.delayed import Delayed
    from distributed import Client

# Blocks of a Dask array whose features are all in one chunk.
_BLOCKS = 16
# Share of a worker's memory that Dask lets it use, bytes of the program itself, and the share of
# the rest for data: a worker may have to take over a second group of blocks.
_USABLE, _PROGRAM, _SHARE = 0.8, 2.5e8, 0.5
# Bytes that a solver keeps for each weight: W, its sums, and the memory of L-BFGS.
_BYTES = {"mm": 32, "accelerated": 176, "gibbs": 176}
# Moving at least this many bytes between workers causes a warning.
_COSTLY = 2**28
# Folder for the blocks of a Dask array, beside the checkpoints.
DATA_FOLDER = "temporalnmf-data"
# Largest number of features whose names are kept in memory.
_MOST_NAMES = 10**6


def is_split(X: object) -> bool:
    """Whether X is a Dask array or a folder of shards."""
    return isinstance(X, Shards) or _is_dask(X) or (isinstance(X, str | PathLike) and is_shards(X))


def _is_dask(X: object) -> TypeGuard[dask.array.Array]:
    return "dask" in sys.modules and bool(sys.modules["dask"].is_dask_collection(X))


@dataclass(frozen=True, eq=False)
class SplitData:
    """Checked data in blocks of features, not distributed yet."""

    shape: tuple[int, int]
    names: list[str] | None
    exposure: Array
    timeline: Timeline
    bounds: Array  # block b has the features bounds[b] to bounds[b + 1]
    nbytes: int
    # Returns the sources, for this process or for a client and a folder that its workers see.
    sources: Callable[[Client | None, Path | None], Sequence[BlockSource]]
    days: bool = False  # whether the exposure is the days in each step


def split_data(
    X: Shards | dask.array.Array | str | PathLike[str],
    mask: ArrayLike | None,
    exposure: ArrayLike | None,
    likelihood: Likelihood,
) -> SplitData:
    """Data for which `is_split` is true; mask and exposure as in `check_series`."""
    if isinstance(X, str | PathLike):
        X = Shards.open(X)
    if isinstance(X, Shards):
        dense = "a Dask array of the same data"
        check_sparse_law(likelihood, dense, f"in {dense}")
        return _shard_data(X, mask, exposure)
    return _dask_data(X, mask, exposure, likelihood)


@contextmanager
def split_series(data: SplitData, config: Config) -> Iterator[SplitSeries]:
    """The series of data in blocks, on the workers of a cluster if there is one."""
    client = current_client()
    with _local(data, config) if client is None else _on_workers(data, config, client) as executor:
        yield SplitSeries.of(executor, data.exposure, data.timeline, data.days)


def _shard_data(shards: Shards, mask: ArrayLike | None, exposure: ArrayLike | None) -> SplitData:
    shape, names = (shards.n_times, shards.n_features), None
    if shards.n_features <= _MOST_NAMES:
        names = [name for i in range(shards.n_shards) for name in shards.names(i)]
    steps = replace(shards.timeline, rows=np.arange(shards.n_times))
    weights = check_mask(aligned(mask, "mask", steps, names), shape)
    if weights.shape[1] == 1:
        weights = np.where(shards.observed[:, None], weights, 0.0)
    elif not shards.observed.all():
        thin = sparse.issparse(weights)
        weights = sparse.lil_array(weights) if thin else np.array(weights, float)
        weights[np.flatnonzero(~shards.observed)] = 0.0
        weights = sparse.csr_array(weights) if thin else weights
    sizes, days = shards.exposure, by_days(exposure)
    if days:
        sizes = Days.of(steps).values
    elif exposure is not None:
        sizes = check_exposure(aligned(exposure, "exposure", steps), shards.n_times)
    sources = [
        ShardSource(shards, b, weights if weights.shape[1] == 1 else weights[:, i:j], sizes)
        for b, (i, j) in enumerate(pairwise(shards.bounds.tolist()))
    ]
    nbytes = sum(shards.nbytes(i) for i in range(shards.n_shards))
    return SplitData(
        shape, names, sizes, shards.timeline, shards.bounds, nbytes,
        lambda client, folder: sources, days,
    )  # fmt: skip


def _dask_data(
    X: dask.array.Array, mask: ArrayLike | None, exposure: ArrayLike | None, likelihood: Likelihood
) -> SplitData:
    import dask

    if not hasattr(X, "chunks") or X.ndim != 2:
        problem = f"X is {type(X).__name__}: expected a Dask array with two dimensions."
        raise ValueError(f"{problem} Turn a frame into one with X.to_dask_array(lengths=True).")
    if np.isnan(sum(map(sum, X.chunks))):
        remedy = "Call X.compute_chunk_sizes(), or to_dask_array(lengths=True) of a frame."
        raise ValueError(f"X has chunks of unknown size. {remedy}")
    shape = N, F = int(X.shape[0]), int(X.shape[1])
    if by_days(exposure):
        Days.of(timeline_of(np.arange(N)))  # refuses steps without dates
    sizes = check_exposure(exposure, N)
    columns = np.concatenate([[0], np.cumsum(X.chunks[1])])
    bounds = columns if len(columns) > 2 else even_bounds(F, min(_BLOCKS, F))
    if len(X.chunks[0]) > 1 and X.nbytes > _COSTLY:
        warn(
            f"X has {len(X.chunks[0])} chunks in time, and a fit needs all steps of a feature in "
            f"one: {X.nbytes / 1e9:.1f} GB are moved between workers, once. Chunks such as "
            f"X.rechunk((-1, {X.chunksize[1]})) avoid it."
        )
    if _is_dask(mask) and mask.shape != shape:
        raise ValueError(f"mask has shape {mask.shape}: expected {shape}, that of X.")
    weights = mask if _is_dask(mask) else check_mask(mask, shape)
    read = dask.delayed(_read_block, pure=False)
    delayed = []
    for i, j in pairwise(bounds.tolist()):
        own = weights[:, i:j] if _is_dask(weights) or weights.shape[1] > 1 else weights
        masks = own.to_delayed().tolist() if _is_dask(own) else own
        delayed.append(read(X[:, i:j].to_delayed().tolist(), masks, sizes, likelihood, i))
    timeline = timeline_of(np.arange(N))
    sources = partial(_dask_sources, delayed)
    return SplitData(shape, None, sizes, timeline, bounds, int(2 * 8 * N * F), sources)


def _dask_sources(
    delayed: list[Delayed], client: Client | None, folder: Path | None
) -> list[BlockSource]:
    """Blocks in this process, or in files from which any worker can read them."""
    import dask

    if client is None:
        return list(dask.compute(*delayed))
    if folder is None:
        problem = (
            "Blocks of a Dask array are written to files for all workers, but these do not see the "
            "temporary files of this machine. Give {checkpoint=} a folder that all machines share."
        )
        raise ValueError(Text(problem))
    store = dask.delayed(_store, pure=False)
    tasks = [store(block, folder / DATA_FOLDER / f"{b:05d}.npz") for b, block in enumerate(delayed)]
    return list(client.gather(client.compute(tasks)))


@dataclass(frozen=True)
class FileSource(BlockSource):
    """Data in a file."""

    path: Path

    def series(self) -> Series:
        arrays = read_npz(self.path)
        shape = tuple(arrays["shape"].tolist())
        X, weights = (matrix_of(arrays, name, shape) for name in ("X", "weights"))
        assert X is not None
        assert weights is not None
        return Series(X, weights, arrays["exposure"])


def _store(block: MemorySource, path: Path) -> FileSource:
    series = block.series()
    arrays = {"exposure": series.exposure, "shape": np.array(series.shape)}
    write_npz(path, arrays | arrays_of("X", series.X) | arrays_of("weights", series.weights))
    return FileSource(path)


def _read_block(
    chunks: list[list[Matrix]],
    weights: Matrix | list[list[Matrix]],
    exposure: Array,
    likelihood: Likelihood,
    first: int,
) -> MemorySource:
    """The data of some features, assembled and checked."""
    if isinstance(weights, list):
        weights = _assembled(weights)
    return MemorySource(checked_part(_assembled(chunks), weights, exposure, likelihood, first))


def _assembled(chunks: list[list[Matrix]]) -> Matrix:
    if sparse.issparse(chunks[0][0]):
        return sparse.csr_array(sparse.block_array([[*row] for row in chunks]))
    return np.block([[np.asarray(chunk) for chunk in row] for row in chunks])


@contextmanager
def _on_workers(data: SplitData, config: Config, client: Client) -> Iterator[Executor]:
    """The blocks on the workers of a cluster."""
    from .dask import DaskExecutor, groups_of

    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = [worker["memory_limit"] for worker in workers]
    size = data.shape[1], config.n_components
    resident = check_memory(config.solver, *size, data.nbytes, limits)
    with shared_folder(checkpoint_folder(config), client) as folder:
        sources = data.sources(client, folder)
        groups = groups_of(sources, data.bounds, max(len(workers), 1))
        executor = DaskExecutor(client, groups, data.bounds, resident=resident, folder=folder)
        with closing(executor):
            yield executor


def check_memory(
    solver: str, n_features: int, n_components: int, nbytes: int, limits: Sequence[int]
) -> bool:
    """Refuse weights that workers cannot hold; returns whether they can also hold the data.

    `nbytes` is the size of the data, `limits` the memory limits of all workers, 0 for none.
    """
    known = [limit for limit in limits if limit]
    if not known:
        return True
    room = _USABLE * min(known) - _PROGRAM
    each = _BYTES.get(solver, _BYTES["mm"]) * n_features * n_components / len(limits)
    if each > room:
        others = ", {mm}" if solver == "accelerated" else ""
        problem = (
            f"The weights of {n_features:,} features, and what {{solver}} keeps of each, take "
            f"{each / 1e9:.2g} GB on each of {len(limits)} workers, which have a limit of "
            f"{min(known) / 1e9:.2g} GB, the program itself included. Take more workers or memory, "
            f"fewer components{others}."
        )
        solvers = {"solver": Arg("solver", repr(solver)), "mm": Arg("solver", "'mm'")}
        raise ValueError(Text(problem, **solvers))
    return nbytes / len(limits) <= _SHARE * (room - each)


def _local(data: SplitData, config: Config) -> AbstractContextManager[Executor]:
    """The blocks in this process."""
    sources, offsets = data.sources(None, None), data.bounds[:-1].tolist()
    resident = data.nbytes <= memory_of_machine() / 2
    blocks = Blocks(sources, offsets, resident=resident, n_jobs=config.n_jobs)
    return closing(LocalExecutor(blocks, data.bounds, checkpoint_folder(config)))


def current_client() -> Client | None:
    """The current Dask client, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def checkpoint_folder(config: Config) -> Path | None:
    """The user's folder for checkpoints of a mode; draws have a checkpoint file instead."""
    if config.checkpoint is None or config.drawing:
        return None
    folder = Path(config.checkpoint).resolve()  # workers have other working directories
    if folder.exists() and not folder.is_dir():
        problem = "is a file: data in blocks need a folder."
        raise ArgumentError("checkpoint", str(folder), problem, "Name another.")
    folder.mkdir(parents=True, exist_ok=True)
    refuse_links_out(folder)
    return folder


@contextmanager
def shared_folder(given: Path | None, client: Client) -> Iterator[Path | None]:
    """A folder for checkpoints that all workers see: the user's or a temporary one; or None.

    A temporary one is deleted at the end, unless the cluster was lost and it has a checkpoint.
    """
    from .dask import ClusterLostError

    folder = given or Path(tempfile.mkdtemp(prefix="temporalnmf-"))
    sees = client.run(os.path.exists, str(folder))
    lost = False
    try:
        if given is not None and not all(sees.values()):
            hidden = next(address for address, seen in sees.items() if not seen)
            problem = f"is not visible to the worker at {hidden}."
            remedy = "Name a folder that all machines share."
            raise ArgumentError("checkpoint", str(folder), problem, remedy)
        yield folder if all(sees.values()) else None
    except ClusterLostError as error:
        lost = (folder / "fit.npz").exists()
        if not lost:
            raise ClusterLostError(f"{error} There is no checkpoint yet: fit again.") from error
        remedy = (
            "{error} There is a checkpoint: the same fit with {checkpoint} resumes from it, on any "
            "cluster that sees this folder, or without one."
        )
        checkpoint = Arg("checkpoint", repr(str(folder)))
        raise ClusterLostError(Text(remedy, error=error, checkpoint=checkpoint)) from error
    finally:
        for file in (folder / DATA_FOLDER).glob("[0-9]*.npz"):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # it does not exist, or has other files
            (folder / DATA_FOLDER).rmdir()
        if given is None and not lost:
            shutil.rmtree(folder, ignore_errors=True)
