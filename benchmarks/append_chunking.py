"""Does it matter how new steps are appended: one by one, all at once, or by a refit?

    python benchmarks/append_chunking.py [--out FILE.md] [--sets 20]

Three tables. One-step forecasts after appending: the Kullback–Leibler divergence of the next step
from its forecast, on simulated data that move ten times as much as the chain allows, and on State
of the Union. Draws: means and standard deviations of activations after appending ten steps,
compared with those of draws swept 60 times each. Cost: seconds for one more step.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import rel_entr
from sklearn.exceptions import ConvergenceWarning

from temporalnmf import TemporalNMF
from temporalnmf.chains import BGAR, Rate
from temporalnmf.datasets import load_sotu
from temporalnmf.inference.fitting import machinery
from temporalnmf.inference.starts import start_activations
from temporalnmf.objective import Problem
from temporalnmf.sampling import inference
from temporalnmf.solvers import Gibbs
from temporalnmf.solvers.accelerated import Accelerated
from temporalnmf.solvers.monitor import Monitor

NEW = 10


def simulated(
    n_steps: int, n_features: int, k: int, move: float, seed: int, jump: float = 1.0
) -> np.ndarray:
    """Counts, 500 per step, of k components whose logarithms change by `move` per step."""
    rng = np.random.default_rng(seed)
    H = np.exp(np.cumsum(move * rng.standard_normal((n_steps, k)), axis=0))
    H *= 500.0 / k / H.mean()
    H[-NEW:] *= jump
    return rng.poisson(H @ rng.dirichlet(np.full(n_features, 0.5), size=k)).astype(float)


def divergence(x: np.ndarray, mean: np.ndarray) -> float:
    """Generalised Kullback–Leibler divergence of one step."""
    return float(np.sum(rel_entr(x, mean) - x + mean))


def forecast_errors(X: np.ndarray, make: Any) -> dict[str, float]:
    """Mean divergence of one-step forecasts from each of the last steps but one, by rule."""
    known = X.shape[0] - NEW
    fitted = make().fit(X[:known])
    separate, held = copy.deepcopy(fitted), copy.deepcopy(fitted)
    errors: dict[str, list[float]] = {}
    apart = 0.0
    for n in range(known + 1, X.shape[0]):
        separate.append(X[n - 1 : n])
        together = copy.deepcopy(fitted).append(X[known:n])
        added = held.transform(X[n - 1 : n], continue_chain=True)
        held.activations_ = np.vstack([held.activations_, added])
        ahead = fitted.chain_.point_forecast(added[0], 1, "mean", "log")[:, 0]
        means = {
            "earlier activations fixed": ahead @ fitted.components_,
            "one by one": separate.forecast(1, n_samples=1).values[0],
            "all at once": together.forecast(1, n_samples=1).values[0],
            "refit": make().fit(X[:n]).forecast(1, n_samples=1).values[0],
        }
        apart = max(apart, abs(separate.activations_ / together.activations_ - 1.0).max())
        for name, mean in means.items():
            errors.setdefault(name, []).append(divergence(X[n], mean))
    return {name: float(np.mean(each)) for name, each in errors.items()} | {"apart": apart}


def table_of_forecasts(n_sets: int) -> list[str]:
    stiff = [
        forecast_errors(simulated(60, 30, 3, 0.2, seed), lambda: stiff_model(3))
        for seed in range(n_sets)
    ]
    sotu = load_sotu().data
    words = [forecast_errors(sotu, lambda: TemporalNMF(6, random_state=0))]
    names = [name for name in words[0] if name != "apart"]
    lines = [
        f"| rule | stiff chain, {n_sets} data sets | relative to all at once | "
        f"State of the Union | relative to all at once |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        cells = []
        for found in (stiff, words):
            mean = np.mean([each[name] for each in found])
            beside = mean / np.mean([each["all at once"] for each in found]) - 1.0
            cells += [f"{mean:.1f}", f"{beside:+.1%}".replace("%", " %")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    apart = max(each["apart"] for each in (*stiff, *words))
    return [*lines, "", f"Largest relative difference, one by one and all at once: {apart:.0e}."]


def stiff_model(k: int) -> TemporalNMF:
    return TemporalNMF(k, chain=Rate(3000.0), random_state=0)


CASES = {
    "rate, default": (simulated(40, 12, 2, 0.1, 0), "rate"),
    "rate, α = 10⁴, jump by half": (simulated(40, 12, 2, 0.02, 0, 1.5), Rate(1e4)),
    "rate, α = 10⁶, jump by half": (simulated(40, 12, 2, 0.02, 0, 1.5), Rate(1e6)),
    "bgar, α = 3, ρ = 0.9, jump by half": (
        simulated(40, 12, 2, 0.1, 0, 1.5), BGAR(3.0, "auto", 0.9)),
}  # fmt: skip


def levels(model: TemporalNMF) -> np.ndarray:
    """Activations and totals, (draws, steps, K + 1)."""
    H = model.posterior_.flat("activations")
    return np.concatenate([H, H.sum(axis=2, keepdims=True)], axis=2)


def table_of_draws() -> list[str]:
    lines = [
        "| chain | between | root mean square, in standard deviations | largest | "
        "ratio of standard deviations |",
        "|---|---|---|---|---|",
    ]
    for name, (X, chain) in CASES.items():
        solver = Gibbs(n_draws=150, n_tune=200, n_chains=2)
        fitted = TemporalNMF(2, chain=chain, solver=solver, random_state=0).fit(X[:-NEW])
        together, separate, long = (copy.deepcopy(fitted) for _ in range(3))
        together.append(X[-NEW:])
        for n in range(NEW):
            separate.append(X[len(X) - NEW + n :][:1])
        few, inference._FEW_SWEEPS = inference._FEW_SWEEPS, 60
        long.append(X[-NEW:])
        inference._FEW_SWEEPS = few
        for what, one, other in (
            ("one by one, all at once", separate, together),
            ("all at once, 60 sweeps", together, long),
        ):
            a, b = levels(one), levels(other)
            spread = b.std(axis=0)
            bias = (a.mean(axis=0) - b.mean(axis=0)) / spread
            ratio = float(np.mean(a.std(axis=0) / spread))
            rms, most = np.sqrt(np.mean(bias**2)), np.abs(bias).max()
            lines.append(f"| {name} | {what} | {rms:.2f} | {most:.2f} | {ratio:.2f} |")
    return lines


def seconds(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def text(duration: float) -> str:
    return f"{duration:.0f} s" if duration >= 10.0 else f"{duration:.1f} s"


def solved(model: TemporalNMF, X: np.ndarray, H: np.ndarray, tol: float) -> tuple[Any, int]:
    """Activations (K, N) at fixed components from a start, and the iterations it took."""
    series, monitor = model._series_of(X, None, None), Monitor(1000, tol)
    with machinery(model._config()) as workers:
        data = series.observe(model.likelihood_, workers)
        problem = Problem(data, model.chain_, model.map_scale)
        found = Accelerated().solve(problem, model.components_.T, H, monitor, fixed_W=True).H
    return found, monitor.iteration


def starts(model: TemporalNMF, X: np.ndarray) -> list[str]:
    """Iterations from the start of `transform` and from the old activations; errors at the end."""
    old = np.vstack([model.activations_, model.activations_[-1:]])
    even = start_activations(model._series_of(X, None, None), model.n_components)
    cold, warm = (solved(model, X, H, 0.1 * model.tol) for H in (even, old.T))
    exact, _ = solved(model, X, cold[0], 1e-14)
    cells = []
    for H, iterations in (cold, warm):
        error = abs(H[:, -1] / exact[:, -1] - 1.0).max()
        cells.append(f"{iterations}, {100.0 * error:.1g} %")
    return cells


def table_of_costs() -> list[str]:
    draws = {"solver": "gibbs", "random_state": 0}
    cases = {
        "2000 steps, 500 features, K = 5": (simulated(2000, 500, 5, 0.05, 0), 5, {}),
        "the same, α = 3000": (simulated(2000, 500, 5, 0.1, 0), 5, {"chain": Rate(3000.0)}),
        "State of the Union, K = 6": (load_sotu().data, 6, {}),
        "100 steps, 50 features, K = 3, 2000 draws": (simulated(100, 50, 3, 0.1, 0), 3, draws),
    }
    lines = [
        "| data | fit | one more step | refit | from equal shares | from the old activations |",
        "|---|---|---|---|---|---|",
    ]
    for name, (X, k, settings) in cases.items():
        model = TemporalNMF(k, **{"random_state": 0, **settings})
        small = copy.deepcopy(model)
        if model.solver == "gibbs":
            small.set_params(solver__n_draws=2, solver__n_tune=1)
        small.fit(X[:-1]).append(X[-1:])  # compiles
        fit = seconds(lambda m=model, X=X: m.fit(X[:-1]))
        again = copy.deepcopy(model)
        cells = ["", ""] if model.solver == "gibbs" else starts(model, X)
        one = seconds(lambda m=model, X=X: m.append(X[-1:]))
        refit = seconds(lambda m=again, X=X: m.append(X[-1:], update_components=True))
        lines.append(
            f"| {name} | {text(fit)} | {text(one)} | {text(refit)} | {' | '.join(cells)} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="Markdown page to write; else it is printed")
    parser.add_argument("--sets", type=int, default=20, help="simulated data sets")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    page = [
        "# Appending steps one by one, all at once, or with a refit",
        "",
        f"`python benchmarks/append_chunking.py --sets {args.sets}`. Ten steps are appended at "
        "fixed components.",
        "",
        "## One-step forecasts",
        "",
        "Mean Kullback–Leibler divergence of the next step from its forecast, over nine origins. "
        "*Earlier activations fixed* infers each new step given the last one, as "
        "`transform(continue_chain=True)` does. The stiff chain, `Rate(3000)`, expects changes of "
        "2 % per step; the data change by 20 %.",
        "",
        *table_of_forecasts(args.sets),
        "",
        "## Draws",
        "",
        "Means of the activations of all steps and components, and of totals, over 300 draws. "
        "Independent draws of one distribution would differ by a root mean square of 0.08.",
        "",
        *table_of_draws(),
        "",
        "## Cost",
        "",
        "Wall-clock times on a busy machine; only their ratios are meaningful. *Refit* is "
        "`update_components=True`. The solver starts from equal shares of the totals, as in "
        "`transform`, not from the old activations. From those it would stop after a few "
        "iterations, since the objective of a long series hardly depends on its last step, and "
        "leave a larger error in that step. The last two columns show the number of iterations and "
        "the largest error of an activation of the last step.",
        "",
        *table_of_costs(),
        "",
    ]
    text = "\n".join(page)
    if args.out is None:
        print(text)
    else:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
