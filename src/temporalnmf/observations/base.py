"""What solvers need from data: sums over the features or the steps, independent of storage."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from .._typing import Array
from ..likelihoods.base import Likelihood
from ..runtime.threads import MOST_RANGES, Threads

if TYPE_CHECKING:
    from os import PathLike

    from .features import Features
    from .stores import WeightStore


class Sums(NamedTuple):
    """A = Σ a w and B = Σ b w over features, with a and b of `Formulas`: (K, N), for H.

    For W, with h in place of w and sums over steps: (F, K), where B is (1, K) if the features
    share it. B − A is the gradient of the value.
    """

    A: Array
    B: Array


class Observations:
    """V (F, N) with weights m and exposures e, prepared for one likelihood.

    Attributes
    ----------
    shape : tuple
        (F, N).
    order : {"C", "F"}
        Memory order of W that its kernels want.
    local : bool
        Whether the data are in the memory of this process.
    seen, counted : array of bool, (F,)
        Features with any observed entry, and with any observed value above zero.
    level : float
        Mean total of a step per unit of exposure: what Σ_k h_kn has to reach on average.
    saturated : float
        Smallest value that any rates could reach.
    shared : bool
        Whether features share B of the sums, which then is `exposed` (N,) times Σ_f w for H.
    threads : Threads
        The threads that passes run on; the result does not depend on their number.
    """

    order: Literal["C", "F"]
    local: bool = True
    likelihood: Likelihood
    shape: tuple[int, int]
    seen: Array
    counted: Array
    level: float
    saturated: float
    shared: bool
    exposed: Array
    threads: Threads = Threads(1)

    def __init__(self) -> None:
        self._kept: dict[str, Array] = {}

    def sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        """The sums for W, for H, or for both from one pass if possible.

        Those for W live in memory that the next call writes to.
        """
        raise NotImplementedError

    def value(self, W: Array, H: Array) -> float:
        """−log p(V | WH) without the constants that the likelihood's docstring names."""
        raise NotImplementedError

    def hold(self, W: Array | Features) -> Features:
        """The features with these weights (F, K), which are written to; or themselves."""
        raise NotImplementedError

    def blank(self) -> Features:
        """The features without weights yet."""
        raise NotImplementedError

    def store(self, checkpoint: str | PathLike[str] | None) -> WeightStore | None:
        """Where checkpoints keep the weights, or None."""
        raise NotImplementedError

    def between_iterations(self) -> None:
        """Called between two iterations, when a checkpoint can be written."""

    def check_room(self, n_components: int) -> None:
        """Refuse, before a long fit, components that could not be brought here after it."""

    @property
    def has_counts(self) -> bool:
        """Whether any observed value is above zero."""
        return bool(self.counted.any())

    def _describe(self, totals: Array, exposed: Array) -> None:
        """Describe the features by their weighted totals and exposures, (F,)."""
        self.seen = exposed > 0.0
        self.counted = totals > 0.0
        self.level = float((totals[self.seen] / exposed[self.seen]).sum())

    def _keep(self, name: str, shape: tuple[int, ...]) -> Array:
        """Memory for results, reused from call to call: allocating costs as much as using it."""
        kept = self._kept.get(name)
        if kept is None or kept.shape != shape:
            kept = self._kept[name] = np.empty(shape)
        return kept


@lru_cache(maxsize=1024)
def cut(n: int, size: int) -> Array:
    """Bounds of equal ranges of n rows, none smaller than `size` rows if it can be."""
    n_ranges = min(max(n // max(size, 1), 1), MOST_RANGES)
    return np.arange(n_ranges + 1) * n // n_ranges
