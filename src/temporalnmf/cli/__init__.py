"""The command line. One module per group of commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from . import append, chains, demo, experiments, fit, forecast, impute, info, report, shard
from .command import command
from .models import WORDS


class _Group(TyperGroup):
    """Keeps its arguments, for the provenance of models."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[WORDS] = list(args)
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    cls=_Group,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    epilog="Exit codes: 0 success, 1 internal error, 2 wrong input or usage, 130 interrupted "
    "(Ctrl-C), 143 terminated (SIGTERM).",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"temporalnmf {__version__}")
        raise typer.Exit


@app.callback()
def temporalnmf(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Non-negative matrix factorization of things that change over time."""


for panel, functions in {
    "From a table to a report": (
        demo.demo, fit.fit, append.append, forecast.forecast, impute.impute, report.report,
        info.info, shard.shard,
    ),
    "Which model?": (experiments.compare, experiments.select_rank, experiments.reproduce),
    "Chains on their own": (chains.simulate, chains.figures),
}.items():  # fmt: skip
    for function in functions:
        app.command(rich_help_panel=panel)(command(function))
