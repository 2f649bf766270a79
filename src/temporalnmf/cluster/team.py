"""Those who hold the blocks, and one W among them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array
from .bench import Bench
from .questions import Answer, Question, Reference, whole


@dataclass(frozen=True)
class Checkpoint:
    """Files with the state of every block, as it was at some moment of a fit."""

    folder: Path
    number: int

    def file(self, block: int) -> Path:
        return self.folder / f"block-{block:05d}.{self.number}.npz"

    def remove(self, n_blocks: int) -> None:
        for block in range(n_blocks):
            self.file(block).unlink(missing_ok=True)


class Team:
    """Whoever holds the blocks.

    Parameters
    ----------
    bounds : array of int, (n_blocks + 1,)
        Features of block b are bounds[b] to bounds[b + 1].
    folder : Path or None
        For checkpoints, seen by everybody who holds blocks.
    """

    def __init__(self, bounds: Array, folder: Path | None = None) -> None:
        self.folder = folder
        self.bounds = np.asarray(bounds)
        self.n_blocks = len(bounds) - 1
        self._numbers = count()

    def ask(self, question: Question) -> Answer:
        """The answer of all blocks."""
        raise NotImplementedError

    def tell(self, question: Question) -> None:
        """Something that has no answer; it may be done later."""
        raise NotImplementedError

    def rest(self) -> None:
        """A good moment for a checkpoint of its own."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the state of all blocks."""
        raise NotImplementedError

    def load(self, checkpoint: Checkpoint) -> None:
        """Go on from there."""
        raise NotImplementedError

    def close(self) -> None:
        """No more questions."""

    def next_number(self) -> int:
        """For another W."""
        return next(self._numbers)

    def number_from(self, number: int) -> None:
        """Others have numbers below."""
        self._numbers = count(number)


class LocalTeam(Team):
    """All blocks are in this process."""

    def __init__(self, bench: Bench, bounds: Array, folder: Path | None = None) -> None:
        super().__init__(bounds, folder)
        self._bench = bench

    def ask(self, question: Question) -> Answer:
        return whole(self._bench.ask([question]), self.n_blocks, question.how)

    def tell(self, question: Question) -> None:
        self._bench.ask([question])

    def save(self, checkpoint: Checkpoint) -> None:
        self._bench.save(checkpoint.file)

    def load(self, checkpoint: Checkpoint) -> None:
        self._bench.load(checkpoint.file)

    def close(self) -> None:
        self._bench.close()


class Slot:
    """One W among the blocks of a team.

    Methods of blocks are called by name, since the call may go to another process; only
    `SplitFeatures`, `SplitGibbs` and `SplitObservations` do so.
    """

    def __init__(self, team: Team, number: int | None = None) -> None:
        self.team = team
        self.number = team.next_number() if number is None else number
        self.n_blocks = team.n_blocks

    def add(self, name: str, *arguments: Any) -> Answer:
        """Call a method of every block, and add up what they return."""
        return self.ask(name, arguments, "add")

    def least(self, name: str, *arguments: Any) -> Answer:
        """The least of what they return."""
        return self.ask(name, arguments, "least")

    def most(self, name: str, *arguments: Any) -> Answer:
        """The most of what they return."""
        return self.ask(name, arguments, "most")

    def gather(self, name: str, *arguments: Any) -> Array:
        """What they return, one after the other as rows."""
        found = self.ask(name, arguments, "each")
        return found[0] if len(found) == 1 else np.concatenate(found)

    def ask(self, name: str, arguments: tuple[Any, ...], how: str) -> Answer:
        """What they return, put together by "add", "least" or "most", or "each" as a list.

        Another slot among the arguments stands for its block beside the one that is asked.
        """
        given = tuple(Reference(a.number) if isinstance(a, Slot) else a for a in arguments)
        return self.team.ask(Question(self.number, name, given, how))

    def tell(self, name: str, *arguments: Any) -> None:
        """Call a method that returns nothing; it may be done later."""
        self.team.tell(Question(self.number, name, arguments))

    def hold(self, W: Array) -> None:
        """Hand out the rows of W (F, K)."""
        rows = {b: W[i:j] for b, (i, j) in enumerate(pairwise(self.team.bounds))}
        self.team.tell(Question(self.number, "hold", own=rows))

    def drop(self) -> None:
        """Forget it."""
        self.team.tell(Question(self.number, "drop"))
