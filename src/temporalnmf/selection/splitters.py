"""Ways to hide part of a series, to compare predictions with the hidden values.

`split(X)` yields `Split` masks, or raises an error that explains why it cannot. Steps without any
observation are never hidden: there would be nothing to compare with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from .._typing import Array
from ..messages.arguments import check_count
from ..messages.errors import ArgumentError
from .data import Matrix

RandomState = int | np.random.RandomState | None

# Attempts to place hidden steps before giving up.
_ATTEMPTS = 100


class Split(NamedTuple):
    """Training, validation and test set.

    Three disjoint boolean masks of the same shape, (N,) for steps or (N, F) for entries. What is in
    none of them is ignored.
    """

    train: Array
    validation: Array
    test: Array

    @property
    def hidden(self) -> Array:
        """Validation and test together."""
        return self.validation | self.test


class Splitter(Protocol):
    """Anything that yields splits."""

    def split(self, X: Matrix) -> Iterator[Split]: ...


@dataclass(frozen=True)
class HiddenSteps:
    """The paper's splits: single steps, no two of them neighbours, never the first.

    Unless ``last=False``, the last step is always in the test set, which therefore includes a
    forecast. Half of the hidden steps are for validation, half for the test.

    Parameters
    ----------
    n_splits : int, default=5
    fraction : float, default=0.2
        Share of the steps to hide, rounded to an even number.
    random_state : int, RandomState instance or None, default=None
    last : bool, default=True
        True: every split hides the last step. False: none does.

    Examples
    --------
    >>> import numpy as np
    >>> (split,) = HiddenSteps(n_splits=1, random_state=0).split(np.ones((10, 2)))
    >>> np.flatnonzero(split.test), np.flatnonzero(split.validation)
    (array([9]), array([5]))
    """

    n_splits: int = 5
    fraction: float = 0.2
    random_state: RandomState = None
    last: bool = True

    def split(self, X: Matrix) -> Iterator[Split]:
        """Yield `n_splits` splits of X (n_times, n_features)."""
        check_count("n_splits", self.n_splits)
        _check_fraction(self.fraction)
        observed = observed_steps(X)
        steps = np.flatnonzero(observed)
        n_hidden = int(self.fraction * len(steps))
        n_hidden += n_hidden % 2
        if n_hidden < 2:
            raise _too_small(self.fraction, len(steps), "steps")
        random = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            yield _hiding(observed, np.array(self._drawn(random, observed, n_hidden)))

    def _drawn(self, random: np.random.RandomState, observed: Array, n_hidden: int) -> list[int]:
        for _ in range(_ATTEMPTS):
            hidden = self._draw(random, observed, n_hidden)
            if len(hidden) == n_hidden:
                return hidden
        wanted = f"{n_hidden} hidden steps of {int(observed.sum())}, no two of them neighbours"
        problem = f"asks for {wanted}: none of {_ATTEMPTS} random attempts found room for them."
        raise ArgumentError("fraction", self.fraction, problem, "Ask for a smaller fraction.")

    def _draw(self, random: np.random.RandomState, observed: Array, n_hidden: int) -> list[int]:
        """Hidden steps in the order of drawing, the last step first, until no room is left."""
        first, last = np.flatnonzero(observed)[[0, -1]]
        free = observed.copy()
        free[: first + 1] = free[last - 1 if self.last else last :] = False
        hidden = [int(last)] if self.last else []
        while len(hidden) < n_hidden and free.any():
            n = int(random.choice(range(first + 1, last), 1)[0])
            if free[n]:
                hidden.append(n)
                free[n - 1 : n + 2] = False
        return hidden


@dataclass(frozen=True)
class HiddenBlocks:
    """Blocks of neighbouring steps, like a lost month or a broken sensor.

    Blocks do not touch each other or the first and last step. The first half of the blocks is the
    test set, the rest the validation set.

    Parameters
    ----------
    n_splits : int, default=5
    length : int, default=3
        Steps in a block.
    n_blocks : int, default=2
        Blocks in a split, an even number.
    random_state : int, RandomState instance or None, default=None
    """

    n_splits: int = 5
    length: int = 3
    n_blocks: int = 2
    random_state: RandomState = None

    def split(self, X: Matrix) -> Iterator[Split]:
        """Yield `n_splits` splits of X (n_times, n_features)."""
        for name in ("n_splits", "length", "n_blocks"):
            check_count(name, getattr(self, name))
        if self.n_blocks % 2:
            problem = ": expected an even number, half for validation and half for the test."
            raise ArgumentError("n_blocks", self.n_blocks, problem)
        observed = observed_steps(X)
        random = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            starts = self._draw(random, observed)
            yield _hiding(observed, np.add.outer(starts, np.arange(self.length)).ravel())

    def _draw(self, random: np.random.RandomState, observed: Array) -> list[int]:
        free = observed.copy()
        free[np.flatnonzero(observed)[[0, -1]]] = False
        starts: list[int] = []
        for _ in range(self.n_blocks):
            # Number of free steps among the next `length`.
            room = np.convolve(free, np.ones(self.length, dtype=int), mode="valid")
            possible = np.flatnonzero(room == self.length)
            if not possible.size:
                room_for = f"{int(observed.sum())} observed steps: only {len(starts)} did."
                problem = f"blocks of {self.length} steps do not fit into {room_for}"
                remedy = "Ask for fewer or shorter blocks."
                raise ArgumentError("n_blocks", self.n_blocks, problem, remedy)
            start = int(random.choice(possible))
            free[max(start - 1, 0) : start + self.length + 1] = False
            starts.append(start)
        return starts


@dataclass(frozen=True)
class HiddenEntries:
    """Single entries anywhere, for choosing the number of components.

    All of them are test entries.

    Parameters
    ----------
    n_splits : int, default=10
    fraction : float, default=0.2
        Share of the observed entries to hide.
    random_state : int, RandomState instance or None, default=None
    """

    n_splits: int = 10
    fraction: float = 0.2
    random_state: RandomState = None

    def split(self, X: Matrix) -> Iterator[Split]:
        """Yield `n_splits` splits of X (n_times, n_features)."""
        check_count("n_splits", self.n_splits)
        _check_fraction(self.fraction)
        seen = np.ones(X.shape, dtype=bool) if sparse.issparse(X) else ~np.isnan(np.asarray(X))
        places = np.flatnonzero(seen)
        n_hidden = int(self.fraction * places.size)
        if n_hidden < 1:
            raise _too_small(self.fraction, places.size, "entries")
        random = check_random_state(self.random_state)
        nothing = np.zeros_like(seen)
        for _ in range(self.n_splits):
            hidden = np.zeros_like(seen)
            hidden.flat[random.choice(places, n_hidden, replace=False)] = True
            yield Split(seen & ~hidden, nothing, hidden)


@dataclass(frozen=True)
class RollingOrigin:
    """Forecasts from several origins: earlier steps are known, the next ones are hidden.

    Parameters
    ----------
    n_splits : int, default=5
        Number of origins. The last one leaves `horizon` steps, each earlier one `stride` more;
        origins with only missing steps ahead are skipped.
    horizon : int, default=1
        Steps to forecast.
    stride : int, default=1
        Steps between two origins.
    min_train : int, default=3
        Least number of observed steps before the first origin.
    """

    n_splits: int = 5
    horizon: int = 1
    stride: int = 1
    min_train: int = 3

    def split(self, X: Matrix) -> Iterator[Split]:
        """Yield `n_splits` splits of X (n_times, n_features), the earliest origin first."""
        for name in ("n_splits", "horizon", "stride", "min_train"):
            check_count(name, getattr(self, name))
        observed = observed_steps(X)
        n_steps = int(np.flatnonzero(observed)[-1]) + 1
        origins: list[int] = []
        origin = n_steps - self.horizon
        while len(origins) < self.n_splits and observed[: max(origin, 0)].sum() >= self.min_train:
            if observed[origin : origin + self.horizon].any():
                origins.insert(0, origin)
            origin -= self.stride
        if len(origins) < self.n_splits:
            wanted = f"origins with a horizon of {self.horizon} and a stride of {self.stride}"
            found = f"only {len(origins)} have {self.min_train} observed steps before them."
            remedy = "Ask for fewer origins or a shorter horizon."
            raise ArgumentError("n_splits", self.n_splits, f"{wanted} do not fit: {found}", remedy)
        order, nothing = np.arange(len(observed)), np.zeros_like(observed)
        for origin in origins:
            ahead = (order >= origin) & (order < origin + self.horizon)
            yield Split(observed & (order < origin), nothing, observed & ahead)


def _hiding(observed: Array, hidden: Array) -> Split:
    """Hide some observed steps: the first half of them for the test, the rest for validation."""
    masks = np.zeros((2, len(observed)), dtype=bool)
    masks[1, hidden[: len(hidden) // 2]] = masks[0, hidden[len(hidden) // 2 :]] = True
    return Split(observed & ~masks.any(axis=0), *masks)


def observed_steps(X: Matrix) -> Array:
    """Steps of X with any observed entry, bool (N,)."""
    if sparse.issparse(X):
        observed = np.ones(X.shape[0], dtype=bool)
    else:
        observed = ~np.isnan(np.asarray(X, dtype=float)).all(axis=1)
    if not observed.any():
        raise ValueError("X has no observed entry: there is nothing to hide.")
    return observed


def _check_fraction(fraction: float) -> None:
    if not 0.0 < fraction < 1.0:
        raise ArgumentError("fraction", fraction, ": expected a number between 0 and 1.")


def _too_small(fraction: float, n: int, of: str) -> ArgumentError:
    problem = f"of {n} observed {of} is less than one."
    return ArgumentError("fraction", fraction, problem, "Give more data or a larger fraction.")
