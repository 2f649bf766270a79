"""Intervals of a model with very many sparse features: time and memory.

    python benchmarks/wide_forecast.py

The model has 300,000 features and 60 steps. Memory is the peak of the process above what it had
with the model fitted; every figure is of a process of its own, with compiled code.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from scipy import sparse

from temporalnmf import TemporalNMF

ASKED = ("totals", "components", "sum of steps", "features")
# Of the issue: intervals of totals.
MOST_MEGABYTES, MOST_SECONDS = 300.0, 2.0


def model_of(n_features: int) -> TemporalNMF:
    rng = np.random.default_rng(0)
    N, counts = 60, 20_000
    rows = np.repeat(np.arange(N), counts)
    columns = (n_features * rng.beta(0.5, 3.0, size=N * counts)).astype(int)
    X = sparse.csr_array((np.ones(N * counts), (rows, columns)), shape=(N, n_features))
    warnings.simplefilter("ignore")
    return TemporalNMF(6, max_iter=20, random_state=0).fit(X)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def measure(asked: str, n_features: int) -> None:
    TemporalNMF(6, max_iter=2, random_state=0).fit(np.ones((9, 3))).forecast(1).interval()
    model = model_of(n_features)
    before, start = peak(), time.perf_counter()
    if asked == "sum of steps":
        model.forecast(6).sum(over="steps").interval(0.9, of="totals")
    else:
        model.forecast(1).interval(0.9, of=asked)
    print(json.dumps([time.perf_counter() - start, peak() - before]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=300_000)
    parser.add_argument("--asked", choices=ASKED, help="Measure this one alone, here.")
    options = parser.parse_args()
    if options.asked is not None:
        measure(options.asked, options.features)
        return
    for asked in ASKED:
        words = [sys.executable, __file__, "--features", str(options.features), "--asked", asked]
        measure_of = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        seconds, megabytes = json.loads(measure_of.splitlines()[-1])
        bar = ""
        if asked == "totals":
            held = megabytes < MOST_MEGABYTES and seconds < MOST_SECONDS
            bar = f"  bar {MOST_MEGABYTES:.0f} MB, {MOST_SECONDS:.0f} s: {'held' if held else 'MISSED'}"
        print(f"{asked:<14}{seconds:8.2f} s {megabytes:8.0f} MB{bar}")


if __name__ == "__main__":
    main()
