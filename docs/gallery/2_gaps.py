"""
Filling gaps
============

A lost period, a missing cell and the future are one thing to the model: something that was not
observed. This guide hides years that are known, fills them in, and looks at how far off that
was.
"""

# sphinx_gallery_thumbnail_number = 1

import numpy as np

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_sotu

words = load_sotu(as_frame=True).data
words = words[words.columns[words.sum() > 300]]  # the 416 commonest words

# %%
# Hide some years
# ---------------
# Every ninth year, and the six years 1941 to 1946 in one piece. ``NaN`` is all it takes.

known = words.copy()
hidden = (words.index % 9 == 0) | ((words.index >= 1941) & (words.index <= 1946))
hidden &= words.notna().all(axis=1)
known[hidden] = np.nan
print(f"{hidden.sum()} of {len(words)} years are hidden")

# %%
# Fit and fill
# ------------
# The length of an address is known for every year, and given as exposure.

length = words.sum(axis=1).where(words.notna().any(axis=1), words.sum(axis=1).median())
model = TemporalNMF(6, chain="rate", random_state=0, n_jobs=-1).fit(known, exposure=length)
filled = model.impute(known, exposure=length)
filled.loc[1941:1946, ["production", "forces", "dollars", "prices"]].round(1)

# %%
# What was really said:

words.loc[1941:1946, ["production", "forces", "dollars", "prices"]]

# %%
# Look at the activations: the grey years were not seen, and the bands are wider there, widest
# in the middle of the long gap.

from temporalnmf.plotting import plot_activations

plot_activations(model)

# %%
# How good is that?
# -----------------
# ``smooth`` gives the same steps with their uncertainty. An honest 90 % interval holds nine of
# ten hidden cells.

smooth = model.smooth()
hidden_steps = np.flatnonzero(hidden)
lower, upper = smooth.at(hidden_steps).interval(0.9)
truth = words.to_numpy()[hidden_steps]
inside = (truth >= lower) & (truth <= upper)
long_gap = (words.index[hidden_steps] >= 1941) & (words.index[hidden_steps] <= 1946)
print("Cells inside their 90 % intervals:")
print(f"single years: {100 * inside[~long_gap].mean():.1f} %")
print(f"1941 to 1946: {100 * inside[long_gap].mean():.1f} %")

# %%
# And is it better than what one would do by hand, a straight line between the neighbours?

from temporalnmf.metrics import kl_error

rates = known.div(length, axis=0)
# A tenth of a count is added, so that a word is never thought impossible.
by_hand = rates.interpolate().mul(length, axis=0).to_numpy()[hidden_steps]
by_model = filled.to_numpy()[hidden_steps]
print(f"error of the model: {kl_error(truth, by_model) / truth.size:.2f} per cell")
print(f"error of a line:    {kl_error(truth, by_hand + 0.1) / truth.size:.2f} per cell")

# %%
# What not to believe
# -------------------
# * A filled gap is a way from one shore to the other. The war economy of 1942 to 1945 (production,
#   forces) lay inside the gap, and neither shore tells of it: the model cannot know, however wide
#   its bands. Fewer cells than promised are inside there.
# * Bands hold for the components as found, and for counts that vary as the model says
#   (Poisson). Speakers repeat themselves, so real words vary more, and rare bursts fall
#   outside.
# * Gaps should not hide *because* of what was in them (a sensor that fails in storms). No model
#   can see that from the rest.
