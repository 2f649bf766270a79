"""Matching of the components of two solutions."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._typing import Array
from ..observations.features import Features


def match(W: Array, other: Array) -> tuple[Array, Array]:
    """For each column of W its match in another solution, one to one, and their similarity.

    Similarity is the cosine between columns, 0 to 1; matches maximize its sum.

    Examples
    --------
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> order, likeness = match(W, W[:, ::-1])
    >>> order.tolist(), likeness.tolist()
    ([1, 0], [1.0, 1.0])
    """
    return _matched(W.T @ other, np.square(W).sum(axis=0), np.square(other).sum(axis=0))


def _matched(products: Array, squares: Array, others: Array) -> tuple[Array, Array]:
    likeness = products / np.sqrt(np.multiply.outer(squares, others))
    mine, theirs = linear_sum_assignment(likeness, maximize=True)
    return theirs, np.clip(likeness[mine, theirs], 0.0, 1.0)


def stability(W: Features, others: list[Features]) -> Array | None:
    """Mean similarity of each component to its matches in other solutions: (K,), 0 to 1."""
    if not others:
        return None
    squares = np.diagonal(W.cross(W))
    found: Array = np.mean(
        [_matched(W.cross(other), squares, np.diagonal(other.cross(other)))[1] for other in others],
        axis=0,
    )
    return found
