"""The command line: parse, call, print. One module per group of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from . import chains, demo, experiments

app = typer.Typer(add_completion=False, no_args_is_help=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"temporalnmf {__version__}")
        raise typer.Exit


@app.callback()
def temporalnmf(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Non-negative matrix factorization of things that change over time."""


for command in (
    demo.demo,
    experiments.compare,
    experiments.select_rank,
    experiments.reproduce,
    chains.simulate,
    chains.figures,
):
    app.command()(command)
