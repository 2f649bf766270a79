"""
Choosing a chain and a rank
===========================

How many components does a model need, and which chain? To decide, hide some of the data, predict
them, and use the setting with the lowest error. This guide also asks whether a chain helps at
all.
"""

# sphinx_gallery_thumbnail_number = 3

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_sotu
from temporalnmf.selection import HiddenBlocks, HiddenSteps, select

words = load_sotu(as_frame=True).data
words = words[words.columns[words.sum() > 500]]
print(words.shape)

# %%
# How many components?
# --------------------
# A fifth of the years is hidden, no two of them adjacent, in each of three splits. The default
# ``rule="one_se"`` chooses the smallest model whose error is within one standard error of the
# best.

ranks = select(
    words.to_numpy(),
    chains="rate",
    n_components=[2, 4, 6, 8],
    splitter=HiddenSteps(3, random_state=0),
    random_state=0,
)
print(ranks.answer)

# %%
# Look for the point where the curve flattens, not for the minimum: where error bars overlap, the
# difference may be noise.

ranks.plot()

# %%
# Which chain?
# ------------
# Hide the kind of data that you want to predict. Single hidden years only need interpolation, at
# which plain NMF is hard to beat. Several years in a row, or the end of the series, test how well
# a chain predicts a component without its neighbours. Here we hide two blocks of three years, in
# each of three splits. Plain NMF (``none``) and repeating the last value are always included.

chains = select(
    words.to_numpy(),
    chains=["rate", "shape", "bgar"],
    n_components=6,
    splitter=HiddenBlocks(3, length=3, random_state=0),
    random_state=0,
)
print(chains.answer)

# %%

chains.to_frame().round(3)

# %%
# Stiff or loose?
# ---------------
# A plot of one fit shows whether the chain agrees with its result. Grey is the distribution of
# yearly changes that the chain expects, blue the distribution that was estimated. A chain that
# is far too stiff smooths out real changes:

from temporalnmf.chains import Rate
from temporalnmf.plotting import plot_movement

stiff = TemporalNMF(6, chain=Rate(alpha=3000.0), random_state=0).fit(words)
plot_movement(stiff)

# %%
# A chain that is loose enough to follow the data:

loose = TemporalNMF(6, chain=Rate(alpha=10.0), random_state=0).fit(words)
plot_movement(loose)

# %%
# What not to believe
# -------------------
# * The changes include those of the length of addresses, which jumps. A chain that matches the
#   changes is not necessarily the best predictor: a stiff chain may predict better because it
#   ignores noise. Rely on held-out errors.
# * The setting was chosen by these errors, so expect slightly larger ones on new data.
# * A difference of a few percent between chains means little. Other hidden years may give another
#   winner, and with three splits even the standard errors are rough. Use more splits before you
#   decide, and prefer the simpler of two models that are close.
# * ``temporalnmf compare FILE --components 6 --out results`` is more careful: it chooses
#   hyper-parameters on one half of the hidden steps and reports errors on the other. See
#   :doc:`/commands`.
