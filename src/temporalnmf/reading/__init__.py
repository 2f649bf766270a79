"""Tables in files and frames: rows are time steps, columns are features.

Wide tables have a row per time. The reader of each format returns a `Sheet`, the cells as in the
file; the rest is shared. Long tables have a row per time and feature: they are read in blocks and
added up.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from .arrays import read_matrix_market, read_numpy, read_parquet
from .cells import TIME_NAMES
from .containers import as_table, labels_of
from .grid import TimeTable, table_of, with_days
from .long import long_table
from .long_columns import Columns
from .long_files import LONG_READERS, unknown_suffix
from .pipes import plain_file
from .sheet import Sheet
from .text import read_text

__all__ = ["TIME_NAMES", "TimeTable", "as_table", "labels_of", "read_table"]


_READERS: dict[str, Callable[[Path, bool, str | None], Sheet]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"), read_text),
    ".parquet": read_parquet,
    ".npy": read_numpy,
    ".npz": read_numpy,
    **dict.fromkeys((".mtx", ".mtx.gz"), read_matrix_market),
}


def read_table(
    path: str | PathLike[str],
    *,
    transpose: bool = False,
    time: str | None = None,
    feature: str | None = None,
    value: str | None = None,
    exposure: str | None = None,
    freq: str | None = None,
    drop_partial: bool = False,
) -> TimeTable:
    """Read a table of non-negative numbers over time.

    Every cell must be a number or missing (empty, NA, NaN, null, n/a, none, - or .). Times are
    sorted and put on a regular grid; absent periods become missing steps. Nothing that could run
    code is loaded.

    Parameters
    ----------
    path : path
        CSV, TSV (both also as .gz), Parquet, NPY, NPZ or Matrix Market, recognized by the suffix,
        or by the content of a pipe (/dev/stdin) or a file without a suffix. The first column holds
        the times if its name is empty or one of time, date, year, month, week, day, hour, period,
        index, step, t, datetime, timestamp (also in German, French, Spanish or Italian), or if it
        holds nothing but text.
    transpose : bool, default=False
        The file is features × times: its first line holds the times, its first column the
        features.
    time : str, default=None
        Name of the column that holds the times.
    feature : str, default=None
        Name of the column that holds the features of a long table, which has a row per time and
        feature. Rows of the same time and feature are added up; a cell without a row is zero; a
        time without any row is missing, and so is a cell whose rows have no value. Needs `time`.
    value : str, default=None
        Name of the column that holds the values of a long table; without it each row counts 1.
    exposure : str, default=None
        Name of the column that holds the size behind each time (documents, days). It is not a
        feature. "days", if there is no such column, are the days in each step.
    freq : str, default=None
        Periods to add times up into: Y, Q, M, W (from Monday), D, h, min, s, also as 3D; a number
        for times that are numbers. Found automatically if the times leave no doubt.
    drop_partial : bool, default=False
        Leave out a first or last period of `freq` that the times cover only in part, such as a
        month whose last day is the third. A note says what is left out.

    Returns
    -------
    table : TimeTable

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.csv")
    ...     _ = path.write_text("year,war,peace\\n1999,3,5\\n2000,,2\\n2002,4,1\\n")
    ...     table = read_table(path)
    >>> table.X
    array([[ 3.,  5.],
           [nan,  2.],
           [nan, nan],
           [ 4.,  1.]])
    >>> table.times, table.features
    (array([1999, 2000, 2001, 2002]), array(['war', 'peace'], dtype='<U5'))
    >>> print(*table.notes, sep="\\n")
    times are in column 'year'
    in steps of 1, 1999 to 2002
    absent periods: 1 (2001)
    missing cells: 1 of 6
    """
    columns = Columns.of(time, feature, value, exposure, transpose)
    known = _READERS if columns is None else LONG_READERS
    with plain_file(Path(path)) as path:
        suffix = next((suffix for suffix in known if path.name.lower().endswith(suffix)), None)
        if suffix is None:
            raise unknown_suffix(path, "tables" if columns is None else "long tables", known)

        def read(exposure: str | None) -> TimeTable:
            if columns is None:
                sheet = _READERS[suffix](path, transpose, time)
                return table_of(sheet, exposure, freq, drop_partial)
            named = columns._replace(exposure=exposure)
            return long_table(LONG_READERS[suffix](path, named), named, freq, drop_partial)

        return with_days(read, exposure)
