"""Threads that share the ranges of a pass over the data."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Self

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from .._typing import Array
from ..kernels.handoff import LINE, wait


class Threads:
    """The threads of one fit.

    The result of a range does not depend on the thread that computes it, so results have the same
    bits for any number of threads. Each fit has its own threads: fits may run concurrently, and a
    forked child starts its own. Threads stay awake between passes, see `kernels/handoff.py`.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn: None is 1 unless inside a `joblib.parallel_config`, −1 is all cores.
        Inside `joblib.Parallel` −1 is 1, since its processes use all cores already.

    Examples
    --------
    >>> from temporalnmf.kernels.handoff import begin, end
    >>> done = [0] * 5
    >>> def kernel(flags, thread, first, last):
    ...     begin(flags, thread)
    ...     done[first:last] = range(first, last)
    ...     end(flags, thread)
    >>> with Threads(2) as threads:
    ...     threads.run(kernel, 5)
    >>> done
    [0, 1, 2, 3, 4]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        # A positive number is not passed to joblib, which allows daemon processes only 1.
        if n_jobs is None or n_jobs < 0:
            nested = bool(get_active_backend()[0].nesting_level)  # inside joblib.Parallel
            n_jobs = 1 if n_jobs and nested else effective_n_jobs(n_jobs)
        self.n_threads = int(n_jobs)
        self.pool: Pool | None = None

    def run(self, kernel: Callable[..., object], n_ranges: int, *arguments: object) -> None:
        """Call kernel(flags, thread, first, last, *arguments) for ranges first to last per thread.

        The kernel calls `begin` and `end`. A thread without ranges has first = last.
        """
        if self.n_threads == 1 or n_ranges == 1:
            kernel(_ALONE, 0, 0, n_ranges, *arguments)
            return
        if self.pool is None or self.pool.process != os.getpid():
            self.pool = Pool(min(self.n_threads, MOST_RANGES))
        self.pool.run(kernel, n_ranges, arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None and self.pool.process == os.getpid():
            self.pool.shut_down()
        self.pool = None


# Largest number of ranges, and therefore of threads.
MOST_RANGES = 32

# The flags of a caller without helper threads.
_ALONE: Array = np.zeros(LINE, dtype=np.int64)


class Pool:
    """The calling thread (number 0) and its helpers.

    Everything but the kernels holds the GIL, so plain attributes are safe. A helper that had no
    pass for a while waits for its semaphore.
    """

    def __init__(self, n_threads: int) -> None:
        self.process = os.getpid()
        self.flags: Array = np.zeros(LINE * n_threads, dtype=np.int64)
        self.posted = 0
        self.job: Callable[[int], None] = lambda thread: None
        self.error: BaseException | None = None
        self.asleep = [False] * n_threads
        self.semaphores = [threading.Semaphore(0) for _ in range(n_threads)]
        self.helpers = [
            threading.Thread(target=self._help, args=(thread,), daemon=True)
            for thread in range(1, n_threads)
        ]
        for helper in self.helpers:
            helper.start()

    def run(
        self, kernel: Callable[..., object], n_ranges: int, arguments: tuple[object, ...]
    ) -> None:
        n_busy = min(len(self.semaphores), n_ranges)
        ends = [n_ranges * min(i, n_busy) // n_busy for i in range(len(self.semaphores) + 1)]

        def job(thread: int) -> None:
            kernel(self.flags, thread, ends[thread], ends[thread + 1], *arguments)

        self.post(job)
        try:
            job(0)
        finally:
            # If the pass failed here, it must end in all threads before its arrays are reused.
            self.flags[0] = self.posted
            while not wait(self.flags, self.posted):
                time.sleep(0)
            error, self.error = self.error, None
        if error is not None:
            raise error

    def post(self, job: Callable[[int], None]) -> None:
        self.job = job
        self.posted += 1
        for thread, asleep in enumerate(self.asleep):
            if asleep:
                self.semaphores[thread].release()

    def _help(self, thread: int) -> None:
        seen = 0
        while True:
            # Set the flag before the check: a job posted in between releases the semaphore. A
            # release without a job only causes another check.
            self.asleep[thread] = True
            if self.posted == seen:
                self.semaphores[thread].acquire()
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

    def shut_down(self) -> None:
        """End the helper threads."""

        def leave(thread: int) -> None:
            raise SystemExit

        self.post(leave)
        self.flags[0] = self.posted  # so that waiting threads continue
        for helper in self.helpers:
            helper.join()
