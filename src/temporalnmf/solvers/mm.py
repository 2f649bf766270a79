"""Majorize–minimize: alternate an exact minimiser of the bound in W and sweeps over H."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..chains.base import Chain
from ..kernels.simplex import proportional, simplex_minimiser
from ..likelihoods.base import Array
from ..objective import Problem
from .monitor import Monitor


@dataclass(frozen=True)
class FitResult:
    """Where a solver ended."""

    W: Array
    H: Array
    chain: Chain
    monitor: Monitor


def w_step(problem: Problem, W: Array, H: Array) -> Array:
    """Minimise the bound in W over the simplex, (W1)–(W3); W is overwritten."""
    observations, smoothing = problem.observations, float(problem.smoothing)
    (sums,) = observations.sums(W, H, "w")
    if len(sums.B) == 1:  # q is the same for all features, which only Poisson has
        proportional(sums.A, smoothing, W)
    else:
        simplex_minimiser(*observations.likelihood.majorizer(*sums, W), smoothing, W)
    return W


def h_step(problem: Problem, W: Array, H: Array, aux: Array, *, held: int = 0) -> Array:
    """Sweep the chain over H, in place; returns the auxiliary variables that go with it."""
    majorizer = problem.observations.h_statistics(W, H)
    return problem.chain.sweep(H, aux, majorizer, problem.scale, held=held)


def iterate(
    problem: Problem, W: Array, H: Array, aux: Array, *, fixed_W: bool, held: int
) -> tuple[Problem, Array]:
    """One iteration, in place: W, then H, then whatever hyper-parameters are being learned."""
    if not fixed_W:
        w_step(problem, W, H)
    aux = h_step(problem, W, H, aux, held=held)
    if problem.chain.learns and not fixed_W:
        problem = replace(problem, chain=problem.chain.learn(H, aux))
        aux = problem.chain.auxiliary(H, problem.scale)
    return problem, aux


class MajorizeMinimize:
    """The paper's solver: every step lowers the objective."""

    name = "mm"

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
        """Run until the monitor stops it.

        Parameters
        ----------
        problem : Problem
        W : array, (F, K)
        H : array, (K, N)
            Starting points, not changed.
        monitor : Monitor
        fixed_W : bool
            Update H only.
        held : int
            The first `held` steps of H stay as they are.
        """
        W = np.array(W, order=problem.observations.order)
        H = np.array(H, order="C")
        aux = problem.chain.auxiliary(H, problem.scale)
        while monitor.running:
            n = monitor.interval
            for _ in range(n):
                problem, aux = iterate(problem, W, H, aux, fixed_W=fixed_W, held=held)
            monitor.record(problem.objective(W, H, aux), W, H, n)
        return FitResult(W, H, problem.chain, monitor)
