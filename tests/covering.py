"""Covering arrays: few rows of a table that have every pair of values which any row has."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations


def pairs(row: Sequence[Hashable]) -> set[tuple[tuple[int, Hashable], ...]]:
    """Pairs of (column, value); of a row with a single column, that column alone."""
    return set(combinations(enumerate(row), min(2, len(row))))


def covering(rows: Sequence[Sequence[Hashable]]) -> list[int]:
    """Indices of rows that together have every pair; greedy, ties go to the first row."""
    found = [pairs(row) for row in rows]
    missing = set().union(*found)
    # A row's number of missing pairs never grows: an old one is an upper bound.
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
