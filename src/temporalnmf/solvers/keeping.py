"""What a solver needs to go on where it was, bit by bit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._typing import Array
from ..objective import Problem
from ..observations.base import Observations
from ..runtime.archives import UnlikeError, refuse_negative, refuse_unlike
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


def refuse_other(problem: Problem, n_components: int, state: State) -> None:
    """Refuse what is no state of a solver at work on such a problem."""
    n_steps = problem.observations.shape[1]
    H = np.ones((n_components, n_steps))
    form = state_of(problem, Monitor(1, 0.0), H, problem.chain.auxiliary(H, problem.scale))
    learned = {name for name in form if name.startswith("chain_")}
    free = {"history", "iterations", *learned}
    refuse_unlike(state, {name: form[name] for name in form if name not in free})
    for name in free:
        array = state.get(name, np.empty(0))
        if array.dtype.kind not in "fi" or array.ndim > 1 or not array.size:
            raise UnlikeError(f"{name} is {array.dtype} of shape {array.shape}")
    refuse_negative(state, ("H", *learned), positive=True)
    if any(state[name].size not in (1, n_components) for name in learned):
        raise UnlikeError("it has other hyper-parameters")
    if len(state["history"]) != len(state["iterations"]) or int(state["interval"]) < 1:
        raise UnlikeError("its history is none")
