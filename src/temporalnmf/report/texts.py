"""Names and numbers as a report writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

_LONGEST_NAME = 80

# Between a number and its per cent sign.
NO_BREAK = "\N{NO-BREAK SPACE}"

Number = float | int | None


def clean(text: Any, longest: int = _LONGEST_NAME) -> str:
    """Text from a foreign file as UTF-8 can hold it, without control characters, cut if long."""
    text = str(text).encode("utf-8", "replace").decode()
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def counted(n: int, noun: str) -> str:
    """1 step, 2 steps."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def number(value: Any, digits: int = 4) -> Number:
    """With so many significant digits, for JSON; None if there is none or it is not finite."""
    if value is None or not np.isfinite(value):
        return None
    short = float(f"{float(value):.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def numbers(values: Any, digits: int = 4) -> list[Number]:
    """A list of `number`."""
    return [number(value, digits) for value in np.asarray(values, dtype=float).tolist()]


def number_text(value: Any, digits: int = 4) -> str:
    """A number for people, thousands set apart; `say` in report.js writes the same.

    Examples
    --------
    >>> number_text(12345.6), number_text(0.0123456), number_text(2.5e-7), number_text(float("nan"))
    ('12,350', '0.01235', '2.500e-07', '–')
    """
    short = number(value, digits)
    if short is None:
        return "–"
    if short != 0 and not 1e-4 <= abs(short) < 1e9:
        return f"{short:.{digits - 1}e}"
    places = 0 if short == 0 else max(0, digits - 1 - int(np.floor(np.log10(abs(short)))))
    text = f"{short:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """A share in per cent, with one decimal at the most and no line break inside.

    Examples
    --------
    >>> [percent(share).replace(NO_BREAK, "_") for share in (0.28, 0.0974, 0.0004, 0.0, 0.996)]
    ['28_%', '9.7_%', '<0.1_%', '0_%', '99.6_%']
    """
    value = 100.0 * share
    if 0.0 < value < 0.05:
        return f"<0.1{NO_BREAK}%"
    # What is not all should not look like all.
    whole = 10.0 <= value < 99.5 or float(value).is_integer()
    return f"{value:.{0 if whole else 1}f}{NO_BREAK}%"


def percents(shares: list[float]) -> list[str]:
    """Shares in per cent for a column: all with one decimal."""
    return [
        f"<0.1{NO_BREAK}%" if 0.0 < 100.0 * share < 0.05 else f"{100.0 * share:.1f}{NO_BREAK}%"
        for share in shares
    ]


def change(before: float, after: float) -> str:
    """A change in per cent, or as a factor where it is large; empty if there is nothing to compare.

    Examples
    --------
    >>> change(0.00065, 0.00082).replace(NO_BREAK, "_"), change(1.0, 25.0), change(0.0, 1.0)
    ('+26_%', '25 times as much', '')
    """
    if not before > 0.0:
        return ""
    ratio = after / before
    if ratio >= 10.0:
        return f"{number_text(ratio, 2)} times as much"
    percentage = 100.0 * (ratio - 1.0)
    small = abs(percentage) < 10.0
    return f"{percentage:+.{1 if small else 0}f}{NO_BREAK}%".replace("-", "−")
