"""What commands share: a voice, errors without tracebacks, progress, places to write to."""

from __future__ import annotations

import json
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..runtime.files import watched_writes
from ..runtime.signals import exit_code, stop_behind, stop_that_came, tell_by

if TYPE_CHECKING:
    from ..solvers.monitor import Progress

Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output, words on the other.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]

# Arguments of the library whose options have the same name.
_SAME_NAMES = ("freq", "h1", "n_steps", "n_paths", "baseline", "rule")
# Arguments of a fit, wherever they stand, and their options.
_RENAMED = {
    "n_draws": "--draws", "n_tune": "--tune", "n_chains": "--runs", "thin": "--thin",
    "checkpoint_every": "--checkpoint-every", "checkpoint": "--checkpoint", "solver": "--solver",
    "likelihood": "--likelihood", "exposure": "--exposure",
}  # fmt: skip


class Voice:
    """What a command says.

    People read standard output. With --json it holds one object and nothing else, and words go to
    standard error.
    """

    def __init__(self, json: bool = False) -> None:
        self.json = json
        self.written: list[Path] = []  # as was said
        self.placed: Callable[[], list[Path]] = list  # as is the case
        self.checkpoint: Path | None = None  # from which the same command goes on, if it is there

    def say(self, text: str = "", *, style: str | None = None) -> None:
        """A line, however long; the style shows on a terminal only."""
        text = "\n".join(map(printable, text.split("\n")))
        if style and self._console().is_terminal:
            self._console().print(text, style=style, markup=False, highlight=False)
        else:
            typer.echo(text, err=self.json)

    def notes(self, notes: Sequence[str]) -> None:
        for note in notes:
            self.say(f"  {note}")

    def table(
        self, headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ()
    ) -> None:
        """Rows under headings, flush right but for the columns named in `left`.

        Only the last column may take several lines, and only if it is flush left.
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
            shown.add_row(*(Text(printable(cell)) for cell in row))  # names may look like markup
        self._console().print(shown)

    def wrote(self, path: Path, what: str = "written") -> None:
        """A file is there, and this is said."""
        self.written.append(path)
        self.say(f"{what}: {path}")

    def answer(self, result: dict[str, Any]) -> None:
        """The result for machines, if one asked for it."""
        if self.json:
            typer.echo(json.dumps(_finite(result), ensure_ascii=False, allow_nan=False))

    @property
    def width(self) -> int:
        return int(self._console().width)

    def _console(self) -> Any:
        from rich.console import Console

        return Console(stderr=self.json)


def printable(text: str) -> str:
    """Text of a foreign file without characters that command a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _finite(value: Any) -> Any:
    """What JSON can hold: None for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(name): _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if hasattr(value, "tolist"):
        return _finite(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str | None) else str(value)


@contextmanager
def clean_errors(json: bool = False, *, resumes: bool = False) -> Iterator[Voice]:
    """Speak, and tell without a traceback what went wrong.

    Exit code 2 for what a user did wrong or has not installed, 130 for Ctrl-C, 143 for SIGTERM.
    `resumes` is for commands that go on where they were.
    """
    voice = Voice(json)
    tell_by(lambda: _so_far(voice, resumes))
    try:
        with watched_writes() as voice.placed, warnings.catch_warnings():
            # In one line, without the place in the source.
            warnings.showwarning = lambda message, *_: typer.echo(f"Warning: {message}", err=True)
            yield voice
    except BrokenPipeError:  # the reader has gone, as in "| head": nobody is left to tell
        raise
    except (KeyboardInterrupt, Exception) as error:
        # Libraries make other errors of a stop: numba a SystemError while it is handed arguments.
        stop = stop_behind(error) or stop_that_came()
        if stop is None and not isinstance(error, ValueError | ImportError | OSError):
            raise
        if stop is None:
            typer.echo(f"Error: {in_options(str(error))}", err=True)
            raise typer.Exit(2) from error
        typer.echo(_so_far(voice, resumes), err=True)
        raise typer.Exit(exit_code(stop)) from None


def _so_far(voice: Voice, resumes: bool) -> str:
    """What there is of a command that was stopped, and how to go on."""
    if resumes:
        return "Interrupted: the same command goes on where it was."
    if voice.checkpoint is not None and voice.checkpoint.exists():
        return f"Interrupted: the same command goes on from {voice.checkpoint}."
    if written := dict.fromkeys([*voice.written, *voice.placed()]):
        return f"Interrupted. Written before: {', '.join(map(str, written))}."
    return "Interrupted: nothing was written."


def in_options(text: str) -> str:
    """What the library says of its arguments, in the options of the command that runs.

    Examples
    --------
    >>> in_options("time='dat' (--time) is no column; freq= (--freq) adds up")
    "--time 'dat' is no column; --freq adds up"
    >>> in_options("name them with time= and feature= (--time, --feature).")
    'name them with --time and --feature.'
    >>> in_options("take n_chains=4, n_tune and n_draws larger (solver='gibbs')")
    'take --runs 4, --tune and --draws larger (--solver gibbs)'
    >>> in_options("give the size as exposure=, or another checkpoint=.")
    'give the size as --exposure, or another --checkpoint.'
    """
    text = re.sub(r"\b\w+= and \w+= \((--[\w-]+), (--[\w-]+)\)", r"\1 and \2", text)
    text = re.sub(r"\b\w+=(?:True|False)? \((--[\w-]+)\)", r"\1", text)
    text = re.sub(r"\b\w+=('[^']*'|\S+) \((--[\w-]+)\)", r"\2 \1", text)
    for name in _SAME_NAMES:
        text = re.sub(rf"(^|[.:] ){name}=(?=\S)", rf"\1--{name.replace('_', '-')} ", text)
    for name, option in _RENAMED.items():
        given = rf"(?<![\w-]){name}="
        text = re.sub(rf"""{given}(?:'([^']*)'|"([^"]*)"|(-?\w+))""", rf"{option} \1\2\3", text)
        text = re.sub(rf"{given}(?=[\s.,;:)]|$)", option, text)
        if "_" in name:  # a word of nothing else
            text = re.sub(rf"(?<![\w-]){name}\b", option, text)
    return text


def check_out(option: str, path: Path, force: bool, *, reads: Sequence[Path] = ()) -> None:
    """Refuse a place to write to before the long work, not after it."""
    if path.is_dir():
        raise IsADirectoryError(f"{option} {path} is a folder. Name a file in it.")
    for other in reads:
        if path.exists() and other.exists() and path.samefile(other):
            raise FileExistsError(f"{option} {path} is the file that is read. Choose another name.")
    if path.exists() and not force:
        raise FileExistsError(
            f"{option} {path} exists already. --force replaces it; or choose another name."
        )
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise NotADirectoryError(f"{option} {path}: {folder} is a file. Choose another folder.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(
            f"{option} {path}: {folder} is not yours to write to. Choose another."
        )


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[..., None]]:
    """A bar with the time left, on a terminal only.

    Called with what is done and wanted, and with other words if they change.
    """
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
        yield lambda done, wanted, words=what: bar.update(
            task, completed=done, total=wanted, description=words
        )


@contextmanager
def busy(what: str) -> Iterator[Callable[[str], None] | None]:
    """A word on what takes a while, on a terminal only; yields what changes the word, or None."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status(what) as status:
        yield status.update


@contextmanager
def fit_progress(
    n_starts: int, max_iter: int, more: Callable[[], str] = str
) -> Iterator[Callable[[Progress], None] | None]:
    """A callback for a fit that shows how it goes, and `more`, on a terminal only."""
    with busy("fitting") as tell:
        yield None if tell is None else Watch(tell, n_starts, max_iter, more=more)


@contextmanager
def draws_progress(
    n_runs: int, n_tune: int, n_sweeps: int, more: Callable[[], str] = str
) -> Iterator[Callable[[Progress], None]]:
    """A callback for a fit by draws: a bar over the sweeps of all runs, on a terminal only."""
    with progress_bar(f"run 1 of {n_runs}") as show:

        def tell(progress: Progress) -> None:
            run, sweep = divmod(progress.iteration - 1, n_sweeps)
            what = "settles" if sweep < n_tune else "draws"
            show(progress.iteration, n_runs * n_sweeps, f"run {run + 1} of {n_runs} {what}{more()}")

        yield tell


class Watch:
    """Words on a fit that is under way.

    Nobody knows when a fit converges. After a first start the others are taken to last as long;
    before that there is only the bound that `max_iter` sets.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        n_starts: int,
        max_iter: int,
        clock: Callable[[], float] = time.monotonic,
        more: Callable[[], str] = str,
    ) -> None:
        self.tell, self.n_starts, self.max_iter, self.clock = tell, n_starts, max_iter, clock
        self.more = more
        self.began = clock()
        self.start, self.iteration = 0, 0

    def __call__(self, progress: Progress) -> None:
        now = self.clock()
        if not self.start or progress.iteration <= self.iteration:
            self.start += 1
            self.start_began, self.first_iteration = now, progress.iteration
            if self.start == 1:
                self.first_began = now  # not counting what was compiled
        self.iteration = progress.iteration
        start = f"start {self.start} of {self.n_starts}, " if self.n_starts > 1 else ""
        words = f"{start}iteration {self.iteration}, objective {progress.objective:.6g}, "
        self.tell(words + _clock_face(now - self.began) + self._left(now) + self.more())

    def _left(self, now: float) -> str:
        done = self.start - 1
        if done:
            a_start = (self.start_began - self.first_began) / done
            left = (self.n_starts - done) * a_start - (now - self.start_began)
            return f", about {_clock_face(max(left, 0.0))} left"
        passed = self.iteration - self.first_iteration
        if not passed:
            return ""
        iterations = self.n_starts * self.max_iter - self.iteration
        return f", at most {_clock_face((now - self.start_began) / passed * iterations)} left"


def _clock_face(seconds: float) -> str:
    minutes, seconds = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture, whole or not at all, and say where."""
    from ..runtime.files import written_whole

    if not path.suffix:
        raise ValueError(f"{path} has no suffix: name the picture as .png, .pdf or .svg.")
    with written_whole(path) as partial:
        figure.savefig(partial, dpi=110)
    typer.echo(f"written: {path}")
