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
BLOCK = re.compile(r"(<!-- (table|published|bars): (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def read(name: str) -> list[dict]:
    """A table as `summary` made it."""
    with (PAGE.parent / f"{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    words = ("model", "baseline")
    return [{k: v if k in words else float(v) for k, v in row.items()} for row in rows]


def published(name: str) -> str:
    """Our means compared with the paper's."""
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


# Modes and draws: labels and tables of the rows. For LOWEST, only the lowest error of each column
# is shown; for the others, every model.
BARS = {
    "the paper's settings, K = 3, lowest": "paper_one",
    "mode, smoothing 0.1, K = 3, lowest": "ours_one",
    "mode, K and smoothing chosen": "map_k",
    "draws, smoothing chosen, K = 3": "gibbs",
    "draws, K and smoothing chosen": "gibbs_k",
}
LOWEST = ("paper_one", "ours_one")
COLUMNS = ("kle_s_mean", "kle_f_mean", "kle_s_seen_mean", "kle_f_seen_mean")


def bars(data: str) -> str:
    """Errors of all settings, also in percent of the lowest with the paper's settings."""
    lines = [
        "| | KLE-S | KLE-F | KLE-S, words seen | KLE-F, words seen |",
        "|---|---|---|---|---|",
    ]
    base: dict[str, float] = {}
    for words, way in BARS.items():
        rows = [row for row in read(f"{data}_{way}") if row["model"] != "last_value"]
        if way in LOWEST:
            lowest = {column: min(row[column] for row in rows) for column in COLUMNS}
            base = base or lowest
            rows = [{"model": "", **lowest}]
        for row in rows:
            name = row["model"].removesuffix(":gibbs")
            cells = [f"{words}, {name}" if name else words]
            for column in COLUMNS:
                change = 100.0 * (row[column] / base[column] - 1.0)
                cells.append(f"{row[column]:,.0f}" + (f" ({change:+.1f} %)" if change else ""))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rendered(text: str) -> str:
    """The page with its current tables."""
    kinds = {"table": lambda name: markdown(read(name)), "published": published, "bars": bars}

    def current(match: re.Match[str]) -> str:
        return match[1] + kinds[match[2]](match[3]) + match[4]

    return BLOCK.sub(current, text)


def main(results: Path) -> None:
    """Copy tables and pictures from the folders of a run, then write the page."""
    for folder in sorted(results.iterdir()):
        if (folder / "table.csv").exists():
            shutil.copy(folder / "table.csv", PAGE.parent / f"{folder.name}.csv")
            if f"({folder.name}.png)" in PAGE.read_text(encoding="utf-8"):
                shutil.copy(folder / "differences.png", PAGE.parent / f"{folder.name}.png")
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
