"""Coverage of intervals of sums, on data simulated from the model and with extra variation.

    nice python benchmarks/coverage_of_sums.py --out docs/coverage_of_sums.csv

Each data set is drawn anew: two components of 12 features, 40 steps to fit and 6 to forecast. Under
"model" components change as the chain expects (Rate with α = 300); under "wandering" the level of
all components also follows a random walk with steps of 15 %, which the chain does not model.
Checked are single steps' totals, their sum over six steps, a group of three features summed over
six steps, and features, in 50 % and 90 % intervals, as the model has them, as checked by default
and after `calibrate(20, steps=6)`.

Bands are 95 % confidence intervals of a binomial with a trial per data set. If the output is
docs/coverage_of_sums.csv, the table of docs/calibration.md is also written.
"""

from __future__ import annotations

import argparse
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import binomtest

from temporalnmf import TemporalNMF
from temporalnmf.chains import Rate

PAGE = Path(__file__).parents[1] / "docs" / "calibration.md"
N, STEPS, ALPHA = 40, 6, 300.0
COVERAGES = (0.5, 0.9)
WORLDS = {"model": 0.0, "wandering": 0.15}
INTERVALS = ("as the model has them", "checked", "calibrated")
GROUP = {"group": ["x0", "x1", "x2"]}
ASKED = ("totals", "sums", "groups", "features")


def data_of(world: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, list(WORLDS).index(world)])
    H = np.array([60.0, 90.0]) * np.cumprod(rng.gamma(ALPHA, 1 / ALPHA, (N + STEPS, 2)), axis=0)
    walk = np.exp(np.cumsum(WORLDS[world] * rng.standard_normal((N + STEPS, 1)), axis=0))
    return rng.poisson((H * walk) @ rng.dirichlet(np.full(12, 0.5), size=2)).astype(float)


def rows_of(world: str, seed: int, wanted: list[str]) -> list[dict[str, object]]:
    warnings.simplefilter("ignore")
    X = data_of(world, seed)
    model = TemporalNMF(2, chain=Rate(ALPHA), intervals="model", random_state=0).fit(X[:N])
    found = []
    for intervals in (name for name in INTERVALS if name in wanted):
        if intervals == "checked":
            model.set_params(intervals="checked")
        elif intervals == "calibrated":
            model.calibrate(20, steps=STEPS)
        found += [
            {"world": world, "intervals": intervals, "seed": seed, "coverage": c} | row
            for c, row in held(model.forecast(STEPS), X[N:]).items()
        ]
    return found


def held(ahead: object, came: np.ndarray) -> dict[float, dict[str, float]]:
    """Shares of the true values inside the intervals."""
    steps = ahead.sum(over="steps")
    groups = ahead.sum(over="steps", groups=GROUP)
    truths = {
        "totals": (ahead, "totals", came.sum(axis=1)),
        "sums": (steps, "totals", came.sum(keepdims=True)[0]),
        "groups": (groups, "features", came[:, :3].sum(keepdims=True)),
        "features": (ahead, "features", came),
    }
    found = {}
    for coverage in COVERAGES:
        ends = {name: one.interval(coverage, of) for name, (one, of, _) in truths.items()}
        found[coverage] = {
            name: float(np.mean((low <= truths[name][2]) & (truths[name][2] <= high)))
            for name, (low, high) in ends.items()
        }
    return found


def table_of(rows: pd.DataFrame) -> list[str]:
    lines = [
        "| data | intervals | nominal | totals | sums over 6 steps | groups over 6 steps | "
        "features |",
        "|---|---|---|---|---|---|---|",
    ]
    order = ["world", "intervals", "coverage"]
    for (world, intervals, coverage), part in rows.groupby(order, sort=False):
        n, cells = len(part), []
        for name in ASKED:
            share = part[name].mean()
            band = binomtest(round(share * n), n).proportion_ci(0.95, "exact")
            cells.append(f"{share:.2f} ({band.low:.2f}–{band.high:.2f})")
        lines.append(f"| {world} | {intervals} | {coverage:.2f} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/coverage_of_sums.csv"))
    parser.add_argument("--sets", type=int, default=100, help="Data sets of each kind.")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--intervals", nargs="*", default=list(INTERVALS), choices=INTERVALS,
        help="Those to compute; rows of the others are kept.",
    )  # fmt: skip
    options = parser.parse_args()
    asked = options.intervals
    jobs = [delayed(rows_of)(w, seed, asked) for w in WORLDS for seed in range(options.sets)]
    found = Parallel(options.jobs)(jobs)
    rows = pd.DataFrame([row for part in found for row in part])
    if options.out.exists():
        former = pd.read_csv(options.out)
        rows = pd.concat([former[~former["intervals"].isin(asked)], rows])
    for name, order in (("intervals", INTERVALS), ("world", WORLDS)):
        rows = rows.sort_values(name, key=lambda of, o=list(order): of.map(o.index), kind="stable")
    rows.to_csv(options.out, index=False, float_format="%.4g")
    lines = table_of(rows)
    if options.out.resolve() == PAGE.with_name("coverage_of_sums.csv"):
        block = re.compile(r"(<!-- sums -->\n).*?(<!-- end sums -->\n)", re.DOTALL)
        text = PAGE.read_text(encoding="utf-8")
        text = block.sub(lambda match: match[1] + "\n".join(lines) + "\n" + match[2], text)
        PAGE.write_text(text, encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
