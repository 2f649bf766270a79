"""Forecast errors of models with seasons by rolling origins, beside naive forecasts and AutoETS.

    TEMPORALNMF_ETS_PYTHON=/tmp/ets/bin/python \
        python benchmarks/seasons.py --out docs/seasons/forecasts.csv --page docs/seasons.md

At each of 20 origins (NIPS: from step 12 on) every method sees the steps before it alone. Errors
are those of single steps ahead, averaged over origins: the Kullback–Leibler error (KLE) and the
mean absolute error (MAE) of entries, and both of totals. Naive forecasts get 0.05 in the KLE of
entries, and forecasts are at least 0.01. AutoETS forecasts each series by itself, at most the 300
largest features, and all methods are scored on these as well. Its interpreter is
TEMPORALNMF_ETS_PYTHON; without it AutoETS is left out. Runs can be split by data set and by method
(`--settings` alone: naive forecasts and AutoETS) and put together by --read. Needs
TEMPORALNMF_DATA, except with --read.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from default_intervals import COMPONENTS, data_of, write_table

from temporalnmf import TemporalNMF
from temporalnmf.metrics import kl_error
from temporalnmf.registry import CHAINS

N_ORIGINS, MOST = 20, 300


class Case(NamedTuple):
    """A data set: steps to forecast, steps per cycle of naive forecasts, steps on the page."""

    file: str
    steps: int
    cycle: int
    shown: tuple[int, ...]
    first: str = ""  # date of the first step, if no file has the dates
    freq: str = ""
    cut: int = 0  # last steps that are left out


MONTHS, FEW = (1, 3, 6, 12, 24), (1, 3, 6)
CASES = {
    "flights2001": Case("flights2001_origin_day.npz", 14, 7, (1, 2, 3, 7, 14)),
    "unemployment": Case("unemployment_industry_month.npz", 24, 12, MONTHS),
    "bird strikes": Case("birdstrikes_species_month.npz", 24, 12, MONTHS),
    "State of the Union": Case("sotu_words_by_year.npz", 6, 1, FEW),
    "NIPS": Case("nips.npy", 6, 1, FEW, "1987", "YS"),
    # The last two months of last.fm are cut short at the source.
    "last.fm": Case("lastfm.npy", 6, 12, FEW, "2005-02", "MS", 2),
    # A year has 122 bins, which AutoETS cannot have as a season; the history has one to three.
    "ICEWS 2001–2003": Case("icews_2001_2003_pairs_3day.npz", 6, 1, FEW),
}
# Settings of our models, and what differs from the defaults.
SETTINGS: dict[str, dict[str, Any]] = {
    "rate": {"chain": "rate"},
    "rate, no season": {"chain": "rate", "season": None},
    "arg": {"chain": "arg"},
    "arg, no season": {"chain": "arg", "season": None},
    "bgar": {"chain": "bgar"},
    "bgar, no season": {"chain": "bgar", "season": None},
    # Whether seasons and levels have come apart when a fit of the default tolerance stops.
    "rate, tol 1e-8": {"chain": "rate", "tol": 1e-8, "max_iter": 2000},
    "bgar, tol 1e-8": {"chain": "bgar", "tol": 1e-8, "max_iter": 2000},
}
NAIVE = ("last value", "seasonal naive")
MEASURES = ("kle", "mae", "total_kle", "total_mae")


def known_settings() -> list[str]:
    """The settings whose chain is registered, of the default tolerance."""
    return [n for n, options in SETTINGS.items() if options["chain"] in CHAINS and "tol" not in n]


def frame_of(name: str) -> pd.DataFrame:
    """Counts with their dates; steps without any count are missing."""
    case = CASES[name]
    X = data_of(case.file)
    X = X[: len(X) - case.cut]
    if case.first:
        return pd.DataFrame(X, index=pd.date_range(case.first, periods=len(X), freq=case.freq))
    path = Path(os.environ["TEMPORALNMF_DATA"]) / case.file
    times = path.with_name(f"{path.stem}_times.txt").read_text(encoding="utf-8").split()
    return pd.DataFrame(X, index=pd.to_datetime(times))


def origins_of(name: str, n_steps: int) -> np.ndarray:
    """Evenly spread over the second half; on NIPS all from step 12, with fewer steps at the end."""
    if name == "NIPS":
        return np.arange(12, n_steps)
    last = n_steps - CASES[name].steps
    return np.unique(np.linspace(min(n_steps // 2, last - N_ORIGINS), last, N_ORIGINS).astype(int))


def naive(X: np.ndarray, origin: int, steps: int, cycle: int) -> np.ndarray:
    """The last observed values of the same phase."""
    past = pd.DataFrame(X[:origin]).ffill().to_numpy()
    return np.array([past[origin - cycle + t % cycle] for t in range(steps)])


def ours(frame: pd.DataFrame, origin: int, steps: int, options: dict[str, Any], K: int) -> tuple:
    """The forecast of a model of the steps before the origin, and what the model is."""
    start = time.perf_counter()
    model = TemporalNMF(K, intervals="model", random_state=0, **options).fit(frame.iloc[:origin])
    values = model.forecast(steps).values
    seasons = " and ".join(model.season_) or "none"
    return values, {
        "seasons": seasons,
        "likelihood": type(model.likelihood_).__name__,
        "seconds": time.perf_counter() - start,
    }


def by_ets(X: np.ndarray, case: Case, origins: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Forecasts (origins, steps, F) by AutoETS and their seconds; None without an interpreter."""
    python = os.environ.get("TEMPORALNMF_ETS_PYTHON")
    if not python:
        return None
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, X=X, origins=origins, steps=case.steps, season=case.cycle)
        script = Path(__file__).with_name("auto_ets.py")
        subprocess.run([python, str(script), str(given), str(found)], check=True)
        answer = np.load(found)
        return answer["forecasts"], float(answer["seconds"])


def errors(x: np.ndarray, mean: np.ndarray, added: float) -> dict[str, float]:
    """Of the entries and the total of a step."""
    floored = np.maximum(mean, 0.01)
    return {
        "kle": kl_error(x, np.maximum(mean + added, 0.01)),
        "mae": float(np.abs(x - floored).mean()),
        "total_kle": kl_error(x.sum(), floored.sum()),
        "total_mae": float(abs(x.sum() - floored.sum())),
    }


def judged(
    X: np.ndarray, origin: int, values: np.ndarray, top: np.ndarray, row: dict[str, Any]
) -> list[dict[str, Any]]:
    """Rows per step ahead, of all features and of the largest if these are fewer."""
    found = []
    added = 0.05 if row["method"] in NAIVE else 0.0
    for ahead, x in enumerate(X[origin : origin + len(values)], start=1):
        if np.isnan(x).any():
            continue
        mean, here = values[ahead - 1], row | {"ahead": ahead}
        if len(mean) == len(x):
            found.append(here | {"features": "all"} | errors(x, mean, added))
            mean = mean[top]
        if len(top) < len(x):
            found.append(here | {"features": "largest"} | errors(x[top], mean, added))
    return found


def look(name: str, settings: list[str]) -> list[dict[str, Any]]:
    """Errors of all methods at all origins of a data set."""
    frame, case = frame_of(name), CASES[name]
    X = frame.to_numpy()
    origins = origins_of(name, len(X))
    # The largest features before the first origin.
    top = np.sort(np.argsort(-np.nansum(X[: origins[0]], axis=0), kind="stable")[:MOST])
    rows: list[dict[str, Any]] = []
    for origin in map(int, origins):
        common = {"data": name, "origin": origin}
        for method, cycle in zip(NAIVE, (1, case.cycle), strict=True):
            if method == "last value" or case.cycle > 1:
                values = naive(X, origin, case.steps, cycle)
                rows += judged(X, origin, values, top, common | {"method": method})
        for setting in settings:
            K = COMPONENTS[case.file]
            values, about = ours(frame, origin, case.steps, SETTINGS[setting], K)
            rows += judged(X, origin, values, top, common | {"method": setting} | about)
    if (found := by_ets(X[:, top], case, origins)) is not None:
        forecasts, seconds = found
        for origin, values in zip(map(int, origins), forecasts, strict=True):
            row = {"data": name, "origin": origin, "method": "AutoETS"}
            row["seconds"] = seconds / len(origins)
            rows += judged(X, origin, values, top, row)
    return rows


def averages(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over origins."""
    keys = ["data", "features", "method", "ahead"]
    groups = frame.groupby(keys, sort=False)
    found = groups[list(MEASURES)].mean()
    found.insert(0, "origins", groups["origin"].nunique())
    return found.reset_index()


def table(means: pd.DataFrame, name: str, features: str, measure: str) -> list[list[object]]:
    """Lines of the page: errors at some steps ahead and their mean over all; the best are bold."""
    here = means[(means["data"] == name) & (means["features"] == features)]
    wide = here.pivot_table(index="method", columns="ahead", values=measure, sort=False)
    shown = wide[list(CASES[name].shown)].assign(mean=wide.mean(axis=1))
    best = shown.min()
    return [
        [name, method, *(f"**{short(v)}**" if v <= best[c] else short(v) for c, v in row.items())]
        for method, row in shown.iterrows()
    ]


def short(value: float) -> str:
    """A number with four digits, or all those before the point."""
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.4g}"


GROUPS = {
    "seasonal_days": ("flights2001",),
    "seasonal_months": ("unemployment", "bird strikes"),
    "others": ("State of the Union", "NIPS", "last.fm", "ICEWS 2001–2003"),
}
MARKS = {"kle": "KLE of entries", "total_mae": "MAE of totals", "mae": "MAE of entries",
         "total_kle": "KLE of totals"}  # fmt: skip


def write_page(page: Path, means: pd.DataFrame, about: pd.DataFrame) -> None:
    for group, names in GROUPS.items():
        steps = [f"step {s}" for s in CASES[names[0]].shown]
        for measure, title in MARKS.items():
            lines = [
                line for name in names for line in table(means, name, features_of(name), measure)
            ]
            head = ["data", title, *steps, "mean"]
            write_table(page, f"{group}: {measure}", head, lines)
    lines = [line for name in GROUPS["others"] for line in table(means, name, "all", "kle")]
    steps = [f"step {s}" for s in FEW]
    write_table(page, "all features: kle", ["data", "KLE of entries", *steps, "mean"], lines)
    write_table(page, "chosen", list(about.columns), about.to_numpy().tolist())


def features_of(name: str) -> str:
    """Which features all methods have in common."""
    return "largest" if name in GROUPS["others"] else "all"


def models(frame: pd.DataFrame) -> pd.DataFrame:
    """How often each season was chosen, the likelihoods, and seconds of a fit and forecast."""
    lines = []
    once = frame.drop_duplicates(["data", "method", "origin"])
    # Naive forecasts and AutoETS have neither.
    once = once.reindex(columns=list(dict.fromkeys([*once, "seasons", "likelihood", "seconds"])))
    once = once.sort_values("data", key=lambda names: names.map(list(CASES).index), kind="stable")
    for (name, method), part in once.groupby(["data", "method"], sort=False):
        if part["seconds"].isna().all():
            continue
        counts = [
            ", ".join(f"{k}: {n}" for k, n in part[c].value_counts().items()) or "–"
            for c in ("seasons", "likelihood")
        ]
        seconds = f"{part['seconds'].mean():.2f}"
        lines.append([name, method, len(part), *counts, seconds])
    heads = ["data", "method", "origins", "seasons", "likelihood", "seconds per origin"]
    return pd.DataFrame(lines, columns=heads)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/seasons.csv"))
    parser.add_argument("--data", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--settings", nargs="*", default=known_settings(), choices=list(SETTINGS))
    parser.add_argument("--read", type=Path, nargs="*", help="rows of runs, not a run")
    parser.add_argument("--raw", type=Path, default=Path("results/seasons_raw.csv"))
    parser.add_argument("--page", type=Path, default=None, help="page to write the tables to")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.read:
        frame = pd.concat([pd.read_csv(path) for path in given.read])
        frame = frame.drop_duplicates(["data", "method", "origin", "ahead", "features"])
    else:
        given.raw.parent.mkdir(parents=True, exist_ok=True)
        rows: list[dict[str, Any]] = []
        for name in given.data:
            rows += look(name, given.settings)
            frame = pd.DataFrame(rows)
            frame.to_csv(given.raw, index=False, float_format="%.6g")
            print(name, "done", flush=True)
    means, about = averages(frame), models(frame)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    means.to_csv(given.out, index=False, float_format="%.5g")
    for measure in MEASURES:
        keys = ["data", "features", "method"]
        print(measure, means.groupby(keys, sort=False)[measure].mean().round(3).to_string())
    print(about.to_string(index=False))
    if given.page is not None:
        write_page(given.page, means, about)


if __name__ == "__main__":
    main()
