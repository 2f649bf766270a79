"""The words of the papers of the NIPS conference, year by year."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .fetching import Counts, Dataset, assemble, find

if TYPE_CHECKING:
    from sklearn.utils import Bunch

DESCRIPTION = """\
NIPS words by year
------------------

How often each of 11463 words occurs in the papers of the conference NIPS (now NeurIPS), for each
year from 1987 to 2015; stop words are not among them. The first dataset of Filstroff, Gouvert,
Févotte and Cappé (2021).

Rows are years, columns are words, values are counts. There are more and longer papers in later
years, so the rows differ much in total. The source has one column per paper; here the papers of a
year are summed, and nothing else is done.

Source: V. Perrone, P. A. Jenkins, D. Spanò and Y. W. Teh, "NIPS Conference Papers 1987-2015",
UCI Machine Learning Repository, https://archive.ics.uci.edu/dataset/371.
Licence: CC BY 4.0.
"""


def prepare_nips(path: Path) -> Counts:
    """Words by year from the CSV file of the source."""
    with path.open(newline="", encoding="utf-8") as file:
        return words_by_year(file)


def words_by_year(lines: Iterable[str]) -> Counts:
    """Sum the columns of a year: the source has a row per word and a column per paper.

    Examples
    --------
    >>> lines = ['"","1987_1","1987_2","1988_1"', '"neuron",3,1,5', '"kernel",0,2,7']
    >>> counts, words, years, *_ = words_by_year(lines)
    >>> counts
    array([[4, 5],
           [2, 7]])
    >>> print(words, years)
    ['neuron' 'kernel'] [1987 1988]
    """
    rows = csv.reader(lines)
    papers = next(rows, [""])[1:]
    years, column = np.unique([_year(paper) for paper in papers], return_inverse=True)
    words, counts = [], []
    for row in rows:
        if len(row) != len(papers) + 1:
            width = f"{len(row)} cells, the header {len(papers) + 1}"
            raise ValueError(f"line {rows.line_num} has {width}")
        words.append(row[0])
        cells = np.fromiter(map(int, row[1:]), dtype=np.int64, count=len(papers))
        counts.append(np.bincount(column, weights=cells))
    return Counts(np.array(counts, dtype=np.int64), np.array(words), years)


def _year(paper: str) -> int:
    match = re.fullmatch(r"X?(\d{4})_\d+", paper)
    if match is None:
        raise ValueError(f"column {paper!r} is not named like a paper, 1987_1 or X1987_1")
    return int(match[1])


NIPS = Dataset(
    name="nips",
    feature="word",
    time="year",
    shape=(11463, 29),
    total=11_040_357,
    times=range(1987, 2016),
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/00371/NIPS_1987-2015.csv",
    sources=("NIPS_1987-2015.csv",),
    prepare=prepare_nips,
    about=DESCRIPTION,
)


def fetch_nips(*, data: str | os.PathLike[str] | None = None, as_frame: bool = False) -> Bunch:
    """Fetch the words of NIPS papers by year, 1987 to 2015.

    Searched in this order: ``data``; ``nips.npy`` (words × years), then the source
    ``NIPS_1987-2015.csv``, each in the folder ``TEMPORALNMF_DATA`` and the cache
    (``TEMPORALNMF_CACHE``, or the user's cache folder). Otherwise the source is downloaded.
    Prepared data are kept in the cache.

    Parameters
    ----------
    data : path, optional
        A file, or a folder to search first.
    as_frame : bool, default=False
        If True, ``data`` is a pandas DataFrame with the years as index and the words as columns.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        Its ``data`` are the counts of the words, of shape (29, 11463), and a pandas DataFrame if
        ``as_frame=True``; ``feature_names`` are the words, for ``nips.npy`` from
        ``nips_labels.txt`` or ``nips_labels_inferred.txt`` beside it, or ``word_0``, ``word_1``, …
        if they are not known; ``times`` are the years. ``frame`` is the DataFrame or None,
        ``DESCR`` a description with source and licence and how the data were checked, ``source``
        the file or URL, ``labels_inferred`` whether the words are inferred, and some of them wrong.

    Warns
    -----
    UserWarning
        If shape or total are not those of the paper's matrix. No checksum is known.
    """
    return assemble(NIPS, find(NIPS, data), as_frame=as_frame, name="nips")
