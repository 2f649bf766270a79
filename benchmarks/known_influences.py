"""Whether covariates, events and trends that were planted are found, and what intervals contain.

    python benchmarks/known_influences.py --page docs/seasons.md

Simulated are 120 days of counts of 20 features and K components, which follow `Rate(150)` and have
in addition: the factor 1.03 per unit of a covariate with standard deviation 5, the factor 1.3 on
six days of an event, a week of standard deviation 0.1, and a growth of 2 % per day throughout. Bias
and spread are those of the logarithm of a factor. Intervals take components as known: with K = 1
they are.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from default_intervals import write_table
from joblib import Parallel, delayed

from temporalnmf import TemporalNMF
from temporalnmf.effects import Trend

STEPS, FEATURES, SERIES = 120, 20, 100
LEVELS = (20.0, 1.0)  # mean entries
PER_UNIT, EVENT, GROWTH = np.log(1.03), np.log(1.3), 0.02
NAMES = {"covariate": PER_UNIT, "event": EVENT, "trend": GROWTH}


def look(chain: str, K: int, level: float, seed: int) -> list[dict[str, Any]]:
    """A row per influence and component."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, K, int(10 * level)])
    index = pd.date_range("2001-01-01", periods=STEPS)
    x, days = rng.normal(15.0, 5.0, STEPS), rng.choice(STEPS, 6, replace=False)
    log = PER_UNIT * (x - x.mean()) + EVENT * np.isin(np.arange(STEPS), days)
    log += np.resize(rng.normal(0.0, 0.1, 7), STEPS)
    log += GROWTH * np.arange(STEPS)
    H = np.cumprod(rng.gamma(150.0, 1.0 / 150.0, (K, STEPS)), axis=1) * np.exp(log)
    H *= level * FEATURES / K / H.mean(axis=1, keepdims=True)
    W = np.zeros((K, FEATURES))
    for k, part in enumerate(np.array_split(np.arange(FEATURES), K)):  # components do not overlap
        W[k, part] = 1.0 / len(part)
    X = pd.DataFrame(rng.poisson(H.T @ W), index=index)
    events = {"event": index[days].strftime("%Y-%m-%d").tolist()}
    model = TemporalNMF(
        K, chain=chain, holidays=events, season="week", trend=Trend(1.0, "learn"), random_state=0
    ).fit(X, covariates=pd.Series(x, index, name="covariate"))
    found = {**model.effects_, "trend": model.trend_}
    rows = []
    for name, true in NAMES.items():
        for value, low, high in np.log(found[name]).tolist():
            row = {"chain": chain, "K": K, "level": level, "influence": name, "truth": true}
            rows.append(row | {"error": value - true, "inside": low <= true <= high})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path, default=None, help="page to write the table to")
    parser.add_argument("--series", type=int, default=SERIES)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    tasks = [
        delayed(look)(chain, K, level, seed)
        for chain in ("rate", "arg") for K in (1, 3) for level in LEVELS
        for seed in range(given.series)
    ]  # fmt: skip
    rows = [row for found in Parallel(given.jobs)(tasks) for row in found]
    keys = ["chain", "K", "level", "influence", "truth"]
    means = pd.DataFrame(rows).groupby(keys, sort=False).agg(
        bias=("error", "mean"), spread=("error", "std"), inside=("inside", "mean")
    )  # fmt: skip
    print(means.round(3).to_string())
    if given.page is not None:
        lines = [
            [*key[:2], f"{key[2]:g}", key[3], *(f"{v:.3f}" for v in (key[4], *r.iloc[:2])),
             f"{r.iloc[2]:.2f}"]
            for key, r in means.iterrows()
        ]  # fmt: skip
        head = ["chain", "K", "mean entry", "influence", "true log factor", "bias", "spread",
                "inside 90 %"]  # fmt: skip
        write_table(given.page, "influences", head, lines)


if __name__ == "__main__":
    main()
