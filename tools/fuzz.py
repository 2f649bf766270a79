"""Run many random fits, or read many damaged files, and report everything unexpected.

    python tools/fuzz.py fits --cases 20000
    python tools/fuzz.py files --cases 200000
    python tools/fuzz.py fits --seconds 60 --seed 1000000

A case follows from its number, and numbers go up from --seed: the same command tries the same
cases. Failures are written to tests/corpus and become regression tests.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fuzzing.workers import Result, run_cases

# Seconds of processor time after which a case counts as one that hangs. Long series take some.
LIMITS = {"fits": 120.0, "files": 20.0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("mode", choices=LIMITS)
    parser.add_argument("--cases", type=int, help="how many cases; 1000 if no --seconds is given")
    parser.add_argument("--seconds", type=float, help="for how long")
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    parser.add_argument(
        "--corpus", type=Path, default=Path(__file__).parents[1] / "tests" / "corpus",
        help="where to keep cases that fail",
    )  # fmt: skip
    given = parser.parse_args()
    if given.cases is None and given.seconds is None:
        given.cases = 1000
    # One thread per process; those of fits are counted in the fits.
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with TemporaryDirectory(prefix="fuzz-") as scratch:
        make_case, run, keep = MODES[given.mode](Path(scratch), given.corpus / given.mode)
        found = fuzz(make_case, run, keep, given)
    show(given.mode, found)
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if found["unexpected"] else 0


def of_fits(scratch: Path, corpus: Path) -> tuple[Any, Any, Callable[[int, str], Path]]:
    from fuzzing import fits

    def keep(seed: int, reason: str) -> Path:
        return fits.random_trial(seed).write(corpus / f"{seed}.json", reason)

    return fits.random_trial, fits.run, keep


def of_files(scratch: Path, corpus: Path) -> tuple[Any, Any, Callable[[int, str], Path]]:
    from fuzzing import files

    folder = files.make_seeds(scratch / "valid")
    make_case = partial(files.make_case, folder)

    def keep(seed: int, reason: str) -> Path:
        return files.keep(make_case(seed), seed, reason, corpus)

    return make_case, files.run, keep


MODES = {"fits": of_fits, "files": of_files}


def fuzz(make_case: Any, run: Any, keep: Any, given: argparse.Namespace) -> dict[str, Any]:
    """Run cases until there are enough; return their outcomes and failures."""
    begun = time.monotonic()
    outcomes: Counter[str] = Counter()
    unexpected = []
    seeds = until(begun, given)
    for result in run_cases(make_case, run, seeds, given.jobs, LIMITS[given.mode]):
        seed, outcome, error = result
        outcomes[outcome] += 1
        if error is not None:
            path = keep(seed, reason_of(result))
            unexpected.append({"seed": seed, "outcome": outcome, "file": path.name})
            print(f"\n{given.mode} {seed} {outcome}: {error}\nwritten to {path}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{outcomes.total():,} cases", end="", file=sys.stderr, flush=True)
    return {
        "mode": given.mode,
        "first": given.seed,
        "cases": outcomes.total(),
        "jobs": given.jobs,
        "seconds": round(time.monotonic() - begun, 1),
        "outcomes": dict(outcomes.most_common()),
        "unexpected": unexpected,
    }


def until(begun: float, given: argparse.Namespace) -> Iterator[int]:
    """Numbers of cases."""
    for n in count():
        if given.cases is not None and n >= given.cases:
            return
        if given.seconds is not None and time.monotonic() - begun >= given.seconds:
            return
        yield given.seed + n


def reason_of(result: Result) -> str:
    """The last line of an error."""
    _, outcome, error = result
    lines = (error or "").strip().splitlines()
    return f"{outcome}: {lines[-1]}" if lines else outcome


def show(mode: str, found: dict[str, Any]) -> None:
    print(
        f"\n{found['cases']:,} {mode} in {found['seconds']:,.0f} s with {found['jobs']} processes"
    )
    for outcome, number in found["outcomes"].items():
        print(f"{number:10,}  {outcome}")
    print(f"{len(found['unexpected']):10,}  unexpected")


if __name__ == "__main__":
    sys.exit(main())
