"""Effects drawn together with components and levels.

With h the levels of a component, c_n = exp(x_nᵀb) its factors and e exposures (of clumps, for
negative binomial counts), the parts y of the counts are Poisson with mean e c h, so that

    log p(b | y, h) = Σ_n (y_n x_nᵀb − e_n h_n e^{x_nᵀb}) − ½ bᵀΛb,                            (EF5)

which is concave. Given the activations g = c h, on which the data depend, the levels are those of
the chain, and h → g e^{−Xb} has the volume e^{−Σ_n x_nᵀb}:

    log p(b | g) = log p(h = g e^{−Xb}) − Σ_n x_nᵀb − ½ bᵀΛb.                                  (EF6)

The first step mixes well where the chain is stiff, the second where it is loose and counts are
large, so a sweep has both (interweaving; Yu and Meng 2011). Each is an independence step of
Metropolis and Hastings: a multivariate t around the mode, found from a start that does not depend
on the present b, with the curvature there. Given b, the variance τ² = σ²/P of the P coefficients
of a term has the prior of (EF4) and is inverse Gamma,

    τ² ~ IG(P/2, σ₀²/2),   τ² | b ~ IG(P (K + 1)/2, (σ₀² + Σ_kj b_kj²)/2).                     (EF7)

The joint prior is restricted to factors between e^−100 and e^100 at the steps of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._typing import Array
from ..chains.base import Chain, First
from ..effects.design import Design
from ..effects.effects import FARTHEST, LARGEST_COEFFICIENT, Effects
from ..kernels.floor import FLOOR
from ..runtime.states import StateError

# Degrees of freedom of proposals: their tails are longer than those of any target.
_FREEDOM = 20.0
# Newton steps to a mode, the longest change of a log factor in one, halvings of a step, and the
# gain in log density that no longer matters; part of a curvature that is lost to rounding.
_NEWTON, _LONGEST, _HALVINGS, _GAIN, _RIDGE = 30, 2.0, 20, 1e-4, 1e-12


class _Target(Protocol):
    """Densities of the coefficients (K, P) of all components, which are independent."""

    @property
    def start(self) -> Array:
        """Where the search for the modes begins; must not depend on the present coefficients."""

    @property
    def columns(self) -> Array: ...
    def value(self, b: Array) -> Array:
        """Log densities (K,); −∞ outside the support."""

    def expand(self, b: Array) -> tuple[Array, Array]:
        """Slopes (K, P) and positive definite curvatures (K, P, P), exact or nearly so."""


@dataclass(frozen=True)
class GivenCounts:
    """(EF5): the parts of the counts (K, N), and what they would be expected to be if c = 1."""

    columns: Array
    precisions: Array
    counts: Array
    expected: Array

    @property
    def start(self) -> Array:
        """Weighted least squares for log ratios of counts to their expectations."""
        weight = self.counts + 0.5
        ratio = np.log(weight / (self.expected + 0.5))
        return _least_squares(self.columns, self.precisions, weight, ratio)

    def value(self, b: Array) -> Array:
        x, inside = _log_factors(b, self.columns)
        found = np.sum(self.counts * x - self.expected * np.exp(x), axis=1)
        return np.where(inside, found - 0.5 * b**2 @ self.precisions, -np.inf)

    def expand(self, b: Array) -> tuple[Array, Array]:
        X = self.columns
        mean = self.expected * np.exp(_log_factors(b, X)[0])
        bend = (X.T * mean[:, None]) @ X + np.diag(self.precisions)
        return (self.counts - mean) @ X - self.precisions * b, bend


@dataclass(frozen=True)
class GivenActivations:
    """(EF6): the activations (K, N), and the distribution of their levels."""

    columns: Array
    precisions: Array
    activations: Array
    auxiliary: Array
    chain: Chain
    first: First

    @property
    def start(self) -> Array:
        """Least squares for log activations, or for their changes if steps depend on each other."""
        X, u = self.columns, np.log(np.maximum(self.activations, FLOOR))
        if self.chain.dynamic:
            X, u = np.diff(X, axis=0), np.diff(u, axis=1)
        else:
            u = u - u.mean(axis=1, keepdims=True)
        return _least_squares(X, self.precisions, np.ones_like(u), u)

    def value(self, b: Array) -> Array:
        x, inside = _log_factors(b, self.columns)
        H = self.activations * np.exp(-x)
        # A step at the floor has a probability, not a density, and cannot be moved.
        inside &= H.min(axis=1) > FLOOR
        H[~inside] = 1.0
        law = self.chain.path_law(len(H))(H, self.auxiliary, self.first)
        return np.where(inside, law - x.sum(axis=1) - 0.5 * b**2 @ self.precisions, -np.inf)

    def expand(self, b: Array) -> tuple[Array, Array]:
        X = self.columns
        H = np.maximum(self.activations * np.exp(-_log_factors(b, X)[0]), FLOOR)
        _, slope, diagonal, off = self.chain.expansion(H, "log")
        if not self.chain.own_first:
            rate = self.first.shape / self.first.level * H[:, 0]
            slope[:, 0] += rate - self.first.shape
            diagonal[:, 0] += rate
        beside = (X[:-1].T * off[:, None]) @ X[1:]
        bend = (X.T * diagonal[:, None]) @ X + beside + np.swapaxes(beside, 1, 2)
        return slope @ X - self.precisions * b, bend + np.diag(self.precisions)


def _log_factors(b: Array, columns: Array) -> tuple[Array, Array]:
    """Log factors (K, N), clipped to the support, and whether they are inside (K,)."""
    x = b @ columns.T
    near: Array = np.abs(x).max(axis=1) <= FARTHEST
    near &= np.abs(b).max(axis=1) <= LARGEST_COEFFICIENT
    return np.clip(x, -FARTHEST, FARTHEST), near


def _least_squares(X: Array, precisions: Array, weight: Array, y: Array) -> Array:
    """Coefficients (K, P) of y (K, N) on the columns, shrunk by the prior."""
    bend = (X.T * weight[:, None]) @ X + np.diag(precisions)
    return np.linalg.solve(bend, ((weight * y) @ X)[..., None])[..., 0]


def independence_step(target: _Target, b: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """New coefficients (K, P), and which components moved (K,)."""
    mode, bend = _mode(target)
    root = np.linalg.cholesky(bend)
    K, P = b.shape
    normal = rng.standard_normal((K, P, 1))
    stretch = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, size=K))[:, None]
    new = mode + stretch * np.linalg.solve(np.swapaxes(root, 1, 2), normal)[..., 0]

    def log_ratio(b: Array) -> Array:
        """Log density of the target minus that of proposals."""
        distance = np.einsum("kpq,kp->kq", root, b - mode)
        of_proposal = np.log1p(np.sum(distance**2, axis=1) / _FREEDOM)
        return np.asarray(target.value(b) + 0.5 * (_FREEDOM + P) * of_proposal)

    before, after = log_ratio(b), log_ratio(new)
    patience = rng.standard_exponential(K)
    moves = np.isfinite(before) & (after > np.where(np.isfinite(before), before, 0.0) - patience)
    return np.where(moves[:, None], new, b), moves


def _mode(target: _Target) -> tuple[Array, Array]:
    """The modes (K, P), nearly, and the curvatures there (K, P, P)."""
    b = target.start
    value = target.value(b)
    b = np.where(np.isfinite(value)[:, None], b, 0.0)
    value = target.value(b)
    slope, bend = _expanded(target, b)
    for _ in range(_NEWTON):
        step = np.linalg.solve(bend, slope[..., None])[..., 0]
        farthest = np.abs(step @ target.columns.T).max(axis=1)
        step *= (_LONGEST / np.maximum(farthest, _LONGEST))[:, None]
        moved, before = b + step, value
        value = target.value(moved)
        for _halving in range(_HALVINGS):
            worse = np.less(value, before)
            if not worse.any():
                break
            moved[worse] = 0.5 * (moved[worse] + b[worse])
            value = target.value(moved)
        worse = np.less(value, before)
        b, value = np.where(worse[:, None], b, moved), np.where(worse, before, value)
        slope, bend = _expanded(target, b)
        if not np.any(value > before + _GAIN):
            break
    return b, bend


def _expanded(target: _Target, b: Array) -> tuple[Array, Array]:
    """`expand`, with curvatures that have a Cholesky factor whatever was lost to rounding."""
    slope, bend = target.expand(b)
    one = np.eye(b.shape[1])
    sound: Array = np.abs(bend).max(axis=(1, 2)) < np.inf
    sound &= np.abs(slope).max(axis=1) < np.inf
    slope, bend = np.where(sound[:, None], slope, 0.0), np.where(sound[:, None, None], bend, one)
    return slope, bend + _RIDGE * np.trace(bend, axis1=1, axis2=2)[:, None, None] * one


class LearnedEffects:
    """The effects of a run, and draws of them.

    Attributes
    ----------
    value : Effects
        The present ones.
    moved : array, (2,)
        Shares of the components that the last sweep moved, given counts and given activations.
    """

    def __init__(self, value: Effects) -> None:
        self.value, self.moved = value, np.zeros(2)

    @property
    def design(self) -> Design:
        """The terms, and their columns at the steps of the run."""
        return self.value.design

    def move(self, coefficients: Array, strengths: Array) -> None:
        """Set other coefficients and strengths; raises if the factors are out of range."""
        known = ~self.design.learned
        if np.any(strengths[known] != self.value.strengths[known]):
            raise StateError("it has other strengths of effects")
        if not _log_factors(coefficients, self.design.columns)[1].all():
            raise StateError("its effects are out of range")
        self.value.coefficients, self.value.strengths = coefficients, strengths

    def draw(self, counts: Array, expected: Array, rng: np.random.Generator) -> None:
        """Coefficients given parts of counts (K, N), and their expectations at factors of 1."""
        effects = self.value
        target = GivenCounts(self.design.columns, effects.precisions, counts, expected)
        effects.coefficients, moves = independence_step(target, effects.coefficients, rng)
        self.moved[0] = moves.mean()

    def interweave(
        self, H: Array, Z: Array, chain: Chain, first: First, rng: np.random.Generator
    ) -> None:
        """Coefficients and levels H given the activations; H changes in place."""
        effects = self.value
        G = H * effects.factors
        target = GivenActivations(self.design.columns, effects.precisions, G, Z, chain, first)
        effects.coefficients, moves = independence_step(target, effects.coefficients, rng)
        H[moves] = G[moves] / effects.factors[moves]
        self.moved[1] = moves.mean()

    def draw_strengths(self, rng: np.random.Generator) -> None:
        """(EF7) for the terms that are to be learned."""
        effects, sizes, K = self.value, self.design.sizes, len(self.value.coefficients)
        usual = self.design.usual
        drawn = effects.strengths.copy()
        for t in np.flatnonzero(self.design.learned):
            mine = effects.coefficients[:, self.design.term_of == t]
            scale = 0.5 * (usual[t] ** 2 + np.sum(mine**2))
            drawn[t] = np.sqrt(sizes[t] * scale / rng.standard_gamma(0.5 * sizes[t] * (K + 1)))
        effects.strengths = drawn

    def log_prior(self) -> float:
        """Log prior of coefficients and log strengths, up to a constant."""
        effects, learned = self.value, self.design.learned
        of_columns = 0.5 * len(effects.coefficients) * np.log(effects.precisions).sum()
        sizes, inverse = self.design.sizes[learned], effects.strengths[learned] ** -2.0
        # Of log τ², with τ² = σ²/P.
        of_terms = (
            0.5 * sizes @ (np.log(sizes * inverse) - self.design.usual[learned] ** 2 * inverse)
        )
        return float(of_columns + of_terms) - effects.value()
