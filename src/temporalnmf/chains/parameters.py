"""Hyper-parameters of a chain: allowed values, and the meaning of "auto"."""

from __future__ import annotations

import copy
from functools import cache
from inspect import signature
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .._typing import Array
from ..messages.arguments import check_choice, check_positive

Scale = Literal["log", "linear"]
Purpose = Literal["map", "simulate", "draw"]
Parameter = float | Array | str

_LETTERS = {"alpha": "α", "beta": "β", "rho": "ρ"}


class Parametric(BaseEstimator):
    """Hyper-parameters that are numbers, arrays with one number per component, or words."""

    # Names of the hyper-parameters that may be "auto", that may be zero in simulations, and that
    # must be below one.
    _auto: ClassVar[tuple[str, ...]] = ()
    _zero: ClassVar[tuple[str, ...]] = ()
    _fraction: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:  # scikit-learn looks them up each time
        found: list[str] = super()._get_param_names()
        return found

    def check(self, purpose: Purpose = "map", scale: Scale = "log") -> None:
        """Raise, naming the values, if the hyper-parameters do not allow a purpose.

        Parameters
        ----------
        purpose : {"map", "draw", "simulate"}
            A fit, which needs a posterior mode; draws from the posterior; or simulation.
        scale : {"log", "linear"}
            The scale of the mode.
        """
        check_choice("purpose", purpose, ("map", "draw", "simulate"))
        check_choice("scale", scale, ("log", "linear"))
        self._check_values(purpose)
        if purpose == "map":
            self._check_mode(scale)

    def _check_mode(self, scale: Scale) -> None:
        """Raise if there is no posterior mode on this scale."""

    def _check_values(self, purpose: Purpose, n_components: int | None = None) -> None:
        """Raise unless values are accepted words, or numbers of the right sign and shape."""
        lengths: dict[int, str] = {}
        for name, value in self.get_params().items():
            self._check_value(name, value, purpose, n_components)
            if np.ndim(value) == 1:
                lengths.setdefault(len(value), name)
        if len(lengths) > 1:
            found = " and ".join(f"{size} of {name}" for size, name in lengths.items())
            raise ValueError(
                f"{type(self).__name__} has {found}: expected one value, or one per component."
            )

    def _check_value(
        self, name: str, value: object, purpose: Purpose, n_components: int | None
    ) -> None:
        shown = f"{type(self).__name__}({name}={value!r})"
        if name == "marginal":
            if not isinstance(value, bool | np.bool_):
                raise ValueError(f"{shown}: expected True or False.")
            return
        if isinstance(value, str):
            self._check_word(name, value, purpose, shown)
            return
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{shown}: expected a number, or one per component.") from error
        if array.ndim > 1 or (array.ndim == 1 and array.size != (n_components or array.size)):
            wanted = f"{n_components} values, one" if n_components else "one value"
            raise ValueError(
                f"{type(self).__name__}({name}=...) has shape {array.shape}: expected a scalar or "
                f"{wanted} per component."
            )
        zero = purpose == "simulate" and name in self._zero
        if name in self._fraction:
            if not np.all((array >= 0.0 if zero else array > 0.0) & (array < 1.0)):
                where = "in [0, 1)" if zero else "strictly between 0 and 1"
                raise ValueError(f"{shown}: {name} must lie {where}.")
        elif not np.all(np.isfinite(array) & (array >= 0.0 if zero else array > 0.0)):
            sign = "zero or positive" if zero else "positive"
            raise ValueError(f"{shown}: hyper-parameters must be {sign} and finite.")

    def _check_word(self, name: str, value: str, purpose: Purpose, shown: str) -> None:
        if value == "learn" and purpose == "simulate":
            raise ValueError(f"{shown}: there are no data to learn from. Give a number.")
        words = ["auto", "learn"] if name in self._auto else ["learn"]
        if value not in words:
            raise ValueError(
                f"{shown}: give a number, or one number per component, or "
                f"{' or '.join(map(repr, words))}."
            )

    @property
    def learns(self) -> bool:
        """Whether a hyper-parameter is set to "learn"."""
        return any(isinstance(v, str) and v == "learn" for v in self.get_params().values())

    def _fill_auto(self, level: float) -> None:
        """Replace "auto" by numbers, given the mean activation of one component."""

    def _concrete(self) -> Self:
        """Self if all values are numbers, else a copy with "auto" filled in for a level of 1."""
        self.check("simulate")
        if not any(isinstance(value, str) for value in self.get_params().values()):
            return self
        filled = copy.deepcopy(self)
        filled._fill_auto(1.0)
        return filled

    def numbers(self) -> str:
        """The hyper-parameters in use, as "α = 1.5, β = 1.5", in the order they are given."""
        values, parts = self._concrete().get_params(), []
        for name in signature(type(self)).parameters:
            if name.partition("_")[0] in _LETTERS:
                array = np.asarray(values[name], dtype=float)
                shown = np.array2string(array, formatter={"float_kind": "{:.4g}".format})
                parts.append(f"{letter_of(name)} = {shown}")
        return ", ".join(parts)

    def _values(self, *names: str) -> list[Array]:
        """The named hyper-parameters as arrays, () or (K,)."""
        return [np.asarray(getattr(self, name), dtype=float) for name in names]

    @property
    def _shape(self) -> tuple[int, ...]:
        """() if all components share their values, else (K,)."""
        values = self.get_params().values()
        return np.broadcast_shapes(*(np.shape(v) for v in values if not isinstance(v, str | bool)))

    def _check_values_of(self, name: str, value: ArrayLike, *, zero: bool = False) -> Array:
        """Values of h: positive, with the components, if several, on the last axis."""
        array = check_positive(name, value, zero=zero)
        if self._shape and array.ndim and array.shape[-1] not in (1, *self._shape):
            raise ValueError(
                f"{name} has shape {array.shape}: expected a number, or {self._shape[0]} values on "
                f"the last axis, one per component."
            )
        return array


def letter_of(name: str) -> str:
    """α_z for alpha_z."""
    letter, *index = name.split("_")
    return "_".join([_LETTERS.get(letter, letter), *index])


def scalar_or_array(values: ArrayLike) -> float | Array:
    """A plain float if there is one value for all components."""
    array = np.asarray(values, dtype=float)
    return float(array) if array.ndim == 0 else array
