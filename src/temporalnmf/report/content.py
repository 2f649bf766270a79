"""What a report says: from a fitted model to one plain dictionary that JSON can hold.

Words and tables are made here, charts in `curves`; the template only lays them out. A number that
is not finite becomes None.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from ..messages.formatting import number_text
from ..persistence.models import parameters_of_fit
from ..sampling.traces import one_step_on
from ..summary import FOUND_AGAIN, stability_words
from .curves import charts
from .last_step import last_step_words
from .made import how_it_was_made
from .notes import WORDS
from .plainly import long_run, point_text
from .runs import runs_content, verdict_of
from .subject import COVERAGE, Subject
from .texts import NO_BREAK, change, clean, counted, level, number, percent, percents

if TYPE_CHECKING:
    from ..estimator import TemporalNMF

# Rows of a table, at the most.
_MOST_GAPS, _MOST_AHEAD = 40, 500
_LONGEST_NOTE = 1000
# Movement found over movement expected, beyond which one is told that they differ.
_LIVELY = 1.25


def report_content(
    model: TemporalNMF,
    *,
    question: str | None = None,
    command: str | Sequence[str] | None = None,
    steps: int | None = None,
    forecast: Any = None,
    hold_out: dict[str, Any] | None = None,
    n_features: int = 12,
    source: Any = None,
) -> dict[str, Any]:
    """All that a report says, ready for a template or for JSON; see `write_report`.

    Examples
    --------
    >>> from temporalnmf import TemporalNMF
    >>> from temporalnmf.datasets import load_sotu
    >>> from temporalnmf.report import report_content
    >>> model = TemporalNMF(6, random_state=0).fit(load_sotu(as_frame=True).data)
    >>> content = report_content(model, steps=5)
    >>> content["question"]  # doctest: +NORMALIZE_WHITESPACE
    'Which of the 1,609 features move together over 232 years (1790 to 2021), when did each group
    rise and fall, and what comes next?'
    >>> content["gaps"]["rows"][0]["when"]
    '1933'
    """
    check_is_fitted(model)
    subject = Subject(model, steps, forecast, n_features)
    name = None if source is None else clean(Path(str(source)).name)
    content = {
        "title": f"{name or 'Components over time'} · temporalnmf",
        "question": _question(subject) if question is None else str(question),
        "source": name,
        "span": [subject.texts[0], subject.texts[-1]],
        "size": f"{subject.unit.spanning(subject.n_steps)}, "
        f"{counted(subject.n_features, 'feature')}, {counted(subject.n_components, 'component')}",
        "unit": {"noun": subject.unit.noun, "plural": subject.unit.plural},
        "exposed": subject.exposed,
        "bands": bool(subject.past.has_bands),
        "level": level(subject.levels[0]),
        "notes": _notes(subject),
        "components": _components(subject),
        "forecast": _forecast(subject) if subject.n_ahead else None,
        "gaps": _gaps(subject),
        "errors": None if subject.errors is None else _worst_steps(subject),
        "calibration": _calibration(model, hold_out),
        "convergence": _convergence(subject),
        "runs": runs_content(subject),
        "specialists": _specialists(subject),
        "movement": _movement(subject),
        "made": how_it_was_made(model, command, source),
        "charts": charts(subject),
    }
    content["answer"] = _answer(subject, content)
    return content


def _question(subject: Subject) -> str:
    """The question in words, made from the data."""
    features = counted(subject.n_features, "feature")
    span = f"over {subject.unit.spanning(subject.n_steps)}"
    span += f" ({subject.texts[0]} to {subject.texts[-1]})"
    asked = f"Which of the {features} move together {span}"
    moved = "when did each group rise and fall"
    if subject.n_components == 1:
        asked, moved = f"What do the {features} have in common {span}", "when did it rise and fall"
    return (
        f"{asked}, {moved}, and what comes next?" if subject.n_ahead else f"{asked}, and {moved}?"
    )


def _notes(subject: Subject) -> list[str]:
    """What is to be said of the past steps; what the forecast says as well stands there."""
    ahead = subject.ahead.notes if subject.n_ahead else ()
    return [
        clean(note.render(WORDS), _LONGEST_NOTE) for note in subject.past.notes if note not in ahead
    ]


# The answer


def _answer(subject: Subject, content: dict[str, Any]) -> list[str]:
    """A few sentences for a reader in a hurry."""
    name, first = subject.names[0], subject.summary[0]
    largest = f"The largest component is “{name}”: {percent(first.share)} of all activation"
    if subject.n_components == 1:
        largest = f"The one component is “{name}”"
    said = [last_step_words(subject)]
    said += [f"{largest}, with its peak at {clean(first.peak)}.", _recent(subject)]
    said.append(content["gaps"]["words"])
    if subject.n_ahead:
        said.append(_outlook(subject, content["forecast"]))
    if subject.model.calibration_ is not None:
        said.append(_checked(subject.model.calibration_))
    shaky = sum(card["shaky"] for card in content["components"])
    if shaky:
        many, its, it = ("One", "its", "it") if shaky == 1 else (f"{shaky}", "their", "them")
        said.append(
            f"{many} of the {subject.n_components} components came out differently in other "
            f"{_starts(subject)}s: see {its} stability before leaning on {it}."
        )
    said.append(content["convergence"]["answer"])
    return [sentence for sentence in said if sentence]


def _recent(subject: Subject) -> str:
    """Which component rose and which fell most, the last stretch against the one before."""
    H = subject.model.activations_
    width = min(max(3, subject.n_steps // 20), subject.n_steps // 2)
    after, before = H[-width:].mean(axis=0), H[-2 * width : -width].mean(axis=0)
    moved = after - before
    up, down = int(np.argmax(moved)), int(np.argmin(moved))
    said = []
    for k, verb, there in ((up, "rose", moved[up] > 0), (down, "fell", moved[down] < 0)):
        old, new = number_text(before[k]), number_text(after[k])
        # A change that the numbers as written do not show is none.
        if there and old != new:
            by = change(before[k], after[k])
            told = f"from {old} to {new}" + (f" ({by})" if by else "")
            said.append(f"“{subject.names[k]}” {verb} most, on average {told}")
    if not said:
        return "No component has moved of late."
    since = subject.texts[-width]
    stretch = f"In the last {subject.unit.counted(width)} (since {since}), against the {width} "
    stretch += "before, "
    return stretch + ", and ".join(said) + "."


def _checked(found: Any) -> str:
    """How many past values the intervals held, before and after calibration."""
    first = [found.of(kind)[:1] for kind in ("totals", "components", "entries")]
    held = [
        f"{check.of} {check.share(check.before)} before calibration and {check.share(check.after)} "
        f"after"
        for checks in first
        for check in checks
    ]
    return (
        f"The {percent(found.coverage)} intervals were compared with past forecasts. "
        f"{_steps_ahead(first[0][0].ahead).capitalize()}, inside were: {'; '.join(held)}."
    )


def _steps_ahead(n: int) -> str:
    return f"{counted(n, 'step')} ahead"


def _outlook(subject: Subject, forecast: dict[str, Any]) -> str:
    """The last step of the forecast. An interval is the model's own until it was checked."""
    row = forecast["rows"][-1]
    expected = f"For {row['when']} the model expects a total of {row['point']}"
    if not forecast["bands"]:
        return f"{expected}; how sure that is cannot be said, see below."
    (low, high), name = row["bands"][0], forecast["bands"][0]
    if subject.checked[-1]:
        return f"{expected}; its {name} interval is {low} to {high}."
    far = " so far ahead" if subject.checked.any() else ""
    return (
        f"{expected}, and {low} to {high} as its {name} interval. Whether such intervals hold the "
        f"truth that often was not checked{far}; model.calibrate(steps={subject.n_ahead}) checks "
        f"it on the past."
    )


# The parts


def _components(subject: Subject) -> list[dict[str, Any]]:
    """A card per component."""
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
                "stability": number(one.stability),
                "stability_words": _stability_words(one.stability, _starts(subject)),
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


def _starts(subject: Subject) -> str:
    """What a component is looked for in again: draws have runs, a mode has starts."""
    return "start" if subject.model.posterior_ is None else "run"


def _stability_words(stability: float | None, start: str) -> str:
    if stability is None:
        once = "the fit was started once" if start == "start" else "there was one run"
        return f"not assessed: {once}"
    return f"{stability_words(stability, start)} ({stability:.2f})"


def _forecast(subject: Subject) -> dict[str, Any]:
    """The totals of the steps ahead as a table, and what is to be said of them."""
    ahead = subject.ahead
    levels = subject.levels if ahead.has_bands else []
    bands = [ahead.interval(coverage, of="totals") for coverage in levels]
    totals = ahead.point_of("totals")
    chosen = np.arange(subject.n_ahead)[:: -max(1, -(-subject.n_ahead // _MOST_AHEAD))][::-1]
    rows = [
        {
            "when": subject.texts_ahead[s],
            "point": number_text(totals[s]),
            "bands": [[number_text(low[s]), number_text(high[s])] for low, high in bands],
        }
        for s in chosen
    ]
    return {
        "steps": subject.n_ahead,
        "ahead": subject.unit.spanning(subject.n_ahead),
        "span": [subject.texts_ahead[0], subject.texts_ahead[-1]],
        "point": point_text(str(ahead.point)),
        "notes": [clean(note.render(WORDS), _LONGEST_NOTE) for note in ahead.notes],
        "bands": [level(coverage) for coverage in levels],
        "checked": bool(subject.checked.all()),
        "rows": rows,
    }


def _gaps(subject: Subject) -> dict[str, Any]:
    """Which steps were missing, and what was put there."""
    missing = sum(stop - start for start, stop in subject.gaps)
    rows = [_gap(subject, start, stop) for start, stop in subject.gaps[:_MOST_GAPS]]
    words = f"None of the {subject.unit.counted(subject.n_steps)} is missing as a whole."
    if missing:
        named = ", ".join(row["when"] for row in rows[:3])
        more = f" and {counted(len(subject.gaps) - 3, 'more gap')}" if len(subject.gaps) > 3 else ""
        many = f"One {subject.unit.noun}" if missing == 1 else subject.unit.counted(missing)
        verb = "was missing and is" if missing == 1 else "were missing and are"
        words = f"{many} of {subject.n_steps:,} {verb} filled in: {named}{more}."
    return {"words": words, "rows": rows, "left_out": len(subject.gaps) - len(rows)}


def _gap(subject: Subject, start: int, stop: int) -> dict[str, Any]:
    """A stretch of missing steps, with the mean of what was put there."""
    model, past = subject.model, subject.past
    filled = model.exposure_[start:stop] @ model.activations_[start:stop] / (stop - start)
    first, last = subject.texts[start], subject.texts[stop - 1]
    band = None
    if past.has_bands:
        wide = max(COVERAGE)
        drawn = past.at(slice(start, stop)).samples(of="totals").mean(axis=1)
        low, high = np.quantile(drawn, [0.5 - wide / 2, 0.5 + wide / 2])
        band = f"{number_text(low)} to {number_text(high)}"
    return {
        "when": first if stop - start == 1 else f"{first} to {last}",
        "steps": stop - start,
        "total": number_text(filled.sum()),
        "band": band,
        "largest": subject.names[int(np.argmax(filled))],
    }


def _worst_steps(subject: Subject) -> dict[str, Any]:
    """The steps that the model describes worst."""
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


def _calibration(model: TemporalNMF, hold_out: dict[str, Any] | None) -> dict[str, Any] | None:
    """How often the truth lay inside, against how often it should."""
    if hold_out is None:
        found = getattr(model, "calibration_", None)
        return None if found is None else _comparison(found)
    inside, total = int(hold_out["inside"]), int(hold_out["total"])
    nominal, low, high = (float(hold_out[key]) for key in ("coverage", "low", "high"))
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


def _comparison(found: Any) -> dict[str, Any]:
    """What `model.calibrate` found, a row per kind and horizon."""
    short = {id(check) for check in found.short(check.ahead for check in found.checks)}
    rows = [
        {
            "of": f"sums over {check.ahead} steps" if check.of == "sums" else str(check.of),
            "ahead": "" if check.of == "sums" else _steps_ahead(check.ahead),
            "before": check.share(check.before),
            "after": check.share(check.after),
            "band": " to ".join(percent(end) for end in check.band(check.after)),
            "score": [number_text(tally.score, 3) for tally in (check.before, check.after)],
            "change": check.change,
            "short": id(check) in short,
        }
        for check in found.checks
    ]
    return {
        "nominal": percent(found.coverage),
        "n_origins": f"{found.n_origins:,}",
        "holds": not short,
        "rows": rows,
    }


def _convergence(subject: Subject) -> dict[str, Any]:
    """Whether the fit came to an end, or its runs agree, in plain words."""
    model = subject.model
    if model.posterior_ is not None:
        return verdict_of(subject)
    converged = bool(model.converged_)
    rounds = counted(int(model.n_iter_), "round")
    words = f"The fit came to rest after {rounds}."
    if not converged:
        words = f"The fit was stopped after {rounds}, before it came to rest: its numbers are a "
        words += "sketch."
    n_starts = parameters_of_fit(model)["n_init"]
    if n_starts > 1:
        words += f" The best of {n_starts} starts is shown."
    return {
        "converged": converged,
        "verdict": "Converged." if converged else "Not converged.",
        "words": words,
        "answer": ""
        if converged
        else "The fit had not converged when it stopped: take the numbers as a sketch.",
    }


_DIVERGENCES = {"poisson": "Kullback–Leibler", "exponential": "Itakura–Saito"}


def _specialists(subject: Subject) -> dict[str, Any]:
    """What only those want to know who know the method."""
    model = subject.model
    why = str(model.stop_reason_)
    stop = f"{why[:1].upper()}{why[1:]}".rstrip(".") + "."
    if not model.converged_ and model.posterior_ is None:
        stop += " Increase max_iter, or accept a larger tol."
    objective = f"Objective {number_text(model.objective_)}."
    if model.posterior_ is not None:
        objective = f"Log posterior {number_text(-model.objective_)} on average, up to a constant."
    likelihood = model._likelihood().name
    divergence = f"{_DIVERGENCES.get(likelihood, likelihood)} divergence"
    return {
        "stop": stop,
        "objective": objective,
        "error": number_text(model.reconstruction_err_),
        "divergence": f"{divergence}, with the natural logarithm",
        "point": str(subject.ahead.point) if subject.n_ahead else None,
        "long_run": long_run(model.chain_),
    }


# Movement


def _movement(subject: Subject) -> list[dict[str, Any]] | None:
    """How far components move in a step: as the chain expects it, and as found.

    Both are the standard deviation of log h_{n+1} − log h_n: of draws from the chain that start
    at the fitted activations, and of paths of the posterior.
    """
    chain = subject.model.chain_
    if not chain.dynamic or not subject.past.has_bands:
        return None
    expected = _log_changes(_expected_pairs(subject.model, np.random.default_rng(0)))
    # A few paths are enough for one number; draws stand run by run.
    paths = subject.past.samples(of="components")
    found = _log_changes(paths[:: -(-len(paths) // 100)])
    return [
        {
            "name": name,
            "index": k,
            "expected": _movement_text(expected[k]),
            "found": _movement_text(found[k]),
            "words": _movement_words(found[k], expected[k]),
            "lively": bool(found[k] > _LIVELY * expected[k]),
        }
        for k, name in enumerate(subject.names)
    ]


def _expected_pairs(model: TemporalNMF, rng: np.random.Generator) -> Array:
    """Pairs (n, 2, K) of neighbours: the second is a step of the chain from the first."""
    draws = model.posterior_
    if draws is None:
        starts = rng.choice(model.activations_, size=2000)
        return model.chain_.sample(len(starts), 2, rng, starts)
    which = draws.pick(200)  # each with the hyper-parameters it was drawn with
    first = rng.permuted(draws.flat("activations")[which], axis=1)[:, :10]
    pairs = np.stack([first, one_step_on(draws, which, first, rng)], axis=2)
    return pairs.reshape(-1, 2, pairs.shape[3])


def _log_changes(paths: Array) -> Array:
    """Standard deviation (K,) of log h_{n+1} − log h_n over paths (n_paths, N, K)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.diff(np.log(paths), axis=1)
    # A path that has died moves no more.
    return np.where(np.isfinite(change), change, 0.0).std(axis=(0, 1))


def _movement_text(sd: float) -> str:
    """A typical step as a percentage, or as a factor where it is large."""
    if sd < 1.0:
        return f"{number_text(100.0 * np.expm1(sd), 2)}{NO_BREAK}%"
    return f"a factor of {number_text(np.exp(sd), 2)}"


def _movement_words(found: float, expected: float) -> str:
    if found > _LIVELY * expected:
        return "livelier than the model expects"
    return "calmer than the model expects" if found * _LIVELY < expected else "as the model expects"
