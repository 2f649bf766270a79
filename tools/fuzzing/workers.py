"""Cases run in processes of their own: one that dies or hangs is known by its number.

A case follows from a whole number, its seed. A worker is told some seeds at a time, and reports
each result as soon as it has it; the seed under way is in memory that both see.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import wait
from typing import Any

import psutil

BATCH = 50  # seeds in a message
MEMORY = 2 << 30  # bytes of addresses a case may take beyond those of a worker at its start
FIRST_SECONDS = 120.0  # for the first case of a worker: it loads and compiles
WAITING = 900.0  # seconds after which a case that takes no processor time is ended

Result = tuple[int, str, str | None]


def run_cases(
    make_case: Callable[[int], Any],
    run: Callable[[Any], str],
    seeds: Iterable[int],
    jobs: int,
    limit_seconds: float,
) -> Iterator[Result]:
    """Run a case per seed, in any order.

    Parameters
    ----------
    make_case : callable
        The case of a seed. This and `run` have to be found by their names in another process.
    run : callable
        Returns how a case ended, in a word; raises if it ended as it must not.
    seeds : iterable of int
    jobs : int
        Number of processes.
    limit_seconds : float
        A case that takes more processor time is ended: on a busy machine any takes long.

    Yields
    ------
    seed : int
    outcome : str
        What `run` returned, or "failed", "died" (a crash of the process) or "hung".
    error : str or None
        What happened, None if nothing did.
    """
    context = multiprocessing.get_context("spawn")
    waiting = iter(seeds)
    workers: list[_Worker] = []
    try:
        while True:
            while len(workers) < jobs and (batch := list(islice(waiting, BATCH))):
                workers.append(_Worker.started(context, make_case, run, batch))
            if not workers:
                return
            wait([worker.pipe for worker in workers], timeout=0.5)
            for worker in list(workers):
                yield from worker.results()
                lost = worker.lost(limit_seconds)
                if lost is not None:
                    yield from worker.results()  # what it said before
                    yield lost
                    worker.todo.discard(lost[0])
                if lost is not None or not worker.todo:
                    batch = sorted(worker.todo) or list(islice(waiting, BATCH))
                    if lost is None and batch:
                        worker.give(batch)
                        continue
                    workers.remove(worker)
                    worker.end()
                    if batch:
                        workers.append(_Worker.started(context, make_case, run, batch))
    finally:
        for worker in workers:
            worker.end()


@dataclass
class _Worker:
    process: Any
    pipe: Any
    seed: Any  # under way
    since: Any  # its processor time when the case began, and the time; this is 0 if none is
    todo: set[int] = field(default_factory=set)
    done: int = 0

    @classmethod
    def started(cls, context: Any, make_case: Any, run: Any, batch: list[int]) -> _Worker:
        ours, theirs = context.Pipe()
        seed, since = context.Value("q", 0, lock=False), context.Array("d", 2, lock=False)
        process = context.Process(
            target=_work, args=(theirs, seed, since, make_case, run), daemon=True
        )
        process.start()
        theirs.close()  # so that the end of the process is the end of the pipe
        worker = cls(process, ours, seed, since)
        worker.give(batch)
        return worker

    def give(self, batch: list[int]) -> None:
        self.todo = set(batch)
        self.pipe.send(batch)

    def results(self) -> Iterator[Result]:
        try:
            while self.pipe.poll():
                result = self.pipe.recv()
                self.todo.discard(result[0])
                self.done += 1
                yield result
        except (EOFError, OSError):
            pass

    def lost(self, limit_seconds: float) -> Result | None:
        """The case during which a worker died or hung, if one did."""
        if not self.process.is_alive():
            code = self.process.exitcode
            if not self.done and not self.since[1]:
                raise RuntimeError(f"A worker ended with code {code} before its first case.")
            return self.seed.value, "died", f"the process ended with code {code}"
        limit = limit_seconds if self.done else limit_seconds + FIRST_SECONDS
        begun, used = self.since[1], self.since[0]
        reason = None
        if begun and self._used() - used > limit:
            reason = f"it took more than {limit:g} s of processor time"
        elif begun and time.monotonic() - begun > WAITING:
            reason = f"it did not end within {WAITING:g} s"
        if reason is None:
            return None
        self.process.kill()
        self.process.join()
        return self.seed.value, "hung", reason

    def _used(self) -> float:
        """Processor time so far, in seconds."""
        with suppress(psutil.NoSuchProcess):
            used = psutil.Process(self.process.pid).cpu_times()
            return float(used.user + used.system)
        return 0.0

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(pipe: Any, seed: Any, since: Any, make_case: Any, run: Any) -> None:
    limit_memory()
    while True:
        for number in pipe.recv():
            seed.value = number
            since[0], since[1] = time.process_time(), time.monotonic()
            pipe.send((number, *result_of(make_case, run, number)))
            since[1] = 0.0


def result_of(
    make_case: Callable[[int], Any], run: Callable[[Any], str], seed: int
) -> tuple[str, str | None]:
    """How a case ends, in this process."""
    try:
        return run(make_case(seed)), None
    except Exception:
        return "failed", traceback.format_exc()


def limit_memory(more: int = MEMORY) -> None:
    """From now on this process gets no more than so many bytes beyond what it has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more,) * 2)
