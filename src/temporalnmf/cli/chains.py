"""Chains without data: simulations and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from typer import Argument, Option

from .. import registry
from ..messages.formatting import number_text
from ..runtime.files import write_csv
from .console import Voice, save_figure

if TYPE_CHECKING:
    from ..chains.process import Process

_Number = Annotated[float | None, Option(help="Hyper-parameter, where the chain has it.")]


class HyperParameters(NamedTuple):
    """Hyper-parameters of all chains."""

    alpha: _Number = None
    beta: _Number = None
    rho: _Number = None
    alpha_z: _Number = None
    beta_z: _Number = None
    alpha_h: _Number = None
    beta_h: _Number = None


def simulate(
    voice: Voice,
    chain: Annotated[str, Argument(help=f"One of {', '.join(registry.PROCESSES)}.")],
    numbers: HyperParameters,
    n_steps: Annotated[int, Option(help="Length of a path.")] = 50,
    n_paths: Annotated[int, Option(help="Number of paths.")] = 10,
    h1: Annotated[
        float | None,
        Option(
            help="First value.",
            show_default="a draw from the stationary distribution, or 1 without one",
        ),
    ] = None,
    seed: Annotated[int, Option(min=0, help="The same seed gives the same paths.")] = 0,
    plot: Annotated[Path | None, Option(help="Picture to write (png, pdf, svg).")] = None,
    csv: Annotated[Path | None, Option(help="Table of the paths to write: path, step, h.")] = None,
) -> None:
    """Simulate a chain, and describe its long-run behaviour."""
    law = registry.create(registry.PROCESSES, chain, "chain")
    _set_hyper_parameters(law, {k: v for k, v in numbers._asdict().items() if v is not None})
    paths = law.sample(n_paths, n_steps, seed, h1)
    _describe(law, n_steps, h1, seed, voice)
    if csv is not None:
        rows = (
            {"path": i + 1, "step": n + 1, "h": float(h)}
            for i, path in enumerate(paths)
            for n, h in enumerate(path)
        )
        voice.wrote(write_csv(csv, rows))
    if plot is not None:
        from ..plotting import draw_simulation

        save_figure(draw_simulation(law, n_paths, n_steps, h1, seed), plot, voice)


def _set_hyper_parameters(law: Process, given: dict[str, float]) -> None:
    takes = [name for name in law.get_params() if name != "marginal"]
    for name, value in given.items():
        if name not in takes:
            option, options = (f"--{n.replace('_', '-')}" for n in (name, ", --".join(takes)))
            raise ValueError(f"{option} {value:g}: {law.name} has no {name}; it takes {options}.")
    law.set_params(**given)


def _describe(law: Process, n_steps: int, h1: float | None, seed: int, voice: Voice) -> None:
    """Print the regime, and a table of exact moments and simulated quantiles."""
    from ..chains.outlook import paths_for_quantiles

    n_paths, levels = paths_for_quantiles(n_steps), (0.05, 0.5, 0.95)
    fan = np.quantile(law.sample(n_paths, n_steps, seed, h1), levels, axis=0)
    voice.say(f"{type(law).__name__}: {law.numbers()}")
    voice.say(str(law.regime()))
    rows = []
    for n in sorted({n for n in (1, 2, 5, 10, 20, 50, 100, 1000) if n < n_steps} | {n_steps}):
        numbers = law.mean(h1, n), np.sqrt(law.var(h1, n)), *fan[:, n - 1]
        rows.append([str(n), *(number_text(float(value)) for value in numbers)])
    voice.table(("step", "mean", "sd", "5 %", "median", "95 %"), rows)
    voice.say(f"Mean and sd are exact; the quantiles are those of {n_paths:,} simulated paths.")


def figures(
    voice: Voice,
    out: Annotated[Path, Option(help="Folder for the pictures.")],
    seed: Annotated[int, Option(min=0, help="The same seed gives the same pictures.")] = 0,
) -> None:
    """Draw the six figures of the paper, one of `arg`, and the prior of each chain by default."""
    from ..plotting import paper_figures, prior_figures

    for name, draw in {**paper_figures(seed), **prior_figures(seed)}.items():
        save_figure(draw(), out / f"{name}.png", voice)
