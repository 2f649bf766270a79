"""Names and numbers as a report writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

_LONGEST_NAME = 80

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
    """A share in per cent: 28 %, 9.7 %."""
    value = 100.0 * share
    return f"{value:.0f} %" if value >= 10 or value == 0 else f"{number_text(value, 2)} %"


def percents(shares: list[float]) -> list[str]:
    """Shares in per cent with the decimals that the least of them needs for two digits."""
    least = max(100.0 * min(shares, default=0.0), 1e-9)
    places = int(np.clip(1 - np.floor(np.log10(least)), 0, 4))
    return [f"{100.0 * share:.{places}f} %" for share in shares]
