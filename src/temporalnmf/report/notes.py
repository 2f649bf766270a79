"""Notes on forecasts, worded for readers of a report."""

from __future__ import annotations

from ..forecasting import notes

WORDS: notes.Words = {
    **notes.WORDS,
    "no_intervals": "This model is plain NMF, which gives no intervals.",
    "no_distribution": "This model minimizes a divergence that no distribution of the data has, so "
    "it gives no intervals.",
    "runs_differ": "The runs of draws behind this report do not agree yet: take its numbers as "
    "rough estimates.",
    "components_differ": "The runs of draws behind this report agree on totals and forecasts, but "
    "not on everything else.",
    "fractions": "The data have fractions, and the model takes them for Poisson counts: the widths "
    "of intervals depend on their unit.",
    "not_counts": "These intervals assume the model is correct; only those of counts are compared "
    "with past forecasts.",
    "not_checked": "These intervals assume the model is correct; they were not compared with past "
    "forecasts.",
    "beyond_checked": "Intervals were checked {checked} ahead, and this forecast has {last}: later "
    "ones may be too narrow.",
    "seasons": "The series has seasons: its changes repeat after {length} steps of {step} "
    "(correlation {correlation:.2f}). The model does not have this season: the forecast continues "
    "from the level of the last step ({last}), whatever its season. A fit with {wanted} has it.",
    "trend": "The forecast continues a trend of the last steps, which {course}. Until {when} "
    "it {change}.",
    "fades_out": "“{name}” fades out: by {when} it falls below a tenth of its last value in "
    "{share} of the simulated futures.",
    "explodes": "“{name}” explodes: by {when} it exceeds ten times its last value in {share} of "
    "the simulated futures.",
    "few_samples": "The ends of {level} intervals are uncertain: they were found from "
    "{samples:,} samples.",
}
