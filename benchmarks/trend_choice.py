"""What trends do to forecasts of data sets, and whether `trend="auto"` takes those that are there.

    python benchmarks/trend_choice.py --page docs/seasons.md

Data sets: Kullback–Leibler errors of the next six steps at ten origins in the second half, divided
by those without a trend. Needs TEMPORALNMF_DATA.

Simulated are 30 to 100 steps of counts of 30 features and 2 to 4 components, which follow
`Rate(alpha)` with alpha between 30 and 300, and grow by 0, 2 or 5 % per step in addition. The six
steps after them are forecast with "auto" and without a trend. Where a trend was chosen, the ratio
of both Kullback–Leibler errors is told, as a geometric mean and the worst.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from default_intervals import COMPONENTS, write_table
from joblib import Parallel, delayed
from scipy.stats import binomtest
from seasons import CASES, frame_of

from temporalnmf import TemporalNMF
from temporalnmf.effects import Trend
from temporalnmf.metrics import kl_error

SERIES, FEATURES, AHEAD, LEVEL = 100, 30, 6, 20.0
GROWTHS = (0.0, 0.02, 0.05)


def look(growth: float, seed: int) -> tuple[float, bool, float]:
    """The growth, whether a trend was chosen, and the ratio of errors ahead."""
    rng = np.random.default_rng([seed, int(100 * growth)])
    N, K, alpha = rng.integers(30, 101), rng.integers(2, 5), rng.uniform(30.0, 300.0)
    moves = np.log(rng.gamma(alpha, 1.0 / alpha, (K, N + AHEAD)))
    H = np.exp(np.cumsum(moves, axis=1) + growth * np.arange(N + AHEAD))
    H *= FEATURES * LEVEL / K / H.mean(axis=1, keepdims=True)
    X = rng.poisson(H.T @ rng.dirichlet(np.full(FEATURES, 0.3), size=K))
    (auto, chosen), (without, _) = (
        error(pd.DataFrame(X), int(K), int(N), t) for t in ("auto", None)
    )
    return growth, chosen, auto / without


def error(
    frame: pd.DataFrame, K: int, origin: int, trend: Trend | str | None
) -> tuple[float, bool]:
    """Of the steps after an origin, and whether the model has a trend."""
    warnings.simplefilter("ignore")
    model = TemporalNMF(K, trend=trend, intervals="model", random_state=0).fit(frame.iloc[:origin])
    x = frame.iloc[origin : origin + AHEAD].to_numpy()
    seen = ~np.isnan(x[:, 0])
    ahead = np.maximum(model.forecast(AHEAD).values, 0.01)
    return kl_error(x[seen], ahead[seen]), model.trend_ is not None


def of_data(name: str, K: int, jobs: int) -> list[float]:
    """Errors with `Trend()` and with "auto", divided by those without a trend."""
    frame = frame_of(name)
    N = len(frame)
    origins = np.unique(np.linspace(max(N // 2, 12), N - AHEAD, 10).astype(int)).tolist()
    sums = []
    for trend in (None, Trend(), "auto"):
        tasks = [delayed(error)(frame, K, origin, trend) for origin in origins]
        sums.append(sum(found for found, _ in Parallel(jobs)(tasks)))
    return [sums[1] / sums[0], sums[2] / sums[0]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path, default=None, help="page to write the table to")
    parser.add_argument("--series", type=int, default=SERIES)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    tasks = [delayed(look)(growth, seed) for growth in GROWTHS for seed in range(given.series)]
    frame = pd.DataFrame(Parallel(given.jobs)(tasks), columns=["growth", "chosen", "ratio"])
    cases = [(name, COMPONENTS[case.file]) for name, case in CASES.items()] + [("NIPS", 6)]
    measured = []
    for name, K in cases:
        found = of_data(name, K, given.jobs)
        measured.append([name, K, *(f"{ratio:.2f}" for ratio in found)])
        print(measured[-1], flush=True)
    lines = []
    for growth, part in frame.groupby("growth"):
        n, ratios = int(part["chosen"].sum()), part.loc[part["chosen"], "ratio"]
        interval = binomtest(n, len(part)).proportion_ci(0.95, "exact")
        told = [f"{np.exp(np.log(ratios).mean()):.3f}", f"{ratios.max():.2f}"] if n else ["–", "–"]
        share = f"{interval.low:.2f}–{interval.high:.2f}"
        lines.append([f"{100 * growth:g} %", len(part), f"{n / len(part):.2f}", share, *told])
    print(pd.DataFrame(lines).to_string())
    if given.page is not None:
        head = ["growth per step", "series", "trend chosen", "interval", "error ahead, ratio",
                "worst"]  # fmt: skip
        write_table(given.page, "trends found", head, lines)
        head = ["data", "K", "`trend=Trend()`", '`trend="auto"`']
        write_table(given.page, "trends", head, measured)


if __name__ == "__main__":
    main()
