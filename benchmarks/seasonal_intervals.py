"""Coverage and interval scores of default 90 % intervals with and without a season.

    python benchmarks/seasonal_intervals.py --page docs/calibration.md

The three data sets with seasons, by rolling origins as in `default_intervals.py`: at each of 12
origins a default model is fitted to the steps before it, with their dates (`season="auto"`) or
without a season, and forecasts six steps. Needs TEMPORALNMF_DATA.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from default_intervals import COMPONENTS, SAMPLES, STEPS, judged, origins_of, write_table
from seasons import CASES, frame_of

from temporalnmf import TemporalNMF

NAMES = ("flights2001", "unemployment", "bird strikes")


def look(name: str, season: str | None, origin: int) -> list[dict[str, object]]:
    """A row per step after the origin."""
    frame = frame_of(name)
    model = TemporalNMF(COMPONENTS[CASES[name].file], season=season, random_state=0)
    forecast = model.fit(frame.iloc[:origin]).forecast(STEPS, n_samples=SAMPLES)
    samples, rows = forecast.samples(), []
    for t, x in enumerate(frame.iloc[origin : origin + STEPS].to_numpy()):
        of_step, large = samples[:, t], forecast.values[t] > 1.0
        row = {"data": name, "season": season or "none"}
        row |= judged(of_step.sum(axis=1)[:, None], np.array([x.sum()]), "totals")
        rows.append(row | judged(of_step[:, large], x[large], "entries"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path, default=None, help="page to write the table to")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [
        row
        for name in NAMES
        for season in (None, "auto")
        for origin in origins_of(len(frame_of(name)), 12).tolist()
        for row in look(name, season, origin)
    ]
    columns = ["totals: 0.9", "entries: 0.9", "totals: score", "entries: score"]
    means = pd.DataFrame(rows).groupby(["data", "season"], sort=False)[columns].mean()
    print(means.round(3).to_string())
    if given.page is not None:
        head = ["data", "season", "totals inside", "entries, mean > 1, inside", "score of totals",
                "score of entries"]  # fmt: skip
        lines = [
            [*key, f"{r.iloc[0]:.2f}", f"{r.iloc[1]:.2f}", f"{r.iloc[2]:,.4g}", f"{r.iloc[3]:,.4g}"]
            for key, r in means.iterrows()
        ]
        write_table(given.page, "seasonal", head, lines)


if __name__ == "__main__":
    main()
