"""Blocks on the workers of a Dask cluster.

The blocks are shared out in groups of neighbours, one per worker, and each group is an actor of
Dask: an object that lives on its worker and is spoken to directly, so that a question costs
milliseconds and data and weights stay where they are. Per pass H goes out and sums come back.

A worker that is lost takes its group with it. Another worker then makes the group anew: data from
their source, weights from the last checkpoint, and all that the blocks were told since, once more.
Blocks only depend on what they are told, so the fit goes on as if nothing had happened, to the bit.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array
from .bench import Bench
from .pieces import Piece
from .questions import DATA, Answer, Nodes, Question, combined, whole
from .team import Checkpoint, Team

# Groups that are asked by one other, or by us. More of them are asked in the form of a tree.
_FAN = 8
# Seconds between two looks at whether a worker that does not answer is still there; after which a
# question is asked again; for which to wait if there is no worker; between two checkpoints.
_PATIENCE, _NO_ANSWER, _NO_WORKER, _PAUSE = 2.0, 60.0, 60.0, 30.0
# Seconds after which a scheduler that does not answer is gone.
_NO_SCHEDULER = 20.0
# Workers that may be lost with one group before it has answered a single question.
_MOST_LOSSES = 5
# Bytes of an array from which on it is not sent again if it is the one that was sent last.
_LARGE = 2**10


class ClusterLostError(ConnectionError):
    """The scheduler or all workers are gone, or workers are lost again and again."""


@dataclass(frozen=True)
class Group:
    """Neighbouring blocks: where their data come from, and their numbers."""

    number: int
    first: int
    pieces: tuple[Piece, ...]
    offsets: tuple[int, ...]

    @property
    def blocks(self) -> range:
        return range(self.first, self.first + len(self.pieces))


def _cut(questions: list[Question], member: _Member) -> list[Question]:
    """Questions with the arguments of the blocks of one group only."""
    return [
        q if q.own is None else q._replace(own={b: q.own[b] for b in member.group.blocks})
        for q in questions
    ]


def _tree(members: Sequence[_Member], fan: int) -> Sequence[_Below]:
    """Groups with those below them, so that nobody asks more than so many."""
    if len(members) <= fan:
        return [(member.group.number, member.post, ()) for member in members]
    found = []
    for i in range(fan):
        first, *others = members[i * len(members) // fan : (i + 1) * len(members) // fan]
        found.append((first.group.number, first.post, _tree(others, fan)))
    return found


def groups_of(pieces: Sequence[Piece], bounds: Array, n_groups: int) -> list[Group]:
    """Groups of about as many blocks."""
    cuts = np.unique(np.arange(n_groups + 1) * len(pieces) // n_groups)
    offsets = np.asarray(bounds).tolist()
    return [
        Group(number, i, tuple(pieces[i:j]), tuple(offsets[i:j]))
        for number, (i, j) in enumerate(pairwise(cuts.tolist()))
    ]


class _Same:
    """In the place of the large array that was sent last."""


class _LostError(Exception):
    """The worker of a group is gone."""


class _DiskError(Exception):
    """What a block could not read or write: no sign that its worker is gone."""


class Post:
    """A group on its worker: the actor."""

    def __init__(self, group: Group, n_blocks: int, resident: bool) -> None:
        from distributed import get_worker

        threads = int(get_worker().state.nthreads)
        self._bench = Bench(
            group.pieces, group.offsets, group.first, n_blocks, resident=resident, n_jobs=threads
        )
        self._n_blocks = n_blocks
        self._serial = 0
        self._answer: Nodes = {}
        self._last: Any = None

    def ask(
        self, serial: int, questions: list[Question], below: Sequence[_Below] = ()
    ) -> tuple[Nodes, list[int]]:
        """Answers of this group and of those below it, and the groups that did not answer.

        Who asks again gets the answer again, and nothing is done twice.
        """
        waiting = [_send(post, serial, questions, rest) for _, post, rest in below]
        if serial != self._serial:
            if serial != self._serial + 1:
                raise RuntimeError(f"asked question {serial} after question {self._serial}")
            self._answer = self._told(self._unpacked(questions))
            self._serial = serial
        nodes, lost = self._answer, []
        for (number, _, rest), sent in zip(below, waiting, strict=True):
            answer = _received(sent)
            if answer is None:
                lost += [number, *_numbers(rest)]
            else:
                nodes, lost = {**nodes, **answer[0]}, [*lost, *answer[1]]
        how = questions[-1].how
        return combined(nodes, self._n_blocks, how) if how not in ("", "each") else nodes, lost

    def resume(self, serial: int, log: list[list[Question]], checkpoint: Checkpoint | None) -> None:
        """Become what a group is after all these questions, the first of which are for the data."""
        for i, questions in enumerate(log):
            self._told(questions)
            if i == 0 and checkpoint is not None:
                with _disk():
                    self._bench.load(checkpoint.file)
        self._serial = serial

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the state of all blocks."""
        with _disk():
            self._bench.save(checkpoint.file)

    def close(self) -> None:
        self._bench.close()

    def _told(self, questions: list[Question]) -> Nodes:
        with _disk():
            return self._bench.ask(questions)

    def _unpacked(self, questions: list[Question]) -> list[Question]:
        """With the array that was sent last in its place."""

        def unpacked(given: Any) -> Any:
            if isinstance(given, _Same):
                return self._last
            if _large(given):
                self._last = given
            return given

        return [q._replace(arguments=tuple(map(unpacked, q.arguments))) for q in questions]


@contextmanager
def _disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _DiskError(f"{type(error).__name__}: {error}") from error


# A group, its actor and those below it.
_Below = tuple[int, Any, Sequence[Any]]


def _large(given: Any) -> bool:
    return isinstance(given, np.ndarray) and given.nbytes >= _LARGE


def _numbers(below: Sequence[_Below]) -> list[int]:
    return [n for number, _, rest in below for n in (number, *_numbers(rest))]


def _send(post: Any, serial: int, questions: list[Question], below: Sequence[_Below]) -> Any:
    try:
        return post.ask(serial, questions, below)
    except (OSError, RuntimeError):  # what Dask says of an actor whose worker is gone
        return None


def _received(sent: Any) -> tuple[Nodes, list[int]] | None:
    if sent is None:
        return None
    try:
        found: tuple[Nodes, list[int]] = sent.result()
    except OSError:
        return None
    return found


@dataclass
class _Member:
    """A group, and who holds it now."""

    group: Group
    post: Any = None
    future: Any = None
    address: str = ""
    losses: int = 0


class _Call:
    """A call to the actor of a group, under way."""

    def __init__(
        self, team: DaskTeam, member: _Member, name: str, arguments: tuple[Any, ...]
    ) -> None:
        self._team, self._member, self._name, self._arguments = team, member, name, arguments
        self._send()

    def _send(self) -> None:
        self._sent = time.monotonic()
        try:
            self._waiting = getattr(self._member.post, self._name)(*self._arguments)
        except (OSError, RuntimeError):  # what Dask says of an actor whose worker is gone
            self._waiting = None

    def result(self) -> Any:
        """What it returns; raises _LostError if the worker is gone."""
        while self._waiting is not None:
            try:
                return self._waiting.result(timeout=_PATIENCE)
            except TimeoutError:
                if self._member.address not in self._team.workers():
                    break
                if self._name == "ask" and time.monotonic() - self._sent > _NO_ANSWER:
                    self._send()  # the answer may have gone astray, and it does not hurt
            except OSError:
                break
            except _DiskError as error:
                raise OSError(str(error)) from error
        raise _LostError


class DaskTeam(Team):
    """Blocks on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    groups : list of Group
    bounds : array of int, (n_blocks + 1,)
    resident : bool
        Keep the data in the memory of the workers; or read them for every pass.
    folder : Path or None
        For checkpoints, seen by us and by all workers. None: groups that are lost are asked
        everything from the beginning.
    """

    def __init__(
        self,
        client: Any,
        groups: list[Group],
        bounds: Array,
        *,
        resident: bool = True,
        folder: Path | None = None,
    ) -> None:
        super().__init__(bounds, folder)
        self._client, self._resident = client, resident
        self._members = [_Member(group) for group in groups]
        self._serial = self._answered = 0
        self._waiting: list[Question] = []
        # What the blocks were told: how to prepare data, and all since the last checkpoint.
        self._prepared: list[Question] = []
        self._checkpoint: Checkpoint | None = None
        self._own: Checkpoint | None = None  # one that nobody asked for
        self._log: list[list[Question]] = []
        # The large array that was copied last, and the one that all groups have.
        self._last: Any = None
        self._sent: Any = None
        self._saved = time.monotonic()
        self.losses = 0
        homes = self.workers()
        for i, member in enumerate(self._members):
            self._place(member, homes[i % len(homes)])
        for member in self._members:
            try:
                self._settle(member)
            except _LostError:
                self._replace(member)

    # Questions.

    def ask(self, question: Question) -> Answer:
        questions, self._waiting = [*self._waiting, self._own_copy(question)], []
        self._serial += 1
        nodes = self._round(questions)
        if question.name == "prepare":
            self._prepared, self._checkpoint, self._log = questions[-1:], None, []
        elif question.of != DATA or len(questions) > 1:
            self._log.append(questions)
        return whole(nodes, self.n_blocks, question.how)

    def tell(self, question: Question) -> None:
        self._waiting.append(self._own_copy(question))

    def _own_copy(self, question: Question) -> Question:
        """Arrays as they are now; what is equal to the last large one is that one."""

        def own(given: Any) -> Any:
            if not _large(given):
                return copy.deepcopy(given)  # arrays and random streams move on
            if self._last is None or not np.array_equal(given, self._last):
                self._last = np.array(given)
            return self._last

        arguments = tuple(map(own, question.arguments))
        return question._replace(arguments=arguments, own=copy.deepcopy(question.own))

    def _packed(self, questions: list[Question]) -> list[Question]:
        """Without a large array that all have already."""

        def packed(given: Any) -> Any:
            if not _large(given):
                return given
            if given is self._sent:
                return _Same()
            self._sent = given
            return given

        return [q._replace(arguments=tuple(map(packed, q.arguments))) for q in questions]

    def _round(self, questions: list[Question]) -> Nodes:
        """Ask all groups, and again those that were lost on the way."""
        nodes: Nodes = {}
        # All at once where each is told something of its own, and where a worker has two groups,
        # since it can only wait for one answer.
        flat = any(question.own for question in questions)
        flat = flat or len({member.address for member in self._members}) < len(self._members)
        tree = _tree(self._members, len(self._members) if flat else _FAN)
        packed = self._packed(questions)
        pending = [(self._members[number], below, packed) for number, _, below in tree]
        while pending:
            calls = [
                (member, below, self._call(member, "ask", self._serial, _cut(said, member), below))
                for member, below, said in pending
            ]
            pending = []
            for member, below, call in calls:
                try:
                    found, lost = call.result()
                    nodes |= found
                except _LostError:
                    self._replace(member)
                    pending.append((member, (), questions))
                    lost = _numbers(below)
                # These may have answered already, and then say it again; or they are gone, too.
                pending += [(self._members[number], (), packed) for number in lost]
        self._answered = self._serial
        for member in self._members:
            member.losses = 0
        return nodes

    def _call(self, member: _Member, name: str, *arguments: Any) -> _Call:
        return _Call(self, member, name, arguments)

    # Workers that come and go.

    def workers(self) -> list[str]:
        """Addresses of those that there are; waits for a first one."""
        deadline = time.monotonic() + _NO_WORKER
        while True:
            try:
                found = self._client.sync(
                    self._client.scheduler.identity, n_workers=-1, callback_timeout=_NO_SCHEDULER
                )
            except (OSError, ValueError) as error:
                raise ClusterLostError(self._gone("does not answer")) from error
            if found["workers"]:
                return sorted(found["workers"])
            if time.monotonic() > deadline:
                raise ClusterLostError(self._gone(f"had no worker for {_NO_WORKER:g} seconds"))
            time.sleep(0.2)

    def _gone(self, what: str) -> str:
        return f"The Dask scheduler at {self._client.scheduler.address} {what}."

    def _place(self, member: _Member, address: str) -> None:
        """Have the actor of a group made on a worker.

        On no other, if that is lost: so we know whom we wait for.
        """
        member.address = address
        member.future = self._client.submit(
            Post, member.group, self.n_blocks, self._resident,
            actor=True, workers=[address], pure=False,
        )  # fmt: skip

    def _settle(self, member: _Member) -> None:
        """Wait for the actor of a group."""
        while True:
            try:
                member.post = member.future.result(timeout=_PATIENCE)
                member.address = member.post._address
                return
            except TimeoutError:
                if member.address not in self.workers():
                    raise _LostError from None
            except (OSError, RuntimeError, CancelledError) as error:
                raise _LostError from error

    def _replace(self, member: _Member) -> None:
        """Make a lost group anew, on the worker that has fewest, and tell it all again."""
        self.losses += 1
        self._sent = None  # it does not have what the others have
        log = [_cut(questions, member) for questions in (self._prepared, *self._log) if questions]
        while True:
            member.losses += 1
            if member.losses > _MOST_LOSSES:
                raise ClusterLostError(
                    f"{member.losses} workers in a row were lost with the same features, number "
                    f"{member.group.offsets[0]} and following. Perhaps these do not fit into "
                    f"memory: give workers more of it, or cut the data into more shards."
                )
            homes = [other.address for other in self._members if other is not member]
            self._place(member, min(self.workers(), key=lambda a: (homes.count(a), a)))
            try:
                self._settle(member)
                self._call(member, "resume", self._answered, log, self._checkpoint).result()
                return
            except _LostError:
                continue

    # Checkpoints.

    def rest(self) -> None:
        if self.folder is not None and time.monotonic() - self._saved > _PAUSE:
            old = self._own
            self._own = Checkpoint(self.folder, 0 if old is None else old.number + 1)
            self.save(self._own)
            if old is not None:
                old.remove(self.n_blocks)

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the state of all blocks, and forget what they were told before."""
        self.ask(Question(DATA, "nothing", (), "add"))  # what waits is told
        self._everywhere("save", checkpoint)
        self._checkpoint, self._log = checkpoint, []
        self._saved = time.monotonic()

    def load(self, checkpoint: Checkpoint) -> None:
        self.ask(Question(DATA, "nothing", (), "add"))
        self._checkpoint, self._log = checkpoint, []
        self._everywhere("resume", self._answered, [self._prepared], checkpoint)

    def _everywhere(self, name: str, *arguments: Any) -> None:
        pending = list(self._members)
        while pending:
            calls = [(member, self._call(member, name, *arguments)) for member in pending]
            pending = []
            for member, call in calls:
                try:
                    call.result()
                except _LostError:
                    self._replace(member)
                    pending.append(member)

    def close(self) -> None:
        for member in self._members:
            with suppress(OSError, RuntimeError):
                member.post.close()
            member.post = member.future = None
        if self._own is not None:
            self._own.remove(self.n_blocks)
