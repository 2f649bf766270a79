"""Questions to blocks, and one answer from all of them.

Answers are added up in pairs of neighbours, then pairs of pairs, and so on. What the blocks of one
worker have in common is added up there, and whatever workers there are, the sums that are taken
are the same, and so are their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._typing import Array
from .block import Block

# Numbers, arrays, or a tuple of them.
Answer = Any
# Answers by their place in the tree of pairs: level and number. Blocks are at level 0.
Nodes = dict[tuple[int, int], Answer]

_COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "least": np.minimum,
    "most": np.maximum,
}


def combined(nodes: Nodes, n_blocks: int, how: str) -> Nodes:
    """Pairs put together, as far as both are there; an odd last one goes up alone.

    Examples
    --------
    >>> sorted(combined({(0, 0): 1, (0, 1): 2, (0, 2): 4}, 5, "add"))
    [(0, 2), (1, 0)]
    >>> float(combined({(1, 0): 3.0, (0, 2): 4.0, (0, 3): 5.0, (0, 4): 6.0}, 5, "add")[3, 0])
    18.0
    """
    found, level = dict(nodes), 0
    while 1 << level < n_blocks:
        for number in sorted(n for of, n in found if of == level):
            other = number ^ 1
            if number % 2 == 0 and (level, other) in found:
                pair = found.pop((level, number)), found.pop((level, other))
                found[level + 1, number // 2] = _pair(*pair, how)
            elif number % 2 == 0 and other << level >= n_blocks:
                found[level + 1, number // 2] = found.pop((level, number))
        level += 1
    return found


def _pair(one: Answer, other: Answer, how: str) -> Answer:
    if isinstance(one, tuple):
        return tuple(_pair(a, b, how) for a, b in zip(one, other, strict=True))
    return _COMBINED[how](one, other)


class Crew:
    """Those who hold the blocks of one W."""

    n_blocks: int

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

    def tell(self, name: str, *arguments: Any) -> None:
        """Call a method that returns nothing; it may be done later."""
        raise NotImplementedError

    def drop(self) -> None:
        """Forget this W."""

    def ask(self, name: str, arguments: tuple[Any, ...], how: str) -> Answer:
        """What they return, put together by "add", "least" or "most", or "each" as a list.

        Another crew among the arguments stands for its block beside the one that is asked.
        """
        raise NotImplementedError


class Here(Crew):
    """Blocks in this process, asked in turn; one, as a rule."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.n_blocks = len(blocks)

    def tell(self, name: str, *arguments: Any) -> None:
        for block in self.blocks:
            getattr(block, name)(*arguments)

    def ask(self, name: str, arguments: tuple[Any, ...], how: str) -> Answer:
        found = []
        for i, block in enumerate(self.blocks):
            given = (a.blocks[i] if isinstance(a, Here) else a for a in arguments)
            found.append(getattr(block, name)(*given))
        nodes = {(0, i): answer for i, answer in enumerate(found)}
        return whole(nodes, self.n_blocks, how)


def whole(nodes: Nodes, n_blocks: int, how: str) -> Answer:
    """The one answer of all blocks; or a list of theirs."""
    if how == "each":
        return [nodes[0, i] for i in range(n_blocks)]
    (answer,) = combined(nodes, n_blocks, how).values()
    return answer
