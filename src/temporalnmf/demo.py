"""The main job on the embedded dataset: every chain, what it finds and how well it predicts."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .datasets import load_sotu
from .estimator import TemporalNMF
from .files import write_csv
from .likelihoods.base import Array
from .metrics import kl_error
from .registry import CHAINS


@dataclass(frozen=True)
class ChainResult:
    """One row of the table, and the fit behind it."""

    chain: str
    objective: float
    iterations: int
    seconds: float
    held_out_error: float
    stop_reason: str
    model: TemporalNMF


def run_demo(
    n_components: int = 6, seed: int = 0, report: Callable[[str], None] = lambda text: None
) -> list[ChainResult]:
    """Fit the State of the Union data with each of the six chains.

    Each is fitted twice: to all years for what it finds, and to four fifths of them for the
    error on the others (Kullback–Leibler error per hidden year).

    Parameters
    ----------
    n_components : int
    seed : int
        For the hidden years and the starting values.
    report : callable
        Told, in words, what is being done.
    """
    X = load_sotu().data
    inside = np.arange(1, len(X) - 1)
    rng = np.random.default_rng(seed)
    present = inside[~np.isnan(X[inside, 0])]
    hidden = rng.choice(present, size=len(X) // 5, replace=False)
    mask = np.ones(len(X), dtype=bool)
    mask[hidden] = False
    report("compiling, on first use only")
    for name in _chains():
        _fit(name, X[:20, :40], None, n_components, seed, tol=1e-9, max_iter=35)
    results: list[ChainResult] = []
    for name in _chains():
        report(f"{name}: all years")
        started = time.perf_counter()
        model = _fit(name, X, None, n_components, seed)
        seconds = time.perf_counter() - started
        report(f"{name}: a fifth of the years hidden")
        partial = _fit(name, X, mask, n_components, seed)
        predicted = partial.activations_[hidden] @ partial.components_
        error = kl_error(X[hidden], predicted) / len(hidden)
        results.append(
            ChainResult(
                name, model.objective_, model.n_iter_, seconds, error, model.stop_reason_, model
            )
        )
    return results


def _chains() -> list[str]:
    return [name for name in CHAINS if name != "none"]


def _fit(
    name: str, X: Array, mask: Array | None, n_components: int, seed: int, **params: Any
) -> TemporalNMF:
    model = TemporalNMF(n_components, chain=name, n_jobs=-1, random_state=seed, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table shows the stop reason
        return model.fit(X, mask=mask)


def component_summary(model: TemporalNMF, n_words: int = 8) -> list[dict[str, Any]]:
    """Top words of each component and the years where it peaks, largest component first."""
    dataset = load_sotu()
    order = np.argsort(-model.activations_.sum(axis=0))
    rows = []
    for k in order:
        words = dataset.feature_names[np.argsort(-model.components_[k])[:n_words]]
        years = dataset.times[np.argsort(-model.activations_[:, k])[:3]]
        share = model.activations_[:, k].sum() / model.activations_.sum()
        rows.append(
            {
                "component": int(k),
                "share": f"{share:.3f}",
                "peak_years": " ".join(str(year) for year in sorted(years)),
                "top_words": " ".join(words),
            }
        )
    return rows


def write_results(results: list[ChainResult], folder: Path) -> list[Path]:
    """Write the tables as CSV, each whole or not at all."""
    columns = ("chain", "objective", "iterations", "seconds", "held_out_error", "stop_reason")
    summary = [{column: getattr(result, column) for column in columns} for result in results]
    components = [
        {"chain": result.chain, **row}
        for result in results
        for row in component_summary(result.model)
    ]
    years = load_sotu().times
    activations = [
        {"chain": result.chain, "year": int(year), "component": k, "activation": float(value)}
        for result in results
        for year, row in zip(years, result.model.activations_, strict=True)
        for k, value in enumerate(row)
    ]
    tables = {"summary": summary, "components": components, "activations": activations}
    return [write_csv(folder / f"{name}.csv", rows) for name, rows in tables.items()]
