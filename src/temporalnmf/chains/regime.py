"""Long-run behaviour of a chain: its moments, and almost every path."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum


class LongRun(Enum):
    """Limit of a moment as n → ∞. The value describes it, the symbol is for titles of plots."""

    ZERO = "goes to zero"
    FINITE = "stays finite and positive"
    INFINITE = "grows without bound"
    UNDEFINED = "does not exist"

    @property
    def symbol(self) -> str:
        return _SYMBOLS[self]


_SYMBOLS = {
    LongRun.ZERO: "→ 0",
    LongRun.FINITE: "stays finite",
    LongRun.INFINITE: "→ ∞",
    LongRun.UNDEFINED: "undefined",
}


class Paths(Enum):
    """Limit of almost every path as n → ∞, which does not follow from the moments."""

    COLLAPSE = "almost every path goes to zero"
    ABSORBED = "almost every path reaches zero after finitely many steps and stays there"
    EXPLODE = "almost every path grows without bound"
    SPLIT = "a path either dies out or grows without bound"
    WANDER = "paths swing between ever larger and ever smaller values and never settle"
    STATIONARY = "every path keeps returning to the same law"

    @property
    def symbol(self) -> str:
        return f"paths {self.name.lower()}" if self is not Paths.STATIONARY else "stationary"


@dataclass(frozen=True)
class Regime:
    """Long-run behaviour of one chain, as enums and, by `str`, in words.

    Mean and variance are those of h_n for a fixed first value. Almost every path may behave
    differently: a few huge paths can carry a growing mean while all others collapse.

    Examples
    --------
    >>> from temporalnmf.chains import Rate
    >>> regime = Rate(alpha=1.5, beta=1.3).regime()
    >>> regime.mean.name, regime.var.name, regime.paths.name
    ('INFINITE', 'INFINITE', 'COLLAPSE')
    """

    mean: LongRun
    var: LongRun
    paths: Paths
    note: str = ""

    def __str__(self) -> str:
        if self.mean is self.var:
            moments = f"The mean {self.mean.value}, and so does the variance"
        else:
            moments = f"The mean {self.mean.value}, the variance {self.var.value}"
        return f"{moments}; {self.paths.value}." + (f" {self.note}" if self.note else "")

    @property
    def title(self) -> str:
        """Short form, for titles of plots."""
        if self.paths is Paths.STATIONARY:
            return self.paths.symbol
        return f"mean {self.mean.symbol}, variance {self.var.symbol}; {self.paths.symbol}"


def long_run_of_moments(slope: float, offset: float, square: float) -> tuple[LongRun, LongRun]:
    """Limits of mean and variance, from the `Moments` that determine them.

    The mean follows m ← slope·m + offset, the variance
    v ← (slope² + square)·v + square·m² + linear·m + constant, all terms non-negative. There is
    always some noise, but no constant noise without an offset, where zero is absorbing.
    """
    if math.isinf(slope):
        return LongRun.INFINITE, LongRun.UNDEFINED
    steady = math.isclose(slope, 1.0, rel_tol=1e-12)
    if steady and offset == 0.0:
        mean = LongRun.FINITE
    elif steady or slope > 1.0:
        mean = LongRun.INFINITE
    else:
        mean = LongRun.FINITE if offset > 0.0 else LongRun.ZERO
    # slope² + square − 1, without rounding away a small `square`.
    excess = square if steady else square - (1.0 - slope) * (1.0 + slope)
    if not steady and abs(excess) < 1e-13:
        excess = 0.0
    if excess > 0.0:
        return mean, LongRun.INFINITE
    if excess == 0.0:
        # Added terms accumulate, unless they vanish with the mean.
        return mean, LongRun.FINITE if mean is LongRun.ZERO else LongRun.INFINITE
    return mean, LongRun.FINITE if offset > 0.0 else LongRun.ZERO
