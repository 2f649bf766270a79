"""Hyper-parameters of a chain by marginal likelihood: EM with Laplace's approximation.

As part of a joint mode, the shape of a chain would run to a boundary together with the activations.
So activations are integrated out at fixed components. With Σ of (L1) and u = log h normal, the mean
of h being ĥ as in (L2), the M step maximises for each component k

    Q_k(θ) = Σ_n w_n E log p(h_n | h_{n−1}, θ) + E log p(h_1 | θ) + log p(θ)                  (LE1)

where the first step counts if the chain defines its distribution. Expectations are by Gauss–Hermite
quadrature over (u_{n−1}, u_n), for any chain with a `log_density`. Coordinates x = log θ, or the
log odds of ρ, of the components are normal around a common centre, which has the prior of
`chains/coordinates.py`. A random walk learns from the steps where a component is active:

    w_n = min(1, ĥ_{n−1}/m, ĥ_n/m)²,   m the mean of ĥ.                                       (LE2)

Elsewhere the data say little of it, and jumps from next to nothing would decide: squared, since a
rise by a factor of r costs `Rate` α r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import optimize

from .._typing import Array
from ..chains.base import Chain
from ..chains.coordinates import Coordinates, Prior
from ..kernels.floor import FLOOR
from ..objective import Problem
from .laplace import DataPart, Posterior, laplace

# Nodes per variable.
_NODES = 3
# Largest standard deviation of log h, and of its changes, in expectations; least variance.
_WIDEST, _LEAST_VARIANCE = 2.5, 1e-14
# Spread of components around their centre, as a share of the spread of the centre; for log odds.
_SHARE, _ODDS = 0.5, 1.0
# Farthest coordinates from the centre of a prior, in its spreads, and farthest log odds.
_FARTHEST, _LARGEST_ODDS = 5.0, 10.0
# Most parabolas per M step, their first width, and the move from which on they are good enough; the
# longest move of a coordinate in one round of EM.
_PARABOLAS, _WIDTH, _NEAR, _LONGEST = 5, 0.5, 0.005, 2.0
# Step of differences in a coordinate.
_STEP = 0.1
# A move of a coordinate that no longer matters.
_SETTLED = 0.02
# Largest share of missing information, by which moves are extrapolated.
_MOST_MISSING = 0.97
# Half the width of a 90 % interval in standard deviations.
_HALF = 1.6449


class Moves(NamedTuple):
    """Nodes of transitions, (J, N−1, K), with their weights, and of the first step, (J, K)."""

    before: Array
    after: Array
    weights: Array
    first: Array
    first_weights: Array


def moves_of(posterior: Posterior, *, weighted: bool) -> Moves:
    """Nodes for expectations under a posterior; `weighted` by (LE2)."""
    H = np.maximum(posterior.activations, FLOOR)
    variance = np.diagonal(posterior.covariance, axis1=1, axis2=2)
    u = np.log(H) - 0.5 * np.minimum(variance, _WIDEST**2)  # so that the mean of h is ĥ, as in (L2)
    shared = posterior.between_steps()
    # The change of u first, which is much better known than u if the chain is stiff.
    change = np.maximum(variance[:-1] + variance[1:] - 2.0 * shared, _LEAST_VARIANCE)
    slope = (shared - variance[:-1]) / change
    left = np.sqrt(np.maximum(variance[:-1] - slope**2 * change, 0.0))
    z, w = np.polynomial.hermite_e.hermegauss(_NODES)
    one, other = np.stack(np.meshgrid(z, z, indexing="ij")).reshape(2, -1, 1, 1)
    by = np.minimum(np.sqrt(change), _WIDEST) * one
    before = u[:-1] + np.clip(slope, -1.0, 1.0) * by + np.minimum(left, _WIDEST) * other
    after = before + np.diff(u, axis=0) + by
    active = np.minimum(1.0, np.minimum(H[1:], H[:-1]) / H.mean(axis=0)) ** 2 if weighted else 1.0
    first = u[0] + np.minimum(np.sqrt(variance[0]), _WIDEST) * z[:, None]
    return Moves(
        before=_positive(before),
        after=_positive(after),
        weights=np.outer(w, w).reshape(-1, 1, 1) / w.sum() ** 2 * active * np.ones_like(before),
        first=_positive(first),
        first_weights=w[:, None] / w.sum(),
    )


def _positive(log_values: Array) -> Array:
    return np.maximum(np.exp(log_values), FLOOR)


def expected_log_density(chain: Chain, moves: Moves) -> Array:
    """(LE1) without the prior, (K,); the numbers of the chain are not checked again."""
    with np.errstate(all="ignore"):
        density = chain._log_density(moves.after, moves.before)
    found: Array = np.einsum("jnk,jnk->k", moves.weights, density)
    if chain.own_first and (law := chain._stationary()) is not None:
        found += np.sum(moves.first_weights * law.logpdf(moves.first), axis=0)
    return np.where(np.isnan(found), -np.inf, found)


@dataclass(frozen=True)
class LearnedValues:
    """What EM learned: the chain, and for each hyper-parameter (K, 3): value and 90 % interval."""

    chain: Chain
    table: dict[str, Array]

    def reordered(self, order: Array) -> LearnedValues:
        """For components in another order."""
        table = {name: rows[order] for name, rows in self.table.items()}
        return LearnedValues(self.chain.reordered(order), table)

    def in_unit(self, unit: float) -> LearnedValues:
        """For activations in another unit, h/unit."""
        per_unit = self.chain._per_unit
        table = {n: rows * (unit if n in per_unit else 1.0) for n, rows in self.table.items()}
        return LearnedValues(self.chain.in_unit(unit), table)


class ChainLearner:
    """EM for the hyper-parameters of a chain that are set to "learn".

    Parameters
    ----------
    coordinates : Coordinates
    unit : float
        That of the activations.
    part : DataPart
        The data terms of (L1) at the present components.
    solve : callable
        (problem, H) ↦ the mode of H (K, N) at these components.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        unit: float,
        part: Callable[[], DataPart],
        solve: Callable[[Problem, Array], Array],
    ) -> None:
        self._coordinates, self._unit, self._part, self._solve = coordinates, unit, part, solve
        self.x = dict(coordinates.start)

    def chain(self, x: dict[str, Array] | None = None) -> Chain:
        """The chain at some coordinates, by default the present ones."""
        return self._coordinates.at(self.x if x is None else x).in_unit(self._unit)

    def run(self, problem: Problem, H: Array, rounds: int) -> Array:
        """Rounds of EM from a mode H; returns the mode at the values that were found.

        They end when no coordinate moves by more than `_SETTLED`.
        """
        before: dict[str, tuple[Array, Array]] = {}
        for _ in range(rounds):
            H, moves = self._expect(problem, H, self.x)
            new = self._maximise(moves)
            largest = 0.0
            for name, x in self.x.items():
                delta = new[name] - x
                move = delta / (1.0 - _missing(before.get(name), x, delta))
                move = np.clip(move, -_LONGEST, _LONGEST)
                before[name] = x, delta
                self.x[name] = self._bounded(name, x + move)
                largest = max(largest, float(np.abs(self.x[name] - x).max()))
            if largest < _SETTLED:
                break
        return self._solve(self._at(problem, self.x), H)

    def result(self, problem: Problem, H: Array) -> LearnedValues:
        """What was learned, with intervals by the observed information.

        The score is the gradient of (LE1) at the values of the E step (Fisher's identity), and the
        observed information is minus its derivative.
        """
        names = self._coordinates.names
        H, moves = self._expect(problem, H, self.x)
        score = self._score(moves, self.x)
        information = np.empty((H.shape[0], len(names), len(names)))
        for j, name in enumerate(names):
            x = {**self.x, name: self.x[name] + _STEP}
            there = self._score(self._expect(problem, H, x)[1], x)
            information[:, :, j] = (score - there).T / _STEP
        spreads = _HALF * self._deviations(information)
        table = {
            name: np.column_stack([self._value(name, d) for d in (0.0, -spread, spread)])
            for name, spread in zip(names, spreads, strict=True)
        }
        return LearnedValues(self.chain(), table)

    def _score(self, moves: Moves, x: dict[str, Array]) -> Array:
        """The gradient (n, K) of (LE1) in the coordinates, by differences."""
        found = []
        for name, at in x.items():
            value = self._value_in(name, moves, x)
            found.append((value(at + _STEP) - value(at - _STEP)) / (2.0 * _STEP))
        return np.array(found)

    def _deviations(self, information: Array) -> Array:
        """Standard deviations (n, K) of log θ, or log odds; never beyond those of the priors."""
        names, priors = self._coordinates.names, self._coordinates.priors
        least = np.array([_spread_of(priors[name]) ** -2.0 for name in names])
        values, vectors = np.linalg.eigh(0.5 * (information + information.transpose(0, 2, 1)))
        covariance = (vectors / np.maximum(values, least.min())[:, None]) @ vectors.transpose(
            0, 2, 1
        )
        # The logarithm of a rate is that of its ratio to a shape plus that of the shape.
        sums = np.eye(len(names))
        for i, name in enumerate(names):
            if (unit := self._coordinates.unit_of(name)) is not None:
                sums[i, names.index(unit)] = 1.0
        found: Array = np.sqrt(np.einsum("ia,kab,ib->ik", sums, covariance, sums))
        return found

    def _value(self, name: str, shift: Array | float) -> Array:
        """A hyper-parameter at its coordinate plus a shift, in the unit of the activations."""
        found: Array = getattr(self.chain({**self.x, name: self.x[name] + shift}), name)
        return found

    def _at(self, problem: Problem, x: dict[str, Array]) -> Problem:
        return replace(problem, chain=self.chain(x), scale="log", smoothing=0.0)

    def _expect(self, problem: Problem, H: Array, x: dict[str, Array]) -> tuple[Array, Moves]:
        """E step: the mode, and nodes around it."""
        chain = self.chain(x)
        H = self._solve(self._at(problem, x), H)
        return H, moves_of(laplace(self._part(), H, chain), weighted=not chain.own_first)

    def _maximise(self, moves: Moves) -> dict[str, Array]:
        """M step, one hyper-parameter after the other, in turns until none moves."""
        x = dict(self.x)
        for _ in range(self.chain()._turns if len(x) > 1 else 1):
            before = dict(x)
            for name in x:
                x[name] = self._bounded(name, climb(self._value_in(name, moves, x), x[name]))
            if max(float(np.abs(x[name] - before[name]).max()) for name in x) < _SETTLED:
                break
        return x

    def _value_in(self, name: str, moves: Moves, x: dict[str, Array]) -> Callable[[Array], Array]:
        """(LE1) as a function of one coordinate."""
        prior = self._coordinates.priors[name]
        centre, spread = _centre(prior, x[name]), _spread_of(prior)

        def value(at: Array) -> Array:
            q = expected_log_density(self.chain({**x, name: at}), moves)
            return q - 0.5 * ((at - centre) / spread) ** 2

        return value

    def _bounded(self, name: str, x: Array) -> Array:
        prior = self._coordinates.priors[name]
        if prior.spread is None:
            return np.clip(x, -_LARGEST_ODDS, _LARGEST_ODDS)
        return prior.centre + np.clip(
            x - prior.centre, *prior.spread * _FARTHEST * np.array([-1, 1])
        )


def _spread_of(prior: Prior) -> float:
    """Spread of components around their centre."""
    return _ODDS if prior.spread is None else _SHARE * prior.spread


def _centre(prior: Prior, x: Array) -> float:
    """The most probable centre of coordinates x (K,)."""
    spread = _spread_of(prior)

    def cost(c: float) -> float:
        return float(0.5 * np.sum(((x - c) / spread) ** 2) - prior.log_density(np.asarray(c)))

    return float(optimize.minimize_scalar(cost, bracket=(x.mean() - 0.1, x.mean() + 0.1)).x)


def _missing(before: tuple[Array, Array] | None, x: Array, delta: Array) -> Array | float:
    """Share of missing information, by the secant of the last two moves of EM."""
    if before is None:
        return 0.0
    passed = x - before[0]
    with np.errstate(all="ignore"):
        found = 1.0 + (delta - before[1]) / passed
    known = np.isfinite(found) & (np.abs(passed) > _SETTLED)
    return np.where(known, np.clip(found, 0.0, _MOST_MISSING), 0.0)


def climb(value: Callable[[Array], Array], x: Array) -> Array:
    """Maximisers of K smooth functions of one number each, by parabolas."""
    best, width = value(x), np.full(len(x), _WIDTH)
    for _ in range(_PARABOLAS):
        left, right = value(x - width), value(x + width)
        bend, slope = 2.0 * best - left - right, 0.5 * (right - left)
        with np.errstate(all="ignore"):
            move = np.where(bend > 0.0, slope / bend, np.inf * np.sign(slope))
        move = np.clip(np.nan_to_num(move), -2.0, 2.0) * width
        points = np.stack([x, x - width, x + width, x + move])
        values = np.stack([best, left, right, value(x + move)])
        which = np.argmax(values, axis=0)[None]
        x, best = (np.take_along_axis(a, which, 0)[0] for a in (points, values))
        if np.all(np.abs(move) < _NEAR):
            break
        width = np.where(np.abs(move) < 0.5 * width, 0.3 * width, width)
    return x
