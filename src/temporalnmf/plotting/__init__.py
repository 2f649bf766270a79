"""Plots, one function each. Needs matplotlib, the extra "plot"."""

from .canvas import BLUE, GREY, ORANGE, PALETTE, Figure
from .chains import (
    PAPER_PANELS,
    draw_simulation,
    paper_figures,
    plot_map_region,
    plot_paths,
    plot_prior,
    plot_selection,
    prior_figures,
)
from .draws import plot_ranks, plot_trace
from .effects import plot_effects
from .fitted import (
    plot_activations,
    plot_components,
    plot_objective,
    plot_residuals,
    plot_season,
)
from .forecasts import plot_forecast
from .movement import plot_movement

__all__ = [
    "BLUE",
    "GREY",
    "ORANGE",
    "PALETTE",
    "PAPER_PANELS",
    "Figure",
    "draw_simulation",
    "paper_figures",
    "plot_activations",
    "plot_components",
    "plot_effects",
    "plot_forecast",
    "plot_map_region",
    "plot_movement",
    "plot_objective",
    "plot_paths",
    "plot_prior",
    "plot_ranks",
    "plot_residuals",
    "plot_season",
    "plot_selection",
    "plot_trace",
    "prior_figures",
]
