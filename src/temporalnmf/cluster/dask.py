"""Blocks on the workers of a Dask cluster.

The blocks are divided into groups of neighbours, one per worker. Each group is a Dask actor: an
object on its worker that is called directly, so that a request takes milliseconds and data and
weights stay where they are. Each pass sends H and receives sums.

If a worker is lost, another one rebuilds its group: data from their source, weights from the last
checkpoint, and all requests since then, once more. Blocks depend on nothing but the requests, so
the fit continues with the same bits.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from .._typing import Array
from .block_data import BlockData, BlockSource
from .blocks import Blocks
from .clients import address_of
from .executor import BlockFiles, Executor
from .requests import DATA, Nodes, Request, combined, result

if TYPE_CHECKING:
    from distributed import Actor, ActorFuture, Client, Future

# Largest number of groups that the client or a worker calls; more of them form a tree.
_FAN = 8
# Seconds between two checks of whether a worker that does not respond is alive; after which a
# request is sent again; to wait for a first worker; between two checkpoints.
_PATIENCE, _NO_RESPONSE, _NO_WORKER, _PAUSE = 2.0, 60.0, 60.0, 30.0
# Seconds after which a scheduler that does not respond is considered lost.
_NO_SCHEDULER = 20.0
# Workers that may be lost with one group before it has responded to a request.
_MOST_LOSSES = 5
# Dask's errors for a call to an actor whose worker is lost.
_GONE = (OSError, RuntimeError)
# Arrays of at least this size, in bytes, are not sent again if they equal the one sent last.
_LARGE = 2**10


class ClusterLostError(ConnectionError):
    """The scheduler or all workers are lost, or workers are lost again and again."""


@dataclass(frozen=True)
class Group:
    """Neighbouring blocks: the sources of their data, and their numbers."""

    number: int
    first: int
    sources: tuple[BlockSource, ...]
    offsets: tuple[int, ...]

    @property
    def blocks(self) -> range:
        return range(self.first, self.first + len(self.sources))


def groups_of(sources: Sequence[BlockSource], bounds: Array, n_groups: int) -> list[Group]:
    """Groups of about the same number of blocks."""
    cuts = np.unique(np.arange(n_groups + 1) * len(sources) // n_groups)
    offsets = np.asarray(bounds).tolist()
    return [
        Group(number, i, tuple(sources[i:j]), tuple(offsets[i:j]))
        for number, (i, j) in enumerate(pairwise(cuts.tolist()))
    ]


class _Same:
    """Stands for the large array that was sent last."""


class _LostError(Exception):
    """The worker of a group is lost."""


class _DiskError(Exception):
    """A block could not read or write a file: its worker is not lost."""


class _Branch(NamedTuple):
    """A group, its actor, and the groups that this one calls."""

    number: int
    actor: Actor
    below: Sequence[_Branch]

    def numbers(self) -> list[int]:
        return [self.number, *(n for branch in self.below for n in branch.numbers())]


@contextmanager
def _disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _DiskError(f"{type(error).__name__}: {error}") from error


class Worker:
    """A group of blocks on a Dask worker: the actor."""

    def __init__(self, group: Group, n_blocks: int, resident: bool) -> None:
        from distributed import get_worker

        threads = int(get_worker().state.nthreads)
        self._blocks = Blocks(
            group.sources, group.offsets, group.first, n_blocks, resident=resident, n_jobs=threads
        )
        self._n_blocks = n_blocks
        self._serial = 0
        self._response: Nodes = {}
        self._last: object = None

    @_disk()
    def ask(
        self, serial: int, requests: list[Request], below: Sequence[_Branch] = ()
    ) -> tuple[Nodes, list[int]]:
        """Responses of this group and those below it, and numbers of groups that did not respond.

        A request that is sent again gets the same response again; nothing is done twice.
        """
        pending = []
        for branch in below:
            with suppress(*_GONE):
                pending.append((branch, branch.actor.ask(serial, requests, branch.below)))
        if serial != self._serial:
            if serial != self._serial + 1:
                raise RuntimeError(f"got request {serial} after request {self._serial}")
            self._response = self._blocks.ask(self._unpacked(requests))
            self._serial = serial
        nodes, lost = dict(self._response), {n for branch in below for n in branch.numbers()}
        for branch, sent in pending:
            with suppress(OSError):
                found, missing = sent.result()
                nodes |= found
                lost = lost - set(branch.numbers()) | set(missing)
        return combined(nodes, self._n_blocks, requests[-1].how), sorted(lost)

    @_disk()
    def resume(self, serial: int, log: list[list[Request]], files: BlockFiles | None) -> None:
        """Replay requests, the first of which prepare the data; then the checkpoint is read."""
        for i, requests in enumerate(log):
            self._blocks.ask(requests)
            if i == 0 and files is not None:
                self._blocks.load(files.file)
        self._serial = serial

    @_disk()
    def save(self, files: BlockFiles) -> None:
        """Write the state of all blocks."""
        self._blocks.save(files.file)

    def close(self) -> None:
        self._blocks.close()

    def _unpacked(self, requests: list[Request]) -> list[Request]:
        """Replace `_Same` by the array that was sent last."""

        def unpacked(given: object) -> object:
            if _large(given):
                self._last = given
            return self._last if isinstance(given, _Same) else given

        return [r._replace(arguments=tuple(map(unpacked, r.arguments))) for r in requests]


def _large(given: object) -> bool:
    return isinstance(given, np.ndarray) and given.nbytes >= _LARGE


@dataclass
class _Placement:
    """A group, and the worker that holds it now."""

    group: Group
    actor: Actor = field(init=False)
    future: Future[Worker] = field(init=False)
    address: str = ""
    losses: int = 0

    def own(self, requests: list[Request]) -> list[Request]:
        """Requests with the arguments for blocks of this group only."""
        return [
            r if r.own is None else r._replace(own={b: r.own[b] for b in self.group.blocks})
            for r in requests
        ]


def _tree(placements: Sequence[_Placement], fan: int) -> list[_Branch]:
    """Groups as a tree in which no node calls more than `fan` others."""
    if len(placements) <= fan:
        return [_Branch(placed.group.number, placed.actor, ()) for placed in placements]
    found = []
    for i in range(fan):
        first, *others = placements[i * len(placements) // fan : (i + 1) * len(placements) // fan]
        found.append(_Branch(first.group.number, first.actor, _tree(others, fan)))
    return found


class _Call:
    """A pending call of a method of an actor."""

    def __init__(
        self, executor: DaskExecutor, placed: _Placement, name: str, *arguments: object
    ) -> None:
        self._executor, self._placed = executor, placed
        self._name, self._arguments = name, arguments
        self._send()

    def _send(self) -> None:
        self._sent = time.monotonic()
        self._pending: ActorFuture[object] | None = None
        with suppress(*_GONE):
            self._pending = getattr(self._placed.actor, self._name)(*self._arguments)

    def result(self) -> object:
        """The result; raises _LostError if the worker is lost."""
        while self._pending is not None:
            try:
                return self._pending.result(timeout=_PATIENCE)
            except TimeoutError:
                if self._placed.address not in self._executor.workers():
                    break
                if self._name == "ask" and time.monotonic() - self._sent > _NO_RESPONSE:
                    self._send()  # the response may be lost; sending twice does no harm
            except OSError:
                break
            except _DiskError as error:
                raise OSError(str(error)) from error
        raise _LostError


class DaskExecutor(Executor):
    """Blocks on the workers of a cluster; see `Executor` and `Blocks`.

    Without a folder for checkpoints, lost groups replay all requests from the beginning.
    """

    def __init__(
        self,
        client: Client,
        groups: list[Group],
        bounds: Array,
        *,
        resident: bool = True,
        folder: Path | None = None,
    ) -> None:
        super().__init__(bounds, folder)
        self._client, self._resident = client, resident
        self._placements = [_Placement(group) for group in groups]
        self._serial = self._completed = 0
        self._deferred: list[Request] = []
        # Requests to replay: how to prepare the data, and all since the last checkpoint.
        self._prepared: list[Request] = []
        self._files: BlockFiles | None = None
        self._own: BlockFiles | None = None  # a checkpoint that the user did not ask for
        self._log: list[list[Request]] = []
        # The large array that was copied last, and the one that all groups have.
        self._last: Array | None = None
        self._sent: object = None
        self._saved = time.monotonic()
        self.losses = 0
        addresses = self.workers()
        for i, placed in enumerate(self._placements):
            self._place(placed, addresses[i % len(addresses)])
        for placed in self._placements:
            try:
                self._wait(placed)
            except _LostError:
                self._replace(placed)

    # Requests.

    def ask(self, request: Request) -> object:
        requests, self._deferred = [*self._deferred, self._copied(request)], []
        self._serial += 1
        nodes = self._round(requests)
        if request.name == "prepare":
            self._prepared, self._files, self._log = requests[-1:], None, []
        elif request.slot != DATA or len(requests) > 1:
            self._log.append(requests)
        return result(nodes, self.n_blocks, request.how)

    def tell(self, request: Request) -> None:
        self._deferred.append(self._copied(request))

    def _copied(self, request: Request) -> Request:
        """Copy the arguments, except a large array that equals the last one copied."""

        def copied(given: object) -> object:
            if not isinstance(given, np.ndarray) or not _large(given):
                return copy.deepcopy(given)  # arrays and random streams will change
            if self._last is None or not np.array_equal(given, self._last):
                self._last = np.array(given)
            return self._last

        arguments = tuple(map(copied, request.arguments))
        return request._replace(arguments=arguments, own=copy.deepcopy(request.own))

    def _packed(self, requests: list[Request]) -> list[Request]:
        """Replace a large array that all groups have by `_Same`."""

        def packed(given: object) -> object:
            if _large(given) and given is self._sent:
                return _Same()
            if _large(given):
                self._sent = given
            return given

        return [r._replace(arguments=tuple(map(packed, r.arguments))) for r in requests]

    def _round(self, requests: list[Request]) -> Nodes:
        """Send requests to all groups, and again to those that were lost meanwhile."""
        nodes: Nodes = {}
        # No tree if each block has its own arguments, or if a worker has two groups, since it can
        # only wait for one response.
        flat = any(request.own for request in requests)
        flat = flat or len({placed.address for placed in self._placements}) < len(self._placements)
        tree = _tree(self._placements, len(self._placements) if flat else _FAN)
        packed = self._packed(requests)
        pending = [(self._placements[branch.number], branch.below, packed) for branch in tree]
        while pending:
            calls = [
                (placed, below, _Call(self, placed, "ask", self._serial, placed.own(sent), below))
                for placed, below, sent in pending
            ]
            pending = []
            for placed, below, call in calls:
                try:
                    found, lost = cast(tuple[Nodes, list[int]], call.result())
                    nodes |= found
                except _LostError:
                    self._replace(placed)
                    pending.append((placed, (), requests))
                    lost = [number for branch in below for number in branch.numbers()]
                # They may be lost, too; if they have responded already, they do so again.
                pending += [(self._placements[number], (), packed) for number in lost]
        self._completed = self._serial
        for placed in self._placements:
            placed.losses = 0
        return nodes

    # Lost workers.

    def workers(self) -> list[str]:
        """Addresses of the workers; waits for a first one."""
        deadline = time.monotonic() + _NO_WORKER
        while True:
            try:
                scheduler = self._client.scheduler
                assert scheduler is not None  # only a closed client has none
                found = self._client.sync(
                    scheduler.identity, n_workers=-1, callback_timeout=_NO_SCHEDULER
                )
            except (OSError, ValueError) as error:
                raise self._lost("does not answer") from error
            if found["workers"]:
                return sorted(found["workers"])
            if time.monotonic() > deadline:
                raise self._lost(f"had no worker for {_NO_WORKER:g} seconds")
            time.sleep(0.2)

    def _lost(self, problem: str) -> ClusterLostError:
        return ClusterLostError(f"The Dask scheduler at {address_of(self._client)} {problem}.")

    def _place(self, placed: _Placement, address: str) -> None:
        """Create the actor of a group on this worker, and only there."""
        placed.address = address
        placed.future = self._client.submit(
            Worker, placed.group, self.n_blocks, self._resident,
            actor=True, workers=[address], pure=False,
        )  # fmt: skip

    def _wait(self, placed: _Placement) -> None:
        """Wait for the actor of a group."""
        while True:
            try:
                placed.actor = cast("Actor", placed.future.result(timeout=_PATIENCE))
                placed.address = placed.actor._address
                return
            except TimeoutError:
                if placed.address not in self.workers():
                    raise _LostError from None
            except (OSError, RuntimeError, CancelledError) as error:
                raise _LostError from error

    def _replace(self, placed: _Placement) -> None:
        """Rebuild a lost group on the worker with the fewest groups, and replay its requests."""
        self.losses += 1
        self._sent = None  # it does not have the array that the others have
        log = [placed.own(requests) for requests in (self._prepared, *self._log) if requests]
        while True:
            placed.losses += 1
            if placed.losses > _MOST_LOSSES:
                raise ClusterLostError(
                    f"{placed.losses} workers in a row were lost with features "
                    f"{placed.group.offsets[0]} and following, perhaps for lack of memory: give "
                    f"workers more of it, or cut the data into more shards."
                )
            others = [other.address for other in self._placements if other is not placed]
            self._place(placed, min(self.workers(), key=lambda a: (others.count(a), a)))
            try:
                self._wait(placed)
                _Call(self, placed, "resume", self._completed, log, self._files).result()
                return
            except _LostError:
                continue

    # Checkpoints.

    def between_iterations(self) -> None:
        if self.folder is not None and time.monotonic() - self._saved > _PAUSE:
            old = self._own
            self._own = BlockFiles(self.folder, 0 if old is None else old.number + 1)
            self.save(self._own)
            if old is not None:
                old.remove(self.n_blocks)

    def save(self, files: BlockFiles) -> None:
        """Write the state of all blocks, and forget the requests before it."""
        self.data.add(BlockData.no_op)  # sends deferred requests
        self._everywhere("save", files)
        # Files hold the weights; the parameters of the likelihood are part of the data.
        used = [r for requests in self._log for r in requests if r.name == "use"]
        self._prepared = [*self._prepared[:1], *(used or self._prepared[1:])[-1:]]
        self._files, self._log = files, []
        self._saved = time.monotonic()

    def load(self, files: BlockFiles) -> None:
        self.data.add(BlockData.no_op)
        self._files, self._log = files, []
        self._everywhere("resume", self._completed, [self._prepared], files)

    def _everywhere(self, name: str, *arguments: object) -> None:
        """Call a method of all actors."""
        pending = list(self._placements)
        while pending:
            calls = [(placed, _Call(self, placed, name, *arguments)) for placed in pending]
            pending = []
            for placed, call in calls:
                try:
                    call.result()
                except _LostError:
                    self._replace(placed)
                    pending.append(placed)

    def close(self) -> None:
        for placed in self._placements:
            with suppress(*_GONE):
                placed.actor.close()
            del placed.actor, placed.future
        if self._own is not None:
            self._own.remove(self.n_blocks)
