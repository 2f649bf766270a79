"""Options of the Gibbs sampler and of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator

_DEFAULT_EVERY = 30.0


class Gibbs(BaseEstimator):
    """Posterior draws by Gibbs sampling: `TemporalNMF(solver=Gibbs(n_draws=1000))`.

    Parameters
    ----------
    n_draws, n_tune : int, default=500, 500
        Sweeps after, and during, tuning.
    n_chains : int, default=4
        Runs, each from its own start. Two or more show whether they agree, see
        `TemporalNMF.posterior_`.
    thin : int or None, default=None
        Keep every `thin`-th draw; None keeps as many as fit into 256 MB, and at least 8 per run.
    """

    name = "gibbs"

    def __init__(
        self, n_draws: int = 500, n_tune: int = 500, n_chains: int = 4, thin: int | None = None
    ) -> None:
        self.n_draws = n_draws
        self.n_tune = n_tune
        self.n_chains = n_chains
        self.thin = thin


class Checkpoint(NamedTuple):
    """A file for the state of a fit: `TemporalNMF(checkpoint=Checkpoint("fit.npz", every=60))`.

    Attributes
    ----------
    path : path
        For data that are not in memory, and solvers other than "gibbs", a folder.
    every : float, default=30.0
        Seconds between two writes. The file is written at an evaluation of the objective; 0 writes
        it at each.
    """

    path: str | PathLike[str]
    every: float = _DEFAULT_EVERY


# Parameters that belong to these options, with the argument of `TemporalNMF` that takes them.
OPTIONS = {
    **dict.fromkeys(("n_draws", "n_tune", "n_chains", "thin"), "solver"),
    "checkpoint_every": "checkpoint",
}


def solver_name(solver: str | Gibbs) -> str:
    """The registered name of a solver."""
    return solver.name if isinstance(solver, Gibbs) else solver


def flattened(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of `TemporalNMF` with names and numbers in place of options."""
    found = dict(parameters)
    gibbs = found["solver"] if isinstance(found["solver"], Gibbs) else Gibbs()
    found["solver"] = solver_name(found["solver"])
    kept = found["checkpoint"]
    found["checkpoint"], every = kept if isinstance(kept, Checkpoint) else (kept, _DEFAULT_EVERY)
    return {**gibbs.get_params(), "checkpoint_every": every, **found}


def nested(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with options in place of names and numbers: the inverse of `flattened`.

    Numbers that belong to another solver are left out.

    Examples
    --------
    >>> nested({"solver": "gibbs", "n_draws": 20})
    {'solver': Gibbs(n_draws=20)}
    """
    found = {name: value for name, value in parameters.items() if name not in OPTIONS}
    numbers = {n: v for n, v in parameters.items() if OPTIONS.get(n) == "solver"}
    solver, kept = parameters.get("solver"), parameters.get("checkpoint")
    if numbers and (isinstance(solver, Gibbs) or solver == Gibbs.name):
        known = solver.get_params() if isinstance(solver, Gibbs) else {}
        found["solver"] = Gibbs(**{**known, **numbers})
    if "checkpoint_every" in parameters and kept is not None:
        path = kept.path if isinstance(kept, Checkpoint) else kept
        found["checkpoint"] = Checkpoint(path, parameters["checkpoint_every"])
    return found
