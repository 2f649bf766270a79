"""States of computations as named arrays, to resume from: derived from the fields of a dataclass.

Arrays are kept as they are, numbers and texts as arrays without dimensions. A dictionary of
arrays and a state within a state have a name per entry, with a prefix. Fields that are None are
left out. What is read back must look like a state that was just begun: compiled code, which
resumes from it, checks nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from .archives import LARGEST

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from .._typing import Array  # not at run time: it loads the compiler


class StateError(ValueError):
    """Arrays that are not the state of such a computation."""


def named(name: str) -> dict[str, object]:
    """Metadata of a field whose array has another name; "" for a state without a prefix."""
    return {"name": name}


def within(least: float, most: float = LARGEST) -> dict[str, object]:
    """Metadata of a field whose numbers are in this range, which NaN is not."""
    return {"range": (np.float64(least), np.float64(most))}


POSITIVE, NON_NEGATIVE = within(1.0 / LARGEST), within(0.0)
# Metadata of arrays of any length. A number with it may also be an array.
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
    """
    found: dict[str, Array] = {}
    for field in fields(state):
        value, name = getattr(state, field.name), _name(field, prefix)
        if hasattr(value, "__dataclass_fields__"):
            found |= arrays_of(value, name)
        elif isinstance(value, dict):
            found |= {f"{name}_{key}": np.asarray(own) for key, own in value.items()}
        elif value is not None:
            found[name] = np.asarray(value)
    return found


def restore(
    state: DataclassInstance,
    arrays: Mapping[str, Array],
    prefix: str = "",
    where: Array | EllipsisType = ...,
) -> None:
    """Set the fields of a state that was just begun to copies of these arrays.

    Refused are types and shapes other than those of the state, and numbers outside of their
    range, among those that the mask `where` selects.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Walk:
    ...     h: np.ndarray
    >>> restore(Walk(np.zeros(4)), {"h": np.ones(3)})
    Traceback (most recent call last):
        ...
    temporalnmf.runtime.states.StateError: h is float64 of shape (3,), not float64 of shape (4,)
    """
    for field in fields(state):
        value, name, facts = getattr(state, field.name), _name(field, prefix), field.metadata
        if hasattr(value, "__dataclass_fields__"):
            restore(value, arrays, name, where)
        elif isinstance(value, dict):
            found = {
                key: _checked(arrays, f"{name}_{key}", own, facts, where)
                for key, own in value.items()
            }
            setattr(state, field.name, found)
        elif value is not None:
            array = _checked(arrays, name, value, facts, where)
            is_array = isinstance(value, np.ndarray)
            setattr(state, field.name, array if is_array else type(value)(array.item()))


def _name(field: Field[Any], prefix: str) -> str:
    """The name of a field's array, or the prefix of its arrays."""
    return "_".join(filter(None, (prefix, field.metadata.get("name", field.name))))


def _checked(
    arrays: Mapping[str, Array],
    name: str,
    form: object,
    facts: Mapping[str, Any],
    where: Array | EllipsisType,
) -> Array:
    """A copy of an array that looks like `form` and has its numbers in their range."""
    if name not in arrays:
        raise StateError(f"it has no {name}")
    array, wanted = np.asarray(arrays[name]), np.asarray(form)
    kind = wanted.dtype
    if "free" in facts:
        same = array.ndim >= wanted.ndim and array.shape[1:] == wanted.shape[1:]
        same &= not array.size or np.can_cast(array.dtype, kind, "same_kind")
    else:
        same = array.shape == wanted.shape
        same &= array.dtype.kind == "U" if kind.kind == "U" else array.dtype == kind
    if not same:
        raise StateError(
            f"{name} is {array.dtype} of shape {array.shape}, not {kind} of shape {wanted.shape}"
        )
    if "range" in facts:
        least, most = facts["range"]
        if not np.all((array[where] >= least) & (array[where] <= most)):
            raise StateError(f"{name} has numbers that are not within {least:g} and {most:g}")
    return array.copy() if kind.kind == "U" else array.astype(kind, order="K")
