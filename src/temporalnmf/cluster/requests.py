"""Requests to all blocks, and the reduction of their responses.

Responses are combined in a binary tree: pairs of neighbours, then pairs of pairs, and so on. A
worker combines what it can of its own blocks. The tree is the same for any number of workers, so
sums have the same bits.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

# The slot of requests about the data, rather than about the weights in a slot.
DATA = -1

How = Literal["", "add", "min", "max", "each"]
# Responses by their place in the tree, (level, number). Blocks are at level 0.
Nodes = dict[tuple[int, int], object]

_REDUCTIONS = {"add": np.add, "min": np.minimum, "max": np.maximum}


def combined(nodes: Nodes, n_blocks: int, how: How) -> Nodes:
    """Combine pairs as far as both are known; an odd last node moves up alone.

    Examples
    --------
    >>> sorted(combined({(0, 0): 1, (0, 1): 2, (0, 2): 4}, 5, "add"))
    [(0, 2), (1, 0)]
    >>> float(combined({(1, 0): 3.0, (0, 2): 4.0, (0, 3): 5.0, (0, 4): 6.0}, 5, "add")[3, 0])
    18.0
    """
    if how not in _REDUCTIONS:
        return nodes
    found, level = dict(nodes), 0
    while 1 << level < n_blocks:
        for number in sorted(n for of, n in found if of == level):
            other = number ^ 1
            if number % 2 == 0 and (level, other) in found:
                pair = found.pop((level, number)), found.pop((level, other))
                found[level + 1, number // 2] = _pair(*pair, _REDUCTIONS[how])
            elif number % 2 == 0 and other << level >= n_blocks:
                found[level + 1, number // 2] = found.pop((level, number))
        level += 1
    return found


def _pair(one: object, other: object, reduction: np.ufunc) -> object:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return tuple(_pair(a, b, reduction) for a, b in zip(one, other, strict=True))
    return reduction(one, other)


def result(nodes: Nodes, n_blocks: int, how: How) -> object:
    """The combined response of all blocks, or with "each" the list of their responses."""
    if how == "each":
        return [nodes[0, i] for i in range(n_blocks)]
    (response,) = combined(nodes, n_blocks, how).values()
    return response


class Request(NamedTuple):
    """A call of the method `name` of all blocks in a slot, or of their data (DATA).

    `how` is the reduction of the responses: "each" keeps them apart, "" ignores them. `own` has a
    last argument for each block, by its number.
    """

    slot: int
    name: str
    arguments: tuple[object, ...] = ()
    how: How = ""
    own: dict[int, object] | None = None


class Reference(NamedTuple):
    """An argument that stands for the block in another slot."""

    slot: int
