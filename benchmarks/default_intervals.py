"""Coverage and sharpness of intervals, by rolling origins.

    python benchmarks/default_intervals.py --out results/intervals.csv
    python benchmarks/default_intervals.py --settings model checked refit --data nips.npy
    python benchmarks/default_intervals.py --read results/*.csv --page docs/calibration.md

Three settings: "model" has intervals that assume the model is correct (`intervals="model"`),
"checked" those of the default check at fixed components, "refit" those after
`calibrate(20, steps=6)`.

At each of 12 origins a model is fitted to the steps before it and forecasts up to six steps.
Totals, entries with an expectation above 1 and the other entries are compared with their
distribution. Counts tie with samples, so the probability integral transform (PIT) of a value is
uniform between the ranks it could have among them; the part of it between 5 % and 95 %, which is
90 % on average if the model is correct, is the share of the value inside its 90 % interval. Needs
TEMPORALNMF_DATA, except with --read.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import sparse, stats

from temporalnmf import TemporalNMF
from temporalnmf.metrics import kl_error

COVERAGE, STEPS, SAMPLES = 0.9, 6, 400
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
BINS = 10
SETTINGS = ("model", "checked", "refit")
PARTS = ("totals", "above 1", "below 1")
HORIZONS = (1, 3, 6)  # of the page
FEWEST = 13  # observed steps that both checks need
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


def pit_ends(samples: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends, each (n,), of the part of [0, 1] that the ranks of x among samples (S, n) take."""
    places = len(samples) + 1.0
    below, upto = (samples < x).sum(axis=0), (samples <= x).sum(axis=0)
    return below / places, (upto + 1.0) / places


def share_between(ends: tuple[np.ndarray, np.ndarray], low: float, high: float) -> float:
    """Average probability of a PIT between low and high."""
    below, upto = ends
    part = np.clip(upto, low, high) - np.clip(below, low, high)
    return float(np.mean(part / (upto - below)))


def interval_scores(samples: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Winkler's interval score (n,)."""
    tail = 0.5 - COVERAGE / 2.0
    low, high = np.quantile(samples, [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    return high - low + (np.maximum(low - x, 0.0) + np.maximum(x - high, 0.0)) / tail


def judged(samples: np.ndarray, x: np.ndarray, part: str) -> dict[str, float]:
    """Interval score, coverage by nominal level, and histogram of the PIT."""
    ends, edges = pit_ends(samples, x), np.linspace(0.0, 1.0, BINS + 1)
    found = {f"{part}: score": float(interval_scores(samples, x).mean())}
    for level in LEVELS:
        found[f"{part}: {level:g}"] = share_between(ends, 0.5 - level / 2.0, 0.5 + level / 2.0)
    for i in range(BINS):
        found[f"{part}: bin {i}"] = share_between(ends, edges[i], edges[i + 1])
    return found


def look(
    name: str, likelihood: str, settings: list[str], X: np.ndarray, origin: int
) -> list[dict[str, object]]:
    """One row per setting and step after the origin."""
    warnings.simplefilter("ignore")
    model = TemporalNMF(
        COMPONENTS[name], likelihood=likelihood, intervals="model", random_state=0
    ).fit(X[:origin])
    rows, n_observed = [], np.count_nonzero(~np.isnan(X[:origin, 0]))
    for setting in sorted(settings, key=SETTINGS.index):
        if setting != "model" and n_observed < FEWEST:
            continue
        start = time.perf_counter()
        if setting == "checked":
            model.set_params(intervals="checked")
        elif setting == "refit":
            model.calibrate(20, steps=STEPS)
        forecast = model.forecast(STEPS, n_samples=SAMPLES, random_state=0)
        row = {"data": name.split(".")[0], "likelihood": likelihood, "setting": setting,
               "origin": origin, "seconds": time.perf_counter() - start,
               "dispersion": getattr(model.likelihood_, "dispersion", 0.0)}  # fmt: skip
        for t in np.flatnonzero(~np.isnan(X[origin : origin + STEPS]).any(axis=1)).tolist():
            x, one = X[origin + t], forecast.at([t])
            entries, mean, totals = one.samples()[:, 0], one.values[0], one.samples("totals")
            found = row | {"ahead": t + 1, "kl": kl_error(x, np.maximum(mean, 0.01))}
            found |= judged(totals.reshape(-1, 1), np.array([x.sum()]), "totals")
            for part, which in (("above 1", mean > 1.0), ("below 1", mean <= 1.0)):
                if which.any():
                    found |= judged(entries[:, which], x[which], part)
            rows.append(found)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/intervals.csv"))
    parser.add_argument("--data", nargs="*", default=list(COMPONENTS))
    parser.add_argument("--likelihoods", nargs="*", default=["poisson", "auto"])
    parser.add_argument("--settings", nargs="*", default=["model", "checked"], choices=SETTINGS)
    parser.add_argument("--origins", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--read", type=Path, nargs="*", help="results of earlier runs, not a run")
    parser.add_argument(
        "--page", type=Path, default=None,
        help="page to write the tables to; pictures and averages go to intervals/ beside it",
    )  # fmt: skip
    given = parser.parse_args()
    frame = pd.concat([pd.read_csv(path) for path in given.read]) if given.read else run(given)
    means = averages(shared(frame))
    print(means.drop(columns=["low", "high"]).round(3).to_string())
    if given.page is not None:
        means.round(4).to_csv(given.page.parent / "intervals" / "averages.csv", index=False)
        write_page(given.page, shared(frame))
        draw(shared(frame), given.page.parent / "intervals")


def run(given: argparse.Namespace) -> pd.DataFrame:
    given.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, object]] = []
    for name in given.data:
        X = data_of(name)
        tasks = [
            delayed(look)(name, law, given.settings, X, int(origin))
            for origin in origins_of(len(X), given.origins)
            for law in given.likelihoods
        ]
        rows += [row for found in Parallel(given.jobs)(tasks) for row in found]
        pd.DataFrame(rows).to_csv(given.out, index=False, float_format="%.6g")
    return pd.DataFrame(rows)


def shared(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of origins that all settings of a data set have, so that they can be compared."""
    kept = []
    for _, of_data in frame.groupby("data", sort=False):
        origins = (set(part["origin"]) for _, part in of_data.groupby(["likelihood", "setting"]))
        kept.append(of_data[of_data["origin"].isin(set.intersection(*origins))])
    return pd.concat(kept)


def band(n: int) -> tuple[float, float]:
    """The range that 95 % of shares of n values have, if each is inside with 90 %."""
    low, high = stats.binom.ppf([0.025, 0.975], n, COVERAGE) / n
    return float(low), float(high)


def averages(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over origins, by horizon, and the binomial band of the nominal coverage."""
    keys = ["data", "likelihood", "setting", "ahead"]
    groups = frame.groupby(keys, sort=False)
    found = groups.mean(numeric_only=True).drop(columns="origin")
    found.insert(0, "origins", groups["origin"].nunique())
    ends = [band(n) for n in found["origins"]]
    found.insert(1, "low", [low for low, _ in ends])
    found.insert(2, "high", [high for _, high in ends])
    return found.reset_index()


def in_order(frame: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Data set, likelihood, setting and rows, in the order of the page."""
    for name in COMPONENTS:
        for law in sorted(set(frame["likelihood"]), key=lambda law: law != "auto"):
            for setting in SETTINGS:
                here = (frame["likelihood"] == law) & (frame["setting"] == setting)
                rows = frame[here & (frame["data"] == name.split(".")[0])]
                if len(rows):
                    yield name.split(".")[0], law, setting, rows


def write_page(page: Path, frame: pd.DataFrame) -> None:
    """Put the tables into a page, between their marks."""
    write_table(page, "intervals", [
        "data", "likelihood", "intervals", "origins", "band", "totals", "entries, mean > 1",
        "entries, mean ≤ 1", "score of totals", "score of entries, mean > 1",
    ], [cells(*found) for found in in_order(frame)])  # fmt: skip
    heads = [f"{part}, {s}" for part in ("totals", "entries, mean > 1") for s in HORIZONS]
    lines = []
    for name, law, setting, rows in in_order(frame[frame["setting"] != "refit"]):
        means = rows.groupby("ahead").mean(numeric_only=True)
        shares = [means.at[s, f"{part}: 0.9"] for part in PARTS[:2] for s in HORIZONS]
        lines.append([name, law, setting, *(f"{share:.2f}" for share in shares)])
    write_table(page, "horizons", ["data", "likelihood", "intervals", *heads], lines)


def cells(name: str, law: str, setting: str, rows: pd.DataFrame) -> list[object]:
    """A line of the table of intervals."""
    mean, n = rows.mean(numeric_only=True), rows["origin"].nunique()
    inside = [mean.get(f"{part}: {COVERAGE:g}", np.nan) for part in PARTS]
    scores = [mean.get(f"{part}: score", np.nan) for part in PARTS[:2]]
    shares = ["–" if np.isnan(value) else f"{value:.2f}" for value in inside]
    return [name, law, setting, n, "{:.2f}–{:.2f}".format(*band(n)), *shares,
            *(f"{value:,.4g}" for value in scores)]  # fmt: skip


def write_table(page: Path, name: str, head: list[str], lines: list[list[object]]) -> None:
    rows = [head, ["---"] * len(head), *lines]
    table = "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = page.read_text(encoding="utf-8").split(start)
    text = f"{before}{start}{table}\n{end}{rest.split(end)[1]}"
    page.write_text(text, encoding="utf-8")


COLOURS = {"model": "#c1543a", "checked": "#23639b"}


def draw(frame: pd.DataFrame, folder: Path) -> None:
    """A reliability diagram and histograms of the PIT, each data set with the same weight."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10}
    )
    laws = sorted(set(frame["likelihood"]), key=lambda law: law != "auto")
    by_data = frame.groupby(["likelihood", "setting", "data"]).mean(numeric_only=True)
    titles = {"totals": "Totals", "above 1": "Entries with mean above 1"}

    figure, axes = plt.subplots(1, 2, figsize=(8.0, 4.0), sharex=True, sharey=True)
    for ax, (part, title) in zip(axes, titles.items(), strict=True):
        ax.plot([0.4, 1.0], [0.4, 1.0], color="0.6", linewidth=1.0)
        for law, line in zip(laws, ("-", "--"), strict=False):
            for setting, colour in COLOURS.items():
                found = by_data.loc[law, setting][[f"{part}: {level:g}" for level in LEVELS]]
                if law == laws[0]:
                    for row in found.to_numpy():
                        ax.plot(LEVELS, row, color=colour, alpha=0.25, linewidth=0.8)
                label = f"{setting}, {law.replace('_', ' ')}"
                ax.plot(LEVELS, found.mean(), line, color=colour, marker="o", ms=4, label=label)
        ax.set(title=title, xlabel="nominal coverage", ylim=(0.0, 1.02), xlim=(0.48, 0.97))
    axes[0].set_ylabel("found coverage")
    axes[1].legend(frameon=False, loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "reliability.png", dpi=130)
    plt.close(figure)

    figure, axes = plt.subplots(2, 2, figsize=(8.0, 4.6), sharex=True, sharey="row")
    for row, (part, title) in zip(axes, titles.items(), strict=True):
        for ax, setting in zip(row, COLOURS, strict=True):
            found = by_data.loc[laws[0], setting][[f"{part}: bin {i}" for i in range(BINS)]]
            places = (np.arange(BINS) + 0.5) / BINS
            ax.bar(places, BINS * found.mean(), 0.92 / BINS, color=COLOURS[setting])
            ax.axhline(1.0, color="0.3", linewidth=1.0)
            ax.set_title(f"{title}, {setting}")
        row[0].set_ylabel("density")
    for ax in axes[1]:
        ax.set_xlabel("PIT")
    figure.tight_layout()
    figure.savefig(folder / "pit.png", dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main()
