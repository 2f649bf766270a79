"""Effects: the factors of known patterns in time, and their updates in a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from .._typing import Array
from ..chains.parameters import Scale
from ..chains.prior import ActivationPrior
from ..kernels.floor import FLOOR
from ..likelihoods.base import Majorizer
from ..messages.errors import ArgumentError
from .covariates import ColumnNames, Influence
from .design import Design
from .season import Season
from .term import Term
from .trend import Trend

# Largest coefficient of a valid effect, and largest log factor at the steps of a fit by draws.
LARGEST_COEFFICIENT, FARTHEST = 1e3, 100.0
# A strength that is learned starts at this multiple of its usual value.
_START = 3.0
# Half the width of a 90 % interval, in standard deviations.
_Z = 1.6448536269514722
# Largest logarithm of a factor per unit: a unit may be much more than covariates ever change.
LARGEST_LOG = 700.0
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
    covariances : array, (K, P, P), or None
        Posterior covariances of the coefficients, once they are known.
    moving : bool
        Whether solvers update the coefficients.
    """

    def __init__(
        self,
        design: Design,
        coefficients: Array,
        strengths: Array,
        covariances: Array | None = None,
        *,
        moving: bool = False,
    ) -> None:
        self.design, self.strengths, self.moving = design, strengths, moving
        self.covariances = covariances
        self.coefficients = coefficients

    @classmethod
    def start(cls, design: Design, n_components: int) -> Self:
        """Factors 1, to be updated; a strength to be learned starts at a moderate value."""
        strengths = [
            _START * term.usual if term.strength == "learn" else float(term.strength)
            for term in design.terms
        ]
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
    def learns(self) -> bool:
        """Whether a strength is learned."""
        return any(term.strength == "learn" for term in self.design.terms)

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
        return Effects(design, self.coefficients, self.strengths, self.covariances)

    def check_reach(self, design: Design, times: Sequence[str]) -> None:
        """Refuse steps with factors that are no numbers: a covariate in another unit, growth."""
        farthest = np.abs(self.coefficients @ design.columns.T).max(axis=0)
        beyond = np.flatnonzero(~(farthest <= FARTHEST))
        if not len(beyond):
            return
        n = int(beyond[0])
        parts = [
            np.abs(
                self.coefficients[:, design.term_of == t] @ design.columns[n, design.term_of == t]
            )
            for t in range(len(design.terms))
        ]
        term = design.terms[int(np.argmax([part.max() for part in parts]))]
        where = f"at {times[n]} would change activations by a factor beyond 1e43."
        if isinstance(term, Influence) and design.covariates is not None:
            value = design.covariates.column(term.name)[n]
            problem = f": {term.name!r} of {value:.4g} {where}"
            names = ColumnNames(design.covariates.names)
            raise ArgumentError("covariates", names, problem, "Give it in the unit of the fit.")
        raise ValueError(f"The {term.name} {where} Use fewer steps, or a trend that is damped.")

    def copy(self, *, moving: bool | None = None) -> Effects:
        """A copy that does not follow the updates of this one."""
        moving = self.moving if moving is None else moving
        return Effects(
            self.design, self.coefficients, self.strengths, self.covariances, moving=moving
        )

    def reordered(self, order: Array) -> Effects:
        """For components in another order."""
        found, covariances = self.copy(), self.covariances
        found.coefficients = self.coefficients[order]
        found.covariances = None if covariances is None else covariances[order]
        return found

    def cycles(self) -> dict[str, Array]:
        """The factors (K, positions) of one cycle of each season."""
        found = {}
        for t, season in enumerate(self.design.terms):
            if isinstance(season, Season):
                mine = self.coefficients[..., self.design.term_of == t]
                found[season.name] = np.exp(mine @ season.cycle().T)
        return found

    def by_term(self) -> dict[str, Array]:
        """The factors (K, N) of each term, whose product is `factors`, by its name."""
        found: dict[str, Array] = {}
        seasons = {season.name for season in self.seasons}
        for t, term in enumerate(self.design.terms):
            name, mine = term.name, self.design.term_of == t
            while name in found or (name in seasons and not isinstance(term, Season)):
                name += " (effect)"
            found[name] = np.exp(self.coefficients[:, mine] @ self.design.columns[:, mine].T)
        return found

    @property
    def seasons(self) -> tuple[Season, ...]:
        """The terms that are seasons."""
        return tuple(term for term in self.design.terms if isinstance(term, Season))

    def influences(self) -> dict[str, Array]:
        """Factors of covariates (per unit), holidays and events, with 90 % intervals, (K, 3)."""
        return {name: factors for _, name, factors in self.readings()}

    def readings(self) -> list[tuple[Term, str, Array]]:
        """Covariates, holidays and events: term, name, and factors as in `influences`.

        A holiday with the name of another country's has that of its term behind it.
        """
        found: list[tuple[Term, str, Array]] = []
        for t, term in enumerate(self.design.terms):
            for name, weights in term.readings().items():
                known = any(name == other for _, other, _ in found)
                of = term.name if term.name != name else "event"
                label = f"{name} ({of})" if known else name
                found.append((term, label, self._factor(t, weights)))
        return found

    def trend(self) -> Array | None:
        """Growth factors per step at the end of the fit, with 90 % intervals, (K, 3)."""
        for t, term in enumerate(self.design.terms):
            if isinstance(term, Trend):
                return self._factor(t, np.ones(1))
        return None

    def trend_factors(self) -> Array | None:
        """The factors (K, N) of the trend; None without one."""
        for t, term in enumerate(self.design.terms):
            if isinstance(term, Trend):
                mine = self.design.term_of == t
                return np.exp(self.coefficients[:, mine] @ self.design.columns[:, mine].T)
        return None

    def _factor(self, t: int, weights: Array) -> Array:
        """exp of a weighted sum of the coefficients of a term, and its 90 % interval, (K, 3)."""
        mine = self.design.term_of == t
        log = self.coefficients[:, mine] @ weights
        spread = np.full(len(log), np.nan)
        if self.covariances is not None:
            of_term = self.covariances[:, mine][:, :, mine]
            with np.errstate(over="ignore"):  # per unit; the logarithm is bounded below
                variance = np.einsum("i,kij,j->k", weights, of_term, weights)
            spread = np.sqrt(np.maximum(variance, 0.0))
        logs = np.column_stack([log, log - _Z * spread, log + _Z * spread])
        return np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG))

    def move(self, majorizer: Majorizer, H: Array, farthest: Array | None = None) -> None:
        """(EF1): a Newton step on the bound −p log g + q g + r/g in the activations g = c h.

        The majorizer is that of levels at the present factors; it holds for any levels H, or
        up to the `farthest` ones, by which c h is bounded at the present c.
        """
        X, precisions, old = self.design.columns, self.precisions, self.coefficients
        p, up, down = majorizer.p, majorizer.q * H, majorizer.r / H
        slope = (up - p - down) @ X + precisions * old
        step = self._newton((up + down)[:, :, None] * X, slope)
        shift, new = step @ X.T, old.copy()
        length = np.minimum(1.0, _LONGEST / np.maximum(np.abs(shift).max(axis=1), _LONGEST))
        left = np.arange(len(H))  # components that have not moved yet
        for _ in range(_HALVINGS):
            t, moved = length[left, None] * shift[left], old[left] + length[left, None] * step[left]
            change = np.sum(
                up[left] * np.expm1(t) + down[left] * np.expm1(-t) - p[left] * t, axis=1
            )
            change += 0.5 * np.sum(precisions * (moved**2 - old[left] ** 2), axis=1)
            lower = change <= 0.0
            if farthest is not None:
                lower &= np.all(H[left] * np.exp(t) <= farthest[left], axis=1)
            new[left[lower]] = moved[lower]
            left = left[~lower]
            if not len(left):
                break
            length[left] *= 0.5
        self.coefficients = new

    def exchange(self, H: Array, chain: ActivationPrior, scale: Scale) -> bool:
        """(EF2): a Newton step between coefficients and levels H, in place; activations stay.

        Where data determine the activations well, (EF1) moves the coefficients in tiny steps, and
        this finds them at once. Returns whether anything moved.
        """
        X, old, precisions = self.design.columns, self.coefficients, self.precisions
        before = chain.expansion(H, scale)
        curved = before.diagonal[:, :, None] * X
        curved[:, 1:] += before.off[:, :, None] * X[:-1]
        curved[:, :-1] += before.off[:, :, None] * X[1:]
        step = self._newton(curved, precisions * old - before.slope @ X)
        shift = step @ X.T
        length = min(1.0, _LONGEST / max(float(np.abs(shift).max()), _LONGEST))
        value = before.value + self.value()
        for _ in range(_HALVINGS):
            levels, new = np.maximum(H * np.exp(-length * shift), FLOOR), old + length * step
            there = 0.5 * float(np.sum(precisions * new**2))
            if chain.expansion(levels, scale).value + there < value:
                H[...], self.coefficients = levels, new
                return True
            length *= 0.5
        return False

    def _newton(self, curved: Array, slope: Array) -> Array:
        """Newton steps (K, P) for slopes (K, P) and a Hessian applied to the columns, (K, N, P)."""
        hessian = self.design.columns.T @ curved + np.diag(self.precisions)
        return -np.linalg.solve(hessian, slope[:, :, None])[:, :, 0]
