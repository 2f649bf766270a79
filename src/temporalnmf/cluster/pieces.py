"""The data of a block: where they come from, and in the form the kernels read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from .._typing import Array
from ..data.series import Series
from ..inference.laplace import data_part
from ..likelihoods.base import Likelihood
from ..observations import observe
from ..observations.base import Observations, Sums
from ..observations.block import Block
from ..runtime.threads import Workers
from ..sampling.gibbs import check_counts


class Piece:
    """Where the data of one block come from. It can be sent to another process."""

    def series(self) -> Series:
        """The data, checked."""
        raise NotImplementedError

    def fingerprint(self) -> int:
        """A number that changes with the data."""
        return self.series().fingerprint()

    def survey(self) -> tuple[Array, Array]:
        """Whether a step has any observed entry, as numbers, and the totals of these; (N,)."""
        series = self.series()
        return np.asarray(series.observed, dtype=float), series.totals

    def observations(
        self,
        steps: Steps,
        likelihood: Likelihood,
        workers: Workers,
        known: Observations | None = None,
    ) -> Observations:
        """Some steps, for the kernels; `known` are the same, if they were seen before."""
        used = steps.of(self.series())
        return observe(used.X, used.weights, used.exposure, likelihood, workers)


@dataclass(frozen=True)
class Slice(Piece):
    """Data in memory."""

    data: Series

    def series(self) -> Series:
        return self.data


class Steps(NamedTuple):
    """Which steps of a series are worked on, whether an unobserved one stands before them, and the
    unit of their rates.
    """

    numbers: Array
    anchored: bool = False
    unit: float = 1.0

    def of(self, series: Series) -> Series:
        used = series.take(self.numbers).in_unit(self.unit)
        return used.anchored() if self.anchored else used


class Description(NamedTuple):
    """What is known of the data of all blocks, by sums over them."""

    level: float
    saturated: float
    n_counted: float
    n_unshared: float  # blocks in which features do not share B


class BlockData:
    """The data of one block.

    Parameters
    ----------
    piece : Piece
    first : int
        Number of its first feature.
    resident : bool
        Keep the data in memory; or read them for every pass.
    workers : Workers
    """

    def __init__(self, piece: Piece, first: int, resident: bool, workers: Workers) -> None:
        self.piece, self.first, self.resident, self.workers = piece, first, resident, workers
        self.observations: Observations
        self.steps: Steps

    def fingerprint(self) -> int:
        return self.piece.fingerprint()

    def survey(self) -> tuple[Array, Array]:
        return self.piece.survey()

    def prepare(self, steps: Steps, likelihood: Likelihood) -> Array:
        """Hold some steps for the kernels; returns a `Description`."""
        load = partial(self.piece.observations, steps, likelihood, self.workers)
        found = load()
        self.steps = steps
        self.observations = found if self.resident else Streamed(found, load)
        n_counted = float(np.count_nonzero(found.counted))
        about = Description(found.level, found.saturated, n_counted, float(not found.shared))
        return np.array(list(about))

    def curvature(self, block: Block, H: Array, expected: bool) -> tuple[Array, Array]:
        """Its part of (L1), see `laplace.data_part`."""
        used, likelihood = self.steps.of(self.piece.series()), self.observations.likelihood
        return data_part(used, block.W, H, likelihood, expected)

    def drawable(self) -> float:
        """Refuse what there are no draws for."""
        check_counts(self.steps.of(self.piece.series()))
        return 0.0

    def nothing(self) -> float:
        """A question that costs nothing."""
        return 0.0

    def exposed(self) -> Array:
        """Of the features, which share it."""
        return self.observations.exposed

    def seen(self) -> Array:
        return self.observations.seen

    def counted(self) -> Array:
        return self.observations.counted


class Streamed(Observations):
    """Observations that are read for every pass, and let go after it."""

    def __init__(self, example: Observations, load: Callable[..., Observations]) -> None:
        super().__init__()
        self.order = example.order
        self.likelihood, self.shape = example.likelihood, example.shape
        self.seen, self.counted = example.seen, example.counted
        self.level, self.saturated = example.level, example.saturated
        self.shared, self.exposed = example.shared, example.exposed
        self._load = load

    def _loaded(self) -> Observations:
        return self._load(known=self)

    def sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        return self._loaded().sums(W, H, wants)

    def value(self, W: Array, H: Array) -> float:
        return self._loaded().value(W, H)
