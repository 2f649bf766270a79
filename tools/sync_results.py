"""Put the tables of `make results` into docs/results, and into its page."""

import csv
import re
import shutil
import sys
from pathlib import Path

from temporalnmf.experiments.published import TABLES
from temporalnmf.experiments.tables import beside_published, markdown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "README.md"
BLOCK = re.compile(r"(<!-- (table|published): (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def read(name: str) -> list[dict]:
    """A table as `summary` made it."""
    with (PAGE.parent / f"{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    words = ("model", "baseline")
    return [{k: v if k in words else float(v) for k, v in row.items()} for row in rows]


def published(name: str) -> str:
    """Our means beside the paper's."""
    lines = [
        "| model | KLE-S | published | ratio | KLE-F | published | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in beside_published(read(name), TABLES[name.split("_")[0]]):
        cells = [row["model"]]
        for metric in ("kle_s", "kle_f"):
            cells += [f"{row[f'{metric}_{what}']:,.0f}" for what in ("ours", "published")]
            cells.append(f"{row[f'{metric}_ratio']:.3f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rendered(text: str) -> str:
    """The page with its tables as they are now."""

    def current(match: re.Match[str]) -> str:
        table = markdown(read(match[3])) if match[2] == "table" else published(match[3])
        return match[1] + table + match[4]

    return BLOCK.sub(current, text)


def main(results: Path) -> None:
    """Copy tables and pictures from the folders of a run, then write the page."""
    for folder in sorted(results.iterdir()):
        if (folder / "table.csv").exists():
            shutil.copy(folder / "table.csv", PAGE.parent / f"{folder.name}.csv")
            shutil.copy(folder / "differences.png", PAGE.parent / f"{folder.name}.png")
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
