"""Agreement between the runs of a model that was fitted by posterior draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import Array
from ..chains.parameters import letter_of
from ..messages.formatting import counted, number_text
from ..sampling.diagnostics import ESS_PER_RUN, FEWEST, RHAT, Diagnosis, Quantity
from ..sampling.draws import PosteriorDraws
from ..sampling.traces import Trace, ranks, traces
from .subject import Subject
from .texts import Content, level, numbers

# Largest numbers of runs in a chart, points of a line, and rows of a table.
_MOST_RUNS, _MOST_POINTS, _MOST_COMPONENTS = 8, 300, 40
_LEVEL = 0.9

# Verdict, explanation and sentence for the summary, by case.
_VERDICTS = {
    "one run": (
        "Not checked.",
        "{drawn}. A single run cannot be compared with another.",
        "The model was drawn in one run, and there is no other to compare it with.",
    ),
    "agreement": (
        "The runs agree.",
        "{drawn} from separate starts, and all runs agree. Together they are worth at least "
        "{worth} independent draws.",
        "",
    ),
    "no draws": (
        "There are too few draws.",
        "{drawn}, and {n_draws} per run cannot be compared between runs. Treat the numbers as "
        "provisional.",
        "The model has too few draws: treat the numbers as provisional.",
    ),
    "few draws of details": (
        "The runs agree, but there are few draws for the details behind the predictions.",
        "{drawn} from separate starts, and the runs agree. Totals and forecasts are reliable. "
        "Other quantities are less certain: see the table.",
        "Totals and forecasts are reliable; there are too few draws yet for the details behind "
        "them.",
    ),
    "few draws": (
        "There are too few draws yet.",
        "{drawn} from separate starts, and the runs agree, but they are worth only {worth} "
        "independent draws: treat the numbers, above all the ends of intervals, as provisional.",
        "The model has too few draws yet: treat the numbers as provisional.",
    ),
    "different details": (
        "The runs agree on predictions, but not on all the details behind them.",
        "{drawn} from separate starts. The runs agree on totals and forecasts, which are "
        "reliable. {apart}",
        "Separate runs of the model agree on totals and forecasts, but not on all the details "
        "behind them: see below before relying on single components.",
    ),
    "disagreement": (
        "The runs do not agree yet.",
        "{drawn} from separate starts, and the runs differ: they were too short, or the data "
        "allow several answers. Treat the numbers as provisional.",
        "Separate runs of the model do not agree yet: treat the numbers as provisional.",
    ),
}


class Verdict(NamedTuple):
    """Whether a fit converged: in a few words, in a few sentences, and for the summary."""

    converged: bool
    verdict: str
    words: str
    answer: str


def verdict_of(subject: Subject) -> Verdict:
    """Whether the runs agree."""
    found = subject.draws.diagnosis
    unsettled = [q for q in found.quantities if not q.settled(found.n_runs)]
    case = _case(found, unsettled)
    worth = min(min(q.ess_bulk, q.ess_tail) for q in unsettled or found.quantities)
    verdict, words, answer = _VERDICTS[case]
    models = counted(found.n_runs * found.n_draws, "plausible model")
    facts = {
        "drawn": f"The sampler drew {models} in {counted(found.n_runs, 'run')}",
        "worth": number_text(worth, 2),
        "n_draws": counted(found.n_draws, "draw"),
        "apart": _apart(subject, found),
    }
    return Verdict(case == "agreement", verdict, words.format(**facts), answer)


def _case(found: Diagnosis, unsettled: list[Quantity]) -> str:
    if found.n_runs == 1:
        return "one run"
    if not unsettled:
        return "agreement"
    if found.n_draws < FEWEST:
        return "no draws"
    predictions = {"totals", "forecasts"} & {q.name for q in unsettled}
    if any(_differs(q) for q in unsettled):
        return "disagreement" if predictions else "different details"
    return "few draws" if predictions else "few draws of details"


def _differs(quantity: Quantity) -> bool:
    """Whether runs, or halves of one, differ; false if there are too few draws to tell."""
    return bool(np.isfinite(quantity.rhat) and quantity.rhat > RHAT)


def _agrees(quantity: Quantity, n_runs: int) -> str:
    """Whether a quantity is settled, and why not."""
    if quantity.settled(n_runs):
        return "yes"
    if _differs(quantity):
        return "runs differ" if n_runs > 1 else "halves of the run differ"
    return "too few draws"


def _apart(subject: Subject, found: Diagnosis) -> str:
    """Which components differ between runs, by name."""
    rhats = zip(subject.names, found.rhat_of_components, strict=True)
    names = [f"“{name}”" for name, rhat in rhats if rhat > RHAT]
    if not names:
        return "Other quantities are less certain: see the table."
    few = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"The activations of some components are less certain: {few}."


def runs_content(subject: Subject) -> Content | None:
    """Tables for models fitted by draws; None for others."""
    if subject.model.posterior_ is None:
        return None
    draws = subject.draws
    found = draws.diagnosis
    return {
        "names": [f"run {run + 1}" for run in range(min(found.n_runs, _MOST_RUNS))],
        "several": found.n_runs > 1,
        "single": found.n_runs * found.n_draws == 1,
        "too_few": None if found.n_draws >= FEWEST else counted(found.n_draws, "draw"),
        "rows": [
            {
                "name": _quantity_words(q.name, subject),
                "agrees": _agrees(q, found.n_runs),
                "settled": q.settled(found.n_runs),
                "rhat": f"{q.rhat:.2f}" if np.isfinite(q.rhat) else "–",
                "bulk": f"{q.ess_bulk:,.0f}" if np.isfinite(q.rhat) else "–",
                "tail": f"{q.ess_tail:,.0f}" if np.isfinite(q.rhat) else "–",
            }
            for q in found.quantities
        ],
        "wanted": {"rhat": f"{RHAT:.2f}", "ess": f"{ESS_PER_RUN * found.n_runs:,}"},
        "panels": [_panel_words(trace, subject) for trace in _traces(draws)],
        "learned": _learned(subject, draws),
    }


def run_charts(subject: Subject) -> Content | None:
    """Traces and ranks of the runs, for report.js."""
    if subject.model.posterior_ is None:
        return None
    sweeps = subject.model.history_iterations_
    every = slice(None, None, max(1, -(-len(sweeps) // _MOST_POINTS)))
    return {
        "sweeps": numbers(sweeps[every], 15),
        "panels": [_panel(trace, every) for trace in _traces(subject.draws)],
    }


def _traces(draws: PosteriorDraws) -> list[Trace]:
    """Traces to draw; none if there are too few draws for a line."""
    return traces(draws) if draws.smoothing.shape[1] >= FEWEST else []


def _panel(trace: Trace, every: slice) -> Content:
    shown = trace.values[:_MOST_RUNS, every]
    found = ranks(trace.values) if len(trace.values) > 1 else None
    return {
        "lines": [numbers(run, 5) for run in (np.log10(shown) if trace.wide else shown)],
        "log": trace.wide,
        "ranks": found
        and {
            "at": numbers(found.at),
            "lines": [numbers(line, 3) for line in found.excess[:_MOST_RUNS]],
            "reach": numbers([found.reach], 3)[0],
        },
    }


def _quantity_words(name: str, subject: Subject) -> str:
    known = {
        "log posterior": "The model as a whole",
        "totals": f"The total of a {subject.unit.noun}",
        "forecasts": f"The total of the next {subject.unit.noun}",
        "activations": "Activations of the components",
        "smoothing": "Smoothing of the components",
        "dispersion": "Dispersion of the counts",
        "effects": "Patterns in time",
        "strengths": "Strength of the patterns in time",
    }
    return known.get(name) or f"{letter_of(name)} of the chain"


def _panel_words(trace: Trace, subject: Subject) -> str:
    """Title of a panel, with the name of its component."""
    known = {
        "log posterior": "The model as a whole (log posterior)",
        "all activations": "All activations together",
        "smoothing": "Smoothing of the components",
        "dispersion": "Dispersion of the counts",
    }
    if trace.name in known:
        return known[trace.name]
    if trace.name.startswith("strength of "):
        return f"Strength of the pattern “{trace.name.removeprefix('strength of ')}”"
    what, number = trace.name.split(" of component ")
    of = f"“{subject.names[int(number) - 1]}”"
    return f"Activation of {of}" if what == "activation" else f"{letter_of(what)} of {of}"


def _learned(subject: Subject, draws: PosteriorDraws) -> Content | None:
    """Learned hyper-parameters: medians and 90 % intervals, by component."""
    smoothing = _interval(draws.smoothing.ravel()) if np.ptp(draws.smoothing) > 0.0 else None
    of_counts = {name: _interval(v.ravel()) for name, v in draws.of_likelihood.items()}
    if not draws.learned and smoothing is None and not of_counts:
        return None
    by_name = (draws.parameters[name].reshape(-1, subject.n_components) for name in draws.learned)
    columns = [[_interval(values) for values in learned.T] for learned in by_name]
    shown = subject.names[:_MOST_COMPONENTS] if columns else []
    return {
        "level": level(_LEVEL),
        "headings": [letter_of(name) for name in draws.learned],
        "rows": [
            {"index": k, "name": name, "cells": [column[k] for column in columns]}
            for k, name in enumerate(shown)
        ],
        "left_out": subject.n_components - len(shown) if columns else 0,
        "smoothing": smoothing,
        "of_counts": of_counts,
    }


def _interval(values: Array) -> str:
    low, middle, high = np.quantile(values, [0.5 - _LEVEL / 2, 0.5, 0.5 + _LEVEL / 2])
    return f"{number_text(middle)} ({number_text(low)} to {number_text(high)})"
