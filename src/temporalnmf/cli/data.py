"""Tables: options for reading them, and messages about what was read."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import typer

from ..timeline.grid import timeline_of
from .console import Voice, busy

if TYPE_CHECKING:
    import pandas as pd
    from scipy import sparse

    from .._typing import Array
    from ..estimator import TemporalNMF
    from ..reading import TimeTable

# What stands for embedded data instead of a file, and their files.
EMBEDDED = {"sotu": "sotu.npz", "flights2001": "flights.npz"}

FILE_HELP = (
    "CSV, TSV, Parquet, NPY, NPZ or Matrix Market: a row per time, or, with --time and --feature, "
    "a row per time and feature; or embedded data: 'sotu', 'flights2001'."
)
File = Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)]

Covariates = Annotated[
    Path | None,
    typer.Option(help="CSV or Parquet of the covariates: a row per time, a column for each."),
]

_option = partial(typer.Option, rich_help_panel="Reading the file")
_column = partial(_option, metavar="COLUMN")


class Reading(NamedTuple):
    """Options of commands that read a table."""

    time: Annotated[str | None, _column(help="Column of the times.")] = None
    feature: Annotated[str | None, _column(help="Column of the features of a long table.")] = None
    value: Annotated[
        str | None, _column(help="Column of the values of a long table; else rows are counted.")
    ] = None
    exposure: Annotated[
        str | None,
        _column(
            help="Column of the size behind each time (documents). 'days', if it is no column: the "
            "days in each step."
        ),
    ] = None
    freq: Annotated[
        str | None, _option(help="Periods to add times up into: Y, Q, M, W, D, h, min, s, also 3D.")
    ] = None
    transpose: Annotated[bool, _option("--transpose", help="It has a column per time.")] = False
    drop_partial: Annotated[
        bool, _option("--drop-partial", help="Leave out incomplete first and last periods.")
    ] = False

    def refuse(self, reason: str) -> None:
        """Refuse all options, for the given reason."""
        for name, value in self._asdict().items():
            if value:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option}{'' if value is True else f' {value}'}: {reason}")


def read(file: str, how: Reading, voice: Voice) -> TimeTable:
    """Read the table of a file, or an embedded one, and print how it was read."""
    with busy(f"reading {file}"):
        table = _embedded(file, how) if file in EMBEDDED else _read(source_path(file), how)
    n_steps, n_features = table.X.shape
    voice.say(f"{file}: {n_steps} steps x {n_features} features, total {total(table.X):,.10g}")
    voice.notes(table.notes)
    return table


_folder: TemporaryDirectory[str] | None = None  # removed when the process ends
_copies: dict[tuple[int, int], Path] = {}


def source_path(file: str) -> Path:
    """The path of the data. A pipe, which can be read only once, is copied to a file."""
    if file in EMBEDDED:
        from .. import datasets

        return Path(datasets.__path__[0], "data", EMBEDDED[file])
    from ..reading.pipes import copied, is_stream

    path = Path(file)
    if not is_stream(path):
        return path
    global _folder
    _folder = _folder or TemporaryDirectory(prefix="temporalnmf-pipe-")
    state = path.stat()
    key = state.st_dev, state.st_ino
    if key not in _copies:
        place = Path(_folder.name, str(len(_copies)))
        place.mkdir()
        _copies[key] = copied(path, place)
    return _copies[key]


def checksum(path: Path) -> str:
    """SHA-256 of a file, or of the header of a folder of shards."""
    from ..shards.folder import HEADER

    with (path / HEADER if path.is_dir() else path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def with_features_of(table: TimeTable, model: TemporalNMF, long: bool, voice: Voice) -> TimeTable:
    """The table with the features of a model, in its order.

    In a long table a feature without a row is zero, and rows of features that the model does not
    know are left out, with a message. A wide table must have exactly the features of the model.
    """
    from scipy import sparse

    if table.exposure is None and (model.exposure_ != 1.0).any():
        remedy = "Name its column in the new table."
        raise ValueError(f"--exposure is missing: the model was fitted with exposure. {remedy}")
    wanted = model.feature_labels()
    place = {name: f for f, name in enumerate(table.features.tolist())}
    absent = [name for name in wanted.tolist() if name not in place]
    unknown = sorted(set(place) - set(wanted.tolist()))
    if not long and (absent or unknown):
        what = [f"lacks {_few(absent)}"] if absent else []
        what += [f"has {_few(unknown)}, which the model does not know"] if unknown else []
        raise ValueError(f"The table {' and '.join(what)}. Give it the features of the model.")
    is_sparse = sparse.issparse(table.X)
    X = sparse.csc_array(table.X) if is_sparse else table.X
    if absent:
        voice.say(f"  without a row, so zero: {_few(absent)}")
    if unknown:
        left_out = total(X[:, [place[name] for name in unknown]])
        voice.say(f"  not in the model, so left out: {_few(unknown)}, total {left_out:,.10g}")
    # All absent features use one additional column: zero, and missing in missing steps.
    order = [place.get(name, len(place)) for name in wanted.tolist()]
    if is_sparse:
        padded = sparse.hstack([X, sparse.csc_array((X.shape[0], 1))], format="csc")
        seen = table.observed
        if seen is not None and seen.ndim == 2:
            seen = np.column_stack([seen, seen.any(axis=1)])[:, order]
        return replace(table, X=sparse.csr_array(padded[:, order]), features=wanted, observed=seen)
    padded = np.column_stack([X, np.where(np.isnan(X).all(axis=1), np.nan, 0.0)])
    return replace(table, X=np.ascontiguousarray(padded[:, order]), features=wanted)


def read_covariates(path: Path | None) -> pd.DataFrame | None:
    """The table of --covariates, whose first column has the times."""
    if path is None:
        return None
    from ..reading.libraries import load

    pandas = load("pandas")
    if not path.exists():
        raise FileNotFoundError(f"--covariates {path}: there is no such file. Check the path.")
    try:
        if path.suffix == ".parquet":
            frame = pandas.read_parquet(path)
            return frame if frame.index.name else frame.set_index(frame.columns[0])
        frame = pandas.read_csv(path, index_col=0, sep=None, engine="python")
    except (ValueError, IndexError, OSError, csv.Error) as error:
        expected = "Expected a CSV or Parquet file: a row per time, a column for each covariate."
        raise ValueError(f"--covariates {path} cannot be read ({error}). {expected}") from error
    frame.index.name = frame.index.name or "time"
    return frame


def _few(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} more"


def total(X: Array | sparse.csr_array) -> float:
    """The sum of all entries that are not missing."""
    from scipy import sparse

    return float(np.nansum(X.data if sparse.issparse(X) else X))


def _read(path: Path, how: Reading) -> TimeTable:
    from ..reading import read_table
    from .files import is_model

    if is_model(path):
        raise ValueError(f"{path} is a model, not a table. Show it with: temporalnmf info {path}")
    return read_table(path, **how._asdict())


def _embedded(name: str, how: Reading) -> TimeTable:
    from ..datasets import load_flights, load_sotu
    from ..reading import TimeTable

    how.refuse(f"{name!r} is embedded data, which needs no such option. Leave it out.")
    if name == "sotu":
        found = load_sotu()
        first, last = "words of the State of the Union addresses by year", ["no address: 1933"]
    else:
        found, first, last = load_flights(), "departures per airport of the United States", []
    line = timeline_of(found.times)
    notes = (first, *line.notes, *last)
    return TimeTable(found.data, line.times, found.feature_names, notes, line)
