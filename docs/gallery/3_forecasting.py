"""
Forecasting with checked intervals
==================================

What comes next, and how certain is it? We cut the series after 2009, forecast the years that
follow, and compare the forecast with what was observed.
"""

# sphinx_gallery_thumbnail_number = 2

import numpy as np

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_sotu

words = load_sotu(as_frame=True).data
words = words[words.columns[words.sum() > 300]]
past, future = words.loc[:2009], words.loc[2010:]

# %%
# Fit and forecast
# ----------------
# The chain ``"rate"`` assumes that changes are relative (percentages). Its forecast keeps the
# level, with intervals that widen with the horizon. ``intervals="model"`` gives those of the model
# as it is, without a look at its past errors. The result uses your own times and names.

model = TemporalNMF(5, chain="rate", intervals="model", random_state=0).fit(past)
forecast = model.forecast(12)
forecast.to_frame(of="totals").head(3)

# %%
# Dots are observations, the line is the fit, and the bands contain 50 % and 90 % of the
# simulated futures.

from temporalnmf.plotting import plot_forecast


def with_the_truth(ax, truth):
    ax.plot(truth.index, truth, "kx", label="observed later")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)


with_the_truth(plot_forecast(model, 12, of="totals", history=27), future.sum(axis=1))

# %%
# Did the intervals hold?
# -----------------------
# A 90 % interval should contain nine of ten true values. We count, for the totals of the twelve
# years and for single words:


def report(forecast):
    for of, truth in (("totals", future.sum(axis=1)), ("features", future)):
        lower, upper = forecast.interval(0.9, of=of)
        inside = np.mean((truth >= lower) & (truth <= upper))
        print(f"{of}: {100 * inside:.0f} % of {truth.size} inside their 90 % intervals")


report(forecast)

# %%
# The intervals of the totals are too narrow: the model assumes that the length of an address
# changes as smoothly as its themes, but it jumps from year to year. The notes of the forecast
# say that its intervals assume the model is correct:

print(*forecast.notes, sep="\n")

# %%
# Compare with the past
# ---------------------
# By default, forecasts from up to 100 past years are compared with what came next, at the
# components of the fit, and intervals include their errors. That needs no further data: here it
# uses only the years up to 2009.

model = TemporalNMF(5, chain="rate", random_state=0).fit(past)
report(model.forecast(12))
print(model.calibration_)

# %%
# ``calibrate`` is more thorough: components are fitted again at each past origin, to earlier years
# only.

model.calibrate(n_origins=10, steps=12)
print(model.calibration_)

# %%

with_the_truth(plot_forecast(model, 12, of="totals", history=27), future.sum(axis=1))
report(model.forecast(12))

# %%
# Single words are counts: their intervals end at whole numbers, never below zero, and contain
# slightly more than the nominal share, because counts are discrete. Speakers repeat words: after
# 2010, "jobs" was far more frequent than its component suggests.

with_the_truth(plot_forecast(model, 12, of="jobs", history=27), future["jobs"])

# %%
# Use what you know about the future
# ----------------------------------
# If you know the size behind a future step (pages, listeners, days in the month), pass it as
# exposure. Then only the mixture has to be forecast.

length = words.sum(axis=1).where(words.notna().any(axis=1), words.sum(axis=1).median())
shares = TemporalNMF(5, random_state=0).fit(past, exposure=length.loc[:2009])
report(shares.forecast(12, exposure=length.loc[2010:]))

# %%
# All totals are inside, of course, since they were given.
#
# Long-run behaviour
# ------------------
# In the long run a chain may grow without bound or die out. ``regime`` describes this, and a
# forecast has a note if it happens within the horizon.

print(model.chain_.numbers())
print(model.chain_.regime())

# %%
# What not to believe
# -------------------
# * No chain models trends or elections. A forecast continues at the level of the last step, drifts
#   slowly or returns to the mean. Seasons are apart from the chain: :doc:`6_seasons`.
# * Twelve years after one origin are one experiment, not twelve: if 2010 is wrong, 2011 probably
#   is as well. :doc:`/calibration` uses many origins, on seven data sets.
# * Repeating the last value is hard to beat, so a good forecast does not mean that the model has
#   learned anything. :doc:`4_choosing` compares the two.
# * Intervals treat the components as known and assume that the future behaves like the past.
