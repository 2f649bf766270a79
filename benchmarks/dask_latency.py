"""Cost of a request to all workers in Dask, for three ways to keep state on a worker.

Each request takes 30 ms of work on each of two workers and sends 16 kB in each direction; the time
beyond that is shown. Run: python benchmarks/dask_latency.py
"""

import time
from collections.abc import Callable
from operator import itemgetter

import numpy as np

from temporalnmf.cluster import local

WORK, REPEATS, ROUNDS = 0.03, 50, 3


def answer(H: np.ndarray) -> np.ndarray:
    """Work for a while."""
    end = time.perf_counter() + WORK
    while time.perf_counter() < end:
        pass
    return H * 1.0


def passed_on(state: tuple, H: np.ndarray) -> tuple:
    """State as the result of a task, and argument of the next."""
    return state[0], answer(H)


class Actor:
    """State in an object that lives on its worker."""

    def answer(self, H: np.ndarray) -> np.ndarray:
        return answer(H)


def beyond(question: Callable[[], object]) -> float:
    """Milliseconds per request, without its work."""
    started = time.perf_counter()
    for _ in range(REPEATS):
        question()
    return 1e3 * ((time.perf_counter() - started) / REPEATS - WORK)


def main() -> None:
    H = np.random.default_rng(0).random((10, 200))
    with local(n_workers=2) as client:
        homes = sorted(client.scheduler_info(n_workers=-1)["workers"])
        where = [{"workers": [home], "pure": False} for home in homes]
        states = [client.submit(lambda: (np.zeros(10**6), None), **home) for home in where]
        actors = [client.submit(Actor, actor=True, **home).result() for home in where]

        def pure_tasks() -> None:
            for i, home in enumerate(where):
                states[i] = client.submit(passed_on, states[i], H, **home)
            answers = zip(states, where, strict=True)
            client.gather([client.submit(itemgetter(1), state, **home) for state, home in answers])

        def tasks() -> None:
            client.gather([client.submit(answer, H, **home) for home in where])

        def speaking_to_actors() -> None:
            for call in [actor.answer(H) for actor in actors]:
                call.result()

        for _ in range(ROUNDS):
            for question in (pure_tasks, tasks, speaking_to_actors):
                print(f"{question.__name__:20s} {beyond(question):6.1f} ms")


if __name__ == "__main__":
    main()
