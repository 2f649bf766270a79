"""Events between pairs of countries, day by day."""

from __future__ import annotations

import os
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from ..reading.cells import HARMLESS, MOST_GROWTH
from ..runtime.archives import PACKED, Archive, ObjectsError, refuse_larger
from .fetching import LONGEST_NAME, Counts, Dataset, assemble, find, left_out_remark, lines_of

if TYPE_CHECKING:
    from sklearn.utils import Bunch

DESCRIPTION = """\
ICEWS events by day
-------------------

How many events between the two countries of each of 6197 pairs were reported, for each day of 2003.
The third dataset of Filstroff, Gouvert, Févotte and Cappé (2021).

Rows are days, columns are pairs such as "Iraq--United States", values are counts. Pairs have no
direction: what one does to the other and the reverse are summed.
"""

STAND_IN = """\
ICEWS: a stand-in
-----------------

Events between pairs of countries over time, but not the matrix of the paper, which has 6197 pairs
and the 365 days of 2003: results cannot be compared with the published ones.

Rows are times, columns are pairs, values are counts.

Source: the file named below. ICEWS events are published by E. Boschee and others, "ICEWS Coded
Event Data", Harvard Dataverse, doi:10.7910/DVN/28075.
Licence: the terms of use of that dataset; not to be passed on with this package.
"""

THREE_DAYS = """
icews_2001_2003_pairs_3day.npz has 1000 pairs in bins of three days, 2001 to 2003; the bins of
2003-11-26 and 2003-11-29 look like an outage.
"""

SOURCE = """
Source: A. Schein, https://github.com/aschein/pgds (code under the MIT licence), made from
E. Boschee and others, "ICEWS Coded Event Data", Harvard Dataverse, doi:10.7910/DVN/28075.
Licence: the terms of use of that dataset; not to be passed on with this package.
"""

DAYS = [str(date(2003, 1, 1) + timedelta(day)) for day in range(365)]
NEEDED = ("Event Date", "Source Country", "Target Country")
COLUMN_OF = {day: column for column, day in enumerate(DAYS)}


def prepare_icews(path: Path) -> Counts:
    """Pairs by day from the archive of pgds, or from a table of events of the Dataverse."""
    if path.suffix == ".npz":
        return pairs_from_pgds(path)
    with _table(path) as lines:
        return pairs_by_day(lines)


def pairs_from_pgds(path: Path) -> Counts:
    """The archive of pgds holds Y_TV (days × pairs), dates_T and labels_V."""
    with Archive(path) as arrays:
        counts = arrays.array("Y_TV").T
        days = arrays.array("dates_T").astype("datetime64[D]").astype(str)
        try:
            pairs, remarks = arrays.array("labels_V").astype(str), ""
        except ObjectsError:  # Python objects, which could run code when loaded
            pairs = np.array([f"pair_{pair}" for pair in range(len(counts))])
            remarks = "The pairs are numbered: their names are not stored as text."
    return Counts(counts, pairs, days, remarks)


@contextmanager
def _table(path: Path) -> Iterator[Iterable[str]]:
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            yield lines_of(file)
        return
    with zipfile.ZipFile(path) as archive:
        member = next((info for info in archive.infolist() if info.filename.endswith(".tab")), None)
        if member is None:
            raise ValueError("there is no table of events (.tab) in it")
        if member.compress_type not in PACKED:
            raise ValueError("its table is compressed by an unknown method")
        most = max(HARMLESS, MOST_GROWTH * path.stat().st_size)
        if member.file_size > most:
            raise ValueError(
                f"its table unpacks to more than {most:,} bytes, too much for its size"
            )
        packed = cast("RawIOBase", archive.open(member))
        with BufferedReader(packed) as file:  # closes `packed`, too
            yield lines_of(file)


def pairs_by_day(lines: Iterable[str]) -> Counts:
    """Number of events between two countries on each day of 2003, most active pairs first.

    Events inside one country are left out (pgds has none: its most active pair is Iraq--United
    States), and so are events that do not name two countries.

    Examples
    --------
    >>> lines = [
    ...     "Event Date\\tSource Country\\tTarget Country",
    ...     "2003-01-01\\tPeru\\tChile",
    ...     "2003-01-01\\tChile\\tPeru",
    ...     "2003-01-02\\tPeru\\tPeru",
    ... ]
    >>> counts, pairs, days, remarks, *_ = pairs_by_day(lines)
    >>> print(pairs, days[:2], counts[:, :2])
    ['Chile--Peru'] ['2003-01-01' '2003-01-02'] [[2 0]]
    >>> print(remarks)
    Left out of the source: 1 events inside one country.
    """
    left_out: Counter[str] = Counter()
    events = Counter(_events(iter(lines), left_out))
    activity: Counter[str] = Counter()
    for (pair, _), number in events.items():
        activity[pair] += number
    remark = left_out_remark(left_out)
    if not activity:
        raise ValueError(f"no event between two countries in 2003. {remark}")
    pairs = sorted(activity, key=lambda pair: (-activity[pair], pair))
    row = {pair: index for index, pair in enumerate(pairs)}
    refuse_larger(8 * len(pairs) * len(DAYS), "its matrix")
    counts = np.zeros((len(pairs), len(DAYS)), dtype=np.int64)
    for (pair, day), number in events.items():
        counts[row[pair], COLUMN_OF[day]] = number
    return Counts(counts, np.array(pairs), np.array(DAYS), remark)


def _events(lines: Iterator[str], left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Pair and day of each valid event."""
    header = _cells(next(lines, ""))
    if missing := [name for name in NEEDED if name not in header]:
        raise ValueError(f"its header has no column {missing[0]!r}")
    columns = [header.index(name) for name in NEEDED]
    for line in lines:
        cells = _cells(line)
        if len(cells) != len(header) or max(len(cells[c]) for c in columns[1:]) > LONGEST_NAME:
            left_out["malformed lines"] += 1
            continue
        day, source, target = (cells[column] for column in columns)
        if day not in COLUMN_OF:
            left_out["events not dated in 2003"] += 1
        elif not source or not target:
            left_out["events without two countries"] += 1
        elif source == target:
            left_out["events inside one country"] += 1
        else:
            yield "--".join(sorted((source, target))), day


def _cells(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.rstrip("\r\n").split("\t")]


ICEWS = Dataset(
    name="icews",
    feature="pair",
    time="day",
    shape=(6197, 365),
    total=None,
    times=DAYS,
    # The path is the one that the notebook of pgds reads.
    url="https://github.com/aschein/pgds/raw/master/dat/icews/undirected/2003-D/data.npz",
    sources=("icews_2003-D.npz", "events.2003.*"),
    prepare=prepare_icews,
    about=DESCRIPTION + SOURCE,
    stand_ins=("icews_2001_2003_pairs_3day.npz",),
)


def fetch_icews(
    *,
    data: str | os.PathLike[str] | None = None,
    allow_stand_in: bool = False,
    as_frame: bool = False,
) -> Bunch:
    """Fetch the events between pairs of countries by day, 2003.

    Searched in this order: ``data``; ``icews.npy`` or ``icews.npz`` (pairs × days, the latter a
    SciPy sparse matrix), then a source, ``icews_2003-D.npz`` of pgds or a table ``events.2003.*``
    of the Dataverse, then, if allowed, the stand-in ``icews_2001_2003_pairs_3day.npz``, each in
    the folder ``TEMPORALNMF_DATA`` and the cache (``TEMPORALNMF_CACHE``, or the user's cache
    folder). Otherwise the file of pgds is downloaded. Prepared data are kept in the cache.

    Parameters
    ----------
    data : path, optional
        A file with any pairs × times, or a folder to search first.
    allow_stand_in : bool, default=False
        Whether other events between countries may be used if the paper's are not available.
    as_frame : bool, default=False
        If True, ``data`` is a pandas DataFrame with the days as index and the pairs as columns.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        Its ``data`` are the numbers of events, of shape (365, 6197) unless it is a stand-in, and a
        pandas DataFrame if ``as_frame=True``; ``feature_names`` are the pairs, such as
        ``"Iraq--United States"``, for a matrix from ``…_labels.txt`` beside it, or ``pair_0``,
        ``pair_1``, … if they are not known; ``times`` are the days, such as ``"2003-01-01"``, or
        those in ``…_times.txt`` beside the matrix. ``stand_in`` tells whether this is not the
        paper's 6197 × 365, ``name`` is ``"icews"`` or ``"icews (stand-in)"``. ``frame``, ``DESCR``,
        ``source`` and ``labels_inferred`` are as in `fetch_nips`.

    Warns
    -----
    UserWarning
        If a source gives another shape than the paper's. Neither total nor checksum are known.
    """
    counts = find(ICEWS, data, allow_stand_in)
    stand_in = counts.values.shape != ICEWS.shape
    detail = THREE_DAYS if Path(counts.source).name in ICEWS.stand_ins else ""
    about = STAND_IN + detail if stand_in else ICEWS.about
    name = "icews (stand-in)" if stand_in else "icews"
    dataset = replace(ICEWS, about=about)
    return assemble(dataset, counts, as_frame=as_frame, name=name, stand_in=stand_in)
