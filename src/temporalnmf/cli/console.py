"""What commands share: errors without tracebacks, progress, saved pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer


@contextmanager
def clean_errors() -> Iterator[None]:
    """What a user did wrong, or has not installed, is told without a traceback; exit code 2."""
    try:
        yield
    except (ValueError, ImportError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from error


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left, on a terminal only; called with what is done and wanted."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )  # fmt: skip

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, wanted: bar.update(task, completed=done, total=wanted)


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture, whole or not at all, and say where."""
    from ..files import written_whole

    if not path.suffix:
        raise ValueError(f"{path} has no suffix: name the picture as .png, .pdf or .svg.")
    with written_whole(path) as partial:
        figure.savefig(partial, dpi=110)
    typer.echo(f"written: {path}")
