"""Shared by all commands: output, errors without tracebacks, progress, checks of output paths."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import numpy as np
import typer

from ..messages.errors import message_of
from ..runtime.files import watched_writes, written_whole
from ..runtime.signals import exit_code, stop_behind, stop_that_came, tell_by
from .spelling import as_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from ..solvers.monitor import Progress

Value = TypeVar("Value")
Words = Sequence[str]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


class Voice:
    """Output of a command; with --json, messages go to standard error."""

    def __init__(self, json: bool = False) -> None:
        self.json = json
        self.resumes = False  # whether the same command continues an interrupted run
        self.checkpoint: Path | None = None  # from which the same command continues, once it exists
        self.announced: list[Path] = []
        self.placed: Callable[[], list[Path]] = list  # files written so far, announced or not

    def say(self, text: str = "", *, style: str | None = None) -> None:
        """Print a line; the style shows on a terminal only."""
        text = "\n".join(map(printable, text.split("\n")))
        if style and self._console().is_terminal:
            self._console().print(text, style=style, markup=False, highlight=False)
        else:
            typer.echo(text, err=self.json)

    def notes(self, notes: Words) -> None:
        for note in notes:
            self.say(f"  {note}")

    def table(
        self,
        headings: Words,
        rows: Sequence[Words],
        *,
        left: Words = (),
        bold: Sequence[Words] = (),
    ) -> None:
        """Print rows under headings, right-aligned except for the columns named in `left`.

        Only the last column wraps, and only if it is left-aligned. Rows in `bold` are marked.
        """
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        shown = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
        for heading in headings:
            words = heading in left and heading == headings[-1]
            shown.add_column(
                Text(printable(heading)),
                justify="left" if heading in left else "right",
                no_wrap=not words,
                overflow="fold" if words else "ellipsis",
            )
        for row in rows:
            cells = (Text(printable(cell)) for cell in row)  # names may look like markup
            shown.add_row(*cells, style="bold" if row in bold else None)
        self._console().print(shown)

    def wrote(self, path: Path) -> None:
        """Announce a file."""
        self.announced.append(path)
        self.say(f"written: {path}")

    def answer(self, result: Mapping[str, object]) -> None:
        """Print the result as JSON, with --json."""
        if self.json:
            typer.echo(json.dumps(_for_json(result), ensure_ascii=False, allow_nan=False))

    @property
    def width(self) -> int:
        return int(self._console().width)

    def _console(self) -> Console:
        from rich.console import Console

        return Console(stderr=self.json)


JsonVoice = Annotated[
    Voice, typer.Option("--json", help="Print one JSON object; messages go to standard error.")
]


def printable(text: str) -> str:
    """Text without control characters, which could control a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _for_json(value: object) -> object:
    """A value that JSON can hold: None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(name): _for_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return _for_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str | None) else str(value)


@contextmanager
def clean_errors(json: bool = False) -> Iterator[Voice]:
    """Yield a `Voice`, and report errors without a traceback.

    Exit code 2 for wrong input and for missing packages, 130 for Ctrl-C, 143 for SIGTERM.
    """
    voice = Voice(json)
    tell_by(lambda: _so_far(voice))
    try:
        with watched_writes() as voice.placed, warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: _show_warning(message)
            yield voice
    except BrokenPipeError:  # the reader has closed the pipe, as in "| head"
        raise
    except (KeyboardInterrupt, Exception) as error:
        # Libraries may turn a signal into another error, such as numba's SystemError.
        if stop := stop_behind(error) or stop_that_came():
            typer.echo(_so_far(voice), err=True)
            raise typer.Exit(exit_code(stop)) from None
        if not isinstance(error, ValueError | ImportError | OSError):
            raise
        typer.echo(f"Error: {message_of(error, as_option)}", err=True)
        raise typer.Exit(2) from error


def _show_warning(message: Warning | str) -> None:
    """Print a warning in one line, without its place in the source."""
    text = message if isinstance(message, str) else message_of(message, as_option)
    typer.echo(f"Warning: {text}", err=True)


def _so_far(voice: Voice) -> str:
    """The state of a command that was stopped, and how to continue."""
    if voice.resumes:
        return "Interrupted: the same command continues where it stopped."
    if voice.checkpoint is not None and voice.checkpoint.exists():
        return f"Interrupted: the same command continues from {voice.checkpoint}."
    if written := dict.fromkeys([*voice.announced, *voice.placed()]):
        return f"Interrupted. Written before: {', '.join(map(str, written))}."
    return "Interrupted: nothing was written."


def check_out(option: str, path: Path, force: bool, *, reads: Sequence[Path | None] = ()) -> None:
    """Refuse a path that cannot be written to, before the work begins.

    `reads` are the files that the command reads, None for options that were not given.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{option} {path} is a folder. Name a file in it.")
    known = [other for other in reads if other is not None and other.exists()]
    if path.exists() and any(path.samefile(other) for other in known):
        raise FileExistsError(f"{option} {path} is the input file. Choose another name.")
    if path.exists() and not force:
        remedy = "Replace it with --force, or choose another name."
        raise FileExistsError(f"{option} {path} exists already. {remedy}")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise NotADirectoryError(f"{option} {path}: {folder} is a file. Choose another folder.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{option} {path}: you may not write to {folder}. Choose another.")


def listed(
    option: str, text: str, kind: Callable[[str], Value], valid: Callable[[Value], bool], what: str
) -> list[Value]:
    """The values of an option that are separated by commas."""
    try:
        found = [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(map(valid, found)):
        raise ValueError(f"{option} {text}: expected {what}, separated by commas.")
    return found


def fitting(headings: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> int:
    """How many of the first columns of a table fit, at least one."""
    left = width - 3
    for n, (heading, column) in enumerate(zip(headings, columns, strict=True)):
        left -= max(map(len, [heading, *column])) + 2
        if left < 0:
            return max(n, 1)
    return len(columns)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[..., None]]:
    """A progress bar, on a terminal only; yields a function of number done, total and label."""
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(), rich.TextColumn("left"), rich.TimeRemainingColumn(),
    )  # fmt: skip
    with rich.Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, wanted, words=what: bar.update(
            task, completed=done, total=wanted, description=words
        )


@contextmanager
def busy(what: str) -> Iterator[Callable[[str], None] | None]:
    """A label while something runs, on a terminal only; yields a function that changes it."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status(what) as status:
        yield status.update


@contextmanager
def fit_progress(
    n_starts: int, max_iter: int, more: Callable[[], str]
) -> Iterator[Callable[[Progress], None] | None]:
    """A callback that shows the progress of a fit, and `more`, on a terminal only."""
    with busy("fitting") as tell:
        yield None if tell is None else Watch(tell, n_starts, max_iter, more=more)


@contextmanager
def draws_progress(
    n_runs: int, n_tune: int, n_sweeps: int, more: Callable[[], str]
) -> Iterator[Callable[[Progress], None]]:
    """A callback for a fit by draws: a bar over the sweeps of all runs."""
    with progress_bar(f"run 1 of {n_runs}") as show:

        def tell(progress: Progress) -> None:
            run, sweep = divmod(progress.iteration - 1, n_sweeps)
            what = "tuning" if sweep < n_tune else "drawing"
            show(progress.iteration, n_runs * n_sweeps, f"run {run + 1} of {n_runs} {what}{more()}")

        yield tell


class Watch:
    """Status line of a fit.

    The time left is estimated from the starts that are done; during the first one, `max_iter`
    gives an upper bound.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        n_starts: int,
        max_iter: int,
        clock: Callable[[], float] = time.monotonic,
        more: Callable[[], str] = str,
    ) -> None:
        self.tell, self.n_starts, self.max_iter = tell, n_starts, max_iter
        self.clock, self.more, self.began = clock, more, clock()
        self.start, self.iteration = 0, 0

    def __call__(self, progress: Progress) -> None:
        now = self.clock()
        if not self.start or progress.iteration <= self.iteration:
            self.start += 1
            self.start_began, self.first_iteration = now, progress.iteration
            if self.start == 1:
                self.first_began = now  # without the time for compilation
        self.iteration = progress.iteration
        start = f"start {self.start} of {self.n_starts}, " if self.n_starts > 1 else ""
        if self.start > self.n_starts:  # a fit goes on from the best start, with effects or clumps
            start = "from the best start, " if self.n_starts > 1 else "going on, "
        words = f"{start}iteration {self.iteration}, objective {progress.objective:.6g}, "
        self.tell(words + _clock_face(now - self.began) + self._left(now) + self.more())

    def _left(self, now: float) -> str:
        done, spent = self.start - 1, now - self.start_began
        if done >= self.n_starts:
            return ""
        if done:
            a_start = (self.start_began - self.first_began) / done
            left = (self.n_starts - done) * a_start - spent
            return f", about {_clock_face(max(left, 0.0))} left"
        passed = self.iteration - self.first_iteration
        iterations = self.n_starts * self.max_iter - self.iteration
        return f", at most {_clock_face(spent / passed * iterations)} left" if passed else ""


def _clock_face(seconds: float) -> str:
    minutes, seconds = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def save_figure(figure: Figure, path: Path, voice: Voice) -> None:
    """Write a figure, whole or not at all, and announce it."""
    if not path.suffix:
        raise ValueError(f"{path} has no suffix: name the picture as .png, .pdf or .svg.")
    with written_whole(path) as partial:
        figure.savefig(partial, dpi=110)
    voice.wrote(path)
