"""Types that all packages share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]
Generator = np.random.Generator
Pair = tuple[float, float]
# What `numpy.random.default_rng` takes.
Seed = int | Sequence[int] | Generator | None


class Law(Protocol):
    """A continuous distribution, like the frozen ones of `scipy.stats`."""

    def mean(self) -> Array: ...
    def var(self) -> Array: ...
    def ppf(self, q: ArrayLike) -> Array: ...
    def logpdf(self, x: ArrayLike) -> Array: ...
    def rvs(self, size: tuple[int, ...], random_state: Generator) -> Array: ...
