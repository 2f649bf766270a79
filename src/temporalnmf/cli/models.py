"""Fitted models: on the terminal, and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING

import typer

from ..messages.formatting import counted, percent
from ..messages.warning import without
from ..timeline.grid import time_texts
from . import data
from .console import Voice, progress_bar
from .spelling import as_advice

if TYPE_CHECKING:
    from pathlib import Path

    from .._typing import Array
    from ..estimator import TemporalNMF
    from ..forecasting.checks import Calibration
    from ..sampling import PosteriorDraws
    from ..summary import ComponentSummary

# Key of the context under which the root command keeps its arguments.
WORDS = "temporalnmf.words"


@contextmanager
def without_convergence_warnings() -> Iterator[None]:
    """Suppress warnings that the command reports itself."""
    from sklearn.exceptions import ConvergenceWarning

    with without(ConvergenceWarning):
        yield


def show_convergence(model: TemporalNMF, seconds: float, voice: Voice) -> None:
    """Print how the fit ended."""
    best = f"; the best of {model.n_init} starts" if model.n_init > 1 else ""
    took = f", {seconds:.1f} s" if seconds >= 0.1 else ""
    if model.posterior_ is not None:
        voice.say(f"{draws_text(model.posterior_)}{took}.")
        show_diagnosis(model.posterior_, voice)
    elif model.converged_:
        reason = model.stop_reason_.removeprefix("converged: ")
        voice.say(f"Converged: {reason}{best}{took}.", style="green")
    else:
        remedy = "Increase --max-iter, or accept a larger --tol."
        voice.say(f"Not converged: {model.stop_reason_}{best}{took}. {remedy}", style="bold red")


def draws_text(draws: PosteriorDraws) -> str:
    """How many draws there are, as "4 runs of 500 draws"."""
    n_runs, n_draws = draws.smoothing.shape
    every = "" if draws.thin == 1 else f", one of {draws.thin} kept"
    return f"{counted(n_runs, 'run')} of {counted(n_draws, 'draw')}{every}"


def show_diagnosis(draws: PosteriorDraws, voice: Voice) -> None:
    """Print whether the runs agree: a table, and the verdict."""
    found = draws.diagnosis
    rows = []
    for q in found.quantities:
        numbers = f"{q.rhat:.3f}", f"{q.ess_bulk:,.0f}", f"{q.ess_tail:,.0f}"
        rows.append([q.name, *(numbers if isfinite(q.rhat) else "–––")])
    voice.table(["draws of", "R-hat", "bulk ESS", "tail ESS"], rows, left=("draws of",))
    good = found.ok and found.n_runs > 1
    voice.say(found.advice.render(as_advice), style="green" if good else "bold red")


def show_components(model: TemporalNMF, voice: Voice) -> None:
    """Print a table of the components: share, peak, stability, features."""
    from ..summary import FOUND_AGAIN, VARIES, alike, component_summary, stability_words

    rows = []
    for one in component_summary(model, n_features=7):
        stable = [] if one.stability is None else [f"{one.stability:.2f}"]
        top = ", ".join(name for name, _ in one.top)
        rows.append([str(one.number), percent(one.share), one.peak, *stable, top])
    stability = [] if model.stability_ is None else ["stability"]
    headings = ["", "share", "peak", *stability, "top features"]
    voice.table(headings, rows, left=("peak", "top features"))
    if model.stability_ is not None and (model.stability_ < FOUND_AGAIN).any():
        start = "start" if model.posterior_ is None else "run"
        voice.say(
            f"Stability: from {FOUND_AGAIN} on a component is {stability_words(FOUND_AGAIN)} in "
            f"other {start}s; below {VARIES} it is {stability_words(0.0)}."
        )
    for pair in alike(model):
        voice.say(f"{pair} Fit fewer components, or learn how far they move (--learn alpha).")


_NO_TREND = "no trend: "


def show_seasons(model: TemporalNMF, voice: Voice) -> None:
    """Print the seasons of a fit and why it has them, or which were tried and left out."""
    from ..summary import seasons_left_out

    found = season_texts(model)
    for name, text in found.items():
        voice.say(f"Season {name}: {text}.")
    if found:
        voice.say(f"Reason: {model.season_reason_}.")
    elif left_out := seasons_left_out(model):
        tried = f"{' and '.join(left_out)} {'was' if len(left_out) == 1 else 'were'} tried"
        voice.say(f"No season: {tried}, but held-out steps are not predicted better.")
    for line in effect_texts(model):
        voice.say(f"{line}.")


def effect_texts(model: TemporalNMF) -> list[str]:
    """The trend and the factors of covariates, holidays and events in words, a line for each."""
    lines = []
    if model.trend_ is not None:
        lines.append(f"Trend, growth per step at the end: {_changes(model.trend_)}")
    if model.trend is not None:
        reason = model.trend_reason_
        lines.append(
            f"Reason: {reason}" if lines else f"No trend: {reason.removeprefix(_NO_TREND)}"
        )
    known = model._covariate_names
    for name, factors in model.effects_.items():
        unit = ", per unit" if name in known else ""
        lines.append(f"Effect of {name}{unit}: {_changes(factors)}")
    return lines


def _changes(factors: Array) -> str:
    """Changes by factors (K, 3): that of the first component, or the range of all."""
    low, high = (_change(x) for x in (factors[:, 0].min(), factors[:, 0].max()))
    if len(factors) == 1:
        ends = " to ".join(_change(x) for x in factors[0, 1:])
        return f"{low} (90 %: {ends})"
    unsure = bool(((factors[:, 1] <= 1.0) & (factors[:, 2] >= 1.0)).all())
    return f"{low} to {high}, by component" + ("; none is certain (90 %)" if unsure else "")


def _change(factor: float) -> str:
    """A factor as a change in percent, such as "+5.2 %"."""
    change = factor - 1.0
    text = percent(abs(change))
    return text if text.startswith("<") else f"{'+' if change >= 0.0 else '−'}{text}"


def season_texts(model: TemporalNMF) -> dict[str, str]:
    """The swing of each season in words: of the total, and of the component with the largest."""
    from ..summary import season_summary

    texts = {}
    for season in season_summary(model):
        k = season.largest
        text = season.words()
        if len(season.factors) > 1:
            text += f"; most in component {k + 1}: {season.words(k)}"
        texts[season.name] = text
    return texts


def calibrate_model(
    model: TemporalNMF, n_origins: int, voice: Voice, steps: int = 1, refit: bool = True
) -> None:
    """Check intervals on the past, and print the result."""
    with progress_bar("forecasts of the past") as progress, without_convergence_warnings():
        model.calibrate(n_origins, steps=steps, refit=refit, progress=progress)
    voice.say(str(model.calibration_))


def command_line(ctx: typer.Context) -> str:
    """The command as the user typed it, quoted for a shell."""
    return shlex.join(["temporalnmf", *ctx.meta.get(WORDS, [])])


def provenance(ctx: typer.Context, file: str, folder: Path | None = None) -> dict[str, str]:
    """The origin of a model; `folder` holds the shards, if there are some."""
    path = data.source_path(file)
    return {
        "command": command_line(ctx),
        "source": file,
        "sha256": data.checksum(folder if folder is not None and path.is_dir() else path),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def summary(model: TemporalNMF) -> dict[str, object]:
    """A model as JSON."""
    from ..persistence.models import parameters_of_fit
    from ..solvers.options import solver_name
    from ..summary import component_summary

    texts = time_texts(model.times_)
    return {
        "n_components": len(model.components_),
        "n_steps": len(texts),
        "n_features": model.n_features_in_,
        "first": texts[0],
        "last": texts[-1],
        "every": model.timeline_.every,
        "gaps": [text for text, seen in zip(texts, model.observed_, strict=True) if not seen],
        "exposure": bool((model.exposure_ != 1.0).any()),
        "chain": model.chain_.name,
        "hyper_parameters": model.chain_.get_params(),
        "learned": model.learned_,
        "smoothing": model.smoothing_,
        "likelihood": model.likelihood_.name,
        "solver": solver_name(model.solver),
        "draws": None if model.posterior_ is None else _draws(model.posterior_),
        "converged": bool(model.converged_),
        "stop_reason": model.stop_reason_,
        "n_iter": model.n_iter_,
        "n_init": parameters_of_fit(model)["n_init"],
        "objective": model.objective_,
        "reconstruction_err": model.reconstruction_err_,
        "components": [_component(one) for one in component_summary(model)],
        "seasons": _seasons(model),
        "season_reason": model.season_reason_,
        "effects": model.effects_,
        "trend": model.trend_,
        "trend_reason": model.trend_reason_,
        "calibration": None if model.calibration_ is None else _calibration(model.calibration_),
        "provenance": getattr(model, "provenance_", None),
    }


def _component(one: ComponentSummary) -> dict[str, object]:
    found = asdict(one)
    del found["index"]
    return {"component": one.number, **found}


def _seasons(model: TemporalNMF) -> list[dict[str, object]]:
    from ..summary import season_summary

    return [
        {
            "season": season.name,
            "positions": season.positions.names,
            "total": {"factors": season.total, "words": season.words()},
            "components": [
                {"component": k + 1, "factors": factors, "words": season.words(k)}
                for k, factors in enumerate(season.factors)
            ],
        }
        for season in season_summary(model)
    ]


def _calibration(found: Calibration) -> dict[str, object]:
    checks = [asdict(check) | {"band": check.band(check.after)} for check in found.checks]
    return {"coverage": found.coverage, "n_origins": found.n_origins, "checks": checks}


def _draws(draws: PosteriorDraws) -> dict[str, object]:
    found = draws.diagnosis
    return {
        "runs": found.n_runs,
        "draws": found.n_draws,
        "thin": draws.thin,
        "settled": found.ok,
        "verdict": found.verdict,
        "quantities": [asdict(quantity) for quantity in found.quantities],
    }
