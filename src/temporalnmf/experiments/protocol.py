"""What an experiment is: models and their grids, splits, starts, and how a fit is made."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from .. import registry
from ..chains.base import Point, Scale
from ..likelihoods.base import Array
from ..selection.grids import LAST_VALUE, OUR_GRIDS, Grid, in_units
from ..selection.splitters import HiddenSteps, Split
from ..validation import check_choice, check_count

# The seed of the published tables.
PAPER_SEED = 20200928

_SMALL, _LARGE = (0.1, 1.0, 10.0), (1.5, 10.0, 100.0)
# The paper's grids, constant over the components; HierShape, which it leaves out, like GaP.
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
}
MODELS = tuple(PAPER_GRIDS)


class Task(NamedTuple):
    """One fit: a split, a start, a model and a point of its grid."""

    split: int
    init: int
    model: str
    point: int


class Draws(NamedTuple):
    """Everything that chance decides, drawn before the first fit."""

    W: Array  # (F, K, n_inits)
    H: Array  # (K, N, n_inits)
    splits: list[Split]


@dataclass(frozen=True)
class Protocol:
    """A frozen description of an experiment; the same one on the same data gives the same records.

    Splits hide single steps as the paper does (`HiddenSteps`). For each split and each start, every
    model is fitted at each point of its grid, and the point with the lowest error on the
    validation steps is kept.

    Parameters
    ----------
    n_components : int
    grids : dict
        For each model, a registry name or "last_value", hyper-parameters to try: numbers, words
        that the chain takes, or "100/level", in units of the mean activation.
    n_splits, n_inits : int, default=5
    fraction : float, default=0.2
        Share of hidden steps.
    seed : int
        For starts and hidden steps, of NumPy's legacy generator in the order of the paper's code.
    map_scale, point, smoothing, solver, tol, max_iter
        As in `TemporalNMF`.
    rounds : int or None, default=1
        Rounds over H in an iteration; the paper's algorithm has 1, None is the chain's own
        number.
    at_level : bool, default=False
        Multiply the drawn H by the level of the data. The paper does not: its H start around 1,
        with the columns of W summing to one.

    Examples
    --------
    >>> protocol = paper_protocol(n_components=3)
    >>> len(protocol.tasks()) // 25  # fits per split and start, two models besides the paper's
    41
    """

    n_components: int
    grids: dict[str, Grid] = field(default_factory=dict)
    n_splits: int = 5
    n_inits: int = 5
    fraction: float = 0.2
    seed: int = PAPER_SEED
    map_scale: Scale = "linear"
    point: Point = "mode"
    smoothing: float = 0.0
    solver: str = "mm"
    tol: float = 1e-5
    max_iter: int = 500
    rounds: int | None = 1
    at_level: bool = False

    def __post_init__(self) -> None:
        for name in ("n_components", "n_splits", "n_inits"):
            check_count(name, getattr(self, name))
        if not self.grids:
            raise ValueError("grids is empty: name at least one model.")
        for model in self.grids:
            check_choice("model", model, MODELS)

    def tasks(self) -> list[Task]:
        """Every fit of the experiment, in a fixed order."""
        return [
            Task(split, init, model, point)
            for split, init in product(range(self.n_splits), range(self.n_inits))
            for model, grid in self.grids.items()
            for point in range(len(grid))
        ]

    def draw(self, X: Any) -> Draws:
        """Starts and splits, as the paper's code draws them (MATH.md, section 5)."""
        n_steps, n_features = X.shape
        K = self.n_components
        random = np.random.RandomState(self.seed)
        W = random.gamma(2.0, 0.5, size=(n_features, K, self.n_inits))
        W /= W.sum(axis=0)
        H = random.gamma(2.0, 0.5, size=(K, n_steps, self.n_inits))
        splits = HiddenSteps(self.n_splits, self.fraction, random).split(X)
        return Draws(W, H, list(splits))

    def chain(self, task: Task, level: float) -> Any:
        """The chain of a task, "…/level" turned into numbers."""
        chain = registry.create(registry.CHAINS, task.model, "model")
        chain.set_params(**in_units(self.grids[task.model][task.point], level))
        if self.rounds is not None:
            chain.sweeps = self.rounds
        return chain

    def only(self, models: Any) -> Protocol:
        """The same experiment with some of its models."""
        for model in models:
            check_choice("model", model, tuple(self.grids))
        return replace(self, grids={m: g for m, g in self.grids.items() if m in models})

    def differs(self, other: Protocol) -> list[str]:
        """Names of the settings that are not those of another protocol, models aside."""
        mine, others = self.describe(), other.describe()
        return [name for name in mine if name != "grids" and mine[name] != others[name]]

    def describe(self) -> dict[str, Any]:
        """As plain numbers and words, for a file."""
        return asdict(self)


def paper_protocol(n_components: int, **changes: Any) -> Protocol:
    """The paper's experiment to the letter: modes on the linear scale, no smoothing, MM."""
    return Protocol(n_components, grids=PAPER_GRIDS, **changes)


def our_protocol(n_components: int, **changes: Any) -> Protocol:
    """The same splits and starts our way: mode on the log scale, mean forecasts, smoothing."""
    settings: dict[str, Any] = {
        "map_scale": "log", "point": "mean", "smoothing": 0.1, "solver": "accelerated",
        "rounds": None, "at_level": True,
    }  # fmt: skip
    return Protocol(n_components, grids={LAST_VALUE: [{}], **OUR_GRIDS}, **{**settings, **changes})


PROTOCOLS = {"paper": paper_protocol, "ours": our_protocol}
