"""Figures that both the page and the plots take from the records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Records = list[dict[str, Any]]


def records(results: dict[str, Any], part: str, **fields: Any) -> Records:
    """Those of a part that have the given values."""
    found = results["parts"].get(part, {"records": []})["records"]
    return [r for r in found if all(r.get(name) == value for name, value in fields.items())]


def unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


def cases(found: Records) -> list[tuple[str, int]]:
    """Data sets with their numbers of components, in the order of measurement."""
    return unique((r["dataset"], r["K"]) for r in found)


def timed(results: dict[str, Any], **fields: Any) -> list[float] | None:
    """Seconds of an iteration, of the one run that has these fields."""
    found = [r for r in records(results, "iteration", **fields) if "seconds" in r]
    return found[0]["seconds"] if found else None


def faster(other: list[float] | None, ours: list[float] | None) -> float | None:
    """How many times faster we are, best repetition against best repetition."""
    return min(other) / min(ours) if other and ours else None


def speed_up(record: dict[str, Any], mm: str = "mm_seconds") -> float:
    """Of the accelerated solver; zero if it ended in another optimum."""
    return record[mm] / record["seconds"] if record["reached"] else 0.0


def slope(found: Records) -> tuple[float, float, int]:
    """Exponent and factor of time = factor · size^exponent on the upper half of the range.

    The half is that of the logarithm; returns also how many points it has.
    """
    size = np.log([r["size"] for r in found])
    seconds = np.log([min(r["seconds"]) for r in found])
    upper = size >= 0.5 * (size[0] + size[-1]) - 1e-9
    exponent, constant = np.polyfit(size[upper], seconds[upper], 1)
    return float(exponent), float(np.exp(constant)), int(upper.sum())


def memory_slope(found: Records) -> float:
    """Bytes of peak memory per byte of data, from the two sizes: the factors cancel."""
    small, large = sorted(found, key=lambda r: r["data_bytes"])
    return (large["peak"] - small["peak"]) / (large["data_bytes"] - small["data_bytes"])
