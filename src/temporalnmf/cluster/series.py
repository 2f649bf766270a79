"""Data cut into blocks of features, in this process or elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

import numpy as np
from scipy import sparse

from .._typing import Array
from ..data.series import Series
from ..likelihoods.base import Likelihood
from ..observations.base import Observations, Sums
from ..observations.crew import Answer, Crew, whole
from ..observations.features import Features
from ..timeline.grid import Timeline
from .bench import DATA, Bench, Description, Question, Reference, Slice, Steps

if TYPE_CHECKING:
    from ..components import ShardedComponents


@dataclass(frozen=True)
class Checkpoint:
    """Files with the state of every block, as it was at some moment of a fit."""

    folder: Path
    number: int

    def file(self, block: int) -> Path:
        return self.folder / f"block-{block:05d}.{self.number}.npz"

    def remove(self, n_blocks: int) -> None:
        for block in range(n_blocks):
            self.file(block).unlink(missing_ok=True)


class Team:
    """Whoever holds the blocks.

    Parameters
    ----------
    bounds : array of int, (n_blocks + 1,)
        Features of block b are bounds[b] to bounds[b + 1].
    folder : Path or None
        For checkpoints, seen by everybody who holds blocks.
    """

    def __init__(self, bounds: Array, folder: Path | None = None) -> None:
        self.folder = folder
        self.bounds = np.asarray(bounds)
        self.n_blocks = len(bounds) - 1
        self._numbers = count()

    def ask(self, question: Question) -> Answer:
        """The answer of all blocks."""
        raise NotImplementedError

    def tell(self, question: Question) -> None:
        """Something that has no answer; it may be done later."""
        raise NotImplementedError

    def rest(self) -> None:
        """A good moment for a checkpoint of its own."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the state of all blocks."""
        raise NotImplementedError

    def load(self, checkpoint: Checkpoint) -> None:
        """Go on from there."""
        raise NotImplementedError

    def close(self) -> None:
        """No more questions."""

    def next_number(self) -> int:
        """For another W."""
        return next(self._numbers)

    def number_from(self, number: int) -> None:
        """Others have numbers below."""
        self._numbers = count(number)


class LocalTeam(Team):
    """All blocks are in this process."""

    def __init__(self, bench: Bench, bounds: Array, folder: Path | None = None) -> None:
        super().__init__(bounds, folder)
        self._bench = bench

    def ask(self, question: Question) -> Answer:
        return whole(self._bench.ask([question]), self.n_blocks, question.how)

    def tell(self, question: Question) -> None:
        self._bench.ask([question])

    def save(self, checkpoint: Checkpoint) -> None:
        self._bench.save(checkpoint.file)

    def load(self, checkpoint: Checkpoint) -> None:
        self._bench.load(checkpoint.file)

    def close(self) -> None:
        self._bench.close()


class Slot(Crew):
    """Those who hold one W among the blocks of a team."""

    def __init__(self, team: Team, number: int | None = None) -> None:
        self.team = team
        self.number = team.next_number() if number is None else number
        self.n_blocks = team.n_blocks

    def ask(self, name: str, arguments: tuple[Any, ...], how: str) -> Answer:
        given = tuple(Reference(a.number) if isinstance(a, Slot) else a for a in arguments)
        return self.team.ask(Question(self.number, name, given, how))

    def tell(self, name: str, *arguments: Any) -> None:
        self.team.tell(Question(self.number, name, arguments))

    def hold(self, W: Array) -> None:
        """Hand out the rows of W (F, K)."""
        rows = {b: W[i:j] for b, (i, j) in enumerate(pairwise(self.team.bounds))}
        self.team.tell(Question(self.number, "hold", own=rows))

    def drop(self) -> None:
        """Forget it."""
        self.team.tell(Question(self.number, "drop"))


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

    def observe(self, likelihood: Likelihood) -> SplitObservations:
        return SplitObservations(self.team, self.steps, likelihood, self.n_steps)


AnySeries = Series | SplitSeries


class SplitObservations(Observations):
    """Observations of which others hold the entries."""

    order: Literal["C", "F"] = "C"

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

    def curvature(self, features: Features, H: Array, expected: bool) -> tuple[Array, Array]:
        """The part of the data in (L1), see `posterior.data_part`."""
        assert isinstance(features.crew, Slot)
        about = (Reference(features.crew.number), H, expected)
        blocks, slopes = self.team.ask(Question(DATA, "curvature", about, "add"))
        return blocks, slopes

    def write(self, features: Features, folder: Path) -> ShardedComponents:
        """Have the blocks write their weights, where these are too many for one place."""
        from ..components import ShardedComponents, block_file, write_header

        assert isinstance(features.crew, Slot)
        files = {block: block_file(folder, block) for block in range(self.team.n_blocks)}
        self.team.tell(Question(features.crew.number, "write", own=files))
        # The answer says that all is written.
        n_components = len(features.crew.add("cross", features.crew))
        write_header(folder, n_components, self.team.bounds.tolist())
        return ShardedComponents.open(folder)

    def rest(self) -> None:
        self.team.rest()

    def blank(self) -> Features:
        return Features(self, Slot(self.team))

    def hold(self, W: Array | Features) -> Features:
        if isinstance(W, Features):
            return W
        slot = Slot(self.team)
        slot.hold(W)
        return Features(self, slot)

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
