"""Threads over shards of the data."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from .._typing import Array
from ..kernels.handoff import LINE, wait


class Workers:
    """Threads that live as long as one fit.

    What a shard computes never depends on which thread computes it, so results are the same to
    the bit for any number of threads. Each fit has threads of its own: fits may run side by side,
    and a forked child starts its own. Between the passes of a fit they are awake, see
    `kernels/handoff.py`.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn: None is 1 unless inside a `joblib.parallel_config`, −1 is all cores.
        Inside a worker of joblib −1 is 1, since the workers share the cores already.

    Examples
    --------
    >>> from temporalnmf.kernels.handoff import begin, end
    >>> done = [0] * 5
    >>> def kernel(flags, thread, first, last):
    ...     begin(flags, thread)
    ...     done[first:last] = range(first, last)
    ...     end(flags, thread)
    >>> with Workers(2) as workers:
    ...     workers.run(kernel, 5)
    >>> done
    [0, 1, 2, 3, 4]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        # joblib answers for processes, of which there are none inside a daemon; threads are free.
        if n_jobs is None or n_jobs < 0:
            n_jobs = 1 if n_jobs and _inside_joblib() else effective_n_jobs(n_jobs)
        self.n_threads = int(n_jobs)
        self._team: _Team | None = None

    def run(self, kernel: Callable[..., Any], n_shards: int, *arguments: Any) -> None:
        """Call kernel(flags, thread, first, last, *arguments) on ranges that cover the shards.

        The kernel says `begin` and `end`. Threads without a shard have an empty range.
        """
        if self.n_threads == 1 or n_shards == 1:
            kernel(_ALONE, 0, 0, n_shards, *arguments)
            return
        if self._team is None or self._team.process != os.getpid():
            self._team = _Team(min(self.n_threads, MOST_SHARDS))
        self._team.run(kernel, n_shards, arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._team is not None and self._team.process == os.getpid():
            self._team.dismiss()
        self._team = None


def _inside_joblib() -> bool:
    """Whether a worker of `joblib.Parallel` calls, in a thread or in a process."""
    return bool(get_active_backend()[0].nesting_level)


# More shards than this are never made, so more threads would have nothing to do.
MOST_SHARDS = 32

# The flags of a caller that has no helpers.
_ALONE: Array = np.zeros(LINE, dtype=np.int64)


class _Team:
    """The caller (thread 0) and its helpers.

    Everything but the kernels runs under Python's lock, so plain attributes are safe. A helper
    that saw no pass for a while sleeps until its bell rings.
    """

    def __init__(self, n_threads: int) -> None:
        self.process = os.getpid()
        self.flags: Array = np.zeros(LINE * n_threads, dtype=np.int64)
        self.posted = 0
        self.job: Callable[[int], None] = lambda thread: None
        self.error: BaseException | None = None
        self.asleep = [False] * n_threads
        self.bells = [threading.Semaphore(0) for _ in range(n_threads)]
        self.helpers = [
            threading.Thread(target=self._help, args=(thread,), daemon=True)
            for thread in range(1, n_threads)
        ]
        for helper in self.helpers:
            helper.start()

    def run(self, kernel: Callable[..., Any], n_shards: int, arguments: tuple[Any, ...]) -> None:
        n_ranges = min(len(self.bells), n_shards)
        ends = [n_shards * min(i, n_ranges) // n_ranges for i in range(len(self.bells) + 1)]

        def job(thread: int) -> None:
            kernel(self.flags, thread, ends[thread], ends[thread + 1], *arguments)

        self._post(job)
        try:
            job(0)
        finally:
            # A pass that failed here has to end everywhere before anyone touches its arrays.
            self.flags[0] = self.posted
            while not wait(self.flags, self.posted):
                time.sleep(0)
            error, self.error = self.error, None
        if error is not None:
            raise error

    def _post(self, job: Callable[[int], None]) -> None:
        self.job = job
        self.posted += 1
        for thread, asleep in enumerate(self.asleep):
            if asleep:
                self.bells[thread].release()

    def _help(self, thread: int) -> None:
        seen = 0
        while True:
            # First the flag, then the look: whoever posts in between rings the bell. A bell that
            # rang for nothing only means one more look.
            self.asleep[thread] = True
            if self.posted == seen:
                self.bells[thread].acquire()
            self.asleep[thread] = False
            if self.posted == seen:
                continue
            seen = self.posted
            try:
                self.job(thread)
            except SystemExit:
                return
            except BaseException as error:
                self.error = error
            self.flags[LINE * thread] = seen

    def dismiss(self) -> None:
        """Send the helpers home."""

        def leave(thread: int) -> None:
            raise SystemExit

        self._post(leave)
        self.flags[0] = self.posted  # those who watch it go on
        for helper in self.helpers:
            helper.join()
