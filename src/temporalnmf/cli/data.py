"""How commands read tables: options, and what is said of what was understood."""

from __future__ import annotations

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .console import Voice, busy

if TYPE_CHECKING:
    from ..estimator import TemporalNMF
    from ..reading import TimeTable

EMBEDDED = "sotu"

_PANEL = "Reading the file"


def _column(option: str, what: str) -> Any:
    return typer.Option(option, metavar="COLUMN", help=what, rich_help_panel=_PANEL)


FILE_HELP = (
    "CSV, TSV, Parquet, NPY, NPZ or Matrix Market: a row per time, or, with --time and --feature, "
    "a row per time and feature; or 'sotu', the embedded data."
)
File = Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)]
Time = Annotated[str | None, _column("--time", "Column of the times.")]
Feature = Annotated[str | None, _column("--feature", "Column of the features of a long table.")]
Value = Annotated[
    str | None, _column("--value", "Column of the values of a long table; else rows are counted.")
]
Exposure = Annotated[
    str | None, _column("--exposure", "Column of the size behind each time (documents, days).")
]
Freq = Annotated[
    str | None,
    typer.Option(
        help="Periods to add times up into: Y, Q, M, W, D, h, min, s, also 3D.",
        rich_help_panel=_PANEL,
    ),
]
Transpose = Annotated[
    bool,
    typer.Option("--transpose", help="The file has a column per time.", rich_help_panel=_PANEL),
]


DropPartial = Annotated[
    bool,
    typer.Option(
        "--drop-partial",
        help="Leave out a first and a last period that the data do not fill.",
        rich_help_panel=_PANEL,
    ),
]


class Reading(NamedTuple):
    """The options above."""

    time: str | None = None
    feature: str | None = None
    value: str | None = None
    exposure: str | None = None
    freq: str | None = None
    transpose: bool = False
    drop_partial: bool = False

    def given(self) -> dict[str, Any]:
        """Options that were given, by the name they have on the command line."""
        found = self._asdict().items()
        return {f"--{name.replace('_', '-')}": value for name, value in found if value}


def read(file: str, how: Reading, voice: Voice) -> TimeTable:
    """The table of a file, or the embedded one; says what was understood."""
    with busy(f"reading {file}"):
        table = _embedded(how) if file == EMBEDDED else _read(source_path(file), how)
    n_steps, n_features = table.X.shape
    voice.say(f"{file}: {n_steps} steps x {n_features} features, total {total(table):,.10g}")
    voice.notes(table.notes)
    return table


def total(table: TimeTable) -> float:
    """Of all that is in the table."""
    return _sum(table.X)


_folder: TemporaryDirectory[str] | None = None  # removed at the end of the process
_copies: dict[tuple[int, int], Path] = {}


def source_path(file: str) -> Path:
    """Where the data are. What can be read once only, such as a pipe, is copied once."""
    from ..reading.pipes import copied, is_stream

    path = Path(file)
    if file != EMBEDDED and is_stream(path):
        global _folder
        _folder = _folder or TemporaryDirectory(prefix="temporalnmf-pipe-")
        state = path.stat()
        key = state.st_dev, state.st_ino
        if key not in _copies:
            place = Path(_folder.name, str(len(_copies)))
            place.mkdir()
            _copies[key] = copied(path, place)
        return _copies[key]
    if file != EMBEDDED:
        return path
    from .. import datasets

    return Path(datasets.__path__[0], "data", "sotu.npz")


def checksum(path: Path) -> str:
    """Of a file; of a folder of shards, that of its header."""
    from ..shards.folder import HEADER

    with (path / HEADER if path.is_dir() else path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def columns_of(folder: Path) -> list[str]:
    """Names of the columns of the first file of a folder of long tables."""
    from ..reading.long_files import column_names
    from ..shards.sorting import files_of

    return column_names(files_of(folder)[0])


def with_features_of(table: TimeTable, model: TemporalNMF, long: bool, voice: Voice) -> TimeTable:
    """The table with the features of a model, in its order.

    In a long table a feature without a row is zero, and rows of features that the model does not
    know are left out; both is said. A wide table has to have all of them and no others.
    """
    from dataclasses import replace

    import numpy as np
    from scipy import sparse

    if table.exposure is None and (model.exposure_ != 1.0).any():
        raise ValueError(
            "--exposure is missing: the model was fitted with exposure. Name the column that has "
            "it in the new table."
        )
    wanted = model.feature_labels()
    place = {name: f for f, name in enumerate(table.features.tolist())}
    absent = [name for name in wanted.tolist() if name not in place]
    unknown = sorted(set(place) - set(wanted.tolist()))
    if not long and (absent or unknown):
        what = [f"lacks {_few(absent)}"] if absent else []
        what += [f"has {_few(unknown)}, which the model does not know"] if unknown else []
        raise ValueError(f"The table {' and '.join(what)}. Give it the features of the model.")
    X = sparse.csc_array(table.X) if _is_sparse(table) else table.X
    if absent:
        voice.say(f"  without a row, so zero: {_few(absent)}")
    if unknown:
        left_out = _sum(X[:, [place[name] for name in unknown]])
        voice.say(f"  not in the model, so left out: {_few(unknown)}, total {left_out:,.10g}")
    # One more column for all that are absent: zero, and missing where the whole step is.
    order = [place.get(name, len(place)) for name in wanted.tolist()]
    if _is_sparse(table):
        padded = sparse.hstack([X, sparse.csc_array((X.shape[0], 1))], format="csc")
        seen = table.observed
        if seen is not None and seen.ndim == 2:
            seen = np.column_stack([seen, seen.any(axis=1)])[:, order]
        return replace(table, X=sparse.csr_array(padded[:, order]), features=wanted, observed=seen)
    blank = np.where(np.isnan(X).all(axis=1), np.nan, 0.0)
    padded = np.column_stack([X, blank])
    return replace(table, X=np.ascontiguousarray(padded[:, order]), features=wanted)


def _few(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} more"


def _sum(X: Any) -> float:
    import numpy as np
    from scipy import sparse

    return float(np.nansum(X.data if sparse.issparse(X) else X))


def _is_sparse(table: TimeTable) -> bool:
    from scipy import sparse

    return bool(sparse.issparse(table.X))


def _read(path: Path, how: Reading) -> TimeTable:
    from ..reading import read_table
    from .files import is_model

    if is_model(path):
        raise ValueError(f"{path} is a model, not a table: temporalnmf info {path} shows it.")
    options = {name: value for name, value in how._asdict().items() if value}
    return read_table(path, **options)


def _embedded(how: Reading) -> TimeTable:
    from ..datasets import load_sotu
    from ..reading import TimeTable
    from ..timeline.grid import timeline_of

    for option, value in how.given().items():
        said = option if value is True else f"{option} {value}"
        raise ValueError(
            f"{said}: {EMBEDDED!r} is the embedded data, which needs no such option. Leave it out."
        )
    words = load_sotu()
    line = timeline_of(words.times)
    notes = ("words of the State of the Union addresses by year", *line.notes, "no address: 1933")
    return TimeTable(words.data, line.times, words.feature_names, notes, line)
