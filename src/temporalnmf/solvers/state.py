"""The state of a solver between two iterations, from which it resumes with identical results."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .._typing import Array, Arrays
from ..objective import Problem
from ..observations.base import Observations
from ..runtime.states import FREE_LENGTH, POSITIVE, StateError, restore, within
from .monitor import Monitor

# Largest coefficient of an effect in a valid checkpoint.
_FARTHEST = 1e3


class Checkpoints:
    """Called by a solver between two iterations; the base class writes nothing.

    Attributes
    ----------
    before : dict of arrays, or None
        The state that the solver resumes from.
    """

    before: Arrays | None = None

    def __init__(self, observations: Observations) -> None:
        self.observations = observations

    def between_iterations(self, state: Callable[[], Arrays]) -> None:
        """Write a checkpoint if one is due."""
        self.observations.between_iterations()


@dataclass
class SolverState:
    """The state that all solvers share."""

    H: Array = field(metadata=POSITIVE)
    aux: Array
    history: Array = field(metadata=FREE_LENGTH)
    iterations: Array = field(metadata=FREE_LENGTH)
    interval: int = field(metadata=within(1))
    ended: Array  # whether it has stopped, and whether it has converged
    reason: str
    likelihood: dict[str, Array] = field(metadata=POSITIVE)  # learned parameters
    effects: dict[str, Array] = field(default_factory=dict, metadata=within(-_FARTHEST, _FARTHEST))

    @classmethod
    def of(cls, problem: Problem, monitor: Monitor, H: Array, aux: Array) -> SolverState:
        """The state of a solve."""
        history, iterations = np.array(monitor.history, float), np.array(monitor.iterations, int)
        ended = np.array([not monitor.running, monitor.converged])
        interval, reason = monitor.interval, monitor.reason
        of_data = {name: np.array(value) for name, value in problem.likelihood.learned.items()}
        effects = {}
        if problem.effects is not None:
            effects = {"coefficients": problem.effects.coefficients}
        return cls(H, aux, history, iterations, interval, ended, reason, of_data, effects)

    @classmethod
    def restored(cls, problem: Problem, n_components: int, arrays: Arrays) -> SolverState:
        """The state in arrays; raises if it cannot be that of a solver of this problem."""
        H = np.ones((n_components, problem.observations.shape[1]))
        aux = problem.chain.auxiliary(H, problem.scale)
        found = cls.of(problem, Monitor(1, 0.0), H, aux)
        restore(found, arrays)
        if not 0 < len(found.history) == len(found.iterations):
            raise StateError("its history is empty, or not as long as its iterations")
        return found

    def resume(self, problem: Problem, monitor: Monitor) -> None:
        """Set the monitor and the likelihood."""
        monitor.history, monitor.iterations = self.history.tolist(), self.iterations.tolist()
        monitor.iteration, monitor.interval = monitor.iterations[-1], self.interval
        ended, monitor.converged = map(bool, self.ended)
        monitor.running, monitor.reason = not ended, self.reason
        likelihood = copy.copy(problem.likelihood)
        for name, value in self.likelihood.items():
            setattr(likelihood, name, float(value))
        problem.observations.use(likelihood)
        if problem.effects is not None:
            problem.effects.coefficients = self.effects["coefficients"]
