"""Intervals of a model with very many sparse features: time and memory.

    python benchmarks/wide_forecast.py

The model has 300,000 features and 60 steps. Memory is the peak of the process beyond what it used
after the fit (Linux only); every figure is from a separate process, with compiled code. Times are
wall-clock and processor times, which agree on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

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


def megabytes(name: str) -> float:
    """VmRSS, what is in memory, or VmHWM, its peak."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024.0


def measure(asked: str, n_features: int) -> None:
    TemporalNMF(6, max_iter=2, random_state=0).fit(np.ones((9, 3))).forecast(1).interval()
    model = model_of(n_features)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before, start, used = megabytes("VmRSS"), time.perf_counter(), time.process_time()
    if asked == "sum of steps":
        model.forecast(6).sum(over="steps").interval(0.9, of="totals")
    else:
        model.forecast(1).interval(0.9, of=asked)
    times = time.perf_counter() - start, time.process_time() - used
    print(json.dumps([*times, megabytes("VmHWM") - before]))


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
        seconds, processors, memory = json.loads(measure_of.splitlines()[-1])
        bar = ""
        if asked == "totals":
            held = memory < MOST_MEGABYTES and seconds < MOST_SECONDS
            bar = f"  bar {MOST_SECONDS:g} s, {MOST_MEGABYTES:g} MB: {'held' if held else 'missed'}"
        print(f"{asked:<14}{seconds:8.2f} s {processors:8.2f} s {memory:8.0f} MB{bar}")


if __name__ == "__main__":
    main()
