"""Peak memory of a fit beyond that of the data, each in its own process."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from speed.data import Dataset, dense, scattered
from speed.timing import Options, child
from temporalnmf import TemporalNMF

# Beyond the warm-up of the accelerated solver.
ITERATIONS = {"mm": 12, "accelerated": 45}


def run(options: Options) -> list[dict[str, Any]]:
    """Two sizes each: their difference separates what grows with the data from the factors."""
    less = 10 if options.quick else 1
    sizes = {"dense": (250 // less, 500 // less), "sparse": (5 * 10**6 // less, 10**7 // less)}
    return [
        child("speed.memory", {"kind": kind, "size": size, "solver": solver})
        for kind in sizes
        for solver in (("mm",) if options.quick else ITERATIONS)
        for size in sizes[kind]
    ]


def measure(kind: str, size: int, solver: str) -> dict[str, Any]:
    """In the child: fit tiny data of the same kind first, which loads all that is compiled."""
    _fit(_data(kind, 3000 if kind == "sparse" else 30, tiny=True), solver)
    dataset = _data(kind, size)
    X = dataset.X
    data = X.nbytes if kind == "dense" else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before = _status("VmRSS")
    _fit(dataset, solver)
    N, F = X.shape
    return {
        "kind": kind, "data": dataset.name, "solver": solver, "data_bytes": data,
        "factor_bytes": 8 * (F + N) * dataset.n_components, "peak": _status("VmHWM") - before,
    }  # fmt: skip


def _data(kind: str, size: int, *, tiny: bool = False) -> Dataset:
    if kind == "dense":
        return dense(size, 20 if tiny else 20000)
    return scattered(30 if tiny else 1000, 1000 if tiny else 10**5, size)


def _fit(dataset: Dataset, solver: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge so soon
        TemporalNMF(
            dataset.n_components, solver=solver, max_iter=ITERATIONS[solver], tol=0.0,
            random_state=0,
        ).fit(dataset.X)  # fmt: skip


def _status(field: str) -> int:
    """Bytes, as reported by the kernel."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise KeyError(field)


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
