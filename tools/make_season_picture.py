"""Draw the picture of seasons in the README.

Usage::

    python tools/make_season_picture.py [--output FILE]

On the left, departures per day of all airports: the forecast of two weeks that the fit did not
see, and what came. On the right, the factors of the week of each component.
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_flights
from temporalnmf.plotting import plot_forecast
from temporalnmf.plotting.canvas import PALETTE
from temporalnmf.summary import component_summary

OUTPUT = Path(__file__).parents[1] / "docs" / "_static" / "season.png"
STEPS, HISTORY = 14, 28
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def draw_forecast(model: TemporalNMF, future, ax: Axes) -> None:
    """Totals with their forecast, and what came."""
    plot_forecast(model, STEPS, of="totals", history=HISTORY, ax=ax)
    ax.plot(future.index, future.sum(axis=1), "kx", markersize=4, label="observed later")
    ax.set_ylim(10_000, 23_000)
    ax.set_ylabel("departures per day")
    ax.set_title("A forecast of two weeks, with 50 % and 90 % intervals", loc="left", fontsize=9)
    ax.legend(loc="lower left", frameon=False, fontsize=8)


def draw_season(model: TemporalNMF, ax: Axes) -> None:
    """Factors of the week, by component."""
    for one, factors, colour in zip(
        component_summary(model), model.season_["week"], PALETTE, strict=False
    ):
        label = f"{one.number}  {one.name}"
        ax.plot(WEEKDAYS, 100.0 * factors - 100.0, ".-", color=colour, label=label)
    ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
    ax.set_ylabel("% above or below the level")
    ax.set_title("The week of each component", loc="left", fontsize=9)
    ax.legend(loc="lower left", frameon=False, fontsize=8)


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the picture of seasons in the README.")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    flights = load_flights(as_frame=True).data
    past, future = flights.iloc[:-STEPS], flights.iloc[-STEPS:]
    model = TemporalNMF(5, n_init=3, random_state=0).fit(past)
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(10, 3.6), width_ratios=(3, 2), layout="constrained"
    )
    draw_forecast(model, future, left)
    draw_season(model, right)
    figure.savefig(arguments.output, dpi=110, metadata={"Software": None})
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
