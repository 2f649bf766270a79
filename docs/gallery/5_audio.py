"""
Audio with Itakura–Saito: a tabla loop
======================================

A power spectrogram is also a time series, with one row per frame and one column per frequency.
Quiet sounds matter to the ear as much as loud ones, so errors should be relative. The
Itakura–Saito divergence measures relative errors; ``likelihood="exponential"`` is the
corresponding model.

The excerpt is three seconds of a tabla loop (Sonic Pi's ``loop_tabla``, CC0), up to 5.5 kHz, with
a resolution of half a decibel.
"""

# sphinx_gallery_thumbnail_number = 3

import numpy as np
from matplotlib import pyplot as plt

excerpt = np.load("tabla_excerpt.npz")
hertz, seconds = excerpt["hertz"], np.arange(134) * 512 / 22050
decibel = -excerpt["attenuation"].astype(float) / 2
power = 1e6 * 10 ** (decibel / 10)  # (frames, frequencies)

figure, ax = plt.subplots(figsize=(9, 3.2), layout="constrained")
ax.pcolormesh(seconds, hertz, decibel.T, vmin=-80, cmap="cividis")
ax.set(xlabel="seconds", ylabel="Hz", ylim=(0, 3000))

# %%
# Which chain for drums?
# ----------------------
# A stroke starts within one frame and rings for half a second. The default chain expects changes
# of a few percent and cannot follow. ``hier_rate`` with small shape parameters has heavy tails:
# it is smooth most of the time, with occasional jumps.

from temporalnmf import TemporalNMF
from temporalnmf.chains import HierRate
from temporalnmf.plotting import plot_movement

settings = {"likelihood": "exponential", "smoothing": 0.01, "n_init": 5, "random_state": 0}
smooth = TemporalNMF(4, chain="rate", **settings).fit(power)
jumps = TemporalNMF(4, chain=HierRate(2.0, 2.0, 2.0, 2.0), **settings).fit(power)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for model, ax in zip((smooth, jumps), axes, strict=True):
    plot_movement(model, ax=ax)

# %%
# The divergence agrees (lower is better):

for name, model in (("rate", smooth), ("hier_rate", jumps)):
    print(f"{name:10} {model.reconstruction_err_ / power.size:.2f} per entry")

# %%
# The strokes
# -----------
# Left: the activation of each component, in decibels. Right: its spectrum. Look for a component
# that rings (sharp peaks, and a straight line down after each stroke, which is exponential decay)
# and one that clicks (a flat spectrum, and a short activation).

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
colors = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]
for k, color in enumerate(colors):
    left.plot(seconds, 10 * np.log10(jumps.activations_[:, k]), color=color, lw=1.2)
    right.plot(hertz, 10 * np.log10(jumps.components_[k]), color=color, lw=1.2)
left.set(xlabel="seconds", ylabel="activation, dB", ylim=(-20, 75))
right.set(xlabel="Hz", ylabel="share of the component, dB", xlim=(0, 2500), ylim=(-50, 0))

# %%
# A missing section
# -----------------
# We remove a quarter of a second and fill it in, this time with seconds and frequencies as labels.
# The ringing continues through the gap and the band widens. A stroke inside the gap would be lost,
# since the data outside do not show it.

import pandas as pd

from temporalnmf.plotting import plot_activations

table = pd.DataFrame(power, index=seconds, columns=[f"{f:.0f} Hz" for f in hertz])
table[(seconds > 1.35) & (seconds < 1.6)] = np.nan
patched = TemporalNMF(4, chain=HierRate(2.0, 2.0, 2.0, 2.0), **settings).fit(table)
ax = plot_activations(patched, components=[0, 1])
ax.set(yscale="log", ylim=(1e-2, 1e8), xlabel="seconds")

# %%
# With librosa
# ------------
# ``librosa.decompose.decompose(S, transformer=TemporalNMF(...), n_components=4)`` uses the
# model in place of scikit-learn's NMF. The rows of librosa's spectrograms are frequencies;
# ``decompose`` transposes them.
#
# What not to believe
# -------------------
# * A component is a spectrum whose loudness varies, not an instrument. A drum with a gliding pitch,
#   such as the bass drum of a tabla, needs two components or blurs into one.
# * In this divergence, values near silence count as much as loud ones. Set a floor well above the
#   noise of the recording.
# * Phases are not modelled. To hear a component, filter the original with its share of the
#   power.
