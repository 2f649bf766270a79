"""Data cut into blocks of features, in this process or elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from typing import ClassVar, Literal
from zlib import crc32

import numpy as np
from scipy import sparse

from .._typing import Array
from ..chains.base import First
from ..data.series import Series
from ..likelihoods.base import Likelihood
from ..observations.base import Observations, Sums
from ..observations.features import Features
from ..runtime.threads import Workers
from ..sampling.learning import Learned, Smoothing
from ..timeline.grid import Timeline
from .bench import Bench
from .features import SplitFeatures, too_large
from .gibbs import SplitGibbs
from .pieces import Description, Slice, Steps
from .questions import DATA, Question
from .store import FolderStore
from .team import LocalTeam, Slot, Team


@dataclass(frozen=True, eq=False)
class SplitSeries:
    """What `Series` is for data in memory: steps of a series whose entries are elsewhere.

    Attributes
    ----------
    team : Team
    steps : Steps
        Of the data that the team holds.
    observed, totals, exposure : array, (N,)
        See `Series`.
    timeline : Timeline
    """

    local: ClassVar[bool] = False

    team: Team
    steps: Steps
    observed: Array
    totals: Array
    exposure: Array
    timeline: Timeline | None = None

    @classmethod
    def of(cls, team: Team, exposure: Array, timeline: Timeline | None = None) -> SplitSeries:
        """All that a team has."""
        entries, totals = team.ask(Question(DATA, "survey", (), "add"))
        steps = Steps(np.arange(len(totals)))
        return cls(team, steps, entries > 0.0, totals, exposure, timeline)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_steps, int(self.team.bounds[-1])

    @property
    def n_steps(self) -> int:
        return len(self.exposure)

    @property
    def rows(self) -> Array:
        return np.arange(self.n_steps) if self.timeline is None else self.timeline.rows

    def take(self, steps: Array) -> SplitSeries:
        """The given steps (N′,), in order, only."""
        if len(steps) == self.n_steps:
            return self
        chosen = Steps(self.steps.numbers[steps])
        observed, totals = self.observed[steps], self.totals[steps]
        return SplitSeries(self.team, chosen, observed, totals, self.exposure[steps])

    def in_unit(self, unit: float) -> SplitSeries:
        """Data whose rates count in another unit."""
        if unit == 1.0:
            return self
        return replace(self, steps=self.steps._replace(unit=unit), exposure=unit * self.exposure)

    def anchored(self) -> SplitSeries:
        """With one unobserved step in front."""
        return replace(
            self,
            steps=self.steps._replace(anchored=True),
            observed=np.append(False, self.observed),
            totals=np.append(0.0, self.totals),
            exposure=np.append(1.0, self.exposure),
            timeline=None,
        )

    def fingerprint(self) -> int:
        """A number that changes with the data."""
        parts = self.team.ask(Question(DATA, "fingerprint", (), "each"))
        return crc32(repr((parts, self.exposure.tolist())).encode())

    def observe(self, likelihood: Likelihood, workers: Workers | None = None) -> SplitObservations:
        """The data for the kernels; blocks have threads of their own."""
        return SplitObservations(self.team, self.steps, likelihood, self.n_steps)

    def check_counts(self) -> None:
        """Refuse weights, and numbers that are not whole, in any block."""
        self.team.ask(Question(DATA, "drawable", (), "add"))

    def sweeps(
        self,
        law: Learned,
        start: Features,
        H: Array,
        smoothing: Smoothing,
        first: First,
        seed: np.random.SeedSequence,
    ) -> SplitGibbs:
        """A run of draws; the weights to start from are dropped."""
        assert isinstance(start, SplitFeatures)
        exposure = np.where(self.observed, self.exposure, 0.0)
        found = SplitGibbs(self.team, exposure, law, start.slot, H, smoothing, first, seed)
        start.drop()
        return found


class SplitObservations(Observations):
    """Observations of which others hold the entries."""

    order: Literal["C", "F"] = "C"
    local = False

    def __init__(self, team: Team, steps: Steps, likelihood: Likelihood, n_steps: int) -> None:
        super().__init__()
        self.team, self.likelihood = team, likelihood
        self.shape = int(team.bounds[-1]), n_steps
        found = Description(*team.ask(Question(DATA, "prepare", (steps, likelihood), "add")))
        self.level, self.saturated = float(found.level), float(found.saturated)
        self.shared, self._n_counted = not found.n_unshared, int(found.n_counted)
        if self.shared:
            most, least = (team.ask(Question(DATA, "exposed", (), h)) for h in ("most", "least"))
            # A block of one feature shares its weights with itself.
            self.shared, self.exposed = bool(np.array_equal(most, least)), most

    @property
    def seen(self) -> Array:  # type: ignore[override]
        return self._gathered("seen")

    @property
    def counted(self) -> Array:  # type: ignore[override]
        return self._gathered("counted")

    @property
    def has_counts(self) -> bool:
        return self._n_counted > 0

    def _gathered(self, name: str) -> Array:
        return np.concatenate(self.team.ask(Question(DATA, name, (), "each")))

    def check_room(self, n_components: int) -> None:
        team = self.team
        if isinstance(team, LocalTeam) or team.folder is not None:
            return
        if too_large(self.shape[0], n_components):
            raise ValueError(
                f"The components of {self.shape[0]:,} features are too large for this process, and "
                f"workers do not see its temporary files. Set TMPDIR to a folder that all machines "
                f"share."
            )

    def store(self, checkpoint: str | PathLike[str] | None) -> FolderStore | None:
        """In the folder of the team: a cluster has one in any case, to go on without a worker."""
        folder = self.team.folder
        return None if folder is None else FolderStore(folder, self, self.team)

    def rest(self) -> None:
        self.team.rest()

    def blank(self) -> SplitFeatures:
        return SplitFeatures(self, Slot(self.team))

    def hold(self, W: Array | Features) -> Features:
        if isinstance(W, Features):
            return W
        slot = Slot(self.team)
        slot.hold(W)
        return SplitFeatures(self, slot)

    def sums(self, W: Array, H: Array, wants: Literal["w", "h", "wh"]) -> tuple[Sums, ...]:
        if wants != "h":
            raise NotImplementedError("Sums for W stay where W is.")
        return (self.hold(W).sums(H),)

    def value(self, W: Array, H: Array) -> float:
        return self.hold(W).value(H)


def even_bounds(n_features: int, n_blocks: int) -> Array:
    """Bounds of blocks of about as many features."""
    return np.arange(n_blocks + 1) * n_features // n_blocks


def slices(series: Series, bounds: Array) -> list[Slice]:
    """The blocks of data in memory."""
    X = series.X
    if sparse.issparse(X):
        X = sparse.csc_array(X)
    found = []
    for i, j in pairwise(np.asarray(bounds).tolist()):
        part = (
            sparse.csr_array(X[:, i:j]) if sparse.issparse(X) else np.ascontiguousarray(X[:, i:j])
        )
        weights = series.weights
        if weights.shape[1] > 1:
            weights = weights[:, i:j]
        found.append(Slice(Series(part, weights, series.exposure)))
    return found


def split_here(series: Series, bounds: Array | Sequence[int], *, n_jobs: int = 1) -> SplitSeries:
    """Data in memory as blocks in this process: the same as one block, up to rounding."""
    bounds = np.asarray(bounds)
    bench = Bench(slices(series, bounds), bounds[:-1].tolist(), n_jobs=n_jobs)
    team = LocalTeam(bench, bounds)
    return SplitSeries.of(team, series.exposure, series.timeline)
