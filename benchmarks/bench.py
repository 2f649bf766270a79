"""Speed and memory of temporalnmf, compared with scikit-learn, torchnmf and plain NumPy.

    make bench        (needs TEMPORALNMF_DATA, the folder with nips.npy)

    python benchmarks/bench.py --only iteration,threads    some parts; the others stay as they were
    python benchmarks/bench.py --quick                     a test that it runs; ignore the figures
    python benchmarks/bench.py --render                    only the page, from results.json

Writes README.md, plots and results.json to docs/benchmarks. torchnmf is measured if
TEMPORALNMF_TORCH_PYTHON names an interpreter that has it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import time
from datetime import date
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PARTS = (
    "iteration", "acceleration", "peers", "growth", "memory", "threads", "limit", "startup",
)  # fmt: skip


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="PARTS", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a minute, into results/bench-quick")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument("--out", type=Path, help="folder of the page, default docs/benchmarks")
    parser.add_argument("--repetitions", type=int, help="of a timing, default 7")
    parser.add_argument("--scale", choices=("linear", "log"), default="linear", help="in iteration")
    parser.add_argument("--seeds", type=int, help="of acceleration, log scale, default 5")
    parser.add_argument("--linear-seeds", type=int, help="the same, linear scale, default 2")
    chosen = parser.parse_args()
    chosen.parts = chosen.only.split(",") if chosen.only else list(PARTS)
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    return chosen


def machine() -> dict[str, Any]:
    """What the figures depend on besides the code."""

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "scikit-learn")},
    }


def measure(chosen: argparse.Namespace, file: Path) -> None:
    """Run the chosen parts one after the other and write their records to the file."""
    from speed.timing import Options

    few = (2, 1, 1) if chosen.quick else (7, 5, 2)
    given = (chosen.repetitions, chosen.seeds, chosen.linear_seeds)
    repetitions, seeds, linear_seeds = (
        usual if value is None else value for value, usual in zip(given, few, strict=True)
    )
    options = Options(chosen.quick, repetitions, chosen.scale, seeds, linear_seeds)
    for name in chosen.parts:
        started = time.perf_counter()
        records = import_module(f"speed.{name}").run(options)
        seconds = time.perf_counter() - started
        print(f"{name}: {seconds:.0f} s", flush=True)
        results = json.loads(file.read_text()) if file.exists() else {"parts": {}}
        results["machine"] = machine()
        results["parts"][name] = {
            "date": date.today().isoformat(),
            "command": shlex.join(["python", "benchmarks/bench.py", *sys.argv[1:]]),
            "quick": chosen.quick,
            "took": round(seconds),
            "records": records,
        }
        file.write_text(_compact(results))


def _compact(results: dict[str, Any]) -> str:
    """JSON with a record per line, six digits each: differences stay readable."""

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.6g}")
        if isinstance(value, list):
            return [rounded(item) for item in value]
        if isinstance(value, dict):
            return {key: rounded(item) for key, item in value.items()}
        return value

    text = json.dumps(rounded(results), ensure_ascii=False, separators=(", ", ": "))
    for start in ('{"dataset"', '{"axis"', '{"kind"', '{"what"', '"parts"', '"machine"'):
        text = text.replace(start, "\n" + start)
    return text + "\n"


def main() -> int:
    chosen = arguments()
    usual = ROOT / ("results/bench-quick" if chosen.quick else "docs/benchmarks")
    out = (chosen.out or usual).resolve()
    file = out / "results.json"
    if not chosen.render:
        from speed.data import folder

        if folder() is None:
            print("Set TEMPORALNMF_DATA to the folder that holds nips.npy.", file=sys.stderr)
            return 2
        out.mkdir(parents=True, exist_ok=True)
        measure(chosen, file)
    from speed import page, plots

    results = json.loads(file.read_text())
    plots.draw(results, out)
    (out / "README.md").write_text(page.render(results))
    print(out / "README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
