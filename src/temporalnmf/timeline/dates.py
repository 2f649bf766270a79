"""What labels of time are: numbers, dates or text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .._typing import Array  # not at run time: it loads the compiler

NO_TIME = ("", "na", "nan", "nat", "null", "none", "<na>")
Where = Callable[[int], str]


def row(n: int) -> str:
    return f"row {n}"


def moments_of(
    labels: Any, name: str = "the table", where: Where = row, style: str = ""
) -> tuple[Array, tuple[str, ...]]:
    """The values of labels: int64, float64, datetime64 or str, and what was understood.

    Parameters
    ----------
    labels : sequence, (n,)
        Numbers, dates, or text that may hold them.
    name : str
        What errors call the whole.
    where : callable
        What errors call the place of label n.
    style : str
        That of a timeline which the labels continue (see `style_of`): it decides whether a few
        labels such as 2001/02 are months or fiscal years.

    Examples
    --------
    >>> moments_of(["31/12/2001", "1/1/2002"])
    (array(['2001-12-31', '2002-01-01'], dtype='datetime64[D]'), ())
    >>> moments_of(["2001Q3", "2001-Q4"])[0]
    array(['2001-07-01', '2001-10-01'], dtype='datetime64[D]')
    >>> moments_of(["7", "8.5"])[0]
    array([7. , 8.5])
    >>> moments_of(["12.2018", "01.2019"])[0]
    array(['2018-12', '2019-01'], dtype='datetime64[M]')
    >>> moments_of(["1999/00", "2000/01"])
    (array(['1999', '2000'], dtype='datetime64[Y]'), ("times such as '1999/00' are fiscal years",))
    """
    array = np.asarray(labels)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} has times of shape {array.shape}: expected one per row.")
    if array.dtype.kind == "M":
        _refuse_missing(np.isnat(array), name, where)
        return _coarsest(array), ()
    if array.dtype.kind in "biuf":
        _refuse_missing(np.isnan(array), name, where)
        return _numbers(array.tolist())
    if (years := _fiscal_years(array, name, where, style)) is not None:
        return years, (f"times such as {_text(array[0])!r} are fiscal years",)
    marks = [_mark(label) for label in array.tolist()]
    notes = (
        *_settle_months(marks, array),
        *_settle_short_years(marks, array),
        *_settle_short_dates(marks, array),
    )
    _refuse_missing(np.array([mark.kind == "missing" for mark in marks]), name, where)
    for n, mark in enumerate(marks):
        if mark.kind != marks[0].kind:
            raise ValueError(
                f"{name} has times of two kinds: {str(array[0])!r} ({where(0)}) is "
                f"{marks[0].kind}, {str(array[n])!r} ({where(n)}) is {mark.kind}. Use one kind, "
                f"and remove what is no time step, such as totals."
            )
    if marks[0].kind == "a number":
        return _numbers([mark.value for mark in marks])
    if marks[0].kind == "text":
        return np.array([mark.value for mark in marks]), ()
    _settle_slashed(marks, array, name, where)
    dates, told = _dates([mark.value for mark in marks])
    if all(_is_month(_text(label)) for label in array.tolist()):
        dates = dates.astype("datetime64[M]")
    return dates, (*notes, *told)


def _refuse_missing(missing: Array, name: str, where: Where) -> None:
    if missing.any():
        n = int(np.argmax(missing))
        raise ValueError(f"{name}, {where(n)} has no time. Fill it in, or remove the step.")


def _coarsest(dates: Array) -> Array:
    """The same moments, to the day if they are whole days, else to the second, …"""
    for unit in ("D", "s", "ms", "us", "ns"):
        coarse = dates.astype(f"datetime64[{unit}]")
        if np.array_equal(coarse, dates):
            return coarse
    raise ValueError("Times finer than a nanosecond cannot be read. Round them.")


class _Mark:
    """One label: its kind and value. A slashed date waits for the others of its column."""

    def __init__(self, kind: str, value: Any = None, slashed: _Slashed | None = None) -> None:
        self.kind, self.value, self.slashed = kind, value, slashed


class _Slashed(NamedTuple):
    """1/2/2001: the first of February or the second of January."""

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


def _mark(label: Any) -> _Mark:
    if str(label).strip().casefold() in NO_TIME:
        return _Mark("missing")
    if hasattr(label, "to_timestamp"):  # a pandas Period
        label = label.to_timestamp()
    if isinstance(label, datetime):
        return _Mark("a date", label)
    if isinstance(label, date):
        return _Mark("a date", datetime.combine(label, time()))
    if isinstance(label, Integral):
        return _Mark("a number", int(label))
    if isinstance(label, Real) and math.isfinite(label):
        return _Mark("a number", float(label))
    text = str(label).strip()
    if (number := number_in(text)) is not None:
        return _Mark("a number", number)
    if (moment := moment_in(text)) is not None:
        return _Mark("a date", moment)
    if (slashed := _slashed_in(text)) is not None:
        if "." in text[:3]:  # 31.12.2001 is written with the day first everywhere
            allowed = slashed.allows(True)
            return _Mark("a date", slashed.read(True)) if allowed else _Mark("text", text)
        return _Mark("a date", slashed=slashed)
    return _Mark("text", text)


def number_in(text: str) -> int | float | None:
    """A finite number. Whole ones stay exact: stamps in nanoseconds are beyond 2^53."""
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    try:
        number = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


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
_NAMED = re.compile(r"(?:(\d{1,2})[- .]+)?([^\W\d_]{3,9})\.?[- ]*(?:(\d{1,2}), *)?(\d{4})")
_DAY_SHORT = re.compile(r"(\d{1,2})[- .]+([^\W\d_]{3,9})\.?[- /]*['’]?(\d{2})")
_NAMED_SHORT = re.compile(r"([^\W\d_]{3,9})\.?[- /]*['’]?(\d{2})")
_MONTH_YEAR = re.compile(r"(0?[1-9]|1[0-2])[./-](\d{4})")
_YEAR_MONTH = re.compile(r"(\d{4})[-/](\d{1,2})")
_QUARTER = re.compile(r"(\d{4})[- ]?[Qq]([1-4])")
_QUARTER_YEAR = re.compile(r"[Qq]([1-4])[- /]?(\d{4})")
_WEEK = re.compile(r"(\d{4})-?[Ww](\d{1,2})")
_ISO_SLASHED = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})")


def moment_in(text: str) -> datetime | None:
    """A date that can be read in one way only.

    ISO, also without its day, a week, a quarter, 3/2001, or with the name of the month in English
    or German.

    Examples
    --------
    >>> moment_in("März 2001"), moment_in("12 Feb 2001"), moment_in("March")
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


def _is_month(text: str) -> bool:
    """Whether a text that is a date has no day."""
    if (named := _NAMED.fullmatch(text)) is not None:
        return not (named[1] or named[3])
    return any(form.fullmatch(text) for form in (_YEAR_MONTH, _MONTH_YEAR, _NAMED_SHORT))


def _month(word: str) -> int:
    """1 for January or Jan, 0 for a word that is no month."""
    return _MONTHS.get(word.casefold(), 0)


def are_months(texts: Sequence[str]) -> bool:
    """Whether texts such as 01.2019 are months, though each of them is a number as well.

    Years are from 1500 to 2299. Without a zero in front there are no more years than texts: 1.1625,
    1.1875, 1.2125 are numbers.

    Examples
    --------
    >>> are_months(["1.2019", "2.2019"]), are_months(["1.1625", "1.1875"])
    (True, False)
    """
    years = [_year_of_month(text) for text in texts]
    if None in years:
        return False
    known = [year for year in years if year is not None]
    return any(text.startswith("0") for text in texts) or max(known) - min(known) < len(known)


def _year_of_month(text: str) -> int | None:
    found = _MONTH_YEAR.fullmatch(text)
    return int(found[2]) if found is not None and 1500 <= int(found[2]) < 2300 else None


MOST = 0.75  # of the labels; the others are then told as what they are


_FISCAL = re.compile(r"(FY ?)?(\d{4})([/–-])(\d{4}|\d{2})")


def _fiscal_start(text: str) -> int | None:
    """The first year of 2001/02 or 2001/2002, if the second one follows it."""
    found = _FISCAL.fullmatch(text)
    if found is None:
        return None
    first, second = int(found[2]), found[4]
    return first if first + 1 == int(second) or f"{first + 1:04}"[2:] == second else None


def _fiscal_years(labels: Array, name: str, where: Where, style: str) -> Array | None:
    """The first years of a column of fiscal years, None if it is something else.

    2001/02 is February as well. At least three such labels are fiscal years: as months, they would
    be 13 months apart or more.
    """
    texts = [_text(label) for label in labels.tolist()]
    if not all(map(_FISCAL.fullmatch, texts)):
        return None
    starts = [_fiscal_start(text) for text in texts]
    years = np.array([start for start in starts if start is not None], dtype=np.int64)
    odd = next((n for n, start in enumerate(starts) if start is None), None)
    months = all(moment_in(text) is not None for text in texts)
    if odd is None and (not months or len(texts) > 2 or style in _FISCAL_STYLES):
        return (years - 1970).astype("datetime64[Y]")
    if len(years) < MOST * len(texts) or (months and all(text[4] == "-" for text in texts)):
        return None
    start = int(years[0])
    first = texts[starts.index(start)]
    other = "" if odd is None else f"; {texts[odd]!r} ({where(odd)}) is no fiscal year"
    if not months:
        raise ValueError(f"{name} has fiscal years such as {first!r}{other}. Correct it.")
    raise ValueError(
        f"{name} has times that can be read in two ways: {first!r} is the fiscal year {start} to "
        f"{start + 1}, or the month {start}-{first[-2:]}{other}. Write fiscal years as "
        f"{start}/{start + 1}, months as {start}-{first[-2:]}."
    )


# How labels of periods are written: %G and %V are the year and week of ISO 8601, %q is the quarter,
# %N the year after %Y; %v and %n are weeks and years in as few digits as possible.
_FISCAL_STYLES = tuple(
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
STYLES = (*_FISCAL_STYLES, *_QUARTER_STYLES, *_WEEK_STYLES)


def style_of(labels: Any, moments: Array, known: str = "") -> str:
    """How the labels of weeks, quarters or fiscal years are written; "" for all others.

    The first of `STYLES` that gives back every label; where they are written in several, the first
    that gives back one. Labels that are dates have the style that is known, if it can express them.

    Examples
    --------
    >>> labels = ["2020-W52", "2020-W53", "2021-W1"]
    >>> style_of(labels, moments_of(labels)[0])
    '%G-W%v'
    """
    if moments.dtype.kind != "M":
        return ""
    array = np.asarray(labels)
    if array.dtype.kind == "M" and known:
        read, _ = moments_of(in_style(moments, known), style=known)
        return known if np.array_equal(read, moments) else ""
    texts = [_text(label) for label in array.tolist()]
    if not all(map(_is_period, texts)):
        return ""
    found = {style: in_style(moments, style) == np.array(texts) for style in STYLES}
    best = max(found, key=lambda style: (found[style].all(), found[style].any()))
    return best if found[best].any() else ""


def _is_period(text: str) -> bool:
    forms = (_WEEK, _QUARTER, _QUARTER_YEAR)
    return _fiscal_start(text) is not None or any(form.fullmatch(text) for form in forms)


def in_style(moments: Array, style: str) -> Array:
    """Dates as texts.

    Examples
    --------
    >>> in_style(np.array(["2019-12-30", "2020-01-06"], dtype="datetime64[D]"), "%G-W%V").tolist()
    ['2020-W01', '2020-W02']
    >>> in_style(np.array(["1999"], dtype="datetime64[Y]"), "FY %Y/%n").tolist()
    ['FY 1999/00']
    """
    year, month = (moments.astype(f"datetime64[{unit}]").astype(np.int64) for unit in "YM")
    days = moments.astype("datetime64[D]").astype(np.int64)
    thursday = (days - (days + 3) % 7 + 3).astype("datetime64[D]")  # it has the year of its week
    week_year = thursday.astype("datetime64[Y]")
    week = (thursday - week_year.astype("datetime64[D]")).astype(np.int64) // 7 + 1
    fields = {
        "%Y": (year + 1970, "04"), "%N": (year + 1971, "04"), "%n": ((year + 1971) % 100, "02"),
        "%q": (month % 12 // 3 + 1, ""), "%G": (week_year.astype(np.int64) + 1970, "04"),
        "%V": (week, "02"), "%v": (week, ""),
    }  # fmt: skip
    texts = [style] * len(moments)
    for field, (values, width) in fields.items():
        if field in style:
            pairs = zip(texts, values.tolist(), strict=True)
            texts = [text.replace(field, f"{value:{width}}") for text, value in pairs]
    return np.array(texts, dtype=np.str_)


def _text(label: Any) -> str:
    """A label as it was written; "" if it was none, but a number or a date."""
    written = isinstance(label, str) or hasattr(label, "to_timestamp")
    return str(label).strip() if written else ""


def _settle_months(marks: list[_Mark], labels: Array) -> tuple[str, ...]:
    """01.2019 is a number by itself and a month among its like.

    Where most are months, others are left of another kind, such as 2019 for the total of a year.
    """
    texts = [label.strip() if isinstance(label, str) else "" for label in labels.tolist()]
    dotted = [n for n, text in enumerate(texts) if "." in text and _year_of_month(text)]
    if not dotted or len(dotted) < MOST * len(texts) or not are_months([texts[n] for n in dotted]):
        return ()
    for n in dotted:
        marks[n].kind, marks[n].value = "a date", moment_in(texts[n])
    return (f"times such as {texts[dotted[0]]!r} are read as months",)


def short_month_in(text: str) -> tuple[int, int] | None:
    """Month and number of Jan 19, which may be a day or a year."""
    found = _NAMED_SHORT.fullmatch(text)
    month = 0 if found is None else _month(found[1])
    return (month, int(found[2])) if found is not None and month else None


def _settle_short_years(marks: list[_Mark], labels: Array) -> tuple[str, ...]:
    """Jan 19 is a month if the labels leave no doubt that 19 is the year."""
    pairs: list[tuple[int, int]] = []
    for mark in marks:
        pair = short_month_in(mark.value) if mark.kind == "text" else None
        if pair is None:
            return ()
        pairs.append(pair)
    if (years := _short_years(pairs)) is None:
        return ()
    for mark, year, (month, _) in zip(marks, years, pairs, strict=True):
        mark.kind, mark.value = "a date", datetime(year, month, 1)
    first = marks[0].value
    return (f"times such as {str(labels[0]).strip()!r} are read as months ({first:%Y-%m})",)


def short_date_in(text: str) -> tuple[int, int, int] | None:
    """Day, month and two-digit year of 31-Dec-18."""
    found = _DAY_SHORT.fullmatch(text)
    month = 0 if found is None else _month(found[2])
    if found is None or not month or not 1 <= int(found[1]) <= _LONGEST[month - 1]:
        return None
    return int(found[1]), month, int(found[3])


_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _settle_short_dates(marks: list[_Mark], labels: Array) -> tuple[str, ...]:
    """31-Dec-18 is a date among its like. The years are those of months: 68, 69 are neighbours."""
    found: list[tuple[int, int, int]] = []
    for mark in marks:
        parts = short_date_in(mark.value) if mark.kind == "text" else None
        if parts is None:
            return ()
        found.append(parts)
    years = _years_in_a_row([year for *_, year in found])
    try:
        dates = [datetime(y, m, d) for y, (d, m, _) in zip(years, found, strict=True)]
    except ValueError:  # 29 February of a year that has none
        return ()
    for mark, moment in zip(marks, dates, strict=True):
        mark.kind, mark.value = "a date", moment
    return (f"times such as {str(labels[0]).strip()!r} are read as dates ({dates[0]:%Y-%m-%d})",)


def _years_in_a_row(numbers: list[int]) -> list[int]:
    """Two-digit years: counted back from the last if they rise by none or one, forth or back."""
    for ordered in (numbers, numbers[::-1]):
        if all((later - number) % 100 <= 1 for number, later in pairwise(ordered)):
            years = _backwards(ordered)
            return years if ordered is numbers else years[::-1]
    return [_century(number) for number in numbers]


def _backwards(numbers: list[int]) -> list[int]:
    """Years from the last one backwards, so that 68, 69 and 99, 00 are neighbours."""
    last = _century(numbers[-1])
    return [last - (numbers[-1] - number) % 100 for number in numbers]


def _short_years(pairs: list[tuple[int, int]]) -> list[int] | None:
    """The years of pairs of month and number, None if the numbers may be days."""
    for ordered in (pairs, pairs[::-1]):
        if _runs_through(ordered):
            years = _backwards([number for _, number in ordered])
            return years if ordered is pairs else years[::-1]
    if all(1 <= number <= _LONGEST[month - 1] for month, number in pairs):
        return None
    return [_century(number) for _, number in pairs]


def _runs_through(pairs: list[tuple[int, int]]) -> bool:
    """Whether months rise, and the number rises by one whenever they start anew: Dec 19, Jan 20."""
    wraps = 0
    for (month, number), (next_month, next_number) in pairwise(pairs):
        rise = (next_number - number) % 100
        if rise != (next_month < month) or next_month == month:
            return False
        wraps += rise
    return wraps > 0


def _century(number: int) -> int:
    """As in POSIX: 69 is 1969, 68 is 2068."""
    return number + (1900 if number >= 69 else 2000)


_SLASHED = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T](\d{1,2}:\d{2}(?::\d{2})?))?")


def _slashed_in(text: str) -> _Slashed | None:
    found = _SLASHED.fullmatch(text)
    if found is None:
        return None
    try:
        clock = time.fromisoformat(f"{found[5] or '00:00':0>5}")
    except ValueError:
        return None
    slashed = _Slashed(int(found[1]), int(found[3]), int(found[4]), clock)
    return slashed if slashed.allows(True) or slashed.allows(False) else None


def _settle_slashed(marks: list[_Mark], labels: Array, name: str, where: Where) -> None:
    """Give slashed dates their value, if the column allows one order of day and month only."""
    slashed = [(n, mark.slashed) for n, mark in enumerate(marks) if mark.slashed is not None]
    orders = [order for order in (True, False) if all(s.allows(order) for _, s in slashed)]
    readings = [[s.read(order) for _, s in slashed] for order in orders]
    if not slashed:
        return
    iso = "Write dates as year-month-day, 2001-12-31."
    if not readings:
        raise ValueError(
            f"{name} has dates of two forms, some with the day first and some with the month "
            f"first, such as {str(labels[slashed[0][0]])!r} ({where(slashed[0][0])}). {iso}"
        )
    if len(readings) == 2 and readings[0] != readings[1]:
        pairs = zip(*readings, strict=True)
        k = next(k for k, (one, other) in enumerate(pairs) if one != other)
        n, (one, other) = slashed[k][0], (readings[0][k], readings[1][k])
        raise ValueError(
            f"{name} has dates that can be read in two ways: {str(labels[n])!r} ({where(n)}) is "
            f"{one:%Y-%m-%d} with the day first and {other:%Y-%m-%d} with the month first, and no "
            f"day of the column is above 12. {iso}"
        )
    for (n, _), value in zip(slashed, readings[0], strict=True):
        marks[n].value = value


def _numbers(values: list[Any]) -> tuple[Array, tuple[str, ...]]:
    """int64 if all are whole, else float64; dates if all are such as 20011231 or 200112."""
    if all(float(value).is_integer() and abs(value) < 2**63 for value in values):
        values = [int(value) for value in values]
        if (dates := _compact_dates(values)) is not None:
            return dates, (f"times such as {values[0]} are read as dates",)
        return np.array(values, dtype=np.int64), ()
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


_WEEK_NAMES = ("week", "woche", "kw", "semaine", "semana", "settimana")


def as_weeks(labels: Any, name: Any) -> tuple[Any, tuple[str, ...]]:
    """Labels such as 202001 as ISO weeks, if the name of their column says so.

    Examples
    --------
    >>> as_weeks([202001, 202053], "week")
    (['2020-W01', '2020-W53'], ('times such as 202001 are read as ISO weeks',))
    >>> as_weeks([202001, 202012], "month")
    ([202001, 202012], ())
    """
    if str(name).strip().casefold() not in _WEEK_NAMES:
        return labels, ()
    texts = [str(label).strip() for label in labels]
    weeks = [f"{text[:4]}-W{text[4:]}" for text in texts]
    known = all(
        re.fullmatch(r"\d{6}", text) and 1500 <= int(text[:4]) < 2300 and moment_in(week)
        for text, week in zip(texts, weeks, strict=True)
    )
    return (weeks, (f"times such as {texts[0]} are read as ISO weeks",)) if known else (labels, ())


def _dates(values: list[datetime]) -> tuple[Array, tuple[str, ...]]:
    """Dates in UTC. Midnights of a zone are dates: they stay on their day."""
    notes: tuple[str, ...] = ()
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


def is_date(text: str) -> bool:
    """Whether a text is a date, also one that needs its neighbours to be read."""
    readers: tuple[Callable[[str], object], ...] = (
        moment_in, _slashed_in, short_date_in, _fiscal_start,
    )  # fmt: skip
    return any(read(text) is not None for read in readers)
