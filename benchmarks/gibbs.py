"""Milliseconds per Gibbs sweep on NIPS, K = 3; wants TEMPORALNMF_DATA.

python benchmarks/gibbs.py
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from temporalnmf import TemporalNMF
from temporalnmf.chains import HierRate, Rate
from temporalnmf.parallel import Workers
from temporalnmf.sampling.conditionals import First
from temporalnmf.sampling.gibbs import Gibbs
from temporalnmf.sampling.learning import Learned, Smoothing
from temporalnmf.validation import Series

SWEEPS = 30


def main() -> None:
    X = np.load(Path(os.environ["TEMPORALNMF_DATA"]) / "nips.npy").T.astype(float)
    start = TemporalNMF(3, random_state=0).fit(X)
    W, H = np.maximum(start.components_.T, 1e-12), start.activations_.T
    series = Series(X, np.ones((len(X), 1)), np.ones(len(X)))
    for n_jobs in (1, 2):
        for chain in (Rate(100.0, 100.0), HierRate(200.0, 199.0, 200.0, 200.0)):
            with Workers(n_jobs) as workers:
                seed, first = np.random.SeedSequence(0), First(0.5, 1e5)
                law, smoothing = Learned(chain, 1.0, 3), Smoothing(0.1, False)
                gibbs = Gibbs(series, law, W, H, smoothing, first, seed, workers)
                gibbs.sweep()  # compiles
                began = time.perf_counter()
                for _ in range(SWEEPS):
                    gibbs.sweep()
                each = 1e3 * (time.perf_counter() - began) / SWEEPS
            print(f"{chain.name}, {n_jobs} thread(s): {each:.0f} ms")


if __name__ == "__main__":
    main()
