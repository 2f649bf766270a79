"""Memory, threads and open files over many fits in one process.

    python tools/leaks.py --fits 1000

Shapes, chains, solvers and numbers of threads are drawn for every fit, and now and then the data
are large enough for threads; some models are saved, loaded and asked for forecasts. After a
warm-up, in which everything is compiled, the resident memory is noted every 50 fits. Its growth per
fit is the median of all slopes between two notes (Theil-Sen), which single jumps of the allocator
do not move.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import sys
import tempfile
import threading
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import psutil
from scipy import sparse
from scipy.stats import theilslopes

from temporalnmf import TemporalNMF, load
from temporalnmf.registry import CHAINS
from temporalnmf.solvers import Gibbs

EVERY = 50
_MOST_TRACED = 2.0  # kB per fit: caches that fill up
_SHAPES = ((12, 8), (30, 20), (17, 40), (40, 11), (25, 25))
_LARGE = (30, 2600)  # two shards and more, see `observations/dense.py`
_SOLVERS = ("accelerated", "accelerated", "accelerated", "mm", "gibbs")


def fits(folder: Path, numbers: Iterable[int], seen: Counter) -> Iterator[None]:
    """Fits determined by their numbers; `seen` counts the kinds that occurred."""
    for number in numbers:
        # In a function of its own: nothing of it is there when memory is looked at.
        seen.update(a_fit(folder, number))
        yield


def a_fit(folder: Path, number: int) -> list[str]:
    rng = np.random.default_rng(number)
    large, thin, saved = rng.random(3) < (0.25, 0.4, 0.3)
    chain, solver = str(rng.choice(list(CHAINS))), str(rng.choice(_SOLVERS))
    if chain == "none" and (saved or solver == "gibbs"):
        chain = "gap"  # there is no law to draw or to forecast from
    n_times, n_features = _LARGE if large else _SHAPES[rng.integers(len(_SHAPES))]
    X = rng.poisson(rng.gamma(2.0, 1.0, (n_times, 2)) @ rng.gamma(0.5, 4.0, (2, n_features)))
    data = sparse.csr_array(X.astype(float)) if thin else X.astype(float)
    usual, most = threading.active_count(), []
    model = TemporalNMF(
        int(rng.integers(1, 4)), chain=chain, n_jobs=int(rng.choice([1, 2, 2])),
        solver=Gibbs(8, 4, 2) if solver == "gibbs" else solver, max_iter=20, random_state=number,
        callback=lambda progress: most.append(threading.active_count()),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data)
        if saved:
            again = load(model.save(folder / "model.npz", overwrite=True))
            again.forecast(3).mean  # noqa: B018
    kind = "sparse" if thin else "dense"
    kinds = [solver, kind]
    if saved:
        kinds.append(f"{solver} saved")
    if max(most) > usual:
        kinds.append(f"{kind} on threads")
    return kinds


def measured(process: psutil.Process, number: int) -> dict[str, float]:
    gc.collect()
    return {
        "fits": number,
        "rss_kb": process.memory_info().rss / 1024,
        "files": process.num_fds(),
        "threads": threading.active_count(),
    }


def traced(work: Iterator[None], warm_up: int, n_fits: int) -> tuple[float, list[str]]:
    """Growth of what Python allocates, in kB, and the lines where most of it is."""

    def some(n: int) -> tracemalloc.Snapshot:
        for _ in range(n):
            next(work)
        gc.collect()
        return tracemalloc.take_snapshot()

    tracemalloc.start()
    before, after = some(warm_up), some(n_fits)
    tracemalloc.stop()
    differences = after.compare_to(before, "lineno")
    # Leave out this tool, and clusters that other tests have left running.
    others = ("tracemalloc", "psutil", "distributed", "tornado", "asyncio")
    own = [d for d in differences if not any(word in str(d.traceback) for word in others)]
    return sum(d.size_diff for d in own) / 1024, [str(d) for d in own[:5]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--warm-up", type=int, default=200, help="of these, without notes")
    parser.add_argument("--trace", type=int, default=120, help="more fits, under tracemalloc")
    parser.add_argument("--most", type=float, default=2048.0, help="kB that it may grow by")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    process = psutil.Process()
    notes, seen = [], Counter()
    with tempfile.TemporaryDirectory() as name:
        work = fits(Path(name), itertools.count(), seen)
        for number in range(1, given.fits + 1):
            next(work)
            if number >= given.warm_up and number % EVERY == 0:
                notes.append(measured(process, number))
                print("  ".join(f"{k} {v:,.0f}" for k, v in notes[-1].items()), flush=True)
        grown, lines = traced(work, EVERY, given.trace) if given.trace else (0.0, [])
    x, y = ([note[key] for note in notes] for key in ("fits", "rss_kb"))
    slope = theilslopes(y, x).slope
    found = {
        "kinds": dict(sorted(seen.items())),
        "notes": notes,
        "kb_per_fit": slope,
        "growth_kb": slope * (x[-1] - x[0]),
        "last_minus_first_kb": y[-1] - y[0],
        "files": notes[-1]["files"] - notes[0]["files"],
        "threads": notes[-1]["threads"] - notes[0]["threads"],
        "traced_kb": grown,
        "traced_lines": lines,
    }
    print(
        f"\nfits {x[0]} to {x[-1]}: {slope:+.2f} kB per fit, {found['growth_kb']:+,.0f} kB in all "
        f"(last minus first {found['last_minus_first_kb']:+,.0f} kB); open files "
        f"{found['files']:+.0f}, threads {found['threads']:+.0f}\n"
        f"traced over {given.trace} fits more: {grown:+.1f} kB\n"
        f"kinds of fits: {', '.join(f'{n} {kind}' for kind, n in found['kinds'].items())}"
    )
    print("\n".join(f"  {line}" for line in lines))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    grows = found["growth_kb"] > given.most or grown > _MOST_TRACED * given.trace
    grows = grows or found["files"] > 0 or found["threads"] > 0
    sys.exit(1 if grows else 0)


if __name__ == "__main__":
    main()
