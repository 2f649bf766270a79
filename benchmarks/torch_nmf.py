"""Seconds per iteration of torchnmf; run by an interpreter that has it, see speed/torch.py.

python torch_nmf.py ITERATIONS REPETITIONS THREADS FILE.npz …   (THREADS 0: as installed)
"""

import json
import sys
import time

import numpy as np
import torch
from torchnmf.nmf import NMF


def seconds(V, W, H, beta, max_iter):
    model = NMF(W=torch.from_numpy(W.copy()), H=torch.from_numpy(H.copy()))
    started = time.perf_counter()
    model.fit(V, beta=beta, tol=-np.inf, max_iter=max_iter)
    return time.perf_counter() - started


def main():
    iterations, repetitions, threads, *files = sys.argv[1:]
    torch.set_default_dtype(torch.float64)  # as everybody else
    if int(threads):
        torch.set_num_threads(int(threads))
    results = []
    for file in files:
        with np.load(file) as case:
            W, H, beta = case["W"], case["H"], float(case["beta"])
            if "V" in case:
                V = torch.from_numpy(case["V"])
            else:
                V = torch.sparse_coo_tensor(
                    case["indices"], case["data"], tuple(case["shape"]), check_invariants=True
                ).coalesce()
        n = int(iterations)
        seconds(V, W, H, beta, n + 1)  # compiles
        shortest = min(seconds(V, W, H, beta, 1) for _ in range(5))
        longer = [seconds(V, W, H, beta, n + 1) for _ in range(int(repetitions))]
        results.append([(time_taken - shortest) / n for time_taken in longer])
    print(json.dumps({"version": torch.__version__, "seconds": results}))


if __name__ == "__main__":
    main()
