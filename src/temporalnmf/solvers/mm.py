"""Majorize–minimize: alternate an exact minimiser of the bound in W and sweeps over H."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .._typing import Array
from ..chains.base import Chain
from ..kernels.floor import lifted
from ..objective import Problem
from ..observations.features import Features
from .keeping import Keeper, go_on, state_of
from .monitor import Monitor

_MAX_STEPS = 300
# Newton's error after a step of this relative size is its square, below rounding.
_LAST_STEP = 1e-9


@dataclass(frozen=True)
class FitResult:
    """Where a solver ended."""

    features: Features
    H: Array
    chain: Chain
    monitor: Monitor

    @property
    def W(self) -> Array:
        """(F, K), here."""
        return self.features.array()


def h_step(problem: Problem, features: Features, H: Array, aux: Array, *, held: int = 0) -> Array:
    """Sweep the chain over H, in place; returns the auxiliary variables that go with it."""
    majorizer = problem.observations.likelihood.majorizer(*features.sums(H), H)
    return problem.chain.sweep(H, aux, majorizer, problem.scale, held=held)


def iterate(
    problem: Problem, features: Features, H: Array, aux: Array, *, fixed_W: bool, held: int
) -> tuple[Problem, Array]:
    """One iteration, in place: W, then H, then the parameters that are learned."""
    if not fixed_W:
        s = float(problem.smoothing)
        shared = problem.observations.shared
        features.divide(features.multiply(H, s) if shared else w_root(features, H, s))
    aux = h_step(problem, features, H, aux, held=held)
    return (problem, aux) if fixed_W else problem.learned(H, aux)


def w_root(features: Features, H: Array, smoothing: float) -> Array:
    """(W2) by Newton's method, see `kernels/simplex.py`; returns the sums Σ_f w, (K,)."""
    lowest = features.bound(H, smoothing)
    used = np.isfinite(lowest)
    m = features.left(lowest)
    wanted = used.copy()
    for _ in range(_MAX_STEPS):
        total, slope = features.roots(lowest, m, wanted)
        step = np.zeros_like(m)
        step[wanted] = (total * (total - 1.0))[wanted] / slope[wanted]
        m = m + step
        wanted = wanted & (np.abs(step) > _LAST_STEP * m)
        if not wanted.any():
            break
    features.roots(lowest, m, used)
    return features.above_floor(used)


def held_features(problem: Problem, W: Array | Features) -> Features:
    """What a solver works on: features as they are, or with a copy of an array of weights."""
    if not isinstance(W, Features):
        W = np.array(W, order=problem.observations.order)
    return problem.observations.hold(W)


class MajorizeMinimize:
    """The paper's solver: every step lowers the objective."""

    name = "mm"

    def solve(
        self,
        problem: Problem,
        W: Array | Features,
        H: Array,
        monitor: Monitor,
        *,
        fixed_W: bool = False,
        held: int = 0,
        keeper: Keeper | None = None,
    ) -> FitResult:
        """Run until the monitor stops it.

        Parameters
        ----------
        problem : Problem
        W : array, (F, K), or Features
        H : array, (K, N)
            Starting points. Arrays are not changed, weights that features hold are.
        monitor : Monitor
        fixed_W : bool
            Update H only.
        held : int
            The first `held` steps of H stay as they are.
        keeper : Keeper
            Keeps the state now and then, and has one to go on from, or not.
        """
        features, keeper = held_features(problem, W), keeper or Keeper(problem.observations)
        H = lifted(H)
        aux = problem.chain.auxiliary(H, problem.scale)
        if keeper.before is not None:
            problem, H, aux = go_on(problem, monitor, keeper.before)
        while monitor.running:
            n = monitor.interval
            for _ in range(n):
                problem, aux = iterate(problem, features, H, aux, fixed_W=fixed_W, held=held)
            monitor.record(problem.objective(features, H, aux), features, H, n)
            keeper.rest(partial(state_of, problem, monitor, H, aux))
        return FitResult(features, H, problem.chain, monitor)
