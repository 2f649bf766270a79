"""Coverage and sharpness of 90 % intervals, by rolling origins.

    python benchmarks/default_intervals.py --out results/intervals.csv
    python benchmarks/default_intervals.py --calibrate none fixed refit

Without calibration, after `calibrate(20, steps=6, refit=False)` and after the same with refits.

At each of 12 origins a model is fitted to the steps before it and forecasts up to six steps.
Totals, entries with an expectation above 1 and the other entries are compared with their
intervals. Counts tie with the ends of intervals, so a value counts in part: the share of the
probability of its count that lies between the 5 % and the 95 % quantile, which is 90 % on average
if the model is correct. Needs TEMPORALNMF_DATA.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import sparse

from temporalnmf import TemporalNMF
from temporalnmf.metrics import kl_error

COVERAGE, STEPS, SAMPLES = 0.9, 6, 400
FEWEST = 13  # observed steps that calibration needs
# Numbers of components by data set: those of the paper, or the ones that were used before.
COMPONENTS = {
    "sotu_words_by_year.npz": 6,
    "nips.npy": 3,
    "lastfm.npy": 5,
    "icews_2001_2003_pairs_3day.npz": 5,
    "flights2001_origin_day.npz": 8,
    "unemployment_industry_month.npz": 4,
    "birdstrikes_species_month.npz": 4,
}


def data_of(name: str) -> np.ndarray:
    """Counts (N, F); steps without any count are missing."""
    path = Path(os.environ["TEMPORALNMF_DATA"]) / name
    X = np.load(path) if path.suffix == ".npy" else sparse.load_npz(path).toarray()
    X = X.T.astype(float)
    X[X.sum(axis=1) == 0.0] = np.nan
    return X


def origins_of(n_steps: int, n_origins: int) -> np.ndarray:
    """Evenly spread over the second half, with as many steps after each as are forecast."""
    last = n_steps - STEPS
    return np.unique(np.linspace(min(n_steps // 2, last - n_origins), last, n_origins).astype(int))


def share_inside(samples: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The part (n,) of each value that lies in the central interval of samples (S, n)."""
    below, upto = (samples < x).mean(axis=0), (samples <= x).mean(axis=0)
    low, high = 0.5 - COVERAGE / 2.0, 0.5 + COVERAGE / 2.0
    part = np.clip(upto, low, high) - np.clip(below, low, high)
    between = (below > low) & (below < high)  # no sample has this value
    return np.where(upto > below, part / np.maximum(upto - below, 1e-12), between)


def interval_scores(samples: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Winkler's interval score (n,)."""
    tail = 0.5 - COVERAGE / 2.0
    low, high = np.quantile(samples, [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    return high - low + (np.maximum(low - x, 0.0) + np.maximum(x - high, 0.0)) / tail


def look(
    name: str, likelihood: str, calibrate: str, X: np.ndarray, origin: int
) -> list[dict[str, object]]:
    """One row per step after the origin."""
    warnings.simplefilter("ignore")
    model = TemporalNMF(COMPONENTS[name], likelihood=likelihood, random_state=0).fit(X[:origin])
    start = time.perf_counter()
    if calibrate != "none":
        if np.count_nonzero(~np.isnan(X[:origin, 0])) < FEWEST:
            return []
        model.calibrate(20, steps=STEPS, refit=calibrate == "refit")
    seconds = time.perf_counter() - start
    forecast, rows = model.forecast(STEPS, n_samples=SAMPLES, random_state=0), []
    for t in range(STEPS):
        x = X[origin + t]
        if np.isnan(x).any():
            continue
        one = forecast.at([t])
        row = {"data": name, "likelihood": likelihood, "calibrate": calibrate,
               "origin": origin, "ahead": t + 1, "seconds": seconds,
               "kl": kl_error(x, np.maximum(one.values[0], 0.01)),
               "dispersion": getattr(model.likelihood_, "dispersion", 0.0)}  # fmt: skip
        entries, mean = one.samples()[:, 0], one.values[0]
        totals = one.samples("totals")
        parts = {"totals": (totals, np.array([x.sum()])),
                 "above 1": (entries[:, mean > 1.0], x[mean > 1.0]),
                 "below 1": (entries[:, mean <= 1.0], x[mean <= 1.0])}  # fmt: skip
        for part, (samples, values) in parts.items():
            if len(values):
                row[f"{part}: inside"] = share_inside(samples, values).mean()
                row[f"{part}: score"] = interval_scores(samples, values).mean()
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/intervals.csv"))
    parser.add_argument("--data", nargs="*", default=list(COMPONENTS))
    parser.add_argument("--likelihoods", nargs="*", default=["poisson", "negative_binomial"])
    ways = ["none", "fixed", "refit"]
    parser.add_argument("--calibrate", nargs="*", default=["none"], choices=ways)
    parser.add_argument("--origins", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--page", type=Path, default=None, help="page to write the table to")
    given = parser.parse_args()
    tasks = []
    for name in given.data:
        X = data_of(name)
        for origin in origins_of(len(X), given.origins):
            tasks += [
                delayed(look)(name, law, calibrate, X, int(origin))
                for law in given.likelihoods
                for calibrate in given.calibrate
            ]
    rows = [row for found in Parallel(given.jobs)(tasks) for row in found]
    frame = pd.DataFrame(rows)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(given.out, index=False)
    order = [name for name in COMPONENTS if name in given.data]
    keys = ["data", "likelihood", "calibrate"]
    means = frame.drop(columns=["origin", "ahead"]).groupby(keys).mean()
    print(means.loc[order].round(3).to_string())
    if given.page is not None:
        write_table(given.page, frame, order)


def write_table(page: Path, frame: pd.DataFrame, order: list[str]) -> None:
    """Put a table of means into a page, between its marks."""
    lines = [
        "| data | likelihood | calibrated | origins | totals | entries, mean > 1 "
        "| entries, mean ≤ 1 | score of totals | score of entries, mean > 1 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    names = {"none": "no", "fixed": "at fixed components", "refit": "with refits"}
    for data in order:
        of_data = frame[frame["data"] == data]
        groups = sorted(
            of_data.groupby(["likelihood", "calibrate"]),
            key=lambda group: (group[0][0] != "poisson", list(names).index(group[0][1])),
        )
        # Origins that all of them have, so that scores can be compared.
        shared = set.intersection(*(set(part["origin"]) for _, part in groups))
        for (law, calibrate), part in groups:
            mean = part[part["origin"].isin(shared)].mean(numeric_only=True)
            inside = [mean.get(f"{of}: inside") for of in ("totals", "above 1", "below 1")]
            scores = [mean.get(f"{of}: score") for of in ("totals", "above 1")]
            cells = [data.split(".")[0], law, names[calibrate], len(shared)]
            cells += ["–" if np.isnan(value) else f"{value:.2f}" for value in inside]
            cells += [f"{value:,.4g}" for value in scores]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    text = page.read_text()
    start, end = "<!-- intervals -->\n", "<!-- end of intervals -->"
    head, rest = text.split(start)
    page.write_text(f"{head}{start}{chr(10).join(lines)}\n{end}{rest.split(end)[1]}")


if __name__ == "__main__":
    main()
