"""
Seasons
=======

Many series repeat: shops are full on Saturdays, energy is used in winter. A fit looks for such
seasons by itself if its steps have dates. This guide simulates a series whose seasons are known,
finds them, and shows what they are part of.
"""

# sphinx_gallery_thumbnail_number = 1

import numpy as np
import pandas as pd

from temporalnmf import TemporalNMF

# %%
# Loans of a library
# ------------------
# Half a year of loans per day, of six kinds. Students borrow textbooks and papers on weekdays,
# families picture books, comics and games on Saturdays. Over the months, students come more and
# more often.

rng = np.random.default_rng(0)
days = pd.date_range("2024-01-01", periods=182)
kinds = ["textbooks", "papers", "novels", "picture books", "comics", "games"]
students = np.linspace(80, 160, len(days)) * np.where(days.day_of_week < 5, 1.0, 0.4)
families = np.full(len(days), 90.0) * np.where(days.day_of_week == 5, 2.2, 0.8)
shares = [[0.5, 0.3, 0.2, 0.0, 0.0, 0.0], [0.0, 0.0, 0.1, 0.4, 0.3, 0.2]]
counts = rng.poisson(np.column_stack([students, families]) @ shares)
loans = pd.DataFrame(counts, index=days, columns=kinds)
loans.head(3)

# %%
# Fit
# ---
# With ``season="auto"``, the default, the fit hides some runs of days, and takes a season if it
# predicts them better. ``season_reason_`` says what came of it. The series is too short for a
# season of the year, which needs two years.

model = TemporalNMF(2, random_state=0).fit(loans)
print(model.season_reason_)

# %%
# The factors
# -----------
# Every component has its own factor for each day of the week. A factor of 1, the grey line, is the
# level: the activation without seasons.

from temporalnmf.plotting import plot_season

plot_season(model)

# %%
# In words, for the sum of the components and for each of them:

from temporalnmf.summary import component_summary, season_summary

(week,) = season_summary(model)
print(f"total: {week.words()}")
for component in component_summary(model):
    print(f"{component.name}: {week.words(component.index)}")

# %%
# The levels
# ----------
# ``levels_`` are seasonally adjusted. They show what activations hide: one component grows.

from matplotlib import pyplot as plt

fig, axes = plt.subplots(2, 1, sharex=True, layout="constrained")
for k, ax in enumerate(axes):
    ax.plot(days, model.activations_[:, k], color="lightgrey", label="activation")
    ax.plot(days, model.levels_[:, k], label="level")
    ax.set_title(component_summary(model)[k].name, fontsize=9, loc="left")
    ax.set_ylim(bottom=0)
axes[0].legend(frameon=False, fontsize=8)

# %%
# An explained forecast
# ---------------------
# The chain continues the levels; the calendar knows the day of the week. ``explain`` shows both.
# The column ``expected`` is their product, and adds up to the expected total of a day.

ahead = model.forecast(7)
parts = ahead.explain()
parts.set_index(["time", "component", "name"]).round(2)

# %%
print(parts.groupby("time")["expected"].sum().round(1).tolist())
print(ahead.point_of("totals").round(1).tolist())

# %%
# What not to believe
# -------------------
# * A season is the same in every cycle. If Saturdays become less important over the years, the
#   factor is an average of all of them.
# * A holiday is not a season: without ``holidays="US"`` the model takes Christmas Day for an
#   ordinary Wednesday.
# * "auto" leaves a season out if held-out days are not predicted better. With few cycles, or few
#   counts, a real season can be left out; ``season="week"`` takes it in any case.
# * With barely two cycles, a season of the year and a slow movement of the level look alike.
