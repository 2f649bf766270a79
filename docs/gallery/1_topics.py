"""
Topics over time: the State of the Union
========================================

What did presidents of the United States talk about, and when? The package includes word counts
of their yearly addresses from 1790 to 2021, with one row per year and one column per word.
There was no address in 1933, so that row is missing.
"""

# sphinx_gallery_thumbnail_number = 3

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_sotu

words = load_sotu(as_frame=True).data
words.iloc[:3, :6]

# %%
# Fit
# ---
# We fit eight components: eight groups of words that rise and fall together. With ``n_init=3``
# the fit is repeated from three random starts and the best one is kept; the other two show how
# much the components depend on the start.

model = TemporalNMF(8, chain="rate", n_init=3, random_state=0, n_jobs=-1).fit(words)
print(model.stop_reason_)

# %%
# The components
# --------------
# A component is named after its three most characteristic words. *Share* is its share of all
# words, *peak* the year in which it is largest. *Stability* is the mean cosine with its match in
# the other two starts, from 0 to 1. From 0.9 on the component is found again from other starts.
# Below 0.7 it is not, so treat it as one of several possible groupings. In between, it varies.

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
# Here are the words behind the names. A bar is the share of a word in its component, the grey
# mark its share in all components. A word that is common everywhere says little.

from temporalnmf.plotting import plot_components

plot_components(model, n_features=8)

# %%
# Activations over time
# ---------------------
# Every component sums to one, so an activation is the number of words that the component
# contributes to the address of a year. The band is the 90 % interval under the model. The grey
# stripe is 1933.

from temporalnmf.plotting import plot_activations

plot_activations(model)

# %%
# In some years all lines jump together, because the lengths of addresses vary widely. Those of
# 1946 and 1981 were long written messages and stand out as spikes. To see *what* an address was
# about rather than *how long* it was, pass its length as exposure. An activation is then a share
# of the words.

length = words.sum(axis=1).where(words.notna().any(axis=1), words.sum(axis=1).median())
shares = TemporalNMF(8, n_init=3, random_state=0, n_jobs=-1).fit(words, exposure=length)
plot_activations(shares)

# %%
# Where the model fits poorly
# ---------------------------
# Which years look least like a mixture of the components? Long addresses leave more room for
# error, so 1946 and 1981 come first again; for the others, it is worth reading the text.

from temporalnmf.plotting import plot_residuals

plot_residuals(shares)

# %%
# What not to believe
# -------------------
# * A name lists the most characteristic words; it is not an interpretation. Read the words, and
#   the address of the peak year.
# * Components of neighbouring eras share much of their language. The model does not separate
#   "topic" from "style of the time", and most components here are eras.
# * Eight components are a choice. :ref:`The guide on choosing
#   <sphx_glr_auto_gallery_4_choosing.py>` shows what the data say about it.
# * The bands treat the components as known. They do not include the possibility that other
#   components fit equally well; stability is a measure of that.
