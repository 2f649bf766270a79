"""The arrays that a model file may contain: a table of their types, shapes and ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

import numpy as np

from .._typing import Array
from ..effects.effects import LARGEST_COEFFICIENT
from ..effects.term import STRENGTHS
from ..forecasting.checks import CHECKED
from ..runtime.archives import LARGEST

_POSITIVE, _SIGNED = 1.0 / LARGEST, -LARGEST
_DATA = ("f8", "f4", "b1")


class Spec(NamedTuple):
    """What is required of an array, since compiled code trusts it.

    Lengths in `shape` are N steps, n of them fitted, K components, F features, numbers, and
    products or sums of these. Other names are any length, the same wherever they occur. `least`
    None allows any value. `broken` ends the error message if the rule is not true everywhere.
    """

    shape: str
    kinds: tuple[str, ...] = ("f8",)
    least: float | None = 0.0
    rule: Callable[[Array], object] | None = None
    broken: str = ""


def _sum_to_one(tolerance: float) -> Callable[[Array], Array]:
    return lambda array: np.abs(array.sum(axis=-1, dtype=float) - 1.0) <= tolerance


def _is_calibration(numbers: Array) -> bool:
    coverage, n, inside, widened, share, dispersion, clumping = numbers.tolist()
    whole = all(count.is_integer() for count in (n, inside, widened))
    sound = 0.0 < coverage < 1.0 and 0.0 <= share <= 1.0 and min(inside, widened, clumping) >= 0.0
    return whole and sound and dispersion > -1.0 and max(inside, widened, 1) <= n < 2**31


def _are_checks(checks: Array) -> bool:
    whole, shares = checks[:, :4], checks[:, [4, 7]]
    sound = np.all(whole == np.floor(whole)) and np.all(whole[:, 1:] >= 1) and np.all(shares <= 1)
    known = np.all(whole[:, 0] < len(CHECKED)) and np.any(whole[:, 0] == 0.0)
    return bool(sound and known and np.all(whole < 2**31))


_NO_FORECASTS = "does not describe forecasts"
_NOT_ONE = "has components that do not sum to one"
# The order matters: the first array with a length defines it.
_TABLE = {
    "components_": Spec("K F", rule=_sum_to_one(1e-6), broken=_NOT_ONE),
    "activations_": Spec("N K", rule=np.any, broken="is empty or holds zeros only"),
    "levels": Spec("N K", rule=np.any, broken="is empty or holds zeros only"),
    "effects_coefficients": Spec("K columns", least=-LARGEST_COEFFICIENT),
    "effects_strengths": Spec(
        "terms", least=STRENGTHS[0], rule=lambda array: array <= STRENGTHS[1],
        broken="is out of range",
    ),
    "effects_covariances": Spec(
        "K columns columns", least=-(STRENGTHS[1] ** 2),
        rule=lambda array: np.all(array <= STRENGTHS[1] ** 2)
        and np.all(np.diagonal(array, axis1=1, axis2=2) >= 0.0),
        broken="is out of range",
    ),
    "effects_covariates": Spec("N covariates", least=-np.inf),
    "fitted_steps": Spec(
        "n", ("i8",), rule=lambda steps: steps.size and np.all(np.diff(steps) > 0),
        broken="is empty or not in order",
    ),
    "observed_": Spec("N", ("b1",), rule=np.any, broken="says that nothing was observed"),
    "exposure": Spec("N", least=_POSITIVE),
    "history_": Spec("evaluations", least=_SIGNED),
    "history_iterations_": Spec("evaluations", ("i8",)),
    "stability": Spec("K"),
    "posterior_activations": Spec("n K", least=_POSITIVE),
    "posterior_factor": Spec(
        "K+1 n*K", least=_SIGNED, rule=lambda factor: factor[-1] > 0.0,
        broken="is not a Cholesky factor",
    ),
    "posterior_covariance": Spec(
        "n K K", least=_SIGNED, rule=lambda array: np.diagonal(array, axis1=1, axis2=2) > 0.0,
        broken="has variances that are not positive",
    ),
    "draws_smoothing": Spec("runs draws"),
    "draws_log_posterior": Spec("runs draws", least=_SIGNED),
    "draws_components": Spec(  # in single precision
        "runs draws K F", ("f4",), rule=_sum_to_one(1e-4), broken=_NOT_ONE
    ),
    "draws_activations": Spec("runs draws n K", least=_POSITIVE),
    "draws_coefficients": Spec(
        "runs draws K columns", least=-LARGEST_COEFFICIENT,
        rule=lambda array: array <= LARGEST_COEFFICIENT, broken="is out of range",
    ),
    "draws_strengths": Spec(
        "runs draws terms", least=STRENGTHS[0], rule=lambda array: array <= STRENGTHS[1],
        broken="is out of range",
    ),
    "draws_moved": Spec("runs draws 2", rule=lambda array: array <= 1.0, broken="is not of shares"),
    "draws_of_": Spec("runs draws K", least=_POSITIVE),
    "draws_likelihood_": Spec("runs draws", least=_POSITIVE),
    "learned_of_": Spec(
        "K 3", least=_POSITIVE, rule=lambda a: (a[:, 1] <= a[:, 0]) & (a[:, 0] <= a[:, 2]),
        broken="has values outside their intervals",
    ),
    "calibration": Spec("7", least=-1.0, rule=_is_calibration, broken=_NO_FORECASTS),
    "calibration_level": Spec("ahead", rule=lambda level: level.size, broken="is empty"),
    "calibration_own": Spec("ahead"),
    "calibration_persistence": Spec(
        "1", rule=lambda array: array <= 1.0, broken="is not a correlation"
    ),
    "calibration_scale": Spec("1", rule=lambda array: array <= 1.0, broken="is not a share"),
    "calibration_checks": Spec("checks 10", rule=_are_checks, broken=_NO_FORECASTS),
    "calibration_refitted": Spec("1", ("b1",)),
    "data": Spec("N F", _DATA, least=None),  # any value where the weight is zero
    "data_values": Spec("entries", _DATA, least=_SIGNED),
    "data_columns": Spec("entries", ("i8",)),
    "data_row_starts": Spec("N+1", ("i8",)),
    "weights": Spec("N width", _DATA),
    "weights_values": Spec("positive", _DATA),
    "weights_columns": Spec("positive", ("i8",)),
    "weights_row_starts": Spec("N+1", ("i8",)),
}  # fmt: skip
_REQUIRED = ("activations_", "fitted_steps", "observed_", "exposure", "history_",
             "history_iterations_")  # fmt: skip


# Arrays with names of parameters after these.
_PREFIXES = ("draws_of_", "draws_likelihood_", "learned_of_")


def _key(name: str) -> str:
    return next((prefix for prefix in _PREFIXES if name.startswith(prefix)), name)


def is_known(name: str) -> bool:
    """Whether an array is part of a model."""
    return _key(name) in _TABLE


def checked_arrays(arrays: Mapping[str, Array], components: tuple[int, ...]) -> dict[str, Array]:
    """The arrays of a model in native byte order and C order; refused if they break the table.

    All have known names; `components` is the shape of the components, (K, F).
    """
    if len(components) != 2 or not all(components):
        raise ValueError("its components are empty")
    for name in _REQUIRED:
        if name not in arrays:
            raise ValueError(f"it has no array {name}")
    sizes, found = dict(zip("KF", components, strict=True)), {}
    order = list(_TABLE)
    for name in sorted(arrays, key=lambda name: order.index(_key(name))):
        spec, array = _TABLE[_key(name)], arrays[name]
        if array.dtype.str[1:] not in spec.kinds:
            raise ValueError(f"array {name} holds {array.dtype}")
        symbols = spec.shape.split()
        if array.ndim == len(symbols):
            for symbol, length in zip(symbols, array.shape, strict=True):
                sizes.setdefault(symbol, length)
        expected = tuple(_length(symbol, sizes) for symbol in symbols)
        if array.shape != expected:
            raise ValueError(f"array {name} has shape {array.shape}, expected {expected}")
        if spec.least is not None and not np.all((array >= spec.least) & (array <= LARGEST)):
            raise ValueError(f"array {name} has values outside {spec.least:g} to {LARGEST:g}")
        if spec.rule is not None and not np.all(np.asarray(spec.rule(array))):
            raise ValueError(f"array {name} {spec.broken}")
        found[name] = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    if sizes.get("width", 1) not in (1, sizes["F"]):
        raise ValueError(f"array weights has {sizes['width']} columns")
    if found["fitted_steps"][-1] >= sizes["N"]:
        raise ValueError("array fitted_steps does not fit the number of steps")
    return found


def _length(symbol: str, sizes: Mapping[str, int]) -> int:
    if symbol.isdigit():
        return int(symbol)
    for sign, combine in (("+", sum), ("*", prod)):
        if sign in symbol:
            return combine(_length(part, sizes) for part in symbol.split(sign))
    return sizes.get(symbol, 0)
