"""Numbers as people read them: the same rule in tables, reports, plots and messages.

An estimate has three significant digits, and is a whole number from 100 on, as counts are. A CSV
file has six digits, enough to compute with. Arrays, frames and JSON keep all of them.
"""

from __future__ import annotations

import math
from typing import Any

_DIGITS, _DIGITS_OF_FILES = 3, 6
# Beyond these, numbers are written with a power of ten.
_SMALL, _LARGE = 1e-4, 1e9
# Whole numbers up to here are exact as doubles.
_EXACT = 2.0**53


def number_text(value: Any, digits: int = _DIGITS) -> str:
    """A number for people, thousands set apart; `say` in report.js writes the same.

    Examples
    --------
    >>> [number_text(value) for value in (12345.6, 945.3, 94.53, 7.0, 0.0005662, 2.5e-7, math.nan)]
    ['12,346', '945', '94.5', '7', '0.000566', '2.50e-07', '–']
    """
    if value is None or not math.isfinite(value):
        return "–"
    short = float(f"{float(value):.{digits}g}")
    size = abs(short)
    if size != 0.0 and not _SMALL <= size < _LARGE:
        return f"{short:.{digits - 1}e}"
    if size >= 100.0 or size == 0.0:
        return f"{abs(value) if size == 0.0 else value:,.0f}"
    text = f"{short:.{digits - 1 - math.floor(math.log10(size))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """A share in per cent, with one decimal at the most.

    Examples
    --------
    >>> [percent(share) for share in (0.9, 0.28, 0.0974, 0.0004, 0.0, 0.996)]
    ['90 %', '28 %', '9.7 %', '<0.1 %', '0 %', '99.6 %']
    """
    value = 100.0 * share
    if 0.0 < value < 0.05:
        return "<0.1 %"
    # What is not all should not look like all.
    whole = 10.0 <= value < 99.5 or float(value).is_integer()
    return f"{value:.{0 if whole else 1}f} %"


def level_text(coverage: float) -> str:
    """The probability of an interval, exactly as it was asked for.

    Examples
    --------
    >>> level_text(0.9), level_text(0.975), level_text(0.9999)
    ('90 %', '97.5 %', '99.99 %')
    """
    return f"{100.0 * coverage:.12g} %"


def csv_number(value: float) -> str:
    """A number for a CSV file: whole ones in full, others with six significant digits.

    Examples
    --------
    >>> [csv_number(value) for value in (12345678.0, 945.32814, 0.0005661999, 3.0)]
    ['12345678', '945.328', '0.0005662', '3']
    """
    if float(value).is_integer() and abs(value) <= _EXACT:
        return f"{value:.0f}"
    return f"{value:.{_DIGITS_OF_FILES}g}"
