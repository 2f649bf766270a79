"""The parameters of a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import registry
from .._typing import Array
from ..chains.base import Chain, Point, Scale
from ..effects.design import seasons_of, trends_of
from ..effects.effects import Effects
from ..effects.holidays import holiday_terms
from ..likelihoods.base import Likelihood
from ..messages.arguments import check_choice
from ..messages.errors import Arg, ArgumentError, Text
from ..solvers.monitor import Callback
from ..solvers.options import flattened

# The name that chooses a likelihood by the data, what it tries first, and for counts that clump.
AUTO, FIRST, CLUMPED = "auto", "poisson", "negative_binomial"

Intervals = Literal["checked", "model"]
Gaps = Literal["interpolate", "mode"]

# Least values of numbers, and whether they are whole.
_NUMBERS: dict[str, tuple[type, int]] = {
    "n_components": (Integral, 1), "n_init": (Integral, 1), "max_iter": (Integral, 1),
    "tol": (Real, 0), "smoothing": (Real, 0), "n_draws": (Integral, 1), "n_tune": (Integral, 0),
    "n_chains": (Integral, 1), "thin": (Integral, 1), "checkpoint_every": (Real, 0),
}  # fmt: skip


class Factors(NamedTuple):
    """Components (K, F), levels of the activations (N, K), their chain, likelihood and effects.

    Without effects, levels are the activations.
    """

    components: Any
    levels: Array
    chain: Chain
    likelihood: Likelihood
    effects: Effects | None = None


@dataclass(frozen=True)
class Config:
    """Parameters of `TemporalNMF`, with objects in place of names.

    Attributes
    ----------
    automatic : bool
        Whether the likelihood is the first of two: counts that clump get a negative binomial one.
    previous : Factors or None
        Starting point of a warm start.
    brief : bool
        Whether the fit is a trial, which learns strengths of effects less exactly.
    """

    n_components: int
    chain: Chain
    likelihood: Likelihood
    map_scale: Scale
    solver: str
    max_iter: int
    tol: float
    n_init: int
    init: str | tuple[Any, Any]
    smoothing: float | str
    season: Any
    trend: Any
    holidays: Any
    point: Point
    gaps: Gaps
    intervals: Intervals
    n_draws: int
    n_tune: int
    n_chains: int
    thin: int | None
    checkpoint: str | PathLike[str] | None
    checkpoint_every: float
    callback: Callback | None
    n_jobs: int | None
    random_state: Any
    verbose: int
    automatic: bool = False
    previous: Factors | None = None
    brief: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, Any], previous: Factors | None = None) -> Config:
        """The parameters of an estimator, not checked yet."""
        given = flattened({n: value for n, value in parameters.items() if n != "warm_start"})
        given["chain"] = _object(registry.CHAINS, given["chain"], "chain", Chain)
        automatic = isinstance(given["likelihood"], str) and given["likelihood"] == AUTO
        if automatic and given["solver"] in registry.SAMPLERS:  # they are for counts only
            given["likelihood"], automatic = CLUMPED, False
        given["likelihood"] = likelihood_of(given["likelihood"])
        return cls(**given, automatic=automatic, previous=previous)

    def check(self) -> Config:
        """Raise if a parameter is invalid."""
        check_choice("map_scale", self.map_scale, ("log", "linear"))
        check_choice("point", self.point, ("mean", "mode"))
        check_choice("gaps", self.gaps, ("interpolate", "mode"))
        check_choice("intervals", self.intervals, ("checked", "model"))
        check_choice("solver", self.solver, (*registry.SOLVERS, *registry.SAMPLERS))
        for name, (kind, least) in _NUMBERS.items():
            _check_number(name, getattr(self, name), kind, least)
        self._check_effects()
        self._check_smoothing()
        self._check_learning()
        self._check_jobs()
        return self

    @property
    def drawing(self) -> bool:
        """Whether the fit is by posterior draws."""
        return self.solver in registry.SAMPLERS

    @property
    def named_by_place(self) -> bool:
        """Whether components must keep their order, since the user refers to them by it.

        That is, with starting values, a warm start, or hyper-parameters per component.
        """
        named = self.own_parameters or not isinstance(self.init, str)
        return named or self.previous is not None

    @property
    def own_parameters(self) -> bool:
        """Whether hyper-parameters are given per component."""
        return any(np.ndim(value) for value in self.chain.get_params().values())

    def _check_effects(self) -> None:
        if not (isinstance(self.season, str) and self.season == AUTO):
            seasons_of(self.season)
        if not (isinstance(self.trend, str) and self.trend == AUTO):
            trends_of(self.trend)
        holiday_terms(self.holidays)

    def _check_smoothing(self) -> None:
        if self.drawing:
            self._check_drawing()
        elif self.smoothing == "learn" and not self.likelihood.has_draws:
            raise ArgumentError(
                "smoothing",
                "learn",
                Text(
                    "is learned from the parts of components in counts, which {likelihood} does "
                    "not have.",
                    likelihood=Arg("likelihood", repr(self.likelihood.name)),
                ),
                "Give a number.",
            )

    def _check_learning(self) -> None:
        if self.chain.learns:
            self.likelihood.check()
            self.likelihood.check_law("Learning hyper-parameters")
        if self.chain.learns and self.map_scale == "linear" and not self.drawing:
            raise ArgumentError(
                "map_scale",
                self.map_scale,
                f"does not go with {self.chain!r}: hyper-parameters are learned on the log scale.",
                Text(
                    "Use {log}, or give the numbers of chain_ of such a fit.",
                    log=Arg("map_scale", "'log'"),
                ),
            )

    def _check_drawing(self) -> None:
        """Raise if there is no posterior to draw from."""
        solver = Arg("solver", repr(self.solver))
        if not self.likelihood.has_draws:
            counts, clumped = (
                Arg("likelihood", f"'{n}'") for n in ("poisson", "negative_binomial")
            )
            raise ArgumentError(
                "likelihood",
                self.likelihood.name,
                Text(
                    ": {solver} has posterior draws for {counts} and {clumped} only.",
                    solver=solver,
                    counts=counts,
                    clumped=clumped,
                ),
                Text("Use {modes} for this one.", modes=Arg("solver", "'accelerated'")),
            )
        if not self.chain.has_law:
            raise ArgumentError(
                "chain",
                "none",
                Text("is not a prior, so {solver} has no posterior to draw from.", solver=solver),
                Text(
                    "Use {gap} for steps that are independent of each other, or another chain.",
                    gap=Arg("chain", "'gap'"),
                ),
            )
        if self.smoothing == 0:
            raise ArgumentError(
                "smoothing",
                self.smoothing,
                Text(": {solver} needs a proper prior on components.", solver=solver),
                "Give a positive number, or 'learn'.",
            )
        if self.point != "mean":
            problem = Text(": draws have a mean and no mode ({solver}).", solver=solver)
            raise ArgumentError("point", self.point, problem)
        if self.thin is not None and self.thin > self.n_draws:
            n_draws = Arg("n_draws", str(self.n_draws))
            problem = Text("is larger than {n_draws}: nothing would be kept.", n_draws=n_draws)
            raise ArgumentError("thin", self.thin, problem)

    def _check_jobs(self) -> None:
        jobs = self.n_jobs
        whole = isinstance(jobs, Integral) and not isinstance(jobs, bool)
        if jobs is not None and not (whole and jobs):
            raise ArgumentError(
                "n_jobs", jobs, ": expected a number of threads, -1 for all cores, or None."
            )


def likelihood_of(given: str | Likelihood) -> Likelihood:
    """The likelihood that the user gave, or named; the first one to try for "auto"."""
    if isinstance(given, str) and given == AUTO:
        given = FIRST
    if isinstance(given, str) and given not in registry.LIKELIHOODS:
        problem, names = "is not known.", ", ".join((AUTO, *registry.LIKELIHOODS))
        raise ArgumentError("likelihood", given, problem, f"Choose one of {names}.")
    found: Likelihood = _object(registry.LIKELIHOODS, given, "likelihood", Likelihood)
    return found


def error_of(likelihood: str | Likelihood) -> Callable[[ArrayLike, ArrayLike], float]:
    """The error of predictions that belongs to a likelihood."""
    return likelihood_of(likelihood).error


def _object(table: dict[str, str], given: Any, argument: str, kind: type) -> Any:
    return given if isinstance(given, kind) else registry.create(table, given, argument)


def _check_number(name: str, value: Any, kind: type, least: int) -> None:
    if (name == "thin" and value is None) or (name == "smoothing" and value == "learn"):
        return
    number = isinstance(value, kind) and not isinstance(value, bool)
    if not number or not least <= float(value) < np.inf:
        what = "whole number" if kind is Integral else "number"
        word = ", or 'learn'" if name == "smoothing" else ""
        problem = f": expected a {what} of at least {least}{word}."
        raise ArgumentError("every" if name == "checkpoint_every" else name, value, problem)
