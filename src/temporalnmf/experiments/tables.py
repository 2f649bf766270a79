"""From the records of all fits to a table, its files and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from ..files import write_csv, written_whole
from ..likelihoods.base import Array
from .published import Published
from .runner import Record

Row = dict[str, Any]

# Fewer splits have no spread to speak of.
_FEWEST_SPLITS = 3
METRICS = ("kle_s", "kle_f")
# The same over features that were seen in training; another kind of comparison, so only means.
_SEEN = ("kle_s_seen", "kle_f_seen")
# Differences beyond this many percent are written, not drawn.
_OFF_SCALE = 50.0
_TITLES = {"kle_s": "KLE-S", "kle_f": "KLE-F"}


def chosen(records: Sequence[Record]) -> list[Row]:
    """One row per split, start and model: the point of its grid with the lowest validation error.

    `seconds` are those of the whole grid.
    """
    groups: dict[tuple[int, int, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["split"], record["init"], record["model"]), []).append(record)
    rows = []
    for (split, init, model), tried in groups.items():
        best = min(tried, key=_validation_error)
        rows.append(
            {
                "split": split,
                "init": init,
                "model": model,
                "params": " ".join(f"{name}={_number(v)}" for name, v in best["params"].items()),
                **{key: best[key] for key in ("kle_s", "kle_f", "kle_validation", "n_iter")},
                **{key: best.get(key, float("nan")) for key in _SEEN},
                "stop_reason": best["stop_reason"],
                "seconds": sum(record["seconds"] for record in tried),
            }
        )
    return rows


def _validation_error(record: Record) -> float:
    """One that could not be computed is never the lowest."""
    error = float(record["kle_validation"])
    return float("inf") if np.isnan(error) else error


def _number(value: Any) -> str:
    return str(value) if isinstance(value, bool | str | list) else f"{value:.6g}"


def summary(rows: Sequence[Row], baseline: str | None = None, seed: int = 0) -> list[Row]:
    """One row per model: means and standard deviations, ranks, differences from a baseline.

    Parameters
    ----------
    rows : list of dict
        From `chosen`.
    baseline : str or None
        Model to compare with, on the same splits and starts. None is "gap" if it took part, else
        the first model.
    seed : int
        For the bootstrap.

    Returns
    -------
    list of dict
        For each metric m: `m_mean`, `m_std` (population), `m_rank` (mean rank among the models,
        1 is best), `m_diff` (mean difference from the baseline), `m_diff_low` and `m_diff_high`
        (its 95 % bootstrap interval; splits are resampled, since starts of one split share its
        hidden steps, and NaN if there are fewer than three), `m_wins` (number of splits, of
        `n_splits`, with a lower error than the baseline, starts averaged); also
        `kle_s_seen_mean` and `kle_f_seen_mean`, over features that were seen in training.
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    if baseline is None:
        baseline = "gap" if "gap" in models else models[0]
    if baseline not in models:
        raise ValueError(f"baseline={baseline!r} took no part. Choose one of {', '.join(models)}.")
    errors = {metric: _matrix(rows, models, metric) for metric in METRICS}
    table: list[Row] = [{"model": model} for model in models]
    for metric, matrix in errors.items():
        ranks = rankdata(matrix, axis=-1).mean(axis=(0, 1))
        differences = matrix - matrix[:, :, [models.index(baseline)]]
        per_split = differences.mean(axis=1)
        low, high = _bootstrap(per_split, seed)
        for j, row in enumerate(table):
            row[f"{metric}_mean"] = float(matrix[:, :, j].mean())
            row[f"{metric}_std"] = float(matrix[:, :, j].std())
            row[f"{metric}_rank"] = float(ranks[j])
            row[f"{metric}_diff"] = float(differences[:, :, j].mean())
            row[f"{metric}_diff_low"], row[f"{metric}_diff_high"] = float(low[j]), float(high[j])
            row[f"{metric}_wins"] = int(np.sum(per_split[:, j] < 0.0))
    seconds = _matrix(rows, models, "seconds").mean(axis=(0, 1))
    older = dict.fromkeys(_SEEN, float("nan"))  # records from before they were written down
    known = [{**older, **row} for row in rows]
    seen = {key: _matrix(known, models, key).mean(axis=(0, 1)) for key in _SEEN}
    for j, (row, value) in enumerate(zip(table, seconds, strict=True)):
        row |= {f"{key}_mean": float(values[j]) for key, values in seen.items()}
        row["seconds"] = float(value)
        row["baseline"] = baseline
        row["n_splits"] = len({r["split"] for r in rows})
    return table


def _matrix(rows: Sequence[Row], models: list[str], key: str) -> Array:
    """Values (n_splits, n_inits, n_models)."""
    splits = sorted({row["split"] for row in rows})
    inits = sorted({row["init"] for row in rows})
    matrix = np.full((len(splits), len(inits), len(models)), np.nan)
    for row in rows:
        place = splits.index(row["split"]), inits.index(row["init"]), models.index(row["model"])
        matrix[place] = row[key]
    return matrix


def _bootstrap(differences: Array, seed: int, n_draws: int = 10_000) -> tuple[Array, Array]:
    """95 % interval of the mean over splits, (n_models,) each, from (n_splits, n_models)."""
    n_splits, n_models = differences.shape
    if n_splits < _FEWEST_SPLITS:
        return np.full(n_models, np.nan), np.full(n_models, np.nan)
    drawn = np.random.default_rng(seed).integers(n_splits, size=(n_draws, n_splits))
    low, high = np.quantile(differences[drawn].mean(axis=1), [0.025, 0.975], axis=0)
    return low, high


def unconverged(rows: Sequence[Row]) -> str:
    """How many of the chosen fits ended at max_iter, in words; empty if none did."""
    ended = [row["model"] for row in rows if row["stop_reason"].startswith("max_iter")]
    if not ended:
        return ""
    counts = ", ".join(f"{ended.count(model)} of {model}" for model in dict.fromkeys(ended))
    return f"Chosen fits that ended at max_iter, before they converged: {counts}."


def beside_published(table: Sequence[Row], published: dict[str, Published]) -> list[Row]:
    """The means of a table beside those of the paper, with ratios, for the paper's models."""
    rows = []
    for row in table:
        if row["model"] in published:
            paper = published[row["model"]]._asdict()
            rows.append(
                {
                    "model": row["model"],
                    **{
                        f"{metric}_{what}": value
                        for metric in METRICS
                        for what, value in (
                            ("ours", row[f"{metric}_mean"]),
                            ("published", paper[f"{metric}_mean"]),
                            ("ratio", row[f"{metric}_mean"] / paper[f"{metric}_mean"]),
                        )
                    },
                }
            )
    return rows


def markdown(table: Sequence[Row]) -> str:
    """The table for a page; the best mean of each column is bold."""
    lines = [
        "| model | KLE-S | rank | against baseline | KLE-F | rank | against baseline |",
        "|---|---|---|---|---|---|---|",
    ]
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
    """As "60,178 ± 8,614"; what is only rounding is 0."""
    mean, deviation = row[f"{metric}_mean"], row[f"{metric}_std"]
    if np.isnan(mean):
        return "–"
    return f"{_short(mean)} ± {_short(deviation if deviation > 1e-9 * mean else 0.0)}"


def mean_rank(row: Row, metric: str) -> str:
    """With one decimal."""
    rank = row[f"{metric}_rank"]
    return "–" if np.isnan(rank) else f"{rank:.1f}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.3g}"


def difference(row: Row, metric: str, table: Sequence[Row]) -> str:
    """The difference from the baseline in percent of its mean, with the interval."""
    if row["model"] == row["baseline"]:
        return "baseline"
    base = next(r for r in table if r["model"] == row["baseline"])[f"{metric}_mean"]
    if not base > 0.0:
        return "–"
    mean, low, high = (100.0 * row[f"{metric}_diff{end}"] / base for end in ("", "_low", "_high"))
    interval = "" if np.isnan(low) else f" ({low:+.1f} to {high:+.1f})"
    return f"{mean:+.1f} %{interval}"


def verdict(table: Sequence[Row]) -> str:
    """Whether anything beats the baseline, in words, on inner steps and on the last one."""
    baseline = table[0]["baseline"]
    if len(table) == 1:
        return f"Only {baseline} took part."
    sentences = []
    for metric, where in (("kle_s", "inside the series"), ("kle_f", "in forecasts")):
        base = next(row for row in table if row["model"] == baseline)[f"{metric}_mean"]
        if np.isnan(base):
            sentences.append(f"The series is too short for hidden test steps {where}.")
            continue
        best = min(table, key=lambda row: row[f"{metric}_mean"])
        if best["model"] == baseline:
            sentences.append(f"Nothing beats {baseline} {where}.")
            continue
        luck = f" It is the best of {len(table) - 1}: a little of this is luck."
        sentences.append(
            f"Lowest {where}: {best['model']}, {difference(best, metric, table)} against "
            f"{baseline}, lower in {best[f'{metric}_wins']:.0f} of {best['n_splits']:.0f} splits."
            + (luck if len(table) > 2 else "")
        )
    return " ".join(sentences)


def latex(table: Sequence[Row]) -> str:
    """The table as a LaTeX tabular (package booktabs)."""
    lines = [r"\begin{tabular}{lrr}", r"\toprule", r"Model & KLE-S & KLE-F \\", r"\midrule"]
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


def plot_differences(rows: Sequence[Row], baseline: str | None = None) -> Any:
    """Paired differences from the baseline: a dot per split and start, the mean and its interval.

    Returns
    -------
    matplotlib Figure
    """
    from ..plotting import BLUE, ORANGE, Figure

    table = summary(rows, baseline)
    baseline = table[0]["baseline"]
    models = [row["model"] for row in table]
    others = [row for row in table if row["model"] != baseline]
    figure = Figure(figsize=(9.0, 0.45 * len(others) + 1.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, metric in zip(axes, METRICS, strict=True):
        matrix = _matrix(rows, models, metric)
        reference = matrix[:, :, models.index(baseline)]
        percent = 100.0 / reference.mean()
        shown = [0.0]
        for y, row in enumerate(others):
            mean = percent * row[f"{metric}_diff"]
            if not abs(mean) <= _OFF_SCALE:
                # It would squeeze all others, or there is no such error.
                right = not mean < 0.0
                words = f"{mean:+.0f} % →" if right else f"← {mean:+.0f} %"
                ax.text(0.98 if right else 0.02, y, "–" if np.isnan(mean) else words, va="center",
                        ha="right" if right else "left", color=ORANGE,
                        transform=ax.get_yaxis_transform())  # fmt: skip
                continue
            paired = percent * (matrix[:, :, models.index(row["model"])] - reference).ravel()
            ax.plot(
                paired, y + np.linspace(-0.2, 0.2, paired.size), ".", color=BLUE, ms=3, alpha=0.5
            )
            ax.plot(mean, y, "D", color=ORANGE, ms=5)
            ends = [percent * row[f"{metric}_diff_{end}"] for end in ("low", "high")]
            ax.plot(ends, [y, y], color=ORANGE, lw=2)
            shown += paired.tolist()
        ax.axvline(0.0, color="black", lw=0.8)
        reach = max(map(abs, shown)) or 1.0
        ax.set_xlim(1.1 * min(shown) - 0.05 * reach, 1.1 * max(shown) + 0.05 * reach)
        ax.set_xlabel(f"{_TITLES[metric]}: difference from {baseline}, % of its mean")
    axes[0].set_yticks(range(len(others)), [row["model"] for row in others])
    axes[0].invert_yaxis()
    return figure


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
