"""States as arrays, and what is refused when they are read."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from temporalnmf.runtime.states import (
    FREE_LENGTH,
    NON_NEGATIVE,
    POSITIVE,
    StateError,
    arrays_of,
    named,
    restore,
)


@dataclass
class Inner:
    x: np.ndarray = field(metadata=named("slope"))
    absent: np.ndarray | None = None


@dataclass
class Outer:
    H: np.ndarray = field(metadata=POSITIVE)
    moves: np.ndarray = field(metadata=FREE_LENGTH | NON_NEGATIVE)
    step: int
    reason: str
    rates: dict[str, np.ndarray]
    path: Inner
    here: Inner = field(metadata=named(""))


def state(fill=1.0, moves=()):
    inner = Inner(np.full(2, fill)), Inner(np.full(3, fill))
    rates = {"beta": np.full(2, fill)}
    return Outer(np.full((2, 3), fill), np.array(moves, dtype=int), int(fill), "why", rates, *inner)


def test_a_state_survives_a_round_trip_through_arrays():
    arrays = arrays_of(state(2.0, (4, 5)), "kept")
    names = ("H", "moves", "step", "reason", "rates_beta", "path_slope", "slope")
    assert list(arrays) == [f"kept_{name}" for name in names]
    found = state()
    restore(found, arrays, "kept")
    assert (type(found.step), found.step, found.reason) == (int, 2, "why")
    again = arrays_of(found, "kept")
    assert all(np.array_equal(again[name], arrays[name]) for name in arrays)
    assert not np.shares_memory(found.H, arrays["kept_H"])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("H", lambda a: a[:1], "H is float64 of shape"),
        ("H", lambda a: a.astype(np.float32), "H is float32"),
        ("H", lambda a: 0.0 * a, "H has numbers outside 1e-300"),
        ("H", lambda a: np.nan * a, "H has numbers outside"),
        ("moves", lambda a: a - 9, "moves has numbers outside 0"),
        ("moves", lambda a: a + 0.5, "moves is float64"),
        ("moves", lambda a: a[None], "moves is int64 of shape"),
        ("reason", lambda a: np.array(3), "reason is int64"),
        ("rates_beta", lambda a: a[:1], "rates_beta is"),
        ("path_slope", None, "it has no path_slope"),
    ],
)
def test_arrays_of_another_state_are_refused(name, change, message):
    arrays = arrays_of(state(2.0, (4, 5)))
    array = arrays.pop(name)
    if change is not None:
        arrays[name] = change(array)
    with pytest.raises(StateError, match=message):
        restore(state(), arrays)


def test_ranges_are_checked_only_where_the_mask_is_true():
    found, H = Inner(np.ones(3)), np.array([1.0, 0.0, 2.0])

    @dataclass
    class Draws:
        H: np.ndarray = field(metadata=POSITIVE)

    restore(Draws(found.x), {"H": H}, where=np.array([True, False, True]))
    with pytest.raises(StateError, match="H has numbers"):
        restore(Draws(found.x), {"H": H}, where=np.array([True, True, False]))
