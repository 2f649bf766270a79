"""Interface of data for solvers: sums over features or steps, independent of storage."""

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

    For W, with h in place of w, sums over steps: (F, K), or (1, K) for B if features share it.
    B − A is the gradient of the value.
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
        Memory order of W in its kernels.
    local : bool
        Whether the data are in the memory of this process.
    seen, counted : array of bool, (F,)
        Features with any observed entry, and with any observed value above zero.
    level : float
        Mean total of a step per unit of exposure, hence of Σ_k h_kn.
    saturated : float
        Smallest value for any rates.
    dropped : float
        What the value leaves out of that of the likelihood's formulas.
    shared : bool
        Whether features share B of the sums; for H it then is `exposed` (N,) times Σ_f w.
    threads : Threads
        Threads of the passes; results do not depend on their number.
    """

    order: Literal["C", "F"]
    local: bool = True
    likelihood: Likelihood
    shape: tuple[int, int]
    seen: Array
    counted: Array
    level: float
    saturated: float
    dropped: float
    shared: bool
    exposed: Array
    threads: Threads = Threads(1)

    def __init__(self) -> None:
        self._kept: dict[str, Array] = {}

    def sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        """The sums for W, for H, or for both from one pass if possible.

        The next call overwrites those for W.
        """
        raise NotImplementedError

    def value(self, W: Array, H: Array) -> float:
        """−log p(V | WH) without the constants that the likelihood's docstring names."""
        raise NotImplementedError

    def use(self, likelihood: Likelihood) -> None:
        """Take other parameters of the likelihood, for all sums and values from now on."""
        self.likelihood = likelihood

    def hold(self, W: Array | Features) -> Features:
        """Features with these weights (F, K), which are overwritten; `Features` as they are."""
        raise NotImplementedError

    def blank(self) -> Features:
        """Features without weights yet."""
        raise NotImplementedError

    def store(self, checkpoint: str | PathLike[str] | None) -> WeightStore | None:
        """The store of weights in checkpoints, or None without checkpoints."""
        raise NotImplementedError

    def between_iterations(self) -> None:
        """Called between two iterations, when a checkpoint can be written."""

    def check_room(self, n_components: int) -> None:
        """Raise, before a long fit, if the components would not fit into memory after it."""

    @property
    def has_counts(self) -> bool:
        """Whether any observed value is above zero."""
        return bool(self.counted.any())

    def _describe(self, totals: Array, exposed: Array) -> None:
        """Set `seen`, `counted` and `level` from weighted totals and exposures, (F,)."""
        self.seen = exposed > 0.0
        self.counted = totals > 0.0
        self.level = float((totals[self.seen] / exposed[self.seen]).sum())

    def _keep(self, name: str, shape: tuple[int, ...]) -> Array:
        """Memory for results, reused between calls: allocation is as slow as a pass."""
        kept = self._kept.get(name)
        if kept is None or kept.shape != shape:
            kept = self._kept[name] = np.empty(shape)
        return kept


@lru_cache(maxsize=1024)
def cut(n: int, size: int) -> Array:
    """Bounds of equal ranges of n rows, with at least `size` rows each if possible."""
    n_ranges = min(max(n // max(size, 1), 1), MOST_RANGES)
    return np.arange(n_ranges + 1) * n // n_ranges
