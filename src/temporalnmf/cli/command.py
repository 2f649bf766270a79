"""Typer commands from functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, NamedTuple, TypeGuard, get_args, get_origin, get_type_hints

import typer

from .console import clean_errors
from .spelling import options_of


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function that Typer calls.

    A parameter that is a NamedTuple stands for the options that are its fields. `voice` prints,
    and reports errors without a traceback; a `JsonVoice` adds the option --json.
    """
    hints = get_type_hints(function, include_extras=True)
    own = inspect.signature(function).parameters
    groups = {name: kind for name in own if _is_group(kind := hints[name])}
    options = [_option("ctx", typer.Context)]
    for name, parameter in own.items():
        if name in groups:
            kinds = get_type_hints(groups[name], include_extras=True)
            defaults = groups[name]._field_defaults
            options += [_option(field, kind, defaults[field]) for field, kind in kinds.items()]
        elif name not in ("ctx", "voice"):
            options.append(_option(name, hints[name], parameter.default))
    if get_origin(hints["voice"]) is Annotated:
        options.append(_option("json", Annotated[bool, get_args(hints["voice"])[1]], False))

    @wraps(function)
    def run(ctx: typer.Context, **given: object) -> None:
        with options_of(ctx), clean_errors(bool(given.pop("json", False))) as voice:
            for name, group in groups.items():
                given[name] = group._make(given.pop(field) for field in group._fields)
            if "ctx" in own:
                given["ctx"] = ctx
            function(voice=voice, **given)

    run.__dict__["__signature__"] = inspect.Signature(options)
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _is_group(kind: object) -> TypeGuard[type[NamedTuple]]:
    return isinstance(kind, type) and issubclass(kind, tuple)


def _option(
    name: str, kind: object, default: object = inspect.Parameter.empty
) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
