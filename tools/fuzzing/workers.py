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
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import wait
from typing import Any

BATCH = 50  # seeds in a message
MEMORY = 2 << 30  # bytes of addresses a case may take beyond those of a worker at its start
FIRST_SECONDS = 120.0  # for the first case of a worker: it loads and compiles

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
        A case that takes longer is ended.

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
    since: Any  # when it began; 0 if none is
    todo: set[int] = field(default_factory=set)
    done: int = 0

    @classmethod
    def started(cls, context: Any, make_case: Any, run: Any, batch: list[int]) -> _Worker:
        ours, theirs = context.Pipe()
        seed, since = context.Value("q", 0, lock=False), context.Value("d", 0.0, lock=False)
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
            if not self.done and not self.since.value:
                raise RuntimeError(f"A worker ended with code {code} before its first case.")
            return self.seed.value, "died", f"the process ended with code {code}"
        limit = limit_seconds if self.done else limit_seconds + FIRST_SECONDS
        begun = self.since.value
        if begun and time.monotonic() - begun > limit:
            self.process.kill()
            self.process.join()
            return self.seed.value, "hung", f"it took more than {limit:g} s"
        return None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(pipe: Any, seed: Any, since: Any, make_case: Any, run: Any) -> None:
    limit_memory()
    while True:
        for number in pipe.recv():
            seed.value, since.value = number, time.monotonic()
            pipe.send((number, *result_of(make_case, run, number)))
            since.value = 0.0


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
