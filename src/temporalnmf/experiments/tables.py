"""The results of an experiment as text, files and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import registry
from .._typing import Array
from ..messages.errors import Arg, Spelling, in_python
from ..messages.formatting import counted
from ..runtime.files import write_csv, written_whole
from ..selection.statistics import FEWEST
from .published import Published
from .runner import Record
from .summaries import DEFAULT, LEVEL, METRICS, Row, chosen, comparisons, matrix_of, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Differences beyond this many percent are written as text, not drawn.
_OFF_SCALE = 50.0
# Names of the errors in the paper's design, and in ours.
_PAPER_TITLES = {"kle_s": "KLE-S", "kle_f": "KLE-F"}
_TITLES = {"kle_s": "gap error", "kle_f": "forecast error"}


def unconverged(rows: Sequence[Row]) -> str:
    """A sentence on the chosen fits that ended at max_iter; empty if none did."""
    ended = [row["model"] for row in rows if row["stop_reason"].startswith("max_iter")]
    if not ended:
        return ""
    counts = ", ".join(f"{ended.count(model)} of {model}" for model in dict.fromkeys(ended))
    return f"Chosen fits that ended at max_iter, before they converged: {counts}."


def beside_published(table: Sequence[Row], published: dict[str, Published]) -> list[Row]:
    """The means of a table beside those of the paper, with ratios, for the paper's models."""
    found = []
    for row in table:
        if row["model"] in published:
            paper = published[row["model"]]._asdict()
            beside: Row = {"model": row["model"]}
            for metric in METRICS:
                ours, theirs = row[f"{metric}_mean"], paper[f"{metric}_mean"]
                beside[f"{metric}_ours"], beside[f"{metric}_published"] = ours, theirs
                beside[f"{metric}_ratio"] = ours / theirs
            found.append(beside)
    return found


def titles(table: Sequence[Row]) -> dict[str, str]:
    """Names of the errors: the paper's if every split hides the last step, else ours."""
    return _TITLES if table[0].get("n_origins") else _PAPER_TITLES


def markdown(table: Sequence[Row]) -> str:
    """The table in Markdown; the best mean of each column is bold."""
    names = titles(table)
    headings = [f"{names[metric]} | rank | against baseline" for metric in METRICS]
    lines = [f"| model | {' | '.join(headings)} |", "|---|---|---|---|---|---|---|"]
    for row in table:
        cells = [row["model"]]
        for metric in METRICS:
            shown = mean_and_deviation(row, metric)
            bold = f"**{shown}**" if is_best(row, metric, table) else shown
            cells += [bold, mean_rank(row, metric), difference(row, metric, table)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def is_best(row: Row, metric: str, table: Sequence[Row]) -> bool:
    """Whether a row has the lowest mean."""
    return bool(row[f"{metric}_mean"] == min(other[f"{metric}_mean"] for other in table))


def mean_and_deviation(row: Row, metric: str) -> str:
    """As "60,178 ± 8,614"; a deviation within rounding error is 0."""
    mean, deviation = row[f"{metric}_mean"], row[f"{metric}_std"]
    if np.isnan(mean):
        return "–"
    return f"{_short(mean)} ± {_short(deviation if deviation > 1e-9 * mean else 0.0)}"


def mean_rank(row: Row, metric: str) -> str:
    """The mean rank with one decimal."""
    rank = row[f"{metric}_rank"]
    return "–" if np.isnan(rank) else f"{rank:.1f}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.3g}"


def difference(row: Row, metric: str, table: Sequence[Row]) -> str:
    """The difference from the baseline in percent of its mean, with the interval."""
    if row["model"] == row["baseline"]:
        return "baseline"
    mean, low, high = (_percent(row, metric, table, end) for end in ("", "_low", "_high"))
    if np.isnan(mean):
        return "–"
    interval = "" if np.isnan(low) else f" ({low:+.1f} to {high:+.1f})"
    return f"{mean:+.1f} %{interval}"


def _percent(row: Row, metric: str, table: Sequence[Row], end: str = "") -> float:
    """A difference from the baseline, or an end of its interval, in percent of its mean."""
    base = next(r for r in table if r["model"] == row["baseline"])[f"{metric}_mean"]
    return float(100.0 * row[f"{metric}_diff{end}"] / base) if base > 0.0 else float("nan")


def legend(table: Sequence[Row]) -> str:
    """What the spreads and intervals of a table mean."""
    splits, n_origins = counted(table[0]["n_splits"], "split"), table[0].get("n_origins", 0)
    if not n_origins:
        return (
            f"± is the standard deviation over {splits} and their starts; ranges in brackets come "
            "from resampling the splits. All splits are of one data set and share its last step: "
            "both describe this experiment, neither is a confidence interval, and no verdict "
            "follows from them."
        )
    return (
        f"Gap errors are those of hidden steps inside the series, over {splits}; forecast errors "
        f"those of the next step, from {counted(n_origins, 'origin')}. ± is their standard "
        "deviation. In brackets: 95 % confidence intervals of each mean difference, by a corrected "
        "resampled t test over splits, and by a t test over origins that allows for their "
        "correlation."
    )


def verdict(table: Sequence[Row], spell: Spelling = in_python) -> str:
    """Which models differ significantly from the baseline, in words."""
    baseline = table[0]["baseline"]
    if len(table) == 1:
        return f"Only {baseline} took part."
    if not table[0].get("n_origins"):
        return ""
    others = [row for row in table if row["model"] != baseline]
    return " ".join(_sentence(metric, others, table, spell) for metric in METRICS)


def _sentence(metric: str, others: Sequence[Row], table: Sequence[Row], spell: Spelling) -> str:
    name, baseline = _TITLES[metric].capitalize(), table[0]["baseline"]
    judged = [row for row in others if not np.isnan(row[f"{metric}_p"])]
    silent = [row["model"] for row in others if np.isnan(row[f"{metric}_p"])]
    if not judged:
        return f"{name}: no intervals, so no verdict; {_remedy(metric, table, spell)}."
    found = [row for row in judged if row[f"{metric}_p"] < LEVEL]
    said = []
    for word, sign in (("lower", -1.0), ("higher", 1.0)):
        named = [row for row in found if sign * row[f"{metric}_diff"] > 0.0]
        if named:
            each = ", ".join(f"{r['model']} ({_percent(r, metric, table):+.1f} %)" for r in named)
            said.append(f"significantly {word} than {baseline}: {each}")
    if not said:
        said = [f"no model differs significantly from {baseline}"]
    if silent:
        said.append(f"no interval, so no verdict on {', '.join(silent)}")
    return f"{name}: {'; '.join(said)}."


def _remedy(metric: str, table: Sequence[Row], spell: Spelling) -> str:
    if metric == "kle_s" and table[0]["n_splits"] < FEWEST:
        return f"they need at least {FEWEST} splits, {spell(Arg('n_splits', str(FEWEST)))}"
    if metric == "kle_f" and table[0]["n_origins"] < FEWEST:
        origins = spell(Arg("n_origins", str(FEWEST)))
        return f"they need at least {FEWEST} origins: a longer series, or {origins}"
    return "the differences vary too little, or are too correlated"


def about_the_default(
    rows: Sequence[Row], baseline: str | None = None, spell: Spelling = in_python
) -> list[str]:
    """A sentence per metric in which the default chain is significantly worse than the best."""
    tested = comparisons(rows, baseline)
    said = []
    for metric in METRICS:
        means = {row["model"]: row[f"{metric}_mean"] for row in summary(rows, baseline)}
        chains = {m: mean for m, mean in means.items() if m in registry.CHAINS and mean == mean}
        if DEFAULT not in chains:
            continue
        best = min(chains, key=chains.__getitem__)
        pair = {DEFAULT, best}
        found = [c for c in tested if c.metric == metric and {c.reference, c.model} == pair]
        if found and found[0].beyond_chance and means[DEFAULT] > means[best]:
            more = 100.0 * (means[DEFAULT] / means[best] - 1.0)
            said.append(
                f"The default chain, {DEFAULT}, has a higher {_TITLES[metric]} than {best}, by "
                f"{more:.1f} %, which is significant: consider {spell(Arg('chain', repr(best)))}."
            )
    return said


def latex(table: Sequence[Row]) -> str:
    """The table as a LaTeX tabular (package booktabs)."""
    names = (name[:1].upper() + name[1:] for name in titles(table).values())
    heading = " & ".join(["Model", *names])
    lines = [r"\begin{tabular}{lrr}", r"\toprule", rf"{heading} \\", r"\midrule"]
    for row in table:
        numbers = [f"${_latex(row[f'{m}_mean'])} \\pm {_latex(row[f'{m}_std'])}$" for m in METRICS]
        model = row["model"].replace("_", r"\_")
        lines.append(" & ".join([model, *numbers]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(value: float) -> str:
    if np.isnan(value):
        return r"\text{--}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa} \\times 10^{{{int(exponent)}}}"


def plot_differences(rows: Sequence[Row], baseline: str | None = None) -> Figure:
    """Paired differences from the baseline, and in orange their mean with its interval."""
    from ..plotting import Figure

    table = summary(rows, baseline)
    baseline = table[0]["baseline"]
    others = [row for row in table if row["model"] != baseline]
    figure = Figure(figsize=(9.0, 0.45 * len(others) + 1.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, metric in zip(axes, METRICS, strict=True):
        models = [row["model"] for row in table]
        matrix = matrix_of(rows, models, metric)
        reference = matrix[:, :, models.index(baseline)]
        percent = 100.0 / reference.mean() if reference.mean() > 0.0 else float("nan")
        shown = [0.0]
        for y, row in enumerate(others):
            paired = percent * (matrix[:, :, models.index(row["model"])] - reference).ravel()
            mean, *ends = (percent * row[f"{metric}_diff{end}"] for end in ("", "_low", "_high"))
            if abs(mean) <= _OFF_SCALE:
                _draw(ax, y, paired, mean, ends)
                shown += paired.tolist()
            else:
                _write(ax, y, mean)
        ax.axvline(0.0, color="black", lw=0.8)
        reach = max(map(abs, shown)) or 1.0
        ax.set_xlim(1.1 * min(shown) - 0.05 * reach, 1.1 * max(shown) + 0.05 * reach)
        ax.set_xlabel(f"{titles(table)[metric]}: difference from {baseline}, % of its mean")
    axes[0].set_yticks(range(len(others)), [row["model"] for row in others])
    axes[0].invert_yaxis()
    return figure


def _draw(ax: Axes, y: int, paired: Array, mean: float, ends: list[float]) -> None:
    from ..plotting import BLUE, ORANGE

    ax.plot(paired, y + np.linspace(-0.2, 0.2, paired.size), ".", color=BLUE, ms=3, alpha=0.5)
    ax.plot(mean, y, "D", color=ORANGE, ms=5)
    ax.plot(ends, [y, y], color=ORANGE, lw=2)


def _write(ax: Axes, y: int, mean: float) -> None:
    """Write a mean that is missing, or too large to draw."""
    from ..plotting import ORANGE

    right = not mean < 0.0
    text = f"{mean:+.0f} % →" if right else f"← {mean:+.0f} %"
    ax.text(
        0.98 if right else 0.02, y, "–" if np.isnan(mean) else text, va="center",
        ha="right" if right else "left", color=ORANGE, transform=ax.get_yaxis_transform(),
    )  # fmt: skip


def write_tables(
    records: Sequence[Record], folder: Path, baseline: str | None = None
) -> tuple[list[Row], list[Path]]:
    """Write records.csv, table.csv, table.md and table.tex; returns the table and the paths."""
    rows = chosen(records)
    table = summary(rows, baseline)
    paths = [write_csv(folder / "records.csv", rows), write_csv(folder / "table.csv", table)]
    for name, text in (("table.md", markdown(table)), ("table.tex", latex(table))):
        with written_whole(folder / name) as partial:
            partial.write_text(text, encoding="utf-8")
        paths.append(folder / name)
    return table, paths
