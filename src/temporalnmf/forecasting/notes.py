"""Remarks on forecasts: codes, and their wording for Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..messages.errors import Spelling, Text, in_python

Code = Literal[
    "exposure_assumed",
    "no_intervals",
    "no_distribution",
    "runs_differ",
    "components_differ",
    "independent_steps",
    "fractions",
    "not_checked",
    "not_counts",
    "too_narrow",
    "beyond_checked",
    "seasons",
    "trend",
    "fades_out",
    "explodes",
    "few_samples",
]
Words = Mapping[Code, str]

# Templates of a `Text` over the facts of a note. Other front ends replace some of them.
WORDS: Words = {
    "exposure_assumed": "The model has rates, and no exposure was given for the future: that of "
    "the last step, {size:g}, is assumed.",
    "no_intervals": "Plain NMF (chain='none') does not model how activations change, so there are "
    "no intervals: choose a chain, such as 'rate'.",
    "no_distribution": "There are no intervals: {likelihood} is a divergence that no distribution "
    "of the data has. Use a likelihood that is one, such as 'gaussian', or Tweedie with beta < 1.",
    "runs_differ": "{verdict}",
    "components_differ": "{verdict}",
    "independent_steps": "Steps are independent of each other under {chain!r}: the point repeats "
    "the last value or interpolates, as in the paper, and the intervals are those of any step "
    "around the long-run level.",
    "fractions": "X has fractions, and likelihood='auto' takes it for Poisson counts: the widths "
    "of intervals depend on the unit of X. For positive values likelihood='gamma' learns their "
    "relative error, for amounts with zeros 'tweedie' does.",
    "not_counts": "Intervals assume the model is correct; only those of counts are compared with "
    "past forecasts.",
    "not_checked": "Intervals assume the model is correct; model.calibrate() compares them with "
    "past forecasts, and widens them where they are too narrow.",
    "too_narrow": "Compared with past forecasts, {level} intervals are too narrow even after "
    "calibration. Inside: {held}.",
    "beyond_checked": "Intervals were checked {checked} ahead, and this forecast has {last}: later "
    "ones may be too narrow. model.calibrate(steps={last}) checks them all.",
    "seasons": "The series has seasons: its changes repeat after {length} steps of {step} "
    "(correlation {correlation:.2f}). The model does not have this season: the forecast continues "
    "from the level of the last step ({last}), whatever its season. To avoid this error, fit with "
    "{wanted}.",
    "trend": "The forecast continues a trend of the last steps, which {course}. Until {when} "
    "it {change}. trend=None, the default, leaves it out.",
    "fades_out": "Component {component} fades out: by {when} it falls below a tenth of its last "
    "value in {share} of the simulated futures. In the long run: {regime}",
    "explodes": "Component {component} explodes: by {when} it exceeds ten times its last value in "
    "{share} of the simulated futures. In the long run: {regime}",
    "few_samples": "The ends of {level} intervals are uncertain: they were found from "
    "{samples:,} samples. Ask for more, {wanted}.",
}


class Note(str):
    """A remark on a forecast, worded for Python.

    Attributes
    ----------
    code : str
        What it is about.
    facts : dict
        What the wording is filled with.

    Examples
    --------
    >>> note = Note("too_narrow", level="90 %", held="totals 71 %")
    >>> print(note)
    Compared with past forecasts, 90 % intervals are too narrow even after calibration. Inside: \
totals 71 %.
    >>> note.render({"too_narrow": "Inside: {held}."})
    'Inside: totals 71 %.'
    """

    code: Code
    facts: dict[str, object]

    def __new__(cls, code: Code, **facts: object) -> Note:
        # Forecasts pickled by version 0.1 have a text in the place of a code.
        text = str(Text(WORDS[code], **facts)) if code in WORDS else code
        note = super().__new__(cls, text)
        note.code, note.facts = code, facts
        return note

    def __getnewargs_ex__(self) -> tuple[tuple[Code], dict[str, object]]:
        return (self.code,), self.facts

    def render(self, words: Words, spell: Spelling = in_python) -> str:
        """The note in the words of a front end."""
        if self.code not in words:
            return str(self)
        return Text(words[self.code], **self.facts).render(spell)
