"""From how many steps on `season="auto"` sees a season that is there.

    python benchmarks/short_seasons.py --out docs/seasons/short.csv --page docs/seasons.md

The first steps of the three seasonal data sets, from two cycles on: the next cycle is forecast with
`season="auto"`, with the season given, and without any. Needs TEMPORALNMF_DATA, except with --read.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from default_intervals import COMPONENTS, write_table
from seasons import CASES, frame_of

from temporalnmf import TemporalNMF
from temporalnmf.metrics import kl_error

SEASONS = {"flights2001": "week", "unemployment": "year", "bird strikes": "year"}
# Ends of the ranges of lengths, in cycles.
RANGES = ((2, 3), (3, 4), (4, 6), (6, 8))


def look(name: str) -> list[dict[str, object]]:
    """A row per length."""
    frame, case, rows = frame_of(name), CASES[name], []
    cycle, K = case.cycle, COMPONENTS[case.file]
    last = min(8 * cycle, len(frame) - cycle)
    for n in range(2 * cycle, last, max(1, cycle // 6)):
        truth, row = frame.to_numpy()[n : n + cycle], {"data": name, "steps": n}
        for way, season in (("auto", "auto"), ("given", SEASONS[name]), ("none", None)):
            model = TemporalNMF(K, season=season, intervals="model", random_state=0)
            values = model.fit(frame.iloc[:n]).forecast(cycle).values
            row[way] = kl_error(truth, np.maximum(values, 0.01)) / cycle
            if way == "auto":
                row["chosen"] = " and ".join(model.season_)
        rows.append(row | {"cycles": n / cycle})
    return rows


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for name, part in frame.groupby("data", sort=False):
        for low, high in RANGES:
            here = part[(part["cycles"] >= low) & (part["cycles"] < high)]
            if len(here):
                seen = (here["chosen"].fillna("") != "").sum()
                errors = here[["auto", "given", "none"]].mean()
                lines.append([name, f"{low} to {high}", len(here), seen, *errors])
    heads = ["data", "cycles", "lengths", "season chosen", "auto", "given", "none"]
    return pd.DataFrame(lines, columns=heads)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/short_seasons.csv"))
    parser.add_argument("--read", type=Path, help="results of an earlier run, not a run")
    parser.add_argument("--page", type=Path, default=None, help="page to write the table to")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.read:
        frame = pd.read_csv(given.read)
    else:
        frame = pd.DataFrame([row for name in SEASONS for row in look(name)])
        given.out.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(given.out, index=False, float_format="%.5g")
    found = summary(frame)
    print(found.round(1).to_string(index=False))
    if given.page is not None:
        lines = [[*row[:4], *(f"{v:,.3g}" for v in row[4:])] for row in found.to_numpy().tolist()]
        write_table(given.page, "short", list(found.columns), lines)


if __name__ == "__main__":
    main()
