"""Stopping rule, and the history of the objective."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from .._typing import Array
from ..observations.features import Features
from ..runtime.signals import raise_if_stopped


class Progress(NamedTuple):
    """Argument of a callback at each evaluation of the objective; arrays are read-only views.

    Attributes
    ----------
    iteration : int
    objective, decrease : float
    components : array, (n_components, n_features), or Features
        Features if the data are not in memory (Dask, shards): gathering the weights at every
        evaluation may cost more than the iterations. `components.array()` gathers them,
        (n_features, n_components).
    activations : array, (n_times, n_components)
    """

    iteration: int
    objective: float
    decrease: float
    components: Array | Features
    activations: Array


Callback = Callable[[Progress], bool | None]


_STOPPED = "stopped by the callback"
# Most iterations between two evaluations of the objective.
_LONGEST = 10


class Monitor:
    """Records the history of the objective, and stops the fit.

    The objective costs as much as an iteration, so it is evaluated once in up to ten of them, and
    more often near the end: after a decrease of d, in d/tol iterations. Printing and callbacks
    happen at these evaluations and do not change them. A solver does up to
    `interval` iterations, then records.

    Parameters
    ----------
    max_iter : int
    tol : float
        Stop when the relative decrease of the objective per iteration falls below it.
    verbose : int
        Print the first evaluation from every `verbose`-th iteration on; 0 is silent.
    callback : callable or None
        Called with a `Progress` at each evaluation; a true return value stops the fit.
    label : str
        Printed in front of each line.

    Examples
    --------
    >>> import numpy as np
    >>> monitor = Monitor(max_iter=10, tol=0.1)
    >>> objective = 4.0
    >>> while monitor.running:
    ...     for _ in range(monitor.interval):
    ...         objective = 1.0 + 0.7 * (objective - 1.0)
    ...     monitor.record(objective, np.ones((2, 1)), np.ones((1, 3)), monitor.interval)
    >>> monitor.iterations, monitor.reason
    ([1, 2, 4, 6, 7], 'converged: relative decrease 8.5e-02 below tol=0.1 after 7 iterations')
    """

    def __init__(
        self,
        max_iter: int,
        tol: float,
        verbose: int = 0,
        callback: Callback | None = None,
        label: str = "",
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.callback = callback
        self.label = label
        self.history: list[float] = []
        self.iterations: list[int] = []
        self.iteration = 0
        self.interval = 1
        self.converged = False
        self.running = True
        self.reason = "not started"
        self._started = time.perf_counter()

    @property
    def stopped(self) -> bool:
        """Whether the callback stopped it."""
        return self.reason.startswith(_STOPPED)

    @property
    def remaining(self) -> int:
        """Remaining iterations."""
        return self.max_iter - self.iteration

    def record(self, objective: float, W: Array | Features, H: Array, iterations: int) -> None:
        """Record the objective after some iterations, and decide whether to continue."""
        raise_if_stopped()
        printed = self.iteration // self.verbose if self.verbose else 0
        self.iteration += iterations
        n = self.iteration
        decrease = math.inf
        if self.history and objective:
            passed = n - self.iterations[-1]
            decrease = (self.history[-1] - objective) / abs(objective) / passed
        elif self.history:
            decrease = 0.0
        self.history.append(objective)
        self.iterations.append(n)
        stopped = False
        if self.callback is not None:
            seen = Progress(n, objective, decrease, _components(W), _read_only(H.T))
            stopped = bool(self.callback(seen))
        if decrease < self.tol:
            self.converged = True
            self._stop(f"converged: relative decrease {decrease:.1e} below tol={self.tol:g}")
        elif stopped:
            self._stop(_STOPPED)
        elif n >= self.max_iter:
            self._stop(f"max_iter={self.max_iter} reached, relative decrease still {decrease:.1e}")
        if self.verbose and (not self.running or n // self.verbose > printed):
            seconds = time.perf_counter() - self._started
            print(
                f"{self.label}iteration {n:5d}  objective {objective:.8e}  "
                f"decrease {decrease:.1e}  {seconds:.1f} s"
            )
            if not self.running:
                print(f"{self.label}{self.reason}")
        self.interval = min(self._next_interval(decrease), max(self.remaining, 1))

    def _next_interval(self, decrease: float) -> int:
        """Iterations until the next evaluation."""
        if not math.isfinite(decrease):
            return 1
        if self.tol > 0.0 and decrease < _LONGEST * self.tol:
            return max(int(decrease / self.tol), 1)
        return _LONGEST

    def _stop(self, why: str) -> None:
        self.running = False
        self.reason = (
            why if why.startswith("max_iter") else f"{why} after {self.iteration} iterations"
        )


def _components(W: Array | Features) -> Array | Features:
    """W for a callback: an array if it is in memory, else the features."""
    if isinstance(W, Features):
        if not W.local:
            return W
        W = W.array()
    return _read_only(W.T)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
