"""The data of a block: their source, and the form that the kernels need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, Protocol

import numpy as np

from .._typing import Array
from ..data.series import Series
from ..inference.laplace import data_part
from ..likelihoods.base import Likelihood
from ..observations import observe
from ..observations.base import Observations, Sums
from ..observations.block import Block
from ..runtime.threads import Threads
from ..sampling.gibbs import check_counts


class BlockSource(ABC):
    """The source of the data of one block. It can be sent to another process."""

    @abstractmethod
    def series(self) -> Series:
        """The data, checked."""

    def fingerprint(self) -> int:
        """A checksum of the data."""
        return self.series().fingerprint()

    def survey(self) -> tuple[Array, Array]:
        """1 for steps with any observed entry, else 0, and totals of the observed entries; (N,)."""
        series = self.series()
        return np.asarray(series.observed, dtype=float), series.totals

    def observations(
        self,
        steps: Steps,
        likelihood: Likelihood,
        threads: Threads,
        known: Observations | None = None,
    ) -> Observations:
        """Some steps, for the kernels; `known` are earlier observations of the same steps."""
        used = steps.of(self.series())
        return observe(used.X, used.weights, used.exposure, likelihood, threads)


@dataclass(frozen=True)
class MemorySource(BlockSource):
    """Data in memory."""

    data: Series

    def series(self) -> Series:
        return self.data


class Steps(NamedTuple):
    """Indices of the steps in use, whether an unobserved one precedes them, unit of the rates."""

    numbers: Array
    anchored: bool = False
    unit: float = 1.0

    def of(self, series: Series) -> Series:
        used = series.take(self.numbers).in_unit(self.unit)
        return used.anchored() if self.anchored else used


class Description(NamedTuple):
    """Sums over all blocks that describe the data."""

    level: float
    saturated: float
    n_counted: float
    n_unshared: float  # blocks in which features do not share B


class BlockData:
    """The data of one block; `first` is the index of its first feature.

    They are kept in memory if `resident`, else read for every pass.
    """

    def __init__(self, source: BlockSource, first: int, resident: bool, threads: Threads) -> None:
        self.source, self.first, self.resident, self.threads = source, first, resident, threads
        self.observations: Observations
        self.steps: Steps

    def fingerprint(self) -> int:
        return self.source.fingerprint()

    def survey(self) -> tuple[Array, Array]:
        return self.source.survey()

    def prepare(self, steps: Steps, likelihood: Likelihood) -> Array:
        """Hold some steps for the kernels; returns a `Description`."""
        load = partial(self.source.observations, steps, threads=self.threads)
        found = load(likelihood)
        self.steps = steps
        self.observations = found if self.resident else Streamed(found, load)
        n_counted = float(np.count_nonzero(found.counted))
        return np.array([found.level, found.saturated, n_counted, float(not found.shared)])

    def use(self, likelihood: Likelihood) -> None:
        """Take other parameters of the likelihood."""
        self.observations.use(likelihood)

    def saturated(self, likelihood: Likelihood) -> float:
        """The value of a perfect fit; the steps in use are those of the observations."""
        return self.source.observations(self.steps, likelihood, self.threads).saturated

    def used(self) -> Series:
        """The data of the steps in use."""
        return self.steps.of(self.source.series())

    def curvature(self, block: Block, H: Array, expected: bool) -> tuple[Array, Array]:
        """The terms of this block in (L1), see `laplace.data_part`."""
        return data_part(self.used(), block.W, self.observations.likelihood, H, expected)

    def check_counts(self) -> float:
        """Refuse weights and values that cannot be sampled."""
        check_counts(self.used())
        return 0.0

    def no_op(self) -> float:
        """Do nothing, after all deferred requests."""
        return 0.0

    def exposed(self) -> Array:
        return self.observations.exposed

    def seen(self) -> Array:
        return self.observations.seen

    def counted(self) -> Array:
        return self.observations.counted


class _Load(Protocol):
    def __call__(
        self, likelihood: Likelihood, *, known: Observations | None = None
    ) -> Observations: ...


class Streamed(Observations):
    """Observations that are read for every pass and freed after it."""

    def __init__(self, example: Observations, load: _Load) -> None:
        super().__init__()
        self.order = example.order
        self.likelihood, self.shape = example.likelihood, example.shape
        self.seen, self.counted = example.seen, example.counted
        self.level = example.level
        self.saturated, self.dropped = example.saturated, example.dropped
        self.shared, self.exposed = example.shared, example.exposed
        self._load = load

    def sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        return self._load(self.likelihood, known=self).sums(W, H, wants)

    def value(self, W: Array, H: Array) -> float:
        return self._load(self.likelihood, known=self).value(W, H)
