"""Coverage of 90 % intervals at rolling origins, on three datasets.

At each origin the model is fitted to the steps before it alone and forecasts the next one, first
with the intervals of the model, then after `calibrate`, which again sees only the steps before the
origin. Writes one
row per origin to a CSV file and, if that is docs/calibration.csv, the table of docs/calibration.md.

    python benchmarks/rolling_origin.py --out docs/calibration.csv

With posterior draws (--solver gibbs) a fit takes longer. There the forecasts of the 20 previous
origins calibrate the next one, each made without later data: one fit per origin, not 21.
"""

from __future__ import annotations

import argparse
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import binomtest

from temporalnmf import TemporalNMF
from temporalnmf.chains import ARG, BGAR, HierRate, Rate, Shape
from temporalnmf.data.series import Series
from temporalnmf.datasets import fetch_icews, fetch_nips, load_sotu
from temporalnmf.forecasting.calibrating import calibration_of, past_forecast
from temporalnmf.solvers import Gibbs

PAGE = Path(__file__).parents[1] / "docs" / "calibration.md"
COVERAGE = 0.9
COMPONENTS = {"sotu": 6, "nips": 3, "icews": 5}


def data_of(name):
    folder = os.environ.get("TEMPORALNMF_DATA")
    if name == "sotu":
        return load_sotu().data
    if name == "nips":
        return np.asarray(fetch_nips(data=folder).data, dtype=float)
    stand_in = Path(folder) / "icews_2001_2003_pairs_3day.npz" if folder else None
    X = fetch_icews(data=stand_in, allow_stand_in=True).data
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float)


def origins_of(X, n_origins):
    """The last steps of short series, evenly spread over the second half of long ones."""
    seen = np.flatnonzero(~np.isnan(X).any(axis=1))
    if len(seen) <= 2 * n_origins:
        return seen[-n_origins:]
    return seen[np.linspace(len(seen) // 2, len(seen) - 1, n_origins).round().astype(int)]


def look(name, chain, X, origin):
    """Coverage of the step at the origin, before and after calibration."""
    warnings.simplefilter("ignore")
    model = TemporalNMF(COMPONENTS[name], chain=chain, intervals="model", random_state=0)
    model.fit(X[:origin])
    row = {"data": name, "chain": chain, "origin": int(origin)}
    row |= held(model.forecast(1), X[origin], "plain")
    try:
        model.calibrate(20)
    except ValueError:  # too short a past
        return row
    row |= held(model.forecast(1), X[origin], "calibrated")
    return row | noise_of(model.calibration_)


def noise_of(calibration):
    """Variation beyond the model, one step ahead."""
    noise = calibration.noise
    return {
        "level": float(np.sqrt(noise.level[0])),
        "own": float(np.sqrt(noise.own[0])),
        "dispersion": noise.dispersion,
    }


DRAWN_ORIGINS = 20
SAMPLED = {"solver": Gibbs(n_draws=200, n_tune=100, n_chains=1), "smoothing": "learn"}
LEARNED = {
    "rate": Rate(alpha="learn"),
    "hier_rate": HierRate(alpha_z="learn", alpha_h="learn"),
    "shape": Shape(alpha="learn"),
    "bgar": BGAR(alpha="learn", beta="learn", rho="learn"),
    "arg": ARG(alpha="learn", beta="learn", rho="learn"),
}


def looks_of_draws(name, chain, X, origins):
    """Rows of consecutive origins, from one fit by draws at each."""
    warnings.simplefilter("ignore")
    rows, past = [], []
    for origin in map(int, origins):
        model = TemporalNMF(COMPONENTS[name], chain=LEARNED[chain], random_state=0, **SAMPLED)
        model.fit(X[:origin])
        row = {"data": name, "chain": f"{chain}, draws", "origin": origin}
        row |= held(model.forecast(1), X[origin], "plain")
        if len(past) >= DRAWN_ORIGINS or (len(past) >= 5 and len(X) < 60):
            model.calibration_ = found = calibration_of(past[-DRAWN_ORIGINS:], COVERAGE)
            row |= held(model.forecast(1), X[origin], "calibrated") | noise_of(found)
            model.calibration_ = None
        rows.append(row)
        series = Series(X, np.ones((len(X), 1)), np.ones(len(X)))
        past.append(past_forecast(model._state(), series, origin, 1))
    return rows


def held(forecast, x, name):
    """Entries inside (ties in part, so that a correct law has 0.9; and plainly), and the total."""
    draws = forecast.samples()[:, 0]
    tail = 0.5 - COVERAGE / 2.0
    lower, upper = (draws < x).mean(axis=0), (draws <= x).mean(axis=0)
    width = np.maximum(upper - lower, 1e-9)
    shared = np.clip(np.minimum(upper, 1.0 - tail) - np.maximum(lower, tail), 0.0, None)
    # A value that no draw has is inside or not.
    inside = np.where(upper > lower, shared / width, (lower > tail) & (lower < 1.0 - tail))
    low, high = forecast.interval(COVERAGE)
    low_total, high_total = forecast.interval(COVERAGE, of="totals")
    return {
        f"{name}_entries": float(inside.mean()),
        f"{name}_closed": float(((low[0] <= x) & (x <= high[0])).mean()),
        f"{name}_total": int(low_total[0] <= x.sum() <= high_total[0]),
    }


def table_of(rows):
    """Per dataset and chain: coverage with the binomial band of so many origins around 0.9."""
    found = []
    for (name, chain), part in rows.groupby(["data", "chain"], sort=False):
        for way in ("plain", "calibrated"):
            known = part.dropna(subset=[f"{way}_total"])
            n, inside = len(known), int(known[f"{way}_total"].sum())
            band = binomtest(inside, n).proportion_ci(0.95, "exact")
            entries = float(known[f"{way}_entries"].mean())
            around = binomtest(round(entries * n), n).proportion_ci(0.95, "exact")
            found.append(
                {
                    "data": name, "chain": chain, "intervals": way, "origins": n,
                    "totals": inside / n, "totals_low": band.low, "totals_high": band.high,
                    "entries": entries, "entries_low": around.low, "entries_high": around.high,
                    "closed": float(known[f"{way}_closed"].mean()),
                }
            )  # fmt: skip
    return pd.DataFrame(found)


def rendered(text, rows):
    """The page with its table as it is now."""
    lines = [
        "| data | chain | intervals | origins | totals inside | band | entries inside | band |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in table_of(rows).to_dict("records"):
        bands = [f"{row[f'{w}_low']:.2f}–{row[f'{w}_high']:.2f}" for w in ("totals", "entries")]
        way = {"plain": "uncalibrated", "calibrated": "calibrated"}[row["intervals"]]
        lines.append(
            f"| {row['data']} | {row['chain']} | {way} | {row['origins']} | {row['totals']:.2f} | "
            f"{bands[0]} | {row['entries']:.2f} | {bands[1]} |"
        )
    block = re.compile(r"(<!-- coverage -->\n).*?(<!-- end -->\n)", re.DOTALL)
    return block.sub(lambda match: match[1] + "\n".join(lines) + "\n" + match[2], text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/calibration.csv"))
    parser.add_argument("--origins", type=int, default=24)
    parser.add_argument("--data", nargs="*", default=list(COMPONENTS))
    parser.add_argument("--chains", nargs="*", default=["rate", "hier_rate", "shape", "bgar"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--solver", choices=["accelerated", "gibbs"], default="accelerated")
    options = parser.parse_args()
    jobs = []
    for name in options.data:
        X = data_of(name)
        if options.solver == "gibbs":
            seen = np.flatnonzero(~np.isnan(X).any(axis=1))
            origins = seen[8:][-options.origins - DRAWN_ORIGINS :]
            jobs += [delayed(looks_of_draws)(name, c, X, origins) for c in options.chains]
        else:
            jobs += [
                delayed(lambda *a: [look(*a)])(name, chain, X, int(origin))
                for chain in options.chains
                for origin in origins_of(X, options.origins)
            ]
    found = Parallel(options.jobs, verbose=1)(jobs)
    rows = pd.DataFrame([row for part in found for row in part])
    if options.solver == "gibbs" and options.out.exists():
        others = pd.read_csv(options.out)
        others = others[~others["chain"].str.endswith("draws")]
        rows = pd.concat([others, rows], ignore_index=True)
    rows.to_csv(options.out, index=False, float_format="%.6g")
    if options.out.resolve() == PAGE.with_suffix(".csv"):
        PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print(table_of(rows).to_string(index=False, float_format=lambda value: f"{value:.2f}"))


if __name__ == "__main__":
    main()
