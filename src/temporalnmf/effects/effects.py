"""Effects: the factors of known patterns in time, and their updates in a fit."""

from __future__ import annotations

from typing import Self

import numpy as np

from .._typing import Array
from ..likelihoods.base import Majorizer
from .design import Design
from .season import Season

# Largest coefficient of a valid effect, and largest log factor at the steps of a fit by draws.
LARGEST_COEFFICIENT, FARTHEST = 1e3, 100.0
# The strength of a term before it is learned.
_START = 0.3
# Longest move of a log factor, and most halvings of a step.
_LONGEST, _HALVINGS = 1.0, 20


class Effects:
    """Factors c_kn = exp(Σ_j x_nj b_kj) between levels h and activations c h.

    The coefficients b have normal priors. A term of P columns with the strength σ has the variance
    σ²/P per column, so that σ is the standard deviation of log c.

    Attributes
    ----------
    coefficients : array, (K, P)
    strengths : array, (terms,)
    moving : bool
        Whether solvers update the coefficients.
    """

    def __init__(
        self, design: Design, coefficients: Array, strengths: Array, *, moving: bool = False
    ) -> None:
        self.design, self.strengths, self.moving = design, strengths, moving
        self.coefficients = coefficients

    @classmethod
    def start(cls, design: Design, n_components: int) -> Self:
        """Factors 1, to be updated; a strength to be learned starts at a moderate value."""
        strengths = [_START if t.strength == "learn" else float(t.strength) for t in design.terms]
        coefficients = np.zeros((n_components, design.columns.shape[1]))
        return cls(design, coefficients, np.array(strengths), moving=True)

    @property
    def coefficients(self) -> Array:
        return self._coefficients

    @coefficients.setter
    def coefficients(self, value: Array) -> None:
        self._coefficients = value
        self.factors = np.exp(value @ self.design.columns.T)  # (K, N)

    @property
    def precisions(self) -> Array:
        """Of the priors of the columns, (P,)."""
        design = self.design
        return np.asarray((design.sizes / self.strengths**2)[design.term_of])

    def value(self) -> float:
        """−log p(b), without constants."""
        return float(0.5 * np.sum(self.precisions * self.coefficients**2))

    def at(self, design: Design) -> Effects:
        """The same effects at other steps, fixed."""
        return Effects(design, self.coefficients, self.strengths)

    def copy(self, *, moving: bool | None = None) -> Effects:
        """A copy that does not follow the updates of this one."""
        moving = self.moving if moving is None else moving
        return Effects(self.design, self.coefficients, self.strengths, moving=moving)

    def reordered(self, order: Array) -> Effects:
        """For components in another order."""
        coefficients = self.coefficients[order]
        return Effects(self.design, coefficients, self.strengths, moving=self.moving)

    def cycles(self) -> dict[str, Array]:
        """The factors (K, positions) of one cycle of each season."""
        found = {}
        for t, season in enumerate(self.seasons):
            assert season.steps is not None
            n = int(np.ceil(season.steps))
            columns = season.harmonics(np.arange(n) / n)
            mine = self.coefficients[..., self.design.term_of == t]
            found[season.name] = np.exp(mine @ columns.T)
        return found

    @property
    def seasons(self) -> tuple[Season, ...]:
        """The terms that are seasons."""
        return self.design.terms

    def move(self, majorizer: Majorizer, H: Array, farthest: Array | None = None) -> None:
        """(EF1): a Newton step on the bound −p log g + q g + r/g in the activations g = c h.

        The majorizer is that of levels at the present factors; it holds for any levels H, or
        up to the `farthest` ones, by which c h is bounded at the present c.
        """
        X, precisions, old = self.design.columns, self.precisions, self.coefficients
        new = old.copy()
        for k in range(len(H)):
            p, up, down = majorizer.p[k], majorizer.q[k] * H[k], majorizer.r[k] / H[k]
            slope = (up - p - down) @ X + precisions * old[k]
            bend = (X.T * (up + down)) @ X + np.diag(precisions)
            step = -np.linalg.solve(bend, slope)
            shift = X @ step
            length = min(1.0, _LONGEST / max(float(np.abs(shift).max()), _LONGEST))
            for _ in range(_HALVINGS):
                t = length * shift
                if farthest is not None and np.any(H[k] * np.exp(t) > farthest[k]):
                    length *= 0.5
                    continue
                change = up @ np.expm1(t) + down @ np.expm1(-t) - p @ t
                moved = old[k] + length * step
                change += 0.5 * precisions @ (moved**2 - old[k] ** 2)
                if change <= 0.0:
                    new[k] = moved
                    break
                length *= 0.5
        self.coefficients = new
