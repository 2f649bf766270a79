"""Blocks that lie side by side in one process: their data, and weights for every W there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from .._typing import Array
from ..data.series import Series
from ..likelihoods.base import Likelihood
from ..observations.base import Observations, Sums, observe
from ..observations.block import Block
from ..observations.crew import Answer, Nodes, combined
from ..runtime.archives import read_npz, sealed, unsealed
from ..runtime.files import written_whole
from ..runtime.threads import Workers

# Questions about the data, rather than about some W.
DATA = -1


class Piece:
    """Where the data of one block come from. It can be sent to another process."""

    def series(self) -> Series:
        """The data, checked."""
        raise NotImplementedError

    def fingerprint(self) -> int:
        """A number that changes with the data."""
        return self.series().fingerprint()

    def survey(self) -> tuple[Array, Array]:
        """Whether a step has any observed entry, as numbers, and the totals of these; (N,)."""
        series = self.series()
        return np.asarray(series.observed, dtype=float), series.totals

    def observations(
        self,
        steps: Steps,
        likelihood: Likelihood,
        workers: Workers,
        known: Observations | None = None,
    ) -> Observations:
        """Some steps, for the kernels; `known` are the same, if they were seen before."""
        used = steps.of(self.series())
        return observe(used.X, used.weights, used.exposure, likelihood, workers)


@dataclass(frozen=True)
class Slice(Piece):
    """Data in memory."""

    data: Series

    def series(self) -> Series:
        return self.data


class Steps(NamedTuple):
    """Which steps of a series are worked on, whether an unobserved one stands before them, and the
    unit of their rates.
    """

    numbers: Array
    anchored: bool = False
    unit: float = 1.0

    def of(self, series: Series) -> Series:
        used = series.take(self.numbers).in_unit(self.unit)
        return used.anchored() if self.anchored else used


class Question(NamedTuple):
    """Something to ask of, or tell, all blocks.

    `of` is the number of a W, or DATA; `how` says what to do with answers, see `Crew.ask`, and is
    empty where there are none. `own` are last arguments by the number of the block.
    """

    of: int
    name: str
    arguments: tuple[Any, ...] = ()
    how: str = ""
    own: dict[int, Any] | None = None


class Reference(NamedTuple):
    """In the place of a block of another W, as an argument."""

    of: int


class Description(NamedTuple):
    """What is known of the data of all blocks, by sums over them."""

    level: float
    saturated: float
    n_counted: float
    n_unshared: float  # blocks in which features do not share B


class BlockData:
    """The data of one block.

    Parameters
    ----------
    piece : Piece
    first : int
        Number of its first feature.
    resident : bool
        Keep the data in memory; or read them for every pass.
    workers : Workers
    """

    def __init__(self, piece: Piece, first: int, resident: bool, workers: Workers) -> None:
        self.piece, self.first, self.resident, self.workers = piece, first, resident, workers
        self.observations: Observations
        self.steps: Steps

    def fingerprint(self) -> int:
        return self.piece.fingerprint()

    def survey(self) -> tuple[Array, Array]:
        return self.piece.survey()

    def prepare(self, steps: Steps, likelihood: Likelihood) -> Array:
        """Hold some steps for the kernels; returns a `Description`."""
        load = partial(self.piece.observations, steps, likelihood, self.workers)
        found = load()
        self.steps = steps
        self.observations = found if self.resident else Streamed(found, load)
        n_counted = float(np.count_nonzero(found.counted))
        about = Description(found.level, found.saturated, n_counted, float(not found.shared))
        return np.array(list(about))

    def curvature(self, block: Block, H: Array, expected: bool) -> tuple[Array, Array]:
        """Its part of (L1), see `posterior.data_part`."""
        from ..inference.laplace import data_part

        used, likelihood = self.steps.of(self.piece.series()), self.observations.likelihood
        return data_part(used, block.W, H, likelihood, expected)

    def drawable(self) -> float:
        """Refuse what there are no draws for."""
        from ..sampling.gibbs import check_counts

        check_counts(self.steps.of(self.piece.series()))
        return 0.0

    def nothing(self) -> float:
        """A question that costs nothing."""
        return 0.0

    def exposed(self) -> Array:
        """Of the features, which share it."""
        return self.observations.exposed

    def seen(self) -> Array:
        return self.observations.seen

    def counted(self) -> Array:
        return self.observations.counted


class Streamed(Observations):
    """Observations that are read for every pass, and let go after it."""

    def __init__(self, example: Observations, load: Callable[..., Observations]) -> None:
        super().__init__()
        self.order = example.order
        self.likelihood, self.shape = example.likelihood, example.shape
        self.seen, self.counted = example.seen, example.counted
        self.level, self.saturated = example.level, example.saturated
        self.shared, self.exposed = example.shared, example.exposed
        self._load = load

    def _loaded(self) -> Observations:
        return self._load(known=self)

    def sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        return self._loaded().sums(W, H, wants)

    def value(self, W: Array, H: Array) -> float:
        return self._loaded().value(W, H)


class Bench:
    """The blocks of one process.

    Parameters
    ----------
    pieces : sequence of Piece
    offsets : sequence of int
        Number of the first feature of each.
    first : int
        Number of the first block, of n_blocks in all.
    n_blocks : int
    resident : bool
        Keep the data in memory; or read them for every pass.
    n_jobs : int
        Threads for the passes.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        offsets: Sequence[int],
        first: int = 0,
        n_blocks: int | None = None,
        *,
        resident: bool = True,
        n_jobs: int = 1,
    ) -> None:
        self.first = first
        self.n_blocks = len(pieces) if n_blocks is None else n_blocks
        self.workers = Workers(n_jobs)
        self.data = [
            BlockData(piece, offset, resident, self.workers)
            for piece, offset in zip(pieces, offsets, strict=True)
        ]
        self._blocks: dict[int, dict[int, Any]] = {}  # Block, or HeldBlock

    def ask(self, questions: Sequence[Question]) -> Nodes:
        """Ask every block in turn, and answer the last question."""
        nodes: Nodes = {}
        how = questions[-1].how
        for i in range(len(self.data)):
            for question in questions:
                answer = self._ask(i, question)
            nodes[0, self.first + i] = answer
            if how not in ("", "each"):
                # At once: answers of many blocks would take as much memory as their data.
                nodes = combined(nodes, self.n_blocks, how)
        return nodes

    def _ask(self, i: int, question: Question) -> Answer:
        of = question.of
        if question.name == "drop":
            self._blocks.get(of, {}).pop(i, None)
            return None
        if question.name == "prepare":
            for blocks in self._blocks.values():
                blocks.pop(i, None)  # they were about other steps
        target: Any = self.data[i]
        if of != DATA:
            blocks = self._blocks.setdefault(of, {})
            if i not in blocks:
                blocks[i] = Block(target.observations, first=target.first)
            target = blocks[i]
        given: list[Any] = [
            self._blocks[argument.of][i] if isinstance(argument, Reference) else argument
            for argument in question.arguments
        ]
        if question.own is not None:
            given.append(question.own[self.first + i])
        if question.name == "draw_here":
            self._blocks[of][i] = found = _held_block().begun(self.data[i], *given)
            return found.count_active()
        return getattr(target, question.name)(*given)

    def save(self, file_of: Callable[[int], Path]) -> None:
        """Write what blocks remember of every W, a file per block."""
        for i in range(len(self.data)):
            members: dict[str, Any] = {
                f"{of}.{name}": array
                for of, blocks in self._blocks.items()
                if i in blocks
                for name, array in blocks[i].state().items()
            }
            with written_whole(file_of(self.first + i)) as partial, partial.open("wb") as file:
                np.savez(file, **sealed(members))

    def load(self, file_of: Callable[[int], Path]) -> None:
        """Remember it again."""
        for i in range(len(self.data)):
            path = file_of(self.first + i)
            try:
                states: dict[int, dict[str, Array]] = {}
                for member, array in unsealed(read_npz(path)).items():
                    of, name = member.split(".")
                    states.setdefault(int(of), {})[name] = array
                for number, state in states.items():
                    self._blocks.setdefault(number, {})[i] = self._restored(i, state)
            except (FileNotFoundError, ValueError) as error:
                raise ValueError(
                    f"checkpoint={str(path.parent)!r} is damaged: {path.name} cannot be read "
                    f"({error}). Delete the folder, or name another checkpoint."
                ) from error

    def _restored(self, i: int, state: dict[str, Array]) -> Any:
        data = self.data[i]
        if "streams" in state:
            return _held_block().restored(data, state)
        block = Block(data.observations, first=data.first)
        block.restore(state)
        return block

    def close(self) -> None:
        """Send the threads home."""
        self.workers.__exit__(None, None, None)


def _held_block() -> Any:
    """The kind of block that draws; imported when it is wanted, since it knows of this module."""
    from .gibbs import HeldBlock

    return HeldBlock
