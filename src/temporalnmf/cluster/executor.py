"""Executors send requests to all blocks; a slot holds one W among them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import TypeVar, TypeVarTuple, cast

import numpy as np

from .._typing import Array
from ..observations.block import Block
from .blocks import Blocks
from .requests import DATA, How, Reference, Request, result

B = TypeVar("B")
T = TypeVar("T")
V = TypeVar("V")
Ts = TypeVarTuple("Ts")


@dataclass(frozen=True)
class BlockFiles:
    """Files with the state of every block, at one moment of a fit."""

    folder: Path
    number: int

    def file(self, block: int) -> Path:
        return self.folder / f"block-{block:05d}.{self.number}.npz"

    def remove(self, n_blocks: int) -> None:
        for block in range(n_blocks):
            self.file(block).unlink(missing_ok=True)


class Executor(ABC):
    """Sends requests to all blocks, in this process or on workers.

    Features of block b are bounds[b] to bounds[b + 1]. The folder for checkpoints is visible to
    all workers.
    """

    def __init__(self, bounds: Array, folder: Path | None = None) -> None:
        self.folder = folder
        self.bounds = np.asarray(bounds)
        self.n_blocks = len(bounds) - 1
        self.numbers = count()  # of new slots
        self.data = Slot(self, DATA)

    @abstractmethod
    def ask(self, request: Request) -> object:
        """Send a request, and return the combined response of all blocks."""

    @abstractmethod
    def tell(self, request: Request) -> None:
        """Send a request without a response; it may be deferred to the next one."""

    @abstractmethod
    def between_iterations(self) -> None:
        """Called between two iterations: a good moment for a checkpoint."""

    @abstractmethod
    def save(self, files: BlockFiles) -> None:
        """Write the state of all blocks."""

    @abstractmethod
    def load(self, files: BlockFiles) -> None:
        """Restore the state of all blocks."""

    @abstractmethod
    def close(self) -> None:
        """Free all resources. No request may follow."""


class LocalExecutor(Executor):
    """All blocks are in this process."""

    def __init__(self, blocks: Blocks, bounds: Array, folder: Path | None = None) -> None:
        super().__init__(bounds, folder)
        self._blocks = blocks

    def ask(self, request: Request) -> object:
        return result(self._blocks.ask([request]), self.n_blocks, request.how)

    def tell(self, request: Request) -> None:
        self._blocks.ask([request])

    def between_iterations(self) -> None:
        """Blocks in this process cannot be lost."""

    def save(self, files: BlockFiles) -> None:
        self._blocks.save(files.file)

    def load(self, files: BlockFiles) -> None:
        self._blocks.load(files.file)

    def close(self) -> None:
        self._blocks.close()


class Slot:
    """A handle to one W among the blocks of an executor, or to their data.

    Methods of blocks are given as functions, such as `Block.multiply`, so that calls are type
    checked; only their names are sent.
    """

    def __init__(self, executor: Executor, number: int | None = None) -> None:
        self.executor = executor
        self.number = next(executor.numbers) if number is None else number

    def add(self, method: Callable[[B, *Ts], T], *arguments: *Ts) -> T:
        """Call a method of every block, and add up the results."""
        return self.call(method, arguments, "add")

    def add_with(self, method: Callable[[B, Block, *Ts], T], other: Slot, *arguments: *Ts) -> T:
        """`add` for a method whose first argument is the block in another slot."""
        return self.call(method, (Reference(other.number), *arguments), "add")

    def min(self, method: Callable[[B, *Ts], T], *arguments: *Ts) -> T:
        """The minimum of the results."""
        return self.call(method, arguments, "min")

    def max(self, method: Callable[[B, *Ts], T], *arguments: *Ts) -> T:
        """The maximum of the results."""
        return self.call(method, arguments, "max")

    def each(self, method: Callable[[B, *Ts], T], *arguments: *Ts) -> list[T]:
        """The results of all blocks, in order."""
        return cast(list[T], self.call(method, arguments, "each"))

    def gather(self, method: Callable[[B, *Ts], Array], *arguments: *Ts) -> Array:
        """The results of all blocks, concatenated."""
        found = self.each(method, *arguments)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def call(self, method: Callable[..., T], arguments: tuple[object, ...], how: How) -> T:
        """Call a method of every block, and reduce the results."""
        request = Request(self.number, method.__name__, arguments, how)
        return cast(T, self.executor.ask(request))

    def tell(self, method: Callable[[B, *Ts], object], *arguments: *Ts) -> None:
        """Call a method without a result; it may be deferred."""
        self.post(method, arguments)

    def post(self, method: Callable[..., object], arguments: tuple[object, ...]) -> None:
        self.executor.tell(Request(self.number, method.__name__, arguments))

    def tell_with(
        self, method: Callable[[B, Block, *Ts], object], other: Slot, *arguments: *Ts
    ) -> None:
        """`tell` for a method whose first argument is the block in another slot."""
        self.post(method, (Reference(other.number), *arguments))

    def tell_each(self, method: Callable[[B, V], object], own: Mapping[int, V]) -> None:
        """Call a method with an argument for each block, by its number."""
        self.executor.tell(Request(self.number, method.__name__, own=dict(own)))

    def hold(self, W: Array) -> None:
        """Distribute the rows of W (F, K)."""
        rows = {b: W[i:j] for b, (i, j) in enumerate(pairwise(self.executor.bounds))}
        self.tell_each(Block.hold, rows)

    def drop(self) -> None:
        """Free the slot."""
        self.executor.tell(Request(self.number, "drop"))
