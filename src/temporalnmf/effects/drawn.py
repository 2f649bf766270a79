"""Posterior draws of effects."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._typing import Array
from .design import Design
from .effects import FARTHEST, Effects


@dataclass(frozen=True, eq=False)
class DrawnEffects:
    """Draws of coefficients and strengths, by run and in order.

    Attributes
    ----------
    design : Design
        At the steps that were drawn.
    coefficients : array, (n_chains, draws, n_components, columns)
    strengths : array, (n_chains, draws, terms)
    moved : array, (n_chains, draws, 2)
        Shares of the components whose coefficients moved in the sweep of a draw, given counts and
        given activations: the acceptance rates of both steps.
    """

    design: Design
    coefficients: Array
    strengths: Array
    moved: Array

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.coefficients.nbytes + self.strengths.nbytes + self.moved.nbytes

    @property
    def learned(self) -> Array:
        """The strengths that were learned, (n_chains, draws, …)."""
        return self.strengths[..., self.design.learned]

    def factors(self, which: Array, design: Design) -> Array:
        """Factors (S, N, K) of some draws at the steps of a design."""
        flat = self.coefficients.reshape(-1, *self.coefficients.shape[2:])
        found = design.columns @ np.swapaxes(flat[which], 1, 2)
        # At other steps than those of the fit, coefficients that no data determine may overflow.
        return np.asarray(np.exp(np.clip(found, -FARTHEST, FARTHEST)))

    def at(self, number: int, design: Design) -> Effects:
        """The effects of a draw at the steps of a design."""
        K, P = self.coefficients.shape[2:]
        strengths = self.strengths.reshape(-1, self.strengths.shape[2])[number]
        return Effects(design, self.coefficients.reshape(-1, K, P)[number], strengths)

    def only(self, which: Array, design: Design) -> DrawnEffects:
        """Some of the draws as one run, at other steps."""
        arrays = (self.coefficients, self.strengths, self.moved)
        return DrawnEffects(design, *(a.reshape(-1, *a.shape[2:])[which][None] for a in arrays))

    def moved_to(self, design: Design) -> DrawnEffects:
        """The same draws at other steps."""
        return replace(self, design=design)

    def mean(self, design: Design) -> Effects:
        """Effects with the means of coefficients and strengths, and the covariances of draws."""
        coefficients, strengths = (a.mean(axis=(0, 1)) for a in (self.coefficients, self.strengths))
        away = self.coefficients - coefficients
        n_draws = max(away.shape[0] * away.shape[1] - 1, 1)
        covariances = np.einsum("cdki,cdkj->kij", away, away) / n_draws
        return Effects(design, coefficients, strengths, covariances)

    def cycles(self) -> dict[str, Array]:
        """The means of the factors (K, positions) of one cycle of each season."""
        flat = self.coefficients.reshape(-1, *self.coefficients.shape[2:])
        no_steps = self.design.take(np.arange(0))
        found = Effects(no_steps, flat, self.strengths[0, 0]).cycles()
        return {name: factors.mean(axis=0) for name, factors in found.items()}
