"""
Days with a weekly season
=========================

From a log of events to a forecast of the next two weeks: for each airport, for groups of airports,
and for sums of days. We compare it with two forecasts that need no model, and say where it loses.
"""

# sphinx_gallery_thumbnail_number = 1

import numpy as np
import pandas as pd

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_flights
from temporalnmf.effects import Season

# %%
# From events to a table
# ----------------------
# A log has rows with a time, a feature and often a number. Ours has a row per airport and six
# hours. It is made from the departures of 229 airports of the United States in the first half of
# 2001: the counts of days are real, their division among hours is simulated.

counts = load_flights(as_frame=True).data.astype(int)
parts = np.random.default_rng(0).multinomial(counts.to_numpy(), [0.05, 0.35, 0.35, 0.25])
hours = pd.to_timedelta([0, 6, 12, 18], unit="h")
index = pd.MultiIndex.from_product([counts.index, counts.columns, hours])
log = pd.Series(parts.ravel(), index, name="flights").rename_axis(["day", "airport", "hour"])
log = log[log > 0].reset_index()
log["time"] = log.pop("day") + log.pop("hour")
log.sample(5, random_state=1)

# %%
# ``as_table`` adds the rows up into days (``freq="D"``). A day without a row for an airport is a
# zero. A day without any row is missing. What was read, and how, is in the table: read it.

from temporalnmf.reading import as_table

table = as_table(log, time="time", feature="airport", value="flights", freq="D")
print(table)
assert np.array_equal(table.X, counts)  # the days that we started from

# %%
# Fit
# ---
# The rows have dates, so the default ``season="auto"`` tries the seasons of which the series has
# two cycles or more, here only the week. It hides some runs of days, and takes the season if these
# days are predicted better with it.

model = TemporalNMF(5, random_state=0, n_init=3).fit(table)
print(model.season_reason_)

# %%
# ``season_`` has a factor for each component and weekday, from Monday. Activations are levels times
# factors. ``levels_`` are what the chain describes.

from temporalnmf.summary import component_summary

names = [f"{one.number}  {one.name}" for one in component_summary(model)]
weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
pd.DataFrame(model.season_["week"], index=names, columns=weekdays).round(2)

# %%
# Component 1 (Houston, Dallas, Chicago) is a third below its level on Saturdays, component 2
# (Boston, New York) a sixth. In component 5, with Atlanta and Orlando, Saturday is the largest day.

import matplotlib.pyplot as plt

figure, (above, below) = plt.subplots(2, 1, figsize=(8, 6), layout="constrained")
for k, name in enumerate(names):
    above.plot(weekdays, model.season_["week"][k], ".-", label=name)
    below.plot(model.times_, model.levels_[:, k], label=name)
above.set_ylabel("factor of the week")
below.set_ylabel("level: departures per day")
above.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)

# %%
# Components share airports and replace each other when airlines change their schedules, as at the
# beginning of April. The level of component 2 falls in the week of 5 March. Some rhythm is left in
# the levels: the season is the same in all weeks, and the levels take up what differs.
#
# Check it on two weeks
# ---------------------
# We hide the last 14 days, and compare the forecast with what came. Two forecasts need no model:
# every day is like the same day of the last week, or every day is like the last one.

STEPS = 14


def errors(n_known):
    """Mean absolute errors of forecasts of the days after the first `n_known` ones."""
    past, future = counts.iloc[:n_known], counts.iloc[n_known : n_known + STEPS].to_numpy()
    learned, weak = (
        TemporalNMF(5, season=season, random_state=0).fit(past).forecast(STEPS).values
        for season in ("week", Season("week", strength=0.03))
    )
    forecasts = {
        "model": learned,
        "weak season": weak,
        "last week": np.tile(past.iloc[-7:], (2, 1)),
        "last day": np.tile(past.iloc[-1:], (STEPS, 1)),
    }
    rows = {}
    for name, expected in forecasts.items():
        wrong = expected - future
        rows[name] = {
            "one airport, one day": np.abs(wrong).mean(),
            "one airport, two weeks": np.abs(wrong.sum(axis=0)).mean(),
            "all airports, one day": np.abs(wrong.sum(axis=1)).mean(),
            "all airports, two weeks": np.abs(wrong.sum()),
        }
    return pd.DataFrame(rows)


last = errors(len(counts) - STEPS)
last.round(1)

# %%
# Repeating the last day is worst everywhere. (It is a Saturday here, which is the worst day to
# repeat.) For a **single airport** the last week is clearly better than the model: schedules hardly
# change from week to week, and the model knows 229 airports only through five components, so each
# airport has a small error that stays the same for two weeks, and adds up.
#
# For **all airports together** the model is worse, too, with the strength of the season that it
# learned. Components have different weeks, which also change over the half-year, and the strength
# is that of the components. With a weaker season (``strength=0.03``, chosen with hindsight) their
# weeks are closer to each other, and the totals better.
#
# Two weeks are one experiment. We repeat it for six origins, on different weekdays, and take the
# means of these errors:

origins = [len(counts) - STEPS - 13 * n for n in range(6)]
found = pd.concat({counts.index[n - 1].date(): errors(n) for n in origins}, names=["origin"])
found.groupby(level=1, sort=False).mean().round(1)

# %%

totals = found.xs("all airports, one day", level=1)
print(totals.round(0).astype(int))
better = (totals[["model", "weak season"]] < totals[["last week"]].to_numpy()).sum()
print(f"better than the last week, of 6 origins: {better.to_dict()}")

# %%
# The model with its learned season is never better than the last week. With the weak one it is
# better for totals of days on average, and at three origins of six. One of them is 3 June: the week
# before it begins with Memorial Day, and whoever repeats a week repeats its holidays.
#
# So if you need nothing but the expected number of departures of an airport, repeat the last week.
# The model is for the rest: components and their rhythm, missing days, intervals, and sums with
# intervals. With more components, errors of single airports are smaller on average, but components
# are harder to name.
#
# Two weeks ahead
# ---------------

from temporalnmf.plotting import plot_forecast

plot_forecast(model, STEPS, of="totals", history=42)

# %%
# ``forecast.sum`` adds up days, groups of airports, or both. It adds up simulated futures: an
# interval of a sum is not the sum of intervals.

groups = {
    "New York": ["EWR", "JFK", "LGA"],
    "Chicago": ["MDW", "ORD"],
    "Florida": ["FLL", "MCO", "MIA", "PBI", "TPA"],
}
forecast = model.forecast(STEPS)
forecast.sum("steps", groups=groups).to_frame().round(0)

# %%
# All airports, all days:

forecast.sum("steps").to_frame(of="totals").round(0)

# %%
# Were such intervals right? On the two weeks that we hid:

past, future = counts.iloc[:-STEPS], counts.iloc[-STEPS:]
earlier = TemporalNMF(5, season="week", random_state=0).fit(past).forecast(STEPS)
for of, truth in (("features", future), ("totals", future.sum(axis=1))):
    lower, upper = earlier.interval(0.9, of=of)
    inside = np.mean((truth >= lower) & (truth <= upper))
    print(f"{of}: {100 * inside:.0f} % of {truth.size} inside their 90 % intervals")
lower, upper = earlier.sum("steps").interval(0.9, of="totals")
print(f"sum of two weeks: {future.to_numpy().sum()}, interval {lower[0]:.0f} to {upper[0]:.0f}")

# %%
# Those of totals are too wide: a 90 % interval should contain nine of ten values. The chain
# ``"rate"`` allows levels to move by some per cent every day, and schedules hardly move.
#
# What not to believe
# -------------------
# * The forecast has a normal Wednesday on 4 July. The season is that of the week and knows no
#   holidays; ``holidays="US"`` does.
# * A weekly pattern that changes is averaged over the half-year, and an airport has the season of
#   its components, not one of its own.
# * A season of the year cannot be seen in six months. Whether summer has more flights than spring
#   is not known to the model: its forecast keeps the last level.
# * The hours of the log were simulated. Nothing here depends on them.
# * Six origins are few. ``temporalnmf compare`` and :doc:`4_choosing` compare models with intervals
#   for the differences.
