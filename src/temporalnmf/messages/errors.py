"""Messages that mention arguments, rendered by each front end in its own spelling.

In Python an argument reads `freq='W'`, on the command line `--freq W`. Messages therefore hold
references to arguments instead of their spelling; `str()` gives the spelling of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple


class Arg(NamedTuple):
    """A reference to an argument, with the text of a value if one is to be shown."""

    name: str
    value: str | None = None


Spelling = Callable[[Arg], str]


def in_python(arg: Arg) -> str:
    """The spelling of Python: `freq=`, `freq='W'`."""
    return f"{arg.name}={arg.value or ''}"


class Text:
    """A template with facts. `{name}` is a fact, `{name=}` a reference to the argument `name`.

    A fact that is an `Arg` is a reference with a value; one that is a `Text` is rendered, too.

    Examples
    --------
    >>> text = Text("{file} has two rows for a date: {freq=} adds them up.", file="a.csv")
    >>> str(text)
    'a.csv has two rows for a date: freq= adds them up.'
    >>> text.render(lambda arg: f"--{arg.name}")
    'a.csv has two rows for a date: --freq adds them up.'
    """

    def __init__(self, template: str, **facts: object) -> None:
        self.template, self.facts = template, facts

    def render(self, spell: Spelling) -> str:
        return self.template.format_map(_Facts(self.facts, spell))

    def __str__(self) -> str:
        return self.render(in_python)


class ArgumentError(ValueError):
    """An argument has a value that cannot be used.

    Attributes
    ----------
    argument : str
    value : object
        The value found.
    problem, remedy : str or Text
        What is wrong with it, as the rest of a sentence that begins with the argument, and what
        to do about it.

    Examples
    --------
    >>> str(ArgumentError("n_init", 0, ": expected a whole number of at least 1."))
    'n_init=0: expected a whole number of at least 1.'
    >>> str(ArgumentError("time", "dat", "is not a column.", Text("Leave out {time=}.")))
    "time='dat' is not a column. Leave out time=."
    """

    def __init__(
        self, argument: str, value: object, problem: str | Text, remedy: str | Text = ""
    ) -> None:
        super().__init__(argument, value, problem, remedy)
        self.argument, self.value, self.problem, self.remedy = argument, value, problem, remedy

    def render(self, spell: Spelling) -> str:
        value = str(self.value) if isinstance(self.value, PurePath) else self.value
        found = spell(Arg(self.argument, repr(value)))
        problem, remedy = (_rendered(part, spell) for part in (self.problem, self.remedy))
        space = "" if problem.startswith((":", ",")) else " "
        return f"{found}{space}{problem} {remedy}".rstrip()

    def __str__(self) -> str:
        return self.render(in_python)


def message_of(error: BaseException, spell: Spelling) -> str:
    """The message of an error or a warning in the spelling of a front end."""
    if isinstance(error, ArgumentError):
        return error.render(spell)
    if error.args and isinstance(error.args[0], Text):
        return error.args[0].render(spell)
    return str(error)


def _rendered(part: str | Text, spell: Spelling) -> str:
    return part.render(spell) if isinstance(part, Text) else part


@dataclass(frozen=True)
class _Facts:
    """The fields of a template."""

    facts: dict[str, object]
    spell: Spelling

    def __getitem__(self, field: str) -> object:
        if field.endswith("="):
            return self.spell(Arg(field[:-1]))
        fact = self.facts[field]
        if isinstance(fact, Text):
            return fact.render(self.spell)
        return self.spell(fact) if isinstance(fact, Arg) else fact
