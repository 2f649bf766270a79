"""Covering arrays: few rows of a table that have every pair of values, or every value."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations

# Where data may be: a factor of many tests, by the fixture `place`.
PLACES = ("memory", "blocks", "dask")


def parts(row: Sequence[Hashable], strength: int = 2) -> set[tuple[tuple[int, Hashable], ...]]:
    """Pairs of (column, value), or single ones if the strength is 1 or there is one column."""
    return set(combinations(enumerate(row), min(strength, len(row))))


def covering(rows: Sequence[Sequence[Hashable]], strength: int = 2) -> list[int]:
    """Indices of rows that together have all parts; greedy, ties go to the first row."""
    found = [parts(row, strength) for row in rows]
    missing = set().union(*found)
    # A row's number of missing parts never grows: an old one is an upper bound.
    bounds = [(-len(of_row), i) for i, of_row in enumerate(found)]
    heapify(bounds)
    chosen = []
    while missing:
        _, i = heappop(bounds)
        gained = found[i] & missing
        current = (-len(gained), i)
        if bounds and current > bounds[0]:
            heappush(bounds, current)
        else:
            chosen.append(i)
            missing -= gained
    return sorted(chosen)
