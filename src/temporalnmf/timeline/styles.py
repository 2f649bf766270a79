"""How labels of weeks, quarters and fiscal years are written."""

from __future__ import annotations

import numpy as np

from .._typing import Array

# %G and %V are the year and week of ISO 8601, %q is the quarter, %N the year after %Y; %v and %n
# are the week and the next year in as few digits as possible.
FISCAL_STYLES = tuple(
    f"{prefix}%Y{sign}{end}"
    for end in ("%n", "%N") for sign in "/–-" for prefix in ("", "FY", "FY ")
)  # fmt: skip
_QUARTER_STYLES = tuple(
    style.replace("Q", letter)
    for letter in "Qq"
    for style in ("%YQ%q", "%Y-Q%q", "%Y Q%q", "Q%q %Y", "Q%q-%Y", "Q%q/%Y", "Q%q%Y")
)
_WEEK_STYLES = tuple(
    f"%G{sign}{letter}{week}" for letter in "Ww" for sign in ("-", "") for week in ("%V", "%v")
)
STYLES = (*FISCAL_STYLES, *_QUARTER_STYLES, *_WEEK_STYLES)


def in_style(dates: Array, style: str) -> Array:
    """Dates as texts.

    Examples
    --------
    >>> in_style(np.array(["2019-12-30", "2020-01-06"], dtype="datetime64[D]"), "%G-W%V").tolist()
    ['2020-W01', '2020-W02']
    >>> in_style(np.array(["1999"], dtype="datetime64[Y]"), "FY %Y/%n").tolist()
    ['FY 1999/00']
    """
    year, month = (dates.astype(f"datetime64[{unit}]").astype(np.int64) for unit in "YM")
    days = dates.astype("datetime64[D]").astype(np.int64)
    thursday = (days - (days + 3) % 7 + 3).astype("datetime64[D]")  # decides the year of its week
    week_year = thursday.astype("datetime64[Y]")
    week = (thursday - week_year.astype("datetime64[D]")).astype(np.int64) // 7 + 1
    fields = {
        "%Y": (year + 1970, "04"), "%N": (year + 1971, "04"), "%n": ((year + 1971) % 100, "02"),
        "%q": (month % 12 // 3 + 1, ""), "%G": (week_year.astype(np.int64) + 1970, "04"),
        "%V": (week, "02"), "%v": (week, ""),
    }  # fmt: skip
    texts = [style] * len(dates)
    for field, (values, width) in fields.items():
        if field in style:
            pairs = zip(texts, values.tolist(), strict=True)
            texts = [text.replace(field, f"{value:{width}}") for text, value in pairs]
    return np.array(texts, dtype=np.str_)
