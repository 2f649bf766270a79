"""An iteration on one thread and on two."""

from __future__ import annotations

from typing import Any

from threadpoolctl import threadpool_limits

from speed.data import Dataset, dense, load, scattered
from speed.timing import WARM_UP, Model, Options, alternate


def run(options: Options) -> list[dict[str, Any]]:
    less = 10 if options.quick else 1
    datasets: list[Dataset] = [
        load("nips"),
        dense(100, 20000 // less),
        scattered(1000, 10**5 // less, 10**7 // less),
    ]
    records = []
    for dataset in datasets:
        for chain in ("none", "rate"):
            model = Model(dataset, chain, "log")
            model.advance(WARM_UP if dataset.name == "nips" else 1)
            runs = {threads: model.iteration(options, threads) for threads in (1, 2)}
            with threadpool_limits(1):
                measured = alternate(runs, options.repetitions)
            records += [
                {"dataset": dataset.name, "chain": chain, "threads": n, "seconds": seconds}
                for n, seconds in measured.items()
            ]
    return records
