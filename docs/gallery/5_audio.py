"""
Audio with Itakura–Saito: a tabla loop
======================================

A power spectrogram is a table over time, too: a row per frame, a column per frequency. Loud and
soft matter alike to the ear, so errors should be relative. That is the Itakura–Saito
divergence, and the model behind it is ``likelihood="exponential"``.

The excerpt is three seconds of a tabla loop (Sonic Pi's ``loop_tabla``, CC0), up to 5.5 kHz, in
steps of half a decibel.
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
# A stroke comes within one frame and rings for half a second. A chain whose steps are small
# percentages, the default, cannot follow; ``hier_rate`` with small shapes has heavy tails:
# smooth most of the time, and now and then a jump.

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
# The divergence says the same, lower is closer:

for name, model in (("rate", smooth), ("hier_rate", jumps)):
    print(f"{name:10} {model.reconstruction_err_ / power.size:.2f} per cell")

# %%
# The strokes
# -----------
# Left: when each component sounds, in decibel. Right: its spectrum. Look for a component that
# rings (sharp peaks, a straight line down after each stroke: exponential decay) and one that
# clicks (a flat spectrum, gone at once).

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
colors = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]
for k, color in enumerate(colors):
    left.plot(seconds, 10 * np.log10(jumps.activations_[:, k]), color=color, lw=1.2)
    right.plot(hertz, 10 * np.log10(jumps.components_[k]), color=color, lw=1.2)
left.set(xlabel="seconds", ylabel="activation, dB", ylim=(-20, 75))
right.set(xlabel="Hz", ylabel="share of the component, dB", xlim=(0, 2500), ylim=(-50, 0))

# %%
# A lost piece
# ------------
# A quarter of a second is cut out and filled in, here with seconds and frequencies as labels. The
# ringing goes on and the band opens; a stroke inside the gap would be lost, since nothing outside
# says that it was there.

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
# ``librosa.decompose.decompose(S, transformer=TemporalNMF(...), n_components=4)`` takes the
# model in place of scikit-learn's. librosa's spectrograms have frequencies as rows, and
# ``decompose`` turns them.
#
# What not to believe
# -------------------
# * A component is a spectrum with a loudness, not an instrument. A drum whose pitch glides, as
#   the bass drum of a tabla does, takes two components or blurs into one.
# * Silence is a number in decibel: values near the floor count as much as loud ones in this
#   divergence. Set a floor well above the noise of the recording.
# * Phases are not modelled. To hear a component, filter the original with its share of the
#   power.
