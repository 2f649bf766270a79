"""The blocks of one process: their data, and the weights of every slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import BadZipFile

from .._typing import Array
from ..messages.errors import ArgumentError
from ..observations.block import Block
from ..observations.stores import joined, parted
from ..runtime.archives import read_npz, sealed, unsealed, write_npz
from ..runtime.threads import Threads
from .block_data import BlockData, BlockSource
from .gibbs_block import GibbsBlock
from .requests import DATA, Nodes, Reference, Request, combined


class Blocks:
    """The blocks of one process, from index `first` on, of n_blocks in total.

    `offsets` are the indices of their first features. Data are kept in memory if `resident`, else
    read for every pass.
    """

    def __init__(
        self,
        sources: Sequence[BlockSource],
        offsets: Sequence[int],
        first: int = 0,
        n_blocks: int | None = None,
        *,
        resident: bool = True,
        n_jobs: int | None = 1,
    ) -> None:
        self.first = first
        self.n_blocks = len(sources) if n_blocks is None else n_blocks
        self.threads = Threads(n_jobs)
        self.data = [
            BlockData(source, offset, resident, self.threads)
            for source, offset in zip(sources, offsets, strict=True)
        ]
        self._slots: dict[int, dict[int, Block | GibbsBlock]] = {}

    def ask(self, requests: Sequence[Request]) -> Nodes:
        """Send all requests to one block after the other; returns responses to the last one."""
        nodes: Nodes = {}
        for i in range(len(self.data)):
            for request in requests:
                response = self._call(i, request)
            nodes[0, self.first + i] = response
            # Immediately: the responses of many blocks would take as much memory as their data.
            nodes = combined(nodes, self.n_blocks, requests[-1].how)
        return nodes

    def _call(self, i: int, request: Request) -> object:
        slot, data = request.slot, self.data[i]
        given = [
            self._slots[argument.slot][i] if isinstance(argument, Reference) else argument
            for argument in request.arguments
        ]
        if request.own is not None:
            given.append(request.own[self.first + i])
        if request.name == "drop":
            self._slots.get(slot, {}).pop(i, None)
            return None
        if request.name == "prepare":
            for blocks in self._slots.values():
                blocks.pop(i, None)  # they belong to other steps
        if slot == DATA:
            return getattr(data, request.name)(*given)
        blocks = self._slots.setdefault(slot, {})
        if request.name == "begin":
            begin: Callable[..., GibbsBlock] = GibbsBlock.begin
            blocks[i] = begin(data, *given)
            return None
        if i not in blocks:
            blocks[i] = Block(data.observations, first=data.first)
        return getattr(blocks[i], request.name)(*given)

    def save(self, file_of: Callable[[int], Path]) -> None:
        """Write the state of all slots, a file per block."""
        for i in range(len(self.data)):
            states = {n: blocks[i].state() for n, blocks in self._slots.items() if i in blocks}
            write_npz(file_of(self.first + i), sealed(joined(states)))

    def load(self, file_of: Callable[[int], Path]) -> None:
        """Restore what `save` wrote."""
        for i in range(len(self.data)):
            path = file_of(self.first + i)
            try:
                for number, state in parted(unsealed(read_npz(path))).items():
                    self._slots.setdefault(number, {})[i] = self._restored(i, state)
            except (FileNotFoundError, ValueError, KeyError, EOFError, BadZipFile) as error:
                problem = f"lacks the file of a block, or has a damaged one: {path.name} ({error})."
                remedy = "Empty the folder, or name another."
                raise ArgumentError("checkpoint", str(path.parent), problem, remedy) from error

    def _restored(self, i: int, state: dict[str, Array]) -> Block | GibbsBlock:
        data = self.data[i]
        if "streams" in state:
            return GibbsBlock.restored(data, state)
        block = Block(data.observations, first=data.first)
        block.restore(state)
        return block

    def close(self) -> None:
        """End the threads."""
        self.threads.__exit__()
