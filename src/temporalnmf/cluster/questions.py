"""Questions to blocks, and one answer from all of them.

Answers are added up in pairs of neighbours, then pairs of pairs, and so on. What the blocks of one
worker have in common is added up there, and whatever workers there are, the sums that are taken
are the same, and so are their bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# Questions about the data, rather than about some W.
DATA = -1

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


def whole(nodes: Nodes, n_blocks: int, how: str) -> Answer:
    """The one answer of all blocks; or a list of theirs."""
    if how == "each":
        return [nodes[0, i] for i in range(n_blocks)]
    (answer,) = combined(nodes, n_blocks, how).values()
    return answer


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
