"""Whether `season="auto"` finds seasons that are there, and none that are not.

    python benchmarks/season_choice.py --out docs/seasons/choice.csv --page docs/seasons.md

Simulated are days (180 to 730) and months (36 to 150) of counts of 30 features and 2 to 5
components, which follow `Rate(alpha)` with alpha between 30 and 300. Means of entries are about 20
("dense") or 0.5 ("sparse"), the noise is Poisson or negative binomial with dispersion 0.2 (variance
of an entry: μ + 0.2 μ²). Each component has factors of weekly or yearly positions whose logarithms
have the standard deviation `strength`; 0 is no season. A tenth of the inner steps is hidden, and
the last cycle too. Where a season was chosen, a fit without it shows what the choice did to the
errors of the hidden steps. Recovered factors are those of a fit with the season as given.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from default_intervals import write_table
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest

from temporalnmf import TemporalNMF
from temporalnmf.metrics import kl_error

N_SERIES, FEATURES, DISPERSION = 40, 30, 0.2
STRENGTHS = (0.0, 0.02, 0.05, 0.1, 0.3)
# Shortest and longest series, frequency, cycle and its name.
STEPS = {"days": (180, 730, "D", 7, "week"), "months": (36, 150, "MS", 12, "year")}
LEVELS = {"dense": 20.0, "sparse": 0.5}
NOISES = ("poisson", "negative binomial")
CASE = ["every", "level", "noise"]


def simulated(
    every: str, level: str, noise: str, strength: float, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Counts with dates, features of components (K, F), and log factors (K, cycle)."""
    low, high, freq, cycle, _ = STEPS[every]
    N, K, alpha = rng.integers(low, high + 1), rng.integers(2, 6), rng.uniform(30.0, 300.0)
    moves = rng.gamma(alpha, 1.0 / alpha, (K, N))
    H = np.exp(np.cumsum(np.log(moves) - np.log(moves).mean(axis=1, keepdims=True), axis=1))
    H *= FEATURES * LEVELS[level] / K / H.mean(axis=1, keepdims=True)
    W = rng.dirichlet(np.full(FEATURES, 0.3), size=K)
    factors = rng.standard_normal((K, cycle))
    factors -= factors.mean(axis=1, keepdims=True)
    factors *= strength / factors.std(axis=1, keepdims=True)
    index = pd.date_range("2001-01-01", periods=N, freq=freq)  # a Monday
    mean = (H * np.exp(factors[:, np.arange(N) % cycle])).T @ W
    if noise != "poisson":
        mean = mean * rng.gamma(1.0 / DISPERSION, DISPERSION, mean.shape)
    return pd.DataFrame(rng.poisson(mean).astype(float), index=index), W, factors


def errors(model: TemporalNMF, X: np.ndarray, gaps: np.ndarray, steps: int) -> tuple[float, float]:
    """Of the hidden steps inside and of the last ones."""
    inside = model.inverse_transform(model.activations_)[gaps]
    ahead = model.forecast(steps).values
    return (
        kl_error(X[gaps], np.maximum(inside, 0.01)),
        kl_error(X[-steps:], np.maximum(ahead, 0.01)),
    )


def recovery(model: TemporalNMF, W: np.ndarray, factors: np.ndarray) -> dict[str, float]:
    """Errors of log factors and their correlation, components matched by their features."""
    found = np.log(next(iter(model.season_.values())))
    K = len(W)
    alike = np.corrcoef(W, model.components_)[:K, K:]
    mine, theirs = linear_sum_assignment(-alike)
    a, b = factors[mine], found[theirs] - found[theirs].mean(axis=1, keepdims=True)
    norms = np.sqrt((a**2).sum() * (b**2).sum())
    correlation = float((a * b).sum() / norms) if norms > 0.0 else 0.0
    return {"rmse": float(np.sqrt(((a - b) ** 2).mean())), "correlation": correlation}


def look(every: str, level: str, noise: str, strength: float, seed: int) -> dict[str, Any]:
    """A simulated series: what was chosen, and what that did."""
    rng = np.random.default_rng([seed, round(1000 * strength), len(every), len(level), len(noise)])
    frame, W, factors = simulated(every, level, noise, strength, rng)
    cycle, wanted = STEPS[every][3:]
    X, K = frame.to_numpy(), len(W)
    train = frame.iloc[:-cycle].copy()
    gaps = rng.choice(np.arange(1, len(train) - 1), max(len(train) // 10, 1), replace=False)
    train.iloc[gaps] = np.nan

    def fit(season: str | None) -> TemporalNMF:
        return TemporalNMF(K, season=season, intervals="model", random_state=0).fit(train)

    model = fit("auto")
    row = {"every": every, "level": level, "noise": noise, "strength": strength, "seed": seed,
           "steps": len(train), "K": K, "chosen": " and ".join(model.season_),
           "reason": model.season_reason_}  # fmt: skip
    if model.season_:
        with_, without = (errors(m, X, gaps, cycle) for m in (model, fit(None)))
        row |= {"inside": with_[0] / without[0], "ahead": with_[1] / without[1]}
    if strength > 0.0:
        row |= recovery(model if [*model.season_] == [wanted] else fit(wanted), W, factors)
    return row


def shares(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Share with a season and its 95 % interval; mean log ratios of errors where one was chosen."""
    lines = []
    for key, part in frame.groupby(keys, sort=False):
        n, found = len(part), int((part["chosen"].fillna("") != "").sum())
        band = binomtest(found, n).proportion_ci(0.95, "exact")
        row = dict(zip(keys, key, strict=True))
        row |= {"series": n, "chosen": found / n, "low": band.low, "high": band.high}
        for measure in ("inside", "ahead"):
            values = part.get(measure, pd.Series(dtype=float)).dropna()
            row[measure] = float(np.exp(np.log(values).mean())) if len(values) else np.nan
            row[f"worst {measure}"] = float(values.max()) if len(values) else np.nan
        for measure in ("rmse", "correlation"):
            row[measure] = float(part[measure].median()) if measure in part else np.nan
        lines.append(row)
    return pd.DataFrame(lines)


def cells(row: pd.Series, measures: dict[str, str]) -> list[str]:
    band = f"{row['low']:.3f}–{row['high']:.3f}"
    rest = ["–" if np.isnan(row[m]) else form.format(row[m]) for m, form in measures.items()]
    return [f"{row['chosen']:.3f}", band, *rest]


def write_page(page: Path, frame: pd.DataFrame) -> None:
    none = frame[frame["strength"] == 0.0]
    pooled = shares(none.assign(every="all", level="all", noise="all"), CASE)
    false = pd.concat([shares(none, CASE), pooled])
    measures = dict.fromkeys(("inside", "worst inside", "ahead", "worst ahead"), "{:.3f}")
    lines = [
        [*row[["every", "level", "noise", "series"]], *cells(row, measures)]
        for _, row in false.iterrows()
    ]
    heads = ["error inside, ratio", "worst", "error ahead, ratio", "worst"]
    head = ["steps", "counts", "noise", "series", "season chosen", "interval", *heads]
    write_table(page, "false alarms", head, lines)
    true = shares(frame[frame["strength"] > 0.0], ["every", "level", "strength"])
    measures = {"inside": "{:.3f}", "ahead": "{:.3f}", "rmse": "{:.3f}", "correlation": "{:.2f}"}
    lines = [
        [*row[["every", "level", "strength", "series"]], *cells(row, measures)]
        for _, row in true.iterrows()
    ]
    heads = [*("error inside, ratio", "error ahead, ratio"),
             *("error of log factors", "correlation")]  # fmt: skip
    head = ["steps", "counts", "strength", "series", "season chosen", "interval", *heads]
    write_table(page, "planted", head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/season_choice.csv"))
    parser.add_argument("--strengths", nargs="*", type=float, default=STRENGTHS)
    parser.add_argument("--series", type=int, default=N_SERIES, help="of each case")
    parser.add_argument("--read", type=Path, nargs="*", help="results of earlier runs, not a run")
    parser.add_argument("--page", type=Path, default=None, help="page to write the tables to")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.read:
        frame = pd.concat([pd.read_csv(path) for path in given.read])
    else:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        rows: list[dict[str, Any]] = []
        # Seeds last, so that a run that is stopped has all cases.
        for seed in range(given.series):
            rows += [
                look(every, level, noise, strength, seed)
                for strength in given.strengths for every in STEPS for level in LEVELS
                for noise in NOISES if strength == 0.0 or seed % 2 == NOISES.index(noise)
            ]  # fmt: skip
            frame = pd.DataFrame(rows)
            frame.to_csv(given.out, index=False, float_format="%.5g")
    print(shares(frame, ["strength", "every", "level", "noise"]).round(3).to_string())
    if given.page is not None:
        write_page(given.page, frame)


if __name__ == "__main__":
    main()
