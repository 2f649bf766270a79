"""All text, tables and charts of a report, as one dictionary of values that JSON can hold.

The template only lays them out. A number that is not finite becomes None.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from ..chains.base import Chain
from ..estimator import TemporalNMF
from ..forecasting.checks import Calibration
from ..forecasting.forecast import Forecast
from ..messages.formatting import counted, number_text
from ..persistence.models import parameters_of_fit
from ..sampling.traces import one_step_on
from ..summary import FOUND_AGAIN, stability_words
from .answer import answer_of
from .curves import charts
from .effects import effects_content
from .made import how_it_was_made
from .notes import WORDS
from .runs import Verdict, runs_content, verdict_of
from .seasons import seasons_content
from .subject import COVERAGE, Subject
from .texts import NO_BREAK, Content, clean, level, number, percent, percents, thinned

# Largest numbers of rows in tables.
_MOST_GAPS, _MOST_AHEAD = 40, 500
_LONGEST_NOTE = 1000
# Movement that differs from what the chain expects by more than this factor is noted.
_LIVELY = 1.25

_POINTS = {
    "mean": "the expected value",
    "mode": "the most probable value",
    "median": "the median",
    "last value": "the last value, repeated",
}
_DIVERGENCES = {
    "poisson": "Kullback–Leibler",
    "negative_binomial": "Negative binomial",
    "negative_binomial_2": "Negative binomial",
    "exponential": "Itakura–Saito",
    "gamma": "Gamma",
    "gaussian": "Gaussian",
    "tweedie": "Tweedie",
}


class HoldOut(TypedDict):
    """Coverage on held-out data; see `write_report`."""

    coverage: float
    inside: int
    total: int
    low: float
    high: float
    words: NotRequired[str]


def report_content(
    model: TemporalNMF,
    *,
    question: str | None = None,
    command: str | Sequence[str] | None = None,
    steps: int | None = None,
    forecast: Forecast | None = None,
    covariates: ArrayLike | None = None,
    hold_out: HoldOut | None = None,
    n_features: int = 12,
    source: str | PathLike[str] | None = None,
) -> Content:
    """The content of a report, for a template or for JSON; see `write_report`."""
    check_is_fitted(model)
    subject = Subject(model, steps, forecast, n_features, covariates)
    unit = subject.unit
    name = None if source is None else clean(Path(source).name)
    gaps, fit = _gap_words(subject), _convergence(subject)
    return {
        "title": f"{name or 'Components over time'} · temporalnmf",
        "question": _question(subject) if question is None else str(question),
        "answer": answer_of(subject, gaps, fit.answer),
        "source": name,
        "span": [subject.texts[0], subject.texts[-1]],
        "size": f"{unit.spanning(subject.n_steps)}, {counted(subject.n_features, 'feature')}, "
        f"{counted(subject.n_components, 'component')}",
        "unit": {"noun": unit.noun, "plural": unit.plural},
        "exposed": subject.exposed,
        "bands": bool(subject.past.has_bands),
        "level": level(subject.levels[0]),
        "notes": _notes(subject),
        "components": _components(subject),
        "seasons": seasons_content(subject),
        "effects": effects_content(subject),
        "forecast": _forecast(subject) if subject.n_ahead else None,
        "gaps": {
            "words": gaps,
            "rows": [_gap(subject, start, stop) for start, stop in subject.gaps[:_MOST_GAPS]],
            "left_out": max(len(subject.gaps) - _MOST_GAPS, 0),
        },
        "errors": None if subject.errors is None else _worst_steps(subject),
        "calibration": _calibration(model.calibration_, hold_out),
        "convergence": fit._asdict(),
        "runs": runs_content(subject),
        "specialists": _specialists(subject),
        "movement": _movement(subject),
        "made": how_it_was_made(model, command, source),
        "charts": charts(subject),
    }


def _question(subject: Subject) -> str:
    """The question that the data suggest."""
    features = counted(subject.n_features, "feature")
    span = f"over {subject.unit.spanning(subject.n_steps)}"
    span += f" ({subject.texts[0]} to {subject.texts[-1]})"
    asked = f"Which of the {features} move together {span}"
    moved = "when did each group rise and fall"
    if subject.n_components == 1:
        asked, moved = f"What do the {features} have in common {span}", "when did it rise and fall"
    ending = f"{moved}, and what comes next" if subject.n_ahead else f"and {moved}"
    return f"{asked}, {ending}?"


def _notes(subject: Subject) -> list[str]:
    """Notes on the past steps that are not also notes on the forecast."""
    ahead = subject.ahead.notes if subject.n_ahead else ()
    return [
        clean(note.render(WORDS), _LONGEST_NOTE) for note in subject.past.notes if note not in ahead
    ]


def _components(subject: Subject) -> list[Content]:
    """One card per component."""
    cards = []
    for one, name in zip(subject.summary, subject.names, strict=True):
        weights = [weight for _, weight in one.top]
        most = max(weights, default=0.0)
        cards.append(
            {
                "number": one.number,
                "name": name,
                "share": f"{percent(one.share)} of all activation",
                "peak": clean(one.peak),
                "when": subject.unit.at(clean(one.peak)),
                "stability": number(one.stability),
                "stability_words": _stability_words(one.stability, subject.start),
                "shaky": one.stability is not None and bool(one.stability < FOUND_AGAIN),
                "top": [
                    {
                        "feature": clean(feature),
                        "weight": text,
                        "length": round(100.0 * weight / most, 1) if most > 0 else 0.0,
                    }
                    for (feature, weight), text in zip(one.top, percents(weights), strict=True)
                ],
            }
        )
    return cards


def _stability_words(stability: float | None, start: str) -> str:
    if stability is None:
        once = "the fit was started once" if start == "start" else "there was one run"
        return f"not assessed: {once}"
    return f"{stability_words(stability, start)} ({stability:.2f})"


def _forecast(subject: Subject) -> Content:
    """Forecast of the totals as a table, with notes."""
    ahead = subject.ahead
    point, bands = subject.totals_ahead()
    return {
        "steps": subject.n_ahead,
        "ahead": subject.unit.spanning(subject.n_ahead),
        "span": [subject.texts_ahead[0], subject.texts_ahead[-1]],
        "point": _point_text(ahead.point),
        "notes": [clean(note.render(WORDS), _LONGEST_NOTE) for note in ahead.notes],
        "bands": [level(coverage) for coverage, _, _ in bands],
        "checked": bool(ahead.checked.all()),
        "rows": [
            {
                "when": subject.texts_ahead[s],
                "point": number_text(point[s]),
                "bands": [[number_text(low[s]), number_text(high[s])] for _, low, high in bands],
            }
            for s in thinned(np.arange(subject.n_ahead), _MOST_AHEAD)
        ],
    }


def _point_text(point: str) -> str:
    """What the line of a forecast shows."""
    return next((words for sign, words in _POINTS.items() if sign in point.split(" (")[0]), point)


def _gap_words(subject: Subject) -> str:
    missing = sum(stop - start for start, stop in subject.gaps)
    if not missing:
        return f"None of the {subject.unit.counted(subject.n_steps)} is missing entirely."
    named = ", ".join(_stretch(subject, *gap) for gap in subject.gaps[:3])
    more = f" and {counted(len(subject.gaps) - 3, 'more gap')}" if len(subject.gaps) > 3 else ""
    many = f"One {subject.unit.noun}" if missing == 1 else subject.unit.counted(missing)
    verb = "was missing and is" if missing == 1 else "were missing and are"
    return f"{many} of {subject.n_steps:,} {verb} filled in: {named}{more}."


def _stretch(subject: Subject, start: int, stop: int) -> str:
    first, last = subject.texts[start], subject.texts[stop - 1]
    return first if stop - start == 1 else f"{first} to {last}"


def _gap(subject: Subject, start: int, stop: int) -> Content:
    """A stretch of missing steps, with the mean of the values filled in."""
    model, past = subject.model, subject.past
    filled = model.exposure_[start:stop] @ model.activations_[start:stop] / (stop - start)
    band = None
    if past.has_bands:
        wide = max(COVERAGE)
        drawn = past.at(slice(start, stop)).samples(of="totals").mean(axis=1)
        low, high = np.quantile(drawn, [0.5 - wide / 2, 0.5 + wide / 2])
        band = f"{number_text(low)} to {number_text(high)}"
    return {
        "when": _stretch(subject, start, stop),
        "steps": stop - start,
        "total": number_text(filled.sum()),
        "band": band,
        "largest": subject.names[int(np.argmax(filled))],
    }


def _worst_steps(subject: Subject) -> Content:
    """The steps with the largest errors."""
    assert subject.errors is not None
    observed, expected, error = subject.errors
    usual = float(np.nanmedian(error))
    rows = [
        {
            "when": subject.texts[n],
            "error": number_text(error[n]),
            "times": number_text(error[n] / usual, 2) if usual > 0 else None,
            "observed": number_text(observed[n]),
            "expected": number_text(expected[n]),
        }
        for n in subject.worst
    ]
    return {"rows": rows, "usual": number_text(usual)}


def _calibration(found: Calibration | None, hold_out: HoldOut | None) -> Content | None:
    """Coverage of the intervals, nominal and found."""
    if hold_out is None:
        return None if found is None else _comparison(found)
    inside, total = int(hold_out["inside"]), int(hold_out["total"])
    nominal, low, high = map(float, (hold_out["coverage"], hold_out["low"], hold_out["high"]))
    share = inside / total if total else float("nan")
    places = {"nominal": nominal, "found": share, "low": low, "high": high}
    return {
        "nominal": percent(nominal),
        "found": percent(share) if total else "none",
        "inside": f"{inside:,}",
        "total": f"{total:,}",
        "low": percent(low),
        "high": percent(high),
        "agrees": low <= nominal <= high,
        "words": str(hold_out.get("words", "")),
        "places": {name: number(100.0 * value) for name, value in places.items()},
        "rows": [],
    }


def _comparison(found: Calibration) -> Content:
    """Result of `model.calibrate`, one row per kind and horizon."""
    short = {id(check) for check in found.short(check.ahead for check in found.checks)}
    rows = [
        {
            "of": f"sums over {check.ahead} steps" if check.of == "sums" else str(check.of),
            "ahead": "" if check.of == "sums" else f"{counted(check.ahead, 'step')} ahead",
            "before": check.share(check.before),
            "after": check.share(check.after),
            "band": " to ".join(percent(end) for end in check.band(check.after)),
            "score": [number_text(tally.score, 3) for tally in (check.before, check.after)],
            "change": check.change,
            "short": id(check) in short,
        }
        for check in found.shown
    ]
    facts = {
        "nominal": percent(found.coverage),
        "n_origins": f"{found.n_origins:,}",
        "refitted": found.refitted,
    }
    return {**facts, "holds": not short, "rows": rows}


def _convergence(subject: Subject) -> Verdict:
    """Whether the fit converged, or its runs agree."""
    model = subject.model
    if model.posterior_ is not None:
        return verdict_of(subject)
    n_starts = parameters_of_fit(model)["n_init"]
    best = f" The best of {n_starts} starts is shown." if n_starts > 1 else ""
    iterations = counted(int(model.n_iter_), "iteration")
    if model.converged_:
        return Verdict(True, "Converged.", f"The fit took {iterations}.{best}", "")
    words = f"The fit stopped after {iterations}: treat its numbers as provisional."
    answer = "The fit had not converged when it stopped: treat the numbers as provisional."
    return Verdict(False, "Not converged.", words + best, answer)


def _specialists(subject: Subject) -> Content:
    """Details for readers who know the method."""
    model = subject.model
    why = str(model.stop_reason_)
    stop = f"{why[:1].upper()}{why[1:]}".rstrip(".") + "."
    if not model.converged_ and model.posterior_ is None:
        stop += " Increase max_iter, or accept a larger tol."
    objective = f"Objective {number_text(model.objective_)}."
    if model.posterior_ is not None:
        objective = f"Log posterior {number_text(-model.objective_)} on average, up to a constant."
    likelihood = model.likelihood_.name
    divergence = f"{_DIVERGENCES.get(likelihood, likelihood)} divergence"
    return {
        "stop": stop,
        "objective": objective,
        "error": number_text(model.reconstruction_err_),
        "divergence": f"{divergence}, with the natural logarithm",
        "point": subject.ahead.point if subject.n_ahead else None,
        "long_run": _long_run(model.chain_, subject),
    }


def _long_run(chain: Chain, subject: Subject) -> str:
    """The long-run behaviour of the chain and what it means for the forecast; may be empty."""
    if not chain.has_law:
        return ""
    regime = chain.regime()
    regimes = dict.fromkeys(map(str, regime if isinstance(regime, list) else [regime]))
    words = f"In the long run and without data: {' '.join(regimes)}"
    if "almost every path" in words:
        words += " “Almost every path” means nearly all simulated futures; a few rare ones may "
        words += "pull the mean elsewhere."
        if subject.n_ahead:
            words += f" Within the {subject.unit.spanning(subject.n_ahead)} of this forecast, this "
            words += "concerns only components that its notes name."
    return words


def _movement(subject: Subject) -> list[Content] | None:
    """How far components move in a step: as expected by the chain, and as found.

    Both are the standard deviation of log h_{n+1} − log h_n of levels: of steps of the chain from
    the fitted ones, and of posterior paths.
    """
    chain = subject.model.chain_
    if not chain.dynamic or not subject.past.has_bands:
        return None
    expected = _log_changes(_expected_pairs(subject.model, np.random.default_rng(0)))
    # About 100 evenly spaced paths suffice for one number; draws are ordered by run.
    paths = subject.past.samples(of="components") / subject.past.factor
    found = _log_changes(paths[:: -(-len(paths) // 100)])
    return [
        {
            "name": name,
            "index": k,
            "expected": _movement_text(expected[k]),
            "found": _movement_text(found[k]),
            "words": f"{_compared(found[k], expected[k])} the model expects",
            "lively": bool(found[k] > _LIVELY * expected[k]),
        }
        for k, name in enumerate(subject.names)
    ]


def _expected_pairs(model: TemporalNMF, rng: np.random.Generator) -> Array:
    """Pairs (n, 2, K) of levels, one step of the chain apart."""
    draws = model.posterior_
    if draws is None:
        starts = rng.choice(model.levels_, size=2000)
        return model.chain_.sample(len(starts), 2, rng, starts)
    which = draws.pick(200)  # each with its own hyper-parameters
    first = rng.permuted(draws.flat("levels")[which], axis=1)[:, :10]
    pairs = np.stack([first, one_step_on(draws, which, first, rng)], axis=2)
    return pairs.reshape(-1, 2, pairs.shape[3])


def _log_changes(paths: Array) -> Array:
    """Standard deviation (K,) of log h_{n+1} − log h_n over paths (n_paths, N, K)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.diff(np.log(paths), axis=1)
    # A path at zero stays there.
    return np.where(np.isfinite(change), change, 0.0).std(axis=(0, 1))


def _movement_text(sd: float) -> str:
    """A typical step in per cent, or as a factor if it is large."""
    if sd < 1.0:
        return f"{number_text(100.0 * np.expm1(sd), 2)}{NO_BREAK}%"
    return f"a factor of {number_text(np.exp(sd), 2)}"


def _compared(found: float, expected: float) -> str:
    if found > _LIVELY * expected:
        return "livelier than"
    return "calmer than" if found * _LIVELY < expected else "as"
