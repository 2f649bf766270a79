"""Errors of filled gaps in seasonal data: single steps, runs of half a cycle and of a whole one.

    python benchmarks/seasonal_gaps.py --out docs/seasons/gaps.csv --page docs/seasons.md

For each of ten seeds and each kind of gap, about a tenth of the steps is hidden, at least a cycle
away from both ends. Models fill the gaps with their means, `linear` interpolates each feature, and
`seasonal` takes the mean of the nearest observed steps of the same phase before and after, weighted
by distance and scaled to the level: the ratio of observed totals to such means in the half cycles
around the gap. Interpolations get 0.05 in the KLE of entries; all values are at least 0.01.
Needs TEMPORALNMF_DATA, except with --read.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from default_intervals import COMPONENTS, write_table
from seasons import CASES, MARKS, SETTINGS, errors, frame_of, known_settings

from temporalnmf import TemporalNMF

SEEDS, SHARE = 10, 0.1
SEASONAL = ("flights2001", "unemployment", "bird strikes")
# Kinds of gaps, and their length as a share of the cycle.
KINDS = {"single steps": 0.0, "half a cycle": 0.5, "a cycle": 1.0}


def hidden(n_steps: int, cycle: int, length: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Runs of steps to hide, at least a step apart."""
    wanted, gaps = max(2, round(SHARE * n_steps / length)), []
    free = np.ones(n_steps, dtype=bool)
    free[:cycle] = free[-cycle:] = False
    for start in rng.permutation(n_steps - length).tolist():
        if len(gaps) < wanted and free[start : start + length].all():
            gaps.append(np.arange(start, start + length))
            free[start - 1 : start + length + 1] = False
    return gaps


def linear(data: np.ndarray) -> np.ndarray:
    """Each feature interpolated between observed steps."""
    return pd.DataFrame(data).interpolate(limit_direction="both").to_numpy()


def same_phase(data: np.ndarray, step: int, cycle: int) -> np.ndarray:
    """The mean of the nearest observed steps of the phase, weighted by distance."""
    found = []
    for sign in (-1, 1):
        n = step + sign * cycle
        while 0 <= n < len(data) and np.isnan(data[n]).any():
            n += sign * cycle
        if 0 <= n < len(data):
            found.append(n)
    if len(found) == 1:
        return data[found[0]]
    before, after = found
    share = (step - before) / (after - before)
    return (1.0 - share) * data[before] + share * data[after]


def seasonal(data: np.ndarray, gaps: list[np.ndarray], cycle: int) -> np.ndarray:
    """The steps of the same phase in neighbouring cycles, scaled to the level."""
    found, half = data.copy(), -(-cycle // 2)
    for gap in gaps:
        around = [*range(gap[0] - half, gap[0]), *range(gap[-1] + 1, gap[-1] + half + 1)]
        near = [n for n in around if not np.isnan(data[n]).any()]
        expected = sum(same_phase(data, n, cycle).sum() for n in near)
        level = data[near].sum() / expected if near else 1.0
        for n in gap:
            found[n] = level * same_phase(data, n, cycle)
    return found


def look(name: str, kind: str, seed: int, settings: list[str]) -> list[dict[str, Any]]:
    """A row per method: mean errors of the hidden steps."""
    frame, case = frame_of(name), CASES[name]
    X, length = frame.to_numpy(), max(1, round(KINDS[kind] * case.cycle))
    gaps = hidden(len(X), case.cycle, length, np.random.default_rng(seed))
    steps = np.concatenate(gaps)
    data = frame.copy()
    data.iloc[steps] = np.nan
    known = data.to_numpy()
    filled = {"linear": linear(known), "seasonal": seasonal(known, gaps, case.cycle)}
    rows = []
    for setting in settings:
        model = TemporalNMF(
            COMPONENTS[case.file], intervals="model", random_state=seed, **SETTINGS[setting]
        ).fit(data)
        filled[setting] = model.inverse_transform(model.activations_)
    for method, values in filled.items():
        added = 0.05 if method in ("linear", "seasonal") else 0.0
        found = pd.DataFrame([errors(X[n], values[n], added) for n in steps]).mean()
        row = {"data": name, "gaps": kind, "seed": seed, "method": method, "steps": len(steps)}
        rows.append(row | found.to_dict())
    return rows


def write_page(page: Path, frame: pd.DataFrame) -> None:
    """One table: a line per data set and method, columns by kind of gap and measure."""
    measures = {m: MARKS[m] for m in ("kle", "total_mae")}
    heads = [f"{title}, {kind}" for title in measures.values() for kind in KINDS]
    lines: list[list[object]] = []
    means = frame.groupby(["data", "method", "gaps"], sort=False)[list(MARKS)].mean()
    for name in dict.fromkeys(frame["data"]):
        wide = means.loc[name][list(measures)].unstack("gaps")[
            [(m, kind) for m in measures for kind in KINDS]
        ]
        best = wide.min()
        for method, row in wide.reindex(dict.fromkeys(frame["method"])).iterrows():
            cells = [f"**{v:,.3g}**" if v <= best[c] else f"{v:,.3g}" for c, v in row.items()]
            lines.append([name, method, *cells])
    write_table(page, "gaps", ["data", "method", *heads], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/seasonal_gaps.csv"))
    parser.add_argument("--data", nargs="*", default=list(SEASONAL), choices=list(SEASONAL))
    parser.add_argument("--settings", nargs="*", default=known_settings(), choices=list(SETTINGS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--read", type=Path, help="results of an earlier run, not a run")
    parser.add_argument("--page", type=Path, default=None, help="page to write the table to")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.read:
        frame = pd.read_csv(given.read)
    else:
        frame = pd.DataFrame(
            [
                row
                for name in given.data for kind in KINDS for seed in range(given.seeds)
                for row in look(name, kind, seed, given.settings)
            ]
        )  # fmt: skip
        given.out.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(given.out, index=False, float_format="%.5g")
    keys = ["data", "gaps", "method"]
    print(frame.groupby(keys, sort=False)[list(MARKS)].mean().round(2).to_string())
    if given.page is not None:
        write_page(given.page, frame)


if __name__ == "__main__":
    main()
