"""A look at the embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the tables.")] = Path("results/demo"),
    components: Annotated[int, typer.Option(min=1, help="Number of components.")] = 6,
    seed: Annotated[int, typer.Option(help="For hidden years and starting values.")] = 0,
) -> None:
    """Fit the embedded State of the Union data with each of the six chains."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    with console.status("loading") as status:
        from ..demo import component_summary, run_demo, write_results

        results = run_demo(components, seed, lambda text: status.update(text))
    best = min(results, key=lambda result: result.held_out_error)
    table = Table(title=f"State of the Union, words by year: {components} components")
    table.add_column("chain")
    for heading in ("objective", "iterations", "seconds", "held-out error"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            result.chain,
            f"{result.objective:,.1f}",
            str(result.iterations),
            f"{result.seconds:.1f}",
            f"{result.held_out_error:.2f}",
            style="bold" if result is best else None,
        )
    console.print(table)
    console.print(
        "Objectives of different chains are not comparable; the held-out error is (Kullback-Leibler"
        " error per year on the 20 % of years that were hidden, lower is better).\n"
    )
    words = Table(title=f"Components of '{best.chain}', the lowest held-out error")
    for heading in ("share", "peaks in", "top words"):
        words.add_column(heading)
    for row in component_summary(best.model):
        words.add_row(row["share"], row["peak_years"], row["top_words"])
    console.print(words)
    for path in write_results(results, out):
        console.print(f"written: {path}")
