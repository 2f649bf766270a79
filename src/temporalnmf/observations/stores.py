"""Storage of the weights of a fit in checkpoints."""

from __future__ import annotations

from os import PathLike
from typing import Protocol

from .._typing import Arrays
from ..runtime.states import StateError
from .base import Observations
from .block import Block
from .features import Features


class WeightStore(Protocol):
    """Stores W, and the L-BFGS state of its block, for every start of a fit.

    Attributes
    ----------
    file : path
        The file of the fit.
    waits : bool
        Whether Ctrl-C waits for the end of an iteration; iterations on blocks may take minutes.
    """

    file: str | PathLike[str]
    waits: bool

    def save(self, weights: dict[int, Features]) -> Arrays:
        """Arrays for the file of the fit, from which W of every start can be restored."""

    def load(self, found: Arrays) -> dict[int, Features]:
        """The W of every start, restored."""

    def tidy(self) -> None:
        """Called after the file of the fit is written: remove files of the previous one."""

    def remove(self) -> None:
        """Called when the fit is complete."""


class FileStore:
    """Weights of data in memory, in the file of the fit.

    Parameters
    ----------
    file : path
    observations : Observations
    """

    waits = True

    def __init__(self, file: str | PathLike[str], observations: Observations) -> None:
        self.file, self._observations = file, observations

    def save(self, weights: dict[int, Features]) -> Arrays:
        states = {}
        for start, features in weights.items():
            assert isinstance(features, Block)
            states[start] = features.state()
        return joined(states, "W.")

    def load(self, found: Arrays) -> dict[int, Features]:
        weights: dict[int, Features] = {}
        for start, state in parted(found, "W.").items():
            weights[start] = block = Block(self._observations)
            block.restore(state)
        return weights

    def tidy(self) -> None: ...

    def remove(self) -> None: ...


def joined(states: dict[int, Arrays], prefix: str = "") -> Arrays:
    """Merge numbered states into one."""
    return {
        f"{prefix}{number}.{name}": array
        for number, state in states.items()
        for name, array in state.items()
    }


def parted(found: Arrays, prefix: str = "") -> dict[int, Arrays]:
    """The states that were `joined` with this prefix."""
    states: dict[int, Arrays] = {}
    for key, array in found.items():
        if key.startswith(prefix):
            number, _, name = key.removeprefix(prefix).partition(".")
            if not number.isdecimal():
                raise StateError(f"it has {key!r}")
            states.setdefault(int(number), {})[name] = array
    return states
