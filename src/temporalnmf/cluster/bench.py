"""Blocks that lie side by side in one process: their data, and weights for every W there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array
from ..observations.block import Block
from ..runtime.archives import read_npz, sealed, unsealed
from ..runtime.files import written_whole
from ..runtime.threads import Workers
from .drawn import HeldBlock
from .pieces import BlockData, Piece
from .questions import DATA, Answer, Nodes, Question, Reference, combined


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
        self._blocks: dict[int, dict[int, Block | HeldBlock]] = {}

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
            self._blocks[of][i] = found = HeldBlock.begun(self.data[i], *given)
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

    def _restored(self, i: int, state: dict[str, Array]) -> Block | HeldBlock:
        data = self.data[i]
        if "streams" in state:
            return HeldBlock.restored(data, state)
        block = Block(data.observations, first=data.first)
        block.restore(state)
        return block

    def close(self) -> None:
        """Send the threads home."""
        self.workers.__exit__(None, None, None)
