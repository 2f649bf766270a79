"""Files of users become tables: rows are time steps, columns are features.

A reader per format makes a `Sheet`, the cells as they lie in the file; all else is common.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from .arrays import read_matrix_market, read_numpy, read_parquet
from .cells import TIME_NAMES
from .sheet import Sheet, TimeTable, table_of
from .text import read_text

__all__ = ["TIME_NAMES", "TimeTable", "read_table"]


_READERS: dict[str, Callable[[Path, bool], Sheet]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"), read_text),
    ".parquet": read_parquet,
    ".npy": read_numpy,
    ".npz": read_numpy,
    **dict.fromkeys((".mtx", ".mtx.gz"), read_matrix_market),
}


def read_table(path: str | PathLike[str], *, transpose: bool = False) -> TimeTable:
    """Read a table of non-negative numbers over time.

    Every cell is a number, or missing (empty, NA, NaN or null), or an error that says where it is.
    Nothing that could run code is loaded.

    Parameters
    ----------
    path : path
        CSV, TSV (both also as .gz), Parquet, NPY, NPZ or Matrix Market, told by the suffix. The
        first column holds the times if its name is empty or one of time, date, year, month, week,
        day, hour, period, index, step, t, datetime, timestamp, or if it holds nothing but text.
    transpose : bool, default=False
        The file is features × times: its first line holds the times, its first column the
        features.

    Returns
    -------
    table : TimeTable

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.csv")
    ...     _ = path.write_text("year,war,peace\\n1999,3,5\\n2000,,2\\n2001,4,1\\n")
    ...     table = read_table(path)
    >>> table.X
    array([[ 3.,  5.],
           [nan,  2.],
           [ 4.,  1.]])
    >>> table.times, table.features
    (array([1999, 2000, 2001]), array(['war', 'peace'], dtype='<U5'))
    >>> print(*table.notes, sep="; ")
    times are in column 'year'; missing cells: 1 of 6
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file. Check the path.")
    for suffix, reader in _READERS.items():
        if path.name.lower().endswith(suffix):
            return table_of(reader(path, transpose))
    raise ValueError(
        f"{path.name} has the suffix {path.suffix!r}, which is not known. Known are "
        f"{', '.join(_READERS)}; a spreadsheet can be saved as CSV."
    )
