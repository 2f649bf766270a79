"""What a solver needs to go on where it was, bit by bit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..likelihoods.base import Array
from ..objective import Problem
from ..observations.base import Observations
from .monitor import Monitor

State = dict[str, Array]


class Keeper:
    """Is told whenever a solver is between two iterations.

    Attributes
    ----------
    before : dict of arrays, or None
        The state that a solver goes on from.
    """

    before: State | None = None

    def __init__(self, observations: Observations) -> None:
        self.observations = observations

    def rest(self, state: Callable[[], State]) -> None:
        """A good moment to keep the state, which is made if it is wanted."""
        self.observations.rest()


def state_of(problem: Problem, monitor: Monitor, H: Array, aux: Array) -> State:
    """What all solvers have."""
    learned = {
        f"chain_{name}": np.asarray(getattr(problem.chain, name)) for name in problem.chain._learned
    }
    return {
        "H": H,
        "aux": aux,
        "history": np.array(monitor.history),
        "iterations": np.array(monitor.iterations),
        "interval": np.array(monitor.interval),
        "ended": np.array([not monitor.running, monitor.converged]),
        "reason": np.array(monitor.reason),
        **learned,
    }


def go_on(problem: Problem, monitor: Monitor, state: State) -> tuple[Problem, Array, Array]:
    """The problem with what was learned, H and auxiliary variables; the monitor is set."""
    monitor.history = state["history"].tolist()
    monitor.iterations = state["iterations"].tolist()
    monitor.iteration, monitor.interval = monitor.iterations[-1], int(state["interval"])
    ended, monitor.converged = map(bool, state["ended"])
    monitor.running, monitor.reason = not ended, str(state["reason"])
    chain = copy.copy(problem.chain)
    for name in chain._learned:
        setattr(chain, name, state[f"chain_{name}"])
    return replace(problem, chain=chain), np.array(state["H"]), np.array(state["aux"])
