"""Point errors behind the defaults of `TemporalNMF`, on seven sets of counts.

    python benchmarks/default_choice.py --out docs/default_choice.csv --page docs/defaults.md

For each of five starts: a fifth of the inner steps is hidden and filled, and from every fifth of
12 origins in the second half six steps are forecast. Errors are Kullback–Leibler errors, as ratios
to those of the defaults of the version before ("before"), whose settings are pinned here. The
choice is made anew with each data set left out. Needs TEMPORALNMF_DATA, except with --read.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from default_intervals import COMPONENTS, STEPS, data_of, origins_of, write_table
from joblib import Parallel, delayed

from temporalnmf import TemporalNMF
from temporalnmf.chains import GaP, Rate, Shape
from temporalnmf.metrics import kl_error

STARTS, N_ORIGINS, SHARE = 5, 12, 0.2
RANKS = {**{name: (K,) for name, K in COMPONENTS.items()}, "nips.npy": (3, 6, 10)}
BEFORE = {"chain": Rate(300.0), "likelihood": "poisson", "gaps": "mode", "tol": 1e-5}
POISSON = {"likelihood": "poisson"}
# Names of settings, and what differs from the defaults.
SETTINGS: dict[str, dict[str, Any]] = {
    "before": BEFORE,
    "before, interpolating": {**BEFORE, "gaps": "interpolate"},
    "poisson": POISSON,
    "default": {},
    "tol 1e-7": {"tol": 1e-7},
    "rate 100": {"chain": Rate(100.0)},
    "rate 200": {"chain": Rate(200.0)},
    "rate 300": {"chain": Rate(300.0)},
    "rate 1000": {"chain": Rate(1000.0)},
    "rate, learned": {"chain": Rate("learn")},
    "shape, learned": {"chain": Shape("learn")},
    "gap": {"chain": GaP()},
}
ERRORS = {"inside": "hidden steps", "next": "next step", "ahead": f"next {STEPS} steps"}


def error(x: np.ndarray, mean: np.ndarray) -> float:
    return kl_error(x, np.maximum(mean, 0.01))


def look(name: str, K: int, setting: str, start: int) -> dict[str, object]:
    """Sums of errors of one start."""
    warnings.simplefilter("ignore")
    X = data_of(name)
    observed = np.flatnonzero(~np.isnan(X[:, 0]))
    inner = observed[(observed > 0) & (observed < len(X) - 1)]
    rng = np.random.default_rng(start)
    hidden = rng.choice(inner, max(int(SHARE * len(inner)), 1), replace=False)
    train = X.copy()
    train[hidden] = np.nan
    began = time.process_time()

    def fit(data: np.ndarray) -> TemporalNMF:
        options = {"intervals": "model", "random_state": start, **SETTINGS[setting]}
        return TemporalNMF(K, **options).fit(data)

    model = fit(train)
    found = {"inside": error(X[hidden], model.inverse_transform(model.activations_)[hidden]),
             "next": 0.0, "ahead": 0.0}  # fmt: skip
    for origin in origins_of(len(X), N_ORIGINS)[start::STARTS]:
        values = fit(X[:origin]).forecast(STEPS).values
        truth = X[origin : origin + STEPS]
        seen = ~np.isnan(truth[:, 0])
        found["ahead"] += error(truth[seen], values[seen])
        found["next"] += error(truth[:1], values[:1]) if seen[0] else 0.0
    return {"data": name.split(".")[0], "K": K, "setting": setting, "start": start,
            **found, "seconds": time.process_time() - began}  # fmt: skip


def run(names: list[str], settings: list[str], jobs: int) -> pd.DataFrame:
    tasks = [
        delayed(look)(name, K, setting, start)
        for name in names for K in RANKS[name] for setting in settings for start in range(STARTS)
    ]  # fmt: skip
    return pd.DataFrame(Parallel(jobs)(tasks))


def ratios(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean errors over starts, relative to "before", by data set and setting."""
    means = frame.groupby(["data", "K", "setting"], sort=False)[list(ERRORS)].mean()
    return means / means.xs("before", level="setting")


def chosen_without(frame: pd.DataFrame) -> dict[str, str]:
    """The setting with the lowest mean log ratio on all other data sets, by data set."""
    logs = np.log(ratios(frame)).mean(axis=1).groupby(["data", "setting"], sort=False).mean()
    table = logs.unstack("setting")
    return {str(name): str(table.drop(name).mean().idxmin()) for name in table.index}


def write_page(page: Path, frame: pd.DataFrame) -> None:
    found = ratios(frame)
    settings = list(dict.fromkeys(frame["setting"]))
    for column, title in ERRORS.items():
        table = found[column].unstack("setting")[settings]
        lines = [[f"{name}, K = {K}", *(f"{v:.2f}" for v in row)]
                 for (name, K), row in zip(table.index, table.to_numpy(), strict=True)]  # fmt: skip
        mean = np.exp(np.log(table.groupby("data").mean()).mean())
        lines.append(["geometric mean of sets", *(f"{v:.3f}" for v in mean)])
        write_table(page, column, [title, *settings], lines)
    lines = [[name, setting] for name, setting in chosen_without(frame).items()]
    write_table(page, "chosen", ["left out", "chosen by the others"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/default_choice.csv"))
    parser.add_argument("--data", nargs="*", default=list(RANKS))
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--read", type=Path, nargs="*", help="results of earlier runs, not a run")
    parser.add_argument("--page", type=Path, default=None, help="page to write the tables to")
    given = parser.parse_args()
    if given.read:
        frame = pd.concat([pd.read_csv(path) for path in given.read])
    else:
        frame = run(given.data, given.settings, given.jobs)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(given.out, index=False, float_format="%.6g")
    print(ratios(frame).unstack("setting").round(3).to_string())
    print(frame.groupby("setting", sort=False)["seconds"].sum().round(1).to_string())
    print(chosen_without(frame))
    if given.page is not None:
        write_page(given.page, frame)


if __name__ == "__main__":
    main()
