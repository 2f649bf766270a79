"""How a report was made: command, parameters, versions, checksums."""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from os import PathLike
from pathlib import Path

import numpy as np

from .. import __version__
from .._typing import Array
from ..estimator import TemporalNMF
from ..messages.formatting import number_text
from ..persistence.models import parameters_of_fit
from ..solvers.options import nested
from ..summary import learned_text
from .texts import Content, clean

_LONGEST_VALUE = 400
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def how_it_was_made(
    model: TemporalNMF, command: str | Sequence[str] | None, source: str | PathLike[str] | None
) -> Content:
    """Everything needed to reproduce the report, and to check the result."""
    parameters = parameters_of_fit(model)
    if command is None:
        command = f"{type(model)(**nested(parameters))!r}.fit(X)"
    elif not isinstance(command, str):
        command = shlex.join(map(str, command))
    chain, learned = model.chain_, learned_text(model)
    numbers = "none: plain NMF" if not chain.has_law else f"{chain.name}: {chain.numbers()}"
    return {
        "command": command,
        "parameters": {name: _value_text(value) for name, value in parameters.items()}
        | _learned_smoothing(model),
        "chain": f"{numbers}; learned with 90 % intervals: {learned}" if learned else numbers,
        "versions": {
            "python": platform.python_version(),
            "temporalnmf": __version__,
            **{name: version(name) for name in _PACKAGES},
        },
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "checksums": _checksums(model, source),
    }


def _learned_smoothing(model: TemporalNMF) -> dict[str, str]:
    """The smoothing with the value that was learned, if it was."""
    if model.smoothing != "learn":
        return {}
    return {"smoothing": f"'learn', which found {number_text(model.smoothing_)}"}


def _value_text(value: object) -> str:
    """A parameter in a few words; arrays by their shapes, functions by their names."""
    if isinstance(value, tuple) and any(np.ndim(part) for part in value):
        return "arrays of shape " + " and ".join(str(np.shape(part)) for part in value)
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return clean(repr(value), _LONGEST_VALUE)


def _checksums(model: TemporalNMF, source: str | PathLike[str] | None) -> dict[str, str]:
    """SHA-256 of the factors, of the data and their file if available."""
    found = {"components and activations": _checksum([model.components_, model.activations_])}
    if model._series is not None:
        rows = map(model._series.row, range(model._series.n_steps))  # dense, of any data
        entries = (np.where(weight > 0.0, x, np.nan) for x, weight in rows)
        found["data, missing entries as NaN"] = _checksum(entries)
    if source is not None and Path(source).is_file():
        with Path(source).open("rb") as file:
            found["file of the data"] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _checksum(arrays: Iterable[Array]) -> str:
    """SHA-256 of arrays as little-endian doubles, row by row."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()
