"""How a report was made: command, parameters, versions, checksums."""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from .._typing import Array
from ..persistence.models import parameters_of_fit
from .texts import clean

if TYPE_CHECKING:
    from ..estimator import TemporalNMF

_LONGEST_VALUE = 400


def how_it_was_made(model: TemporalNMF, command: Any, source: Any) -> dict[str, Any]:
    """All that it takes to make it again, and to see that it is the same."""
    parameters = parameters_of_fit(model)
    if command is None:
        command = f"{type(model)(**parameters)!r}.fit(X)"
    elif not isinstance(command, str):
        command = shlex.join(map(str, command))
    return {
        "command": command,
        "parameters": {name: _value_text(value) for name, value in parameters.items()},
        "chain": _chain_text(model.chain_),
        "versions": _versions(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "checksums": _checksums(model, source),
    }


def _value_text(value: Any) -> str:
    """A parameter in few words: arrays and functions by what they are."""
    if isinstance(value, tuple) and any(np.ndim(part) for part in value):
        return "arrays of shape " + " and ".join(str(np.shape(part)) for part in value)
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return clean(repr(value), _LONGEST_VALUE)


def _chain_text(chain: Any) -> str:
    """The chain and its numbers."""
    if chain.name == "none":
        return "none: plain NMF, which has no law of motion."
    return f"{chain.name}: {chain.numbers()}"


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "temporalnmf": __version__}
    return found | {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}


def _checksums(model: TemporalNMF, source: Any) -> dict[str, str]:
    """SHA-256 of what was found, of the data where they are at hand, and of their file."""
    found = {"components and activations": _checksum([model.components_, model.activations_])}
    if model._series is not None:
        found["data, missing entries as NaN"] = _checksum(_rows(model._series))
    if source is not None and Path(str(source)).is_file():
        with Path(str(source)).open("rb") as file:
            found["file of the data"] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _rows(series: Any) -> Iterator[Array]:
    """The rows of the data, the same for dense and sparse ones."""
    for n in range(series.n_steps):
        x, weight = series.row(n)
        yield np.where(weight > 0.0, x, np.nan)


def _checksum(arrays: Iterable[Array]) -> str:
    """Of arrays as little-endian doubles, row by row."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()
