"""Compare this tree with an older commit, bit for bit, over everything that users see.

    python tools/side_by_side COMMIT [--only WORD]

Clones COMMIT, runs `record.py` on its source and on the source here with the same interpreter, and
compares digests: factors, objectives, forecasts, quantiles, posterior
draws, arrays of saved files, files and numbers of commands. Also the public names of
`docs/api.rst`. Ends with 1 if anything differs. `--only` takes cases whose name contains WORD,
such as memory/mm, workers/, draws/memory, options/ or command/.

Kernels let the compiler reorder sums, and what it makes of that depends on the processor: the same
formula in another function may differ in its last bit. Both sides are therefore compiled for a
generic processor.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha1
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "results" / "side_by_side"


def main() -> int:
    words = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=words)
    parser.add_argument("commit")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    old = cloned(given.commit)
    names = sorted(public_names(old))
    with ThreadPoolExecutor() as threads:  # two processes, of one core each
        jobs = [threads.submit(recorded, source, given.only, names) for source in (old, ROOT)]
    return report(*(job.result() for job in jobs))


def cloned(commit: str) -> Path:
    """The files of a commit, kept for the next time."""
    full = subprocess.run(
        ["git", "rev-parse", commit], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    folder = PLACE / full[:12]
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = folder.with_suffix(".part")
        subprocess.run(["git", "clone", "--quiet", ROOT, part], check=True)
        subprocess.run(["git", "checkout", "--quiet", full], cwd=part, check=True)
        part.rename(folder)
    return folder


def public_names(source: Path) -> set[str]:
    """What the reference of the interface lists, as module.name."""
    found, module = set(), ""
    for line in (source / "docs" / "api.rst").read_text().splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split("::")[1].strip()
        elif module and line.startswith("   ") and line.strip() and ":" not in line:
            found.add(f"{module}.{line.strip()}")
    return found


def recorded(source: Path, only: str, names: list[str]) -> dict[str, dict[str, str]]:
    """Digests by case, of the package in a source tree; those of an older commit are kept."""
    scripts = (Path(__file__).with_name(f"{name}.py") for name in ("cases", "record"))
    asked = "".join(script.read_text() for script in scripts)
    key = sha1(repr((asked, only, names)).encode()).hexdigest()[:12]
    here = source == ROOT
    out = PLACE / f"{'here' if here else source.name}-{key}.jsonl"
    if here or not out.exists():
        part = out.with_suffix(".part")
        environment = os.environ | {
            "PYTHONPATH": f"{source}/src{os.pathsep}{ROOT}/tools",
            "NUMBA_CPU_NAME": "generic",
        }
        record = [sys.executable, "-m", "side_by_side.record", str(part), "--only", only, "--names"]
        print(f"{source / 'src'} …", flush=True)
        subprocess.run([*record, *names], env=environment, cwd=PLACE, check=True)
        part.rename(out)
    lines = map(json.loads, out.read_text().splitlines())
    return {line["case"]: line["found"] for line in lines}


# Texts, whose wording may change.
_WORDS = {"stop_reason_"}


# Faults that were fixed since, by case and digest.
_FIXED = [
    # Positive values in shards, which are sparse, were fitted by the formulas of counts. They are
    # refused now, as they always were in memory.
    re.compile(r"(shards|workers)/.*/exponential-.*: .*"),
    # Frames called the medians of a distribution without a mean "mean".
    re.compile(r".*/\w+-hier_rate-1-log-steps-\w+: smooth.*\.frame of .*"),
]


def _fixed(case: str, digest: str) -> bool:
    return any(pattern.fullmatch(f"{case}: {digest}") for pattern in _FIXED)


def _comparable(found: dict[str, str]) -> dict[str, str]:
    """With the type of a refusal that callers catch."""
    if found.get("refused") == "ArgumentError":
        return {**found, "refused": "ValueError"}
    return found


def report(old: dict[str, dict[str, str]], new: dict[str, dict[str, str]]) -> int:
    """Say what differs; 1 if anything does."""
    n_digests = n_refused = n_wrong = n_fixed = 0
    shared = old.keys() & new.keys()  # cases of new chains have no counterpart
    for case in shared:
        before, after = _comparable(old.get(case, {})), _comparable(new.get(case, {}))
        n_digests += len(before)
        n_refused += "refused" in before
        differing = {
            name
            for name in (before.keys() | after.keys()) - _WORDS
            if before.get(name) != after.get(name)
        }
        fixed = {name for name in differing if _fixed(case, name)}
        n_fixed += len(fixed)
        if differing - fixed:
            n_wrong += 1
            print(f"{case}: {', '.join(sorted(differing - fixed))}")
    print(
        f"{len(shared):,} cases ({n_refused} of them refused on both sides), {n_digests:,} "
        f"digests, "
        f"{n_fixed} of them left out because of faults that were fixed: "
        f"{n_wrong or 'none'} of the cases differ{'s' if n_wrong == 1 else ''}."
    )
    return int(n_wrong > 0 or not old)


if __name__ == "__main__":
    sys.exit(main())
