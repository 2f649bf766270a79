"""What a season costs: time of an iteration, and of a whole fit that looks for seasons.

    python benchmarks/season_cost.py --out docs/seasons/cost.csv --page docs/seasons.md

An iteration: 200 iterations of the solver from a random start, Poisson counts, with a season and
without. A fit: `season="auto"` and `season=None`, other
settings as they are. Runs alternate, and ratios are those of median CPU times, since other
processes run beside this one. Needs TEMPORALNMF_DATA, except with --read.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from default_intervals import COMPONENTS, write_table
from seasons import CASES, frame_of

from temporalnmf import TemporalNMF
from temporalnmf.chains import Rate
from temporalnmf.data.validation import check_series
from temporalnmf.effects import Season
from temporalnmf.effects.design import Design
from temporalnmf.effects.effects import Effects
from temporalnmf.likelihoods import Poisson
from temporalnmf.objective import Problem
from temporalnmf.solvers.accelerated import Accelerated
from temporalnmf.solvers.mm import MajorizeMinimize
from temporalnmf.solvers.monitor import Monitor

REPEATS, ITERATIONS = 7, 200
SOLVERS = {"accelerated": Accelerated, "mm": MajorizeMinimize}
SEASONS = {
    "flights2001": "week",
    "unemployment": "year",
    "bird strikes": "year",
    "last.fm": "year",
    "ICEWS 2001–2003": "year",
}


def seconds(frame: pd.DataFrame, K: int, **options: Any) -> float:
    """CPU time of a fit."""
    start = time.process_time()
    TemporalNMF(K, intervals="model", random_state=0, **options).fit(frame)
    return time.process_time() - start


def iteration(frame: pd.DataFrame, K: int, season: Season | None, solver: str) -> float:
    """CPU time of an iteration."""
    rng = np.random.default_rng(0)
    series = check_series(frame, None, None, Poisson()).series
    clock = series.timeline.clock
    effects = None
    if season is not None:
        effects = Effects.start(Design.of([season.resolve(clock)], clock), K)
    observations = series.observe(Poisson())
    chain = Rate().resolve(observations.level, K)
    W = np.array(rng.dirichlet(np.ones(frame.shape[1]), K).T, order=observations.order)
    H = rng.gamma(5.0, observations.level / 5.0 / K, (K, len(frame)))
    problem = Problem(observations, chain, smoothing=0.1, effects=effects)
    start = time.process_time()
    found = SOLVERS[solver]().solve(problem, W, H, Monitor(ITERATIONS, 0.0))
    return (time.process_time() - start) / found.monitor.iteration


def look(name: str, repeats: int) -> list[dict[str, Any]]:
    """A row per quantity and run, with and without a season in turn."""
    frame, K = frame_of(name), COMPONENTS[CASES[name].file]
    season = Season(SEASONS[name], strength=0.1)
    rows = []
    seconds(frame, K)  # compile
    seconds(frame, K, season=None)
    for run in range(repeats):
        for solver in ("accelerated", "mm"):
            pair = [iteration(frame, K, given, solver) for given in (season, None)]
            rows.append([name, f"iteration, {solver}", run, *pair])
        rows.append([name, "fit", run, seconds(frame, K), seconds(frame, K, season=None)])
    return [dict(zip(("data", "what", "run", "with", "without"), r, strict=True)) for r in rows]


def medians(frame: pd.DataFrame) -> pd.DataFrame:
    found = frame.groupby(["data", "what"], sort=False)[["with", "without"]].median()
    ratios = frame["with"] / frame["without"]
    quartiles = ratios.groupby([frame["data"], frame["what"]], sort=False).quantile([0.25, 0.75])
    found["ratio"] = found["with"] / found["without"]
    return found.join(quartiles.unstack().set_axis(["low", "high"], axis=1))


def write_page(page: Path, found: pd.DataFrame) -> None:
    lines = [
        [*key, f"{1e3 * row['with']:.3g}", f"{1e3 * row['without']:.3g}", f"{row['ratio']:.2f}",
         f"{row['low']:.2f}–{row['high']:.2f}"]
        for key, row in found.iterrows()
    ]  # fmt: skip
    head = ["data", "what", "ms with", "ms without", "ratio", "middle half of runs"]
    write_table(page, "cost", head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/season_cost.csv"))
    parser.add_argument("--data", nargs="*", default=list(SEASONS), choices=list(SEASONS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--read", type=Path, help="results of an earlier run, not a run")
    parser.add_argument("--page", type=Path, default=None, help="page to write the table to")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.read:
        frame = pd.read_csv(given.read)
    else:
        frame = pd.DataFrame([row for name in given.data for row in look(name, given.repeats)])
        given.out.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(given.out, index=False, float_format="%.4g")
    found = medians(frame)
    print(found.round(5).to_string())
    if given.page is not None:
        write_page(given.page, found)


if __name__ == "__main__":
    main()
