"""Departures from airports of the United States, day by day."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from .fetching import as_bunch

if TYPE_CHECKING:
    from sklearn.utils import Bunch

DESCRIPTION = """\
Departures per airport and day
------------------------------

How many flights left each of 229 airports of the United States, for each day from 1 January to
30 June 2001. Only domestic flights of the airlines that have to report to the government count.

Rows are days, columns are airports by their three-letter codes, values are counts. No day is
missing; a zero is an airport without a departure on that day. Days end at midnight, local time.

There is a weekly rhythm: on Saturdays there are fewer flights. Airlines changed their schedules in
spring. Days around 1 January and Memorial Day (28 May) differ from those of other weeks, and so do
single days such as 5 March.

Source: npm package vega-datasets 3.2.1, flights-3m.parquet: a table of three million flights, made
from the reports on the punctuality of airlines of the U.S. Bureau of Transportation Statistics
(14 CFR Part 234). Flights were counted by origin and day. The last day, 1 July, has six flights and
was left out.
Licence: data of the United States government. The package is BSD-3-Clause; for these data it says
"License Terms Not Explicitly Specified".
"""


def load_flights(*, as_frame: bool = False) -> Bunch:
    """Load the departures per airport of the United States and day, January to June 2001.

    The dataset comes with the package; nothing is downloaded. It has a weekly season.

    Parameters
    ----------
    as_frame : bool, default=False
        If True, ``data`` is a pandas DataFrame with the days as index and the airports as columns.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        Its ``data`` are the counts of departures, of shape (181, 229), and a pandas DataFrame if
        ``as_frame=True``. ``feature_names`` are the codes of the airports in alphabetical order,
        ``times`` the days, ``frame`` is the DataFrame or None and ``DESCR`` a description with
        source and licence.

    Examples
    --------
    >>> from temporalnmf.datasets import load_flights
    >>> flights = load_flights()
    >>> flights.data.shape
    (181, 229)
    >>> print(flights.times[0], flights.times[-1])
    2001-01-01 2001-06-30
    >>> boston = flights.data[:, flights.feature_names == "BOS"].ravel()
    >>> boston[:7]  # from Monday, New Year's Day, to Sunday
    array([296., 368., 373., 387., 348., 269., 334.])
    """
    source = resources.files(__package__) / "data" / "flights.npz"
    with source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        data = arrays["counts"].astype(np.float64, order="C")
        airports, days = arrays["airports"], arrays["days"]

    return as_bunch(data, airports, days, "date", "load_flights", as_frame, DESCR=DESCRIPTION)
