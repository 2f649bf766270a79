"""How the time of an iteration grows with the non-zeros, the steps and the components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadpoolctl import threadpool_limits

from speed.data import Dataset, dense, scattered
from speed.timing import Model, Options, alternate


def sizes(options: Options) -> Iterator[tuple[str, int, Dataset]]:
    """What grows, how large it is, and the data; made one at a time, since they are large."""
    short = options.quick
    for nnz in (10**5, 5 * 10**5, 10**6) if short else (10**5, 10**6, 10**7, 3 * 10**7, 10**8):
        yield "nnz", nnz, scattered(1000, 10**5, nnz)
    for n in (30, 300, 1000) if short else (30, 100, 300, 1000, 3000, 10**4, 3 * 10**4, 10**5):
        yield "N", n, dense(n, 100)
    for k in (2, 4, 8) if short else (2, 4, 8, 16, 32, 64):
        yield "K", k, dense(500, 2000, k)


def run(options: Options) -> list[dict[str, Any]]:
    records = []
    with threadpool_limits(1):
        for axis, size, dataset in sizes(options):
            model = Model(dataset, "rate", "log")
            # An iteration over 1e8 non-zeros takes seconds; ten of them, twice, are enough.
            repetitions = 2 if size >= 3 * 10**7 else options.repetitions
            seconds = alternate({"": model.iteration(options)}, repetitions)[""]
            records.append({"axis": axis, "size": size, "data": dataset.name, "seconds": seconds})
            del model, dataset
    return records
