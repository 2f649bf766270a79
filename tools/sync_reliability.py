"""Put the figures of `make reliability` and `make mutants` into docs/reliability."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "reliability"
BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def read(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def table(head: list[str], rows: list[list[Any]]) -> str:
    def line(cells: list[Any]) -> str:
        return f"| {' | '.join(f'{c:,}' if isinstance(c, int) else str(c) for c in cells)} |\n"

    rule = ["---", *("---:" for _ in head[1:])]
    return line(head) + line(rule) + "".join(map(line, rows))


def minutes(seconds: float) -> str:
    return f"{seconds / 60.0:,.0f} min" if seconds >= 90 else f"{seconds:,.0f} s"


def fuzzed(name: str) -> str:
    """Outcomes of all cases."""
    found = read(name)
    rows = [[f"`{outcome}`", number] for outcome, number in found["outcomes"].items()]
    rows.append(["**unexpected**", len(found["unexpected"])])
    return (
        f"{found['cases']:,} cases, numbers {found['first']:,} and up, {found['jobs']} processes, "
        f"{minutes(found['seconds'])}.\n\n" + table(["outcome", "cases"], rows)
    )


def faults() -> str:
    """Rounds by command and fault."""
    found = read("faults")
    kinds = ("old", "new", "resumed", "wrong")
    rows = []
    for pair, counts in found["outcomes"].items():
        command, fault = pair.split()
        cells = [counts.get(kind, 0) for kind in kinds]
        rows.append([f"{command}, {fault}", sum(cells), *cells])
    rows.append(["**all**", *(sum(row[j] for row in rows) for j in range(1, len(kinds) + 2))])
    disk = "limits on the size of files"
    disk = f"a file system of 4 MB and {disk}" if found["mounted"] else disk
    head = ["command, fault", "rounds", "old file", "new file", "resumed", "wrong"]
    return f"Full disks are simulated by {disk}.\n\n" + table(head, rows)


def leaks() -> str:
    """Memory, files and threads at the first and the last measurement."""
    found = read("leaks")
    first, last = found["notes"][0], found["notes"][-1]
    return (
        f"From fit {first['fits']:,} to fit {last['fits']:,}: resident memory "
        f"{first['rss_kb'] / 1024:,.0f} MB to {last['rss_kb'] / 1024:,.0f} MB, "
        f"{found['kb_per_fit']:+.2f} kB per fit (median of all slopes); open files "
        f"{found['files']:+.0f}, threads {found['threads']:+.0f}. Python's own allocations over "
        f"another 120 fits: {found['traced_kb']:+.1f} kB.\n"
    )


def mutants() -> str:
    """Killed and survived by file."""
    found = read("mutants")
    names = ("all", "tested", "killed", "timeout", "survived")
    rows = [
        [f"`{file}`", *(counts[name] for name in names)] for file, counts in found["files"].items()
    ]
    rows.append(["**all**", found["mutants"], *(found[name] for name in names[1:])])
    low, high = (100.0 * end for end in found["interval_95"])
    return (
        f"**{100.0 * found['killed_share']:.1f} %** of {found['tested']:,} mutants, a random "
        f"sample of {found['mutants']:,} stratified by file, are killed (95 % interval {low:.1f} "
        f"to {high:.1f} %), {found['timeout']} of them because a test takes more than ten times as "
        f"long. The run took {minutes(found['seconds'])} on one core.\n\n"
        + table(["file", "mutants", "tested", "killed", "timed out", "survived"], rows)
    )


FIGURES: dict[str, Callable[[], str]] = {
    "fits": lambda: fuzzed("fits"),
    "files": lambda: fuzzed("files"),
    "faults": faults,
    "leaks": leaks,
    "mutants": mutants,
}


def synced(page: str) -> str:
    """The page with the figures of the files beside it."""
    return BLOCK.sub(lambda match: f"{match[1]}{FIGURES[match[2]]()}{match[3]}", page)


def main() -> None:
    path = FOLDER / "README.md"
    path.write_text(synced(path.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"written: {path}\n")


if __name__ == "__main__":
    main()
