"""Check intervals and verdicts of `temporalnmf compare` on data simulated from the default chain.

    python benchmarks/compare_simulation.py --datasets 200 --jobs 2 --page docs/compare.md

Paths of the chain and counts are drawn for every data set; components are the same in all of them,
or drawn as well. The true difference of two models is its mean over all data sets. A verdict is
false if it contradicts the sign of that. Finished data sets are stored in --out and not repeated.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom

from temporalnmf.chains import Rate
from temporalnmf.experiments import chosen, comparisons, our_protocol
from temporalnmf.experiments.runner import fit_task
from temporalnmf.metrics import kl_error
from temporalnmf.runtime.files import written_whole
from temporalnmf.runtime.signals import that_end_with_us

N, F, K, LEVEL = 50, 40, 2, 150.0
GRIDS: dict[str, list[dict[str, float]]] = {
    "last_value": [{}], "none": [{}], "gap": [{"alpha": 1.0}],
    "rate": [{"alpha": 100.0}, {"alpha": 1000.0}],
}  # fmt: skip
SPLITS, STARTS, ORIGINS = 5, 2, 20
PLANTED = 0.2
SETTINGS = [N, F, K, LEVEL, SPLITS, STARTS, ORIGINS, GRIDS]
# Comparisons of a run with all models.
MOST_COMPARISONS = 24
# Whether all data sets have the same components, or each its own.
Kind = Literal["same", "own"]
KINDS: tuple[Kind, ...] = ("same", "own")
TITLES = {"kle_s": "gap error", "kle_f": "forecast error"}


def drawn(seed: int, kind: Kind) -> tuple[Any, Any]:
    """Counts (N, F) and their true forecasts (N, F): the rates expected one step before."""
    of_components = np.random.default_rng(18 if kind == "same" else [18, seed, 1])
    W = of_components.dirichlet(np.ones(F), size=K)
    rng = np.random.default_rng([18, seed])
    H = Rate(300.0).sample(K, N, rng, h1=LEVEL).T
    expected = np.vstack([H[:1], H[:-1]]) @ W  # the chain preserves the mean
    return rng.poisson(H @ W).astype(float), expected


def fits(seed: int, kind: Kind, folder: Path) -> None:
    """Make all fits of one comparison that are not stored yet."""
    path = _path(seed, kind, folder)
    if path.exists() and json.loads(path.read_text(encoding="utf-8"))["settings"] == SETTINGS:
        return
    X, _ = drawn(seed, kind)
    settings = {"n_splits": SPLITS, "n_inits": STARTS, "n_origins": ORIGINS, "seed": seed}
    protocol = replace(our_protocol(K, **settings), grids=GRIDS)
    draws = protocol.draw(X)
    records = [
        fit_task(X, protocol, task, draws.W[:, :, task.init], draws.H[:, :, task.init],
                 draws.splits[task.split])
        for task in protocol.tasks(len(draws.splits) - SPLITS)
    ]  # fmt: skip
    with written_whole(path) as partial:
        found = {"settings": SETTINGS, "records": records}
        partial.write_text(json.dumps(found), encoding="utf-8")


def _path(seed: int, kind: Kind, folder: Path) -> Path:
    return folder / f"{kind}-{seed:04d}.json"


def disturbance(kind: Kind, n_datasets: int = 400) -> float:
    """s such that forecasts λ e^±s, signs at random, have a 20 % larger expected error than λ.

    Given the past, E x = λ, so that the error grows by Σ λ (cosh s − 1) on average.
    """
    error = total = 0.0
    for seed in range(10**6, 10**6 + n_datasets):  # other data sets than those of the fits
        X, expected = drawn(seed, kind)
        error += kl_error(X[-ORIGINS:], expected[-ORIGINS:])
        total += float(expected[-ORIGINS:].sum())
    return float(np.arccosh(1.0 + PLANTED * error / total))


def planted(seed: int, kind: Kind, rows: list[dict[str, Any]], size: float) -> list[dict[str, Any]]:
    """The chosen fits, and two more models: the true forecasts, and the same disturbed."""
    X, expected = drawn(seed, kind)
    rng = np.random.default_rng([19, seed])
    more = []
    for row in rows:
        if row["model"] == "rate" and row["origin"] is not None:
            n = row["origin"]
            worse = expected[n] * np.exp(size * rng.choice([-1.0, 1.0], size=F))
            for model, rate in (("truth", expected[n]), ("disturbed", worse)):
                more.append({**row, "model": model, "kle_f": kl_error(X[n], rate)})
    # Forecasts only: there is nothing to compare in gaps.
    nothing = {"kle_s": float("nan")}
    more += [
        {**row, **nothing, "model": model}
        for model in ("truth", "disturbed")
        for row in rows
        if row["model"] == "rate" and row["origin"] is None
    ]
    return [*rows, *more]


def judged(records: list[list[dict[str, Any]]], kind: Kind) -> dict[str, Any]:
    """How often intervals cover, and verdicts are false."""
    rows = [chosen(of_one) for of_one in records]
    found = [{(c.metric, c.reference, c.model): c for c in comparisons(one)} for one in rows]
    truth = {key: float(np.mean([one[key].difference.mean for one in found])) for key in found[0]}
    table = []
    for key, true in truth.items():
        intervals = [one[key].difference for one in found]
        inside = [i.low <= true <= i.high for i in intervals if not np.isnan(i.low)]
        said = [np.sign(one[key].difference.mean) for one in found if one[key].beyond_chance]
        table.append(
            {
                "error": TITLES[key[0]], "model": key[2], "reference": key[1], "difference": true,
                "intervals": len(inside), "covered": int(np.sum(inside)),
                "named": len(said), "false": int(np.sum(np.array(said) != np.sign(true))),
            }
        )  # fmt: skip
    false = sum(
        any(c.beyond_chance and np.sign(c.difference.mean) != np.sign(truth[key])
            for key, c in one.items())
        for one in found
    )  # fmt: skip
    size = disturbance(kind)
    named = named_of_most = 0
    for seed, one in enumerate(rows):
        tested = comparisons(planted(seed, kind, one, size), "truth")
        (c,) = (c for c in tested if (c.metric, c.model) == ("kle_f", "disturbed"))
        named += c.beyond_chance and c.difference.mean > 0.0
        named_of_most += c.difference.p * MOST_COMPARISONS < 0.05 and c.difference.mean > 0.0
    return {
        "datasets": len(records), "shape": [N, F, K], "splits": SPLITS, "starts": STARTS,
        "origins": ORIGINS, "comparisons": table,
        "covered": sum(row["covered"] for row in table),
        "intervals": sum(row["intervals"] for row in table), "false_runs": int(false),
        "planted_named": int(named), "planted_named_of_24": int(named_of_most),
    }  # fmt: skip


def rendered(page: str, found: dict[str, dict[str, Any]]) -> str:
    """A page with its figures."""
    for kind, of_kind in found.items():
        before, begin, rest = page.partition(f"<!-- {kind} components -->\n")
        _, end, after = rest.partition("<!-- end -->\n")
        page = before + begin + figures(of_kind) + end + after
    return page


def figures(found: dict[str, Any]) -> str:
    """As Markdown."""
    n = found["datasets"]
    lines = [
        f"{n} data sets.",
        "",
        "| error | model | reference | true difference | intervals that cover | named | falsely |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found["comparisons"]:
        share = 100.0 * row["covered"] / max(row["intervals"], 1)
        lines.append(
            f"| {row['error']} | {row['model']} | {row['reference']} | {row['difference']:+.3g} | "
            f"{row['covered']} of {row['intervals']} ({share:.1f} %) | {row['named']} | "
            f"{row['false']} |"
        )
    share = 100.0 * found["covered"] / found["intervals"]
    # The upper limit that a true rate of 5 % exceeds once in 20 times.
    most = int(binom.ppf(0.95, n, 0.05))
    return "\n".join(
        [
            *lines,
            "",
            f"- All intervals together: {found['covered']:,} of {found['intervals']:,} cover, "
            f"{share:.1f} %.",
            f"- Runs with any false verdict, over all comparisons: {found['false_runs']} of {n} "
            f"(a rate of 5 % gives up to {most}).",
            f"- The planted difference of 20 % is named in {found['planted_named']} of {n} runs; "
            f"corrected for the {MOST_COMPARISONS} comparisons of a run with all models, in "
            f"{found['planted_named_of_24']}.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/compare_simulation"))
    parser.add_argument("--page", type=Path, help="page to put the figures into")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    seeds = range(given.datasets)
    jobs = (delayed(fits)(seed, kind, given.out) for kind in KINDS for seed in seeds)
    Parallel(given.jobs, **that_end_with_us())(jobs)
    found = {}
    for kind in KINDS:
        texts = [_path(seed, kind, given.out).read_text(encoding="utf-8") for seed in seeds]
        found[kind] = judged([json.loads(text)["records"] for text in texts], kind)
        print(f"Components: {kind}\n\n{figures(found[kind])}")
    if given.page is not None:
        page = given.page.read_text(encoding="utf-8")
        given.page.write_text(rendered(page, found), encoding="utf-8")
        text = json.dumps(found, indent=1) + "\n"
        given.page.with_suffix(".json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
