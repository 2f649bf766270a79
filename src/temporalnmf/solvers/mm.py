"""Majorize–minimize: alternate an exact minimiser of the bound in W and sweeps over H."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Array, Arrays
from ..chains.base import Chain
from ..effects.effects import Effects
from ..kernels.floor import lifted
from ..likelihoods.base import Likelihood
from ..likelihoods.local import ROOM, LocalBound
from ..objective import Problem
from ..observations.features import Features
from ..runtime.states import arrays_of
from .monitor import Monitor
from .state import Checkpoints, SolverState

_MAX_STEPS = 300
# The error of Newton's method after a step of this relative size is its square, below rounding.
_LAST_STEP = 1e-9


@dataclass(frozen=True)
class FitResult:
    """The result of a solver."""

    features: Features
    H: Array
    chain: Chain
    likelihood: Likelihood
    monitor: Monitor
    effects: Effects | None = None

    @property
    def W(self) -> Array:
        """(F, K), in the memory of this process."""
        return self.features.array()


def _exchanged(problem: Problem, effects: Effects, H: Array, aux: Array) -> Array:
    """Exchange factors between effects and levels H; returns the auxiliary variables."""
    moved = effects.exchange(H, problem.chain, problem.scale)
    return problem.chain.auxiliary(H, problem.scale) if moved else aux


def h_step(
    problem: Problem, features: Features, H: Array, aux: Array, *, held: int = 0, last: bool = True
) -> Array:
    """Sweep the chain over H, in place; returns its auxiliary variables.

    The last step of several moves effects, too, under the same bound.
    """
    likelihood, sums = problem.likelihood, problem.sums(features, H)
    effects = problem.effects if last and problem.effects and problem.effects.moving else None
    if not likelihood.local:
        majorizer = likelihood.majorizer(*sums, H)
        found = problem.chain.sweep(H, aux, majorizer, problem.scale, held=held)
        if effects is not None:
            effects.move(majorizer, H)
            found = _exchanged(problem, effects, H, found)
        return found
    bound, room = LocalBound(*sums, H.copy()), ROOM
    while True:
        found = problem.chain.sweep(H, aux, bound.majorizer, problem.scale, held=held)
        beyond = bound.beyond(H)
        if not beyond.any():
            if effects is not None:
                effects.move(bound.majorizer, H, bound.farthest)
                found = _exchanged(problem, effects, H, found)
            return found
        bound.widen(beyond, H, room)  # (LB2)
        H[...] = bound.x
        room *= 2.0


def w_root(features: Features, H: Array, smoothing: float) -> Array:
    """(W2), again for columns beyond their bounds (LB2); returns the sums Σ_f w, (K,)."""
    lowest = features.bound(H, smoothing)
    used = wanted = np.isfinite(lowest)
    room = ROOM
    while wanted.any():
        _w_root(features, lowest, wanted)
        if not features.observations.likelihood.local:
            break
        beyond, lowest = features.widen(smoothing, room)
        wanted = beyond < 0.0
        room *= 2.0
    return features.above_floor(used)


def _w_root(features: Features, lowest: Array, used: Array) -> None:
    """(W2) for used columns by Newton's method, see `kernels/simplex.py`."""
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


@dataclass
class Solve:
    """A solve in progress, by majorize–minimize; see `MajorizeMinimize.solve`."""

    problem: Problem
    features: Features
    H: Array
    aux: Array
    monitor: Monitor
    fixed_weights: bool
    held: int
    checkpoints: Checkpoints

    @property
    def interval(self) -> int:
        """Iterations before the next evaluation of the objective."""
        return self.monitor.interval

    def iterate(self, n: int) -> None:
        """Update W and H n times and the likelihood once; evaluate the objective."""
        problem, features, H = self.problem, self.features, self.H
        shared, s = features.observations.shared, float(problem.smoothing)
        for i in range(n):
            if not self.fixed_weights:
                G = problem.activations(H)
                features.divide(features.multiply(G, s) if shared else w_root(features, G, s))
            last = i == n - 1
            self.aux = h_step(problem, features, H, self.aux, held=self.held, last=last)
        value = None if self.fixed_weights else self.problem.learn_likelihood(features, H)
        self.record(sum(self.problem.parts(features, H, self.aux, value).values()), n)

    def stage(self) -> bool:
        """Replace iterations by another method; returns whether that was done."""
        return False

    def record(self, objective: float, n: int) -> None:
        """Record the objective after n iterations."""
        self.monitor.record(objective, self.features, self.problem.activations(self.H), n)
        self.checkpoints.between_iterations(self.state)

    def state(self) -> Arrays:
        """Everything that later iterations depend on, except W."""
        return arrays_of(SolverState.of(self.problem, self.monitor, self.H, self.aux))

    def restore(self, arrays: Arrays) -> None:
        """Resume from a state; raises if it cannot be the state of such a solve."""
        state = SolverState.restored(self.problem, len(self.H), arrays)
        self.H, self.aux = state.H, state.aux
        state.resume(self.problem, self.monitor)

    def end(self) -> FitResult:
        """The result, after the monitor has stopped it."""
        chain, likelihood = self.problem.chain, self.problem.likelihood
        effects = None if self.problem.effects is None else self.problem.effects.copy()
        return FitResult(self.features, self.H, chain, likelihood, self.monitor, effects)


class MajorizeMinimize:
    """The paper's solver: every step lowers the objective."""

    name = "mm"
    _solve: type[Solve] = Solve

    def solve(
        self,
        problem: Problem,
        W: Array | Features,
        H: Array,
        monitor: Monitor,
        *,
        fixed_W: bool = False,
        held: int = 0,
        checkpoints: Checkpoints | None = None,
    ) -> FitResult:
        """Run until the monitor stops it.

        Parameters
        ----------
        problem : Problem
        W : array, (F, K), or Features
        H : array, (K, N)
            Starting points. Arrays are not changed, the weights of features are.
        monitor : Monitor
        fixed_W : bool
            Update H only.
        held : int
            The first `held` steps of H are fixed.
        checkpoints : Checkpoints or None
            Called between iterations; may have a state to resume from.
        """
        observations = problem.observations
        if not isinstance(W, Features):
            W = np.array(W, order=observations.order)
        H = lifted(H)
        aux = problem.chain.auxiliary(H, problem.scale)
        checkpoints = checkpoints or Checkpoints(observations)
        features = observations.hold(W)
        solve = self._solve(problem, features, H, aux, monitor, fixed_W, held, checkpoints)
        if checkpoints.before is not None:
            solve.restore(checkpoints.before)
        while monitor.running:
            if not solve.stage():
                solve.iterate(solve.interval)
        return solve.end()
