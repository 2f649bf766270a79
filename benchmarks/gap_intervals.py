"""Coverage and sharpness of the bands of hidden entries, single steps and runs of steps.

    python benchmarks/gap_intervals.py --out docs/intervals/gaps.csv --page docs/calibration.md

Of each data set, and for each seed, a twentieth of the inner steps is hidden one by one, about as
many in runs of three, and a tenth of the entries of as many other steps. The default model is
fitted to the rest. Hidden totals, and hidden entries with an expectation above 1 and the others,
are compared with their distribution in `smooth`, with intervals that assume the model is correct
("model") and after the default check ("checked"). Needs TEMPORALNMF_DATA, except with --read.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from default_intervals import COMPONENTS, SAMPLES, data_of, judged, write_table
from joblib import Parallel, delayed

from temporalnmf import TemporalNMF

SEEDS, SHARE, RUN = 5, 0.05, 3
KINDS = {"entries": "single entries", "steps": "single steps", "runs": "runs of three steps"}
PARTS = ("totals", "above 1", "below 1")


def hidden(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The data with missing values, and the steps that have them, by kind."""
    seen = np.flatnonzero(~np.isnan(X[:, 0]))
    n = max(round(SHARE * len(seen)), 2)
    inner, data = rng.permutation(seen[2 : -RUN - 2]), X.copy()
    chosen: dict[str, list[int]] = {"runs": [], "steps": [], "entries": []}
    taken: set[int] = set()
    for kind, size, most in (("runs", RUN, n), ("steps", 1, n), ("entries", 1, n)):
        for first in inner.tolist():
            steps = set(range(first, first + size))
            near = set(range(first - 1, first + size + 1))
            if (
                len(chosen[kind]) < most
                and not near & taken
                and not np.isnan(X[sorted(near)]).any()
            ):
                chosen[kind] += sorted(steps)
                taken |= steps
    for kind in ("runs", "steps"):
        data[chosen[kind]] = np.nan
    for step in chosen["entries"]:
        data[step, rng.random(X.shape[1]) < 0.1] = np.nan
    return data, {kind: np.array(steps, dtype=int) for kind, steps in chosen.items()}


def look(name: str, seed: int) -> list[dict[str, object]]:
    """A row per setting, kind and step."""
    warnings.simplefilter("ignore")
    X = data_of(name)
    data, chosen = hidden(X, np.random.default_rng(seed))
    model = TemporalNMF(COMPONENTS[name], intervals="model", random_state=seed).fit(data)
    rows: list[dict[str, object]] = []
    for setting in ("model", "checked"):
        smooth = model.set_params(intervals=setting).smooth(n_samples=SAMPLES, random_state=0)
        for kind, steps in chosen.items():
            for step in steps.tolist():
                one, gone = smooth.at([step]), np.isnan(data[step])
                x, mean, entries = X[step], one.values[0], one.samples()[:, 0]
                row: dict[str, object] = {
                    "data": name.split(".")[0], "setting": setting, "kind": kind, "seed": seed,
                }  # fmt: skip
                if kind != "entries":
                    totals = one.samples("totals").reshape(-1, 1)
                    row |= judged(totals, np.array([x.sum()]), "totals")
                for part, which in (("above 1", mean > 1.0), ("below 1", mean <= 1.0)):
                    if (gone & which).any():
                        row |= judged(entries[:, gone & which], x[gone & which], part)
                rows.append(row)
    return rows


def write_page(page: Path, frame: pd.DataFrame) -> None:
    columns = [f"{part}: 0.9" for part in PARTS]
    lines: list[list[object]] = []
    for name in dict.fromkeys(frame["data"]):
        for kind, title in KINDS.items():
            here = frame[(frame["data"] == name) & (frame["kind"] == kind)]
            means = here.groupby("setting")[columns].mean()
            n = len(here) // 2
            shares = [means.at[s, c] for c in columns for s in ("model", "checked")]
            lines.append([name, title, n, *("–" if np.isnan(v) else f"{v:.2f}" for v in shares)])
    heads = [
        f"{part}, {s}" for part in ("totals", "mean > 1", "mean ≤ 1") for s in ("model", "checked")
    ]
    write_table(page, "gaps", ["data", "hidden", "steps", *heads], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/gaps.csv"))
    parser.add_argument("--data", nargs="*", default=list(COMPONENTS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--read", type=Path, help="results of an earlier run, not a run")
    parser.add_argument("--page", type=Path, default=None, help="page to write the table to")
    given = parser.parse_args()
    if given.read:
        frame = pd.read_csv(given.read)
    else:
        tasks = [delayed(look)(name, seed) for name in given.data for seed in range(given.seeds)]
        frame = pd.DataFrame([row for rows in Parallel(given.jobs)(tasks) for row in rows])
        given.out.parent.mkdir(parents=True, exist_ok=True)
        kept = [c for c in frame if ": " not in c or c.endswith((": 0.9", ": 0.5", "score"))]
        frame[kept].to_csv(given.out, index=False, float_format="%.5g")
    columns = [c for c in frame if c.endswith((": 0.9", "score"))]
    print(
        frame.groupby(["data", "kind", "setting"], sort=False)[columns].mean().round(2).to_string()
    )
    if given.page is not None:
        write_page(given.page, frame)


if __name__ == "__main__":
    main()
