"""The listeners of artists on last.fm, month by month."""

from __future__ import annotations

import os
import tarfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import compress
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import numpy as np

from .._typing import Array
from ..reading.cells import opened
from . import fetching
from .fetching import Counts, Dataset, assemble, find, left_out_remark, lines_of

if TYPE_CHECKING:
    from sklearn.utils import Bunch

DESCRIPTION = """\
last.fm listeners by month
--------------------------

How many of some thousand users of last.fm listened to each of 7017 artists, for each of the 53
months from February 2005 to June 2009. The second dataset of Filstroff, Gouvert, Févotte and Cappé
(2021).

Rows are months, columns are artists. Artists with at least 20 different listeners are kept. A
listener counts once per artist and month, however many songs were played. (The paper speaks of
listening counts; but in its authors' matrix no entry is above 200, the total is 2,067,454 where 992
users played 19 million songs, and most artists vary hardly more than Poisson counts do.) The last
two months are cut short at the source.

An artist is known by the MusicBrainz identifier, or by the name where there is none; artists that
share a name have the identifier added to it. Lines that cannot be read and plays outside the 53
months are left out.

Source: O. Celma, "Last.fm Dataset - 1K users", version 1.0, May 2010,
http://ocelma.net/MusicRecommendationDataset/lastfm-1K.html, from
https://zenodo.org/records/6090214.
Licence: non-commercial use, with permission of last.fm.
"""

TABLE = "userid-timestamp-artid-artname-traid-traname.tsv"
FIRST = 2005 * 12 + 1  # February 2005, in months
MONTHS = [f"{month // 12}-{month % 12 + 1:02d}" for month in range(FIRST, FIRST + 53)]
USERS = 1 << 20  # more than the source has
BATCH = 1 << 21


def prepare_lastfm(path: Path) -> Counts:
    """Listeners by month from the archive of the source, or from the table in it."""
    with open_table(path) as lines:
        return listeners_by_month(lines)


@contextmanager
def open_table(path: Path) -> Iterator[Iterable[str]]:
    with opened(path) as file:
        parts = cast("IO[bytes]", _Parts(file))
        if not _is_tar(parts):
            yield lines_of(file)
            return
        with tarfile.open(fileobj=parts, mode="r:") as archive:
            for member in archive:
                if Path(member.name).name == TABLE and (table := archive.extractfile(member)):
                    yield lines_of(table)
                    return
    raise ValueError(f"there is no {TABLE} in it")


class _Parts:
    """A file that refuses huge reads, since headers of an archive may claim any size."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.seek, self.tell = file, file.seek, file.tell

    def read(self, size: int) -> bytes:
        if size > fetching.LONGEST_LINE:
            raise ValueError(f"it has a header of {size:,} bytes")
        return self.file.read(size)


def _is_tar(file: IO[bytes]) -> bool:
    try:
        # "r:" is without compression: `opened` has decompressed the file, up to a limit.
        with tarfile.open(fileobj=file, mode="r:"):
            return True
    except tarfile.ReadError:
        return False
    finally:
        file.seek(0)


def listeners_by_month(lines: Iterable[str], minimum: int = 20) -> Counts:
    """Number of different listeners by month, of artists with at least `minimum` in total.

    Examples
    --------
    >>> lines = [
    ...     "user_1\\t2005-02-14T10:00:00Z\\tid-1\\tNina Simone\\t\\tSinnerman",
    ...     "user_1\\t2005-02-15T10:00:00Z\\tid-1\\tNina Simone\\t\\tFeeling Good",
    ...     "user_2\\t2005-03-01T10:00:00Z\\tid-1\\tNina Simone\\t\\tSinnerman",
    ...     "user_2\\t2005-03-01T10:03:00Z\\t\\tA Friend of Mine\\t\\tDemo",
    ... ]
    >>> counts, artists, months, *_ = listeners_by_month(lines, minimum=2)
    >>> print(artists, months[:3], counts[:, :3])
    ['Nina Simone'] ['2005-02' '2005-03' '2005-04'] [[1 1 0]]
    """
    left_out: Counter[str] = Counter()
    names: dict[str, str] = {}  # of artists, by identifier
    found = _combinations(_plays(lines, left_out), names)
    place, user = np.divmod(found, USERS)
    listeners = np.unique(place // len(MONTHS) * USERS + user) // USERS
    kept = np.bincount(listeners, minlength=len(names)) >= minimum
    if not kept.any():
        raise ValueError(f"no artist in it has {minimum} listeners. {left_out_remark(left_out)}")
    counts = np.bincount(place, minlength=len(names) * len(MONTHS)).reshape(len(names), -1)
    labels = _labels(dict(compress(names.items(), kept)))
    order = np.argsort(labels)
    return Counts(counts[kept][order], labels[order], np.array(MONTHS), left_out_remark(left_out))


def _plays(lines: Iterable[str], left_out: Counter[str]) -> Iterator[tuple[str, int, str, str]]:
    """User, number of the month, identifier and name of the artist, of each valid line."""
    for line in lines:
        try:
            user, moment, identifier, name, _, _ = line.rstrip("\n").split("\t")
            date = datetime.fromisoformat(moment)
            if max(len(identifier), len(name)) > fetching.LONGEST_NAME:
                raise ValueError("no artist has such a name")
        except ValueError:
            left_out["malformed lines"] += 1
            continue
        month = date.year * 12 + date.month - 1 - FIRST
        if not user or not (identifier or name):
            left_out["lines without user or artist"] += 1
        elif not 0 <= month < len(MONTHS):
            left_out[f"plays outside {MONTHS[0]} to {MONTHS[-1]}"] += 1
        else:
            yield user, month, identifier or f"name:{name}", name or identifier


def _combinations(plays: Iterable[tuple[str, int, str, str]], names: dict[str, str]) -> Array:
    """Distinct combinations of artist, month and user, each as one number; fills `names`."""
    users: dict[str, int] = {}
    artists: dict[str, int] = {}
    found = np.empty(0, dtype=np.int64)
    batch = array("q")
    for user, month, artist, name in plays:
        names.setdefault(artist, name)
        place = artists.setdefault(artist, len(artists)) * len(MONTHS) + month
        batch.append(place * USERS + users.setdefault(user, len(users)))
        if len(batch) == BATCH:  # 19 million plays are some millions of combinations
            found = np.union1d(found, batch)
            batch = array("q")
    return np.union1d(found, batch)


def _labels(names: dict[str, str]) -> Array:
    """Names of artists, with the identifier if several share one."""
    sharing = Counter(names.values())
    labels = names | {
        artist: f"{name} ({artist})"
        for artist, name in names.items()
        if sharing[name] > 1 and not artist.startswith("name:")
    }
    return np.array([*labels.values()])


LASTFM = Dataset(
    name="lastfm",
    feature="artist",
    time="month",
    shape=(7017, 53),
    total=2_067_454,
    times=MONTHS,
    url="https://zenodo.org/records/6090214/files/lastfm-dataset-1K.tar.gz",
    sources=("lastfm-dataset-1K.tar.gz", TABLE),
    prepare=prepare_lastfm,
    about=DESCRIPTION,
)


def fetch_lastfm(*, data: str | os.PathLike[str] | None = None, as_frame: bool = False) -> Bunch:
    """Fetch the listeners of artists on last.fm by month, February 2005 to June 2009.

    Searched in this order: ``data``; ``lastfm.npy`` (artists × months), then the source
    ``lastfm-dataset-1K.tar.gz`` or the table in it, each in the folder ``TEMPORALNMF_DATA`` and the
    cache (``TEMPORALNMF_CACHE``, or the user's cache folder). Otherwise the source (640 MB) is
    downloaded. Prepared data are kept in the cache.

    Parameters
    ----------
    data : path, optional
        A file, or a folder to search first.
    as_frame : bool, default=False
        If True, ``data`` is a pandas DataFrame with the months as index and the artists as columns.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        Its ``data`` are the numbers of listeners, of shape (53, 7017), and a pandas DataFrame if
        ``as_frame=True``; ``feature_names`` are the artists, for ``lastfm.npy`` from
        ``lastfm_labels.txt`` beside it, or ``artist_0``, ``artist_1``, … if they are not known;
        ``times`` are the months, such as ``"2005-02"``. ``frame``, ``DESCR``, ``source`` and
        ``labels_inferred`` are as in `fetch_nips`.

    Warns
    -----
    UserWarning
        If shape or total are not those of the paper's matrix. No checksum is known.
    """
    return assemble(LASTFM, find(LASTFM, data), as_frame=as_frame, name="lastfm")
