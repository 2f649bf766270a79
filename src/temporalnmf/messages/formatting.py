"""Numbers as text, by one rule for tables, reports, plots and messages.

An estimate has three significant digits, and no decimals from 100 on. CSV files have six digits;
arrays, frames and JSON keep all of them.
"""

from __future__ import annotations

import math

_DIGITS, _DIGITS_OF_FILES = 3, 6
# Numbers outside this range are written with a power of ten.
_SMALL, _LARGE = 1e-4, 1e9
# Integers up to this size are exact as doubles.
_EXACT = 2.0**53


def number_text(value: float | None, digits: int = _DIGITS) -> str:
    """A number with separators for thousands; `say` in report.js follows the same rule."""
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
    """A share in per cent, with at most one decimal."""
    value = 100.0 * share
    if 0.0 < value < 0.05:
        return "<0.1 %"
    if 99.95 <= value < 100.0:
        return ">99.9 %"
    # 99.6 % is not rounded to 100 %.
    whole = 10.0 <= value < 99.5 or float(value).is_integer()
    return f"{value:.{0 if whole else 1}f} %"


def level_text(coverage: float) -> str:
    """The probability of an interval, with all of its digits."""
    return f"{100.0 * coverage:.12g} %"


def counted(n: int, noun: str) -> str:
    """1 step, 2 steps."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def csv_number(value: float) -> str:
    """A number for a CSV file: integers in full, others with six significant digits."""
    if float(value).is_integer() and abs(value) <= _EXACT:
        return f"{value:.0f}"
    return f"{value:.{_DIGITS_OF_FILES}g}"
