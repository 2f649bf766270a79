"""Formats of numbers and dates."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import NamedTuple

import numpy as np

from .._typing import Array

_ENGLISH = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_GERMAN = (
    "januar", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober",
    "november", "dezember",
)  # fmt: skip
_MONTHS = {
    **{name: m for names in (_ENGLISH, _GERMAN) for m, name in enumerate(names, 1)},
    **{name[:3]: m for names in (_ENGLISH, _GERMAN) for m, name in enumerate(names, 1)},
    "jänner": 1, "mrz": 3, "maerz": 3, "sept": 9,
}  # fmt: skip
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_NAMED = re.compile(r"(?:(\d{1,2})[- .]+)?([^\W\d_]{3,9})\.?[- ]*(?:(\d{1,2}), *)?(\d{4})")
_DAY_SHORT = re.compile(r"(\d{1,2})[- .]+([^\W\d_]{3,9})\.?[- /]*['’]?(\d{2})")
_NAMED_SHORT = re.compile(r"([^\W\d_]{3,9})\.?[- /]*['’]?(\d{2})")
_MONTH_YEAR = re.compile(r"(0?[1-9]|1[0-2])[./-](\d{4})")
_YEAR_MONTH = re.compile(r"(\d{4})[-/](\d{1,2})")
_QUARTER = re.compile(r"(\d{4})[- ]?[Qq]([1-4])")
_QUARTER_YEAR = re.compile(r"[Qq]([1-4])[- /]?(\d{4})")
_WEEK = re.compile(r"(\d{4})-?[Ww](\d{1,2})")
_ISO_SLASHED = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})")
_SLASHED = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T](\d{1,2}:\d{2}(?::\d{2})?))?")
FISCAL = re.compile(r"(FY ?)?(\d{4})([/–-])(\d{4}|\d{2})")


def number_in(text: str) -> int | float | None:
    """A finite number. Integers stay exact: timestamps in nanoseconds exceed 2^53."""
    try:
        number = math.nan if "_" in text else float(text)
        if math.isfinite(number):
            return int(text) if re.fullmatch(r"[+-]?\d+", text) else number
    except ValueError:
        pass
    return None


def date_in(text: str) -> datetime | None:
    """An unambiguous date.

    ISO dates with or without a day, weeks, quarters, 3/2001, and dates with the name of the month
    in English or German.

    Examples
    --------
    >>> date_in("März 2001"), date_in("12 Feb 2001"), date_in("March")
    (datetime.datetime(2001, 3, 1, 0, 0), datetime.datetime(2001, 2, 12, 0, 0), None)
    """
    try:
        if found := _QUARTER.fullmatch(text):
            return datetime(int(found[1]), 3 * int(found[2]) - 2, 1)
        if found := _QUARTER_YEAR.fullmatch(text):
            return datetime(int(found[2]), 3 * int(found[1]) - 2, 1)
        if found := _WEEK.fullmatch(text):
            return datetime.fromisocalendar(int(found[1]), int(found[2]), 1)
        if found := _MONTH_YEAR.fullmatch(text):
            return datetime(int(found[2]), int(found[1]), 1)
        if found := _NAMED.fullmatch(text):
            return datetime(int(found[4]), _month(found[2]), int(found[1] or found[3] or 1))
        if found := _YEAR_MONTH.fullmatch(text):
            return datetime(int(found[1]), int(found[2]), 1)
        if found := _ISO_SLASHED.match(text):
            text = f"{found[1]}-{found[2]:0>2}-{found[3]:0>2}{text[found.end() :]}"
        return None if text.isdigit() else datetime.fromisoformat(text)
    except ValueError:
        return None


def _month(word: str) -> int:
    """1 for January or Jan, 0 for a word that is not a month."""
    return _MONTHS.get(word.casefold(), 0)


def is_month(text: str) -> bool:
    """Whether a date has no day."""
    if (named := _NAMED.fullmatch(text)) is not None:
        return not (named[1] or named[3])
    return any(form.fullmatch(text) for form in (_YEAR_MONTH, _MONTH_YEAR, _NAMED_SHORT))


def is_period(text: str) -> bool:
    """Whether a text is a week, a quarter or a fiscal year."""
    forms = (_WEEK, _QUARTER, _QUARTER_YEAR)
    return fiscal_start(text) is not None or any(form.fullmatch(text) for form in forms)


def is_date(text: str) -> bool:
    """Whether a text is a date, including those whose reading depends on the other labels."""
    readings = date_in(text), slashed_in(text), short_date_in(text), fiscal_start(text)
    return any(reading is not None for reading in readings)


def are_months(texts: Sequence[str]) -> bool:
    """Whether texts such as 01.2019 are months, although each of them is also a number.

    Years must lie between 1500 and 2299. Without a leading zero they must also span fewer years
    than there are texts: 1.1625, 1.1875, 1.2125 are numbers.

    Examples
    --------
    >>> are_months(["1.2019", "2.2019"]), are_months(["1.1625", "1.1875"])
    (True, False)
    """
    years = [year for text in texts if (year := year_of_month(text)) is not None]
    if len(years) < len(texts):
        return False
    return any(text.startswith("0") for text in texts) or max(years) - min(years) < len(years)


def year_of_month(text: str) -> int | None:
    """The year of a text such as 01.2019."""
    found = _MONTH_YEAR.fullmatch(text)
    return int(found[2]) if found is not None and 1500 <= int(found[2]) < 2300 else None


def fiscal_start(text: str) -> int | None:
    """The first year of 2001/02 or 2001/2002, if the second one follows it."""
    found = FISCAL.fullmatch(text)
    if found is None:
        return None
    first, second = int(found[2]), found[4]
    return first if first + 1 == int(second) or f"{first + 1:04}"[2:] == second else None


class ShortDate(NamedTuple):
    """A date with a two-digit year; in a month such as Jan 19, the "year" may be a day."""

    year: int
    month: int
    day: int = 1

    def may_be_day(self) -> bool:
        return 1 <= self.year <= _LONGEST[self.month - 1]


def short_month_in(text: str) -> ShortDate | None:
    """Jan 19."""
    found = _NAMED_SHORT.fullmatch(text)
    month = 0 if found is None else _month(found[1])
    return ShortDate(int(found[2]), month) if found is not None and month else None


def short_date_in(text: str) -> ShortDate | None:
    """31-Dec-18."""
    found = _DAY_SHORT.fullmatch(text)
    month = 0 if found is None else _month(found[2])
    if found is None or not month or not 1 <= int(found[1]) <= _LONGEST[month - 1]:
        return None
    return ShortDate(int(found[3]), month, int(found[1]))


class SlashedDate(NamedTuple):
    """1/2/2001: 1 February or 2 January."""

    first: int
    second: int
    year: int
    clock: time

    def read(self, day_first: bool) -> datetime:
        day, month = (self.first, self.second) if day_first else (self.second, self.first)
        return datetime.combine(date(self.year, month, day), self.clock)

    def allows(self, day_first: bool) -> bool:
        try:
            self.read(day_first)
        except ValueError:
            return False
        return True


def slashed_in(text: str) -> SlashedDate | None:
    found = _SLASHED.fullmatch(text)
    if found is None:
        return None
    try:
        clock = time.fromisoformat(f"{found[5] or '00:00':0>5}")
    except ValueError:
        return None
    slashed = SlashedDate(int(found[1]), int(found[3]), int(found[4]), clock)
    return slashed if slashed.allows(True) or slashed.allows(False) else None


# Styles of fiscal years, quarters and weeks. %G and %V are the year and week of ISO 8601, %q is the
# quarter, %N the year after %Y; %v is the week without a leading zero, %n is %N in two digits.
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
    """Dates as texts in one of `STYLES`: FY 1999/00 for "FY %Y/%n"."""
    year, month = (dates.astype(f"datetime64[{unit}]").astype(np.int64) for unit in "YM")
    days = dates.astype("datetime64[D]").astype(np.int64)
    thursday = (days - (days + 3) % 7 + 3).astype("datetime64[D]")  # its year is that of the week
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
