"""
Topics over time: the State of the Union
========================================

What did presidents of the United States speak about, and when? The package comes with the words
of their yearly addresses, 1790 to 2021: a row per year, a column per word, counts as values.
There was no address in 1933, and that row is missing.
"""

# sphinx_gallery_thumbnail_number = 3

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_sotu

words = load_sotu(as_frame=True).data
words.iloc[:3, :6]

# %%
# Fit
# ---
# Eight components, that is eight groups of words that rise and fall together. ``n_init=3``
# starts three times from different random values and keeps the best; the others tell how far
# the components depend on the start.

model = TemporalNMF(8, chain="rate", n_init=3, random_state=0, n_jobs=-1).fit(words)
print(model.stop_reason_)

# %%
# What was found
# --------------
# A component is named after its three most characteristic words. *Share* is its part of all
# words, *peak* the year with most of it. *Stability* is the mean cosine with its match in the
# other two starts, from 0 to 1. From 0.9 on the component is found again from other starts; below
# 0.7 it is not, so treat it as one of several ways to cut the material; between the two it varies.

import pandas as pd

from temporalnmf.summary import component_summary, stability_words

summary = component_summary(model)
table = pd.DataFrame(
    [(c.name, c.share, c.peak, c.stability, stability_words(c.stability)) for c in summary],
    columns=["name", "share", "peak", "stability", "in words"],
    index=pd.Index([c.number for c in summary], name="component"),
)
table.round(2)

# %%
# The words behind the names. A bar is the share of the word in its component, the grey mark its
# share in all of them: a word that is everywhere says little.

from temporalnmf.plotting import plot_components

plot_components(model, n_features=8)

# %%
# When
# ----
# An activation is the number of words that a component contributes to the address of a year,
# since every component sums to one. The band holds 90 % of what the model thinks possible. The
# grey stripe is 1933.

from temporalnmf.plotting import plot_activations

plot_activations(model)

# %%
# Lines jump together here and there because addresses differ much in length. Those of 1946 and
# 1981 were long written messages and stand out as spikes. To see *what* they were about and not
# *how long* they were, give the length as exposure. An activation is then a share of the words.

length = words.sum(axis=1).where(words.notna().any(axis=1), words.sum(axis=1).median())
shares = TemporalNMF(8, n_init=3, random_state=0, n_jobs=-1).fit(words, exposure=length)
plot_activations(shares)

# %%
# Where it fails
# --------------
# Which years look least like any mixture of the components? Long addresses have more to be
# wrong about, so 1946 and 1981 lead again; others in the list deserve a look at their text.

from temporalnmf.plotting import plot_residuals

plot_residuals(shares)

# %%
# What not to believe
# -------------------
# * Names are the most telling words, not a meaning. Read the words, and the texts of the peak
#   year.
# * Components of neighbouring eras share much of their language: "topic" and "style of the
#   time" are not told apart. Most components here are eras.
# * The number eight is a choice. :ref:`The guide on choosing
#   <sphx_glr_auto_gallery_4_choosing.py>` shows what the data say about it.
# * The bands hold for the components as found. They do not count in that other components might
#   have been found; the stability does.
