"""
Forecasting with honest intervals
=================================

What comes next, and how sure are we? The series is cut in 2009, continued by the model, and
compared with what really came.
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
# The chain ``"rate"`` takes changes to be percentages and keeps the level in a forecast; the
# further ahead, the wider the fan. A forecast comes in your own times and names.

model = TemporalNMF(5, chain="rate", random_state=0).fit(past)
forecast = model.forecast(12)
forecast.to_frame(of="totals").head(3)

# %%
# The dots are what was observed, the line is the fit, the fan holds half and 90 % of the
# simulated futures.

from temporalnmf.plotting import plot_forecast


def with_the_truth(ax, truth):
    ax.plot(truth.index, truth, "kx", label="what came")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)


with_the_truth(plot_forecast(model, 12, of="totals", history=27), future.sum(axis=1))

# %%
# Was it honest?
# --------------
# An honest 90 % interval holds nine of ten. Count, for the totals of the twelve years and for the
# single words in them:


def report(forecast):
    for of, truth in (("totals", future.sum(axis=1)), ("features", future)):
        lower, upper = forecast.interval(0.9, of=of)
        inside = np.mean((truth >= lower) & (truth <= upper))
        print(f"{of}: {100 * inside:.0f} % of {truth.size} inside their 90 % intervals")


report(forecast)

# %%
# The fan of totals is too narrow: the model takes the length of an address to move as smoothly
# as its themes, and it jumps from year to year. The forecast says itself that its intervals assume
# the model is correct:

print(*forecast.notes, sep="\n")

# %%
# Calibrate
# ---------
# ``calibrate`` stands at past years in turn, forecasts what came next without having seen it,
# counts, and widens all intervals by what they missed. This needs no data beyond the fit, and it
# looks at the years up to 2009 only.

model.calibrate(n_origins=10, steps=12)
print(model.calibration_)

# %%

with_the_truth(plot_forecast(model, 12, of="totals", history=27), future.sum(axis=1))
report(model.forecast(12))

# %%
# Single words are counts: their intervals end at whole numbers, never below zero, and hold a
# little more than they promise, since there is nothing between two counts. Speakers come back to
# a word: after 2010 "jobs" was far above anything that its component says.

with_the_truth(plot_forecast(model, 12, of="jobs", history=27), future["jobs"])

# %%
# Better than wide: know more
# ---------------------------
# If the size behind a step will be known (the pages, the listeners, the days of the month), give
# it as exposure. Then only the mixture has to be forecast.

length = words.sum(axis=1).where(words.notna().any(axis=1), words.sum(axis=1).median())
shares = TemporalNMF(5, random_state=0).fit(past, exposure=length.loc[:2009])
report(shares.forecast(12, exposure=length.loc[2010:]))

# %%
# The totals are all inside, of course: they were given.
#
# Ask the chain
# -------------
# A chain may grow without bound, or die out, in the long run. It says so, and a forecast warns
# where that happens within its horizon.

print(model.chain_.numbers())
print(model.chain_.regime())

# %%
# What not to believe
# -------------------
# * No chain knows seasons, trends or elections. A forecast continues the level of the last step,
#   drifts slowly or returns to the mean.
# * Twelve years after one origin are one experiment, not twelve: wrong about 2010, wrong about
#   2011. :doc:`/calibration` rolls the origin, on three datasets.
# * "More of the same" is hard to beat and easy to mistake for insight. :doc:`4_choosing` compares
#   with repeating the last value.
# * Intervals take the components as known, and cannot know that the world changes its ways.
