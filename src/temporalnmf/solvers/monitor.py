"""When to stop, why, and what happened on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from ..likelihoods.base import Array


class Progress(NamedTuple):
    """What a callback sees after each iteration; the arrays are read-only views."""

    iteration: int
    objective: float
    decrease: float
    components: Array
    activations: Array


Callback = Callable[[Progress], bool | None]


class Monitor:
    """Keeps the whole history of the objective and says in words why the fit stopped.

    Parameters
    ----------
    max_iter : int
    tol : float
        Stop when the relative decrease of the objective falls below it.
    verbose : int
        Print every `verbose`-th iteration; 0 is silent.
    callback : callable or None
        Called with a `Progress` after each iteration; a true return value stops the fit.
    label : str
        Printed in front of each line.

    Examples
    --------
    >>> import numpy as np
    >>> monitor = Monitor(max_iter=10, tol=0.1)
    >>> for objective in (4.0, 2.0, 1.9):
    ...     monitor.record(objective, np.ones((2, 1)), np.ones((1, 3)))
    >>> monitor.running, monitor.reason
    (False, 'converged: relative decrease 5.3e-02 below tol=0.1 after 3 iterations')
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
        self.converged = False
        self.running = True
        self.reason = "not started"
        self._started = time.perf_counter()

    def record(self, objective: float, W: Array, H: Array) -> None:
        """Take note of one iteration and decide whether another follows."""
        previous = self.history[-1] if self.history else float("inf")
        self.history.append(objective)
        n = len(self.history)
        decrease = (previous - objective) / abs(objective) if objective else 0.0
        stopped = False
        if self.callback is not None:
            components, activations = W.T.view(), H.T.view()
            components.flags.writeable = activations.flags.writeable = False
            stopped = bool(self.callback(Progress(n, objective, decrease, components, activations)))
        if decrease < self.tol:
            self.converged = True
            self._stop(f"converged: relative decrease {decrease:.1e} below tol={self.tol:g}")
        elif stopped:
            self._stop("stopped by the callback")
        elif n >= self.max_iter:
            self._stop(f"max_iter={self.max_iter} reached, relative decrease still {decrease:.1e}")
        if self.verbose and (not self.running or n % self.verbose == 0):
            seconds = time.perf_counter() - self._started
            print(
                f"{self.label}iteration {n:5d}  objective {objective:.8e}  "
                f"decrease {decrease:.1e}  {seconds:.1f} s"
            )
            if not self.running:
                print(f"{self.label}{self.reason}")

    def _stop(self, why: str) -> None:
        n = len(self.history)
        self.running = False
        self.reason = why if why.startswith("max_iter") else f"{why} after {n} iterations"
