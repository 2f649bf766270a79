"""
Filling gaps
============

To the model, a lost period, a missing entry and the future are the same: values that were not
observed. This guide hides years that are known, fills them in, and compares the result with the
truth.
"""

# sphinx_gallery_thumbnail_number = 1

import numpy as np

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_sotu

words = load_sotu(as_frame=True).data
words = words[words.columns[words.sum() > 300]]  # the 416 most common words

# %%
# Hide some years
# ---------------
# We hide every ninth year, and the six years from 1941 to 1946 as one gap, by setting them to
# ``NaN``.

known = words.copy()
hidden = (words.index % 9 == 0) | ((words.index >= 1941) & (words.index <= 1946))
hidden &= words.notna().all(axis=1)
known[hidden] = np.nan
print(f"{hidden.sum()} of {len(words)} years are hidden")

# %%
# Fit and fill
# ------------
# The length of an address is known for every year, so we pass it as exposure.

length = words.sum(axis=1).where(words.notna().any(axis=1), words.sum(axis=1).median())
model = TemporalNMF(6, chain="rate", random_state=0, n_jobs=-1).fit(known, exposure=length)
filled = model.impute(known, exposure=length)
filled.loc[1941:1946, ["production", "forces", "dollars", "prices"]].round(1)

# %%
# The true counts:

words.loc[1941:1946, ["production", "forces", "dollars", "prices"]]

# %%
# In the plot of the activations, the hidden years are grey. The bands are wider there, and
# widest in the middle of the long gap.

from temporalnmf.plotting import plot_activations

plot_activations(model)

# %%
# How accurate is it?
# -------------------
# ``smooth`` returns the same steps with intervals. If the model is correct, a 90 % interval
# contains nine of ten hidden entries.

smooth = model.smooth()
hidden_steps = np.flatnonzero(hidden)
lower, upper = smooth.at(hidden_steps).interval(0.9)
truth = words.to_numpy()[hidden_steps]
inside = (truth >= lower) & (truth <= upper)
long_gap = (words.index[hidden_steps] >= 1941) & (words.index[hidden_steps] <= 1946)
print("Entries inside their 90 % intervals:")
print(f"single years: {100 * inside[~long_gap].mean():.1f} %")
print(f"1941 to 1946: {100 * inside[long_gap].mean():.1f} %")

# %%
# Is it better than the obvious alternative, linear interpolation between the neighbours?

from temporalnmf.metrics import kl_error

rates = known.div(length, axis=0)
# Adding a tenth of a count ensures that no word has probability zero.
by_hand = rates.interpolate().mul(length, axis=0).to_numpy()[hidden_steps]
by_model = filled.to_numpy()[hidden_steps]
print(f"error of the model:   {kl_error(truth, by_model) / truth.size:.2f} per entry")
print(f"linear interpolation: {kl_error(truth, by_hand + 0.1) / truth.size:.2f} per entry")

# %%
# What not to believe
# -------------------
# * A filled gap only connects its two ends. The war economy of 1942 to 1945 (production, forces)
#   falls inside the gap and leaves no trace at either end, so the model cannot know about it.
#   There, intervals contain fewer entries than their nominal share.
# * The bands treat the components as known and assume Poisson counts. Speakers repeat
#   themselves, so real word counts vary more, and rare bursts fall outside.
# * Values should not be missing *because* of what they were, as when a sensor fails in storms. No
#   model can detect that from the rest of the data.
