"""One row per model from the records of all fits: errors, differences, significance."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from .. import registry
from .._typing import Array
from ..messages.errors import ArgumentError
from ..selection.statistics import Difference, holm, over_origins, over_splits
from .protocol import warm_up
from .runner import Record

Row = dict[str, Any]

METRICS = ("kle_s", "kle_f")
# Errors over the features seen in training; only their means are reported.
_SEEN = ("kle_s_seen", "kle_f_seen")
# Columns of the chosen fits; old records lack _SEEN and the last three.
_COLUMNS = (
    "split", "init", "model", "params", "kle_s", "kle_f", "kle_validation", "n_iter", *_SEEN,
    "stop_reason", "seconds", "origin", "n_train", "n_test",
)  # fmt: skip
DEFAULT = "rate"
# Differences with an adjusted p-value below this are reported.
LEVEL = 0.05
# Least number of splits for resampling.
_FEWEST_SPLITS = 3
_NOTHING = float("nan")


def chosen(records: Sequence[Record]) -> list[Row]:
    """One row per split, start and model: the point of its grid with the lowest validation error.

    At a forecast origin this is the mean error of forecasts from earlier origins; the first origins
    only choose hyper-parameters and have no row. `seconds` are those of the whole grid.
    """
    groups: dict[tuple[int, int, str], list[Record]] = {}
    for record in _validated(records):
        groups.setdefault((record["split"], record["init"], record["model"]), []).append(record)
    rows = []
    for tried in groups.values():
        best = min(tried, key=lambda r: inf if isnan(r["kle_validation"]) else r["kle_validation"])
        row: Row = {key: best.get(key, _NOTHING if key in _SEEN else None) for key in _COLUMNS}
        row["params"] = " ".join(f"{name}={_number(v)}" for name, v in best["params"].items())
        row["seconds"] = sum(record["seconds"] for record in tried)
        rows.append(row)
    return rows


def _validated(records: Sequence[Record]) -> list[Record]:
    """Records with their validation errors, without the origins that are not scored."""
    origins = sorted({r["origin"] for r in records if "origin" in r})
    scored = set(origins[warm_up(len(origins)) :])
    earlier: dict[tuple[str, int], list[float]] = {}
    found = []
    for record in sorted(records, key=lambda r: r.get("origin", -1)):
        if "origin" not in record:
            found.append(record)
            continue
        errors = earlier.setdefault((record["model"], record["point"]), [])
        if record["origin"] in scored:
            found.append({**record, "kle_validation": float(np.mean(errors))})
        errors.append(record["kle_f"])
    return found


def _number(value: bool | str | float | list[float]) -> str:
    return str(value) if isinstance(value, bool | str | list) else f"{value:.6g}"


class Comparison(NamedTuple):
    """A model against a reference; `p` is adjusted for all comparisons of the experiment."""

    metric: str
    reference: str
    model: str
    difference: Difference
    p: float

    @property
    def beyond_chance(self) -> bool:
        return self.p < LEVEL


_UNTESTED = Comparison("", "", "", Difference(_NOTHING), _NOTHING)


def comparisons(rows: Sequence[Row], baseline: str | None = None) -> list[Comparison]:
    """All models against the baseline, and all chains against the default one, in both metrics.

    The p-values are corrected for the number of comparisons (Holm). There are none without
    forecasts from several origins: in the paper's design all splits share the last step.
    """
    if not _has_origins(rows):
        return []
    models = _models(rows)
    baseline = _baseline(models, baseline)
    pairs = [(baseline, model) for model in models if model != baseline]
    if DEFAULT in models and baseline != DEFAULT:
        chains = [m for m in models if m in registry.CHAINS and m not in (DEFAULT, baseline)]
        pairs += [(DEFAULT, model) for model in chains]
    found = []
    for metric in METRICS:
        part, errors = _rows_of(rows, metric), matrix_of(rows, models, metric).mean(axis=1)
        for reference, model in pairs:
            paired = errors[:, models.index(model)] - errors[:, models.index(reference)]
            found.append((metric, reference, model, _difference(paired, part, metric)))
    adjusted = holm(np.array([one[-1].p for one in found]))
    return [Comparison(*one, float(p)) for one, p in zip(found, adjusted, strict=True)]


def _difference(paired: Array, rows: Sequence[Row], metric: str) -> Difference:
    """The mean of paired differences over splits, or over origins in order of time."""
    ratio = float(np.mean([row["n_test"] / row["n_train"] for row in rows])) if rows else 0.0
    return (over_origins if metric == "kle_f" else over_splits)(paired, ratio)


def _has_origins(rows: Sequence[Row]) -> bool:
    return any(row.get("origin") is not None for row in rows)


def _rows_of(rows: Sequence[Row], metric: str) -> list[Row]:
    """The rows of a metric; without forecast origins, all rows."""
    if not _has_origins(rows):
        return list(rows)
    return [row for row in rows if (row.get("origin") is not None) == (metric == "kle_f")]


def _models(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["model"] for row in rows))


def _baseline(models: list[str], baseline: str | None) -> str:
    if baseline is None:
        return "gap" if "gap" in models else models[0]
    if baseline not in models:
        remedy = f"Choose one of {', '.join(models)}."
        raise ArgumentError("baseline", baseline, "took no part.", remedy)
    return baseline


def summary(rows: Sequence[Row], baseline: str | None = None, seed: int = 0) -> list[Row]:
    """One row per model, from the rows of `chosen`: errors, ranks, differences from a baseline.

    The baseline is "gap" by default, or the first model. For each metric m, kle_s (gap error) and
    kle_f (forecast error), a row has `m_mean`, `m_std` (over splits and starts, or over origins),
    `m_rank` (mean rank, 1 is best), `m_diff` (mean difference), `m_diff_low`, `m_diff_high`, `m_p`,
    `m_wins` (splits or origins with a lower error than the baseline, starts averaged) and
    `m_seen_mean`, over features seen in training.

    With forecast origins, low and high are the ends of a 95 % confidence interval and p is adjusted
    for all `comparisons`, NaN where no method applies. In the paper's design they are quantiles of
    the mean over resampled splits, not a confidence interval: splits share the last step.
    """
    models = _models(rows)
    baseline = _baseline(models, baseline)
    by_origin = _has_origins(rows)
    compared = comparisons(rows, baseline)
    tested = {(one.metric, one.model): one for one in compared if one.reference == baseline}
    table: list[Row] = [{"model": model} for model in models]
    for metric in METRICS:
        matrix = matrix_of(rows, models, metric)
        ranks = rankdata(matrix, axis=-1).mean(axis=(0, 1))
        differences = matrix - matrix[:, :, [models.index(baseline)]]
        per_split = differences.mean(axis=1)
        if not by_origin:
            low, high = _bootstrap(per_split, seed)
        for j, row in enumerate(table):
            row[f"{metric}_mean"] = float(matrix[:, :, j].mean())
            row[f"{metric}_std"] = float(matrix[:, :, j].std())
            row[f"{metric}_rank"] = float(ranks[j])
            row[f"{metric}_diff"] = float(differences[:, :, j].mean())
            one = tested.get((metric, row["model"]), _UNTESTED)
            ends = one.difference[1:3] if by_origin else (float(low[j]), float(high[j]))
            row[f"{metric}_diff_low"], row[f"{metric}_diff_high"] = ends
            row[f"{metric}_wins"] = int(np.sum(per_split[:, j] < 0.0))
            row[f"{metric}_p"] = one.p
    for metric in METRICS:
        means = matrix_of(rows, models, metric, f"{metric}_seen").mean(axis=(0, 1))
        for row, mean in zip(table, means.tolist(), strict=True):
            row[f"{metric}_seen_mean"] = mean
    for row in table:
        row["seconds"] = float(np.mean([r["seconds"] for r in rows if r["model"] == row["model"]]))
        row["baseline"] = baseline
        row["n_splits"] = len({r["split"] for r in rows if r.get("origin") is None})
        row["n_origins"] = len({r["origin"] for r in rows if r.get("origin") is not None})
    return table


def matrix_of(rows: Sequence[Row], models: list[str], metric: str, key: str = "") -> Array:
    """Errors (n_splits or n_origins, n_inits, n_models) in a metric, or another key of its rows."""
    rows, key = _rows_of(rows, metric), key or metric
    splits = sorted({row["split"] for row in rows})
    starts = [sorted({r["init"] for r in rows if r["split"] == split}) for split in splits]
    matrix = np.full((len(splits), max(map(len, starts), default=1), len(models)), np.nan)
    for row in rows:
        i = splits.index(row["split"])
        place = i, starts[i].index(row["init"]), models.index(row["model"])
        matrix[place] = row.get(key, _NOTHING)
    return matrix


def _bootstrap(differences: Array, seed: int, n_draws: int = 10_000) -> tuple[Array, Array]:
    """2.5 and 97.5 % quantiles of the mean over resampled splits, (n_models,) each."""
    n_splits, n_models = differences.shape
    if n_splits < _FEWEST_SPLITS:
        return np.full(n_models, np.nan), np.full(n_models, np.nan)
    drawn = np.random.default_rng(seed).integers(n_splits, size=(n_draws, n_splits))
    low, high = np.quantile(differences[drawn].mean(axis=1), [0.025, 0.975], axis=0)
    return low, high
