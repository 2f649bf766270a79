"""Majorize–minimize to find a basin, then a quasi-Newton method to find its minimum.

After some iterations of MM the variables are √W and log H (√H if the chain has no dynamics, since
then zeros are common). Auxiliary variables of a chain are always optimal, so the objective is a
function of these alone. One pass over the data gives its gradient. L-BFGS turns the last few
gradients into a direction; its initial metric is the curvature of the bound (M) that MM
minimises, plus the tridiagonal Hessian of the chain, so that the first step is about that of MM.

The line search tries the full length first, and shortens it if the slope at the trial point shows
that the minimum was passed. Each stage of a few iterations ends with the H step of MM, which is
exact for missing steps: they hardly change the objective, but they change forecasts. Then the
objective is evaluated. If it rose, the stage is undone and MM takes over for a while: longer for
each failure in a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._typing import Array, Arrays
from ..kernels.floor import FLOOR
from ..objective import Problem
from ..observations.features import Evaluation, Features
from ..observations.lbfgs import Lbfgs, Limits, Tridiagonal, memory_of
from ..runtime.states import FREE_LENGTH, StateError, arrays_of, checked, named, restore
from .mm import FitResult, MajorizeMinimize, Solve, h_step

# Iterations of MM before acceleration begins: they choose the basin.
_WARM_UP = 30
# Iterations of a stage, with or without a callback: it does not change results.
_STAGE = 10
# Iterations of MM after a stage that failed, doubled for each failure in a row.
_SETBACK = 10
# A trial point is too far if its slope exceeds this share of minus the slope at the start.
_PASSED = 0.9
_SHORTEST = 1e-6
# Largest change of a log activation in one iteration.
_LONGEST = 1.0
# Least factor by which the root of a smoothed weight shrinks in one iteration.
_SHRINK = 0.2
# Added to the metric of log h, which is zero where neither data nor chain determine h.
_LEAST_CURVATURE = 1.0


@dataclass
class _AcceleratedSolve(Solve):
    """A solve in progress.

    `simple` iterations of MM remain before the next stage, and `setback` follow if that stage
    fails. The path is None before the first stage, and after a failed one.
    """

    simple: int = field(default_factory=lambda: _WARM_UP)
    setback: int = _SETBACK
    objective: float = np.inf
    path: _Path | None = None

    @property
    def interval(self) -> int:
        return min(self.monitor.interval, self.simple)

    def record(self, objective: float, n: int) -> None:
        self.objective = objective
        self.simple -= n
        super().record(objective, n)

    def stage(self) -> bool:
        if self.simple > 0:
            return False
        path = self.path = self.path or self._new_path()
        n, effects = min(_STAGE, self.monitor.remaining), self.problem.effects
        before = None if effects is None else effects.coefficients
        with np.errstate(all="ignore"):  # a stage that went too far is undone
            moved = path.advance(n)
            # Missing steps move to their optimum under the chain.
            aux = self.problem.chain.auxiliary(path.H, self.problem.scale)
            aux = h_step(self.problem, self.features, path.H, aux, held=self.held)
            parts = self.problem.parts(self.features, path.H, aux)
        if moved and sum(parts.values()) <= self.objective:
            self._accept(path, aux, parts)
            super().record(self.objective, n)
        else:
            if not self.fixed_weights:
                self.features.undo()
                self.features.end_path()
            if effects is not None and before is not None:
                effects.coefficients = before
            self.simple, self.setback, self.path = self.setback, 2 * self.setback, None
        return True

    def _accept(self, path: _Path, aux: Array, parts: dict[str, float]) -> None:
        """Move to the end of a stage that lowered the objective, to these terms."""
        if not self.fixed_weights:
            self.features.commit()
        self.H[...], self.aux = path.H, aux
        if self.problem.likelihood.learns and not self.fixed_weights:
            learned = self.problem.learn_likelihood(self.features, self.H, parts["likelihood"])
            parts = parts if learned is None else parts | {"likelihood": learned}
        self.objective, self.setback = sum(parts.values()), _SETBACK
        path.reconsider(self.problem)

    def _new_path(self, *, resumed: bool = False) -> _Path:
        return _Path(
            self.problem, self.features, self.H, self.fixed_weights, self.held, resumed=resumed
        )

    def state(self) -> Arrays:
        found = super().state() | {"turns": np.array([self.simple, self.setback])}
        # After the last iteration the path is not needed.
        if self.path is None or not self.monitor.running:
            return found
        return found | arrays_of(self.path, "path")

    def restore(self, arrays: Arrays) -> None:
        super().restore(arrays)
        self.simple, self.setback = checked(arrays, "turns", np.array([0, 0]), {}).tolist()
        self.objective = self.monitor.history[-1]
        if "path_x" in arrays:
            path = self.path = self._new_path(resumed=True)
            restore(path, arrays, "path")
            newest, rows = path.newest.tolist(), set(range(len(path.slopes)))
            if len(set(newest)) < len(newest) or not set(newest) < rows:  # one row is free
                raise StateError("its newest moves are not in memory")

    def end(self) -> FitResult:
        if not self.fixed_weights:
            self.features.end_path()
        return super().end()


class Accelerated(MajorizeMinimize):
    """MM, then L-BFGS on (√W, log H); the objective falls from stage to stage.

    It has the fixed points of MM.
    """

    name = "accelerated"
    _solve = _AcceleratedSolve


@dataclass(init=False, eq=False)
class _Path:
    """L-BFGS from one starting point.

    The roots of W are stored with the features, the variables of H here. Products of vectors are
    sums over both. Checkpoints contain the fields; if `resumed`, they are yet to be restored.
    """

    newest: Array = field(metadata=FREE_LENGTH)  # rows of memory, from new to old
    products: Array  # s·y of every two rows
    slopes: Array  # s·gradient
    curvatures: Array  # s·y of one move, not rounded
    totals: Array  # Σ_f y² at the current point
    track: Lbfgs = field(metadata=named(""))

    def __init__(
        self,
        problem: Problem,
        features: Features,
        H: Array,
        fixed_W: bool,
        held: int,
        *,
        resumed: bool = False,
    ) -> None:
        self.problem, self.features, self.fixed_W = problem, features, fixed_W
        self.held = H[:, :held].copy()
        self.H = H.copy()
        self.roots = not problem.chain.dynamic
        size = memory_of(*H.shape)
        self.track = Lbfgs((np.sqrt(H) if self.roots else np.log(H)).ravel(), size)
        self.newest = np.empty(0, dtype=np.int64)
        self.products, self.slopes = np.zeros((size + 1, size + 1)), np.zeros(size + 1)
        self.curvatures = np.zeros(size + 1)
        self.totals = np.empty(len(H))
        if resumed:
            self.track.metric = Tridiagonal(np.ones_like(H), np.zeros_like(H[:, 1:]))
            return
        if not fixed_W:
            features.begin_path(size)
        self._settle()

    def advance(self, n: int) -> bool:
        """Set W and H to the point after n iterations; whether anything moved."""
        steps = 0
        while steps < n and self._step():
            steps += 1
        self._decode(self.track.x)
        if not self.fixed_W:
            self.features.set_weights(self.totals)
        return steps > 0

    def reconsider(self, problem: Problem) -> None:
        """Evaluate again after a change of H or of the chain."""
        self.problem = problem
        x, h = self.track.x, self.H.ravel()
        # Roots keep their sign: the differences of gradients in memory belong to it.
        x[:] = np.copysign(np.sqrt(h), x) if self.roots else np.log(h)
        self._settle()

    def _settle(self) -> None:
        """Gradient and metric at the current point."""
        self.track.try_current()
        self.totals = np.empty(0) if self.fixed_W else self.features.try_current()
        _, slopes, _, _ = self._evaluate(self.totals)
        self._accept(slopes, self.totals)

    def _step(self) -> bool:
        """One iteration; whether the path moved."""
        slope, length = self._set_direction(), 1.0
        while slope < 0.0 and length > _SHORTEST:
            totals = self._try_step(length)
            (slope, end, st, ss, tt), slopes, forward, backward = self._evaluate(totals)
            # Limits may have shortened the move of some variables.
            if not slope < 0.0:
                break
            if end <= -_PASSED * slope:
                self._remember(st, ss, tt, forward, backward)
                self._accept(slopes, totals)
                return True
            # Secant estimate of where the slope is zero.
            length *= min(max(slope / (slope - end), 0.1), 0.5) if np.isfinite(end) else 0.1
        # The memory may be misleading: try without it.
        had_memory, self.newest = len(self.newest) > 0, self.newest[:0]
        return had_memory and self._step()

    def _set_direction(self) -> float:
        """Set the direction by the two loops of L-BFGS, on products; returns its slope."""
        order, products = self.newest, self.products
        shares, back = np.zeros((2, len(products)))
        for i, row in enumerate(order):
            newer = order[:i]
            left = self.slopes[row] - products[row, newer] @ shares[newer]
            shares[row] = left / self.curvatures[row]
        found = self.track.apply_metric(order, shares)
        if not self.fixed_W:
            found = found + self.features.apply_metric(order, shares)
        products_r, curvature, downhill = found[:-2], found[-2], found[-1]
        scale = 1.0
        if len(order):
            scale = min(max(self.curvatures[order[0]] / max(curvature, 1e-300), 0.05), 20.0)
        for i in range(len(order) - 1, -1, -1):
            row, older = order[i], order[i + 1 :]
            product = scale * products_r[row] + back[older] @ products[older, row]
            back[row] = shares[row] - product / self.curvatures[row]
        self.track.set_direction(order, back, scale)
        if not self.fixed_W:
            self.features.set_direction(order, back, scale)
        return -float(scale * downhill + back[order] @ self.slopes[order])

    def _try_step(self, length: float) -> Array:
        """Take a trial point along the direction; returns Σ_f y²."""
        n_roots = self.track.x.size if self.roots else 0
        self.track.try_step(length, Limits(n_roots, 0.0, np.log(FLOOR), _LONGEST))
        if self.fixed_W:
            return np.empty(0)
        # Zero is a barrier for smoothed weights only; roots of others may change sign.
        return self.features.try_step(length, _SHRINK if self.problem.smoothing else 0.0)

    def _evaluate(self, totals: Array) -> tuple[Array, Array, Array, Array]:
        """Gradient and metric at the trial point, from one pass over the data.

        Returns the five products of `Lbfgs.arrive`, then its products with all rows.
        """
        self._decode(self.track.trial)
        smoothing, row = float(self.problem.smoothing), self._free_row()
        used, activations = self.newest, self.problem.activations(self.H)
        evaluation: Evaluation | None = None
        if not self.fixed_W:
            evaluation = self.features.evaluate(activations, totals, smoothing)
        sums = self.features.sums(activations) if evaluation is None else evaluation.sums
        A, B = self.problem.of_levels(sums)
        found = self.track.arrive(*self._differentiate(A, B), row, used)
        if evaluation is not None:
            found = found + self.features.differentiate(
                evaluation.multipliers, totals, smoothing, row, used
            )
        slopes, forward, backward = found[5:].reshape(3, -1)
        return found[:5], slopes, forward, backward

    def _differentiate(self, A: Array, B: Array) -> tuple[Array, Tridiagonal]:
        """Gradient and metric in the variables of H."""
        problem, H = self.problem, self.H
        bound = problem.likelihood.majorizer(A.copy(), B, H)
        _, chain_slope, chain_diagonal, chain_off = problem.chain.expansion(H, problem.scale)
        in_log = H * (B - A) + chain_slope
        # Curvature in log h of −p log h + q h + r/h.
        diagonal = bound.q * H + bound.r / H + chain_diagonal
        off = chain_off
        if self.roots:
            root = self.track.trial.reshape(H.shape)
            in_log = 2.0 * in_log * root / H
            diagonal = np.maximum(4.0 * diagonal / H, FLOOR)  # zero where nothing is observed
        else:
            diagonal += _LEAST_CURVATURE
        # Variables at the floor whose gradient points below it stay there.
        stuck = (H <= 2.0 * FLOOR) & (in_log > 0.0) & (not self.roots)
        stuck[:, : self.held.shape[1]] = True
        in_log = np.where(stuck, 0.0, in_log)
        off = np.where(stuck[:, 1:] | stuck[:, :-1], 0.0, off)
        return in_log.ravel(), Tridiagonal(diagonal, off)

    def _accept(self, slopes: Array, totals: Array) -> None:
        """Make the trial point the current one."""
        self.track.accept()
        if not self.fixed_W:
            self.features.accept()
        self.slopes, self.totals = slopes, totals

    def _free_row(self) -> int:
        used = self.newest.tolist()
        return next(row for row in range(len(self.slopes)) if row not in used)

    def _remember(self, st: float, ss: float, tt: float, forward: Array, backward: Array) -> None:
        """Keep the move to the trial point in memory if the slope grew along it."""
        row = self._free_row()
        self.products[:, row], self.products[row] = forward, backward
        self.curvatures[row] = st
        if st > 1e-12 * np.sqrt(ss * tt):
            self.newest = np.concatenate([[row], self.newest])[: len(self.slopes) - 1]

    def _decode(self, x: Array) -> None:
        """Set H to the values of its variables."""
        tail = x.reshape(self.H.shape)
        np.maximum(np.square(tail) if self.roots else np.exp(tail), FLOOR, out=self.H)
        self.H[:, : self.held.shape[1]] = self.held
