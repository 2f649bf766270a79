"""The design of an experiment: models and their grids, splits, starts and fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from .. import registry
from .._typing import Array
from ..chains.base import Point, Scale
from ..effects.design import SeasonsLike, resolved, seasons_of
from ..effects.season import Season
from ..estimator import TemporalNMF
from ..inference.config import AUTO
from ..messages.arguments import check_choice, check_count
from ..messages.errors import ArgumentError
from ..selection.data import Gridded, Matrix
from ..selection.grids import GIBBS_GRIDS, LAST_CYCLE, LAST_VALUE, NAIVE, OUR_GRIDS, Grid, in_units
from ..selection.seasons import chosen_terms, cycle_of, long_enough
from ..selection.splitters import HiddenSteps, RollingOrigin, Split, observed_steps
from ..solvers.options import Gibbs
from ..timeline.clock import Clock

# The seed of the published tables.
PAPER_SEED = 20200928
_PAPER_INITS = 5

_SMALL, _LARGE = (0.1, 1.0, 10.0), (1.5, 10.0, 100.0)
# The paper's grids, the same for all components. HierShape and ARG are not in the paper.
PAPER_GRIDS: dict[str, Grid] = {
    LAST_VALUE: [{}],
    "none": [{}],
    "gap": [{"alpha": a, "beta": b} for a, b in product(_SMALL, _SMALL)],
    "rate": [{"alpha": a, "beta": a} for a in _LARGE],
    "hier_rate": [
        {"alpha_z": z, "beta_z": z, "alpha_h": h, "beta_h": h} for h, z in product(_LARGE, _LARGE)
    ],
    "shape": [{"alpha": a, "beta": a} for a in _SMALL],
    "hier_shape": [{"alpha": a, "beta": b} for a, b in product((1.0, 10.0), _SMALL)],
    "bgar": [
        {"alpha": a, "beta": b, "rho": 0.9} for a, b in product((11.0, 110.0, 1100.0), _SMALL)
    ],
    "arg": [{"alpha": a, "beta": b, "rho": 0.9} for a, b in product((1.0, 10.0, 100.0), _SMALL)],
}
MODELS = tuple(PAPER_GRIDS)
# Suffix of models that are fitted by posterior draws.
DRAWN = ":gibbs"
DRAWN_MODELS = tuple(f"{model}{DRAWN}" for model in GIBBS_GRIDS)


class Task(NamedTuple):
    """One fit: a split, a start, a model and a point of its grid."""

    split: int
    init: int
    model: str
    point: int


class Draws(NamedTuple):
    """Random starts and splits, generated before the first fit."""

    W: Array  # (F, K, n_inits)
    H: Array  # (K, N, n_inits)
    splits: list[Split]  # splits that hide inner steps, then one per forecast origin

    def of(self, task: Task) -> tuple[Array, Array, Split]:
        """Start and split of a task."""
        return self.W[:, :, task.init], self.H[:, :, task.init], self.splits[task.split]


@dataclass(frozen=True)
class Protocol:
    """The design of an experiment; on the same data it always gives the same records.

    Splits hide single steps (`HiddenSteps`). For each split and start, every model is fitted at
    each point of its grid; the point with the lowest validation error is kept. In the paper every
    split hides the last step, and its error is the forecast error.

    With `n_origins`, splits hide inner steps only, for the gap error. For the forecast error, every
    point is fitted to the steps before each origin and forecasts the next one; the point with the
    lowest error at earlier origins is kept. The first fifth of the origins is not scored.

    Parameters
    ----------
    n_components : int
    grids : dict
        For each model, a registry name, "last_value" or "last_cycle", settings to try:
        hyper-parameters (also "100/level", in units of the mean activation), n_components and
        smoothing. Models such as "rate:gibbs" are fitted by posterior draws.
    n_splits, n_inits : int, default=5
    fraction : float, default=0.2
        Share of hidden steps.
    n_origins : int, default=0
        Forecast origins that are scored; at most half of the steps are origins.
    seed : int
        For NumPy's legacy generator, in the order of the paper's code.
    map_scale, point, smoothing, solver, tol, max_iter
        As in `TemporalNMF`.
    n_tune, n_draws : int
        For models fitted by posterior draws, with one run per start.
    rounds : int or None, default=1
        Sweeps over H per iteration: 1 in the paper's algorithm, None for the chain's default.
    at_level : bool, default=False
        Multiply the random H, which is around 1 as in the paper, by the level of the data.
    season : as in `TemporalNMF`, default=None
        Seasons of all chains but "none". "auto" is chosen once, by fits to all of the data, see
        `of_data`. A fit from an early origin has those of which it sees two cycles.

    Examples
    --------
    >>> protocol = paper_protocol(n_components=3)
    >>> len(protocol.tasks()) // 25  # fits per split and start, four models besides the paper's
    50
    """

    n_components: int
    grids: dict[str, Grid] = field(default_factory=dict)
    n_splits: int = 5
    n_inits: int = 5
    fraction: float = 0.2
    n_origins: int = 0
    seed: int = PAPER_SEED
    map_scale: Scale = "linear"
    point: Point = "mode"
    smoothing: float = 0.0
    solver: str = "mm"
    tol: float = 1e-5
    max_iter: int = 500
    n_tune: int = 100
    n_draws: int = 200
    rounds: int | None = 1
    at_level: bool = False
    season: SeasonsLike = None

    def __post_init__(self) -> None:
        for name in ("n_components", "n_splits", "n_inits"):
            check_count(name, getattr(self, name))
        if self.n_origins:
            check_count("n_origins", self.n_origins)
        if not self.grids:
            raise ArgumentError("grids", self.grids, "is empty.", "Name at least one model.")
        for model in self.grids:
            check_choice("model", model, (*MODELS, LAST_CYCLE, *DRAWN_MODELS))
        if self.season != AUTO:
            seasons_of(self.season)

    def of_data(self, data: Gridded, recorded: SeasonsLike = AUTO) -> Protocol:
        """The experiment for these data: with its seasons, and "last_cycle" if there is a cycle.

        `recorded` are seasons that were chosen before; "auto" if none were.
        """
        protocol, clock = self, data.timeline.clock
        if self.season == AUTO:
            season = recorded
            if season == AUTO:
                season = self._chosen(data)
            protocol = replace(self, season=season)
        else:
            resolved(self.season, clock)  # refuses seasons that the data do not have
        if LAST_CYCLE not in self.grids or cycle_of(protocol.season, clock) is not None:
            return protocol
        grids = {name: grid for name, grid in self.grids.items() if name != LAST_CYCLE}
        if not grids:
            protocol.cycle(clock)  # says what is missing
        return replace(protocol, grids=grids)

    def cycle(self, clock: Clock) -> Season:
        """The cycle that "last_cycle" repeats; an error if there is none."""
        found = cycle_of(self.season, clock)
        if found is None:
            problem = "needs a season, and the times of the data suggest none."
            raise ArgumentError("model", LAST_CYCLE, problem, "Name another model, or a season.")
        return found

    def _chosen(self, data: Gridded) -> SeasonsLike:
        """The seasons with which short fits of the default chain predict held-out steps better."""
        if all(model in (*NAIVE, "none") for model in self.grids):
            return None
        model = TemporalNMF(
            self.n_components,
            likelihood="poisson",
            smoothing=self.smoothing,
            max_iter=self.max_iter,
        )
        season: SeasonsLike = chosen_terms(data, model).season
        return season

    def tasks(self, n_origins: int = 0) -> list[Task]:
        """Every fit of the experiment, in a fixed order; forecast origins are the last splits.

        A split is fitted from every start, an origin from one of them in turn.
        """
        units = list(product(range(self.n_splits), range(self.n_inits)))
        units += [(self.n_splits + i, i % self.n_inits) for i in range(n_origins)]
        return [
            Task(split, init, model, point)
            for split, init in units
            for model, grid in self.grids.items()
            for point in range(len(grid))
        ]

    def draw(self, X: Matrix) -> Draws:
        """Starts and splits, as the paper's code draws them (docs/math.md)."""
        n_steps, n_features = X.shape
        K = self.n_components
        random = np.random.RandomState(self.seed)
        # At least as many as in the paper, since the hidden steps are drawn after them.
        n_inits = max(self.n_inits, _PAPER_INITS)
        W = random.gamma(2.0, 0.5, size=(n_features, K, n_inits))
        W /= W.sum(axis=0)
        H = random.gamma(2.0, 0.5, size=(K, n_steps, n_inits))
        hidden = HiddenSteps(self.n_splits, self.fraction, random, last=not self.n_origins)
        return Draws(W, H, [*hidden.split(X), *self._origins(X)])

    def _origins(self, X: Matrix) -> list[Split]:
        """One split per forecast origin; the first ones only choose hyper-parameters."""
        if not self.n_origins:
            return []
        wanted = self.n_origins + max((self.n_origins - 1) // 4, 1)  # see `warm_up`
        n_origins = min(wanted, int(observed_steps(X).sum()) // 2)
        return list(RollingOrigin(n_origins).split(X))

    def components_of(self, task: Task) -> int:
        """The number of components of a task."""
        return int(self.grids[task.model][task.point].get("n_components", self.n_components))

    def settings(self, task: Task, level: float, clock: Clock | None = None) -> dict[str, Any]:
        """Parameters of the estimator of a task; `level` is the mean activation.

        Without the clock of the steps there are no seasons.
        """
        tried = in_units(self.grids[task.model][task.point], level)
        tried.pop("n_components", None)
        smoothing = tried.pop("smoothing", self.smoothing)
        # All that results depend on, so that they do not depend on the defaults.
        found: dict[str, Any] = {
            "n_components": self.components_of(task), "smoothing": smoothing,
            "likelihood": "poisson", "gaps": "mode", "intervals": "model", "season": None,
            "trend": None, "holidays": None, "n_init": 1,
        }  # fmt: skip
        name, drawn, _ = task.model.partition(DRAWN)
        if clock is not None and name != "none" and self.season not in (None, AUTO):
            found["season"] = long_enough(self.season, clock) or None
        chain = registry.create(registry.CHAINS, name, "model")
        chain.set_params(**tried)
        if drawn:
            return found | {"chain": chain, "solver": Gibbs(self.n_draws, self.n_tune, n_chains=1)}
        if self.rounds is not None:
            chain.sweeps = self.rounds
        return found | {
            "chain": chain, "solver": self.solver, "map_scale": self.map_scale,
            "point": self.point, "tol": self.tol, "max_iter": self.max_iter,
        }  # fmt: skip

    def only(self, models: Sequence[str]) -> Protocol:
        """The same experiment with some of its models, by modes or draws."""
        names = {model.partition(DRAWN)[0] for model in self.grids}
        for model in models:
            check_choice("model", model, tuple(dict.fromkeys([*names, *self.grids])))
        wanted = [name for name in self.grids if {name, name.partition(DRAWN)[0]} & {*models}]
        return replace(self, grids={name: self.grids[name] for name in wanted})

    def with_draws(self, *, modes: bool = True) -> Protocol:
        """With posterior draws for each model that has them, in addition to modes or instead."""
        drawn = {f"{m}{DRAWN}": GIBBS_GRIDS[m] for m in self.grids if m in GIBBS_GRIDS}
        return replace(self, grids={**(self.grids if modes else {}), **drawn})

    def choosing(
        self, n_components: tuple[int, ...] = (), smoothing: tuple[float | str, ...] = ()
    ) -> Protocol:
        """With numbers of components and smoothings to choose from on the validation steps.

        The smoothing "learn" is tried for posterior draws only.
        """
        grids: dict[str, Grid] = {}
        for model, grid in self.grids.items():
            points = grid
            if model not in NAIVE:
                values = [s for s in smoothing if s != "learn" or model.endswith(DRAWN)]
                points = [{**p, "n_components": k} for p in points for k in n_components] or points
                points = [{**p, "smoothing": s} for p in points for s in values] or points
            grids[model] = points
        return replace(self, grids=grids)

    def differs(self, other: Protocol) -> list[str]:
        """Names of settings that differ from another protocol, except the grids."""
        mine, others = asdict(self), asdict(other)
        return [name for name in mine if name != "grids" and mine[name] != others[name]]


def paper_protocol(n_components: int, **changes: Any) -> Protocol:
    """The paper's experiment to the letter: modes on the linear scale, no smoothing, MM."""
    return Protocol(n_components, grids=PAPER_GRIDS, **changes)


def our_protocol(n_components: int, **changes: Any) -> Protocol:
    """Our settings (mode on the log scale, mean forecasts, smoothing) and 20 forecast origins.

    Data with dates have seasons if these predict better, and are compared with "last_cycle".
    """
    ours = Protocol(
        n_components, grids={LAST_VALUE: [{}], LAST_CYCLE: [{}], **OUR_GRIDS}, map_scale="log",
        point="mean", smoothing=0.1, solver="accelerated", rounds=None, at_level=True, n_origins=20,
        season=AUTO,
    )  # fmt: skip
    return replace(ours, **changes)


def warm_up(n_origins: int) -> int:
    """Number of first origins that only choose hyper-parameters and are not scored."""
    return max(n_origins // 5, 1)


PROTOCOLS = {"paper": paper_protocol, "ours": our_protocol}
