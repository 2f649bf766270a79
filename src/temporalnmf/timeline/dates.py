"""Labels of time steps: numbers, dates or text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from itertools import pairwise
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array
from . import formats
from .formats import ShortDate, SlashedDate

NO_TIME = ("", "na", "nan", "nat", "null", "none", "<na>")
_LARGEST = 2**62  # whole number: differences fit into 64 bits, too
MOST = 0.75  # share of the labels that decides how all are read; the others are reported
Where = Callable[[int], str]
Notes = tuple[str, ...]
_Value = int | float | datetime | SlashedDate | str | None  # of a label; None if it is missing


def row(n: int) -> str:
    return f"row {n}"


def parse_times(
    labels: ArrayLike, name: str = "the table", where: Where = row, style: str = ""
) -> tuple[Array, Notes]:
    """Values of labels (n,) as int64, float64, datetime64 or str, and notes on how they were read.

    Errors name the table `name` and label n `where(n)`. If the labels continue a timeline, its
    `style` decides whether one or two labels such as 2001/02 are months or fiscal years.

    Examples
    --------
    >>> parse_times(["31/12/2001", "1/1/2002"])
    (array(['2001-12-31', '2002-01-01'], dtype='datetime64[D]'), ())
    >>> parse_times(["2001Q3", "2001-Q4"])[0]
    array(['2001-07-01', '2001-10-01'], dtype='datetime64[D]')
    >>> parse_times(["7", "8.5"])[0]
    array([7. , 8.5])
    >>> parse_times(["12.2018", "01.2019"])[0]
    array(['2018-12', '2019-01'], dtype='datetime64[M]')
    >>> parse_times(["1999/00", "2000/01"])
    (array(['1999', '2000'], dtype='datetime64[Y]'), ("times such as '1999/00' are fiscal years",))
    """
    array = np.asarray(labels)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} has times of shape {array.shape}: expected one per row.")
    if array.dtype.kind == "M":
        _refuse_missing(np.isnat(array), name, where)
        return _coarsest(array), ()
    if array.dtype.kind in "biuf" and np.isfinite(array).all():
        return _numbers(array.tolist())
    texts = [_text(label) for label in array.tolist()]
    if (years := _fiscal_years(texts, name, where, style)) is not None:
        return years, (f"times such as {texts[0]!r} are fiscal years",)
    values, about_months = _with_months([_value(label) for label in array.tolist()], texts)
    values, about_short = _with_short_dates(values)
    _refuse_missing(np.array([value is None for value in values]), name, where)
    _refuse_two_kinds(values, array, name, where)
    if numbers := [value for value in values if isinstance(value, int | float)]:
        return _numbers(numbers)
    if words := [value for value in values if isinstance(value, str)]:
        return np.array(words), ()
    found = [value for value in values if isinstance(value, datetime | SlashedDate)]
    dates, about_zones = _dates(_with_slashed(found, array, name, where))
    if all(map(formats.is_month, texts)):
        dates = dates.astype("datetime64[M]")
    return dates, (*about_months, *about_short, *about_zones)


def _refuse_missing(missing: Array, name: str, where: Where) -> None:
    if missing.any():
        n = int(np.argmax(missing))
        raise ValueError(f"{name}, {where(n)} has no time. Fill it in, or remove the step.")


def _refuse_two_kinds(values: list[_Value], labels: Array, name: str, where: Where) -> None:
    kinds = [_kind(value) for value in values]
    n = next((n for n, kind in enumerate(kinds) if kind != kinds[0]), None)
    if n is not None:
        one, other = (f"{str(labels[i])!r} ({where(i)}) is {kinds[i]}" for i in (0, n))
        remedy = "Use one kind, and remove rows that are not time steps, such as totals."
        raise ValueError(f"{name} has times of two kinds: {one}, {other}. {remedy}")


def _kind(value: _Value) -> str:
    if isinstance(value, str):
        return "text"
    return "a number" if isinstance(value, int | float) else "a date"


def _coarsest(dates: Array) -> Array:
    """The same dates, in days if they are whole days, else in seconds, …"""
    for unit in ("D", "s", "ms", "us", "ns"):
        with suppress(OverflowError):  # out of range in a finer unit
            coarse = dates.astype(f"datetime64[{unit}]")
            if np.array_equal(coarse, dates):
                return coarse
    raise ValueError("Times finer than a nanosecond cannot be read. Round them.")


def _value(label: object) -> _Value:
    """The value of a label on its own."""
    if str(label).strip().casefold() in NO_TIME:
        return None
    if hasattr(label, "to_timestamp"):  # a pandas Period
        label = label.to_timestamp()
    if isinstance(label, datetime):
        return label
    if isinstance(label, date):
        return datetime.combine(label, time())
    if isinstance(label, Real):
        with suppress(OverflowError):  # a whole number larger than any float is text
            if math.isfinite(label):
                return int(label) if isinstance(label, Integral) else float(label)
    text = str(label).strip()
    if (number := formats.number_in(text)) is not None:
        return number
    if (found := formats.date_in(text)) is not None:
        return found
    slashed = formats.slashed_in(text)
    if slashed is not None and "." in text[:3]:  # 31.12.2001 always has the day first
        return slashed.read(True) if slashed.allows(True) else text
    return slashed or text


def _text(label: object) -> str:
    """The text of a label; "" for numbers and dates."""
    written = isinstance(label, str) or hasattr(label, "to_timestamp")
    return str(label).strip() if written else ""


def _fiscal_years(texts: list[str], name: str, where: Where, style: str) -> Array | None:
    """The first years of a column of fiscal years, or None for other labels."""
    if not all(map(formats.FISCAL.fullmatch, texts)):
        return None
    starts = [formats.fiscal_start(text) for text in texts]
    years = np.array([start for start in starts if start is not None], dtype=np.int64)
    odd = next((n for n, start in enumerate(starts) if start is None), None)
    months = all(formats.date_in(text) is not None for text in texts)  # 2001/02 may be February
    # Three or more are fiscal years: months would be at least 13 months apart.
    if odd is None and (not months or len(texts) > 2 or style in formats.FISCAL_STYLES):
        return (years - 1970).astype("datetime64[Y]")
    if len(years) < MOST * len(texts) or (months and all(text[4] == "-" for text in texts)):
        return None
    start = int(years[0])
    first = texts[starts.index(start)]
    other = "" if odd is None else f"; {texts[odd]!r} ({where(odd)}) is not a fiscal year"
    if not months:
        raise ValueError(f"{name} has fiscal years such as {first!r}{other}. Correct it.")
    month = f"{start}-{first[-2:]}"
    found = f"{first!r} is the fiscal year {start} to {start + 1}, or the month {month}{other}"
    remedy = f"Write fiscal years as {start}/{start + 1}, months as {month}."
    raise ValueError(f"{name} has times that can be read in two ways: {found}. {remedy}")


def _with_months(values: list[_Value], texts: list[str]) -> tuple[list[_Value], Notes]:
    """Read 01.2019 as a month, not as a number, if most labels are such months."""
    dotted = [n for n, text in enumerate(texts) if "." in text and formats.year_of_month(text)]
    enough = dotted and len(dotted) >= MOST * len(texts)
    if not enough or not formats.are_months([texts[n] for n in dotted]):
        return values, ()
    months = {n: formats.date_in(texts[n]) for n in dotted}
    values = [months.get(n, value) for n, value in enumerate(values)]
    return values, (f"times such as {texts[dotted[0]]!r} are read as months",)


def _with_short_dates(values: list[_Value]) -> tuple[list[_Value], Notes]:
    """Read Jan 19 as a month if 19 must be the year, and 31-Dec-18 as a date."""
    texts = [value for value in values if isinstance(value, str)]
    for parse, years_of, what, form in (
        (formats.short_month_in, _years_of_months, "months", "%Y-%m"),
        (formats.short_date_in, _years_of_dates, "dates", "%Y-%m-%d"),
    ):
        found = [short for text in texts if (short := parse(text)) is not None]
        if len(found) < len(values) or (years := years_of(found)) is None:
            continue
        try:
            dates = [datetime(y, d.month, d.day) for y, d in zip(years, found, strict=True)]
        except ValueError:  # 29 February of a common year
            continue
        return [*dates], (f"times such as {texts[0]!r} are read as {what} ({dates[0]:{form}})",)
    return values, ()


def _years_of_months(months: list[ShortDate]) -> list[int] | None:
    """None if the numbers may be days."""
    years = _consecutive_years(months, _runs_through)
    if years is None and not all(month.may_be_day() for month in months):
        years = [_with_century(month.year) for month in months]
    return years


def _years_of_dates(dates: list[ShortDate]) -> list[int]:
    def rises_slowly(ordered: list[ShortDate]) -> bool:
        return all((later.year - d.year) % 100 <= 1 for d, later in pairwise(ordered))

    return _consecutive_years(dates, rises_slowly) or [_with_century(d.year) for d in dates]


def _consecutive_years(
    dates: list[ShortDate], consecutive: Callable[[list[ShortDate]], bool]
) -> list[int] | None:
    """Years counted back from the last date; None if neither direction is consecutive."""
    for ordered in (dates, dates[::-1]):
        if consecutive(ordered):
            last = ordered[-1].year
            return [_with_century(last) - (last - d.year) % 100 for d in dates]
    return None


def _runs_through(months: list[ShortDate]) -> bool:
    """Whether the year rises by one exactly when the months wrap around: Dec 19, Jan 20."""
    wraps = 0
    for one, following in pairwise(months):
        rise = (following.year - one.year) % 100
        if rise != (following.month < one.month) or following.month == one.month:
            return False
        wraps += rise
    return wraps > 0


def _with_century(year: int) -> int:
    """As in POSIX: 69 is 1969, 68 is 2068."""
    return year + (1900 if year >= 69 else 2000)


def _with_slashed(
    values: Sequence[datetime | SlashedDate], labels: Array, name: str, where: Where
) -> list[datetime]:
    """Read slashed dates, if the column allows only one order of day and month."""
    slashed = {n: value for n, value in enumerate(values) if isinstance(value, SlashedDate)}
    orders = [order for order in (True, False) if all(s.allows(order) for s in slashed.values())]
    iso = "Write dates as year-month-day, 2001-12-31."
    if not orders:
        first = f"{str(labels[min(slashed)])!r} ({where(min(slashed))})"
        raise ValueError(f"{name} has dates of two forms, day or month first: {first}. {iso}")
    readings = [
        [value.read(order) if isinstance(value, SlashedDate) else value for value in values]
        for order in orders
    ]
    for n in slashed:
        one, other = readings[0][n], readings[-1][n]
        if one != other:
            ways = f"{one:%Y-%m-%d} (day first) or {other:%Y-%m-%d} (month first)"
            found = f"{str(labels[n])!r} ({where(n)}) is {ways}"
            raise ValueError(f"{name} has dates that can be read in two ways: {found}. {iso}")
    return readings[0]


def _numbers(values: Sequence[int | float]) -> tuple[Array, Notes]:
    """int64 if all are whole, else float64; dates if all are of the form 20011231 or 200112."""
    if all(float(value).is_integer() and abs(value) < _LARGEST for value in values):
        whole = [int(value) for value in values]
        if (dates := _compact_dates(whole)) is not None:
            return dates, (f"times such as {whole[0]} are read as dates",)
        return np.array(whole, dtype=np.int64), ()
    return np.array(values, dtype=np.float64), ()


def _compact_dates(values: list[int]) -> Array | None:
    digits = {len(str(value)) for value in values}
    if digits not in ({8}, {6}) or not all(1500 <= int(str(value)[:4]) < 2300 for value in values):
        return None
    day = "01" if digits == {6} else ""
    try:
        dates = [datetime.strptime(f"{value}{day}", "%Y%m%d") for value in values]
    except ValueError:
        return None
    return np.array(dates, dtype="datetime64[D]").astype(f"datetime64[{'M' if day else 'D'}]")


def _dates(values: list[datetime]) -> tuple[Array, Notes]:
    """Dates in UTC. Midnights of a time zone keep their date."""
    notes: Notes = ()
    if any(value.tzinfo is not None for value in values):
        if all(value.time() == time() for value in values):
            notes = ("times are midnights of a time zone: taken as dates",)
        else:
            n_bare = sum(value.tzinfo is None for value in values)
            bare = f"; {n_bare:,} of them had no zone and were taken as UTC" if n_bare else ""
            values = [v.astimezone(UTC) if v.tzinfo is not None else v for v in values]
            notes = (f"time zones: all times are in UTC now{bare}",)
    naive = [value.replace(tzinfo=None) for value in values]
    return _coarsest(np.array(naive, dtype="datetime64[us]")), notes


_WEEK_NAMES = ("week", "woche", "kw", "semaine", "semana", "settimana")


def as_weeks(labels: ArrayLike, name: object) -> tuple[ArrayLike, Notes]:
    """Labels such as 202001 as ISO weeks, if the name of their column means week.

    Examples
    --------
    >>> as_weeks([202001, 202053], "week")
    (['2020-W01', '2020-W53'], ('times such as 202001 are read as ISO weeks',))
    >>> as_weeks([202001, 202012], "month")
    ([202001, 202012], ())
    """
    if str(name).strip().casefold() not in _WEEK_NAMES:
        return labels, ()
    texts = [str(label).strip() for label in np.asarray(labels).tolist()]
    weeks = [f"{text[:4]}-W{text[4:]}" for text in texts]
    known = all(
        re.fullmatch(r"\d{6}", text) and 1500 <= int(text[:4]) < 2300 and formats.date_in(week)
        for text, week in zip(texts, weeks, strict=True)
    )
    return (weeks, (f"times such as {texts[0]} are read as ISO weeks",)) if known else (labels, ())


def style_of(labels: ArrayLike, dates: Array, known: str = "") -> str:
    """The style of labels that are weeks, quarters or fiscal years, "" for others.

    It is the first of `STYLES` that reproduces every label or, if the labels mix styles, at least
    one. Labels that are dates have the style `known` if it can express them.
    """
    if dates.dtype.kind != "M":
        return ""
    array = np.asarray(labels)
    if array.dtype.kind == "M" and known:
        read, _ = parse_times(formats.in_style(dates, known), style=known)
        return known if np.array_equal(read, dates) else ""
    texts = [_text(label) for label in array.tolist()]
    if not all(map(formats.is_period, texts)):
        return ""
    found = {style: formats.in_style(dates, style) == np.array(texts) for style in formats.STYLES}
    best = max(found, key=lambda style: (found[style].all(), found[style].any()))
    return best if found[best].any() else ""
