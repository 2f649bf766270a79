"""torchnmf in a separate interpreter, if there is one (TEMPORALNMF_TORCH_PYTHON)."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from speed.data import Dataset
from speed.timing import WARM_UP, Model, Options

ITERATIONS = 20


def run(datasets: list[Dataset], options: Options) -> list[dict[str, Any]]:
    """Records of its iterations; none if it is not available.

    It does not alternate with the others, since its threads would slow them down.
    """
    python = os.environ.get("TEMPORALNMF_TORCH_PYTHON")
    if not python:
        return []
    with tempfile.TemporaryDirectory() as folder:
        files = [str(_write(dataset, Path(folder))) for dataset in datasets]
        records = []
        for threads in (1, 0):
            arguments = [ITERATIONS // (5 if options.quick else 1), options.repetitions, threads]
            done = subprocess.run(
                [python, Path(__file__).parents[1] / "torch_nmf.py", *map(str, arguments), *files],
                check=True, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            result = json.loads(done.stdout)
            records += [
                {
                    "dataset": dataset.name, "K": dataset.n_components, "who": "torchnmf",
                    "version": result["version"], "chain": "none", "threads": threads,
                    "seconds": seconds,
                }
                for dataset, seconds in zip(datasets, result["seconds"], strict=True)
            ]  # fmt: skip
    return records


def _write(dataset: Dataset, folder: Path) -> Path:
    """V (F, N) and its own names for the factors, V ≈ H Wᵀ."""
    model = Model(dataset, "none", "linear")
    model.advance(WARM_UP)
    case: dict[str, Any] = {
        "W": np.ascontiguousarray(model.H.T), "H": np.ascontiguousarray(model.W),
        "beta": 1.0 if dataset.likelihood == "poisson" else 0.0,
    }  # fmt: skip
    if sparse.issparse(dataset.X):
        V = sparse.coo_array(dataset.X.T)
        case |= {"indices": np.array([V.row, V.col]), "data": V.data, "shape": V.shape}
    else:
        case["V"] = np.ascontiguousarray(dataset.X.T)
    file = folder / f"{dataset.name}_{dataset.n_components}.npz"
    np.savez(file, **case)
    return file
