"""Notes on forecasts, worded for the command line."""

from __future__ import annotations

from collections.abc import Iterable

from ..forecasting import notes
from .spelling import as_advice

WORDS: notes.Words = {
    **notes.WORDS,
    "exposure_assumed": "The model has rates, and no exposure was given for the future: that of "
    "the last step, {size:g}, is assumed. --exposure sets another.",
    "no_intervals": "Plain NMF (--chain none) does not model how activations change, so there are "
    "no intervals: choose a chain, such as rate.",
    "no_distribution": "There are no intervals: {likelihood} is a divergence that no distribution "
    "of the data has. Fit with --likelihood gaussian, or another one that is a distribution.",
    "fractions": "The data have fractions, and --likelihood auto takes them for Poisson counts: "
    "the widths of intervals depend on their unit. For positive values --likelihood gamma learns "
    "their relative error, for amounts with zeros --likelihood tweedie does.",
    "not_checked": "Intervals assume the model is correct; temporalnmf fit --calibrate 20 compares "
    "them with past forecasts, and widens them where they are too narrow.",
    "trend": "The forecast continues a trend of the last steps, which {course}. Until {when} "
    "it {change}. Fits with --trend none, the default, have none.",
    "beyond_checked": "Intervals were checked {checked} ahead, and this forecast has {last}: later "
    "ones may be too narrow. temporalnmf fit --calibrate 20 --calibrate-steps {last} checks them "
    "all.",
}


def worded(found: Iterable[notes.Note]) -> list[str]:
    """Notes in the words of the command line."""
    return [note.render(WORDS, as_advice) for note in found]
