"""How sure a model of draws is: whether its runs agree, for a reader who did not fit it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..messages.formatting import number_text
from ..sampling.diagnostics import ESS_PER_RUN, FEWEST, RHAT, Diagnosis, Quantity
from ..sampling.draws import PosteriorDraws
from ..sampling.traces import Trace, ranks, traces
from .subject import Subject
from .texts import counted, level, numbers

# Runs that are drawn, and points of each.
_MOST_RUNS, _MOST_POINTS = 8, 300
_LEVEL = 0.9
# Rows of a table, at the most.
_MOST_COMPONENTS = 40

_LETTERS = {"alpha": "α", "beta": "β", "rho": "ρ"}


def verdict_of(subject: Subject) -> dict[str, Any]:
    """Whether the runs agree, in a few words, in a sentence or two, and for the summary on top."""
    found = _draws(subject).diagnosis
    quantities = [q for q in found.quantities if not q.settled(found.n_runs)]
    unsettled = [q.name for q in quantities]
    differ = any(_differs(q) for q in quantities)
    one_run = found.n_runs == 1
    n_models = found.n_runs * found.n_draws
    drawn = (
        f"The computer drew {counted(n_models, 'model')} that {'is' if n_models == 1 else 'are'} "
        f"probable in the light of the data, in {counted(found.n_runs, 'run')}"
    )
    if one_run:
        verdict = "Not checked."
        words = f"{drawn}. Nothing tells whether another run would have found the same."
        answer = "The model was drawn in one run, and no other was made to compare it with."
    elif not unsettled:
        least = min(min(q.ess_bulk, q.ess_tail) for q in found.quantities)
        verdict, answer = "The runs agree.", ""
        words = (
            f"{drawn} from starts of their own, and all of them tell the same. Together they are "
            f"worth at least {number_text(least, 2)} independent draws."
        )
    elif found.n_draws < FEWEST:
        verdict = "There are too few draws."
        words = (
            f"{drawn}, and {counted(found.n_draws, 'draw')} of a run cannot be compared with those "
            f"of another. Take the numbers as a sketch."
        )
        answer = "The model has too few draws: take the numbers as a sketch."
    elif not {"totals", "forecasts"} & set(unsettled) and not differ:
        verdict = "The runs agree, with few draws for what is behind the predictions."
        words = (
            f"{drawn} from starts of their own, and none tells anything else than the others. "
            f"Totals and forecasts can be relied on. The rest is known less well: see the table."
        )
        answer = (
            "Totals and forecasts can be relied on; there are too few draws yet for all that is "
            "behind them."
        )
    elif not differ:
        least = min(min(q.ess_bulk, q.ess_tail) for q in quantities)
        verdict = "There are too few draws yet."
        words = (
            f"{drawn} from starts of their own, and none tells anything else than the others. But "
            f"these are worth {number_text(least, 2)} independent draws only: take the numbers, "
            f"above all the ends of intervals, as a sketch."
        )
        answer = "The model has too few draws yet: take the numbers as a sketch."
    elif not {"totals", "forecasts"} & set(unsettled):
        verdict = "The runs agree on predictions, not on all that is behind them."
        words = (
            f"{drawn} from starts of their own. Totals and forecasts are the same in all of them "
            f"and can be relied on. {_apart(subject, found)}"
        )
        answer = (
            "Separate runs of the model agree on totals and forecasts, but not on all that is "
            "behind them: see below before leaning on single components."
        )
    else:
        verdict = "The runs do not agree yet."
        words = (
            f"{drawn} from starts of their own, and these tell different things: they were too "
            f"short, or the data leave room for several answers. Take the numbers as a sketch."
        )
        answer = "Separate runs of the model do not agree yet: take the numbers as a sketch."
    return {
        "converged": not unsettled and not one_run,
        "verdict": verdict,
        "words": words,
        "answer": answer,
    }


def _differs(quantity: Quantity) -> bool:
    """Whether runs, or halves of one, tell different things, as far as there are draws to tell."""
    return bool(np.isfinite(quantity.rhat) and quantity.rhat > RHAT)


def _agrees(quantity: Quantity, n_runs: int) -> str:
    """Whether it is settled, and if not, what is the matter."""
    if quantity.settled(n_runs):
        return "yes"
    if _differs(quantity):
        return "runs differ" if n_runs > 1 else "halves of the run differ"
    return "too few draws"


def _apart(subject: Subject, found: Diagnosis) -> str:
    """Which components differ between runs, by name."""
    names = [
        f"“{name}”"
        for name, rhat in zip(subject.names, found.rhat_of_components, strict=True)
        if rhat > RHAT
    ]
    if not names:
        return "The rest is known less well: see the table."
    few = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"How much there is of single components is less sure: {few}."


def runs_content(subject: Subject) -> dict[str, Any] | None:
    """Tables for models of draws; None for others."""
    if subject.model.posterior_ is None:
        return None
    draws = _draws(subject)
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
        "panels": [_panel_words(trace, subject) for trace in _followed(draws)],
        "learned": _learned(subject, draws),
    }


def run_charts(subject: Subject) -> dict[str, Any] | None:
    """What report.js draws of the runs."""
    if subject.model.posterior_ is None:
        return None
    draws = _draws(subject)
    sweeps = subject.model.history_iterations_
    every = slice(None, None, max(1, -(-len(sweeps) // _MOST_POINTS)))
    return {
        "sweeps": numbers(sweeps[every], 15),
        "panels": [_panel(trace, every) for trace in _followed(draws)],
    }


def _followed(draws: PosteriorDraws) -> list[Trace]:
    """What is drawn of the runs; nothing if there are too few draws for a line."""
    return traces(draws) if draws.smoothing.shape[1] >= FEWEST else []


def _panel(trace: Trace, every: slice) -> dict[str, Any]:
    shown = trace.values[:_MOST_RUNS, every]
    drawn = {
        "lines": [numbers(run, 5) for run in (np.log10(shown) if trace.wide else shown)],
        "log": trace.wide,
    }
    if len(trace.values) == 1:
        return {**drawn, "ranks": None}
    found = ranks(trace.values)
    return {
        **drawn,
        "ranks": {
            "at": numbers(found.at),
            "lines": [numbers(line, 3) for line in found.excess[:_MOST_RUNS]],
            "reach": numbers([found.reach], 3)[0],
        },
    }


def _draws(subject: Subject) -> PosteriorDraws:
    draws = subject.model.posterior_
    assert draws is not None
    return draws


def _quantity_words(name: str, subject: Subject) -> str:
    known = {
        "log posterior": "The model as a whole",
        "totals": f"The total of a {subject.unit.noun}",
        "forecasts": f"The total of the next {subject.unit.noun}",
        "activations": "How much there is of each component",
        "smoothing": "Smoothing of the components",
    }
    return known.get(name) or f"{_letter(name)} of the chain"


def _panel_words(trace: Trace, subject: Subject) -> str:
    """The name of a picture, a component by its own name."""
    known = {
        "log posterior": "The model as a whole (log posterior)",
        "all activations": "All activations together",
        "smoothing": "Smoothing of the components",
    }
    if trace.name in known:
        return known[trace.name]
    what, number = trace.name.split(" of component ")
    of = f"“{subject.names[int(number) - 1]}”"
    return f"Activation of {of}" if what == "activation" else f"{_letter(what)} of {of}"


def _letter(name: str) -> str:
    """α_z for alpha_z, as a chain writes its numbers."""
    letter, _, index = name.partition("_")
    return _LETTERS.get(letter, letter) + (f"_{index}" if index else "")


def _learned(subject: Subject, draws: PosteriorDraws) -> dict[str, Any] | None:
    """Hyper-parameters that were drawn along: medians and 90 % intervals, by component."""
    smoothing = None
    if np.ptp(draws.smoothing) > 0.0:
        smoothing = _interval(draws.smoothing.ravel())
    if not draws.learned and smoothing is None:
        return None
    by_name = {name: draws.parameters[name] for name in draws.learned}
    cells = {
        name: [_interval(column) for column in values.reshape(-1, values.shape[2]).T]
        for name, values in by_name.items()
    }
    shown = subject.names[:_MOST_COMPONENTS] if cells else []
    return {
        "level": level(_LEVEL),
        "headings": [_letter(name) for name in cells],
        "rows": [
            {"index": k, "name": name, "cells": [column[k] for column in cells.values()]}
            for k, name in enumerate(shown)
        ],
        "left_out": subject.n_components - len(shown) if cells else 0,
        "smoothing": smoothing,
    }


def _interval(values: Any) -> str:
    low, middle, high = np.quantile(values, [0.5 - _LEVEL / 2, 0.5, 0.5 + _LEVEL / 2])
    return f"{number_text(middle)} ({number_text(low)} to {number_text(high)})"
