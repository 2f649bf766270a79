"""Read and fit a long table of five million rows: seconds and memory.

    python benchmarks/large_table.py

writes a CSV (date, word, count) to a temporary folder, then reads and fits it in a
separate process, so that peak memory does not include making the data.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

N_MONTHS, N_WORDS, N_TOPICS = 600, 20_000, 10
MOST_SECONDS, MOST_BYTES = 60.0, 2e9


def write_table(path: Path, n_rows: int, seed: int = 0) -> None:
    """Rows in random order: topics that come and go, words by Zipf's law, one month left out."""
    rng = np.random.default_rng(seed)
    months = np.datetime64("1970-01", "M") + np.arange(N_MONTHS)
    dates = np.char.add(months.astype(str), "-01")
    zipf = 1.0 / np.arange(1, N_WORDS + 1)
    words = np.array([rng.permutation(N_WORDS) for _ in range(N_TOPICS)])
    level = np.exp(np.cumsum(rng.normal(scale=0.1, size=(N_MONTHS, N_TOPICS)), axis=0))
    with path.open("w", encoding="utf-8") as file:
        file.write("date,word,count\n")
        for size in [100_000] * (n_rows // 100_000) + [n_rows % 100_000]:
            month = rng.integers(N_MONTHS - 1, size=size)
            month += month >= N_MONTHS // 2
            share = level[month] / level[month].sum(axis=1, keepdims=True)
            topic = (share.cumsum(axis=1) < rng.random((size, 1))).sum(axis=1)
            rank = np.searchsorted(zipf.cumsum() / zipf.sum(), rng.random(size))
            word = words[np.minimum(topic, N_TOPICS - 1), np.minimum(rank, N_WORDS - 1)]
            count = rng.geometric(0.5, size=size)
            file.writelines(
                f"{dates[m]},w{w:05d},{c}\n" for m, w, c in zip(month, word, count, strict=True)
            )


def measure(path: Path, fit: bool) -> dict[str, object]:
    """Read and fit the table in this process."""
    start = time.perf_counter()
    from temporalnmf.reading import read_table

    table = read_table(path, time="date", feature="word", value="count")
    read = time.perf_counter()
    found: dict[str, object] = {
        "notes": table.notes,
        "shape": table.X.shape,
        "nnz": int((table.X > 0).sum()),
    }
    if fit:
        from temporalnmf import TemporalNMF

        model = TemporalNMF(N_TOPICS, chain="rate", random_state=0)
        model.fit(table.X, mask=table.observed)
        found |= {"iterations": model.n_iter_, "converged": bool(model.converged_)}
    end = time.perf_counter()
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found | {"read_s": read - start, "fit_s": end - read, "peak_bytes": kibibytes * 1024}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--only-read", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, not options.only_read)))
        return 0
    with TemporaryDirectory() as folder:
        path = Path(folder, "long.csv")
        write_table(path, options.rows)
        command = [sys.executable, __file__, "--measure", str(path)]
        command += ["--only-read"] * options.only_read
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        size = path.stat().st_size
    found = json.loads(done.stdout)
    print(f"rows: {options.rows:,} ({size / 1e6:.0f} MB), table: {found['shape']}", end="")
    print(f", non-zeros: {found['nnz']:,}")
    for note in found["notes"]:
        print(f"  {note}")
    seconds = found["read_s"] + found["fit_s"]
    print(f"read: {found['read_s']:.1f} s, fit: {found['fit_s']:.1f} s, in all {seconds:.1f} s")
    if "iterations" in found:
        print(f"iterations: {found['iterations']}, converged: {found['converged']}")
    print(f"peak memory: {found['peak_bytes'] / 1e9:.2f} GB")
    kept = seconds < MOST_SECONDS and found["peak_bytes"] < MOST_BYTES
    verdict = "kept" if kept else "BROKEN"
    print(f"limits of {MOST_SECONDS:.0f} s and {MOST_BYTES / 1e9:.0f} GB: {verdict}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
