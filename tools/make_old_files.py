"""Model files and checkpoints of this version, kept for the tests of later ones.

    python tools/make_old_files.py tests/old_files/NAME

Writes small models of several kinds with what they forecast, and checkpoints of fits that were
stopped half-way with what the whole fit finds. `tests/test_old_files.py` reads every such folder.
Run it before a change of the files; never replace a folder that is there.
"""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from temporalnmf import TemporalNMF
from temporalnmf.shards import write_shards
from temporalnmf.solvers import Checkpoint
from temporalnmf.solvers.options import nested
from temporalnmf.timeline import timeline_of

N, F = 24, 6


def data() -> np.ndarray:
    """Counts with a missing step and a missing entry."""
    rng = np.random.default_rng(7)
    time = np.linspace(0.0, 1.0, N)
    H = 30.0 * np.column_stack([np.exp(-4.0 * (time - 0.3) ** 2), 0.2 + time])
    X = rng.poisson(H @ rng.dirichlet(np.ones(F), size=2)).astype(float)
    X[5], X[9, 2] = np.nan, np.nan
    return X


MODELS: dict[str, dict[str, Any]] = {
    "rate": {},
    "bgar": {"chain": "bgar", "n_init": 2},
    "exponential": {"likelihood": "exponential", "chain": "hier_rate"},
    "none": {"chain": "none", "solver": "mm"},
    "draws": {
        "chain": "shape", "solver": "gibbs", "n_draws": 15, "n_tune": 10, "n_chains": 2,
        "smoothing": "learn",
    },
}  # fmt: skip
CHECKPOINTS: dict[str, dict[str, Any]] = {
    "mm": {"solver": "mm", "n_init": 2, "max_iter": 30, "tol": 0.0},
    "accelerated": {"n_init": 2, "max_iter": 60, "tol": 0.0},
    "gibbs": {"solver": "gibbs", "n_draws": 12, "n_tune": 12, "n_chains": 2},
    "shards": {"max_iter": 60, "tol": 0.0},
}


def given(name: str) -> np.ndarray:
    """The data of a model: positive for the exponential likelihood, complete for shards."""
    X = data()
    if name == "shards":
        return np.nan_to_num(X)
    return X + 0.5 if name == "exponential" else X


def model_of(settings: dict[str, Any], **more: Any) -> TemporalNMF:
    return TemporalNMF(**nested({"n_components": 2, "random_state": 3, **settings, **more}))


def numbers(model: TemporalNMF) -> dict[str, Any]:
    """What a later version has to find again."""
    forecast = model.forecast(3, n_samples=200)
    found = {
        "components": np.asarray(model.components_).tolist(),
        "activations": model.activations_.tolist(),
        "objective": model.objective_,
        "values": forecast.values.tolist(),
    }
    if forecast.futures is not None:
        quantiles = forecast.quantile([0.05, 0.5, 0.95], "totals")
        found["quantiles of totals"] = quantiles.tolist()
    return found


class StopError(Exception):
    """The fit is cut short."""


def stopping() -> Any:
    """A callback that stops a fit at its seventh evaluation, when L-BFGS has begun."""
    calls = []

    def callback(progress: Any) -> None:
        calls.append(progress)
        if len(calls) > 6:
            raise StopError

    return callback


def source(name: str, folder: Path) -> Any:
    """What a fit is given: data in memory, or a folder of shards."""
    X = given(name)
    if name != "shards":
        return X
    shards = folder / "data"
    if not shards.exists():
        write_shards(
            shards, sparse.csr_array(X), names=[f"x{f}" for f in range(F)],
            timeline=timeline_of(np.arange(N)), n_shards=2,
        )  # fmt: skip
    return shards


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    warnings.simplefilter("ignore")
    expected = {}
    for name, settings in MODELS.items():
        model = model_of(settings).fit(given(name))
        if name == "rate":
            model.calibrate(6)
        model.save(folder / f"{name}.npz")
        expected[name] = numbers(model)
    for name, settings in CHECKPOINTS.items():
        place = folder / f"{name}.ckpt"
        X = source(name, folder)
        with suppress(StopError):
            model_of(settings, checkpoint=Checkpoint(place, 0), callback=stopping()).fit(X)
        assert place.exists(), name
        expected[f"{name}.ckpt"] = numbers(model_of(settings).fit(X))
    (folder / "expected.json").write_text(json.dumps(expected))
    for path in folder.rglob("*.lock"):
        path.unlink()
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)


if __name__ == "__main__":
    main()
