"""The page docs/benchmarks/README.md, from results.json alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from speed.summary import (
    Records,
    cases,
    faster,
    memory_slope,
    records,
    slope,
    speed_up,
    timed,
    unique,
)

Results = dict[str, Any]
# What is measured, the target, the result, and whether the target is met.
Row = tuple[str, str, str, bool | None]


def render(results: Results) -> str:
    sections = [_head(results), _must(results)]
    for part, section in SECTIONS.items():
        if part in results["parts"]:
            sections.append(section(results))
    return "\n\n".join(sections) + "\n"


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def duration(seconds: float) -> str:
    """Three digits and a unit that suits."""
    unit, size = next((u for u in (("s", 1.0), ("ms", 1e-3)) if seconds >= u[1]), ("µs", 1e-6))
    return f"{seconds / size:#.3g}".rstrip(".") + f" {unit}"


def spread(seconds: list[float] | None) -> str:
    """Best, median and worst repetition."""
    if not seconds:
        return "–"
    return " / ".join(duration(f(seconds)) for f in (np.min, np.median, np.max))


def times(ratio: float | None) -> str:
    if ratio is None:
        return "–"
    return f"{ratio:.0f}×" if ratio >= 20 else f"{ratio:.1f}×"


def quartiles(values: list[float]) -> str:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{times(middle)} ({times(low)} to {times(high)})"


def named(dataset: str, n_components: int | None = None) -> str:
    known = {
        "nips": "NIPS", "lastfm": "last.fm", "sotu": "State of the Union",
        "icews_2001_2003": "ICEWS 2001–2003", "icews14": "ICEWS 2014", "tabla": "tabla",
    }  # fmt: skip
    name = known.get(dataset, dataset)
    return f"{name}, K = {n_components}" if n_components else name


def _head(results: Results) -> str:
    machine = results["machine"]
    versions = ", ".join(
        f"{name} {machine[name]}" for name in ("numpy", "scipy", "numba", "scikit-learn")
    )
    torch = [r["version"] for r in records(results, "iteration", who="torchnmf")]
    versions += f", torch {torch[0]} with torchnmf" if torch else "; torchnmf was not available"
    parts = results["parts"]
    rows = [(f"`{n}`", p["date"], f"{p['took']} s", f"`{p['command']}`") for n, p in parts.items()]
    warning = (
        "\n\n**Some parts were run with `--quick`, on reduced data: ignore their figures.**"
        if any(p["quick"] for p in parts.values())
        else ""
    )
    return f"""# Speed and memory

This page compares the speed of temporalnmf with scikit-learn's `NMF`, torchnmf and a plain-NumPy
version of the same algorithm, and shows how time and memory grow with the data. `make bench`
repeats all measurements and writes this page, its plots and [the raw
records](results.json).{warning} There are separate pages on [posterior draws](gibbs.md), [fits on a
cluster](cluster.md) and [new steps after a fit](append_chunking.md).

Machine: {machine["cpu"]}, {machine["cores"]} cores, {machine["system"]}. Python
{machine["python"]}, {versions}.

{table(("part", "measured on", "took", "command"), rows)}

All times are wall-clock times, in float64. Programs that are compared run alternately in one
process, after a warm-up round. Ratios compare the best repetitions of both sides; tables show the
**best / median / worst** repetition. An *iteration* updates all weights and all activations once,
without evaluating the objective (scikit-learn runs with `tol=0`). Where whole fits are timed, ours
evaluate the objective once in up to ten iterations."""


def _must(results: Results) -> str:
    rows = [row for make in MUST for row in make(results)]
    words = {True: "yes", False: "**no**", None: "not measured"}
    body = [(what, bar, measured, words[reached]) for what, bar, measured, reached in rows]
    remarks = Path(__file__).with_name("remarks.md").read_text(encoding="utf-8").rstrip()
    head = "## Targets"
    return f"{head}\n\n{table(('what', 'target', 'measured', 'met'), body)}\n\n{remarks}"


def _least(what: str, bar: float, found: dict[str, float | None], show: int = 4) -> Row:
    """All have to reach the target; the smallest are shown."""
    known = {name: value for name, value in found.items() if value is not None}
    if not known:
        return what, f"{bar:g}×", "–", None
    ordered = sorted(known, key=lambda name: known[name])
    text = ", ".join(f"{name} {times(known[name])}" for name in ordered[:show])
    if len(known) > show:
        text += f" … {ordered[-1]} {times(known[ordered[-1]])}"
    return what, f"{bar:g}×", text, known[ordered[0]] >= bar


def _must_iteration(results: Results) -> list[Row]:
    ours = {"who": "temporalnmf"}
    theirs = {"who": "scikit-learn"}

    def ratios(names: dict[str, int], chains: tuple[str, ...], threads: int) -> dict[str, Any]:
        others = 1 if threads == 1 else 0
        found = {}
        for (name, K), chain in product(names.items(), chains):
            data = {"dataset": name, "K": K}
            found[f"{named(name)} {chain}"] = faster(
                timed(results, **theirs, **data, threads=others),
                timed(results, **ours, **data, chain=chain, threads=threads),
            )
        return found

    both, moving = {"nips": 3, "lastfm": 5}, ("gap", "rate", "hier_rate")

    def before(chain: str) -> dict[str, Any]:
        return {
            named(name): faster(
                timed(results, who="numpy", dataset=name, K=K, chain=chain),
                timed(results, **ours, dataset=name, K=K, chain=chain, threads=1),
            )
            for name, K in cases(records(results, "iteration", who="numpy"))
        }

    plain = "against scikit-learn `mu`/KL"
    return [
        _least(
            f"NIPS and last.fm, one iteration {plain}, one thread each", 4.0,
            ratios(both, moving, 1),
        ),
        _least(f"the same, our 2 threads {plain} as installed", 7.0, ratios(both, moving, 2)),
        *(
            _least(f"{chain} iteration against plain NumPy, one thread each", 15.0, before(chain))
            for chain in ("bgar", "shape")
        ),
        *(
            _least(
                f"ICEWS 2014 iteration, K = {K}, {plain} on sparse data, one thread each", bar,
                ratios({"icews14": K}, ("none", "rate"), 1),
            )
            for K, bar in ((5, 8.0), (20, 10.0))
        ),
    ]  # fmt: skip


def _must_peers(results: Results) -> list[Row]:
    found = {
        named(r["dataset"]): faster(r["scikit_learn"], r["seconds"]) if r["reached"] else 0.0
        for r in records(results, "peers")
    }
    what = (
        "seconds to the objective of scikit-learn after 1000 iterations, plain NMF, K = 5: "
        "accelerated, 2 threads, against scikit-learn as installed"
    )
    return [_least(what, 20.0, found, show=6)]


def _must_threads(results: Results) -> list[Row]:
    found = _thread_ratios(results)
    small = {name: ratio for name, ratio in found.items() if name.startswith("NIPS")}
    large = {name: ratio for name, ratio in found.items() if name not in small}
    return [
        _least("2 threads against 1, NIPS", 1.4, small),
        _least("2 threads against 1, data of 10⁶ entries and more", 1.75, large),
    ]


def _thread_ratios(results: Results) -> dict[str, float | None]:
    one, two = (records(results, "threads", threads=n) for n in (1, 2))
    return {
        f"{named(a['dataset'])}, {a['chain']}": faster(a["seconds"], b["seconds"])
        for a, b in zip(one, two, strict=True)
    }


def _must_acceleration(results: Results) -> list[Row]:
    rows: list[Row] = []
    for scale in ("log", "linear"):
        found = records(results, "acceleration", scale=scale)
        what = f"accelerated against MM, time to MM's objective at 2000 iterations, {scale} scale"
        if not found:
            rows.append((what, "median 5×", "–", None))
            continue
        all_the_way = [speed_up(r) for r in found]
        there = [speed_up(r, "mm_seconds_there") for r in found]
        measured = (
            f"median {times(float(np.median(there)))} over {len(found)} runs "
            f"({times(float(np.median(all_the_way)))} counting all of MM's 2000 iterations)"
        )
        rows.append((what, "median 5×, goal 8×", measured, bool(np.median(there) >= 5.0)))
    return rows


def _must_limit(results: Results) -> list[Row]:
    shares = _limit_shares(results)
    limit = ", ".join(f"{chain} {share:.0%}" for chain, share in shares.items())
    rows: list[Row] = [
        (
            "time of the divisions alone / time of an iteration, NIPS, K = 3, one thread",
            "55 %", limit or "–", min(shares.values()) >= 0.55 if shares else None,
        )
    ]  # fmt: skip
    found = records(results, "limit", what="share")
    largest = sorted(found, key=_share, reverse=True)[:3]
    text = ", ".join(f"{named(r['dataset'])} {r['chain']} {_share(r):.0%}" for r in largest)
    rows.append(
        (
            "share of the chain's sweep in an iteration, every chain and dataset", "≤ 30 %",
            f"largest: {text}" if found else "–", _share(largest[0]) <= 0.3 if found else None,
        )
    )  # fmt: skip
    return rows


def _limit_shares(results: Results) -> dict[str, float]:
    best = {r["run"]: min(r["seconds"]) for r in records(results, "limit", what="limit")}
    divisions = best.pop("divisions", 0.0)
    return {chain: divisions / seconds for chain, seconds in best.items()}


def _share(record: dict[str, Any]) -> float:
    return min(record["sweep"]) / min(record["iteration"])


def _must_memory(results: Results) -> list[Row]:
    rows: list[Row] = []
    for kind, bar in (("dense", 0.5), ("sparse", 1.5)):
        found = {
            solver: memory_slope(records(results, "memory", kind=kind, solver=solver))
            for solver in unique(r["solver"] for r in records(results, "memory", kind=kind))
        }
        text = ", ".join(f"{solver} {value:.2f}" for solver, value in found.items())
        rows.append(
            (
                f"peak memory beyond the data, {kind}, relative to their size", f"≤ {bar:g}",
                text or "–", max(found.values()) <= bar if found else None,
            )
        )  # fmt: skip
    return rows


def _must_growth(results: Results) -> list[Row]:
    rows: list[Row] = []
    for axis in ("nnz", "N"):
        found = records(results, "growth", axis=axis)
        value = slope(found)[0] if found else None
        rows.append(
            (
                f"slope of time against {axis}", "≤ 1.05", "–" if value is None else f"{value:.2f}",
                None if value is None else value <= 1.05,
            )
        )  # fmt: skip
    return rows


def _must_startup(results: Results) -> list[Row]:
    found = {r["what"]: r for r in records(results, "startup") if "chain" not in r}
    first = records(results, "startup", what="first fit, nothing compiled yet")
    if not found:
        return [("start-up", "", "–", None)]
    best = {what: min(r["seconds"]) for what, r in found.items()}
    more = best["import temporalnmf"] - best["import sklearn.base"]
    numba = found["import temporalnmf"]["loads_numba"]
    help_text = best["temporalnmf --help"]
    compile_text = ", ".join(f"{r['chain']} {duration(r['seconds'][0])}" for r in first)
    return [
        (
            "`import temporalnmf` beyond `import sklearn.base`, without numba", "≤ 0.2 s",
            f"{more:+.2f} s, {'with' if numba else 'without'} numba", more <= 0.2 and not numba,
        ),
        ("`temporalnmf --help`", "< 0.4 s", duration(help_text), help_text < 0.4),
        (
            "first fit after installation, compilation included", "< 15 s", compile_text or "–",
            all(r["seconds"][0] < 15.0 for r in first) if first else None,
        ),
    ]  # fmt: skip


def _iteration(results: Results) -> str:
    scale = records(results, "iteration", who="temporalnmf")[0]["scale"]
    text = f"""## One iteration of majorize–minimize

![Time of an iteration per dataset and chain](iteration.png)

All programs start from the same point, 30 iterations after a random start, on the {scale} scale.
scikit-learn's time is the difference between a fit of one iteration and one of many, so that its
start-up cancels; `threadpool_limits(1)` restricts it to one thread where the page says "one
thread". It allocates arrays of the size of the data in each iteration, and is up to five times
slower if the allocator returns their memory to the system every time. Once a process has freed a
large array, it keeps such memory: everything is compared in that state, and "in a new process" is
scikit-learn without it. scikit-learn and torchnmf have plain NMF only, so all chains are compared
with that (Itakura–Saito on the tabla, Kullback–Leibler elsewhere). torchnmf runs in its own process
and evaluates its objective once in ten iterations. The [plain-NumPy
version](../../benchmarks/numpy_mm.py) is for complete dense counts; its time is shown only if it
decreases the same objective."""
    for name, K in cases(records(results, "iteration")):
        data = {"dataset": name, "K": K}
        sklearn = [timed(results, **data, who="scikit-learn", threads=n) for n in (1, 0)]
        torch = [timed(results, **data, who="torchnmf", threads=n) for n in (1, 0)]
        new = timed(results, **data, who="scikit-learn in a new process")
        rows = []
        for chain in unique(r["chain"] for r in records(results, "iteration", **data)):
            one, two = (
                timed(results, **data, who="temporalnmf", chain=chain, threads=n) for n in (1, 2)
            )
            numpy = timed(results, **data, who="numpy", chain=chain)
            failed = records(results, "iteration", **data, who="numpy", chain=chain, descends=False)
            rows.append(
                (
                    chain, spread(one), spread(two),
                    "does not descend" if failed else spread(numpy),
                    times(faster(numpy, one)), times(faster(sklearn[0], one)),
                    times(faster(sklearn[1], two)),
                )
            )  # fmt: skip
        header = (
            "chain", "1 thread", "2 threads", "plain NumPy, 1 thread", "against it",
            "against scikit-learn, 1 thread each", "2 threads against scikit-learn as installed",
        )  # fmt: skip
        others = f"scikit-learn: {spread(sklearn[0])} on one thread, {spread(sklearn[1])} as "
        others += f"installed, {spread(new)} in a new process on one thread."
        if torch[0]:
            others += (
                f" torchnmf: {spread(torch[0])} on one thread, {spread(torch[1])} as installed."
            )
        text += f"\n\n### {named(name, K)}\n\n{others}\n\n{table(header, rows)}"
    return text


def _acceleration(results: Results) -> str:
    text = """## The accelerated solver against MM

![Speed-up of every run](acceleration.png)

Both solvers start from the same random point, on one thread. MM runs 2000 iterations; accelerated
runs until its objective is as low as MM's last one (to a relative 10⁻¹²), for at most 2000
iterations. The speed-up is MM's time to this objective divided by that of accelerated. If MM
reached it before its last iteration, the earlier time counts. A run of accelerated that ends in a
worse local optimum counts as a speed-up of zero. A *pass* goes over the data once; an iteration of
MM takes two, and an evaluation of the objective one. In the plot, dashed lines mark 5× and 8×, the
solid line is the median, and crosses are runs that ended in another optimum.

Cells show the median over the seeds, with the lower and upper quartile."""
    for scale in unique(r["scale"] for r in records(results, "acceleration")):
        found = records(results, "acceleration", scale=scale)
        names, chains = unique(r["dataset"] for r in found), unique(r["chain"] for r in found)
        cells = [
            [
                quartiles(
                    [
                        speed_up(r, "mm_seconds_there")
                        for r in found
                        if (r["dataset"], r["chain"]) == (name, chain)
                    ]
                )
                for name in names
            ]
            for chain in chains
        ]
        smoothing = "smoothing 0.1, our default" if scale == "log" else "no smoothing, the paper's"
        seeds = len(unique(r["seed"] for r in found))
        text += f"\n\n### {scale.capitalize()} scale, {smoothing}; seeds: {seeds}\n\n"
        text += table(("chain", *map(named, names)), zip(chains, *zip(*cells, strict=True),
                                                         strict=True))  # fmt: skip
        text += "\n\n" + _acceleration_totals(found)
    return text


def _acceleration_totals(found: Records) -> str:
    there = [speed_up(r, "mm_seconds_there") for r in found]
    whole = [speed_up(r) for r in found]
    reached = [r for r in found if r["reached"]]
    passes = [r["mm_passes"] / r["passes"] if r["reached"] else 0.0 for r in found]
    early = [r for r in found if r["mm_iterations_there"] < r["mm_iterations"]]
    text = (
        f"All {len(found)} runs: {quartiles(there)} in time, {quartiles(passes)} in passes; at "
        f"least 5× in {np.mean(np.array(there) >= 5.0):.0%} of them. Counting all of MM's "
        f"iterations: {quartiles(whole)}. MM reached the objective before its last iteration in "
        f"{len(early)} runs. Accelerated took {np.median([r['iterations'] for r in found]):.0f} "
        f"iterations and {np.median([r['passes'] for r in found]):.0f} passes in the median, and "
        f"reached MM's objective in {len(reached)} runs."
    )
    elsewhere = [r for r in found if not r["reached"]]
    if elsewhere:
        rows = (
            (named(r["dataset"]), r["chain"], r["seed"], r["iterations"], f"{r['gap']:.1e}")
            for r in sorted(elsewhere, key=lambda r: -r["gap"])
        )
        header = ("data", "chain", "seed", "iterations", "objective above MM's, relative")
        text += "\n\nRuns that ended in another optimum:\n\n" + table(header, rows)
    return text


def _peers(results: Results) -> str:
    rows = []
    for r in records(results, "peers"):
        ratio = times(faster(r["scikit_learn"], r["seconds"]))
        ended = ratio if r["reached"] else f"not reached, {r['gap']:.1e} above"
        rows.append(
            (named(r["dataset"]), spread(r["scikit_learn"]), spread(r["seconds"]),
             r["iterations"], ended)
        )  # fmt: skip
    header = (
        "data", "scikit-learn, 1000 iterations", "accelerated to the same objective",
        "its iterations", "faster",
    )  # fmt: skip
    return f"""## Time to the same objective as scikit-learn

Plain NMF with K = 5, from the same random start. scikit-learn, as installed, makes 1000
multiplicative updates; the accelerated solver on two threads runs until its objective is as low
(Itakura–Saito on the tabla, Kullback–Leibler elsewhere).

{table(header, rows)}"""


def _growth(results: Results) -> str:
    about = {
        "nnz": "non-zeros of a sparse 10⁵ × 1000 matrix (10⁸ fill it), K = 5",
        "N": "steps of dense data with 100 features, K = 5",
        "K": "components, dense 2000 × 500",
    }
    text = """## Growth

![Time of an iteration against non-zeros, steps and components](growth.png)

Time of one iteration with the chain `rate`, on one thread. Slopes are fitted on the log–log scale
to the upper half of each range; 1 is linear."""
    rows = []
    for axis, words in about.items():
        found = records(results, "growth", axis=axis)
        if found:
            exponent, _, points = slope(found)
            series = ", ".join(f"{r['size']:g}: {duration(min(r['seconds']))}" for r in found)
            rows.append((words, f"{exponent:.2f} ({points} points)", series))
    return text + "\n\n" + table(("what grows", "slope", "best times"), rows)


def _memory(results: Results) -> str:
    rows = [
        (
            r["data"], r["solver"], f"{r['data_bytes'] / 1e6:.0f} MB",
            f"{r['factor_bytes'] / 1e6:.1f} MB", f"{r['peak'] / 1e6:.0f} MB",
            f"{r['peak'] / r['data_bytes']:.2f}",
        )
        for r in records(results, "memory")
    ]  # fmt: skip
    header = ("data", "solver", "size of the data", "W and H", "peak beyond", "relative to data")
    return f"""## Memory

The table shows the peak resident memory during `fit`, less what the process used just before, when
the data were already loaded. Each row was measured in a new process, after a tiny fit that loads
the compiled code. The table of targets uses the difference between the two sizes, so that memory
for W and H, which the target does not limit, cancels.

{table(header, rows)}"""


def _threads(results: Results) -> str:
    ratios = _thread_ratios(results)
    one, two = (records(results, "threads", threads=n) for n in (1, 2))
    rows = [
        (name, spread(a["seconds"]), spread(b["seconds"]), times(ratio))
        for (name, ratio), a, b in zip(ratios.items(), one, two, strict=True)
    ]
    return f"""## Threads

Time of one iteration, log scale, K = 3 on NIPS and 5 elsewhere.

{table(("data, chain", "1 thread", "2 threads", "faster"), rows)}"""


def _limit(results: Results) -> str:
    rows = [(r["run"], spread(r["seconds"])) for r in records(results, "limit", what="limit")]
    shares = ", ".join(f"{chain} {s:.0%}" for chain, s in _limit_shares(results).items())
    found = records(results, "limit", what="share")
    names, chains = unique(r["dataset"] for r in found), unique(r["chain"] for r in found)
    body = []
    for chain in chains:
        both = [[r for r in found if (r["dataset"], r["chain"]) == (name, chain)] for name in names]
        body.append((chain, *(" · ".join(f"{_share(r):.0%}" for r in cell) for cell in both)))
    return f"""## How close to the machine's limit

Every iteration has to divide each entry by its rate twice, once for W and once for H. On NIPS with
K = 3 and one thread, these divisions alone (`np.divide` of two arrays of the size of the data into
a third, twice) take this share of the time of an iteration: {shares}.

{table(("run", "best / median / worst"), rows)}

The next table shows the share of the chain in an iteration: the time of its sweep over H, 30
iterations after the start, divided by that of a whole iteration from the same point; log scale ·
linear scale.

{table(("chain", *map(named, names)), body)}"""


def _startup(results: Results) -> str:
    rows = [
        (
            f"`{r['what']}`" if "chain" not in r else f"{r['what']}, {r['chain']}",
            spread(r["seconds"]) if len(r["seconds"]) > 1 else duration(r["seconds"][0]),
            {True: "yes", False: "no"}.get(r.get("loads_numba"), ""),
        )
        for r in records(results, "startup")
    ]
    return f"""## Start-up

Each row was measured in new processes. `--help` is the time of the whole process; imports and fits
are timed inside it. The first fit after installation compiles (measured with an empty cache); later
ones load the compiled code.

{table(("what", "time", "loads numba"), rows)}"""


SECTIONS: dict[str, Callable[[Results], str]] = {
    "iteration": _iteration, "acceleration": _acceleration, "peers": _peers, "growth": _growth,
    "memory": _memory, "threads": _threads, "limit": _limit, "startup": _startup,
}  # fmt: skip

MUST: tuple[Callable[[Results], list[Row]], ...] = (
    _must_iteration, _must_peers, _must_threads, _must_acceleration, _must_limit, _must_memory,
    _must_growth, _must_startup,
)  # fmt: skip
