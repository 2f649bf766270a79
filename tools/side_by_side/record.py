"""Fit, forecast, draw, save and run commands, and write what came of it as digests.

    python -m side_by_side.record OUT [--only WORD]

Uses public names only, so that the same file runs on an older and on the present source. A line
of OUT is a case and its digests by name.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import chdir, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import temporalnmf
from side_by_side.cases import PLACES, Case, all_cases, data_of, learned_chains
from temporalnmf import TemporalNMF, registry
from temporalnmf.cluster import local
from temporalnmf.datasets import load_sotu
from temporalnmf.selection import select
from temporalnmf.shards import write_shards
from temporalnmf.timeline import timeline_of

Found = dict[str, str]

_FITTED = ("components_", "activations_", "history_", "history_iterations_", "stop_reason_",
           "converged_", "n_iter_", "objective_", "reconstruction_err_", "stability_", "times_",
           "observed_", "exposure_", "smoothing_")  # fmt: skip
_OPTIONS: dict[str, Any] = {"n_components": 2, "n_init": 2, "max_iter": 40, "random_state": 0}
_DRAWS: dict[str, Any] = {"n_components": 2, "solver": "gibbs", "n_draws": 12, "n_tune": 12,
                          "n_chains": 2, "random_state": 0}  # fmt: skip


def digest(value: Any) -> str:
    """The same for the same bits only."""
    if sparse.issparse(value):
        value = value.tocsr()
        return digest([value.shape, value.data, value.indices, value.indptr])
    if isinstance(value, pd.DataFrame):
        return digest([list(map(str, value.columns)), [value[c].to_numpy() for c in value]])
    if isinstance(value, dict):
        return digest([[str(key), digest(value[key])] for key in sorted(value)])
    if isinstance(value, list | tuple):
        return hashlib.sha1("|".join(map(digest, value)).encode()).hexdigest()
    if isinstance(value, np.ndarray) and value.dtype != object:
        text = f"{value.dtype} {value.shape} ".encode() + np.ascontiguousarray(value).tobytes()
        return hashlib.sha1(text).hexdigest()
    if isinstance(value, np.ndarray):
        return digest([str(entry) for entry in value.ravel()])
    if isinstance(value, float):
        return digest(np.array(value))
    return hashlib.sha1(repr(value).encode()).hexdigest()


def of_fit(model: Any) -> Found:
    found = {name: digest(getattr(model, name)) for name in _FITTED}
    found["chain_"] = digest(model.chain_.get_params())
    if model.posterior_ is not None:
        draws = model.posterior_
        for name in ("components", "activations", "parameters", "smoothing", "log_posterior"):
            found[f"posterior_.{name}"] = digest(getattr(draws, name))
    return found


def of_forecast(forecast: Any, name: str) -> Found:
    found = {f"{name}.activations": digest(forecast.activations)}
    found[f"{name}.values"] = digest(forecast.values)
    if forecast.futures is None:
        return found
    for of in ("features", "components", "totals"):
        found[f"{name}.quantiles of {of}"] = digest(forecast.quantile([0.05, 0.5, 0.95], of))
        found[f"{name}.frame of {of}"] = digest(forecast.to_frame(of))
    return found


def of_file(path: Path) -> Found:
    """The arrays of a saved model; the header is not compared."""
    with np.load(path) as file:
        return {f"file.{name}": digest(file[name]) for name in file if "header" not in name}


def of_data(model: Any, X: Any, mask: Any, exposure: Any) -> Found:
    given = {"mask": mask, "exposure": exposure}
    found = {
        "transform": digest(model.transform(X, **given)),
        "transform on": digest(model.transform(X, **given, continue_chain=True)),
        "impute": digest(model.impute(X, **given)),
        "score": digest(model.score(X, **given)),
    }
    return found | of_forecast(model.smooth(X, **given, n_samples=50), "smooth new")


def everything(model: Any, X: Any, mask: Any, exposure: Any, folder: Path) -> Found:
    """What a fitted model of data in memory can do."""
    found = of_fit(model)
    found |= of_forecast(model.forecast(3, n_samples=60), "forecast")
    found |= of_forecast(model.smooth(n_samples=50), "smooth")
    found |= of_data(model, X, mask, exposure)
    path = model.save(folder / "model.npz", overwrite=True)
    found |= of_file(path)
    return found | of_forecast(temporalnmf.load(path).forecast(2, n_samples=60), "after load")


class Recorder:
    """Runs parts and writes their lines."""

    def __init__(self, out: Path, only: str) -> None:
        self.out, self.only = out.open("w"), only

    def __call__(self, case: str, found: Callable[[], Found]) -> None:
        if self.only not in case:
            return
        try:
            digests = found()
        except ValueError as error:  # the library refuses; anything else is a fault
            digests = {"refused": type(error).__name__}
        self.out.write(json.dumps({"case": case, "found": digests}) + "\n")
        self.out.flush()


def fits(record: Recorder, folder: Path) -> None:
    """Every registry case × mask × storage, by both solvers, in memory."""
    for case in all_cases():
        for solver in registry.SOLVERS:
            record(f"memory/{solver}/{case}", partial(_in_memory, case, solver, folder))


def _in_memory(case: Case, solver: str, folder: Path) -> Found:
    X, mask, exposure = data_of(case)
    model = _model(case, solver).fit(X, mask=mask, exposure=exposure)
    return everything(model, X, mask, exposure, folder)


def _model(case: Case, solver: str) -> TemporalNMF:
    return TemporalNMF(
        chain=case.chain_object(),
        likelihood=case.likelihood,
        map_scale=case.scale,
        solver=solver,
        **_OPTIONS,
    )


def elsewhere(record: Recorder, folder: Path) -> None:
    """The same cases with data in shards, in Dask arrays, and on the workers of a cluster."""
    for place in PLACES[1:]:
        with local(2) if place == "workers" else nullcontext():
            for i, case in enumerate(all_cases()):
                solver = list(registry.SOLVERS)[i % len(registry.SOLVERS)]
                record(f"{place}/{solver}/{case}", partial(_placed, case, solver, place, folder))


def _placed(case: Case, solver: str, place: str, folder: Path) -> Found:
    with placed(place, *data_of(case), folder) as (data, rest):
        model = _model(case, solver).fit(data, **rest)
        found = of_fit(model) | {"transform": digest(model.transform(data, **rest))}
    return found | of_forecast(model.forecast(3, n_samples=60), "forecast")


def placed(place: str, X: Any, mask: Any, exposure: Any, folder: Path) -> Any:
    """Data in a place, and what else `fit` is given."""
    if place == "dask array":
        import dask.array as da

        if sparse.issparse(X):
            X = X.toarray()
        if sparse.issparse(mask):
            mask = mask.toarray()
        rest = {"mask": mask, "exposure": exposure}
        return nullcontext((da.from_array(X, chunks=(-1, 4)), rest))
    names, timeline = [f"x{f}" for f in range(X.shape[1])], timeline_of(np.arange(X.shape[0]))
    observed = mask.toarray() if sparse.issparse(mask) else mask  # shards have no weights
    shards = write_shards(
        folder / "shards", X, names=names, timeline=timeline, exposure=exposure,
        observed=None if observed is None else observed > 0, n_shards=4, overwrite=True,
    )  # fmt: skip
    return nullcontext((shards, {}))


def draws(record: Recorder, folder: Path) -> None:
    """Draws of every chain, with hyper-parameters given and learned, in all places."""
    for place in PLACES:
        with local(2) if place == "workers" else nullcontext():
            for case in all_cases():
                if case.likelihood != "poisson" or case.scale != "log" or case.setting:
                    continue
                for kind in ("given", "learned"):
                    chain = (
                        case.chain_object() if kind == "given" else learned_chains().get(case.chain)
                    )
                    if chain is not None:
                        name = f"draws/{place}/{kind}/{case}"
                        record(name, partial(_drawn, case, place, chain, folder))


def _drawn(case: Case, place: str, chain: Any, folder: Path) -> Found:
    X, mask, exposure = data_of(case)
    smoothing = "learn" if case.storage == "csr" else 0.2
    few = {"n_draws": 4, "n_tune": 4} if place == "workers" else {}  # questions take milliseconds
    model = TemporalNMF(chain=chain, smoothing=smoothing, **(_DRAWS | few))
    if place == "memory":
        model.fit(X, mask=mask, exposure=exposure)
        return everything(model, X, mask, exposure, folder)
    with placed(place, X, mask, exposure, folder) as (data, rest):
        model.fit(data, **rest)
    return of_fit(model) | of_forecast(model.forecast(3, n_samples=60), "forecast")


def options(record: Recorder, folder: Path) -> None:
    """Parameters and methods beside the product, by chain."""
    for name in registry.CHAINS:
        for kind, run in _OTHERS.items():
            record(f"options/{kind}/{name}", partial(run, name, folder))


def _sotu(name: str, **options: Any) -> Any:
    X = load_sotu().data[100:160, :25]  # a year is missing
    return TemporalNMF(**({"n_components": 3, "random_state": 1, "max_iter": 60} | options),
                       chain=name), X  # fmt: skip


def _plain(**options: Any) -> Callable[[str, Path], Found]:
    def run(name: str, folder: Path) -> Found:
        model, X = _sotu(name, **options)
        model.fit(X)
        return of_fit(model) | of_forecast(model.forecast(4, n_samples=60), "forecast")

    return run


def _appended(update: bool, **options: Any) -> Callable[[str, Path], Found]:
    def run(name: str, folder: Path) -> Found:
        model, X = _sotu(name, **options)
        model.fit(X[:50]).append(X[50:], update_components=update)
        return of_fit(model) | of_forecast(model.forecast(4, n_samples=60), "forecast")

    return run


def _calibrated(name: str, folder: Path) -> Found:
    model, X = _sotu(name)
    model.fit(X).calibrate(6, steps=2)
    forecast = model.forecast(4, n_samples=100)
    found = of_forecast(forecast, "forecast") | of_forecast(forecast.sum("steps"), "sum")
    return found | of_file(model.save(folder / "calibrated.npz", overwrite=True))


def _selected(name: str, folder: Path) -> Found:
    _, X = _sotu(name)
    found = select(X, chains=name, n_components=[1, 2], max_iter=40, random_state=0)
    errors = {str(candidate): np.asarray(candidate.errors) for candidate in found.candidates}
    return {"errors": digest(errors), "best": digest(str(found.best))} | of_fit(found.model)


def _warm(name: str, folder: Path) -> Found:
    model, X = _sotu(name, warm_start=True, max_iter=5)
    return of_fit(model.fit(X).fit(X))


def _framed(name: str, folder: Path) -> Found:
    """Months out of order, one absent, single cells missing."""
    model, X = _sotu(name)
    frame = pd.DataFrame(X[:40], index=pd.date_range("2001-01-01", periods=40, freq="MS"))
    frame = frame.drop(frame.index[7]).iloc[::-1]
    frame.iloc[3, 2] = np.nan
    model.fit(frame)
    found = of_fit(model) | of_forecast(model.forecast(4, n_samples=60), "forecast")
    return found | {"impute": digest(model.impute(frame))}


_OTHERS: dict[str, Callable[[str, Path], Found]] = {
    "defaults": _plain(),
    "two threads": _plain(n_jobs=2),
    "nndsvda": _plain(init="nndsvda"),
    "mode": _plain(point="mode"),
    "no smoothing": _plain(smoothing=0.0),
    "wide": _plain(n_components=10),
    "linear mm": _plain(map_scale="linear", solver="mm", smoothing=0.0, point="mode"),
    "append": _appended(False),
    "append and update": _appended(True),
    "append draws": _appended(False, solver="gibbs", n_draws=20, n_tune=20, n_chains=2),
    "calibrate": _calibrated,
    "select": _selected,
    "warm start": _warm,
    "frame": _framed,
}


def commands(record: Recorder, folder: Path) -> None:
    """The command line: files that it writes, keys and numbers of its JSON."""
    with chdir(folder):
        for words in _COMMANDS:
            record("command/" + words, partial(_command, words.split(), folder))


_COMMANDS = (
    "fit sotu --out m.npz --components 3 --starts 2 --jobs 1 --json",
    "fit sotu --out g.npz --components 2 --chain shape --solver gibbs --draws 30 --tune 30 --json",
    "info m.npz --json",
    "forecast m.npz --steps 4 --out f.csv --json",
    "forecast g.npz --steps 4 --of components --out c.csv --json",
    "forecast m.npz --steps 4 --of totals --sum steps --out t.csv --json",
    "impute m.npz --out i.csv --json",
    "compare sotu --out compare --components 2 --splits 2 --inits 1 --origins 3 --chains rate,gap",
    "select-rank sotu --out rank --largest 2 --splits 2",
    "simulate rate --n-steps 20 --csv s.csv",
)


def _command(words: list[str], folder: Path) -> Found:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    force = ["--force"] if words[0] in ("fit", "forecast", "impute") else []
    command = [sys.executable, "-m", "temporalnmf", *words, *force]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {"exit code": str(ended.returncode)}
    if "--json" in words:
        found |= _of_json("json", json.loads(ended.stdout))
    for path in sorted(folder.rglob("*")):
        if path.is_file() and before.get(path) != path.stat().st_mtime_ns:
            name = str(path.relative_to(folder))
            if path.suffix == ".npz":
                found |= {f"{name}.{key}": value for key, value in of_file(path).items()}
            elif path.suffix == ".csv":
                found[name] = _of_table(path)
            else:
                found[name] = "written"
    return found


def _of_table(path: Path) -> str:
    """Columns and cells, but not times that were measured."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    measured = [name for name in table if "seconds" in str(name)]
    return digest([list(table), table.drop(columns=measured).to_numpy()])


def _of_json(place: str, value: Any) -> Found:
    """Keys and numbers; texts may change."""
    if isinstance(value, dict):
        found: Found = {}
        for key, entry in value.items():
            if key == "bytes":  # of a file, whose header may change
                continue
            found |= _of_json(f"{place}.{key}", entry)
        return found
    if isinstance(value, list):
        return {
            k: v
            for i, entry in enumerate(value)
            for k, v in _of_json(f"{place}.{i}", entry).items()
        }
    return {place: "text" if isinstance(value, str) else digest(value)}


def names(record: Recorder, wanted: list[str]) -> None:
    """Public names: where they are imported from, and what they take."""
    for name in wanted:
        record(f"name/{name}", partial(_of_name, name))


def _of_name(name: str) -> Found:
    module, _, attribute = name.rpartition(".")
    found = getattr(import_module(module), attribute)
    parameters = (
        dict.fromkeys(inspect.signature(found).parameters, "taken") if callable(found) else {}
    )
    return {"there": "yes"} | parameters


PARTS = (options, commands, fits, draws, elsewhere)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--names", nargs="*", default=[])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    record = Recorder(given.out, given.only)
    names(record, given.names)
    for part in PARTS:
        with tempfile.TemporaryDirectory(prefix="side-") as folder:
            part(record, Path(folder))


if __name__ == "__main__":
    main()
