"""Posterior draws: the laws of each unknown given all others, to be drawn in turn (Gibbs).

Under way: the conditional laws of activations are here; data, weights and diagnostics are to come.
"""

from .conditionals import FIRST, draw_activations

__all__ = ["FIRST", "draw_activations"]
