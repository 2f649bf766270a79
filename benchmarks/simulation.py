"""Seconds to simulate a million steps of each process, in 1000 paths at once.

    python benchmarks/simulation.py

The median of five runs. Nothing is compiled for it; BGAR has to stay below one second.
"""

from __future__ import annotations

import statistics
import time

from temporalnmf import registry


def main() -> None:
    for name in registry.PROCESSES:
        process = registry.create(registry.PROCESSES, name, "process")
        seconds = []
        for seed in range(5):
            started = time.perf_counter()
            process.sample(n_paths=1000, n_steps=1000, rng=seed)
            seconds.append(time.perf_counter() - started)
        print(f"{name:12} {statistics.median(seconds):.3f} s  {process.numbers()}")


if __name__ == "__main__":
    main()
