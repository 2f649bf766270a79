"""Series in blocks of features, in this process or on workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import ClassVar, Literal
from zlib import crc32

import numpy as np

from .._typing import Array
from ..chains.base import First
from ..effects.design import Design
from ..likelihoods.base import Likelihood
from ..observations.base import Observations
from ..observations.features import Features
from ..runtime.threads import Threads
from ..sampling.learning import Parameters
from ..timeline.grid import Timeline
from .block_data import BlockData, Description, Steps
from .executor import Executor, LocalExecutor, Slot
from .features import SplitFeatures, too_large
from .gibbs import SplitGibbs
from .store import FolderStore


@dataclass(frozen=True, eq=False)
class SplitSeries:
    """The counterpart of `Series` for data in blocks, with the `steps` that are in use."""

    local: ClassVar[bool] = False

    executor: Executor
    steps: Steps
    observed: Array
    totals: Array
    exposure: Array
    timeline: Timeline | None = None
    design: Design | None = None
    days: bool = False

    @classmethod
    def of(
        cls,
        executor: Executor,
        exposure: Array,
        timeline: Timeline | None = None,
        days: bool = False,
    ) -> SplitSeries:
        """All steps of the blocks."""
        entries, totals = executor.data.add(BlockData.survey)
        steps = Steps(np.arange(len(totals)))
        return cls(executor, steps, entries > 0.0, totals, exposure, timeline, days=days)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_steps, int(self.executor.bounds[-1])

    @property
    def n_steps(self) -> int:
        return len(self.exposure)

    @property
    def rows(self) -> Array:
        return np.arange(self.n_steps) if self.timeline is None else self.timeline.rows

    def take(self, steps: Array) -> SplitSeries:
        """The series of some steps (N′,), in order."""
        if len(steps) == self.n_steps:
            return self
        chosen = Steps(self.steps.numbers[steps])
        observed, totals = self.observed[steps], self.totals[steps]
        design = None if self.design is None else self.design.take(steps)
        exposure = self.exposure[steps]
        return SplitSeries(self.executor, chosen, observed, totals, exposure, design=design)

    def designed(self, design: Design | None) -> SplitSeries:
        """With the columns of effects."""
        return replace(self, design=design)

    def in_unit(self, unit: float) -> SplitSeries:
        """The same data, with values counted in a unit."""
        if unit == 1.0:
            return self
        return replace(self, steps=self.steps._replace(unit=unit), totals=self.totals / unit)

    def anchored(self) -> SplitSeries:
        """With one unobserved step in front."""
        return replace(
            self,
            steps=self.steps._replace(anchored=True),
            observed=np.append(False, self.observed),
            totals=np.append(0.0, self.totals),
            exposure=np.append(1.0, self.exposure),
            timeline=None,
            design=None if self.design is None else self.design.anchored(),
        )

    def fingerprint(self) -> int:
        """A checksum of the data."""
        parts = self.executor.data.each(BlockData.fingerprint)
        return crc32(repr((parts, self.exposure.tolist())).encode())

    def observe(self, likelihood: Likelihood, threads: Threads | None = None) -> SplitObservations:
        """The data for the kernels; blocks have their own threads."""
        return SplitObservations(self.executor, self.steps, likelihood, self.n_steps)

    def saturated(self, likelihood: Likelihood) -> float:
        """The value of a perfect fit."""
        return float(self.executor.data.add(BlockData.saturated, likelihood))

    def check_counts(self) -> None:
        """Refuse weights, and values that are not whole numbers."""
        self.executor.data.add(BlockData.check_counts)

    def sweeps(
        self,
        parameters: Parameters,
        start: Features,
        H: Array,
        first: First,
        seed: np.random.SeedSequence,
    ) -> SplitGibbs:
        """A run of draws; the weights that it starts from are dropped."""
        assert isinstance(start, SplitFeatures)
        exposure = np.where(self.observed, self.exposure, 0.0)
        found = SplitGibbs(self.executor, exposure, parameters, start.slot, H, first, seed)
        start.drop()
        return found


class SplitObservations(Observations):
    """Observations of data in blocks."""

    order: Literal["C", "F"] = "C"
    local = False

    def __init__(
        self, executor: Executor, steps: Steps, likelihood: Likelihood, n_steps: int
    ) -> None:
        super().__init__()
        self.executor, self.likelihood = executor, likelihood
        self.shape = int(executor.bounds[-1]), n_steps
        found = Description(*executor.data.add(BlockData.prepare, steps, likelihood))
        self.level, self.saturated = float(found.level), float(found.saturated)
        self.shared, self._n_counted = not found.n_unshared, int(found.n_counted)
        if self.shared:
            # Blocks whose features share their weights may still differ from each other.
            most, least = (ask(BlockData.exposed) for ask in (executor.data.max, executor.data.min))
            self.shared, self.exposed = bool(np.array_equal(most, least)), most

    def use(self, likelihood: Likelihood) -> None:
        super().use(likelihood)
        self.executor.data.tell(BlockData.use, likelihood)

    @property
    def seen(self) -> Array:  # type: ignore[override]
        return np.concatenate(self.executor.data.each(BlockData.seen))

    @property
    def counted(self) -> Array:  # type: ignore[override]
        return np.concatenate(self.executor.data.each(BlockData.counted))

    @property
    def has_counts(self) -> bool:
        return self._n_counted > 0

    def check_room(self, n_components: int) -> None:
        if isinstance(self.executor, LocalExecutor) or self.executor.folder is not None:
            return
        if too_large(self.shape[0], n_components):
            problem = f"The components of {self.shape[0]:,} features are too large for this process"
            remedy = "Set TMPDIR to a folder that all machines share."
            raise ValueError(f"{problem}, and workers do not see its temporary files. {remedy}")

    def store(self, checkpoint: str | PathLike[str] | None) -> FolderStore | None:
        """In the folder of the executor: a cluster also uses it to recover from lost workers."""
        folder = self.executor.folder
        return None if folder is None else FolderStore(folder, self, self.executor)

    def between_iterations(self) -> None:
        self.executor.between_iterations()

    def blank(self) -> SplitFeatures:
        return SplitFeatures(self, Slot(self.executor))

    def hold(self, W: Array | Features) -> Features:
        if isinstance(W, Features):
            return W
        slot = Slot(self.executor)
        slot.hold(W)
        return SplitFeatures(self, slot)


def even_bounds(n_features: int, n_blocks: int) -> Array:
    """Bounds of blocks of about the same number of features."""
    return np.arange(n_blocks + 1) * n_features // n_blocks
