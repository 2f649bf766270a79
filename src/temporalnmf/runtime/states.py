"""States of computations as named arrays, derived from the fields of dataclasses.

Arrays are kept as they are, numbers and text as arrays without dimensions. Entries of a dictionary,
and fields of a state within a state, have the name of their field as a prefix. Fields that are
None are left out. Arrays that are read must look like those of a new state, since the compiled
code that resumes from them checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from .archives import LARGEST

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from .._typing import Array  # not at run time: it loads the compiler

# Metadata of a field.
Facts = Mapping[str, Any]


class StateError(ValueError):
    """Arrays that are not the state of such a computation."""


def named(name: str) -> dict[str, object]:
    """The name of the array, if not the field's; "" for a state whose fields have no prefix."""
    return {"name": name}


def within(least: float, most: float = LARGEST) -> dict[str, object]:
    """The range of the numbers, which excludes NaN."""
    return {"range": (np.float64(least), np.float64(most))}


POSITIVE, NON_NEGATIVE = within(1.0 / LARGEST), within(0.0)
# The array has any length. A number may also be an array.
FREE_LENGTH: dict[str, object] = {"free": True}


def arrays_of(state: DataclassInstance, prefix: str = "") -> dict[str, Array]:
    """A state as arrays by name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Walk:
    ...     step: int
    ...     rates: dict[str, np.ndarray]
    >>> arrays_of(Walk(3, {"up": np.ones(2)}))
    {'step': array(3), 'rates_up': array([1., 1.])}
    >>> restore(Walk(0, {"up": np.ones(2)}), {"step": np.array(3), "rates_up": np.ones(4)})
    Traceback (most recent call last):
        ...
    temporalnmf.runtime.states.StateError: rates_up is float64 of shape (4,), not float64 of \
shape (2,)
    """
    return {name: np.asarray(value) for name, value, _, _ in _leaves(state, prefix)}


def restore(
    state: DataclassInstance,
    arrays: Mapping[str, Array],
    prefix: str = "",
    where: Array | EllipsisType = ...,
) -> None:
    """Set the fields of a new state to copies of arrays; see `checked`."""
    for name, value, facts, put in list(_leaves(state, prefix)):
        array = checked(arrays, name, value, facts, where)
        put(array if isinstance(value, np.ndarray) else type(value)(array.item()))


def checked(
    arrays: Mapping[str, Array],
    name: str,
    form: object,
    facts: Facts,
    where: Array | EllipsisType = ...,
) -> Array:
    """A copy of an array; refused if its type or shape differs from that of `form`.

    Numbers selected by the mask `where` must be in their range, too.
    """
    if name not in arrays:
        raise StateError(f"it has no {name}")
    array, wanted = np.asarray(arrays[name]), np.asarray(form)
    kind = array.dtype if array.dtype.kind == wanted.dtype.kind == "U" else wanted.dtype
    if "free" in facts:
        same = array.ndim >= wanted.ndim and array.shape[1:] == wanted.shape[1:]
        same &= not array.size or np.can_cast(array.dtype, kind)
    else:
        same = array.shape == wanted.shape and array.dtype == kind
    if not same:
        raise StateError(
            f"{name} is {array.dtype} of shape {array.shape}, not {kind} of shape {wanted.shape}"
        )
    array = array.astype(kind)
    if "range" in facts:
        (least, most), numbers = facts["range"], array[where]
        if not np.all((numbers >= least) & (numbers <= most)):
            raise StateError(f"{name} has numbers outside {least:g} to {most:g}")
    return array


def _leaves(
    state: DataclassInstance, prefix: str
) -> Iterator[tuple[str, Any, Facts, Callable[[object], None]]]:
    """Name, value, metadata and setter of every array."""
    for field in fields(state):
        value, facts = getattr(state, field.name), field.metadata
        name = "_".join(filter(None, (prefix, facts.get("name", field.name))))
        if hasattr(value, "__dataclass_fields__"):
            yield from _leaves(value, name)
        elif isinstance(value, dict):
            for key, own in value.items():
                yield f"{name}_{key}", own, facts, partial(value.__setitem__, key)
        elif value is not None:
            yield name, value, facts, partial(setattr, state, field.name)
