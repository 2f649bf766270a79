"""Arguments of the library, spelled as options of the current command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import typer

from ..messages.errors import Arg, in_python
from .settings import Settings

# Options whose names differ from the argument by more than the prefix n_.
_OPTIONS = {
    "n_init": ("--starts",),
    "n_chains": ("--runs",),
    "n_origins": ("--calibrate", "--hold-out"),
    "steps": ("--calibrate-steps",),
    "random_state": ("--seed",),
    "overwrite": ("--force",),
}

_QUOTES = " '\""
_options: ContextVar[frozenset[str]] = ContextVar("options", default=frozenset())


@contextmanager
def options_of(ctx: typer.Context) -> Iterator[None]:
    """A block in which arguments are spelled as options of this command."""
    names = (name for parameter in ctx.command.params for name in parameter.opts)
    before = _options.set(frozenset(names))
    try:
        yield
    finally:
        _options.reset(before)


def as_option(arg: Arg) -> str:
    """The option for an argument; the spelling of Python if the command has none."""
    return _spelled(arg, _options.get())


def as_advice(arg: Arg) -> str:
    """The same for advice, which may also mean the command that fitted the model."""
    return _spelled(arg, _options.get() | {_same_name(name) for name in Settings._fields})


def _spelled(arg: Arg, options: frozenset[str]) -> str:
    same = _same_name(arg.name)
    names = (same, same.replace("--n-", "--"), *_OPTIONS.get(arg.name, ()))
    option = next((name for name in names if name in options), None)
    if option is None:
        return in_python(arg)
    if arg.value is None or arg.value == "True":
        return option
    if arg.value.startswith("["):  # several values are separated by commas
        return f"{option} {','.join(word.strip(_QUOTES) for word in arg.value[1:-1].split(','))}"
    bare = arg.value[1:-1]
    plain = repr(bare) == arg.value and bare and not any(map(str.isspace, bare))
    return f"{option} {bare if plain else arg.value}"


def _same_name(argument: str) -> str:
    return f"--{argument.replace('_', '-')}"
