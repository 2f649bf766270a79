"""Majorize–minimize to find a basin, then a quasi-Newton method to get to its bottom.

After some iterations of MM the variables are √W and log H (√H where a chain has no dynamics and
zeros are at home). Auxiliary variables of a chain are always optimal, so the objective is a
function of these alone. One pass over the data gives its gradient. L-BFGS turns the last few
gradients into a direction; its initial metric is the curvature of the bound (M) that MM
minimises, plus the tridiagonal Hessian of the chain, so that the first step is about that of MM.

Directions are tried with their full length and shortened where the slope at their end says that
the minimum was passed. Each stage of a few iterations ends with the H step of MM, which is exact
where the data say nothing: the objective hardly feels missing steps, and forecasts do. Then the
objective is evaluated. If it rose, the stage is undone and MM takes over for a while: longer each
time it happens in a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..kernels.floor import FLOOR
from ..kernels.quasi_newton import differences, direction, move, slopes, weight_slopes, weights
from ..likelihoods.base import Array
from ..objective import Problem
from .mm import FitResult, h_step, iterate
from .monitor import Monitor

# Iterations of MM before acceleration begins: they choose the basin.
_WARM_UP = 30
# Iterations of a stage. It does not depend on who watches: results are the same with a callback.
_STAGE = 10
# Iterations of MM after a stage that failed, doubled for each failure in a row.
_SETBACK = 10
# A direction is too long where the slope at its end is more than this share of that at its start.
_PASSED = 0.9
_SHORTEST = 1e-6
# Largest change of a log activation in one iteration.
_LONGEST = 1.0
# Least share of the root of a smoothed weight that is left after one iteration.
_SHRINK = 0.2
# Keeps the metric of log h away from zero where neither data nor chain hold it.
_LEAST_CURVATURE = 1.0


class Accelerated:
    """MM, then L-BFGS on (√W, log H); the objective falls from stage to stage.

    It has the fixed points of MM.
    """

    name = "accelerated"

    def solve(
        self,
        problem: Problem,
        W: Array,
        H: Array,
        monitor: Monitor,
        *,
        fixed_W: bool = False,
        held: int = 0,
    ) -> FitResult:
        """Run until the monitor stops it; see `MajorizeMinimize.solve`."""
        W = np.array(W, order=problem.observations.order)
        H = np.array(H, order="C")
        aux = problem.chain.auxiliary(H, problem.scale)
        simple, setback = _WARM_UP, _SETBACK
        path: _Path | None = None
        objective = np.inf
        while monitor.running:
            if simple > 0:
                n = min(monitor.interval, simple)
                for _ in range(n):
                    problem, aux = iterate(problem, W, H, aux, fixed_W=fixed_W, held=held)
                objective = problem.objective(W, H, aux)
                simple -= n
                monitor.record(objective, W, H, n)
                continue
            if path is None:
                path = _Path(problem, W, H, fixed_W, held)
            n = min(_STAGE, monitor.remaining)
            with np.errstate(all="ignore"):  # a stage that went too far is undone
                moved = path.advance(n)
                # Steps that the data do not hold, to where the chain wants them.
                trial_aux = problem.chain.auxiliary(path.H, problem.scale)
                trial_aux = h_step(problem, path.W, path.H, trial_aux, held=held)
                lower = problem.objective(path.W, path.H, trial_aux)
            if not (moved and lower <= objective):
                simple, setback, path = setback, 2 * setback, None
                continue
            W[...], H[...], aux = path.W, path.H, trial_aux
            objective, setback = lower, _SETBACK
            if problem.chain.learns and not fixed_W:
                problem = replace(problem, chain=problem.chain.learn(H, aux))
                aux = problem.chain.auxiliary(H, problem.scale)
                objective = problem.objective(W, H, aux)
            path.reconsider(problem)
            monitor.record(objective, W, H, n)
        return FitResult(W, H, problem.chain, monitor)


@dataclass
class _Point:
    """Where a path is, and what the objective looks like from there."""

    x: Array
    slope: Array
    curvature: Array  # of y
    diagonal: Array  # of log h or √h
    off: Array


class _Path:
    """L-BFGS from one starting point."""

    def __init__(self, problem: Problem, W: Array, H: Array, fixed_W: bool, held: int) -> None:
        self.problem = problem
        self.held = H[:, :held].copy()
        self.fixed_W = fixed_W
        self.W, self.H = W.copy(order="K"), H.copy()
        self.roots = not problem.chain.dynamic
        self.n_weights = 0 if fixed_W else W.size
        x = np.empty(self.n_weights + H.size)
        if not fixed_W:
            self._weights_of(x)[...] = np.sqrt(W)
        x[self.n_weights :] = (np.sqrt(H) if self.roots else np.log(H)).ravel()
        self.here = self._look(x)
        size = min(max(H.shape[1] // (2 * len(H)), 5), 10)
        self.S, self.T = np.empty((2, size, x.size), dtype=np.float32)
        self.products = np.empty(size)
        self.newest: list[int] = []  # rows of S and T, from new to old
        self.way = np.empty_like(x)

    def advance(self, n: int) -> bool:
        """Set W and H to where n iterations lead; whether anything moved."""
        steps = 0
        while steps < n and self._step():
            steps += 1
        self._decode(self.here.x)
        return steps > 0

    def reconsider(self, problem: Problem) -> None:
        """H or the chain has changed: look again."""
        self.problem = problem
        tail = self.here.x[self.n_weights :]
        # Roots keep their sign: the remembered changes of slope belong to it.
        h = self.H.ravel()
        tail[:] = np.copysign(np.sqrt(h), tail) if self.roots else np.log(h)
        self.here = self._look(self.here.x)

    def _step(self) -> bool:
        """One iteration; whether the path moved."""
        here = self.here
        order = np.array(self.newest, dtype=np.int64)
        slope = direction(
            here.slope, self.S, self.T, self.products, order,
            here.curvature, here.diagonal, here.off, self.way,
        )  # fmt: skip
        length = 1.0
        while slope < 0.0 and length > _SHORTEST:
            there = self._look(self._moved(here.x, length))
            # The way that was really gone may have been cut short in places.
            slope, end = slopes(here.slope, there.slope, here.x, there.x)
            if not slope < 0.0:
                break
            if end <= -_PASSED * slope:
                self._remember(there)
                self.here = there
                return True
            # The secant's guess of where the slope is zero.
            length *= min(max(slope / (slope - end), 0.1), 0.5) if np.isfinite(end) else 0.1
        # What was remembered may be what misleads.
        had_memory, self.newest = bool(self.newest), []
        return had_memory and self._step()

    def _remember(self, there: _Point) -> None:
        size = len(self.S)
        free = [i for i in range(size) if i not in self.newest]
        row = free[0] if free else self.newest[-1]
        st, ss, tt = differences(
            there.x, self.here.x, there.slope, self.here.slope, self.S[row], self.T[row]
        )
        older = [i for i in self.newest if i != row]
        keep = st > 1e-12 * np.sqrt(ss * tt)
        self.products[row] = st
        self.newest = [row, *older] if keep else older

    def _moved(self, x: Array, length: float) -> Array:
        out = np.empty_like(x)
        n_roots = x.size if self.roots else self.n_weights
        # Zero is a barrier for smoothed weights, and a place to pass through for others.
        shrink = _SHRINK if self.problem.smoothing else 0.0
        move(x, length, self.way, self.n_weights, shrink, n_roots, np.log(FLOOR), _LONGEST, out)
        return out

    def _weights_of(self, vector: Array) -> Array:
        """The part of a vector that belongs to W, (F, K) in its order."""
        F, K = self.W.shape
        part = vector[: self.n_weights]
        return (
            part.reshape(K, F).T if self.problem.observations.order == "F" else part.reshape(F, K)
        )

    def _decode(self, x: Array) -> Array:
        """Set W and H; returns Σ_f y²."""
        tail = x[self.n_weights :].reshape(self.H.shape)
        np.maximum(np.square(tail) if self.roots else np.exp(tail), FLOOR, out=self.H)
        self.H[:, : self.held.shape[1]] = self.held
        if self.fixed_W:
            return np.empty(0)
        return weights(self._weights_of(x), self.W)

    def _look(self, x: Array) -> _Point:
        """Gradient and metric at x, from one pass over the data."""
        problem, observations = self.problem, self.problem.observations
        totals = self._decode(x)
        H = self.H
        slope = np.empty_like(x)
        curvature = np.empty(self.n_weights)
        sums = observations.sums(self.W, H, "h" if self.fixed_W else "wh")
        if not self.fixed_W:
            weight_slopes(
                self._weights_of(x), self.W, *sums[0], float(problem.smoothing),
                totals, self._weights_of(slope), self._weights_of(curvature),
            )  # fmt: skip
        A, B = sums[-1]
        bound = observations.likelihood.majorizer(A.copy(), B, H)
        _, chain_slope, chain_diagonal, chain_off = problem.chain.expansion(H, problem.scale)
        in_log = H * (B - A) + chain_slope
        # Curvature in log h of −p log h + q h + r/h.
        diagonal = bound.q * H + bound.r / H + chain_diagonal
        off = chain_off
        if self.roots:
            root = x[self.n_weights :].reshape(H.shape)
            in_log = 2.0 * in_log * root / H
            diagonal = np.maximum(4.0 * diagonal / H, FLOOR)  # zero where nothing is observed
        else:
            diagonal += _LEAST_CURVATURE
        # What stands at the floor and wants to go lower is out of the game.
        stuck = (H <= 2.0 * FLOOR) & (in_log > 0.0) & (not self.roots)
        stuck[:, : self.held.shape[1]] = True
        in_log = np.where(stuck, 0.0, in_log)
        off = np.where(stuck[:, 1:] | stuck[:, :-1], 0.0, off)
        slope[self.n_weights :] = in_log.ravel()
        return _Point(x, slope, curvature, diagonal, off)
